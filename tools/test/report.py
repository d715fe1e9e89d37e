"""What a run has done: failures at once, a line of progress, a summary with the slowest tests."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import processes

#: How often the line of progress is drawn in a terminal, and printed elsewhere, in seconds.
DRAWN_EVERY, PRINTED_EVERY = 10.0, 60.0
#: How much of a failure's output is shown, in lines: the first and the last ones.
SHOWN_FIRST, SHOWN_LAST = 100, 300
#: How many steps and tests the line of progress names.
NAMED = 3


@dataclass
class Report:
    """Shared by all lanes of a run."""

    #: Holds the durations of the last whole run that passed. None for a run of parts.
    times: Optional[Path]
    started: float = field(default_factory=time.monotonic)
    #: Tests that were found and have not ended. Those in Python are found as they begin.
    to_run: set[str] = field(default_factory=set)
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Seconds by name, of tests and of steps.
    tests: dict[str, float] = field(default_factory=dict)
    steps: dict[str, float] = field(default_factory=dict)
    #: How long the programs of a step computed, in seconds.
    computed: dict[str, float] = field(default_factory=dict)
    _running: dict[str, float] = field(default_factory=dict)
    _last: dict[str, dict[str, float]] = field(default_factory=dict)
    _drawn: float = field(default_factory=time.monotonic)
    _line: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self.times is not None:
                self._last = json.loads(self.times.read_text())

    # What happens.

    def begin(self, step: str) -> None:
        """Note that a step begins."""
        with self._lock:
            self._running[step] = time.monotonic()
            # One thread waits for all programs of a step.
            self.computed[step] = -processes.spent()
            self.say(f"== {step}")

    def end(self, step: str, problem: str = "", output: str = "") -> None:
        """Note that a step has ended; it failed if there is a problem."""
        with self._lock:
            began = self._running.pop(step, time.monotonic())
            self.steps[step] = time.monotonic() - began
            self.computed[step] = self.computed.get(step, 0.0) + processes.spent()
            if problem:
                self.fail(step, problem, output)
            else:
                self.say(f"== {step}: passed in {length(self.steps[step])}")

    def begin_test(self, name: str) -> None:
        """Note that a test begins."""
        with self._lock:
            self._running[name] = time.monotonic()

    def end_test(self, name: str, seconds: float) -> None:
        """Note that a test has passed."""
        with self._lock:
            self.forget(name)
            self.tests[name] = seconds
            self.passed += 1
            self.to_run.discard(name)

    def fail_test(self, name: str, seconds: float, problem: str, output: str) -> None:
        """Note that a test has failed."""
        with self._lock:
            self.forget(name)
            self.tests[name] = seconds
            self.to_run.discard(name)
            self.fail(name, problem, output)

    def forget(self, name: str) -> None:
        """Note that a test was broken off."""
        with self._lock:
            self._running.pop(name, None)

    def fail(self, name: str, problem: str, output: str = "") -> None:
        """Show a failure now, with its output."""
        with self._lock:
            self.failed.append(f"{name}: {problem}")
            self.say(f"\nFAILED  {name}: {problem}\n{cut(output)}")

    def say(self, text: str) -> None:
        """Print a text above the line of progress."""
        with self._lock:
            self._clear()
            print(text, flush=True)

    # The line of progress.

    def tick(self) -> None:
        """Draw the line of progress when its time has come."""
        with self._lock:
            now, terminal = time.monotonic(), sys.stdout.isatty()
            if now - self._drawn < (DRAWN_EVERY if terminal else PRINTED_EVERY):
                return
            self._drawn = now
            self._clear()
            if terminal:
                # A line that wraps could not be wiped.
                columns = shutil.get_terminal_size().columns
                print(self._progress()[: columns - 1], end="", flush=True)
                self._line = True
            else:
                print(self._progress(), flush=True)

    def _progress(self) -> str:
        seconds = time.monotonic() - self.started
        tests = f"{self.passed} passed"
        if self.failed:
            tests += f", {len(self.failed)} FAILED"
        if self.to_run:
            tests += f", {len(self.to_run)} to run"
        whole = self._last.get("run", {}).get("seconds")
        left = f", about {length(max(whole - seconds, 0))} left" if whole else ""
        oldest = sorted(self._running, key=self._running.__getitem__)
        doing = ", ".join(oldest[:NAMED])
        if len(oldest) > NAMED:
            doing += f" and {len(oldest) - NAMED} more"
        return f"-- {length(seconds)}{left}: {tests}; running {doing or 'nothing'}"

    def _clear(self) -> None:
        if self._line:
            print("\r\x1b[K", end="")
            self._line = False

    # The end.

    def finish(self, slowest: int) -> None:
        """Print the summary. Keeps the durations for the next run."""
        seconds = time.monotonic() - self.started
        with self._lock:
            self._clear()
            if self.tests:
                print("\n== the slowest tests")
                _table(self.tests, slowest)
            whole = length(sum(self.computed.values()))
            print(f"\n== the steps, and how long each computed; all {whole} of a processor")
            computed = {n: f"{n:<44}{self.computed[n]:8.1f} s" for n in self.steps}
            _table({computed[name]: seconds for name, seconds in self.steps.items()})
            if self.failed:
                print(f"\n== {len(self.failed)} failures; their output is above")
                for failure in self.failed:
                    print(f"FAILED  {failure}")
            print()
            for note in self.notes:
                print(f"test: {note}")
            verdict = "FAILED" if self.failed else "all passed"
            print(f"test: {verdict}: {self.passed} tests in {length(seconds)}", flush=True)
        if self.times is not None and not self.failed:
            kept = {"run": {"seconds": seconds}, "tests": self.tests, "steps": self.steps}
            self.times.write_text(json.dumps(kept, indent=1))


def _table(seconds: dict[str, float], most: Optional[int] = None) -> None:
    for name, took in sorted(seconds.items(), key=lambda item: -item[1])[:most]:
        print(f"{took:8.1f} s  {name}")


def length(seconds: float) -> str:
    """Write a length of time as people do."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def cut(output: str) -> str:
    """Leave out the middle of a long output."""
    lines = output.rstrip().splitlines()
    too_many = len(lines) - SHOWN_FIRST - SHOWN_LAST
    if too_many <= 0:
        return "\n".join(lines)
    left_out = f"[… {too_many} lines left out …]"
    return "\n".join([*lines[:SHOWN_FIRST], left_out, *lines[-SHOWN_LAST:]])
