"""A policy that another process runs, for threads."""
from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Callable, Iterable, Mapping, Unpack

from . import _protocol
from ._connection import Connection
from .errors import ConnectionLost, RequestError
from .failures import Facts, Types, failure_of
from .verdicts import Explanation, PolicyState, Verdict, explanation_of, state_of, verdict_of

Failed = BaseException | Mapping[str, Any]


def _nobody(_generation: str) -> None:
    pass


class Policy:
    """Decides by the policy that `mulligan serve` runs on a Unix socket. For any number of threads.

    It connects when it is first asked, and again where the connection was lost. A process that forks
    makes a policy of its own. `changed` hears of each new generation, on a thread of the library's; it
    may not ask the policy.
    """

    def __init__(
        self,
        path: str,
        *,
        client: str = "python",
        timeout: float = 10.0,
        types: Types | None = None,
        stack: bool = False,
        changed: Callable[[str], None] = _nobody,
    ) -> None:
        self.path = path.removeprefix("unix:")
        self.timeout = timeout
        self._client = client
        self._types = types or {}
        self._stack = stack
        self._changed = changed
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._closed = False

    def decide(self, error: Failed, **facts: Unpack[Facts]) -> Verdict:
        """The verdict on a failure; the facts are those of `failure_of`."""
        return verdict_of(self._ask("decide", self._packed(error, facts)))

    def decide_many(self, failures: Iterable[Mapping[str, Any]]) -> list[Verdict | RequestError]:
        """The verdicts on failures of `failure_of`, in their order; what is no failure has a RequestError."""
        answers: list[Verdict | RequestError] = []
        for count, params in _protocol.batches(_protocol.pack(failure) for failure in failures):
            for answer in _protocol.check_many(self._ask("decide_many", params), count):
                answers.append(one_of_many(answer))
        return answers

    def explain(self, error: Failed, **facts: Unpack[Facts]) -> Explanation:
        """Why the verdict on a failure is what it is, and what follows."""
        return explanation_of(self._ask("explain", self._packed(error, facts)))

    def state(self) -> PolicyState:
        """Which policy is in force."""
        return state_of(self._ask("policy", b"\x80"))

    def close(self) -> None:
        """Closes the connection; whoever still asks gets ConnectionLost."""
        with self._lock:
            connection, self._connection, self._closed = self._connection, None, True
        if connection is not None:
            connection.close()

    def __enter__(self) -> Policy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def _packed(self, error: Failed, facts: Facts) -> bytes:
        return _protocol.pack(failure_of(error, types=self._types, stack=self._stack, **facts))

    def _connected(self, timeout: float) -> Connection:
        with self._lock:
            if self._closed:
                raise ConnectionLost(f"{self.path}: this policy is closed")
            if self._connection is None or self._connection.lost is not None:
                self._connection = Connection(self.path, self._client, timeout, self._changed)
            return self._connection

    def _ask(self, method: str, params: bytes) -> Any:
        """Nothing that is asked changes anything, so that what a lost connection took is asked once more."""
        deadline = time.monotonic() + self.timeout
        connection = self._connected(self.timeout)
        try:
            return connection.call(method, params, self.timeout)
        except ConnectionLost:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
            return self._connected(left).call(method, params, left)


def one_of_many(answer: Any) -> Verdict | RequestError:
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        return RequestError(answer["error"])
    return verdict_of(answer)
