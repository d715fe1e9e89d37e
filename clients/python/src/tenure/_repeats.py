"""When a request is sent again, and how long to wait before: decided without I/O or sleeping.

A lost answer, a broken connection and most 503s are repeated with the same request until
`retry_for` seconds have passed since the first of them. Every request that changes something
carries ids made by the client, so the server answers a repeat as it answered the first.
"""

from __future__ import annotations

import random
from typing import Optional

from ._wire import Request, Response, is_json, now
from .errors import OutcomeUnknown, TenureError, UnexpectedAnswer, Unreachable, from_problem

#: Repeated: the server says that nothing happened, or that the same call again is safe.
_PASSING = {
    "draining",
    "store_unavailable",
    "overloaded",
    "outcome_unknown",
    "queue_full",
    "line_full",
    "store_full",
    "request_timeout",
}
#: The status of an answer, its body and its Retry-After.
Answer = tuple[int, object, Optional[float]]

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


class ConnectionLost(Exception):
    """A sending of a request was not answered."""

    def __init__(self, why: str, *, sent: bool, was_idle: bool = False) -> None:
        super().__init__(why)
        #: True if the server may have read the request.
        self.sent = sent
        #: True if it was sent on a kept connection that the server had closed meanwhile.
        self.was_idle = was_idle


class Backoff:
    """Pauses that double, each between half and the whole, so that clients do not march in step."""

    def __init__(self, first: float = _FIRST_PAUSE, longest: float = _LONGEST_PAUSE) -> None:
        self._next = first
        self._longest = longest

    def pause(self) -> float:
        """Return the next pause in seconds."""
        pause = self._next
        self._next = min(self._longest, pause * 2)
        return pause * (0.5 + random.random() / 2)


class Attempts:
    """All sendings of one request."""

    def __init__(self, request: Request, retry_for: float, origin: str) -> None:
        self._request = request
        #: The address without credentials, for messages.
        self._origin = origin
        self._retry_for = retry_for if request.retry_for is None else request.retry_for
        self._backoff = Backoff()
        #: When the first sending failed; the patience counts from here, not from the first
        #: sending, since a call may wait at the server for a minute.
        self._failing_since: Optional[float] = None
        self._may_have_happened = False
        self._idle_losses = 0
        self.first_sent = now()
        self.sent = self.first_sent

    def begin(self) -> None:
        """Note that a sending begins."""
        self.sent = now()

    def lost(self, fault: ConnectionLost) -> float:
        """Return how long to wait before the next sending; raise if there is to be none."""
        if fault.sent:
            self._may_have_happened = True
        # Most often an idle connection that the server closed: there is nothing to wait for. After
        # a restart every kept connection is such a one.
        if fault.was_idle and self._idle_losses < 16 and self._may_repeat():
            self._idle_losses += 1
            return 0.0
        return self._pause(
            OutcomeUnknown(
                f"{self._origin}: the answer was lost ({fault}); the call may have been carried "
                "out",
                hint="make the same call again, with the same ids: nothing is done twice",
            )
            if self._may_have_happened
            else Unreachable(
                f"{self._origin}: {fault}",
                hint="is `tenure serve` running there, and is the address right?",
            )
        )

    def answered(self, status: int, data: object, retry_after: Optional[float]) -> Optional[float]:
        """Return None if the answer counts, otherwise how long to wait before the next sending."""
        if status < 400:
            if not is_json(data):
                raise UnexpectedAnswer(
                    f"what answered at {self._origin} is no Tenure server: its answer is no JSON",
                    status=status,
                )
            return None
        error = from_problem(status, data, retry_after)
        gateway = status in (502, 503, 504) and isinstance(error, UnexpectedAnswer)
        if error.code not in _PASSING and not gateway:
            return None
        if error.code == "outcome_unknown" or gateway:
            self._may_have_happened = True
        return self._pause(error)

    def response(self, status: int, data: object, retry_after: Optional[float]) -> Response:
        """Wrap the answer that counts."""
        return Response(
            status, data, retry_after, self.first_sent, self.sent, self._may_have_happened
        )

    def _may_repeat(self) -> bool:
        return self._request.repeatable or not self._may_have_happened

    def _pause(self, error: TenureError) -> float:
        if not self._may_repeat():
            raise error
        moment = now()
        if self._failing_since is None:
            self._failing_since = moment
        left = self._failing_since + self._retry_for - moment
        if left <= 0:
            raise error
        pause = self._backoff.pause()
        if error.retry_after is not None:
            # A server that asks for longer than there is patience gets no further call.
            if error.retry_after > left:
                raise error
            pause = max(pause, error.retry_after)
        return min(pause, left)
