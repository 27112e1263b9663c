"""Against the real program, whose path is in MULLIGAN."""
import asyncio
import os
import signal
import subprocess
import tempfile
import threading
import unittest

from mulligan import AsyncPolicy, ConnectionLost, Message, Policy, RequestError, failure_of

RULES = """
local policy = require "mulligan.policy"
local bus = policy.bus()
bus:on("ConnectionError", { errno = 104 }):retry { attempts = 3, delay = "200ms", jitter = 0 }
bus:on("ValueError"):dead_letter("parked")
bus:on_cause("KeyError"):discard("known")
"""


class Serve:
    """The program on a socket, in a folder of its own."""

    def __init__(self, rules=RULES):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "socket")
        self.policy = os.path.join(self.folder.name, "policy.lua")
        self.write(rules)
        self.start()

    def write(self, rules):
        with open(self.policy + ".new", "w") as file:
            file.write(rules)
        os.rename(self.policy + ".new", self.policy)

    def start(self):
        """Returns once it listens, which its log says."""
        self.process = subprocess.Popen(
            [os.environ["MULLIGAN"], "serve", self.policy, "--listen", "unix:" + self.path],
            stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        assert "listening on" in line, line
        self.drain = threading.Thread(target=self.process.stderr.read)
        self.drain.start()

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(60)
        self.drain.join()
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.stop()
        self.folder.cleanup()


class Program(unittest.TestCase):
    def test_decides_on_exceptions(self):
        with Serve() as serve, Policy("unix:" + serve.path) as policy:
            verdict = policy.decide(ConnectionResetError(104, "reset"), attempt=2, message=Message(id="m"))
            self.assertEqual(("retry", 400, 0.4, "retry", 2, 3),
                             (verdict.action, verdict.delay_ms, verdict.delay, verdict.tier, verdict.step, verdict.of))
            self.assertEqual(("policy.lua", 4, "bus", "ConnectionError"),
                             (verdict.rule.file, verdict.rule.line, verdict.rule.scope, verdict.rule.type))
            verdict = policy.decide(UnicodeError("x"))
            self.assertEqual(("dead_letter", "parked", "rule"), (verdict.action, verdict.queue, verdict.reason))
            try:
                raise RuntimeError("x") from KeyError("y")
            except RuntimeError as error:
                self.assertEqual("known", policy.decide(error).note)
            verdict = policy.decide({"type": "Unknown"})
            self.assertEqual(("no_rule", None), (verdict.reason, verdict.rule))

    def test_says_what_is_wrong_with_a_failure(self):
        with Serve() as serve, Policy(serve.path) as policy:
            with self.assertRaisesRegex(RequestError, "^attempt must be a whole number from 1$"):
                policy.decide(ValueError("x"), attempt=0)
            with self.assertRaisesRegex(RequestError, "longer|bytes"):
                policy.decide({"type": "A", "x": "x" * (1 << 20)})
            with self.assertRaises(RequestError):
                policy.decide({"type": "A", "x": object()})
            self.assertEqual("retry", policy.decide(ConnectionResetError(104, "x")).action)

    def test_decides_many(self):
        with Serve() as serve, Policy(serve.path) as policy:
            failures = [failure_of(ValueError(str(number)), attempt=number % 100) for number in range(2500)]
            answers = policy.decide_many(failures)
            self.assertEqual(2500, len(answers))
            for number, answer in enumerate(answers):
                if number % 100 == 0:
                    self.assertIsInstance(answer, RequestError)
                else:
                    self.assertEqual("parked", answer.queue)
            self.assertEqual([], policy.decide_many([]))

    def test_explains_and_tells_of_the_policy(self):
        with Serve() as serve, Policy(serve.path) as policy:
            explanation = policy.explain(ValueError("x"))
            self.assertIn("verdict  dead letter to parked", explanation.text)
            self.assertEqual(5, explanation.rule.line)
            self.assertEqual("passed", explanation.candidates[-1]["result"])
            self.assertEqual("dead_letter", explanation.timeline["both"]["first"][0]["action"])
            state = policy.state()
            self.assertFalse(state.stale)
            self.assertIsNone(state.problem)
            self.assertIn(serve.policy, state.files)

    def test_hears_of_another_generation(self):
        changed = threading.Event()
        with Serve() as serve, Policy(serve.path, changed=lambda _generation: changed.set()) as policy:
            self.assertEqual("parked", policy.decide(ValueError("x")).queue)
            serve.write(RULES.replace("parked", "elsewhere"))
            self.assertTrue(changed.wait(30))
            self.assertEqual("elsewhere", policy.decide(ValueError("x")).queue)

    def test_connects_again_to_a_server_that_was_started_again(self):
        with Serve() as serve, Policy(serve.path) as policy:
            policy.decide(ValueError("x"))
            self.assertEqual(0, serve.stop())
            with self.assertRaises(ConnectionLost):
                policy.decide(ValueError("x"))
            serve.start()
            self.assertEqual("parked", policy.decide(ValueError("x")).queue)
            serve.stop(signal.SIGKILL)
            serve.start()  # in the place of a socket that nobody listens on
            self.assertEqual("parked", policy.decide(ValueError("x")).queue)

    def test_threads_share_a_policy(self):
        wrong = []

        def ask(policy, number):
            for attempt in range(1, 51):
                verdict = policy.decide(ConnectionResetError(104, "x"), attempt=attempt % 3 + 1, consumer=f"C{number}")
                if verdict.step != attempt % 3 + 1:
                    wrong.append(verdict)

        with Serve() as serve, Policy(serve.path) as policy:
            threads = [threading.Thread(target=ask, args=(policy, number)) for number in range(100)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual([], wrong)

    def test_works_with_asyncio(self):
        async def ask():
            changed = asyncio.Event()
            async with AsyncPolicy(serve.path, changed=lambda _generation: changed.set()) as policy:
                verdicts = await asyncio.gather(
                    *(policy.decide(ConnectionResetError(104, "x"), attempt=number % 3 + 1) for number in range(500)))
                self.assertEqual([number % 3 + 1 for number in range(500)], [verdict.step for verdict in verdicts])
                with self.assertRaisesRegex(RequestError, "^attempt must be"):
                    await policy.decide(ValueError("x"), attempt=-1)
                many = await policy.decide_many([failure_of(ValueError("x")), {}])
                self.assertEqual("parked", many[0].queue)
                self.assertIsInstance(many[1], RequestError)
                self.assertIn("verdict", (await policy.explain(ValueError("x"))).text)
                serve.write(RULES.replace("parked", "elsewhere"))
                await asyncio.wait_for(changed.wait(), 30)
                self.assertNotEqual(verdicts[0].generation, (await policy.state()).generation)

        with Serve() as serve:
            asyncio.run(ask())


if __name__ == "__main__":
    unittest.main()
