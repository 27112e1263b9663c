/* errors.js: what can go wrong between this library and `mulligan serve`. */

/** The base of all that this library raises. */
export class MulliganError extends Error {
  get name() {
    return this.constructor.name;
  }
}

/** The server can't answer this request: the failure is none, or too large. Others are answered. */
export class RequestError extends MulliganError {}

/** The other side doesn't speak this protocol, or not this version of it. */
export class ProtocolError extends MulliganError {
  constructor(message, versions = []) {
    super(message);
    this.versions = versions;
  }
}

/** There is no connection to the server, or it ended before the answer. */
export class ConnectionLost extends MulliganError {}

/** The server didn't answer in time. */
export class AnswerTimeout extends MulliganError {}
