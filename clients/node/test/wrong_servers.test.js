/* Servers that are slow, wrong or gone: a clear error each time, and never a wait without end. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { encode } from "@msgpack/msgpack";
import { AnswerTimeout, ConnectionLost, MulliganError, Policy, ProtocolError, RequestError } from "mulligan";

import { Connection, Deadline } from "../lib/connection.js";
import { MOST_OPEN } from "../lib/protocol.js";
import { VERDICT, serving } from "./servers.js";

const E = { type: "E" };
const WHOLE = Buffer.from(encode([1, 1, null, VERDICT]));

/* The policy of a path, which is closed with the test. */
function policyOf(t, path, options = { timeoutMs: 30_000 }) {
  const policy = new Policy(path, options);
  t.after(() => policy.close());
  return policy;
}

async function ask(t, options, ...scripts) {
  return policyOf(t, await serving(t, ...scripts), options).decide(E);
}

/* A connection of its own, whose requests have each a deadline of their own. */
async function connected(t, script) {
  const connection = new Connection(await serving(t, script), "test", () => {}, new Deadline(30_000));
  t.after(() => connection.close());
  await connection.ready;
  return connection;
}

const asks = (connection, error, ms = 30_000) => connection.call("decide", encode({ error }), new Deadline(ms));

/* fails: asking ends in an error of this class alone, with these words, if the server does this. */
async function fails(t, kind, words, script, options) {
  await assert.rejects(ask(t, options, script), (error) => {
    assert.equal(error.constructor, kind, error.stack);
    assert.match(error.message, words);
    assert.doesNotMatch(error.message, /\n/);
    return true;
  });
}

/* answering gives a script that sends bytes for the first request, and then waits. */
function answering(bytes) {
  return async (peer) => {
    await peer.asked();
    peer.bytes(bytes);
    await peer.readAll();
  };
}

test("nobody listens", async (t) => {
  const nowhere = (error) => {
    assert.equal(String(error), "ConnectionLost: /nowhere/s: no such file or directory");
    return error instanceof ConnectionLost && error.cause.code === "ENOENT";
  };
  await assert.rejects(policyOf(t, "/nowhere/s").decide(E), nowhere);
  await assert.rejects(Policy.connect("unix:/nowhere/s"), nowhere);
});

test("an error's stack leads to who asked", async (t) => {
  const here = (error) => /wrong_servers\.test\.js/.test(error.stack);
  await assert.rejects(async () => await Policy.connect("/nowhere/s"), here);
  await assert.rejects(async () => await policyOf(t, "/nowhere/s").decide(E), here);
  const path = await serving(t, answering(encode([1, 1, { type: "RequestError", message: "no" }, null])));
  await assert.rejects(async () => await policyOf(t, path).decide(E), here);
});

