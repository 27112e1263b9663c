"""peer_celery.py: the Celery application; by itself it fills the queue."""

import multiprocessing
import os
import sys

import celery

KIND, COUNT, PLACE = os.environ["PEERS_KIND"], int(os.environ["PEERS_COUNT"]), os.environ["PEERS_PLACE"]

# A place is a port of Redis, or RabbitMQ's URL.
app = celery.Celery("jobs", broker=PLACE if "://" in PLACE else f"redis://127.0.0.1:{PLACE}/0")
app.conf.task_ignore_result = True
app.conf.worker_prefetch_multiplier = 64  # what its documentation advises for short tasks
app.conf.worker_redirect_stdouts = False

# The worker's processes are forked after this, and count together.
calls = multiprocessing.Value("q", 0)
ended = multiprocessing.Value("q", 0)


def add(counter):
    with counter:
        counter.value += 1
        return counter.value


def settled(dead):
    if add(ended) == COUNT:
        os.write(1, f"end {calls.value} {ended.value if dead else 0}\n".encode())


def call():
    if add(calls) == 1:
        os.write(1, b"start\n")
    if KIND != "succeed":
        raise RuntimeError("deadlock detected")


def attempt():
    """Three retries in process: Celery has none, so it's a loop."""
    for _ in range(3):
        try:
            return call()
        except RuntimeError:
            pass
    return call()


class Task(celery.Task):
    def on_failure(self, exc, task_id, args, kwargs, einfo):
        """Celery has no dead letters either: the job goes to a queue that nobody reads."""
        app.send_task("dead", args, queue="dead", headers={"error": repr(exc)})
        settled(True)


@app.task(base=Task, bind=True, name="job", max_retries=3)
def job(self, body):
    if KIND == "succeed":
        call()
        settled(False)
    elif KIND == "retry":
        attempt()
    else:
        try:
            call()
        except RuntimeError as error:
            raise self.retry(exc=error, countdown=0)


if __name__ == "__main__":
    with app.producer_pool.acquire() as producer:
        for number in range(COUNT):
            job.apply_async(({"number": number},), producer=producer)
    sys.exit(0)
