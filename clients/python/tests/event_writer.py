"""Tells `./test` when each test begins and when it has ended, as libtest does in Rust."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest


class EventWriter:
    """Writes a line for each event to a file descriptor."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._seconds: dict[str, float] = {}
        self._failures: dict[str, list[str]] = {}

    def _write(self, event: str, name: str, **more: Any) -> None:
        # In the order of libtest: the reader looks for the type first.
        line = json.dumps({"type": "test", "event": event, "name": name, **more})
        os.write(self._to, line.encode() + b"\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write("started", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        self._seconds[name] = self._seconds.get(name, 0.0) + report.duration
        if report.failed:
            text = "\n".join([report.longreprtext, *(text for _, text in report.sections)])
            self._failures.setdefault(name, []).append(text)
        if report.when == "teardown":
            seconds, texts = self._seconds.pop(name), self._failures.pop(name, [])
            event = "failed" if texts else "ok"
            self._write(event, name, exec_time=seconds, stdout="\n".join(texts))


def pytest_configure(config: pytest.Config) -> None:
    to = os.environ.get("TENURE_TEST_EVENTS")
    # A worker of xdist reports to its controller.
    if to is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(EventWriter(int(to)))
