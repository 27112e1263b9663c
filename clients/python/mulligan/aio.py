"""The same for asyncio. An AsyncPolicy belongs to the loop that it is first asked on."""
from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Callable, Iterable, Mapping, Unpack

from . import _protocol
from .errors import AnswerTimeout, ConnectionLost, MulliganError, ProtocolError, RequestError
from .failures import Facts, Types, failure_of
from .policy import Failed, _nobody, one_of_many
from .verdicts import Explanation, PolicyState, Verdict, explanation_of, state_of, verdict_of


class _Connection:
    def __init__(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
                 changed: Callable[[str], None]) -> None:
        self.path = path
        self.lost: MulliganError | None = None
        self._reader, self._writer, self._changed = reader, writer, changed
        self._open: dict[int, asyncio.Future[_protocol.Answer]] = {}
        self._room = asyncio.BoundedSemaphore(_protocol.MOST_OPEN)
        self._next = 0
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        inbox = _protocol.Inbox()
        why: MulliganError = ConnectionLost(f"{self.path}: this client closed the connection")
        try:
            while data := await self._reader.read(1 << 16):
                for came in inbox.feed(data):
                    self._take(came)
            why = ConnectionLost(f"{self.path}: the server closed the connection")
        except MulliganError as error:
            why = error
        except OSError as error:
            why = ConnectionLost(f"{self.path}: {error.strerror or error}")
        finally:
            self._end(why)

    def _take(self, came: _protocol.Answer | _protocol.Ping | _protocol.Changed) -> None:
        if isinstance(came, _protocol.Ping):
            self._writer.write(came.answer)
        elif isinstance(came, _protocol.Changed):
            self._changed(came.generation)
        elif came.id is None:
            _protocol.raise_error(came.error)
            raise ProtocolError("the server answered what nobody asked")
        else:
            future = self._open.pop(came.id, None)
            if future is not None and not future.done():  # else it came too late
                future.set_result(came)

    def _end(self, why: MulliganError) -> None:
        self.lost = self.lost or why
        futures, self._open = list(self._open.values()), {}
        self._writer.close()
        for future in futures:
            if not future.done():
                future.set_exception(self.lost)

    async def call(self, method: str, params: bytes) -> Any:
        async with self._room:
            if self.lost is not None:
                raise self.lost
            number = self._next
            self._next = (number + 1) % (1 << 32)
            future: asyncio.Future[_protocol.Answer] = asyncio.get_running_loop().create_future()
            packed = _protocol.request(number, method, params)
            self._open[number] = future
            try:
                self._writer.write(packed)
                await self._writer.drain()
                answer = await future
            except OSError as error:
                raise self.lost or ConnectionLost(f"{self.path}: {error.strerror or error}") from None
            finally:
                self._open.pop(number, None)
            _protocol.raise_error(answer.error)
            return answer.result

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


class AsyncPolicy:
    """Policy for asyncio; see there."""

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
        self._lock = asyncio.Lock()
        self._connection: _Connection | None = None
        self._closed = False

    async def decide(self, error: Failed, **facts: Unpack[Facts]) -> Verdict:
        return verdict_of(await self._ask("decide", self._packed(error, facts)))

    async def decide_many(self, failures: Iterable[Mapping[str, Any]]) -> list[Verdict | RequestError]:
        answers: list[Verdict | RequestError] = []
        for count, params in _protocol.batches(_protocol.pack(failure) for failure in failures):
            for answer in _protocol.check_many(await self._ask("decide_many", params), count):
                answers.append(one_of_many(answer))
        return answers

    async def explain(self, error: Failed, **facts: Unpack[Facts]) -> Explanation:
        return explanation_of(await self._ask("explain", self._packed(error, facts)))

    async def state(self) -> PolicyState:
        return state_of(await self._ask("policy", b"\x80"))

    async def close(self) -> None:
        connection, self._connection, self._closed = self._connection, None, True
        if connection is not None:
            await connection.close()

    async def __aenter__(self) -> AsyncPolicy:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    def _packed(self, error: Failed, facts: Facts) -> bytes:
        return _protocol.pack(failure_of(error, types=self._types, stack=self._stack, **facts))

    async def _connect(self) -> _Connection:
        try:
            reader, writer = await asyncio.open_unix_connection(self.path)
        except OSError as why:
            raise ConnectionLost(f"{self.path}: {why.strerror or why}") from None
        made = _Connection(self.path, reader, writer, self._changed)
        try:
            _protocol.check_hello(await made.call("hello", _protocol.hello(self._client)))
        except BaseException:
            await made.close()
            raise
        return made

    async def _connected(self) -> _Connection:
        async with self._lock:
            if self._closed:
                raise ConnectionLost(f"{self.path}: this policy is closed")
            if self._connection is None or self._connection.lost is not None:
                self._connection = await self._connect()
            return self._connection

    async def _ask(self, method: str, params: bytes) -> Any:
        """Nothing that is asked changes anything, so that what a lost connection took is asked once more."""
        try:
            async with asyncio.timeout(self.timeout):
                connection = await self._connected()
                try:
                    return await connection.call(method, params)
                except ConnectionLost:
                    return await (await self._connected()).call(method, params)
        except MulliganError:
            raise
        except TimeoutError:
            raise AnswerTimeout(f"{self.path}: no answer to {method} within {self.timeout:g} s") from None
