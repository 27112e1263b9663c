// job.mjs: the job that the JavaScript queues run, and the lines that compare.py waits for.
export const [action, kind, count, place] = [process.argv[2], process.argv[3], +process.argv[4], process.argv[5]];
export const concurrency = +process.env.PEERS_CONCURRENCY;
export const bodies = Array.from({ length: action === "fill" ? count : 0 }, (_, number) => ({ number }));

let calls = 0;
let ended = 0;

async function call() {
  if (calls++ === 0) console.log("start");
  if (kind !== "succeed") throw new Error("deadlock detected");
}

// Three retries in process are a loop: no library's costs are added to the queue's.
async function attempt() {
  for (let retry = 0; retry < 3; retry++) {
    try {
      return await call();
    } catch {
      // again
    }
  }
  return call();
}

export const handle = kind === "retry" ? attempt : call;

// Counts a job that came to its end; after the last one the numbers are told, and the process stays
// until it is ended, so that its memory can be read.
export async function settled(dead) {
  if (++ended === count) console.log(`end ${calls} ${await dead()}`);
}
