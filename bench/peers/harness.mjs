// harness.mjs: what the JavaScript peers share: the call that fails, a setTimeout that doesn't
// wait, and the answers that kit/peers.c asks for on the standard input.
import { createInterface } from "node:readline";

export class ConnectReset extends Error {}
export class Other extends Error {}

const MESSAGES = 200;
const BATCHES = 51;
const DRAWS = 4000;
const WARM_UPS = 5;

// The library's sleep is taken out here: what would wait goes on at once, and how long it would
// have waited is kept where anyone wants to know.
let slept = null;
globalThis.setTimeout = (resume, delay) => {
  slept?.push(delay);
  resume();
};

// The errors are made once: what an error and its stack cost is not the library's.
const failed = new ConnectReset("connection reset by peer");
const other = new Other("something else");
let thrown = failed;
let left = 0;
let sum = 0;

export function call() {
  if (left > 0) {
    left--;
    throw thrown;
  }
  return 1;
}

// A message: so many calls fail, and the next one doesn't. Delays, and whether it ended well.
async function follow(handle, error, failures) {
  slept = [];
  thrown = error;
  left = failures;
  const done = await handle().then(
    () => true,
    () => false,
  );
  const delays = slept;
  slept = null;
  return { delays, done };
}

const show = ({ delays, done }) => [...delays.map((ms) => `retry ${ms}`), done ? "done" : "stop"].join(", ");

async function verdicts(steady) {
  return `${show(await follow(steady, failed, 4))}; ${show(await follow(steady, other, 1))}`;
}

// The least and the greatest delay of the first retry, of many.
async function spread(handle) {
  const delays = [];
  for (let i = 0; i < DRAWS; i++) delays.push((await follow(handle, failed, 1)).delays[0]);
  return `${Math.floor(Math.min(...delays))} ${Math.ceil(Math.max(...delays))}`;
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

// What a message costs whose call fails so often: short batches, so that most of them meet neither
// another process nor the collector, and their median.
async function ns(handle, failures) {
  const took = [];
  thrown = failed;
  for (let batch = 0; batch < BATCHES; batch++) {
    const from = process.hrtime.bigint();
    for (let i = 0; i < MESSAGES; i++) {
      left = failures;
      await handle();
    }
    took.push(Number(process.hrtime.bigint() - from) / MESSAGES);
  }
  return median(took);
}

const perFailure = async (handle) => ((await ns(handle, 3)) - (await ns(handle, 0))) / 3;

// What a loop costs that calls, catches and does no more.
async function loop(work) {
  for (;;) {
    try {
      return await work();
    } catch {
      // again
    }
  }
}

// What the library's pieces cost that say whether and when, where they can be called by themselves.
function alone(decide) {
  const took = [];
  for (let batch = 0; batch < BATCHES; batch++) {
    const from = process.hrtime.bigint();
    for (let i = 0; i < MESSAGES; i++) sum += decide(failed);
    took.push(Number(process.hrtime.bigint() - from) / MESSAGES);
  }
  return median(took);
}

async function measure({ handle, decide }) {
  const costs = [await perFailure(handle), await perFailure(() => loop(call))];
  if (decide) costs.push(alone(decide));
  return costs.map((ns) => ns.toFixed(1)).join(" ");
}

// serve answers lines until there are no more. `steady` handles a message without jitter, `handle`
// with it: functions that hand `call` to the library, and give its promise. `decide`, if there is
// one, gives the delay after an error.
export async function serve(peer) {
  const { steady, handle } = peer;
  console.log(`verdicts ${await verdicts(steady)}`);
  console.log(`spread ${await spread(handle)}`);
  // A second callee: or the first would be inlined, as no library's is, and its throw be a jump.
  for (let i = 0; i < DRAWS; i++) await loop(() => 1);
  for (let i = 0; i < WARM_UPS; i++) await measure(peer);
  console.log("ready");
  for await (const _ of createInterface({ input: process.stdin })) console.log(await measure(peer));
}
