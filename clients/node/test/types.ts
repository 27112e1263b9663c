/* Programs that the types allow, and a line each that they don't. Compiled by tsc, and not run. */
import {
  AnswerTimeout,
  ConnectionLost,
  MulliganError,
  Policy,
  ProtocolError,
  RequestError,
  failureOf,
  type Facts,
  type Failure,
  type Verdict,
} from "mulligan";

class Declined extends Error {}

export async function ask(): Promise<number> {
  const types = new Map([[Declined, "CardDeclined"]]);
  const policy = await Policy.connect("unix:/s", { client: "shop", timeoutMs: 500, types, stack: true });
  policy.on("changed", (generation) => generation.toUpperCase()).once("changed", () => {});
  const facts: Facts = {
    consumer: "C",
    transport: "t",
    attempt: 1,
    redeliveries: 0,
    calls: 1,
    deliveries: 1,
    age_ms: 0,
    message: { id: "m", type: "T", key: "k", size: 1, headers: { a: "b" } },
    can: { retry: false },
  };
  const verdict: Verdict = await policy.decide(new Declined("no"), facts);
  if (verdict.action === "dead_letter" && verdict.queue !== null) verdict.queue.length;
  const failure: Failure = failureOf(new Error("x"), facts, { stack: true });
  for (const answer of await policy.decideMany([
    failure,
    { error: "text" },
    { error: { type: "E", code: 1 }, attempt: 2 },
  ]))
    if (!(answer instanceof RequestError)) answer.delay_ms.toFixed();
  const { text, rule } = await policy.explain(new Error("x"));
  const { files, problem } = await new Policy("/s").state();
  await policy.close();
  return text.length + (rule?.line ?? 0) + files.length + (problem?.length ?? 0);
}

export function wordsOf(error: unknown): string {
  if (error instanceof ProtocolError) return error.versions.join();
  if (error instanceof ConnectionLost || error instanceof AnswerTimeout) return error.name;
  return error instanceof MulliganError ? error.message : "";
}

export async function wrong(policy: Policy, verdict: Verdict): Promise<void> {
  // @ts-expect-error: a misspelt counter
  await policy.decide(new Error("x"), { atempt: 1 });
  // @ts-expect-error: a text in the place of a number
  await policy.decide(new Error("x"), { attempt: "1" });
  // @ts-expect-error: no error
  await policy.decideMany([{ attempt: 1 }]);
  // @ts-expect-error: there may be no queue
  verdict.queue.length;
  // @ts-expect-error: no action
  verdict.action === "drop";
  // @ts-expect-error: no option
  new Policy("/s", { timeout: 1 });
  // @ts-expect-error: no event
  policy.on("change", () => {});
}
