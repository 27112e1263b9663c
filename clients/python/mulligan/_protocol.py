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
_ROOM = 4096  # of a frame, for all that isn't failures
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


class Inbox:
    """What comes, cut anywhere."""

    def __init__(self) -> None:
        self._unpacker = msgpack.Unpacker(
            raw=False, strict_map_key=False, max_buffer_size=MAX_FRAME + _ROOM, max_ext_len=0)
        self._unread = 0

    def feed(self, data: bytes) -> Iterator[Answer | Ping | Changed]:
        try:
            self._unpacker.feed(data)
        except msgpack.BufferFull:
            raise ProtocolError("the server sent a message of more than 1 MiB") from None
        while True:
            try:
                message = self._unpacker.unpack()
            except msgpack.OutOfData:
                return
            except (ValueError, TypeError, RecursionError) as why:  # a list as a key is a TypeError
                reason = str(why) or type(why).__name__
                raise ProtocolError(f"the server sent what isn't a message: {reason}") from None
            came = _read(message)
            if came is not None:
                yield came


def _read(message: object) -> Answer | Ping | Changed | None:
    if not isinstance(message, list) or not message:
        raise ProtocolError("the server sent what isn't a message of MessagePack-RPC")
    kind = message[0]
    if kind == 1 and len(message) == 4 and (message[1] is None or isinstance(message[1], int)):
        return Answer(message[1], message[2], message[3])
    if kind == 0 and len(message) == 4 and isinstance(message[1], int):
        if message[2] == "ping":
            return Ping(pack([1, message[1], None, {}]))
        refusal = {"type": "RequestError", "message": "this client answers nothing but ping"}
        return Ping(pack([1, message[1], refusal, None]))
    if kind == 2 and len(message) == 3:
        params = message[2]
        if message[1] == "policy_changed" and isinstance(params, list) and params and isinstance(params[0], dict):
            return Changed(str(params[0].get("generation", "")))
        return None
    raise ProtocolError("the server sent what isn't a message of MessagePack-RPC")


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
