"""When a request is sent again, and how long to wait before: decided without I/O or sleeping.

A lost answer, a broken connection and most 503s are repeated with the same request until
`retry_for` seconds have passed since the first of them. A call that waits for something is repeated
until its own deadline, if that is later. Where there are several servers, each is tried once before
the first pause. Every request that changes something carries ids made by the client, so the server
answers a repeat as it answered the first.
"""

from __future__ import annotations

import random
from typing import Optional

from ._addresses import Address
from ._lost import ConnectionLost, NoServerFound
from ._servers import GATEWAY, Servers
from ._wire import Request, Response, is_json, now
from .errors import OutcomeUnknown, TenureError, UnexpectedAnswer, Unreachable, from_problem

#: Repeated: the server says that nothing happened, or that the same call again is safe.
_PASSING = {
    "draining",
    "not_owner",
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


def leaves_doubt(error: TenureError) -> bool:
    """Say whether a call that was answered with this error may have been carried out."""
    of_gateway = isinstance(error, UnexpectedAnswer) and error.status in GATEWAY
    return error.code == "outcome_unknown" or of_gateway


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

    def __init__(self, request: Request, retry_for: float, servers: Servers) -> None:
        self._request = request
        self._servers = servers
        #: Where the last sending went, and where those went since the last pause.
        self._at: Optional[Address] = None
        self._tried: set[Address] = set()
        own = retry_for if request.retry_for is None else request.retry_for
        self._retry_for = max(own, request.lasts)
        self._backoff = Backoff()
        #: When the first sending failed; the patience counts from here, not from the first
        #: sending, since a call may wait at the server for a minute.
        self._failing_since: Optional[float] = None
        self._may_have_happened = False
        self._idle_losses = 0
        self.first_sent = now()
        self.sent = self.first_sent

    @property
    def request(self) -> Request:
        """The request as it is sent next."""
        has_failed = self._failing_since is not None or self._may_have_happened
        return (has_failed and self._request.at_once) or self._request

    def begin(self, address: Address) -> None:
        """Note that a sending begins, and where it goes."""
        self._at = address
        self._tried.add(address)
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
        return self._pause(self._lost_error(fault))

    def _lost_error(self, fault: ConnectionLost) -> TenureError:
        if self._may_have_happened:
            return OutcomeUnknown(
                f"{self._where()}: the answer was lost ({fault}); the call may have been carried "
                "out",
                hint="make the same call again, with the same ids: nothing is done twice",
            )
        if isinstance(fault, NoServerFound):
            return Unreachable(str(fault))
        if self._servers.are_several:
            return Unreachable(
                f"no server can be reached at {self._servers.shown}; the last fault, of "
                f"{self._where()}: {fault}",
                hint="is `tenure serve` running there, and are the addresses right?",
            )
        return Unreachable(
            f"{self._where()}: {fault}",
            hint="is `tenure serve` running there, and is the address right?",
        )

    def _where(self) -> str:
        """Name the server of the last sending, for messages."""
        return self._servers.shown if self._at is None else self._at.url

    def answered(self, status: int, data: object, retry_after: Optional[float]) -> Optional[float]:
        """Return None if the answer counts, otherwise how long to wait before the next sending."""
        if status < 400:
            if not is_json(data):
                raise UnexpectedAnswer(
                    f"what answered at {self._where()} is no Tenure server: its answer is no JSON",
                    status=status,
                )
            return None
        error = from_problem(status, data, retry_after)
        in_doubt = leaves_doubt(error)
        if error.code not in _PASSING and not in_doubt:
            return None
        self._may_have_happened |= in_doubt
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
        # Another server is asked at once, whatever this one said of when to come again.
        if self._servers.at not in (None, *self._tried):
            return 0.0
        left = self._failing_since + self._retry_for - moment
        if left <= 0:
            raise error
        pause = self._backoff.pause()
        if error.retry_after is not None:
            # A server that asks for longer than there is patience gets no further call.
            if error.retry_after > left:
                raise error
            pause = max(pause, error.retry_after)
        self._tried.clear()
        return min(pause, left)
