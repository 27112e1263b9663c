// p-retry.mjs: retry one type of error, three times, 200 ms doubling to 30 s.
import pRetry from "p-retry";
import { call, ConnectReset, serve } from "./harness.mjs";

const options = (randomize) => ({
  retries: 3,
  minTimeout: 200,
  maxTimeout: 30000,
  factor: 2,
  randomize, // by up to as much again: the only jitter that there is
  shouldRetry: ({ error }) => error instanceof ConnectReset,
});

const steady = options(false);
const jittered = options(true);

await serve({ steady: () => pRetry(call, steady), handle: () => pRetry(call, jittered) });
