"""Outcomes that are to be settled, in their order, until each is answered or it is too late."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Optional

from .._text import logger
from .._wire import Response
from ..durations import read_moment
from ..tasks import final
from .written import RELEASED, Written, write

if TYPE_CHECKING:
    import logging

log: logging.Logger = logger("tenure.worker")

#: Seconds for which a settle is repeated, or the ttl of its lease if that is longer.
_SETTLE_FOR_S = 60.0
#: The most settles of a call, and about the most bytes of them: the server takes 8 MiB.
_BATCH = 200
_BATCH_BYTES = 4 * 1024 * 1024
#: Seconds after which a run is settled again whose pushes found a full queue.
_FULL_S = 1.0
_QUEUE_FULL = "queue_full"
#: The call itself is refused, so the same call again would be.
_WRONG = (400, 413, 422)
#: The moment of a snooze, in what is written of it.
_UNTIL = re.compile(rb',"until":"([^"]+)"')
#: The size of an item beside its outcome.
_AROUND_BYTES = 256


@dataclass
class Settle:
    """One outcome."""

    written: Written
    lease: str
    job: str
    since: float
    #: The server could not read it once.
    wrong_form: bool = False
    #: A call with it and others was refused, and nothing said which of them was wrong.
    alone: bool = False
    #: When it goes again, if a queue that it pushes to had no room.
    again: float = 0.0


class Settles:
    """The outcomes of one worker. Its owner's lock guards it."""

    def __init__(self, ttl: float) -> None:
        self._patience = max(_SETTLE_FOR_S, ttl)
        self._waiting: deque[Settle] = deque()
        #: Those whose pushes found a full queue. They must not hold up the others, so each goes
        #: again at its time.
        self._full: deque[Settle] = deque()
        #: Those of outcomes that wait or are on their way.
        self._leases: set[str] = set()
        #: How many are taken out and not answered.
        self._sending = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, lease: str, job: str, written: Written, now: float) -> None:
        """Add an outcome, unless the lease has one already."""
        if lease not in self._leases:
            self._waiting.append(Settle(written, lease, job, now))
            self._leases.add(lease)

    def has(self, lease: str) -> bool:
        """Say whether the outcome of a lease waits or is on its way."""
        return lease in self._leases

    def first_since(self) -> Optional[float]:
        """Return since when the first one waits."""
        return self._waiting[0].since if self._waiting else None

    def all_answered(self) -> bool:
        """Say whether nothing waits and nothing is on its way."""
        return not self._waiting and not self._full and self._sending == 0

    def again_at(self) -> Optional[float]:
        """Return when the first one goes again that found a full queue."""
        return self._full[0].again if self._full else None

    def again(self, now: float) -> bool:
        """Let those go again whose time has come; say whether there are some."""
        found = False
        while self._full and self._full[0].again <= now:
            self._waiting.append(self._full.popleft())
            found = True
        return found

    def take(self, now: float) -> list[Settle]:
        """Take out as many as go in one call."""
        self.again(now)
        taken: list[Settle] = []
        size = 0
        while self._waiting and len(taken) < _BATCH:
            size += len(self._waiting[0].written.rest) + _AROUND_BYTES
            if taken and (size > _BATCH_BYTES or taken[0].alone or self._waiting[0].alone):
                break
            taken.append(self._waiting.popleft())
        self._sending += len(taken)
        return taken

    def answered(
        self, settles: list[Settle], answers: list[tuple[bool, Any]], now: float
    ) -> list[Settle]:
        """Take in the answers of a call; return the settles that are over.

        One whose pushes found a full queue is not: an earlier item of the call took the room. Its
        lease is held, and nothing is lost yet.
        """
        codes = {each.lease: code for each, (_, code) in zip(settles, answers)}
        full = [each for each in settles if codes.get(each.lease) == _QUEUE_FULL]
        over = [each for each in settles if codes.get(each.lease) != _QUEUE_FULL]
        for each in full:
            each.again = now + _FULL_S
        self._sending -= len(over)
        self._leases.difference_update(each.lease for each in over)
        return over + self.put_back(full, now)

    def put_back(self, settles: list[Settle], now: float) -> list[Settle]:
        """Keep what was not answered; return those for which it is too late."""
        self._sending -= len(settles)
        late = [each for each in settles if now - each.since > self._patience]
        kept = [each for each in settles if now - each.since <= self._patience]
        self._full.extend(each for each in kept if each.again > now)
        self._waiting.extendleft(each for each in reversed(kept) if each.again <= now)
        self._leases.difference_update(each.lease for each in late)
        for each in late:
            log.error(
                "job %s: its outcome %s was not answered for %.0f s; it may be lost, and "
                "the job may run again",
                each.job,
                each.written.outcome,
                now - each.since,
            )
        return late


def tell_refused(settles: list[Settle], answers: list[tuple[bool, Any]]) -> None:
    """Log the outcomes that count no more, and why."""
    for each, (counts, code) in zip(settles, answers):
        if not counts and code != _QUEUE_FULL:
            log.warning(
                "job %s: its outcome %s counts no more: %s",
                each.job,
                each.written.outcome,
                code,
            )


def repair(response: Response, settles: list[Settle], now: float) -> bool:
    """Replace an outcome that the server cannot read by one that it can; False if none is wrong."""
    problem = response.data if isinstance(response.data, dict) else {}
    index, pointer = problem.get("index"), problem.get("pointer")
    # With an index and a place the refusal is that of one item, whatever its code: 409 for a key
    # that is held, 429 for a full queue. The others would be refused with it again and again.
    of_one = isinstance(index, int) and pointer is not None and response.status < 500
    if not (of_one or response.status in _WRONG):
        return False
    if not str(pointer or "/settle/").startswith("/settle/"):
        return False
    if not isinstance(index, int):
        # The call as a whole is refused: the others must not wait for the one that is wrong.
        if len(settles) > 1:
            for each in settles:
                each.alone = True
            return True
        index = 0
    if index >= len(settles):
        return False
    wrong = settles[index]
    if response.status == 429:
        wrong.alone = True
        wrong.again = now + _FULL_S
        return True
    if problem.get("code") == "out_of_bounds" and _is_over(wrong.written):
        # Its moment came before the settle did, as after an outage.
        rest = _UNTIL.sub(b',"for":"100ms"', wrong.written.rest, count=1)
        wrong.written = replace(wrong.written, rest=rest)
        return True
    log.error("job %s: its outcome is refused: %s", wrong.job, problem.get("detail"))
    refused = write(final(f"its outcome was refused: {problem.get('detail')}"))
    wrong.written = RELEASED if wrong.wrong_form else refused
    wrong.wrong_form = True
    return True


def _is_over(written: Written) -> bool:
    """Say whether the moment of a snooze is over, and not too far ahead: both have one code."""
    until = _UNTIL.match(written.rest) if written.outcome == "snoozed" else None
    if until is None:
        return False
    try:
        moment = read_moment(until[1].decode())
    except ValueError:
        return False
    return moment is not None and moment - datetime.now(timezone.utc) < timedelta(days=1)
