"""The run of one example, from its command line to its verdict."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Callable, Optional

from . import keys, tools
from .part import Part, say
from .tools import CannotRun

ME = "run"


class Scene(contextlib.AbstractContextManager):
    """What `run` of an example holds: a scratch folder, a store, the parts, what was found true.

    Everything that was started is ended when the `with` block is left, whatever the reason. The
    exit code is 0 if all that was to be true is true.
    """

    def __init__(self, folder: str, description: str, seconds: int):
        self.example = Path(folder).resolve().parent
        self.name = self.example.name
        self.arguments = argparse.ArgumentParser(
            prog=f"examples/{self.name}/run", description=description
        )
        self.arguments.add_argument(
            "--store",
            metavar="URL",
            help="where the server keeps its state: redis://HOST:PORT, file:PATH or memory: "
            "(a folder that goes away)",
        )
        self.arguments.add_argument(
            "--seconds", type=int, default=seconds, help=f"how long things are killed ({seconds})"
        )
        self.arguments.add_argument(
            "--seed", type=int, help="what is killed when; the run says the one it took"
        )
        self.arguments.add_argument(
            "--keep", action="store_true", help="leave the scratch folder, and say where it is"
        )
        self._parts: list[Part] = []
        self._findings: list[tuple[bool, str, str]] = []
        self._redis_name: Optional[str] = None

    def __enter__(self) -> Scene:
        self.args = self.arguments.parse_args()
        seed = (
            self.args.seed
            if self.args.seed is not None
            else random.SystemRandom().randrange(1 << 32)
        )
        self.dice = random.Random(seed)
        # A file in which the parts of an example can leave what is to be counted later.
        self.folder = Path(tempfile.mkdtemp(prefix=f"tenure-{self.name}-"))
        self.env = {
            name: value for name, value in os.environ.items() if not name.startswith("TENURE_")
        }
        self.env["PYTHONUNBUFFERED"] = "1"
        # Servers say where they listen as text, also when they are read by this program.
        self.env["TENURE_LOG_FORMAT"] = "text"
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"
        self.store = self._store()
        self.say(f"seed {seed}, store {self.store_in_words}")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        return self

    def _store(self) -> str:
        named = self.args.store
        if named is None:
            self.store_in_words = "a folder"
            return f"file:{self.folder / 'store'}"
        if named.startswith("redis://"):
            self.store_in_words = "a Redis"
            # Beside whatever else lies in this Redis; the keys go when the run ends.
            self._redis_name = f"example-{self.name}-{random.SystemRandom().randrange(1 << 32):08x}"
            return f"{named}{'&' if '?' in named else '?'}name={self._redis_name}"
        self.store_in_words = named.split(":", 1)[0]
        return named

    @property
    def seconds(self) -> int:
        return self.args.seconds

    def say(self, text: str) -> None:
        say(ME, text)

    def serve(self, *options: str, port: int = 0, name: str = "tenure", show: bool = False) -> Part:
        """A Tenure server on this store. All parts that start later find it in `TENURE_URL`.

        `port` is that of a server that was killed and is started again.
        """
        command = [
            tools.tenure(),
            "serve",
            "--listen",
            f"127.0.0.1:{port}",
            "--store",
            self.store,
            *options,
        ]
        server = self.start(name, command, show=show)
        self.url = server.wait_for("listening on ").split("listening on ", 1)[1].strip()
        self.env["TENURE_URL"] = self.url
        return server

    def python(self) -> str:
        """The Python of this example, with the packages of its `requirements.txt`."""
        return tools.python(self.example)

    def node(self, program: str) -> list[str]:
        """The command of a program in TypeScript of this example."""
        return [tools.node(), str(tools.EXAMPLES / "built" / self.name / f"{program}.js")]

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[Path] = None,
        show: bool = True,
    ) -> Part:
        """Starts a process in the folder of the example, or in `cwd`.

        Its output is shown behind its name.
        """
        part = Part(
            name, command, env={**self.env, **(env or {})}, cwd=cwd or self.example, show=show
        )
        self._parts.append(part)
        return part

    def until(self, happened: Callable[[], bool], within: float, what: str) -> None:
        """Waits until this is true. `what` says what it waited for, should it never be."""
        deadline = time.monotonic() + within
        while not happened():
            if time.monotonic() > deadline:
                raise AssertionError(f"this did not happen within {within:g} s: {what}")
            time.sleep(0.05)

    def check(self, true: bool, what: str, figures: str = "") -> None:
        """Something that must be true at the end.

        All are shown together, and one that is false fails the run.
        """
        self._findings.append((true, what, figures))

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        why: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> bool:
        # Parts that were started last need those that were started first.
        for part in reversed(self._parts):
            with contextlib.suppress(Exception):
                part.stop()
        if self._redis_name is not None:
            left = keys.clear(self.args.store, self._redis_name)
            if left is not None:
                self.say(f"the keys of the store {self._redis_name} are still there: {left}")
        if self.args.keep:
            self.say(f"the scratch folder is {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        if isinstance(why, (CannotRun, AssertionError)):
            self.say(str(why))
            sys.exit(1 if isinstance(why, AssertionError) else 69)
        if why is not None:
            return False
        return self._verdict()

    def _verdict(self) -> bool:
        print()
        for true, what, figures in self._findings:
            print(f"{'ok   ' if true else 'WRONG'}  {what}{': ' + figures if figures else ''}")
        if not self._findings:
            raise RuntimeError("this run checked nothing")
        if not all(true for true, _, _ in self._findings):
            sys.exit(1)
        return False
