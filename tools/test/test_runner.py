"""What a run does with tests that fail, hang and crash, however it was started."""

from __future__ import annotations

import contextlib
import io
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import cargo
import plan
import processes
from cargo import Program
from report import Report

HERE = Path(__file__).parent
#: A program that does with each test what its name says, and reports it as libtest does.
FAKE = """
#!%s
import os, sys, time
names = sys.argv[sys.argv.index("--exact") + 1:]
def say(event, name, **more):
    more = "".join(f', "{key}": "{value}"' for key, value in more.items())
    # A child of the test has said something without the end of a line.
    line = f'noise{{ "type": "test", "event": "{event}", "name": "{name}"{more} }}\\n'
    os.write(1, line.encode())
for name in names:
    say("started", name)
    if "hangs" in name:
        time.sleep(60)
    if "crashes" in name:
        print("the last words", file=sys.stderr, flush=True)
        os.abort()
    if "fails" in name:
        say("failed", name, stdout="what it said")
    else:
        say("ok", name)
sys.exit(101 if any("fails" in name for name in names) else 0)
"""


class OfAProgram(unittest.TestCase):
    """A program of tests is run to its end."""

    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program = Path(self.folder.name) / "program"
        self.program.write_text(FAKE.lstrip() % sys.executable)
        self.program.chmod(0o755)

    def run_tests(self, *tests: str) -> tuple[Report, str]:
        """Run these tests, each for at most six seconds."""
        report = Report(None)
        program = Program("crate", "it", str(self.program), Path(self.folder.name), list(tests))
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            cargo.Run(report, program, 8, {}, 6.0).whole()
        return report, shown.getvalue()

    def test_all_pass(self) -> None:
        report, shown = self.run_tests("a", "b")
        self.assertEqual((report.passed, report.failed), (2, []))
        self.assertIn("== crate it: passed in", shown)

    def test_a_failure_is_shown_at_once_and_the_rest_is_run(self) -> None:
        report, shown = self.run_tests("a_fails", "b")
        self.assertEqual(report.passed, 1)
        self.assertIn("FAILED  crate it: a_fails: failed\nwhat it said", shown)

    def test_a_test_that_hangs_is_ended_and_named_and_the_rest_is_run(self) -> None:
        report, _ = self.run_tests("a", "b_hangs", "c")
        self.assertEqual(report.passed, 2)
        self.assertIn("crate it: b_hangs: ended because it took longer than 6 s", report.failed)

    def test_a_crashed_test_is_named_with_its_output_and_the_rest_run(self) -> None:
        report, shown = self.run_tests("a", "b_crashes", "c")
        self.assertEqual(report.passed, 2)
        self.assertIn("b_crashes: its program ended with -6 while it ran\nthe last words", shown)

    def test_a_program_that_runs_none_of_its_tests_has_failed(self) -> None:
        self.program.write_text("#!/bin/sh\nexit 0\n")
        report, _ = self.run_tests("a")
        self.assertEqual(report.failed, ["crate it: 1 tests were not run"])


class OfABuild(unittest.TestCase):
    """A build says what cargo says of it."""

    def build(self, messages: Sequence[Mapping[str, Any]], code: int) -> tuple[bool, Report, str]:
        """Build by a cargo that says this; whether there are programs, and what is shown."""
        report = Report(None)
        with tempfile.TemporaryDirectory() as folder:
            said = "\n".join(map(json.dumps, messages))
            program = Path(folder) / "cargo"
            metadata = """[ "$1" = metadata ] && { echo '{"packages": []}'; exit; }"""
            program.write_text(f"#!/bin/sh\n{metadata}\ncat <<'END'\n{said}\nEND\nexit {code}\n")
            program.chmod(0o755)
            path = {"PATH": f"{folder}:{os.environ['PATH']}"}
            shown = io.StringIO()
            with mock.patch.dict(os.environ, path), contextlib.redirect_stdout(shown):
                programs = cargo.build(report, [], queue.SimpleQueue(), self.server)
        return programs is not None, report, shown.getvalue()

    def setUp(self) -> None:
        self.server = threading.Event()

    def message(self, level: str) -> Mapping[str, Any]:
        """What cargo says of a problem."""
        text = {"level": level, "rendered": f"one {level} here\n"}
        return {"reason": "compiler-message", "message": text}

    def test_a_warning_is_shown_once_and_the_tests_are_run(self) -> None:
        built, report, shown = self.build([self.message("warning"), self.message("warning")], 0)
        self.assertEqual((built, report.failed), (True, ["lints: clippy warns"]))
        self.assertEqual(shown.count("one warning here"), 1)

    def test_an_error_ends_the_build(self) -> None:
        built, report, shown = self.build([self.message("error")], 101)
        self.assertEqual((built, report.failed), (False, ["build: cargo ended with 101"]))
        self.assertIn("one error here", shown)

    def test_the_server_is_announced_when_it_is_built(self) -> None:
        artifact = {"reason": "compiler-artifact", "profile": {"test": False}}
        self.build([{**artifact, "executable": None}], 0)
        self.assertFalse(self.server.is_set())
        self.build([{**artifact, "executable": str(cargo.SERVER)}], 0)
        self.assertTrue(self.server.is_set())

    def test_an_error_ends_the_tests_beside_the_build(self) -> None:
        steps, out, codes = plan.Plan(Report(None), [], long=False), subprocess.DEVNULL, []

        def python() -> None:
            child = processes.start(["sleep", "60"], HERE, stdout=out, stderr=out)
            codes.append(processes.wait(child))

        def build(*_: object) -> None:
            steps.server.set()

        with (
            mock.patch.object(processes, "stopping", threading.Event()) as stopping,
            mock.patch.object(cargo, "build", build),
            mock.patch.multiple(steps, step=lambda *_: True, tools=lambda: None, python=python),
        ):
            work = threading.Thread(target=steps.everything)
            work.start()
            self.assertTrue(stopping.wait(10))
            processes.kill_all()
            work.join(10)
        self.assertFalse(work.is_alive())
        self.assertEqual(codes, [-signal.SIGTERM])

    def test_a_crate_is_linted_with_its_tests_or_else_alone(self) -> None:
        names = cargo.linting()["TENURE_LINTED_BY_TESTS"].split(",")
        self.assertIn("tenure_core", names)
        self.assertNotIn("tenure_conformance", names)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("rustc", "clippy-driver"):
                program = Path(folder) / name
                program.write_text(f"#!/bin/sh\necho {name} $*\n")
                program.chmod(0o755)
            rustc = f"{folder}/rustc"
            env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
            env["TENURE_LINTED_BY_TESTS"] = "one"
            for words, compiled in [
                (["--crate-name", "one"], "rustc --crate-name one"),
                (
                    ["--crate-name", "one", "--test"],
                    f"clippy-driver {rustc} --crate-name one --test",
                ),
                (["--crate-name", "two"], f"clippy-driver {rustc} --crate-name two"),
                (["-vV"], f"clippy-driver {rustc} -vV"),
            ]:
                said = subprocess.check_output([cargo.LINT_ONCE, rustc, *words], env=env, text=True)
                self.assertEqual(said.strip(), compiled)


