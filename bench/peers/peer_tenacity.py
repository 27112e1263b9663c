"""peer_tenacity.py: retry one type of exception, three times, 200 ms doubling to 30 s.

Answers what kit/peers.c asks for on the standard input, as harness.mjs does for the others.
"""

import statistics
import sys
import time

import tenacity

MESSAGES = 50
BATCHES = 51
DRAWS = 4000


class ConnectReset(Exception):
    pass


class Other(Exception):
    pass


slept = []


def policy(jitter, sleep):
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(ConnectReset),
        wait=tenacity.wait_exponential_jitter(initial=0.2, max=30, jitter=jitter),
        stop=tenacity.stop_after_attempt(4),
        sleep=sleep,
        reraise=True,
    )


def no_sleep(seconds):
    pass


STEADY = policy(0, slept.append)
RECORDED = policy(0.1, slept.append)
JITTERED = policy(0.1, no_sleep)


class Work:
    """A call that fails so often, with an exception made once, and then doesn't."""

    def __init__(self):
        self.left = 0
        self.error = ConnectReset("connection reset by peer")

    def __call__(self):
        if self.left > 0:
            self.left -= 1
            # Without this the traceback would grow with every time it is raised.
            raise self.error.with_traceback(None)
        return 1


def follow(retrying, error, failures):
    slept.clear()
    work = Work()
    work.left, work.error = failures, error
    try:
        retrying(work)
        end = "done"
    except Exception:
        end = "stop"
    return ", ".join(["retry %d" % round(s * 1000) for s in slept] + [end])


def verdicts():
    return "; ".join(follow(STEADY, error, failures) for error, failures in [(ConnectReset(), 4), (Other(), 1)])


def spread():
    least, most = 1e9, 0
    for _ in range(DRAWS):
        follow(RECORDED, ConnectReset(), 1)
        least, most = min(least, slept[0]), max(most, slept[0])
    return "%d %d" % (least * 1000, -(-most * 1000 // 1))


def bare(work):
    while True:
        try:
            return work()
        except ConnectReset:
            pass


def median_ns(work):
    """What each of many pieces of work takes, the median of short batches."""
    took = []
    for _ in range(BATCHES):
        start = time.perf_counter_ns()
        for _ in range(MESSAGES):
            work()
        took.append((time.perf_counter_ns() - start) / MESSAGES)
    return statistics.median(took)


def per_failure(handle):
    work = Work()

    def message(failures):
        def handle_one():
            work.left = failures
            handle(work)

        return handle_one

    return (median_ns(message(3)) - median_ns(message(0))) / 3


def alone():
    """What says whether and when, by itself: iter() after a call that failed."""
    JITTERED.begin()
    state = tenacity.RetryCallState(JITTERED, fn=None, args=(), kwargs={})
    error = ConnectReset()
    state.set_exception((ConnectReset, error, None))
    return median_ns(lambda: JITTERED.iter(state))


def measure():
    return "%.1f %.1f %.1f" % (per_failure(JITTERED), per_failure(bare), alone())


def say(text):
    print(text, flush=True)


say("verdicts " + verdicts())
say("spread " + spread())
measure()
say("ready")
for _ in sys.stdin:
    say(measure())
