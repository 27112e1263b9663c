// plainjob.mjs: fill or work off a plainjob queue in a file. Each worker takes one job at a time, and
// all that a process has take turns in its one thread: one worker, as in plainjob's own documentation.
import Database from "better-sqlite3";
import { JobStatus, better, defineQueue, defineWorker } from "plainjob";
import { action, bodies, handle, place, settled } from "./job.mjs";

const logger = { debug() {}, info() {}, warn() {}, error() {} };
const queue = defineQueue({ connection: better(new Database(place)), logger });
const dead = () => queue.countJobs({ type: "job", status: JobStatus.Failed });

if (action === "fill") {
  queue.addMany("job", bodies);
  queue.close();
} else {
  const ended = () => settled(dead);
  defineWorker("job", handle, { queue, logger, onCompleted: ended, onFailed: ended }).start();
}
