"""Failures out of exceptions: their classes become types, their attributes fields."""
from __future__ import annotations

import enum
import math
import traceback
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, TypedDict, Unpack

# What an error may hold is bounded by the server. These leave room for all of them together.
_MOST_CAUSES = 16
_MOST_TEXT = 16 * 1024
_MOST_FIELD_TEXT = 4 * 1024
_MOST_FIELDS = 64
_MOST_ITEMS = 64
_MOST_LEVELS = 4
_MOST_LINEAGE = 64

_RESERVED = frozenset(("type", "lineage", "message", "stack", "cause"))
_NO_TYPES = (BaseException, object)
_INT64 = range(-(1 << 63), 1 << 63)

Types = Mapping[type, str]


@dataclass(frozen=True, slots=True)
class Message:
    """The message whose handling failed, as far as a policy may ask. `id` decides the jitter."""

    id: str | None = None
    type: str | None = None
    key: str | None = None
    size: int | None = None
    headers: Mapping[str, str] | None = None


def _text(value: str, most: int) -> str:
    """Text that the server takes: no NUL, no half of a surrogate pair, so many bytes at most."""
    encoded = value[:most].encode("utf-8", "replace")[:most]
    return encoded.decode("utf-8", "ignore").replace("\0", "\ufffd")


def _names(classes: tuple[type, ...], types: Types) -> Iterator[str]:
    """Each class by its name, and by its module and name; nearest first."""
    for cls in classes:
        if cls in _NO_TYPES:
            continue
        yield types.get(cls, cls.__name__)
        if cls.__module__ != "builtins":
            yield f"{cls.__module__}.{cls.__qualname__}"


def _value(value: object, level: int = 0) -> Any:
    """What of a value a field can hold; None: nothing."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return int(value) if value in _INT64 else None
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return _text(value, _MOST_FIELD_TEXT)
    if level == _MOST_LEVELS:
        return None
    if isinstance(value, (list, tuple)):
        items = (_value(item, level + 1) for item in value[:_MOST_ITEMS])
        return [item for item in items if item is not None]
    if isinstance(value, Mapping):
        return _fields(dict(value), level + 1)
    return None


def _fields(attributes: Mapping[Any, object], level: int = 0) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in attributes.items():
        if len(fields) == _MOST_FIELDS:
            break
        if not isinstance(name, str) or not name or name.startswith("_"):
            continue
        read = _value(value, level)
        if read is not None:
            fields[_text(name, 256)] = read
    return fields


def _attributes(error: BaseException) -> dict[str, object]:
    attributes = dict(getattr(error, "__dict__", {}))
    if isinstance(error, OSError):
        attributes = {"errno": error.errno, "strerror": error.strerror, "filename": error.filename} | attributes
    return attributes


def _message(error: BaseException) -> str:
    try:
        return _text(str(error), _MOST_TEXT)
    except Exception:  # an exception's own __str__ may fail; the failure must not get lost by that
        return ""


def error_of(error: BaseException, types: Types, stack: bool, seen: tuple[int, ...] = ()) -> dict[str, Any]:
    names = list(dict.fromkeys(_names(type(error).__mro__, types)))[:_MOST_LINEAGE]
    read: dict[str, Any] = {
        name: value for name, value in _fields(_attributes(error)).items() if name not in _RESERVED
    }
    read["type"] = names[0] if names else type(error).__name__
    read["lineage"] = names[1:]
    read["message"] = _message(error)
    if stack and error.__traceback__ is not None:
        read["stack"] = _text("".join(traceback.format_tb(error.__traceback__)), _MOST_TEXT)
    cause = error.__cause__
    if cause is not None and id(cause) not in seen and len(seen) < _MOST_CAUSES:
        read["cause"] = error_of(cause, types, stack, (*seen, id(error)))
    return read


class Facts(TypedDict, total=False):
    """What a failure says beside its error; docs/decide.md has the defaults."""

    consumer: str | None
    transport: str | None
    attempt: int | None
    redeliveries: int | None
    calls: int | None
    deliveries: int | None
    age_ms: int | None
    message: Message | None
    can_retry: bool
    can_delay: bool


_PLAIN = ("consumer", "transport", "attempt", "redeliveries", "calls", "deliveries", "age_ms")


def _message_map(message: Message) -> dict[str, Any]:
    headers = None if message.headers is None else dict(message.headers)
    read = {"id": message.id, "type": message.type, "key": message.key, "size": message.size, "headers": headers}
    return {name: value for name, value in read.items() if value is not None}


def failure_of(
    error: BaseException | Mapping[str, Any],
    *,
    types: Types | None = None,
    stack: bool = False,
    **facts: Unpack[Facts],
) -> dict[str, Any]:
    """The failure that an exception is, with the keys of docs/decide.md.

    An error that is no exception is given as a map with `type`. `types` names classes otherwise than
    Python does; `stack` sends the traceback, which takes longer than the decision.
    """
    for name in facts.keys() - Facts.__annotations__.keys():
        raise TypeError(f"there is no fact {name!r} of a failure; there are {', '.join(Facts.__annotations__)}")
    failure: dict[str, Any] = {
        "error": error_of(error, types or {}, stack) if isinstance(error, BaseException) else dict(error)
    }
    failure.update((name, facts.get(name)) for name in _PLAIN if facts.get(name) is not None)
    message = facts.get("message")
    if message is not None:
        failure["message"] = _message_map(message)
    can = {"retry": facts.get("can_retry", True), "delay": facts.get("can_delay", True)}
    if not all(can.values()):
        failure["can"] = can
    return failure
