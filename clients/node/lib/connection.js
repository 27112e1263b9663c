/* connection.js: one connection: requests out, their answers in, in any order, and pings both ways.
 *
 *   call ──> waiting ──> open (at most 64) ──> settled by its answer, its deadline or the connection's end */
import { createConnection } from "node:net";
import { getSystemErrorMap } from "node:util";

import { AnswerTimeout, ConnectionLost, ProtocolError } from "./errors.js";
import { Frames } from "./frames.js";
import { MAX_FRAME, MOST_OPEN, VERSION, answerTo, checkHello, errorOf, pack, ping, read, request } from "./protocol.js";

/** Until when all that one question needs has to be there. */
export class Deadline {
  #at;

  constructor(ms) {
    this.ms = ms;
    this.#at = performance.now() + ms;
  }

  leftMs() {
    return Math.max(0, this.#at - performance.now());
  }
}

const wordsOf = (error) => getSystemErrorMap().get(error.errno)?.[1] ?? error.message;

export class Connection {
  #socket;
  #frames = new Frames(MAX_FRAME);
  #maxFrame = MAX_FRAME;
  #waiting = new Set();
  #open = new Map();
  #next = 0;
  #heard;
  #silentMs = 0;
  #pings;

  /** Why it isn't open any more; null while it is. */
  lost = null;

  /** Settles once the server has answered the hello; who calls waits for it. */
  ready;

  /** `heard` gets each generation that the server names as the one in force. */
  constructor(path, client, heard, deadline) {
    this.path = path;
    this.#heard = heard;
    this.#socket = createConnection({ path })
      .on("data", (bytes) => this.#read(bytes))
      .on("end", () => this.#end(new ConnectionLost(`${path}: the server closed the connection`)))
      .on("error", (error) => this.#end(new ConnectionLost(`${path}: ${wordsOf(error)}`, { cause: error })));
    this.ready = this.#greet(client, deadline);
  }

  async #greet(client, deadline) {
    try {
      const hello = checkHello(await this.call("hello", pack({ version: VERSION, role: "decider", client }), deadline));
      this.#maxFrame = this.#frames.most = hello.max_frame;
      this.#pings = setInterval(() => this.#tick(hello), hello.ping_ms).unref();
      this.#heard(hello.generation);
    } catch (error) {
      this.#end(error);
      throw error;
    }
  }

  // ---- Asking ----------------------------------------------------------------------------------

  /** The result for packed params. Rejects with the error that was answered, or with why there is no answer. */
  call(method, params, deadline) {
    return new Promise((resolve, reject) => {
      if (this.lost) return reject(this.lost);
      const call = { method, params, resolve, reject, isSent: false };
      call.timer = setTimeout(() => this.#expire(call, deadline), deadline.leftMs());
      this.#waiting.add(call);
      this.#send();
    });
  }

  #send() {
    for (const call of this.#waiting) {
      if (this.#open.size >= MOST_OPEN) return;
      this.#waiting.delete(call);
      call.id = this.#nextId();
      this.#open.set(call.id, call);
      try {
        this.#write(request(call.id, call.method, call.params, this.#maxFrame), () => (call.isSent = true));
      } catch (tooLarge) {
        this.#settle(call, () => call.reject(tooLarge));
      }
    }
  }

  /* What is written in one turn of the loop goes out at once. */
  #write(bytes, sent) {
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork();
      process.nextTick(() => this.#socket.uncork());
    }
    this.#socket.write(bytes, sent);
  }

  #nextId() {
    const id = this.#next;
    this.#next = (id + 1) % 2 ** 32;
    return id;
  }

  #settle(call, how) {
    clearTimeout(call.timer);
    this.#open.delete(call.id);
    how();
  }

  #expire(call, deadline) {
    const isHalfSent = this.#open.has(call.id) && !call.isSent;
    this.#waiting.delete(call);
    this.#settle(call, () =>
      call.reject(new AnswerTimeout(`${this.path}: no answer to ${call.method} within ${deadline.ms} ms`)),
    );
    if (isHalfSent)
      this.#end(new AnswerTimeout(`${this.path}: the server doesn't read`)); // nothing can follow it
    else this.#send();
  }

  // ---- Reading ---------------------------------------------------------------------------------

  #read(bytes) {
    this.#silentMs = 0;
    try {
      for (const frame of this.#frames.push(bytes)) this.#take(read(frame));
    } catch (error) {
      this.#end(error);
    }
    this.#send();
  }

  #take(came) {
    if (came.id === undefined) this.#told(came);
    else if (came.method !== undefined) this.#write(answerTo(came));
    else if (came.id !== null) this.#answered(this.#open.get(came.id), came);
    else if (came.error !== null) throw errorOf(came.error);
    else throw new ProtocolError("the server answered what nobody asked");
  }

  #told({ method, params }) {
    if (method === "policy_changed" && typeof params?.generation === "string") this.#heard(params.generation);
  }

  #answered(call, { error, result }) {
    if (!call) return; // a ping's, or one that comes too late
    this.#settle(call, () => (error === null ? call.resolve(result) : call.reject(errorOf(error))));
  }

  // ---- Its end ---------------------------------------------------------------------------------

  /* A loop that was held up runs this once for all that it missed, and reads before the next. */
  #tick({ ping_ms, lost_ms }) {
    this.#silentMs += ping_ms;
    if (this.#silentMs >= lost_ms) this.#end(new ConnectionLost(`${this.path}: nothing was heard for ${lost_ms} ms`));
    else this.#write(ping(this.#nextId()));
  }

  #end(why) {
    if (this.lost) return;
    this.lost = why;
    clearInterval(this.#pings);
    this.#socket.destroy();
    for (const call of [...this.#open.values(), ...this.#waiting]) this.#settle(call, () => call.reject(why));
    this.#waiting.clear();
  }

  /** Settles once the socket is closed. */
  close() {
    const closed = this.#socket.closed ? undefined : new Promise((resolve) => this.#socket.once("close", resolve));
    this.#end(new ConnectionLost(`${this.path}: this client closed the connection`));
    return closed;
  }
}
