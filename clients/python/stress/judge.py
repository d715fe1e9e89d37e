"""Judges a stress by what the handlers wrote down: it knows nothing of the worker's code.

A run holds its job, its limits and its accounts from its first line to its last one, or to the
moment at which its process was found dead. What the server shows is needed for two things only:
whether each job ended as it must, and when the server took a lease for lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Optional

from .journal import NEVER, Run, Told
from .plan import ENDS, cap_of

#: By how much the server's clock may be behind that of the journals. On Redis it begins as late as
#: the reply that makes the server the leader came; up to 100 ms of that are made up 1 ms a second.
_CLOCKS_NS = 150_000_000


@dataclass
class Shown:
    """A job as the server shows it at the end."""

    state: str
    #: In microseconds of the server's clock, as fences are: a fence is no earlier than its grant.
    finished_at: int = NEVER
    #: When the server took a lease of it for lost, by the clock of the journals.
    lost_at: list[int] = field(default_factory=list)


def faults(told: Told, shown: dict[str, Shown]) -> list[str]:
    """Return all that is wrong."""
    found: list[str] = []
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(told.runs, key=lambda run: run.begin):
        runs[run.job].append(run)
    for id, way in told.pushed.items():
        found += _job(id, way, runs.get(id, []), shown.get(id))
    for id in sorted({*shown, *runs} - set(told.pushed)):
        found.append(f"nobody pushed {id}")
    for id, own in runs.items():
        found += _in_turns(f"job {id}", own)
        found += _after_a_loss(id, own, shown.get(id))
    found += _caps(told.runs)
    for run in told.runs:
        found += _run(run)
    return found


def _job(id: str, way: str, runs: list[Run], shown: Optional[Shown]) -> list[str]:
    """Judge the end of a job whose push was answered."""
    if shown is None:
        return [f"job {id} is lost: the server does not know it"]
    must = ENDS[way]
    if shown.state != must:
        return [f"job {id} is {shown.state} and must be {must}"]
    if not runs or runs[-1].outcome != must:
        return [f"job {id} {must} without a last run that wrote so"]
    late = [run for run in runs if run.fence > shown.finished_at]
    return [f"job {id} was granted after it had ended"] if late else []


def _in_turns(what: str, runs: Iterable[Run]) -> list[str]:
    """Judge what one run at a time may hold: no two at once, and fences that grow."""
    found: list[str] = []
    before: Optional[Run] = None
    for run in sorted(runs, key=lambda run: (run.begin, run.end)):
        if before is not None:
            if run.begin < before.end:
                found.append(f"{what} was in two hands: fences {before.fence} and {run.fence}")
            if run.fence <= before.fence:
                found.append(f"a fence of {what} went back: {before.fence}, then {run.fence}")
            if any(touch > run.begin for touch in before.touches):
                found.append(f"{what} was touched under fence {before.fence} after {run.fence}")
        before = run
    return found


def _after_a_loss(id: str, runs: list[Run], shown: Optional[Shown]) -> list[str]:
    """Judge that a run was over when the server took its lease for lost."""
    found: list[str] = []
    for lost in shown.lost_at if shown is not None else ():
        for run in runs:
            if run.begin < lost and run.end > lost + _CLOCKS_NS:
                late = "for ever" if run.end == NEVER else f"{(run.end - lost) / 1e6:.0f} ms"
                found.append(f"job {id} went on under fence {run.fence} after its loss: {late}")
    return found


def most_at_once(runs: Iterable[Run]) -> dict[str, int]:
    """Return how many runs held each limit at most at one instant."""
    events: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for run in runs:
        for name in run.limits:
            # At one moment an end comes before a beginning.
            events[name] += [(run.begin, 1), (run.end, -1)]
    most: dict[str, int] = {}
    for name, changes in events.items():
        held = most[name] = 0
        for _, change in sorted(changes):
            held += change
            most[name] = max(most[name], held)
    return most


def _caps(runs: list[Run]) -> list[str]:
    """Judge limits and accounts over all runs."""
    found = [
        f"{most} runs held {name} at once; its cap is {cap_of(name)}"
        for name, most in most_at_once(runs).items()
        if most > cap_of(name)
    ]
    alone: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        for account in run.accounts:
            alone[f"account {account}"].append(run)
        for name in run.limits:
            if cap_of(name) == 1:
                alone[f"limit {name}"].append(run)
    for what, own in alone.items():
        found += _in_turns(what, own)
    return found


def _run(run: Run) -> list[str]:
    """Judge one run by itself."""
    if run.end == NEVER:
        return [f"job {run.job}: its run under fence {run.fence} has no end, and its process lived"]
    if any(touch > run.end for touch in run.touches):
        return [f"job {run.job} was touched under fence {run.fence} after that run's end"]
    return []
