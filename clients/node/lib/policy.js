/* policy.js: a policy that another process runs. */
import { EventEmitter } from "node:events";

import { Connection, Deadline } from "./connection.js";
import { ConnectionLost, RequestError } from "./errors.js";
import { failureOf } from "./failures.js";
import { batches, checkExplanation, checkMany, checkState, checkVerdict, pack } from "./protocol.js";

const NOTHING = pack({});

/* An error has the stack of who asked, and not of the socket that brought it. */
async function traced(promise) {
  try {
    return await promise;
  } catch (error) {
    Error.captureStackTrace(error);
    throw error;
  }
}

export class Policy extends EventEmitter {
  #options;
  #connection = null;
  #generation = null; // the last that was heard of
  #isClosed = false;

  /** It connects when it is first asked, and again where the connection was lost. */
  constructor(path, options = {}) {
    super();
    const { client = "node", timeoutMs = 10_000, types = new Map(), stack = false, ...unknown } = options;
    if (typeof path !== "string")
      throw new TypeError("a policy's path must be a text, such as unix:/run/verdicts.sock");
    if (!(timeoutMs > 0 && timeoutMs < 2 ** 31))
      throw new TypeError("timeoutMs must be a number above 0, and below 2^31");
    if (!(types instanceof Map)) throw new TypeError("types must be a Map from classes to names");
    for (const name of Object.keys(unknown))
      throw new TypeError(`a policy has no option ${name}; there are client, timeoutMs, types and stack`);
    this.path = path.replace(/^unix:/, "");
    this.#options = { client, timeoutMs, types, stack };
  }

  /** A policy that is connected. */
  static async connect(path, options) {
    const policy = new Policy(path, options);
    await policy.#connected(policy.#deadline());
    return policy;
  }

  async decide(error, facts) {
    return checkVerdict(await this.#ask("decide", pack(failureOf(error, facts, this.#options))));
  }

  async decideMany(failures) {
    const answers = [];
    for (const { count, params } of batches(this.#packed(failures)))
      for (const answer of checkMany(await this.#ask("decide_many", params), count))
        answers.push(typeof answer?.error === "string" ? new RequestError(answer.error) : checkVerdict(answer));
    return answers;
  }

  async explain(error, facts) {
    return checkExplanation(await this.#ask("explain", pack(failureOf(error, facts, this.#options))));
  }

  async state() {
    return checkState(await this.#ask("policy", NOTHING));
  }

  async close() {
    this.#isClosed = true;
    await this.#connection?.close();
  }

  /* What is no failure goes to the server, which says so in its place. */
  *#packed(failures) {
    for (const failure of failures)
      yield pack(failure?.error === undefined ? failure : failureOf(failure.error, failure, this.#options));
  }

  #deadline() {
    return new Deadline(this.#options.timeoutMs);
  }

  async #connected(deadline) {
    if (this.#isClosed) throw new ConnectionLost(`${this.path}: this policy is closed`);
    if (!this.#connection || this.#connection.lost)
      this.#connection = new Connection(this.path, this.#options.client, (name) => this.#heard(name), deadline);
    const connection = this.#connection;
    await traced(connection.ready);
    return connection;
  }

  /* Nothing that is asked changes anything, so that what a lost connection took is asked once more. */
  async #ask(method, params) {
    const deadline = this.#deadline();
    const connection = await this.#connected(deadline);
    try {
      return await traced(connection.call(method, params, deadline));
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    }
    return await traced((await this.#connected(deadline)).call(method, params, deadline));
  }

  /* A listener that throws is the program's matter, and none of the connection's. */
  #heard(generation) {
    if (generation === this.#generation) return;
    if (this.#generation !== null) queueMicrotask(() => this.emit("changed", generation));
    this.#generation = generation;
  }
}
