"""Builds the test programs and runs them, test by test, by the events that libtest reports."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Optional

import processes
from events import Tests
from report import Report

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
#: Tests in other languages start it.
SERVER = TARGET / "debug" / "tenure"
#: The tests of `./test --long` alone are ignored, and say this, a colon and why.
LONG = "long"
#: libtest reports events with durations only with unstable options; see
#: docs/decisions/166-tests-are-run-by-their-events.md.
UNSTABLE = {"RUSTC_BOOTSTRAP": "1"}
#: Compiles our own crates, with lints: a check beside the build would read all again.
LINT_ONCE = Path(__file__).parent / "lint_once"
BUILD, LINTS = "build", "lints"
EVENTS = ["-Z", "unstable-options", "--format", "json"]


@dataclass(frozen=True)
class Program:
    """A program of tests, as cargo has built it."""

    crate: str
    kind: str
    executable: str
    folder: Path
    tests: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """How a report names it."""
        return self.crate if self.kind == "lib" else f"{self.crate} {self.kind}"

    def split(self, prefixes: Sequence[str]) -> tuple[Program, Program]:
        """Split it into the tests whose names begin so, and all others."""
        own = [test for test in self.tests if test.startswith(tuple(prefixes))]
        for prefix in prefixes:
            # Elsewhere some tests of processes are missing.
            is_there = any(test.startswith(prefix) for test in own)
            assert is_there or sys.platform != "linux", f"{prefix} is no test of {self.name}"
        rest = [test for test in self.tests if test not in own]
        return replace(self, tests=own), replace(self, tests=rest)


def environment() -> dict[str, str]:
    """What cargo gives to the programs that it runs: `[env]` of its configuration."""
    text = (ROOT / ".cargo" / "config.toml").read_text()
    section = re.search(r"^\[env\]$(.*?)(?=^\[|\Z)", text, re.M | re.S)
    return dict(re.findall(r'^(\w+) = "(.*)"$', section[1] if section else "", re.M))


def linting() -> dict[str, str]:
    """Have cargo compile our own crates with lints, each once.

    Where cargo cannot read its manifests, the build says why.
    """
    words = ["cargo", "metadata", "--no-deps", "--format-version=1"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    packages = json.loads(said)["packages"] if said else []
    targets = [target for package in packages for target in package["targets"]]
    tested = [target for target in targets if target["test"] and target["kind"] != ["test"]]
    names = sorted(target["name"].replace("-", "_") for target in tested)
    return {
        "RUSTC_WORKSPACE_WRAPPER": str(LINT_ONCE),
        "TENURE_LINTED_BY_TESTS": ",".join(names),
    }


def build(
    report: Report,
    chosen: Sequence[str],
    units: queue.SimpleQueue[Optional[Program]],
    server: threading.Event,
) -> Optional[list[Program]]:
    """Build all test programs and examples of these packages. None if that failed.

    Programs of unit tests go into a queue, each as soon as it is built; `server` is set as soon as
    the server is. What clippy warns of fails the lints, and the tests are run nevertheless.
    """
    report.begin(BUILD)
    words = ["cargo", "test", "--locked", *chosen, "--tests", "--examples", "--no-run"]
    words.append("--message-format=json")
    programs: list[Program] = []
    warnings: list[str] = []
    errors: list[str] = []
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        child = processes.start(words, ROOT, env=linting(), stdout=subprocess.PIPE, stderr=said)
        assert child.stdout is not None
        for message in map(json.loads, child.stdout):
            if message["reason"] == "compiler-message":
                found = message["message"]
                is_error = found["level"].startswith("error")
                (errors if is_error else warnings).append(found["rendered"])
            elif message.get("executable") == str(SERVER):
                server.set()
            elif (program := _built(message)) is not None:
                (units.put if program.kind == "lib" else programs.append)(program)
        code = processes.wait(child)
        output = "".join([*errors, processes.read(said)])
    report.end(BUILD, f"cargo ended with {code}" if code else "", output)
    if code:
        return None
    report.begin(LINTS)
    # A crate is compiled twice, and rustc warns both times.
    shown = "".join(dict.fromkeys(warnings))
    report.end(LINTS, "clippy warns" if warnings else "", shown)
    return programs


def _built(message: Mapping[str, Any]) -> Optional[Program]:
    """Read cargo's message of something that was built."""
    if message["reason"] != "compiler-artifact" or not message["executable"]:
        return None
    if not message["profile"]["test"]:
        return None
    folder, target = Path(message["manifest_path"]).parent, message["target"]
    kind = target["name"] if target["kind"] == ["test"] else target["kind"][0]
    return Program(folder.name, kind, message["executable"], folder)


def find_tests(programs: Sequence[Program], long: bool) -> None:
    """Ask each program for its tests; those of `./test --long` only for that."""
    for program in programs:
        listed = subprocess.run(
            [program.executable, "--list", *EVENTS],
            cwd=program.folder,
            env={**os.environ, **UNSTABLE},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        events = list(filter(None, map(_event, listed.stdout.splitlines())))
        tests = [event for event in events if event["event"] == "discovered"]
        whole = [event for event in events if event["event"] == "completed"]
        if [event["total"] for event in whole] != [len(tests)]:
            raise AssertionError(
                f"{program.name} lists its tests in another form than is known here"
            )
        for event in tests:
            why = (event.get("ignore_message") or "").split(":")[0]
            if not event["ignore"] or (long and why == LONG):
                program.tests.append(event["name"])


def _event(line: str) -> Optional[dict[str, Any]]:
    """Read an event of libtest. What a test's children print may stand before it."""
    begin = line.find('{ "type":')
    if begin < 0:
        return None
    try:
        event: dict[str, Any] = json.loads(line[begin:])
    except ValueError:
        return None
    return event


class Run:
    """A run of one program.

    A test that takes too long is ended, and the program started again for the rest.
    """

    def __init__(
        self,
        report: Report,
        program: Program,
        threads: int,
        env: Mapping[str, str],
        most: float,
    ) -> None:
        self.report, self.program, self.threads = report, program, threads
        of_cargo = {**environment(), "CARGO_MANIFEST_DIR": str(program.folder)}
        self.env = {**of_cargo, **env, **UNSTABLE}
        self.tests = Tests(report, program.name, most)

    def whole(self) -> None:
        """Run all its tests."""
        name, tests = self.program.name, set(self.program.tests)
        self.report.begin(name)
        before = -1
        while tests > self.tests.ended and before < len(self.tests.ended):
            before = len(self.tests.ended)
            self._once(sorted(tests - self.tests.ended))
            if processes.stopping.is_set():
                return
        if tests > self.tests.ended:
            self.report.end(name, f"{len(tests - self.tests.ended)} tests were not run")
        else:
            self.report.end(name, "" if self.tests.passed else "tests failed; they are above")

    def _once(self, left: Sequence[str]) -> None:
        words = [self.program.executable, *EVENTS, "--report-time"]
        words += [f"--test-threads={self.threads}", "--include-ignored", "--exact", *left]
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            child = processes.start(
                words,
                self.program.folder,
                env=self.env,
                stdout=subprocess.PIPE,
                stderr=said,
            )
            assert child.stdout is not None
            with self.tests.watched(child), child.stdout:
                for event in filter(None, map(_event, child.stdout)):
                    self.tests.happened(event)
                code = processes.wait(child)
            output = processes.read(said)
        self.tests.program_ended(code, output)
        if code != 0 and self.tests.passed and not processes.stopping.is_set():
            self.tests.passed = False
            self.report.fail(self.program.name, f"it ended with {code}", output)
