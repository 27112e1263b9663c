"""decide.py: mulligan from Python, through ctypes: the structs of mulligan.h that a decision needs, and two classes.

    python3 decide.py

Each Structure has the name of its C struct, and the same members in the same order.
"""
import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

# ---- mulligan.h ------------------------------------------------------------------------------------

ACTIONS = ["retry", "redeliver", "dead_letter", "discard"]
MULL_BOOLEAN, MULL_INTEGER, MULL_NUMBER, MULL_STRING = 1, 2, 3, 4

problem_fn = ctypes.CFUNCTYPE(None, c_char_p, c_int, c_char_p, c_void_p)


class mull_allocator(ctypes.Structure):
    _fields_ = [("resize", c_void_p), ("data", c_void_p)]


class mull_policy_options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("path", c_char_p), ("text", c_char_p), ("text_size", c_size_t), ("problem", problem_fn),
        ("log", c_void_p), ("event", c_void_p), ("data", c_void_p), ("allocator", mull_allocator),
        ("host_path", c_char_p), ("host_text", c_char_p), ("host_text_size", c_size_t),
    ]


class mull_header(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class mull_message(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("id", c_char_p), ("type", c_char_p), ("key", c_char_p), ("queue", c_char_p),
        ("body", c_void_p), ("body_size", c_size_t), ("headers", POINTER(mull_header)), ("header_count", c_size_t),
        ("attempt", c_int64), ("redeliveries", c_int64), ("calls", c_int64), ("deliveries", c_int64),
    ]


class mull_value_as(ctypes.Union):
    _fields_ = [
        ("boolean", c_int), ("integer", c_int64), ("number", c_double), ("string", c_char_p), ("items", c_void_p),
        ("fields", c_void_p),
    ]


class mull_value(ctypes.Structure):
    _fields_ = [("kind", c_int), ("as", mull_value_as), ("count", c_size_t)]


class mull_field(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", mull_value)]


class mull_error(ctypes.Structure):
    pass


mull_error._fields_ = [
    ("size", c_size_t), ("type", c_char_p), ("message", c_char_p), ("stack", c_char_p), ("lineage", POINTER(c_char_p)),
    ("lineage_count", c_size_t), ("fields", POINTER(mull_field)), ("field_count", c_size_t),
    ("cause", POINTER(mull_error)),
]


class mull_failure(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("error", POINTER(mull_error)), ("message", POINTER(mull_message)), ("consumer", c_char_p),
        ("transport", c_char_p), ("attempt", c_int64), ("redeliveries", c_int64), ("calls", c_int64),
        ("deliveries", c_int64), ("age_ms", c_int64), ("chance", c_uint64), ("seed", c_uint64), ("flags", c_uint32),
        ("type", c_uint32), ("site", c_uint32), ("held_ms", c_int64),
    ]


class mull_rule(ctypes.Structure):
    _fields_ = [("file", c_char_p), ("line", c_int), ("scope", c_char_p), ("type", c_char_p)]


class mull_verdict(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("action", c_int), ("reason", c_int), ("tier", c_int), ("fallback", c_int),
        ("delay_ms", c_int64), ("step", c_int64), ("of", c_int64), ("queue", c_char_p), ("note", c_char_p),
        ("rule", mull_rule), ("generation", c_char_p),
    ]


def load_library(name="libmulligan.so.0"):
    """The library with its functions declared: what they take, since they return a code, which is ctypes' default."""
    library = ctypes.CDLL(name)
    library.mull_strerror.restype = c_char_p
    library.mull_policy_load.argtypes = [POINTER(c_void_p), POINTER(mull_policy_options)]
    library.mull_policy_free.argtypes = [c_void_p]
    library.mull_policy_free.restype = None
    library.mull_decider_new.argtypes = [POINTER(c_void_p), c_void_p]
    library.mull_decider_free.argtypes = [c_void_p]
    library.mull_decider_free.restype = None
    library.mull_decide.argtypes = [c_void_p, POINTER(mull_failure), POINTER(mull_verdict)]
    return library


# ---- Two classes -----------------------------------------------------------------------------------


class MulliganError(Exception):
    pass


class Policy:
    """A policy that is loaded. Any thread; it outlives its deciders."""

    def __init__(self, library, text):
        self.library, self.pointer, problems = library, c_void_p(), []
        # Kept as long as the policy, which may call it: C doesn't count references.
        self.problem = problem_fn(lambda file, line, said, _: problems.append(
            f"{(file or b'-').decode()}:{line}: {said.decode()}"))
        options = mull_policy_options(ctypes.sizeof(mull_policy_options), text=text.encode(), problem=self.problem)
        self.check(library.mull_policy_load(self.pointer, options), problems)

    def check(self, status, problems=()):
        if status != 0:
            raise MulliganError("\n".join([self.library.mull_strerror(status).decode(), *problems]))

    def close(self):
        self.library.mull_policy_free(self.pointer)
        self.pointer = c_void_p()


def value_of(value):
    """A Python value as the field of an error."""
    if isinstance(value, bool):
        return mull_value(MULL_BOOLEAN, mull_value_as(boolean=value))
    if isinstance(value, int):
        return mull_value(MULL_INTEGER, mull_value_as(integer=value))
    if isinstance(value, float):
        return mull_value(MULL_NUMBER, mull_value_as(number=value))
    return mull_value(MULL_STRING, mull_value_as(string=value.encode()))


class Decider:
    """Decides, on one thread at a time: one a thread."""

    def __init__(self, policy):
        self.policy, self.pointer = policy, c_void_p()
        policy.check(policy.library.mull_decider_new(self.pointer, policy.pointer))

    def decide(self, raised, attempt=1, message_id=None, **fields):
        """What becomes of a message whose handler raised: a dict. The exception's classes are its lineage."""
        classes = [kind.__name__.encode() for kind in type(raised).__mro__ if issubclass(kind, Exception)]
        lineage = (c_char_p * len(classes))(*classes[1:])
        values = [mull_field(name.encode(), value_of(value)) for name, value in fields.items()]
        error = mull_error(
            ctypes.sizeof(mull_error), type=classes[0], message=str(raised).encode(), lineage=lineage,
            lineage_count=len(classes) - 1, fields=(mull_field * len(values))(*values), field_count=len(values))
        failure = mull_failure(ctypes.sizeof(mull_failure), error=ctypes.pointer(error), attempt=attempt)
        if message_id:  # jitter is drawn from it
            message = mull_message(ctypes.sizeof(mull_message), id=message_id.encode())
            failure.message = ctypes.pointer(message)
        verdict = mull_verdict(ctypes.sizeof(mull_verdict))
        self.policy.check(self.policy.library.mull_decide(self.pointer, failure, verdict))
        return {
            "action": ACTIONS[verdict.action],
            "delay_ms": verdict.delay_ms,
            "queue": verdict.queue and verdict.queue.decode(),
            "line": verdict.rule.line,
        }

    def close(self):
        self.policy.library.mull_decider_free(self.pointer)
        self.pointer = c_void_p()


# ---- The program -----------------------------------------------------------------------------------

TEXT = """\
local bus = require("mulligan.policy").bus()
bus:on("ConnectionError", { host = "db" }):retry { attempts = 2, delay = "10ms", jitter = 0 }
bus:on("OSError"):redeliver { "1m", "5m" }
bus:default():dead_letter("unknown")
"""


def main():
    policy = Policy(load_library(), TEXT)
    decider = Decider(policy)
    for raised, fields in [
        (ConnectionResetError("gone"), {"host": "db"}),
        (ConnectionResetError("gone"), {"host": "mail", "port": 25}),
        (KeyError("order"), {}),
    ]:
        verdict = decider.decide(raised, **fields)
        print(f"{type(raised).__name__} {fields}: {verdict}")
    try:
        Policy(policy.library, "policy = nil + 1")
    except MulliganError as wrong:
        print(f"refused: {wrong}")
    decider.close()
    policy.close()


if __name__ == "__main__":
    main()
