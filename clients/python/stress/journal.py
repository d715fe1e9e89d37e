"""What processes write down about their runs, and how it is read.

A line goes out in one write to a file that is opened for appending: a kill leaves it out or leaves
it whole. Moments are nanoseconds of the clock that all processes of a machine share and nobody
sets. A line is one of

    B MOMENT WHO FENCE JOB LIMITS ACCOUNTS    a run began
    T MOMENT FENCE                            it did a piece of its work
    E MOMENT FENCE OUTCOME                    it ended, and nothing of it is settled yet
    D MOMENT WHO                              a process was found dead
    K MOMENT WHAT                             something was killed
    P JOB WAY                                 the push of a job was answered
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

#: The environment variable that names the folder of the journals.
FOLDER = "STRESS_FOLDER"
#: The end of a run without a known end.
NEVER = 1 << 62


class Journal:
    """The file of one process."""

    def __init__(self, folder: Path, name: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(folder / name, flags, 0o600)

    def note(self, *words: object) -> None:
        """Add a line."""
        line = " ".join(str(word) or "-" for word in words) + "\n"
        if os.write(self._file, line.encode()) != len(line):
            raise OSError("a line could not be written whole")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


@dataclass
class Run:
    """One run of a job, by what its handler wrote."""

    job: str
    fence: int
    who: str
    begin: int
    limits: list[str]
    accounts: list[str]
    #: The moments of its pieces of work.
    touches: list[int] = field(default_factory=list)
    end: int = NEVER
    #: The outcome of the handler; None if its process died before.
    outcome: Optional[str] = None


@dataclass
class Told:
    """All that was written."""

    #: Jobs whose push was answered, and what their handler does.
    pushed: dict[str, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    dead: dict[str, int] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)

    def read(self, lines: Iterable[str]) -> None:
        """Read the lines of one file."""
        open_runs: dict[int, Run] = {}
        for line in lines:
            words = line.split(" ")
            if words[0] == "B":
                run = Run(
                    job=words[4],
                    fence=int(words[3]),
                    who=words[2],
                    begin=int(words[1]),
                    limits=_names(words[5]),
                    accounts=_names(words[6]),
                )
                open_runs[run.fence] = run
                self.runs.append(run)
            elif words[0] == "T":
                open_runs[int(words[2])].touches.append(int(words[1]))
            elif words[0] == "E":
                run = open_runs[int(words[2])]
                run.end, run.outcome = int(words[1]), words[3]
            elif words[0] == "D":
                self.dead[words[2]] = int(words[1])
            elif words[0] == "K":
                self.kills[words[2]] += 1
            elif words[0] == "P":
                self.pushed[words[1]] = words[2]
            else:
                raise ValueError(f"no such line: {line}")

    def bury(self) -> None:
        """End the runs whose process died in the middle of them."""
        for run in self.runs:
            if run.outcome is None:
                run.end = self.dead.get(run.who, NEVER)


def _names(word: str) -> list[str]:
    return [] if word == "-" else word.split(",")


def read(folder: Path) -> Told:
    """Read the files of all processes."""
    told = Told()
    for path in sorted(folder.iterdir()):
        # The text after the last end of a line was not written whole.
        told.read(path.read_text().split("\n")[:-1])
    told.bury()
    return told


def moment() -> int:
    """Return now, on the clock that all processes share."""
    return time.monotonic_ns()
