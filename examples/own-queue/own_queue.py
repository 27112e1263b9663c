"""own_queue.py: a program keeps its own queue and asks `mulligan serve` what to do with what failed.

    mulligan serve own-queue/policy.lua --listen unix:verdicts.sock & server=$!
    PYTHONPATH="${CLIENTS:-../clients}/python" python3 own-queue/own_queue.py verdicts.sock
    kill $server && wait $server

The queue here is a heap in memory. Celery, BullMQ or a table have the same three places: a delay before the job runs
again, a counter that goes with it, and somewhere to put what nobody can handle.
"""
import heapq
import sys
import time
from dataclasses import dataclass, field

from mulligan import ConnectionLost, Message, Policy


class ValidationError(Exception):
    pass


class Duplicate(Exception):
    pass


@dataclass(order=True)
class Job:
    due: float
    number: int
    body: str = field(compare=False)
    redeliveries: int = field(default=0, compare=False)
    calls: int = field(default=0, compare=False)  # that failed
    first_failure: float | None = field(default=None, compare=False)


def send_mail(job: Job) -> None:
    """The handler: some mails are wrong, and the server is away for the first calls."""
    if job.body == "no address":
        raise ValidationError("there is no address")
    if job.body == "sent before":
        raise Duplicate(f"mail {job.number} was sent before")
    if job.body == "server away" and job.calls < 4:
        raise ConnectionError("the mail server is away")
    if job.body == "server gone":
        raise ConnectionError("the mail server is gone")


class Queue:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.jobs: list[Job] = []
        self.done: list[int] = []
        self.dead: dict[str, list[int]] = {}

    def run(self) -> None:
        while self.jobs:
            job = heapq.heappop(self.jobs)
            time.sleep(max(0, job.due - time.time()))
            self.handle(job)

    def handle(self, job: Job) -> None:
        attempt = 0
        while True:
            try:
                send_mail(job)
            except Exception as error:
                attempt += 1
                if not self.fail(job, error, attempt):
                    return
            else:
                self.done.append(job.number)
                return

    def fail(self, job: Job, error: Exception, attempt: int) -> bool:
        """Does what the verdict says. True: the handler is to be called again, now."""
        now = time.time()
        job.first_failure = job.first_failure or now
        job.calls += 1
        verdict = self.policy.decide(
            error, consumer="Mail", attempt=attempt, redeliveries=job.redeliveries, calls=job.calls,
            age_ms=int((now - job.first_failure) * 1000), message=Message(id=f"mail-{job.number}"))
        print(f"mail {job.number}, call {job.calls}: {type(error).__name__}: {verdict.action}"
              + (f" in {verdict.delay_ms} ms" if verdict.action in ("retry", "redeliver") else ""), flush=True)
        if verdict.action == "retry":
            time.sleep(verdict.delay)
            return True
        if verdict.action == "redeliver":
            job.due, job.redeliveries = time.time() + verdict.delay, job.redeliveries + 1
            heapq.heappush(self.jobs, job)
        elif verdict.action == "dead_letter":
            self.dead.setdefault(verdict.queue or "error", []).append(job.number)
        return False


def wait_for(policy: Policy) -> None:
    """The server was started a moment ago."""
    until = time.monotonic() + 30
    while True:
        try:
            policy.state()
            return
        except ConnectionLost:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def main(path: str) -> None:
    with Policy(path) as policy:
        wait_for(policy)
        queue = Queue(policy)
        for number, body in enumerate(("fine", "no address", "sent before", "server away", "server gone"), 1):
            heapq.heappush(queue.jobs, Job(time.time(), number, body))
        queue.run()
    print("done:", *sorted(queue.done))
    for name, numbers in sorted(queue.dead.items()):
        print(f"dead letters in {name}:", *sorted(numbers))


if __name__ == "__main__":
    main(sys.argv[1])
