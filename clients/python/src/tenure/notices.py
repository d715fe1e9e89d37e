"""What a push says of itself on the logger `tenure`, where it would otherwise be silent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Optional

from ._text import logger
from ._wire import Response
from .durations import read_moment
from .errors import DuplicateJob

if TYPE_CHECKING:
    import logging

log: logging.Logger = logger("tenure")

#: Of how many queues is known that something was said of them.
_REMEMBERED = 1_000
#: What `on_duplicate` may be.
CHOICES = ("warn", "raise", "ignore")


def check_choice(on_duplicate: str) -> None:
    """Raise for a word that says nothing about duplicates."""
    if on_duplicate not in CHOICES:
        raise ValueError(f'on_duplicate is "warn", "raise" or "ignore", not {on_duplicate!r}')


class Notices:
    """Warns of swallowed jobs and of queues that nobody works, once for each queue of a client."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def read(
        self,
        body: Mapping[str, Any],
        answer: Mapping[str, Any],
        response: Response,
        on_duplicate: str = "warn",
    ) -> None:
        """Look at one answer of a push; raise `DuplicateJob` where the caller wants that."""
        queue = str(body.get("queue", "default"))
        if answer.get("workers") == 0 and self._first("workers", queue):
            log.warning(
                "queue %r has no worker: nobody asked for its jobs within the last minute; "
                "start one, or look at the name",
                queue,
            )
        # After a lost answer, the job that is there is the one of this push.
        if not answer.get("duplicate") or answer.get("replaced") or response.repeated:
            return
        if on_duplicate == "raise":
            raise DuplicateJob(
                f"{_what(body, answer)}: nothing was pushed",
                hint='push with another id or key, or say on_duplicate="ignore"',
                job=str(answer["id"]),
            )
        # A kept unique key does what its caller asked for; an id that is there may be a mistake.
        is_of_id = answer["id"] == body.get("id")
        if on_duplicate == "warn" and is_of_id and self._first("duplicate", queue):
            log.warning(
                '%s: nothing was pushed; on_duplicate="raise" makes it an error, "ignore" keeps '
                "quiet (said once for each queue)",
                _what(body, answer),
            )

    def _first(self, notice: str, queue: str) -> bool:
        if (notice, queue) in self._said:
            return False
        # A program may name queues without end. Saying something twice costs less than a leak.
        if len(self._said) >= _REMEMBERED:
            self._said.clear()
        self._said.add((notice, queue))
        return True


def _what(body: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """Say which job is in the way, and what became of it."""
    state = str(answer.get("state", "there"))
    ended = read_moment(answer.get("finished_at"))
    age = "" if ended is None else f" {ago(ended)} ago"
    if answer["id"] == body.get("id"):
        return f'job "{answer["id"]}" is there already ({state}{age})'
    unique = body.get("unique") or {}
    return f'job "{answer["id"]}" ({state}{age}) holds the unique key "{unique.get("key")}"'


def ago(then: datetime, now: Optional[datetime] = None) -> str:
    """Say how long ago a moment is, in its largest unit.

    >>> ago(datetime(2026, 1, 1, tzinfo=timezone.utc), datetime(2026, 1, 3, tzinfo=timezone.utc))
    '2d'
    """
    seconds = max(0, int(((now or datetime.now(timezone.utc)) - then).total_seconds()))
    for length, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
