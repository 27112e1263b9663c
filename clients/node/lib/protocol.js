/* protocol.js: the protocol of docs/serve.md without I/O: requests to bytes, and bytes to what came. */
import { Decoder, Encoder } from "@msgpack/msgpack";

import { ProtocolError, RequestError } from "./errors.js";

export const VERSION = 1;
export const MAX_FRAME = 1 << 20; // until the server's hello says what it takes
export const MOST_OPEN = 64;
const MOST_AT_ONCE = 1000;

const encoder = new Encoder({ ignoreUndefined: true });
const decoder = new Decoder();

/* The heads of a list with four items, of one with one, and of the params of decide_many. */
const FOUR = Buffer.of(0x94);
const ONE = Buffer.of(0x91);
const FAILURES = Buffer.from("\x81\xa8failures\xdd", "latin1");

// ---- What goes out -----------------------------------------------------------------------------

export function pack(value) {
  try {
    return encoder.encode(value);
  } catch (why) {
    throw new RequestError(`a failure can't hold this: ${why.message}`);
  }
}

/** A request whose params are packed already. */
export function request(id, method, params, most) {
  const packed = Buffer.concat([FOUR, pack(0), pack(id), pack(method), ONE, params]);
  if (packed.length > most)
    throw new RequestError(`the request has ${packed.length} bytes; at most ${most} are allowed`);
  return packed;
}

export function ping(id) {
  return pack([0, id, "ping", [{}]]);
}

/** The params of decide_many for packed failures, as many at once as a request may hold: { count, params } each. */
export function* batches(failures, most = MAX_FRAME / 2) {
  let batch = [];
  let size = 0;
  for (const failure of failures) {
    if (batch.length === MOST_AT_ONCE || (batch.length > 0 && size + failure.length > most)) {
      yield { count: batch.length, params: many(batch) };
      batch = [];
      size = 0;
    }
    batch.push(failure);
    size += failure.length;
  }
  if (batch.length > 0) yield { count: batch.length, params: many(batch) };
}

function many(batch) {
  const count = Buffer.alloc(4);
  count.writeUInt32BE(batch.length);
  return Buffer.concat([FAILURES, count, ...batch]);
}

// ---- What comes in -----------------------------------------------------------------------------

const isMap = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isId = (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 32;

/** What a message is: a request has an id, method and params, a notification no id, an answer an id, error and result. */
export function read(bytes) {
  let message;
  try {
    message = decoder.decode(bytes);
  } catch (why) {
    throw new ProtocolError(`the server sent what isn't a message: ${why.message}`);
  }
  const [kind, ...parts] = Array.isArray(message) ? message : [];
  const [id, second, third] = parts;
  if (kind === 0 && parts.length === 3 && isId(id)) return { id, method: second, params: third?.[0] };
  if (kind === 1 && parts.length === 3 && (id === null || isId(id))) return { id, error: second, result: third };
  if (kind === 2 && parts.length === 2) return { method: parts[0], params: parts[1]?.[0] };
  throw new ProtocolError("the server sent what isn't a message of MessagePack-RPC");
}

/** Our answer to a request of the server's. */
export function answerTo({ id, method }) {
  if (method === "ping") return pack([1, id, null, {}]);
  return pack([1, id, { type: "RequestError", message: "this client answers nothing but ping" }, null]);
}

/** What an answer's error is as ours. */
export function errorOf(error) {
  const message = isMap(error) && typeof error.message === "string" ? error.message : JSON.stringify(error);
  if (error?.type !== "ProtocolError") return new RequestError(message);
  return new ProtocolError(message, Array.isArray(error.versions) ? error.versions : []);
}

const isWhole = (value) => Number.isInteger(value) && value > 0;

export function checkHello(result) {
  if (
    !isMap(result) ||
    result.version !== VERSION ||
    !isWhole(result.max_frame) ||
    !isWhole(result.ping_ms) ||
    !isWhole(result.lost_ms) ||
    typeof result.generation !== "string"
  )
    throw new ProtocolError(`the server's answer to hello isn't one of this protocol, version ${VERSION}`);
  return result;
}

export function checkMany(result, count) {
  if (Array.isArray(result) && result.length === count) return result;
  throw new ProtocolError(`decide_many of ${count} failures got no list of ${count}`);
}

/* checked gives a function that passes on a map with all these keys; `what` names it. */
function checked(what, names) {
  const keys = names.split(" ");
  return (result) => {
    if (!isMap(result)) throw new ProtocolError(`${what} isn't a map`);
    const missing = keys.find((key) => !Object.hasOwn(result, key));
    if (missing === undefined) return result;
    throw new ProtocolError(`${what} without the key ${missing}`);
  };
}

export const checkVerdict = checked(
  "a verdict",
  "action delay_ms queue reason note tier step of rule fallback generation",
);
export const checkExplanation = checked("an explanation", "text rule candidates timeline");
export const checkState = checked("the policy's state", "generation files stale problem");
