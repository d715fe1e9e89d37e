"""When a worker may start a process, after some that ended before they were ready."""

from __future__ import annotations

from .._repeats import Backoff
from .._wire import now

#: After this many failed starts in a row, another one is not worth trying.
STARTS_MAX = 5
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0


class Starts:
    """The failed starts of a worker in a row. Its owner's lock guards it."""

    def __init__(self) -> None:
        self.ready()

    def ready(self) -> None:
        """Note that a process is ready."""
        self._failed = 0
        self._at = 0.0
        self._backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    @property
    def in_a_row(self) -> int:
        """How many have failed. Each process notes it when it is started."""
        return self._failed

    def failed(self, at_start: int) -> None:
        """Note that a process ended before it was ready: those started together count as one."""
        if at_start == self._failed:
            self._failed += 1
            self._at = now() + self._backoff.pause()

    def may_start(self, starting: int) -> bool:
        """Say whether one may be started now, while so many are starting."""
        # Once one has failed, a single one finds out whether all would.
        return self._failed == 0 or (starting == 0 and now() >= self._at)
