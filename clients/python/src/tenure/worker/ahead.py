"""Jobs that are leased before a slot is free for them: how many, and for how long.

While runs take next to no time, a worker that asks only when a slot is free spends its time waiting
for answers. So it leases as many more as will start within some milliseconds, by what the last runs
took, and each starts when a run ends. A job that waits here could run elsewhere meanwhile: none
waits for longer than `LONGEST_WAIT_S`, and leasing ahead ends for a while where runs are longer or
where jobs that wait here hold something scarce.
"""

from __future__ import annotations

from collections import deque
from typing import Optional

from ..records import LeaseRecord

#: A job that has waited here for this long is given back.
LONGEST_WAIT_S = 0.015
#: As many are leased as start within this, as a rule.
_USUAL_WAIT_S = 0.005
#: Runs that take longer than this on average have nothing leased ahead of them.
_SHORT_S = 0.02
#: The most that wait here: for each that may run at once, and in all.
_MOST_FOR_EACH = 8
_MOST = 64
#: The average after leasing ahead was wrong; some forty short runs bring it back.
_LONG_S = 0.4
_WEIGHT = 0.1


class Ahead:
    """Granted jobs that wait for a slot. Starts as one that allows none."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        #: How long runs take, the last ones counting most.
        self._usual_s = _LONG_S
        #: Halved where jobs waited for too long, and one more with each answer: many handlers on
        #: one processor take turns, which the time of a single run does not tell.
        self._limit = _MOST
        #: Each with the moment at which its call was first sent, and until when it may wait.
        self._waiting: deque[tuple[LeaseRecord, float, float]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def ran(self, seconds: float) -> None:
        """Learn from a run."""
        self._usual_s += _WEIGHT * (min(seconds, _LONG_S * 10) - self._usual_s)

    @property
    def short(self) -> bool:
        """Say whether runs are short, so that jobs may wait here."""
        return self._usual_s < _SHORT_S

    def room(self) -> int:
        """Return how many more may wait here."""
        # A worker with one slot does one thing at a time: it is often asked for the order of jobs.
        if not self.short or self._concurrency == 1:
            return 0
        for_each = min(_USUAL_WAIT_S / max(self._usual_s, 1e-6), _MOST_FOR_EACH)
        return max(0, min(int(self._concurrency * for_each), self._limit) - len(self._waiting))

    def add(self, leases: list[LeaseRecord], sent: float, now: float) -> None:
        """Let granted jobs wait, in their order."""
        until = now + LONGEST_WAIT_S
        self._limit = min(self._limit + 1, _MOST)
        self._waiting.extend((lease, sent, until) for lease in leases)

    def next(self) -> Optional[tuple[LeaseRecord, float]]:
        """Take out the job that starts next, if there is one."""
        if not self._waiting:
            return None
        lease, sent, _ = self._waiting.popleft()
        return lease, sent

    def keeps_scarce(self) -> None:
        """Learn from jobs that wait here with limits or resources which others could use."""
        if any(lease.limits or lease.resources for lease, _, _ in self._waiting):
            self._usual_s = _LONG_S

    def overdue_at(self) -> Optional[float]:
        """Return when the first one has waited for too long."""
        return self._waiting[0][2] if self._waiting else None

    def overdue(self, now: float) -> list[LeaseRecord]:
        """Take out those that have waited for too long."""
        taken = []
        while self._waiting and self._waiting[0][2] <= now:
            taken.append(self._waiting.popleft()[0])
        if taken:
            self._usual_s = _LONG_S
            self._limit = max(1, self._limit // 2)
        return taken

    def take_all(self) -> list[LeaseRecord]:
        """Take out all."""
        taken = [lease for lease, _, _ in self._waiting]
        self._waiting.clear()
        return taken
