"""One connection for threads: whoever asks waits for its own answer, and a thread reads them all."""
from __future__ import annotations

import select
import socket
import threading
import time
from typing import Any, Callable

from . import _protocol
from .errors import AnswerTimeout, ConnectionLost, MulliganError, ProtocolError


class _Slot:
    """A request that is open."""

    __slots__ = ("done", "answer", "failure")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.answer: _protocol.Answer | None = None
        self.failure: MulliganError | None = None


class Connection:
    """Open from its making on; `lost` says why it isn't any more."""

    def __init__(self, path: str, client: str, timeout: float, changed: Callable[[str], None]) -> None:
        self.path = path
        self.lost: MulliganError | None = None
        self._changed = changed
        self._open: dict[int, _Slot] = {}
        self._room = threading.BoundedSemaphore(_protocol.MOST_OPEN)
        self._state = threading.Lock()  # of _open, _next and lost
        self._sending = threading.Lock()
        self._owed: list[bytes] = []  # answers to pings
        self._next = 0
        self._socket = self._connect(timeout)
        self._reader = threading.Thread(target=self._read, name="mulligan", daemon=True)
        self._reader.start()
        try:
            _protocol.check_hello(self.call("hello", _protocol.hello(client), timeout))
        except BaseException:
            self.close()
            raise

    def _connect(self, timeout: float) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(timeout)
            made.connect(self.path)
            made.settimeout(None)
        except OSError as why:
            made.close()
            raise ConnectionLost(f"{self.path}: {why.strerror or why}") from None
        return made

    # ---- Reading -----------------------------------------------------------------------------------

    def _read(self) -> None:
        inbox = _protocol.Inbox()
        try:
            while data := self._socket.recv(1 << 16):
                for came in inbox.feed(data):
                    self._take(came)
            why: MulliganError = ConnectionLost(f"{self.path}: the server closed the connection")
        except MulliganError as error:
            why = error
        except OSError as error:
            why = ConnectionLost(f"{self.path}: {error.strerror or error}")
        self._end(why)

    def _take(self, came: _protocol.Answer | _protocol.Ping | _protocol.Changed) -> None:
        if isinstance(came, _protocol.Ping):
            self._owed.append(came.answer)
            self._pay()
        elif isinstance(came, _protocol.Changed):
            self._changed(came.generation)
        elif came.id is None:
            _protocol.raise_error(came.error)
            raise ProtocolError("the server answered what nobody asked")
        else:
            with self._state:
                slot = self._open.pop(came.id, None)
            if slot is not None:  # else it came too late
                slot.answer = came
                slot.done.set()

    def _end(self, why: MulliganError) -> None:
        with self._state:
            self.lost = self.lost or why
            slots, self._open = list(self._open.values()), {}
        self._shut(why)  # whoever writes ends now
        with self._sending:
            self._socket.close()
        for slot in slots:
            slot.failure = why
            slot.done.set()

    # ---- Writing -----------------------------------------------------------------------------------

    def _pay(self) -> None:
        """Sends what pings are owed. The reader may not wait: where somebody sends, that one pays."""
        while self._owed and self._sending.acquire(blocking=False):
            try:
                self._socket.send(self._owed[0], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                self._owed.pop(0)
            except BlockingIOError:
                return
            except OSError:
                return  # the reader finds out why
            finally:
                self._sending.release()

    def _send(self, packed: bytes, timeout: float) -> None:
        if not self._sending.acquire(timeout=max(timeout, 0)):
            raise AnswerTimeout(f"{self.path}: the server doesn't read")
        try:
            self._write(packed, time.monotonic() + timeout)
        finally:
            self._sending.release()
        self._pay()

    def _write(self, packed: bytes, deadline: float) -> None:
        """A timeout of the socket's would be the reader's as well, so the wait is here."""
        view = memoryview(packed)
        while view:
            try:
                view = view[self._socket.send(view, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL):]
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([], [self._socket], [], left)[1]:
                    why = AnswerTimeout(f"{self.path}: the server doesn't read")
                    self._shut(why)  # half a message is out
                    raise why from None
            except OSError as error:
                raise self.lost or ConnectionLost(f"{self.path}: {error.strerror or error}") from None

    # ---- Asking ------------------------------------------------------------------------------------

    def call(self, method: str, params: bytes, timeout: float) -> Any:
        """The result; raises the error that was answered, or why there is no answer."""
        deadline = time.monotonic() + timeout
        if not self._room.acquire(timeout=timeout):
            raise AnswerTimeout(f"{self.path}: {_protocol.MOST_OPEN} requests are open, and none is answered")
        try:
            return self._call(method, params, deadline, timeout)
        finally:
            self._room.release()

    def _call(self, method: str, params: bytes, deadline: float, timeout: float) -> Any:
        slot = _Slot()
        with self._state:
            if self.lost is not None:
                raise self.lost
            number = self._next
            self._next = (number + 1) % (1 << 32)
            packed = _protocol.request(number, method, params)
            self._open[number] = slot
        try:
            self._send(packed, deadline - time.monotonic())
            if not slot.done.wait(max(deadline - time.monotonic(), 0)):
                raise AnswerTimeout(f"{self.path}: no answer to {method} within {timeout:g} s")
        finally:
            with self._state:
                self._open.pop(number, None)
        if slot.failure is not None:
            raise slot.failure
        assert slot.answer is not None
        _protocol.raise_error(slot.answer.error)
        return slot.answer.result

    def _shut(self, why: MulliganError) -> None:
        with self._state:
            self.lost = self.lost or why
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is closed already

    def close(self) -> None:
        self._shut(ConnectionLost(f"{self.path}: this client closed the connection"))
        if threading.current_thread() is not self._reader:
            self._reader.join()
