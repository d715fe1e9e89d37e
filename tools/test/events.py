"""Follows tests that run by their events, and ends those that take too long."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import processes
from report import Report


def shown(program: str, test: str) -> str:
    """How a report names a test of a program."""
    return f"{program}: {test}"


class Tests:
    """The tests of one program, in the form of libtest's events."""

    def __init__(self, report: Report, program: str, most: float) -> None:
        self.report, self.program = report, program
        #: How long a test may take, in seconds.
        self.most = most
        #: The tests that have ended.
        self.ended: set[str] = set()
        self.passed = True
        self._began: dict[str, float] = {}
        self._lock = threading.Lock()

    def happened(self, event: dict[str, Any]) -> None:
        """Note an event."""
        if event["type"] != "test":
            return
        name, what = event["name"], event["event"]
        label, seconds = shown(self.program, name), float(event.get("exec_time", 0.0))
        if what == "started":
            with self._lock:
                self._began[name] = time.monotonic()
            self.report.begin_test(label)
        elif what in ("ok", "failed"):
            with self._lock:
                self._began.pop(name, None)
            self.ended.add(name)
            if what == "ok":
                self.report.end_test(label, seconds)
            else:
                self.passed = False
                problem = event.get("message") or "failed"
                self.report.fail_test(label, seconds, problem, event.get("stdout", ""))

    @contextlib.contextmanager
    def watched(self, child: subprocess.Popen[str]) -> Iterator[None]:
        """End the program when one of its tests takes too long."""
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(child, done))
        watch.start()
        try:
            yield
        finally:
            done.set()
            watch.join()

    def _watch(self, child: subprocess.Popen[str], done: threading.Event) -> None:
        while not done.wait(1.0):
            with self._lock:
                oldest = min(self._began.values(), default=None)
            if oldest is not None and time.monotonic() - oldest > self.most:
                processes.kill(child)
                return

    def program_ended(self, code: int, output: str) -> None:
        """Blame the tests that ran: those that took too long, or else all of them."""
        now = time.monotonic()
        ran = [(name, now - began) for name, began in self._began.items()]
        self._began.clear()
        if processes.stopping.is_set():
            return
        late = [(name, seconds) for name, seconds in ran if seconds > self.most]
        for name, seconds in late or ran:
            problem = f"its program ended with {code} while it ran"
            if late:
                problem = f"ended because it took longer than {self.most:.0f} s"
            self.passed = False
            self.ended.add(name)
            self.report.fail_test(shown(self.program, name), seconds, problem, output)
        for name, _ in ran if late else []:
            self.report.forget(shown(self.program, name))
