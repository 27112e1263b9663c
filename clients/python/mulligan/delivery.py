"""A message as a handler sees it."""
from __future__ import annotations

import threading
import time
from typing import Any, Callable, Mapping

from . import _protocol
from .errors import RequestError


class Delivery:
    """A message that was handed out, and the call that handles it.

    `time_left` is what the call has left, in seconds; None: any time. `cancelled` says why the call's end
    no longer matters: "timeout", "lost" or "stop"; None: it does.
    """

    __slots__ = ("consumer", "id", "type", "key", "queue", "headers", "body", "attempt", "redeliveries", "calls",
                 "deliveries", "cancelled", "_call", "_say", "_ends", "_state", "_told")

    def __init__(self, call: int, params: Mapping[str, Any], say: Callable[[bytes], None]) -> None:
        message = params["message"]
        self.consumer: str = params["consumer"]
        self.id: str = message["id"]
        self.type: str | None = message["type"]
        self.key: str | None = message["key"]
        self.queue: str = message["queue"]
        self.headers: dict[str, str] = message["headers"]
        self.body: bytes = message["body"]
        self.attempt: int = params["attempt"]
        self.redeliveries: int = params["redeliveries"]
        self.calls: int = params["calls"]
        self.deliveries: int = params["deliveries"]
        self.cancelled: str | None = None
        self._call = call
        self._say = say
        left = params.get("time_left_ms")
        self._ends = None if left is None else time.monotonic() + left / 1000
        self._state = threading.Lock()
        self._told: Callable[[], object] | None = None

    @property
    def time_left(self) -> float | None:
        return None if self._ends is None else max(self._ends - time.monotonic(), 0)

    def send(
        self,
        queue: str,
        body: bytes | str = b"",
        *,
        id: str | None = None,
        type: str | None = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        delay: float = 0,
    ) -> None:
        """Sends a message once this handler has succeeded, after `delay` seconds. Nothing is sent where it fails."""
        if delay < 0:
            raise RequestError(f"the delay must be 0 or more seconds, not {delay!r}")
        said: dict[str, Any] = {
            "call": self._call,
            "queue": queue,
            "body": body.encode() if isinstance(body, str) else bytes(body),
            "id": id,
            "type": type,
            "key": key,
            "headers": None if headers is None else dict(headers),
            "delay_ms": round(delay * 1000),
        }
        self._say(_protocol.pack([2, "send", [{name: value for name, value in said.items() if value is not None}]]))

    def _cancel(self, reason: str) -> None:
        with self._state:
            self.cancelled, told = reason, self._told
        if told is not None:
            told()

    def _on_cancel(self, told: Callable[[], object]) -> None:
        with self._state:
            self._told = told
            is_late = self.cancelled is not None
        if is_late:
            told()
