"""What the server answers, as values."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Mapping

from .errors import ProtocolError


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule that decided: where it stands, in which scope, and for which type."""

    file: str | None
    line: int | None
    scope: str | None
    type: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with the message. docs/decide.md says what each value means."""

    action: Literal["retry", "redeliver", "dead_letter", "discard"]
    delay_ms: int
    queue: str | None
    reason: str | None
    note: str | None
    tier: str | None
    step: int | None
    of: int | None
    rule: Rule | None
    fallback: str | None
    generation: str

    @property
    def delay(self) -> float:
        """The delay in seconds."""
        return self.delay_ms / 1000


@dataclass(frozen=True, slots=True)
class PolicyState:
    """Which policy is in force, and whether its files are what runs."""

    generation: str
    files: tuple[str, ...]
    stale: bool
    problem: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a verdict is what it is; docs/explain.md has the shape of what isn't text."""

    text: str
    rule: Rule | None
    candidates: list[Any]
    timeline: Mapping[str, Any]


def _map(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ProtocolError(f"the server answered {type(value).__name__} where a map is due")
    return value


def rule_of(value: object) -> Rule | None:
    if value is None:
        return None
    read = _map(value)
    return Rule(read.get("file"), read.get("line"), read.get("scope"), read.get("type"))


def verdict_of(value: object) -> Verdict:
    read = _map(value)
    try:
        return Verdict(
            read["action"], read["delay_ms"], read["queue"], read["reason"], read["note"], read["tier"],
            read["step"], read["of"], rule_of(read["rule"]), read["fallback"], read["generation"])
    except KeyError as missing:
        raise ProtocolError(f"a verdict without the key {missing}") from None


def state_of(value: object) -> PolicyState:
    read = _map(value)
    try:
        return PolicyState(read["generation"], tuple(read["files"]), read["stale"], read["problem"])
    except KeyError as missing:
        raise ProtocolError(f"the policy's state without the key {missing}") from None


def explanation_of(value: object) -> Explanation:
    read = _map(value)
    try:
        return Explanation(read["text"], rule_of(read["rule"]), read["candidates"], read["timeline"])
    except KeyError as missing:
        raise ProtocolError(f"an explanation without the key {missing}") from None
