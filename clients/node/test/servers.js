/* servers.js: servers that aren't mulligan: each does with a connection what a test says. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { decodeMultiStream, encode } from "@msgpack/msgpack";

export const HELLO = {
  version: 1,
  max_frame: 1 << 20,
  ping_ms: 10_000,
  lost_ms: 30_000,
  consumers: [],
  generation: "g",
};

export const VERDICT = {
  action: "retry",
  delay_ms: 1,
  queue: null,
  reason: null,
  note: null,
  tier: "retry",
  step: 1,
  of: 3,
  rule: null,
  fallback: null,
  generation: "g",
};

/** A connection, as the server sees it. */
class Peer {
  constructor(socket) {
    this.socket = socket.on("error", () => {});
    this.messages = decodeMultiStream(socket);
  }

  /** The next message; undefined: the client is gone. */
  async read() {
    return (await this.messages.next().catch(() => ({}))).value;
  }

  async readAll() {
    while ((await this.read()) !== undefined);
  }

  send(...message) {
    this.bytes(encode(message));
  }

  bytes(bytes) {
    this.socket.write(bytes);
  }

  async greet(other) {
    this.send(1, (await this.read())[1], null, { ...HELLO, ...other });
  }

  /** Greets, and reads the first request: its id. */
  async asked(other) {
    await this.greet(other);
    return (await this.read())[1];
  }
}

/** Gives a path where each connection after the other is played a script, the last one again and again. The connection
 * ends with its script. */
export async function serving(t, ...scripts) {
  const folder = await mkdtemp(join(tmpdir(), "mulligan-"));
  const sockets = new Set();
  let number = 0;
  const server = createServer(async (socket) => {
    sockets.add(socket);
    await scripts[Math.min(number++, scripts.length - 1)](new Peer(socket));
    socket.end();
  });
  const path = join(folder, "s");
  await new Promise((resolve) => server.listen(path, resolve));
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true });
  });
  return path;
}
