"""Sendings that no server answered: transports raise them, `_repeats` decides what follows."""

from __future__ import annotations


class ConnectionLost(Exception):
    """A sending of a request was not answered."""

    def __init__(self, why: str, *, sent: bool, was_idle: bool = False) -> None:
        super().__init__(why)
        #: True if the server may have read the request.
        self.sent = sent
        #: True if it was sent on a kept connection that the server had closed meanwhile.
        self.was_idle = was_idle


class NoServerFound(ConnectionLost):
    """No server could be looked up, so nothing was sent. Its text is the whole message."""

    def __init__(self, why: str) -> None:
        super().__init__(why, sent=False)
