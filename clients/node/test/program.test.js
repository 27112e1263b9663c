/* Against the real program, whose path is in MULLIGAN. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { ConnectionLost, Policy, RequestError, failureOf } from "mulligan";

const RULES = `
local policy = require "mulligan.policy"
local bus = policy.bus()
bus:on("HttpError", { status = policy.between(500, 599) }):retry { attempts = 3, delay = "200ms", jitter = 0 }
bus:on("TimeoutError"):dead_letter("parked")
bus:on_cause("KeyError"):discard("known")
`;

class HttpError extends Error {
  constructor(status) {
    super(`it answered ${status}`);
    this.status = status;
  }
}
class BadGateway extends HttpError {}
class KeyError extends Error {}

/** The program on a socket, in a folder of its own. */
class Serve {
  async begin(t) {
    this.folder = await mkdtemp(join(tmpdir(), "mulligan-"));
    this.path = join(this.folder, "socket");
    this.policy = join(this.folder, "policy.lua");
    t.after(async () => {
      await this.stop("SIGKILL");
      await rm(this.folder, { recursive: true });
    });
    await this.write(RULES);
    await this.start();
    return this;
  }

  async write(rules) {
    await writeFile(`${this.policy}.new`, rules);
    await rename(`${this.policy}.new`, this.policy);
  }

  /** Returns once it listens, which its log says. */
  async start() {
    this.process = spawn(process.env.MULLIGAN, ["serve", this.policy, "--listen", `unix:${this.path}`], {
      stdio: ["ignore", "inherit", "pipe"],
    });
    this.exit = once(this.process, "exit");
    const [line] = await once(createInterface(this.process.stderr), "line");
    assert.match(line, /listening on/);
  }

  async stop(signal = "SIGTERM") {
    this.process.kill(signal);
    return (await this.exit)[0];
  }
}

/* A program that serves, and a policy that is connected to it; both end with the test. */
async function begin(t, options) {
  const serve = await new Serve().begin(t);
  const policy = await Policy.connect(`unix:${serve.path}`, { timeoutMs: 30_000, ...options });
  t.after(() => policy.close());
  return { serve, policy };
}

test("decides on errors", async (t) => {
  const { policy } = await begin(t);
  const { generation, ...verdict } = await policy.decide(new BadGateway(502), { attempt: 2, message: { id: "m" } });
  assert.match(generation, /^[0-9a-f]{32}$/);
  assert.deepEqual(verdict, {
    action: "retry",
    delay_ms: 400,
    queue: null,
    reason: null,
    note: null,
    tier: "retry",
    step: 2,
    of: 3,
    rule: { file: "policy.lua", line: 4, scope: "bus", type: "HttpError" },
    fallback: null,
  });
  assert.equal((await policy.decide(new DOMException("late", "TimeoutError"))).queue, "parked");
  assert.equal((await policy.decide(new Error("x", { cause: new KeyError("y") }))).note, "known");
  const none = await policy.decide({ type: "Unknown" });
  assert.deepEqual([none.reason, none.rule], ["no_rule", null]);
  assert.equal((await policy.decide(new HttpError(500), { can: { retry: false } })).fallback, "no_retry");
});

test("names of the program's own", async (t) => {
  const { policy } = await begin(t, { types: new Map([[KeyError, "TimeoutError"]]) });
  assert.equal((await policy.decide(new KeyError("x"))).queue, "parked");
});

test("errors of every kind get a verdict", async (t) => {
  const { policy } = await begin(t, { stack: true });
  const large = Object.assign(new Error("é".repeat(1e6)), {
    response: new Array(1000).fill("\0\ud800".repeat(10_000)),
    deep: { a: { b: { c: { d: { e: 1 } } } } },
  });
  let chain = large;
  for (let number = 0; number < 100; number++)
    chain = Object.assign(new Error(`${number}`, { cause: chain }), { large: large.response });
  for (const thrown of [
    large,
    chain,
    undefined,
    "text",
    7n,
    Symbol("s"),
    [],
    () => {},
    new Map(),
    Object.create(null),
    { status: 1 },
  ])
    assert.equal((await policy.decide(thrown)).reason, "no_rule");
});

