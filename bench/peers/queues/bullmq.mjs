// bullmq.mjs: fill or work off a BullMQ queue in the Redis on a port of this machine.
import { Queue, Worker } from "bullmq";
import { action, bodies, concurrency, handle, kind, place, settled } from "./job.mjs";

const connection = { host: "127.0.0.1", port: +place, maxRetriesPerRequest: null };
const attempts = kind === "redeliver" ? 4 : 1;
const queue = new Queue("jobs", { connection });
const BATCH = 1000;

async function fill() {
  const opts = { attempts, removeOnComplete: true };
  for (let from = 0; from < bodies.length; from += BATCH)
    await queue.addBulk(bodies.slice(from, from + BATCH).map((data) => ({ name: "job", data, opts })));
  await queue.close();
}

function work() {
  const dead = () => queue.getFailedCount();
  const worker = new Worker("jobs", handle, { connection, concurrency });
  worker.on("completed", () => settled(dead));
  worker.on("failed", (job) => job.attemptsMade >= attempts && settled(dead));
}

await (action === "fill" ? fill() : work());