test("what is no path or option", async () => {
  const wrong = (words, ...given) =>
    assert.throws(
      () => new Policy(...given),
      (error) => error instanceof TypeError && words.test(error.message),
    );
  wrong(/^a policy's path must be a text/, undefined);
  for (const timeoutMs of [0, -1, NaN, 2 ** 31, "x"])
    wrong(/^timeoutMs must be a number above 0, and below 2\^31$/, "/s", { timeoutMs });
  wrong(/^types must be a Map/, "/s", { types: {} });
  wrong(/^a policy has no option timeout; there are client, timeoutMs, types and stack$/, "/s", { timeout: 1 });
});

test("another version", async (t) => {
  const refuses = async (peer) => {
    peer.send(1, (await peer.read())[1], { type: "ProtocolError", message: "version must be 2", versions: [2] }, null);
    await peer.readAll();
  };
  await assert.rejects(ask(t, {}, refuses), { name: "ProtocolError", message: "version must be 2", versions: [2] });
});

test("a hello that is none", async (t) => {
  for (const other of [{ version: 7 }, { max_frame: "x" }, { ping_ms: 0 }, { lost_ms: -1 }, { generation: null }])
    await fails(
      t,
      ProtocolError,
      /^the server's answer to hello isn't one of this protocol, version 1$/,
      async (peer) => {
        await peer.greet(other);
        await peer.readAll();
      },
    );
});

test("what is no message", async (t) => {
  const bytes = (...parts) =>
    Buffer.concat(parts.map((part) => (typeof part === "number" ? Buffer.of(part) : Buffer.from(part))));
  for (const [wrong, words] of [
    [bytes(0xc1), /0xc1/],
    [bytes("HTTP/1.1 400"), /isn't a message/],
    [bytes(0x94, 9, 9, 9, 9), /isn't a message/],
    [bytes(0x94, 1, 0xc3, 0xc0, 0xc0), /isn't a message/],
    [bytes(0x94, 1, 1, 0xc0, 0x81, 0xc0, 1), /isn't a message: .*[Kk]ey/],
    [bytes(0x80), /isn't a message/],
    [Buffer.alloc(2000, 0x91), /more than 32 levels/],
    [bytes(0xdb, [0xff, 0xff, 0xff, 0xff]), /more than 1048576 bytes/],
    [bytes(0xc6, [0x7f, 0xff, 0xff, 0xff]), /more than 1048576 bytes/],
    [bytes(0xdd, [0xff, 0xff, 0xff, 0xff]), /more than 1048576 bytes/],
    [bytes(0xdf, [0x7f, 0xff, 0xff, 0xff]), /more than 1048576 bytes/],
    [bytes(0x94, 1, 1, 0xc0, 0xdd, [0, 0x20, 0, 0], Buffer.alloc(1 << 21)), /more than 1048576 bytes/],
  ])
    await fails(t, ProtocolError, words, answering(wrong));
});

test("a message over what the server's own hello allows", async (t) => {
  await fails(t, ProtocolError, /more than 90 bytes/, async (peer) => {
    peer.send(1, await peer.asked({ max_frame: 90 }), null, VERDICT);
    await peer.readAll();
  });
  const path = await serving(t, async (peer) => {
    await peer.greet({ max_frame: 90 });
    await peer.readAll();
  });
  const policy = policyOf(t, path);
  await assert.rejects(
    policy.decide({ type: "E".repeat(100) }),
    (error) => error instanceof RequestError && /at most 90/.test(error),
  );
});

test("an error for nobody ends it", async (t) => {
  await fails(t, ProtocolError, /^too deep$/, async (peer) => {
    await peer.asked();
    peer.send(1, null, { type: "ProtocolError", message: "too deep", versions: [1] }, null);
    await peer.readAll();
  });
  await fails(t, ProtocolError, /nobody asked/, answering(encode([1, null, null, {}])));
});

test("an error of another shape", async (t) => {
  await fails(t, RequestError, /^"no"$/, answering(encode([1, 1, "no", null])));
  await fails(t, RequestError, /^no$/, answering(encode([1, 1, { message: "no" }, null])));
});

test("a verdict that is none", async (t) => {
  await fails(t, ProtocolError, /^a verdict isn't a map$/, answering(encode([1, 1, null, null])));
  await fails(t, ProtocolError, /^a verdict isn't a map$/, answering(encode([1, 1, null, [1]])));
  await fails(
    t,
    ProtocolError,
    /^a verdict without the key delay_ms$/,
    answering(encode([1, 1, null, { action: "retry" }])),
  );
  const policy = policyOf(t, await serving(t, answering(encode([1, 1, null, [VERDICT]]))));
  await assert.rejects(
    policy.decideMany([{ error: E }, { error: E }]),
    /^ProtocolError: decide_many of 2 failures got no list of 2$/,
  );
});

test("cut anywhere", async (t) => {
  for (let cut = 0; cut < WHOLE.length; cut += 3)
    await fails(t, ConnectionLost, /: the server closed the connection$/, async (peer) => {
      await peer.asked();
      peer.bytes(WHOLE.subarray(0, cut));
    });
});

test("reset", async (t) => {
  await fails(t, ConnectionLost, /closed the connection|reset|broken pipe/, async (peer) => {
    await peer.asked();
    peer.socket.destroy();
  });
});

test("byte by byte is well", async (t) => {
  const verdict = await ask(t, undefined, async (peer) => {
    await peer.asked();
    for (const byte of WHOLE) await new Promise((resolve) => peer.socket.write(Buffer.of(byte), resolve));
    await peer.readAll();
  });
  assert.deepEqual(verdict, VERDICT);
});

test("no answer", async (t) => {
  const options = { timeoutMs: 100 };
  await fails(t, AnswerTimeout, /: no answer to hello within 100 ms$/, (peer) => peer.readAll(), options);
  const silent = async (peer) => {
    await peer.greet();
    await peer.readAll();
  };
  await fails(t, AnswerTimeout, /: no answer to decide within 100 ms$/, silent, options);
});

test("half an answer", async (t) => {
  await fails(t, AnswerTimeout, /: no answer to decide within 100 ms$/, answering(WHOLE.subarray(0, 20)), {
    timeoutMs: 100,
  });
});

test("a server that never reads is left", async (t) => {
  let over;
  const connection = await connected(t, async (peer) => {
    await peer.greet();
    peer.socket.pause();
    await new Promise((resolve) => (over = resolve));
  });
  const big = { type: "E", x: "x".repeat(900_000) };
  const answers = await Promise.allSettled([big, big, E].map((error) => asks(connection, error, 200)));
  for (const { reason } of answers) assert.equal(reason.constructor, AnswerTimeout, reason);
  assert.match(connection.lost.message, /: the server doesn't read$/);
  over();
});

test("a late answer is nobody's", async (t) => {
  let go;
  const connection = await connected(t, async (peer) => {
    const first = await peer.asked();
    await new Promise((resolve) => (go = resolve));
    const second = (await peer.read())[1];
    peer.send(1, first, null, 1);
    peer.send(1, second, null, 2);
    await peer.readAll();
  });
  await assert.rejects(asks(connection, E, 100), AnswerTimeout);
  const second = asks(connection, E);
  go();
  assert.equal(await second, 2);
});

test("answers in another order, and no more than 64 requests open", async (t) => {
  let most = 0;
  const policy = policyOf(
    t,
    await serving(t, async (peer) => {
      await peer.greet();
      for (let left = 200; left > 0;) {
        const asked = [await peer.read()];
        const until = Math.min(left, 64);
        while (asked.length < until) asked.push(await peer.read());
        peer.send(0, 7, "ping", [{}]); // its answer shows that there is no 65th request before it
        const next = await peer.read();
        most = Math.max(most, asked.length + (next[0] === 1 ? 0 : 1));
        for (const [, id, , [{ attempt }]] of asked.reverse())
          peer.send(1, id, null, { ...VERDICT, delay_ms: attempt });
        left -= asked.length;
      }
      await peer.readAll();
    }),
  );
  const verdicts = await Promise.all(
    Array.from({ length: 200 }, (_, number) => policy.decide(E, { attempt: number + 1 })),
  );
  assert.deepEqual(
    verdicts.map(({ delay_ms }) => delay_ms),
    Array.from({ length: 200 }, (_, number) => number + 1),
  );
  assert.equal(most, 64);
});

test("those that wait end in time as well", async (t) => {
  const policy = policyOf(t, await serving(t, (peer) => peer.greet().then(() => peer.readAll())), { timeoutMs: 200 });
  const answers = await Promise.allSettled(Array.from({ length: 100 }, () => policy.decide(E)));
  for (const { reason } of answers) assert.match(reason.message, /: no answer to decide within 200 ms$/);
});

test("a request that is given up makes room for one that waits", async (t) => {
  const connection = await connected(t, async (peer) => {
    await peer.greet();
    for (let asked = 0; asked < MOST_OPEN; asked++) await peer.read();
    peer.send(1, (await peer.read())[1], null, 1);
    await peer.readAll();
  });
  const answers = Promise.allSettled(Array.from({ length: MOST_OPEN }, () => asks(connection, E, 200)));
  assert.equal(await asks(connection, E), 1);
  for (const { reason } of await answers) assert.equal(reason.constructor, AnswerTimeout, reason);
});

test("pings are answered, and nothing else", async (t) => {
  const answered = [];
  await ask(t, undefined, async (peer) => {
    const id = await peer.asked();
    peer.send(0, 77, "ping", [{}]);
    peer.send(0, 78, "handle", [{}]);
    peer.send(2, "other", [{}]);
    peer.send(2, "policy_changed", []);
    answered.push(await peer.read(), await peer.read());
    peer.send(1, id, null, VERDICT);
    await peer.readAll();
  });
  assert.deepEqual(answered, [
    [1, 77, null, {}],
    [1, 78, { type: "RequestError", message: "this client answers nothing but ping" }, null],
  ]);
});

test("a silent server is pinged, and one that doesn't answer is lost", async (t) => {
  const policy = policyOf(
    t,
    await serving(t, async (peer) => {
      await peer.greet({ ping_ms: 20, lost_ms: 200 });
      const ask = await peer.read();
      for (let pings = 0; pings < 20; pings++) {
        const [kind, id, method, params] = await peer.read();
        assert.deepEqual([kind, method, params], [0, "ping", [{}]]);
        peer.send(1, id, null, {});
      }
      peer.send(1, ask[1], null, VERDICT);
      await peer.readAll();
    }),
  );
  assert.deepEqual(await policy.decide(E), VERDICT);
  await fails(t, ConnectionLost, /: nothing was heard for 60 ms$/, async (peer) => {
    await peer.greet({ ping_ms: 20, lost_ms: 60 });
    await peer.readAll();
  });
});

test("a connection that ends is made again once", async (t) => {
  const drops = (peer) => peer.asked();
  const works = async (peer) => {
    peer.send(1, await peer.asked(), null, VERDICT);
    await peer.readAll();
  };
  assert.deepEqual(await ask(t, undefined, drops, works), VERDICT);
  await fails(t, ConnectionLost, /: the server closed the connection$/, drops);
});

test("a new generation is told, once, by a new connection too", async (t) => {
  let close;
  const path = await serving(
    t,
    async (peer) => {
      await peer.asked();
      for (const generation of ["g", "h", "h"]) peer.send(2, "policy_changed", [{ generation }]);
      peer.send(1, 1, null, VERDICT);
      await new Promise((resolve) => (close = resolve));
    },
    async (peer) => {
      peer.send(1, await peer.asked({ generation: "i" }), null, VERDICT);
      await peer.readAll();
    },
  );
  const policy = policyOf(t, path);
  const heard = [];
  policy.on("changed", (generation) => heard.push(generation));
  await policy.decide(E);
  assert.deepEqual(heard, ["h"]);
  close();
  await policy.decide(E);
  assert.deepEqual(heard, ["h", "i"]);
});

test("closing ends who asks, and who asks then", async (t) => {
  let asked;
  const isAsked = new Promise((resolve) => (asked = resolve));
  const policy = policyOf(
    t,
    await serving(t, async (peer) => {
      await peer.asked();
      asked();
      await peer.readAll();
    }),
  );
  const ended = /^ConnectionLost: .*: this (client closed the connection|policy is closed)$/;
  const waits = Promise.all(Array.from({ length: 100 }, () => assert.rejects(policy.decide(E), ended)));
  await isAsked;
  await policy.close();
  await waits;
  await assert.rejects(policy.decide(E), /^ConnectionLost: .*: this policy is closed$/);
  await policy.close();
});

test("random bytes", async (t) => {
  let seed = 17;
  const random = (below) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  for (let round = 0; round < 300; round++) {
    let bytes = Buffer.from(WHOLE);
    for (let times = 1 + random(3); times > 0; times--) bytes[random(bytes.length)] = random(256);
    if (random(3) === 0) bytes = bytes.subarray(random(bytes.length));
    await ask(t, undefined, async (peer) => {
      await peer.asked();
      peer.bytes(bytes);
    }).catch((error) => assert(error instanceof MulliganError, error));
  }
});
