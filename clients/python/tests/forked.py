"""Programs of Python that begin with their imports made, as forks of one process that made them.

The imports of Scrapy and of this package are most of the work of a short program, and the tests run
hundreds. A fork differs from `python -m MODULE` in nothing else that they look at: it has its own
arguments, environment, folder, output and main module.
"""

from __future__ import annotations

import atexit
import multiprocessing
import multiprocessing.process
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

#: Imports of the process that is forked. None of them makes a thread or an event loop.
IMPORTS = ["scrapy.cmdline", "scrapy.extensions.logstats", "tenure.scrapy", "tenure._reload"]
IMPORTS += [f"tenure.worker.{name}" for name in ("threads", "coroutines", "processes")]


class Forked:
    """One program, with what tests use of `subprocess.Popen`."""

    def __init__(
        self, module: str, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path
    ) -> None:
        # A test may read it at once.
        log.touch()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(IMPORTS)
        given = (module, list(arguments), str(cwd), dict(env), str(log))
        # Not a daemon: those may have no processes of their own.
        self._process = context.Process(target=_run, args=given, daemon=False)
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> Optional[int]:
        """Return the exit code, minus the signal's number if one ended it; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: Optional[float] = None) -> int:
        """Wait for the end, and return the exit code."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Tell it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


#: A program in a process of its own, whichever way it was begun.
Program = Union[Forked, "subprocess.Popen[bytes]"]


def _run(module: str, arguments: list[str], cwd: str, env: dict[str, str], log: str) -> None:
    """Become the program; in the new process."""
    # For code that asks, no other program of Python is its parent.
    processes: Any = multiprocessing.process
    processes._parent_process = None
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(out, stream)
    os.close(out)
    sys.argv = [module, *arguments]
    sys.path[:0] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        # What ends a process of `multiprocessing` leaves these out.
        atexit._run_exitfuncs()
