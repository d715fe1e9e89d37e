"""Which steps a run has, and which of them run at once.

Most tests wait: for processes, for moments to come, for servers to die. So many of them run at
once, those of Python beside those of Rust. Unit tests compute: they run as soon as they are built.
Lints compute and are nice: they run beside the tests that otherwise run alone.
"""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Callable, Optional

import cargo
import needs
import processes
from cargo import ROOT, SERVER, TARGET, Program
from events import Tests, shown
from report import Report

#: How many programs of tests that wait run at once, and how many tests of each: one program has
#: few tests left while the other begins.
PROGRAMS, TESTS = 2, 3
#: These compute more. They come last, when those in Python have ended, and with fewer tests at
#: once: with all processors taken, tests miss the moments they wait for.
LAST = ["dashboard it", "engine it", "redis it"]
PROCESSORS = os.cpu_count() or 2
#: The program whose tests wait most comes first, when most is run beside it.
FIRST = "node it"
#: How nice steps are whose end nobody waits for.
LINTS_NICE = 19
#: A test that takes longer is ended, in seconds: in `./test`, and in `./test --long`.
TEST_MAX, LONG_TEST_MAX = 120.0, 3600.0
#: Tests that keep the processors busy for seconds, or measure time, have nothing but lints beside
#: them. By program, how their names begin.
ALONE = {
    "cli system": [
        "chaos::",
        "gauge::kills_never",
        "killed::sigkill::of_",
        "leap::",
        "linear::",
    ],
}
#: How many of them run at once.
ALONE_THREADS = 2
#: How much longer tests play in `./test --long`, by program: ten minutes, or as many histories as
#: take about as long.
LONGER = {
    "machine": {"TENURE_HISTORIES": "20000"},
    "engine it": {"TENURE_HISTORIES": "500", "TENURE_FLIPS": "500"},
    "election": {"TENURE_WALKS": "20000"},
    "python": {"TENURE_LINES_APART": "1", "TENURE_STRESS_SECONDS": "60"},
    "cli system": {
        "TENURE_CHAOS_SECONDS": "600",
        "TENURE_LINEAR_SECONDS": "600",
        "TENURE_GAUGE_SECONDS": "600",
    },
}
CRATES = ROOT / "crates"
PYTHON, TYPESCRIPT, EXAMPLES = "clients/python", "clients/typescript", "examples"
#: Programs that run one after the other, by one lane or by several.
Programs = deque[Program]


class Unknown(Exception):
    """A part of the project that has no tests of its own."""


def part(name: str) -> str:
    """Find the part that has this name or this file: a crate, or a folder outside `crates`."""
    crate = name.removeprefix("tenure-")
    if (CRATES / crate / "Cargo.toml").exists():
        return crate
    path = Path(name).resolve()
    if path.exists():
        if path.is_relative_to(CRATES) and path != CRATES:
            return path.relative_to(CRATES).parts[0]
        for folder in (PYTHON, TYPESCRIPT, EXAMPLES):
            if path.is_relative_to(ROOT / folder):
                return folder
    crates = ", ".join(sorted(folder.parent.name for folder in CRATES.glob("*/Cargo.toml")))
    folders = f"{PYTHON}, {TYPESCRIPT} and {EXAMPLES}"
    raise Unknown(f"{name!r} has no tests of its own; {crates}, {folders} have")


def package(crate: str) -> str:
    """Name the package in the folder of a crate."""
    manifest = (CRATES / crate / "Cargo.toml").read_text()
    named = re.search(r'^name = "(.+)"$', manifest, re.M)
    return named[1] if named else crate


def packages(crates: Sequence[str]) -> list[str]:
    """Choose these crates for a command of cargo; all if there are none."""
    chosen = [word for crate in crates for word in ("-p", package(crate))]
    return chosen or ["--workspace"]


