"""Compares what the inbox got with what the diary says that it must have got."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from .diary import Entry, Reminder, reminder

#: A notifier reads the table, then sends. If the meeting is moved between the two, the message
#: comes this long after the move at most; otherwise a dead notifier's job was sent without a look.
UNDER_WAY_S = 2.0

Line = dict[str, Any]


@dataclass
class Downtime:
    """A part was down, from its kill until it worked again."""

    part: str
    since: float
    until: float = math.inf


@dataclass
class Verdict:
    """What was found. A list that is to be empty says what is wrong."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    wanted: int = 0
    """Reminders that had to come, and those that could."""
    under_way: int = 0
    """Sent in the moment in which the meeting was moved or deleted."""
    repeats_after_death: int = 0
    """Refused by the inbox: the first sender was killed before it had settled."""
    repeats_told_twice: int = 0
    """Refused by the inbox: a second job, since the API told one wish twice."""
    repeats_late_heartbeat: int = 0
    """Refused by the inbox: the first sender lived, and had no server for 0.8 of its ttl."""
    undisturbed: list[float] = field(default_factory=list)
    restarted: list[float] = field(default_factory=list)
    died: list[float] = field(default_factory=list)


class Judge:
    """Goes through the diary and the inbox once."""

    def __init__(
        self,
        histories: dict[tuple[str, str], list[Entry]],
        lines: list[Line],
        five_minutes: float,
        downtimes: list[Downtime],
        deaths: dict[int, float],
        late_heartbeats: set[str],
    ) -> None:
        self.found = Verdict()
        self._five_minutes = five_minutes
        self._downtimes = downtimes
        self._deaths = deaths
        self._late_heartbeats = late_heartbeats
        self._stored: dict[Reminder, list[Line]] = {}
        for line in lines:
            if line["fate"] == "stored":
                self._stored.setdefault(reminder(line), []).append(line)
        for name, history in histories.items():
            self._judge(name, history)
        for (meeting, who, _), left in self._stored.items():
            if left:
                self.found.stale.append(f"{who} of meeting {meeting} at a time that it never had")
        self._explain([line for line in lines if line["fate"] != "left"])

    def _judge(self, name: tuple[str, str], history: list[Entry]) -> None:
        found = self.found
        for at, entry in enumerate(history):
            if entry.starts is None:
                continue
            following = history[at + 1] if at + 1 < len(history) else None
            came = self._came((*name, entry.starts), entry, history[at + 1 :])
            due = entry.starts - self._five_minutes
            what = f"{name[1]} of meeting {name[0]}"
            if not came:
                # A reminder that is due right before the change may be cancelled.
                due_before = following is None or due < following.asked - UNDER_WAY_S
                if due_before and not (following and following.after_death):
                    found.lost.append(what)
                continue
            found.wanted += 1
            first = came[0]["at"]
            if len(came) > 1:
                found.doubled.append(what)
            # The clock of the machine is read in microseconds by one and in floats by the other.
            if first < due - 0.001:
                found.early.append(f"{what}, by {due - first:.3f} s")
            if following is not None and first > following.answered:
                if due > following.answered or first > following.answered + UNDER_WAY_S:
                    late = first - following.answered
                    change = "deleted" if following.starts is None else "moved"
                    found.stale.append(f"{what}, {late:.3f} s after it was {change}")
                else:
                    found.under_way += 1
            self._measure(came[0], max(due, entry.asked))

    def _came(self, which: Reminder, entry: Entry, later: list[Entry]) -> list[Line]:
        """List what came for an entry. A meeting may be moved to eleven, and back to ten."""
        again = min((each.asked for each in later if each.starts == entry.starts), default=math.inf)
        lines = self._stored.pop(which, [])
        self._stored[which] = [line for line in lines if line["at"] >= again]
        return [line for line in lines if line["at"] < again]

    def _measure(self, line: Line, due: float) -> None:
        late = max(0.0, line["at"] - due)
        down = [down for down in self._downtimes if down.since < line["at"] and due < down.until]
        if line["lost"] > 0:
            self.found.died.append(late)
        elif down:
            self.found.restarted.append(late)
        else:
            self.found.undisturbed.append(late)

    def _explain(self, lines: list[Line]) -> None:
        """Find out why the inbox was sent what it had: a live notifier never sends twice."""
        senders: dict[str, list[Line]] = {}
        for line in lines:
            before = senders.setdefault(line["key"], [])
            if before:
                same = [each for each in before if each["job"] == line["job"]]
                died = self._deaths.get(same[-1]["pid"], math.inf) if same else math.inf
                if not same:
                    self.found.repeats_told_twice += 1
                # The inbox may have stored a message right after its sender had died.
                elif died <= line["at"]:
                    self.found.repeats_after_death += 1
                elif line["job"] in self._late_heartbeats:
                    self.found.repeats_late_heartbeat += 1
                else:
                    what = f"{line['key']} by {same[-1]['pid']}, by {line['pid']} again"
                    self.found.unexplained.append(what)
            before.append(line)


def histogram(columns: dict[str, list[float]]) -> list[str]:
    """Draw how late reminders came, a column for each kind."""
    edges = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, math.inf]
    width = 24
    rows = [" " * 12 + "".join(f"{name:<{width + 8}}" for name in columns)]
    counts = []
    for late in columns.values():
        counts.append([0] * len(edges))
        for each in late:
            counts[-1][next(i for i, edge in enumerate(edges) if each < edge)] += 1
    last = max((i for row in counts for i, count in enumerate(row) if count), default=0)
    for i in range(last + 1):
        name = f"< {text_of(edges[i])}" if edges[i] < math.inf else f">= {text_of(edges[i - 1])}"
        row = f"{name:>10}  "
        for column in counts:
            bar = "#" * math.ceil(width * column[i] / max(max(column), 1))
            row += f"{column[i]:>5} {bar:<{width + 2}}"
        rows.append(row.rstrip())
    for name, share in (("p50", 0.5), ("p99", 0.99), ("worst", 1.0)):
        row = f"{name:>10}  "
        for late in columns.values():
            order = sorted(late)
            found = order[max(0, math.ceil(share * len(order)) - 1)] if order else None
            row += f"{'-' if found is None else text_of(found):<{width + 8}}"
        rows.append(row.rstrip())
    return rows


def text_of(seconds: float) -> str:
    """Write a duration for people."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"
