// cockatiel.mjs: handle one type of error, three retries, 200 ms doubling to 30 s.
import { ExponentialBackoff, handleType, noJitterGenerator, retry } from "cockatiel";
import { call, ConnectReset, serve } from "./harness.mjs";

// A quarter up or down, as mulligan's jitter is unless a policy says otherwise.
const quarter = (attempt = 0, options) => {
  const delay = Math.min(options.maxDelay, options.initialDelay * 2 ** attempt);
  return [Math.round(delay * (0.75 + Math.random() * 0.5)), attempt + 1];
};

const policy = (generator) =>
  retry(handleType(ConnectReset), {
    maxAttempts: 3,
    backoff: new ExponentialBackoff({ initialDelay: 200, maxDelay: 30000, generator }),
  });

const steady = policy(noJitterGenerator);
const jittered = policy(quarter);

// Its filter and its backoff, without the promises around them.
const { errorFilter } = jittered.executor;
const { backoff } = jittered.options;
const decide = (error) => (errorFilter(error) ? backoff.next().duration : 0);

await serve({ steady: () => steady.execute(call), handle: () => jittered.execute(call), decide });
