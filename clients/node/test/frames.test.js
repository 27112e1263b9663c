/* Messages out of bytes that are cut anywhere. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { ExtData, encode } from "@msgpack/msgpack";

import { Frames } from "../lib/frames.js";

/* Something of each head; 70,000 of what has a 32-bit length. */
const VALUES = [
  null,
  true,
  false,
  0,
  127,
  128,
  255,
  256,
  65_535,
  65_536,
  2 ** 32,
  -1,
  -32,
  -33,
  -128,
  -129,
  -32_769,
  -(2 ** 40),
  0.5,
  "",
  "short",
  "x".repeat(31),
  "x".repeat(32),
  "x".repeat(255),
  "x".repeat(256),
  "x".repeat(70_000),
  [],
  [1],
  {},
  { a: 1 },
  Buffer.alloc(3),
  Buffer.alloc(300),
  Buffer.alloc(70_000),
  new Array(15).fill(0),
  new Array(16).fill([]),
  new Array(70_000).fill(1),
  new Date(0),
  Object.fromEntries(Array.from({ length: 16 }, (_, key) => [`k${key}`, [key]])),
  Object.fromEntries(Array.from({ length: 70_000 }, (_, key) => [`k${key}`, key])),
  ...[1, 2, 4, 8, 16, 3, 300, 70_000].map((size) => new ExtData(1, new Uint8Array(size))),
  { a: [{ b: [{ c: [1, "x", { d: null }] }] }, 2], e: {} },
];

const float32 = Buffer.from([0xca, 0, 0, 0, 0]);
const WHOLE = [...VALUES.map((value) => Buffer.from(encode(value))), float32];
const ALL = Buffer.concat(WHOLE);

/* pushed gives what comes out if these pieces go in. */
function pushed(pieces, most = 1 << 20) {
  const frames = new Frames(most);
  return pieces.flatMap((piece) => [...frames.push(piece)].map((frame) => Buffer.from(frame)));
}

test("all at once", () => {
  assert.deepEqual(pushed([ALL]), WHOLE);
});

test("byte by byte, and in pieces of each size", () => {
  const small = Buffer.concat(WHOLE.filter((bytes) => bytes.length < 1000));
  for (let size = 1; size < 600; size++) {
    const pieces = [];
    for (let at = 0; at < small.length; at += size) pieces.push(small.subarray(at, at + size));
    assert.deepEqual(Buffer.concat(pushed(pieces)), small);
    assert.equal(pushed(pieces).length, WHOLE.filter((bytes) => bytes.length < 1000).length);
  }
});

test("cut once, at each byte", () => {
  for (const bytes of WHOLE.filter((bytes) => bytes.length < 1000))
    for (let cut = 1; cut < bytes.length; cut++)
      assert.deepEqual(pushed([bytes.subarray(0, cut), bytes.subarray(cut)]), [bytes]);
});

test("a message ends where its last byte is", () => {
  for (const bytes of WHOLE) assert.deepEqual(pushed([bytes.subarray(0, -1)]), []);
});

test("size", () => {
  const bytes = Buffer.from(encode("x".repeat(100)));
  assert.equal(pushed([bytes], bytes.length).length, 1);
  assert.throws(
    () => pushed([bytes], bytes.length - 1),
    /^ProtocolError: the server sent a message of more than 101 bytes$/,
  );
  assert.throws(() => pushed([bytes.subarray(0, 2)], 50), /more than 50 bytes/);
  assert.throws(() => pushed([Buffer.from([0x92, 0xdd, 0, 1, 0, 0])], 1000), /more than 1000 bytes/);
});

test("levels", () => {
  assert.equal(pushed([Buffer.concat([Buffer.alloc(31, 0x91), Buffer.of(0x90)])]).length, 1);
  assert.equal(pushed([Buffer.concat([Buffer.alloc(32, 0x91), Buffer.of(0xc0)])]).length, 1);
  assert.throws(
    () => pushed([Buffer.alloc(33, 0x91)]),
    /^ProtocolError: the server sent a message of more than 32 levels$/,
  );
  assert.throws(() => pushed([Buffer.alloc(34, 0x81)]), /levels/);
});

test("the byte that is none", () => {
  assert.throws(
    () => pushed([Buffer.of(0x91, 0xc1)]),
    /^ProtocolError: the server sent what isn't a message: the byte 0xc1$/,
  );
});
