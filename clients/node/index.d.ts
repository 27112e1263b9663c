import { EventEmitter } from "node:events";

/** Classes by another name than their own, for types and lineage. */
export type Types = Map<Function, string>;

/** What is known of a failure beside its error. docs/decide.md says what each is. */
export interface Facts {
  consumer?: string;
  transport?: string;
  attempt?: number;
  redeliveries?: number;
  calls?: number;
  deliveries?: number;
  age_ms?: number;
  message?: Message;
  can?: { retry?: boolean; delay?: boolean };
}

/** The message whose handling failed, as far as a policy may ask. `id` decides the jitter. */
export interface Message {
  id?: string;
  type?: string;
  key?: string;
  size?: number;
  headers?: Record<string, string>;
}

/** What was thrown, and the facts. */
export interface Failed extends Facts {
  error: unknown;
}

/** An error as the server reads it. Other keys are its fields. */
export interface ErrorRecord {
  type: string;
  lineage?: string[];
  message?: string;
  stack?: string;
  cause?: ErrorRecord;
  [field: string]: unknown;
}

export interface Failure extends Facts {
  error: ErrorRecord;
}

/** The rule that decided: where it stands, in which scope, and for which type. */
export interface Rule {
  file: string | null;
  line: number | null;
  scope: string | null;
  type: string | null;
}

/** What to do with the message. docs/decide.md says what each value means. */
export interface Verdict {
  action: "retry" | "redeliver" | "dead_letter" | "discard";
  delay_ms: number;
  queue: string | null;
  reason: string | null;
  note: string | null;
  tier: "retry" | "redeliver" | null;
  step: number | null;
  of: number | null;
  rule: Rule | null;
  fallback: "no_retry" | "no_delay" | null;
  generation: string;
}

/** Why a verdict is what it is; docs/explain.md has the shape of what isn't text. */
export interface Explanation {
  text: string;
  rule: Rule | null;
  candidates: unknown[];
  timeline: Record<string, unknown>;
}

/** Which policy is in force, and whether its files are what runs. */
export interface PolicyState {
  generation: string;
  files: string[];
  stale: boolean;
  problem: string | null;
}

export interface FailureOptions {
  types?: Types;
  /** Sends the stack; false unless given. */
  stack?: boolean;
}

export interface PolicyOptions extends FailureOptions {
  /** What this program is called in the server's log; "node" unless given. */
  client?: string;
  /** Until when each question is answered; 10,000 unless given. */
  timeoutMs?: number;
}

/** Decides by the policy that `mulligan serve` runs on a Unix socket. Its event `changed` has the new generation. */
export class Policy extends EventEmitter {
  /** It connects when it is first asked, and again where the connection was lost. */
  constructor(path: string, options?: PolicyOptions);

  /** A policy that is connected. */
  static connect(path: string, options?: PolicyOptions): Promise<Policy>;

  readonly path: string;

  on(event: "changed", listener: (generation: string) => void): this;
  once(event: "changed", listener: (generation: string) => void): this;
  off(event: "changed", listener: (generation: string) => void): this;

  /** The verdict on what was thrown. */
  decide(error: unknown, facts?: Facts): Promise<Verdict>;

  /** The verdicts on failures, in their order; what is no failure has a RequestError. */
  decideMany(failures: Iterable<Failed>): Promise<(Verdict | RequestError)[]>;

  /** Why the verdict on a failure is what it is, and what follows. */
  explain(error: unknown, facts?: Facts): Promise<Explanation>;

  /** Which policy is in force. */
  state(): Promise<PolicyState>;

  /** Closes the connection; whoever still asks gets ConnectionLost. */
  close(): Promise<void>;
}

/** The failure that something thrown is, with the keys of docs/decide.md. An object with `type` that is no Error stays as
 * it is. */
export function failureOf(error: unknown, facts?: Facts, options?: FailureOptions): Failure;

/** The base of all that this library raises. */
export class MulliganError extends Error {}

/** The server can't answer this request: the failure is none, or too large. Others are answered. */
export class RequestError extends MulliganError {}

/** The other side doesn't speak this protocol, or not this version of it. */
export class ProtocolError extends MulliganError {
  versions: number[];
}

/** There is no connection to the server, or it ended before the answer. */
export class ConnectionLost extends MulliganError {}

/** The server didn't answer in time. */
export class AnswerTimeout extends MulliganError {}