class Plan:
    """The steps of a run."""

    def __init__(self, report: Report, without: Sequence[str], long: bool) -> None:
        self.report, self.long = report, long
        self.without: list[str] = []
        self.leave_out(without)
        self.test_max = LONG_TEST_MAX if long else TEST_MAX
        #: The server is built, or will not be.
        self.server = threading.Event()
        #: Runs unit tests, from the build on.
        self.units: list[threading.Thread] = []
        if long:
            # Tests look there whether their long form is wanted.
            os.environ["TENURE_LONG"] = "1"
        # A clean clone is built once: what would only make its next build faster takes as much
        # disk as all the rest. Cargo makes the folder in any case.
        incremental = TARGET / "debug" / "incremental"
        if not (incremental.exists() and any(incremental.iterdir())):
            os.environ["CARGO_INCREMENTAL"] = "0"
        needs.use_tools()

    # Whole runs.

    def everything(self) -> None:
        """Run all steps."""
        if not self.step("format", "cargo", "fmt", "--all", "--check"):
            return
        os.environ["TENURE_BIN"] = str(SERVER)
        tools = self.lane(self.tools)
        # They wait longest, and need no more than the server.
        python = self.lane(lambda: self.python_beside_build(tools))
        programs = self.built(packages([]))
        tools.join()
        if programs is None:
            python.join()
            return

        beside, alone = self.divided(programs)
        lanes = [lambda: self.run(beside, TESTS)] * PROGRAMS
        lanes.append(lambda: self.run_after(python, beside))
        self.at_once([self.units_end, *lanes, self.typescript_and_examples])
        self.at_once([lambda: self.run(alone, ALONE_THREADS), self.all_lints])
        if self.long:
            self.only_long()

    def crates_and_folders(self, parts: Sequence[str]) -> None:
        """Run the steps of these parts."""
        crates = [name for name in parts if name not in (PYTHON, TYPESCRIPT, EXAMPLES)]
        if crates:
            chosen = packages(crates)
            if not self.step("format", "cargo", "fmt", "--check", *chosen):
                return
            programs = self.built(chosen)
            if programs is None:
                return
            beside, alone = self.divided(programs)
            self.at_once([self.units_end, lambda: self.run(beside, TESTS)])
            self.run(alone, ALONE_THREADS)
        if PYTHON in parts and self.install_python():
            self.at_once([self.python, self.python_lints])
        if TYPESCRIPT in parts:
            self.typescript_lints()
            self.typescript("tests")
        if EXAMPLES in parts:
            self.examples()

    # Their steps.

    def tools(self) -> None:
        """Test these programs, and install what tests need."""
        self.step("tools/test", sys.executable, "-m", "unittest", "discover", "-s", "tools/test")
        self.install()

    def install(self) -> None:
        """Install what is missing; what cannot be installed is left out."""
        unused = {"browser", "python", "typescript"} & set(self.without)
        if not self.long:
            unused.add("long")
        wanted = needs.needs(unused)
        needs.install_uv()
        self.leave_out(needs.make_sure(self.report, wanted, self.without))
        if "typescript" not in self.without:
            self.step(
                "install the tools of the TypeScript package",
                TYPESCRIPT + "/check",
                "install",
                *(["runtimes"] if self.long else []),
            )
        if "python" not in self.without:
            self.install_python()
            words = ["examples/check", "--install", "--without", ",".join(self.without)]
            words += ["--all"] if self.long else []
            self.step("install the packages of the examples", *words)

    def install_python(self) -> bool:
        """Install the Python package, and the packages that its check needs."""
        return self.step("install the Python package", PYTHON + "/check", "install")

    def leave_out(self, names: Sequence[str]) -> None:
        """Leave out what needs these: tests look into the environment whether they are to run."""
        self.without += names
        os.environ["TENURE_WITHOUT"] = ",".join(self.without)

    def built(self, chosen: Sequence[str]) -> Optional[list[Program]]:
        """Build all, and run unit tests as soon as they are built. None if it was not built."""
        units: queue.SimpleQueue[Optional[Program]] = queue.SimpleQueue()
        self.units.append(self.lane(lambda: self.run_units(units)))
        programs = None
        try:
            programs = cargo.build(self.report, chosen, units, self.server)
        finally:
            units.put(None)
            if programs is None:
                self.units_end()
                # Tests in Python may run by now.
                processes.stopping.set()
            self.server.set()
        return programs

    def units_end(self) -> None:
        """Wait for unit tests: those of `./test --long` take minutes longer than the build."""
        for lane in self.units:
            lane.join()

    def python_beside_build(self, tools: threading.Thread) -> None:
        """Test the Python package as soon as it is installed and there is a server."""
        self.server.wait()
        tools.join()
        self.python()

    def run_units(self, units: queue.SimpleQueue[Optional[Program]]) -> None:
        """Run programs of unit tests as they come."""
        while (program := units.get()) is not None:
            self.find([program])
            self.run(deque([program]), PROCESSORS)

    def find(self, programs: Sequence[Program]) -> None:
        """Find the tests of programs."""
        cargo.find_tests(programs, self.long)
        for program in programs:
            self.report.to_run |= {shown(program.name, test) for test in program.tests}

    def divided(self, programs: Sequence[Program]) -> tuple[Programs, Programs]:
        """Divide the tests: those that may run beside others, and those that run alone."""
        self.find(programs)
        beside: Programs = deque()
        alone: Programs = deque()
        for program in sorted(programs, key=lambda p: (p.name != FIRST, p.name in LAST)):
            own, rest = program.split(ALONE.get(program.name, []))
            alone.append(own)
            beside.append(rest)
        return beside, alone

    def run(self, programs: Programs, threads: int) -> None:
        """Run programs, one after the other, with so many tests at once in each.

        Several lanes may take them from one queue.
        """
        while True:
            try:
                program = programs.popleft()
            except IndexError:
                return
            env = LONGER.get(program.name, {}) if self.long else {}
            at_once = min(threads, PROCESSORS) if program.name in LAST else threads
            if program.tests and not processes.stopping.is_set():
                cargo.Run(self.report, program, at_once, env, self.test_max).whole()

    def run_after(self, lane: threading.Thread, programs: Programs) -> None:
        """Run programs when this lane has ended, in its place."""
        lane.join()
        self.run(programs, TESTS)

    def all_lints(self) -> None:
        """Run the examples of the documentation and lints, one after the other."""
        words = ["cargo", "test", "--locked", "--workspace", "--doc"]
        self.step("documentation tests", *words, env=cargo.linting(), nice=LINTS_NICE)
        if "python" not in self.without:
            self.python_lints()
        self.typescript_lints()

    def python_lints(self) -> None:
        """Check the form and the types of everything in Python."""
        self.step("Python: lints", PYTHON + "/check", "lints", nice=LINTS_NICE)

    def typescript_and_examples(self) -> None:
        """Run the tests of the TypeScript package, then the examples."""
        # Its tests on a second Node take as long again.
        self.typescript("tests" if self.long else "here")
        if "python" not in self.without:
            self.examples()

    def typescript_lints(self) -> None:
        """Check the form and the types of the TypeScript package."""
        if "typescript" not in self.without:
            self.step("TypeScript: lints", TYPESCRIPT + "/check", "lints", nice=LINTS_NICE)

    def typescript(self, part: str) -> None:
        """Test the TypeScript package, and the archive that npm makes of it."""
        if "typescript" not in self.without:
            self.step(TYPESCRIPT, TYPESCRIPT + "/check", part)

    def python(self) -> None:
        """Test the Python package; its tests report events as those in Rust do."""
        if "python" in self.without or processes.stopping.is_set():
            return
        self.report.begin(PYTHON)
        tests = Tests(self.report, "python", self.test_max)
        longer = LONGER["python"] if self.long else {}
        read, write = os.pipe()
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            child = processes.start(
                [PYTHON + "/check", "tests"],
                ROOT,
                env={"TENURE_TEST_EVENTS": str(write), **longer},
                stdout=said,
                stderr=subprocess.STDOUT,
                pass_fds=[write],
            )
            os.close(write)
            with tests.watched(child), open(read) as events:
                for line in events:
                    tests.happened(json.loads(line))
                code = processes.wait(child)
            output = processes.read(said)
        tests.program_ended(code, output)
        if not processes.stopping.is_set():
            self.report.end(PYTHON, f"its tests ended with {code}" if code else "", output)

    def examples(self) -> None:
        """Run the commands of the examples' pages."""
        words = ["examples/check", "--without", ",".join(self.without)]
        self.step(EXAMPLES, *words, *(["--all"] if self.long else []))

    def only_long(self) -> None:
        """Run what is no test of this tree, or takes long whatever it runs on."""
        peers = ["--manifest-path", "tools/peers/Cargo.toml"]
        named = ["peers-harness", "peers-gauge", "peer-tenure", "peer-beanstalkd"]
        own = [word for name in named for word in ("--package", name)]
        lints = ["cargo", "clippy", "--locked", *peers, "--target-dir", str(TARGET)]
        self.step("peers: format", "cargo", "fmt", *peers, "--all", "--check")
        self.step("peers: lints", *lints, "--all-targets", *own, "--", "-D", "warnings")
        self.at_once([self.lab, self.python_killed])

    def lab(self) -> None:
        """Kill servers and send them everything, for long."""
        lab = str(TARGET / "debug" / "tenure-lab")
        self.step("kill -9 under load", lab, "crash", "--rounds", "20")
        self.step("random requests", lab, "fuzz", "--requests", "50000")
        # Events are kept for longer than that: their streams would grow to the end.
        few = {"TENURE_EVENTS_BYTES": "256KiB"}
        self.step("mixed use", lab, "soak", "--duration", "10m", env=few)

    def python_killed(self) -> None:
        """Kill workers in Python, for long."""
        if "python" not in self.without:
            self.step("Python, killed", "clients/python/stress/run", "--seconds", "600")

    # Any step.

    def at_once(self, lanes: Sequence[Callable[[], None]]) -> None:
        """Run lanes side by side, to their ends."""
        for thread in [self.lane(steps) for steps in lanes]:
            thread.join()

    def lane(self, steps: Callable[[], None]) -> threading.Thread:
        """Begin to run steps beside others."""
        thread = threading.Thread(target=self.guarded, args=(steps,))
        thread.start()
        return thread

    def guarded(self, lane: Callable[[], None]) -> None:
        """Run a lane. A fault of these programs is a failure of the run."""
        try:
            lane()
        except Exception:
            self.report.fail("tools/test", "this is a bug", traceback.format_exc())

    def step(
        self, name: str, *words: str, env: Optional[Mapping[str, str]] = None, nice: int = 0
    ) -> bool:
        """Run a command; its output is shown if it fails."""
        if processes.stopping.is_set():
            return False
        self.report.begin(name)
        code, output = processes.output(words, ROOT, env, nice)
        if processes.stopping.is_set():
            return False
        self.report.end(name, f"{' '.join(words)} ended with {code}" if code else "", output)
        return code == 0