class OfARun(unittest.TestCase):
    """A run is the same however it was started."""

    def test_what_it_starts_has_no_ignored_signals(self) -> None:
        script = """
            import subprocess, sys, processes
            from pathlib import Path
            processes.take_signals()
            child = processes.start(
                ["grep", "SigIgn", "/proc/self/status"], Path("/"), stdout=None, stderr=None)
            sys.exit(processes.wait(child))
        """
        python = [sys.executable, "-c", textwrap.dedent(script)]
        # As of a job in the background, and under nohup.
        ignoring = ["sh", "-c", 'trap "" INT HUP QUIT; exec "$@"', "sh", *python]
        said = subprocess.run(ignoring, cwd=HERE, capture_output=True, text=True, check=True).stdout
        self.assertEqual(int(said.split()[1], 16), 0, said)

    @unittest.skipUnless(Path("/proc/self/autogroup").exists(), "this system has no autogroups")
    def test_a_nice_program_is_nice_to_other_sessions(self) -> None:
        read, write = os.pipe()
        with open(read) as said:
            child = processes.start(
                ["sh", "-c", "until grep 'nice 7' /proc/$$/autogroup; do :; done"],
                HERE,
                stdout=write,
                stderr=write,
                nice=7,
            )
            os.close(write)
            late = threading.Timer(20, child.kill)
            late.start()
            processes.wait(child)
            late.cancel()
            self.assertIn("nice 7", said.read())

    def test_told_to_end_it_ends_what_it_started(self) -> None:
        script = """
            import subprocess, sys, processes
            from pathlib import Path
            processes.take_signals()
            # It goes into a session of its own, as a server may.
            words = ["sh", "-c", "setsid sleep 300 & echo $!; wait"]
            child = processes.start(words, Path("/"), stdout=None, stderr=None)
            processes.stopping.wait()
            processes.kill_all()
        """
        python = [sys.executable, "-c", textwrap.dedent(script)]
        run = subprocess.Popen(python, cwd=HERE, stdout=subprocess.PIPE, text=True)
        self.assertIsNotNone(run.stdout)
        assert run.stdout is not None
        grandchild = int(run.stdout.readline())
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(30), 0)
        run.stdout.close()
        end = time.monotonic() + 10
        while Path(f"/proc/{grandchild}").exists() and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(Path(f"/proc/{grandchild}").exists())

    def test_a_part_is_a_crate_or_a_path(self) -> None:
        os.chdir(cargo.ROOT)
        for name in ("core", "tenure-core", "crates/core", "crates/core/src/lib.rs"):
            self.assertEqual(plan.part(name), "core")
        self.assertEqual((plan.package("core"), plan.package("client")), ("tenure-core", "tenure"))
        self.assertEqual(plan.part("clients/python/src"), "clients/python")
        self.assertEqual(plan.part("clients/typescript"), "clients/typescript")
        for name in ("nonsense", "docs", "crates"):
            with self.assertRaises(plan.Unknown):
                plan.part(name)


if __name__ == "__main__":
    unittest.main()
