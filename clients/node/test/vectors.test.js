/* The test vectors of docs/serve.md, whose path is in MULLIGAN_PAGE: a request has these bytes, and an answer is read. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { decode } from "@msgpack/msgpack";

import { Frames } from "../lib/frames.js";
import { checkHello, checkMany, checkVerdict, errorOf, pack, read, request } from "../lib/protocol.js";

const vectors = readFileSync(process.env.MULLIGAN_PAGE, "utf8").split("\n## Test vectors\n")[1];

/* What is answered to each method that a vector asks. */
const CHECKS = {
  hello: checkHello,
  decide: checkVerdict,
  decide_many: ([first, second]) => checkVerdict(first) && assert.equal(typeof second.error, "string"),
  ping: (result) => assert.deepEqual(result, {}),
};

for (const [, name, block] of vectors.matchAll(/\n([^\n]+)\n\n```hex\n([^]*?)```/g))
  test(name, () => {
    const frames = new Frames(1 << 20);
    const methods = new Map();
    for (const line of block
      .trim()
      .split("\n")
      .filter((line) => line !== "closed")) {
      const bytes = Buffer.from(line.slice(1).replaceAll(" ", ""), "hex");
      if (line.startsWith("<"))
        answered(
          methods,
          [...bytes].flatMap((byte) => [...frames.push(Buffer.of(byte))]),
          bytes,
        );
      else if (bytes.length > 1) asked(methods, bytes);
    }
  });

function asked(methods, bytes) {
  const [, id, method, [params]] = decode(bytes);
  methods.set(id, method);
  if (params !== undefined) assert.deepEqual(request(id, method, pack(params), bytes.length), bytes);
}

function answered(methods, frames, bytes) {
  assert.deepEqual(Buffer.concat(frames), bytes);
  assert.equal(frames.length, 1);
  const { id, error, result } = read(frames[0]);
  if (error === null) CHECKS[methods.get(id)](result);
  else assert.equal(errorOf(error).constructor.name, error.type);
}
