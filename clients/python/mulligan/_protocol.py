"""MessagePack-RPC without I/O: requests to bytes, and bytes to what came."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Iterator

import msgpack

from .errors import ProtocolError, RequestError

VERSION = 1
MAX_FRAME = 1 << 20
MOST_OPEN = 64
MOST_AT_ONCE = 1000
_READ_SIZE = 1 << 18
_BATCH = MAX_FRAME // 2


@dataclass(slots=True)
class Answer:
    id: int | None
    error: object
    result: Any


@dataclass(slots=True)
class Ping:
    answer: bytes


@dataclass(slots=True)
class Changed:
    generation: str


def pack(value: object) -> bytes:
    try:
        packed: bytes = msgpack.packb(value, use_bin_type=True)
        return packed
    except (TypeError, ValueError, OverflowError) as why:
        raise RequestError(f"a failure can't hold this: {why}") from None


def request(number: int, method: str, params: bytes) -> bytes:
    """A request whose params are packed already."""
    packed = b"\x94\x00" + pack(number) + pack(method) + b"\x91" + params
    if len(packed) > MAX_FRAME:
        raise RequestError(f"the request has {len(packed)} bytes; at most {MAX_FRAME} are allowed")
    return packed


def hello(client: str) -> bytes:
    return pack({"version": VERSION, "role": "decider", "client": client})


def batches(failures: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Params of decide_many, each with how many failures are in it."""
    batch: list[bytes] = []
    size = 0
    for failure in failures:
        if batch and (len(batch) == MOST_AT_ONCE or size + len(failure) > _BATCH):
            yield len(batch), _many(batch)
            batch, size = [], 0
        batch.append(failure)
        size += len(failure)
    if batch:
        yield len(batch), _many(batch)


def _many(batch: list[bytes]) -> bytes:
    return b"\x81\xa8failures\xdd" + len(batch).to_bytes(4, "big") + b"".join(batch)


def _unpacker(most: int) -> Any:
    return msgpack.Unpacker(raw=False, strict_map_key=False, max_buffer_size=most + _READ_SIZE, max_ext_len=0)


class Frames:
    """Messages out of what comes, cut anywhere."""

    def __init__(self, most: int) -> None:
        self._unpacker = _unpacker(most)
        self._most = most

    def grow(self, most: int) -> None:
        """From now on a message may be larger. Between two messages of `feed` only."""
        if most <= self._most:
            return
        unread = self._unpacker.read_bytes(self._most + _READ_SIZE)
        self._unpacker, self._most = _unpacker(most), most
        self._unpacker.feed(unread)

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        try:
            self._unpacker.feed(data)
        except msgpack.BufferFull:
            raise ProtocolError(f"the server sent a message of more than {self._most >> 20} MiB") from None
        while True:
            try:
                message = self._unpacker.unpack()
            except msgpack.OutOfData:
                return
            except (ValueError, TypeError, RecursionError) as why:  # a list as a key is a TypeError
                reason = str(why) or type(why).__name__
                raise ProtocolError(f"the server sent what isn't a message: {reason}") from None
            yield _checked(message)


def _checked(message: object) -> list[Any]:
    if isinstance(message, list) and message:
        kind, parts = message[0], len(message)
        if kind == 1 and parts == 4 and (message[1] is None or isinstance(message[1], int)):
            return message
        if (kind == 0 and parts == 4 and isinstance(message[1], int)) or (kind == 2 and parts == 3):
            return message
    raise ProtocolError("the server sent what isn't a message of MessagePack-RPC")


class Inbox:
    """What comes to one that asks for verdicts."""

    def __init__(self) -> None:
        self._frames = Frames(MAX_FRAME)

    def feed(self, data: bytes) -> Iterator[Answer | Ping | Changed]:
        for message in self._frames.feed(data):
            came = _read(message)
            if came is not None:
                yield came


def _read(message: list[Any]) -> Answer | Ping | Changed | None:
    if message[0] == 1:
        return Answer(message[1], message[2], message[3])
    if message[0] == 0:
        if message[2] == "ping":
            return Ping(pack([1, message[1], None, {}]))
        refusal = {"type": "RequestError", "message": "this client answers nothing but ping"}
        return Ping(pack([1, message[1], refusal, None]))
    params = message[2]
    if message[1] == "policy_changed" and isinstance(params, list) and params and isinstance(params[0], dict):
        return Changed(str(params[0].get("generation", "")))
    return None


def raise_error(error: object) -> None:
    """Raises what an answer's error is; nil isn't one."""
    if error is None:
        return
    read = error if isinstance(error, dict) else {}
    message = str(read.get("message", error))
    if read.get("type") == "ProtocolError":
        versions = read.get("versions")
        raise ProtocolError(message, tuple(versions) if isinstance(versions, list) else ())
    raise RequestError(message)


def check_hello(result: object) -> None:
    if not isinstance(result, dict) or result.get("version") != VERSION:
        raise ProtocolError("the server's answer to hello isn't one of this protocol, version 1")


def check_many(result: object, count: int) -> list[Any]:
    if not isinstance(result, list) or len(result) != count:
        raise ProtocolError(f"decide_many of {count} failures got no list of {count}")
    return result
