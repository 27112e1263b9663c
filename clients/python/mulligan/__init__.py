"""Verdicts on failed messages, from a policy that `mulligan serve` runs; and workers of `mulligan run`.

    from mulligan import Policy

    with Policy("/run/user/1000/verdicts.sock") as policy:
        verdict = policy.decide(error, consumer="Shipping", attempt=2)

Policy is for threads, AsyncPolicy for asyncio; Worker handles messages. README.md has the rest.
"""
from .aio import AsyncPolicy
from .delivery import Delivery
from .errors import AnswerTimeout, ConnectionLost, MulliganError, ProtocolError, RequestError
from .failures import Facts, Message, failure_of
from .policy import Policy
from .verdicts import Explanation, PolicyState, Rule, Verdict
from .worker import Worker

__all__ = [
    "AnswerTimeout",
    "AsyncPolicy",
    "ConnectionLost",
    "Delivery",
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
    "Worker",
    "failure_of",
]
