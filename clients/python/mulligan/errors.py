"""What can go wrong between this library and `mulligan serve`."""
from __future__ import annotations


class MulliganError(Exception):
    """The base of all that this library raises."""


class RequestError(MulliganError):
    """The server can't answer this request: the failure is none, or too large. Others are answered."""


class ProtocolError(MulliganError):
    """The other side doesn't speak this protocol, or not this version of it."""

    def __init__(self, message: str, versions: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.versions = versions


class ConnectionLost(MulliganError, ConnectionError):
    """There is no connection to the server, or it ended before the answer."""


class AnswerTimeout(MulliganError, TimeoutError):
    """The server didn't answer in time."""
