"""Which leases are held, when to extend them and when to stop: decided without I/O or a clock.

A lease is extended each ttl/5. Its work must have stopped 0.8 ttl after the last answered extend
was *sent* (before the first: after the lease call was sent), and at its deadline: then nobody else
can be granted the same while the work still goes on.

An extend that is not answered soon is sent again, and still waited for: on a busy machine or a bad
line each answer may take so long, and each of them counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Callable, Optional

from ._addresses import Address
from .durations import read_moment

#: Between two extends that are sent for the sake of reports; they are sent for all at once.
PROGRESS_EVERY_S = 0.9
EXTEND_AT = 0.2
STOP_AT = 0.8
#: An extend that is not answered within this part of the ttl is sent again.
TRY_FOR = 0.3
LONGEST_TRY_S = 10.0

LOST = "lost"
CANCELLED = "cancelled"
TIMED_OUT = "timed_out"

#: Called with a reason, on the thread that found out. It must not block.
OnStop = Callable[[str], None]


@dataclass
class Held:
    """One held lease."""

    lease: str
    ttl: float
    on_stop: OnStop = field(repr=False)
    #: When the last extend that was answered was sent.
    good_since: float
    next_extend: float
    #: By the holder's clock; None without a timeout.
    deadline: Optional[float] = None
    #: By the server's clock.
    deadline_at: Optional[datetime] = None
    #: When the last extend was sent, and where to, while it is not answered.
    asked_at: Optional[float] = None
    asked_of: Optional[Address] = None
    #: JSON that no extend has taken along yet.
    progress: Optional[bytes] = field(default=None, repr=False)
    #: Its holder was told to stop because it is lost: its right is over.
    stopped: bool = False
    cancel_told: bool = False
    timeout_told: bool = False
    #: Its work is done and its settle is not answered yet: it is extended, and never stopped.
    settling: bool = False
    #: Called when an extend was answered: the moment at which the work must stop now.
    on_good: Optional[Callable[[float], None]] = field(default=None, repr=False)
    #: Says whether its work goes on or its outcome is being sent. No lease is extended for nobody:
    #: a job whose run is gone, for whatever reason, must be able to run elsewhere.
    alive: Callable[[], bool] = field(default=lambda: True, repr=False)

    @property
    def stop_at(self) -> float:
        """When its work must have stopped, if no further extend is answered."""
        return self.good_since + STOP_AT * self.ttl

    @property
    def asks_from(self) -> float:
        """When the next extend may be sent: not while the answer to the last one is due."""
        if self.asked_at is None:
            return float("-inf")
        return self.asked_at + min(TRY_FOR * self.ttl, LONGEST_TRY_S)

    @property
    def reports(self) -> bool:
        """Say whether it has a report to send; one that comes last goes with the outcome."""
        return self.progress is not None and not self.settling

    def first_stop(self) -> float:
        """Return when its holder may have to be told something first, as things stand."""
        return self.stop_at if self.deadline is None else min(self.stop_at, self.deadline)


class Holdings:
    """The leases of one holder."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        #: Before this no extend is sent for the sake of reports alone.
        self._reports_from = float("-inf")

    def __len__(self) -> int:
        return len(self._held)

    def get(self, lease: str) -> Optional[Held]:
        """Return a held lease."""
        return self._held.get(lease)

    def add(self, held: Held) -> None:
        """Hold a lease."""
        self._held[held.lease] = held

    def remove(self, lease: str) -> None:
        """Hold it no more."""
        self._held.pop(lease, None)

    @staticmethod
    def settle(held: Held, now: float) -> None:
        """Note that its outcome is on its way.

        Whatever is extended or reported meanwhile would find no lease, and count as a lost one. So
        it is extended only if the settle is not answered soon, and no later than its holder must.
        """
        held.settling = True
        latest = held.good_since + (STOP_AT - EXTEND_AT) * held.ttl
        held.next_extend = max(held.next_extend, min(now + EXTEND_AT * held.ttl, latest))

    def due(self, now: float) -> list[Held]:
        """Return what is to be extended in one call now: all, if one is due."""
        live = [held for held in self._held.values() if not held.stopped and held.asks_from <= now]
        # Leases that are due soon go along: one call for all, whenever they were granted.
        due: list[Held] = []
        if any(held.next_extend <= now for held in live):
            due = [held for held in live if held.next_extend <= now + EXTEND_AT * held.ttl]
        elif now >= self._reports_from:
            due = [held for held in live if held.reports]
        if any(held.reports for held in due):
            self._reports_from = now + PROGRESS_EVERY_S
        return due

    @staticmethod
    def asks(due: Iterable[Held], now: float, of: Optional[Address]) -> list[Address]:
        """Note that an extend is sent; return who has not answered the one before."""
        silent: list[Address] = []
        for held in due:
            if held.asked_of is not None and held.asked_of not in silent:
                silent.append(held.asked_of)
            held.asked_at, held.asked_of = now, of
        return silent

    @staticmethod
    def still_due(due: Iterable[Held], now: float) -> list[Held]:
        """Return those that are to be extended also if their outcomes have come up meanwhile."""
        still: list[Held] = []
        for held in due:
            if held.settling and held.next_extend > now:
                held.asked_at = held.asked_of = None
            else:
                still.append(held)
        return still

    def next_extend(self) -> Optional[float]:
        """Return when the next extend is due."""
        moments = [
            max(
                min(held.next_extend, self._reports_from) if held.reports else held.next_extend,
                held.asks_from,
            )
            for held in self._held.values()
            if not held.stopped
        ]
        return min(moments, default=None)

    def next_stop(self) -> Optional[float]:
        """Return when the first holder is to be stopped, as things stand."""
        moments = [
            moment
            for held in self._held.values()
            if not held.stopped and not held.settling
            for moment in (held.stop_at, None if held.timeout_told else held.deadline)
            if moment is not None
        ]
        return min(moments, default=None)

    def answered(
        self, asked: Iterable[Held], sent: float, now: float, answer: Mapping[str, Any]
    ) -> list[tuple[Held, str]]:
        """Take in the answer of an extend; return who is to stop, and why."""
        stops: list[tuple[Held, str]] = []
        extended = {item["lease"]: item for item in answer.get("extended", ())}
        lost = set(answer.get("lost", ()))
        cancel = set(answer.get("cancel", ()))
        for held in asked:
            if self._held.get(held.lease) is not held or held.stopped:
                continue
            self._heard(held, sent)
            if held.lease in lost:
                # A lease whose settle was carried out is not held any more either.
                if not held.settling:
                    stops.append(self._stop(held))
                else:
                    held.next_extend = now + EXTEND_AT * held.ttl
                continue
            if held.lease not in extended:
                continue
            held.good_since = max(held.good_since, sent)
            held.next_extend = held.good_since + EXTEND_AT * held.ttl
            self._tighten(held, sent, extended[held.lease].get("expires_at"))
            if held.lease in cancel and not held.cancel_told and not held.settling:
                held.cancel_told = True
                stops.append((held, CANCELLED))
        return stops

    def failed(self, asked: Iterable[Held], sent: float, now: float) -> None:
        """Note that an extend was not answered: it is tried again soon."""
        for held in asked:
            # Unless a later one has been answered, or may be still.
            if self._heard(held, sent) and held.good_since <= sent:
                held.next_extend = now + EXTEND_AT * held.ttl / 4

    @staticmethod
    def _heard(held: Held, sent: float) -> bool:
        """Note the end of an extend; return whether no later one is under way."""
        if held.asked_at is not None and held.asked_at > sent:
            return False
        held.asked_at = held.asked_of = None
        return True

    def overdue(self, now: float) -> list[tuple[Held, str]]:
        """Return who must stop by the clock."""
        stops: list[tuple[Held, str]] = []
        for held in self._held.values():
            if held.stopped or held.settling:
                continue
            if now >= held.stop_at:
                stops.append(self._stop(held))
            elif held.deadline is not None and now >= held.deadline and not held.timeout_told:
                held.timeout_told = True
                stops.append((held, TIMED_OUT))
        return stops

    @staticmethod
    def _stop(held: Held) -> tuple[Held, str]:
        held.stopped = True
        return held, LOST

    @staticmethod
    def _tighten(held: Held, sent: float, expires_at: Any) -> None:
        # The server answered at `expires_at - ttl` by its clock, which was not before `sent`. So
        # the deadline is known without comparing clocks.
        expires = read_moment(expires_at)
        if held.deadline is None or held.deadline_at is None or expires is None:
            return
        left = (held.deadline_at - expires).total_seconds() + held.ttl
        held.deadline = min(held.deadline, sent + left)
