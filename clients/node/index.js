/* Verdicts on failed messages, from a policy that `mulligan serve` runs. README.md has the rest.
 *
 *   import { Policy } from "mulligan";
 *
 *   const policy = await Policy.connect("/run/user/1000/verdicts.sock");
 *   const verdict = await policy.decide(error, { consumer: "Shipping", attempt: 2 });
 */
export { AnswerTimeout, ConnectionLost, MulliganError, ProtocolError, RequestError } from "./lib/errors.js";
export { failureOf } from "./lib/failures.js";
export { Policy } from "./lib/policy.js";
