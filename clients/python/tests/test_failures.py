"""Exceptions as failures, without a server."""
import enum
import unittest

from mulligan import Message, failure_of


class PaymentError(Exception):
    def __init__(self, words, /, **fields):
        super().__init__(words)
        self.__dict__.update(fields)


class Declined(PaymentError):
    pass


class Colour(enum.Enum):
    RED = "red"


def raised(error, cause=None):
    try:
        raise error from cause
    except Exception as caught:
        return caught


class Failures(unittest.TestCase):
    def test_classes_become_types_and_lineage(self):
        error = failure_of(Declined("no"))["error"]
        self.assertEqual("Declined", error["type"])
        self.assertEqual([f"{__name__}.Declined", "PaymentError", f"{__name__}.PaymentError", "Exception"],
                         error["lineage"])
        self.assertEqual("no", error["message"])

    def test_built_in_classes_have_one_name(self):
        error = failure_of(ConnectionResetError(104, "reset"))["error"]
        self.assertEqual("ConnectionResetError", error["type"])
        self.assertEqual(["ConnectionError", "OSError", "Exception"], error["lineage"])
        self.assertEqual(104, error["errno"])
        self.assertEqual("reset", error["strerror"])

    def test_a_class_may_be_named_otherwise(self):
        error = failure_of(Declined("no"), types={PaymentError: "payments.Error", Declined: "CardDeclined"})["error"]
        self.assertEqual("CardDeclined", error["type"])
        self.assertIn("payments.Error", error["lineage"])
        self.assertNotIn("PaymentError", error["lineage"])

    def test_attributes_become_fields(self):
        error = failure_of(PaymentError(
            "no", status=402, ratio=0.5, final=True, code="x", none=None, colour=Colour.RED, _hidden=1,
            tags=["a", 1, None, object()], deep={"a": {"b": 1}}, type="mine", message="mine", cause="mine",
            nan=float("nan"), huge=1 << 70, raw=b"x", thing=object(), half="a\ud800b\0c"))["error"]
        self.assertEqual(
            {"type": "PaymentError", "message": "no", "status": 402, "ratio": 0.5, "final": True, "code": "x",
             "colour": "red", "tags": ["a", 1], "deep": {"a": {"b": 1}}, "half": "a?b\ufffdc"},
            {name: value for name, value in error.items() if name != "lineage"})

    def test_causes_are_those_of_from(self):
        error = failure_of(raised(Declined("no"), raised(ValueError("why"), KeyError("first"))))["error"]
        self.assertEqual("ValueError", error["cause"]["type"])
        self.assertEqual("KeyError", error["cause"]["cause"]["type"])
        self.assertNotIn("cause", error["cause"]["cause"])
        try:
            try:
                raise KeyError("context")
            except KeyError:
                raise Declined("no")
        except Declined as caught:
            self.assertNotIn("cause", failure_of(caught)["error"])

    def test_a_circle_of_causes_ends(self):
        first, second = ValueError("1"), ValueError("2")
        first.__cause__, second.__cause__ = second, first
        error = failure_of(first)["error"]
        self.assertEqual("2", error["cause"]["message"])
        self.assertNotIn("cause", error["cause"])

    def test_a_long_chain_is_cut(self):
        error = None
        for number in range(100):
            error = raised(ValueError(str(number)), error)
        depth, read = 0, failure_of(error)["error"]
        while "cause" in read:
            depth, read = depth + 1, read["cause"]
        self.assertEqual(16, depth)

    def test_long_texts_are_cut(self):
        error = failure_of(PaymentError("é" * 100_000, field="x" * 100_000))["error"]
        self.assertEqual(8 * 1024, len(error["message"]))
        self.assertEqual(4 * 1024, len(error["field"]))

    def test_an_exception_that_cannot_be_shown_is_no_failure_of_ours(self):
        class Broken(Exception):
            def __str__(self):
                raise RuntimeError("no text")

        self.assertEqual("", failure_of(Broken())["error"]["message"])

    def test_the_stack_is_sent_where_asked_for(self):
        error = raised(ValueError("x"))
        self.assertNotIn("stack", failure_of(error)["error"])
        self.assertIn("in raised", failure_of(error, stack=True)["error"]["stack"])

    def test_facts_stand_beside_the_error(self):
        self.assertEqual(
            {"error": {"type": "E"}, "consumer": "C", "transport": "t", "attempt": 2, "redeliveries": 0, "calls": 3,
             "deliveries": 4, "age_ms": 5, "message": {"id": "m", "headers": {"a": "b"}},
             "can": {"retry": False, "delay": True}},
            failure_of({"type": "E"}, consumer="C", transport="t", attempt=2, redeliveries=0, calls=3, deliveries=4,
                       age_ms=5, message=Message(id="m", headers={"a": "b"}), can_retry=False))
        self.assertEqual({"error": {"type": "E"}}, failure_of({"type": "E"}, consumer=None))
        with self.assertRaisesRegex(TypeError, "^there is no fact 'atempt' of a failure; there are consumer, "):
            failure_of({"type": "E"}, atempt=1)


if __name__ == "__main__":
    unittest.main()
