"""Reads the log of the sites and finds what was wrong.

It knows the table and the rules of the schedules, and asks neither Tenure nor the collectors, with
one exception: a collector says which of its reports came too late to count.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
import statistics
from collections import Counter
from pathlib import Path
from typing import NamedTuple, Optional

# If a collector dies this soon after an answer, its report may have died with it.
UNREPORTED = 5.0


def first_moment(source: str, every: int, after: float) -> float:
    """The first moment of an interval from `after` on, by docs/reference/schedules.md."""
    phase = int.from_bytes(hashlib.sha1(source.encode()).digest()[:4], "big") * every >> 32
    return phase + math.ceil((after - phase) / every) * every


class Answer(NamedTuple):
    """What a site has answered last: when, to which collector, and with which status."""

    at: float
    collector: str
    status: str


class Wait(NamedTuple):
    """A visit that has begun, or is still to begin at the end of the run."""

    rule: str
    due: float
    begun: float

    @property
    def late(self) -> float:
        """Seconds beyond the moment at which it was due."""
        return self.begun - self.due


class Source:
    """What the judge knows of one source."""

    __slots__ = (
        "answered",
        "due",
        "every",
        "interrupted",
        "removed",
        "retimed",
        "rule",
        "surely",
        "there",
    )

    def __init__(self, rule: str, every: int, due: float, surely: float):
        self.rule = rule
        self.every = every  # seconds; changes with the table
        self.due = due  # no visit may begin earlier
        self.surely = surely  # due at this moment at the latest: from here on it waits
        self.there: list[str] = []  # the collectors that visit it now, one entry for each visit
        self.answered: Optional[Answer] = None
        self.interrupted: Optional[float] = None  # since when a cut-off visit is to be repeated
        self.retimed: Optional[float] = None  # when the sync that changed its interval ended
        self.removed: Optional[float] = None  # when the sync that removed it ended


class Judge:
    """Follows the log, line by line."""

    def __init__(self, log: Path):
        self._log, self._read = log, 0
        self.sources: dict[str, Source] = {}
        self.deaths: dict[str, float] = {}  # by collector, as the run kills them
        self.refused: set[str] = set()  # sources of which a report came too late
        self.begun = 0
        self.cut = 0
        self.overlaps: list[tuple[str, str, str]] = []  # the source and both collectors
        self.after_removal: list[str] = []
        self.waits: list[Wait] = []
        self.repeated_after: list[float] = []  # seconds from the cut to the repeat
        # Of news: seconds from an answer to the next visit, by the status of the answer.
        self.gaps: dict[str, list[float]] = {"200": [], "304": [], "500": []}
        self._early: list[tuple[str, float, Optional[Answer]]] = []
        self._per_second: Counter[int] = Counter()

    def table(self, path: Path, began: float, ended: float) -> None:
        """Reads the table as a sync found it that began and ended at these moments."""
        with sqlite3.connect(path) as table:
            rows = table.execute("SELECT id, rule, every FROM sources").fetchall()
        for name, rule, every in rows:
            first, last = (first_moment(name, every, each) for each in (began, ended))
            known = self.sources.get(name)
            if known is None:
                self.sources[name] = Source(rule, every, first, last)
            elif known.every != every:
                known.every, known.retimed = every, ended
                # While the sync is under way the old timing may still make a job.
                known.due, known.surely = min(known.due, first), last
        for name in self.sources.keys() - {name for name, _, _ in rows}:
            self.sources[name].removed = ended

    def follow(self) -> None:
        """Reads what was written since the last time."""
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            log.seek(self._read)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.decode().splitlines():
            letter, moment, name, collector, *status = line.split()
            source, at = self.sources[name], float(moment)
            if letter == "B":
                self._begin(source, name, at, collector)
            elif letter == "E":
                self._answer(source, name, Answer(at, collector, status[0]))
            else:
                source.there.remove(collector)
                source.interrupted = source.interrupted or at
                self.cut += 1

    def _begin(self, source: Source, name: str, at: float, collector: str) -> None:
        self.begun += 1
        self._per_second[int(at)] += 1
        for other in source.there:
            self.overlaps.append((name, other, collector))
        source.there.append(collector)
        if at < source.due:
            self._early.append((name, source.due - at, source.answered))
        elif source.removed and source.due > source.removed:
            # The retry of a job from before the removal is no new moment.
            if not (source.answered and source.answered.status == "500"):
                self.after_removal.append(name)
        elif source.rule == "news" and source.answered and not source.interrupted:
            self.gaps[source.answered.status].append(at - source.answered.at)
        self.waits.append(Wait(source.rule, min(source.surely, at), at))
        if source.interrupted:
            self.repeated_after.append(at - source.interrupted)
            source.interrupted = None

    def _answer(self, source: Source, name: str, answer: Answer) -> None:
        source.there.remove(answer.collector)
        source.answered = answer
        if answer.status == "500":
            source.due = source.surely = answer.at + 2
            return
        # Half of the interval after a change, otherwise one and a half; rounded up to the second.
        every, changed = source.every, answer.status == "200"
        next_in = max(1, every // 2) if changed else every * 3 // 2
        source.due = source.surely = math.ceil(answer.at + next_in)
        if source.retimed:
            # The report on a job of the old timing moves nothing: the new moments count.
            own = first_moment(name, every, answer.at)
            source.due, source.surely = min(source.due, own), max(source.surely, own)
            if answer.at > source.retimed + 5:
                source.retimed = None

    def _unreported(self, name: str, answered: Optional[Answer]) -> bool:
        if answered is None:
            return False
        died = self.deaths.get(answered.collector, math.inf)
        return name in self.refused or died - answered.at < UNREPORTED

    @property
    def early(self) -> list[str]:
        """Visits before their time, except the repeats of visits whose report was lost."""
        return [
            f"{name} {early:.2f} s early"
            for name, early, answered in self._early
            if not self._unreported(name, answered)
        ]

    def interrupted(self) -> int:
        """How many sources have a visit that died and was not repeated so far."""
        return sum(bool(source.interrupted) for source in self.sources.values())

    @property
    def unreported(self) -> int:
        """Visits that were repeated since their collector died between answer and report."""
        return len(self._early) - len(self.early)

    def left(self, rules: set[str], until: float) -> list[str]:
        """The sources that were due by then, or were cut off, and have not been visited since."""
        return [
            name
            for name, source in self.sources.items()
            if source.interrupted
            or (
                source.rule in rules
                and not source.removed
                and not source.there
                and source.surely < until
            )
        ]

    def all_waits(self, now: float) -> list[Wait]:
        """The waits of all visits, and those of sources that still wait now."""
        return self.waits + [
            Wait(source.rule, source.surely, now)
            for source in self.sources.values()
            if source.surely < now and not source.there and not source.removed
        ]

    def visits_per_second(self, first: float, last: float) -> tuple[float, int]:
        """The mean and the most of the whole seconds between these moments."""
        seconds = [self._per_second[each] for each in range(int(first) + 1, int(last))] or [0]
        return statistics.fmean(seconds), max(seconds)