test("says what is wrong with a failure", async (t) => {
  const { policy } = await begin(t);
  const wrong = async (words, error, facts) => {
    await assert.rejects(
      policy.decide(error, facts),
      (why) => why.constructor === RequestError && words.test(why.message),
    );
  };
  await wrong(/^attempt must be a whole number from 1$/, new Error("x"), { attempt: 0 });
  await wrong(/atempt/, new Error("x"), { atempt: 1 });
  await wrong(/at most 1048576/, { type: "A", x: "x".repeat(1 << 20) });
  await wrong(/Function/, { type: "A", x() {} });
  await wrong(/UTF-8/, { type: "A", x: "\ud800" });
  await wrong(/bin/, { type: "A", x: Buffer.of(1) });
  assert.equal((await policy.decide(new HttpError(500), { attempt: undefined })).action, "retry");
});

test("decides many", async (t) => {
  const { policy } = await begin(t);
  const failures = Array.from({ length: 2500 }, (_, number) => ({ error: new HttpError(500), attempt: number % 3 }));
  const answers = await policy.decideMany(failures);
  assert.equal(answers.length, 2500);
  for (const [number, answer] of answers.entries()) {
    if (number % 3 === 0)
      assert(answer instanceof RequestError && answer.message === "attempt must be a whole number from 1");
    else assert.equal(answer.step, number % 3);
  }
  const large = (type) => ({ error: { type, x: "x".repeat(400_000) } });
  const mixed = await policy.decideMany([
    {},
    null,
    7,
    failureOf(new DOMException("x", "TimeoutError")),
    large("A"),
    large("B"),
    large("C"),
  ]);
  assert.deepEqual(
    mixed.map((answer) => answer.constructor === RequestError),
    [true, true, true, false, false, false, false],
  );
  assert.deepEqual(await policy.decideMany([]), []);
});

test("explains and tells of the policy", async (t) => {
  const { serve, policy } = await begin(t);
  const explanation = await policy.explain(new DOMException("x", "TimeoutError"), { consumer: "Mail" });
  assert.match(explanation.text, /verdict {2}dead letter to parked/);
  assert.equal(explanation.rule.line, 5);
  assert.equal(explanation.candidates.at(-1).result, "passed");
  assert.equal(explanation.timeline.both.first[0].action, "dead_letter");
  const { generation, ...state } = await policy.state();
  assert.deepEqual(state, { files: [serve.policy], stale: false, problem: null });
  assert.equal(generation, (await policy.decide(new Error("x"))).generation);
});

test("hears of another generation", async (t) => {
  const { serve, policy } = await begin(t);
  assert.equal((await policy.decide({ type: "TimeoutError" })).queue, "parked");
  const changed = once(policy, "changed");
  await serve.write(RULES.replace("parked", "elsewhere"));
  const [generation] = await changed;
  const verdict = await policy.decide({ type: "TimeoutError" });
  assert.deepEqual([verdict.queue, verdict.generation], ["elsewhere", generation]);
});

test("connects again to a server that was started again", async (t) => {
  const { serve, policy } = await begin(t);
  await policy.decide(new Error("x"));
  assert.equal(await serve.stop(), 0);
  await assert.rejects(policy.decide(new Error("x")), ConnectionLost);
  await serve.start();
  await policy.decide(new Error("x"));
  await serve.stop("SIGKILL");
  await serve.start(); // in the place of a socket that nobody listens on
  await policy.decide(new Error("x"));
});

test("a thousand at once", async (t) => {
  const { policy } = await begin(t);
  const verdicts = await Promise.all(
    Array.from({ length: 1000 }, (_, number) =>
      policy.decide(new HttpError(500), { attempt: (number % 3) + 1, consumer: `C${number}` }),
    ),
  );
  assert.deepEqual(
    verdicts.map(({ step }) => step),
    Array.from({ length: 1000 }, (_, number) => (number % 3) + 1),
  );
});
