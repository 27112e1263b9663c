/* What is thrown as failures, without a server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inherits } from "node:util";
import { runInNewContext } from "node:vm";

import { encode } from "@msgpack/msgpack";
import { failureOf } from "mulligan";

class PaymentError extends Error {
  constructor(message, fields, options) {
    super(message, options);
    Object.assign(this, fields);
  }
}

class Declined extends PaymentError {}

const errorOf = (error, options) => failureOf(error, {}, options).error;

test("classes become types and lineage", () => {
  assert.deepEqual(errorOf(new Declined("no")), { type: "Declined", lineage: ["PaymentError"], message: "no" });
  assert.deepEqual(errorOf(new TypeError("x")), { type: "TypeError", lineage: [], message: "x" });
  assert.deepEqual(errorOf(new Error("x")), { type: "Error", lineage: [], message: "x" });
});

test("a class may be named otherwise", () => {
  const types = new Map([
    [PaymentError, "payments.Error"],
    [Declined, "CardDeclined"],
  ]);
  assert.deepEqual(errorOf(new Declined("no"), { types }), {
    type: "CardDeclined",
    lineage: ["payments.Error"],
    message: "no",
  });
});

test("what an error calls itself comes after its class", () => {
  const { type, lineage } = errorOf(new DOMException("late", "TimeoutError"));
  assert.deepEqual([type, lineage], ["DOMException", ["TimeoutError"]]);
  assert.deepEqual(errorOf(Object.assign(new Declined("no"), { name: "E_DECLINED" })).lineage, [
    "E_DECLINED",
    "PaymentError",
  ]);
  assert.deepEqual(errorOf(Object.assign(new Error("no"), { name: "FetchError" })), {
    type: "FetchError",
    lineage: [],
    message: "no",
  });
  assert.equal(errorOf(new (class extends Declined {})("no")).type, "Declined");
});

test("classes of before there were classes", () => {
  function Old() {}
  function Older() {}
  inherits(Older, Error);
  inherits(Old, Older);
  assert.deepEqual(errorOf(new Old()), { type: "Old", lineage: ["Older"], message: "" });
});

test("errors of another realm are errors", () => {
  const error = errorOf(
    runInNewContext("Object.assign(new RangeError('far', { cause: new TypeError('why') }), { type: 'mine', code: 1 })"),
  );
  assert.equal(error.type, "RangeError");
  assert.deepEqual(error.lineage, []);
  assert.equal(error.code, 1);
  assert.equal(error.cause.type, "TypeError");
});

test("own properties become fields", () => {
  class Opaque {}
  const fields = {
    status: 402,
    ratio: 0.5,
    final: true,
    code: "x",
    nothing: null,
    missing: undefined,
    _hidden: 1,
    "": 1,
    tags: ["a", 1, null, new Opaque(), 2n],
    deep: { a: { b: 1, _c: 2 } },
    big: 12n,
    huge: 2n ** 64n,
    when: new Date(0),
    never: new Date(NaN),
    where: new URL("http://h/x"),
    type: "mine",
    lineage: "mine",
    name: "mine",
    stack: "mine",
    nan: NaN,
    infinite: -Infinity,
    raw: Buffer.of(1),
    typed: new Float64Array(1),
    map: new Map([[1, 2]]),
    set: new Set([1]),
    thing: new Opaque(),
    call() {},
    sign: Symbol("s"),
    half: "a\ud800b\0c",
    [Symbol("s")]: 1,
  };
  const { type, lineage, message, ...read } = errorOf(new PaymentError("no", fields));
  assert.deepEqual([type, lineage, message], ["PaymentError", ["mine"], "no"]);
  assert.deepEqual(read, {
    status: 402,
    ratio: 0.5,
    final: true,
    code: "x",
    tags: ["a", 1, 2],
    deep: { a: { b: 1 } },
    big: 12,
    huge: "18446744073709551616",
    when: "1970-01-01T00:00:00.000Z",
    where: "http://h/x",
    half: "a\ufffdb\ufffdc",
  });
});

test("fields with names that mean something to JavaScript", () => {
  const error = new Error("x");
  for (const name of ["__proto__", "constructor", "toString"])
    Object.defineProperty(error, name, { value: 1, enumerable: true });
  const read = errorOf(error);
  assert.equal(Object.getPrototypeOf(read), Object.prototype);
  assert.deepEqual([read.constructor, read.toString], [1, 1]);
});

test("what raises when it is looked at is left out", () => {
  const broken = new Error("x");
  for (const name of ["stack", "message", "cause", "name", "field"])
    Object.defineProperty(broken, name, {
      enumerable: true,
      get: () => {
        throw new Error("not mine");
      },
    });
  broken.status = 1;
  broken.date = {
    __proto__: {
      toJSON: () => {
        throw new Error("not mine");
      },
    },
  };
  assert.deepEqual(errorOf(broken, { stack: true }), { type: "Error", lineage: [], message: "", status: 1 });
});

test("causes are those of cause", () => {
  const error = errorOf(new Declined("no", {}, { cause: new TypeError("why", { cause: "first" }) }));
  assert.deepEqual(error.cause, {
    type: "TypeError",
    lineage: [],
    message: "why",
    cause: { type: "Error", message: "first" },
  });
  assert.equal(errorOf(new Error("x", { cause: null })).cause, undefined);
  assert.equal(errorOf(new PaymentError("x", { cause: () => {} })).cause, undefined);
});

test("a circle of causes ends", () => {
  const first = new Error("1");
  const second = new Error("2", { cause: first });
  first.cause = second;
  const error = errorOf(first);
  assert.equal(error.cause.message, "2");
  assert.equal(error.cause.cause, undefined);
  first.cause = first;
  assert.equal(errorOf(first).cause, undefined);
});

test("a long chain of causes is cut", () => {
  let error = new Error("0");
  for (let number = 1; number < 100; number++) error = new Error(`${number}`, { cause: error });
  let depth = 0;
  for (let read = errorOf(error); read.cause; read = read.cause) depth++;
  assert.equal(depth, 15);
});

test("long texts are cut between two characters", () => {
  const error = errorOf(
    new PaymentError("é".repeat(100_000), { field: "x".repeat(100_000), odd: `x${"é".repeat(100_000)}` }),
  );
  assert.equal(Buffer.byteLength(error.message), 16 * 1024);
  assert.equal(Buffer.byteLength(error.field), 4 * 1024);
  assert.equal(error.odd, `x${"é".repeat(2047)}`);
  assert.equal(errorOf(new Error(`${"x".repeat(16 * 1024 - 1)}😀`)).message, "x".repeat(16 * 1024 - 1));
});

test("large objects leave room for a verdict", () => {
  const wide = (value) =>
    Object.fromEntries(Array.from({ length: 100 }, (_, number) => [`${"k".repeat(300)}${number}`, value]));
  const list = new Array(1000).fill("\0".repeat(10_000));
  const large = { response: wide(wide(list)), list, wide: wide("x".repeat(10_000)), circle: [] };
  large.circle.push(large);
  let error;
  for (let number = 0; number < 30; number++)
    error = Object.assign(new Error("\0".repeat(100_000), { cause: error }), { name: "\0".repeat(10_000), ...large });
  const packed = encode(failureOf(error, {}, { stack: true }));
  assert(packed.length < 1 << 20, `${packed.length} bytes`);
});

test("fields have their names whole, or aren't there", () => {
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, number) => [`name${number}`, "x".repeat(1000)]));
  const { type, lineage, message, ...read } = errorOf(
    new PaymentError("no", { ["k".repeat(257)]: 1, [`a\0`]: 2, ...many }),
  );
  assert.equal(read["a\ufffd"], 2);
  const names = Object.keys(read);
  assert(names.length > 16 && names.every((name) => name === "a\ufffd" || name in many), names);
  assert.equal(errorOf(new PaymentError("no", { huge: 10n ** 10_000n })).huge.length, 4096);
});

test("fields have room for 500 values, and 16 KiB of names and texts", () => {
  const list = new Array(64).fill(1);
  const lists = errorOf(new PaymentError("no", { lists: new Array(64).fill(list) })).lists;
  assert.equal(lists.flat().length, 500 - 1 - lists.length);
  const named = (value) =>
    Object.fromEntries(Array.from({ length: 60 }, (_, number) => [`${"n".repeat(200)}${number}`, value]));
  const size = encode(errorOf(new PaymentError("no", { named: named(named(1)) }))).length;
  assert(size > 15 * 1024 && size < 18 * 1024, `${size} bytes`);
});

test("what is thrown and no error", () => {
  assert.deepEqual(errorOf("text"), { type: "Error", message: "text" });
  assert.deepEqual(errorOf(undefined), { type: "Error", message: "undefined" });
  assert.deepEqual(errorOf(Symbol("s")), { type: "Error", message: "Symbol(s)" });
  assert.deepEqual(errorOf({ status: 500, message: "m" }), { type: "Error", lineage: [], message: "m", status: 500 });
  assert.deepEqual(errorOf({ type: "PgError", code: "40P01" }), { type: "PgError", code: "40P01" });
});

test("the stack is sent where asked for", () => {
  assert.equal(errorOf(new Error("x")).stack, undefined);
  assert.match(errorOf(new Error("x"), { stack: true }).stack, /failures\.test\.js/);
});

test("facts stand beside the error", () => {
  const facts = { consumer: "C", attempt: 2, message: { id: "m" }, can: { retry: false } };
  assert.deepEqual(failureOf({ type: "E" }, facts), { ...facts, error: { type: "E" } });
  assert.deepEqual(failureOf({ type: "E" }), { error: { type: "E" } });
});
