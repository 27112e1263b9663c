"""Verdicts on failed messages, from a policy that `mulligan serve` runs.

    from mulligan import Policy

    with Policy("/run/user/1000/verdicts.sock") as policy:
        verdict = policy.decide(error, consumer="Shipping", attempt=2)

Policy is for threads, AsyncPolicy for asyncio. README.md has the rest.
"""
from .aio import AsyncPolicy
from .errors import AnswerTimeout, ConnectionLost, MulliganError, ProtocolError, RequestError
from .failures import Facts, Message, failure_of
from .policy import Policy
from .verdicts import Explanation, PolicyState, Rule, Verdict

__all__ = [
    "AnswerTimeout",
    "AsyncPolicy",
    "ConnectionLost",
    "Explanation",
    "Facts",
    "Message",
    "MulliganError",
    "Policy",
    "PolicyState",
    "ProtocolError",
    "RequestError",
    "Rule",
    "Verdict",
    "failure_of",
]
