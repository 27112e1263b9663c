"""A worker: a process in which `mulligan run` has messages handled.

    from mulligan import Worker

    worker = Worker()

    @worker.handler("OrderHandler", slots=4)
    def handle(message):
        ...

    worker.run()

A handler that returns has succeeded, one that raises has failed. README.md has the rest.
"""
from __future__ import annotations

import asyncio
import inspect
import os
import socket
import stat
import sys
import threading
import traceback
from collections import deque
from queue import SimpleQueue
from typing import Any, Awaitable, Callable, Mapping, TypeVar

from . import _protocol
from .delivery import Delivery
from .errors import ConnectionLost, MulliganError, ProtocolError
from .failures import Types, error_of

Handler = Callable[[Delivery], "Awaitable[None] | None"]
_Any = TypeVar("_Any", bound=Handler)

_MOST_SLOTS = 65535
_FIRST_FRAME = 1 << 20


class _Consumer:
    """What handles the messages of one consumer: threads, or tasks of an event loop."""

    def __init__(self, handler: Handler, slots: int) -> None:
        self.handler = handler
        self.slots = slots
        self.is_async = inspect.iscoroutinefunction(handler)
        self.waiting: SimpleQueue[Delivery] = SimpleQueue()


class Worker:
    """Handlers by consumer. `slots` is how many messages of a consumer are handled at a time, where a
    handler doesn't say; `types` names classes of exceptions otherwise than Python does."""

    def __init__(self, *, slots: int = 1, types: Types | None = None, client: str = "python") -> None:
        self._slots = _whole(slots)
        self._types = dict(types or {})
        self._client = client
        self._consumers: dict[str, _Consumer] = {}
        self._open: dict[int, Delivery] = {}
        self._changed = threading.Condition()  # of _open and _why
        self._why: BaseException | None = None
        self._stopping = False
        self._outbox: deque[bytes] = deque()
        self._sending = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket: socket.socket | None = None
        self._inbox = _protocol.Frames(_FIRST_FRAME)

    def handler(self, consumer: str, *, slots: int | None = None) -> Callable[[_Any], _Any]:
        """Has a function handle the messages of a consumer. A coroutine function runs on an event loop of
        the worker's own, any other on a thread."""

        def register(function: _Any) -> _Any:
            if consumer in self._consumers:
                raise ValueError(f"the consumer {consumer!r} has a handler already")
            self._consumers[consumer] = _Consumer(function, self._slots if slots is None else _whole(slots))
            return function

        return register

    # ---- Its life ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Handles messages until mulligan stops or is gone. Raises ProtocolError where mulligan refuses it."""
        if not self._consumers:
            raise ValueError("the worker has no handler; @worker.handler(\"OrderHandler\") makes one")
        self._socket = _standard_input()
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        self._greet()
        self._start()
        threading.Thread(target=self._read, name="mulligan", daemon=True).start()
        with self._changed:
            self._changed.wait_for(lambda: self._why is not None or (self._stopping and not self._open))
        with self._sending:  # whoever sends an answer is through
            self._send()
            self._socket.close()
        if isinstance(self._why, ProtocolError):
            raise self._why

    def _greet(self) -> None:
        consumers = [{"name": name, "slots": each.slots} for name, each in self._consumers.items()]
        self._say(_protocol.pack([0, 0, "hello", [{
            "version": _protocol.VERSION, "role": "worker", "client": self._client, "consumers": consumers}]]))
        while True:
            for message in self._inbox.feed(self._receive()):
                if message[0] == 1 and message[1] == 0:
                    _protocol.raise_error(message[2])
                    _protocol.check_hello(message[3])
                    self._inbox.grow(int(message[3].get("max_frame", _FIRST_FRAME)))
                    return
                self._take(message)

    def _start(self) -> None:
        if any(each.is_async for each in self._consumers.values()):
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, name="mulligan-asyncio", daemon=True).start()
        for name, each in self._consumers.items():
            for number in range(0 if each.is_async else each.slots):
                threading.Thread(target=self._work, args=(each,), name=f"{name}-{number + 1}", daemon=True).start()

    def _end(self, why: BaseException) -> None:
        with self._changed:
            self._why = self._why or why
            self._changed.notify_all()

    # ---- Handlers ----------------------------------------------------------------------------------

    def _work(self, consumer: _Consumer) -> None:
        while True:
            delivery = consumer.waiting.get()
            try:
                consumer.handler(delivery)
            except BaseException as error:  # SystemExit too: the process is the worker's, not the handler's
                self._answer(delivery, error)
            else:
                self._answer(delivery, None)

    async def _task(self, consumer: _Consumer, delivery: Delivery) -> None:
        task = asyncio.ensure_future(consumer.handler(delivery))  # type: ignore[arg-type]
        delivery._on_cancel(lambda: task.get_loop().call_soon_threadsafe(task.cancel))
        try:
            await task
        except BaseException as error:
            self._answer(delivery, error)
        else:
            self._answer(delivery, None)

    def _answer(self, delivery: Delivery, error: BaseException | None) -> None:
        packed = _protocol.pack([1, delivery._call, self._said_of(error), None])
        with self._changed:
            self._open.pop(delivery._call, None)
            self._outbox.append(packed)
            if self._stopping and not self._open:
                self._changed.notify_all()
        self._flush()

    def _said_of(self, error: BaseException | None) -> dict[str, Any] | None:
        if error is None:
            return None
        try:
            return error_of(error, self._types, True)
        except Exception:  # an exception's own attributes may fail
            return {"type": type(error).__name__, "message": "".join(traceback.format_exception_only(type(error)))}

    # ---- What comes --------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            for message in self._inbox.feed(b""):
                self._take(message)
            while True:
                for message in self._inbox.feed(self._receive()):
                    self._take(message)
        except MulliganError as why:
            self._end(why)

    def _receive(self) -> bytes:
        assert self._socket is not None
        try:
            data = self._socket.recv(1 << 18)
        except OSError as error:
            raise ConnectionLost(f"mulligan: {error.strerror or error}") from None
        if not data:
            raise ConnectionLost("mulligan closed the connection")
        return data

    def _take(self, message: list[Any]) -> None:
        kind, method = message[0], message[2] if message[0] == 0 else message[1]
        if kind == 1 and message[1] is None:
            _protocol.raise_error(message[2])
        elif kind == 0 and method == "handle":
            self._handle(message[1], _map_of(message[3]))
        elif kind == 0 and method == "ping":
            self._say(_protocol.pack([1, message[1], None, {}]))
        elif kind == 0:
            refusal = {"type": "RequestError", "message": "a worker answers handle and ping"}
            self._say(_protocol.pack([1, message[1], refusal, None]))
        elif kind == 2 and method == "cancel":
            told = _map_of(message[2])
            delivery = self._open.get(told.get("call", -1))
            if delivery is not None:
                delivery._cancel(str(told.get("reason", "")))
        elif kind == 2 and method == "stop":
            with self._changed:
                self._stopping = True
                self._changed.notify_all()

    def _handle(self, call: int, params: Mapping[str, Any]) -> None:
        delivery = Delivery(call, params, self._say)
        consumer = self._consumers.get(delivery.consumer)
        with self._changed:
            self._open[call] = delivery
        if consumer is None:
            self._answer(delivery, LookupError(f"this worker has no handler for {delivery.consumer!r}"))
        elif self._loop is not None and consumer.is_async:
            asyncio.run_coroutine_threadsafe(self._task(consumer, delivery), self._loop)
        else:
            consumer.waiting.put(delivery)

    # ---- What goes ---------------------------------------------------------------------------------

    def _say(self, packed: bytes) -> None:
        self._outbox.append(packed)
        self._flush()

    def _flush(self) -> None:
        """Nobody waits to send: whoever sends also sends what others have put there meanwhile."""
        while self._outbox and self._sending.acquire(blocking=False):
            try:
                self._send()
            finally:
                self._sending.release()

    def _send(self) -> None:
        assert self._socket is not None
        said = [self._outbox.popleft() for _ in range(len(self._outbox))]
        try:
            self._socket.sendall(b"".join(said))
        except OSError as error:
            self._end(ConnectionLost(f"mulligan: {error.strerror or error}"))


def _whole(slots: int) -> int:
    if not isinstance(slots, int) or not 1 <= slots <= _MOST_SLOTS:
        raise ValueError(f"slots must be a whole number from 1 to {_MOST_SLOTS}, not {slots!r}")
    return slots


def _map_of(params: Any) -> Mapping[str, Any]:
    if isinstance(params, list) and params and isinstance(params[0], dict):
        return params[0]
    raise ProtocolError("mulligan sent what isn't a message of the protocol")


def _standard_input() -> socket.socket:
    """The connection that mulligan starts a worker with. What reads stdin later finds it empty."""
    if not stat.S_ISSOCK(os.fstat(0).st_mode):
        raise ConnectionLost("stdin is no connection: mulligan starts this program, as m.worker { … } in service.lua")
    connection = socket.socket(fileno=os.dup(0))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return connection
