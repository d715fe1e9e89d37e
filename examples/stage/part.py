"""One process of an example: it is listened to, waited for, stopped and killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_print_one_line = threading.Lock()


def say(who: str, text: str) -> None:
    """One line on stdout, behind the name of its part."""
    with _print_one_line:
        sys.stdout.write(f"{who:<12} | {text}\n")
        sys.stdout.flush()


class Part:
    """A process that the run has started, and the group of all that it starts itself."""

    def __init__(
        self, name: str, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, show: bool
    ):
        self.name = name
        self.lines: list[str] = []
        self._show = show
        self._heard = threading.Condition()
        self._closed = False
        self.process = subprocess.Popen(
            list(command),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            line = line.rstrip("\n")
            if self._show:
                say(self.name, line)
            with self._heard:
                self.lines.append(line)
                self._heard.notify_all()
        with self._heard:
            self._closed = True
            self._heard.notify_all()

    def wait_for(self, text: str, within: float = 30) -> str:
        """The first line of its output that contains this text; waits for it."""
        deadline = time.monotonic() + within
        seen = 0
        with self._heard:
            while True:
                for line in self.lines[seen:]:
                    if text in line:
                        return line
                seen = len(self.lines)
                left = deadline - time.monotonic()
                if self._closed or left <= 0:
                    why = (
                        "ended without it"
                        if self._closed
                        else f"did not say it within {within:g} s"
                    )
                    last = "\n".join(self.lines[-20:])
                    raise AssertionError(
                        f"{self.name} was to say {text!r} and {why}; its last lines:\n{last}"
                    )
                self._heard.wait(left)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def wait(self, within: float = 60) -> int:
        """Its exit code; waits for its end."""
        return self.process.wait(timeout=within)

    def kill(self) -> None:
        """SIGKILL, which nothing can catch: for this process and all that it started."""
        self._signal(signal.SIGKILL)
        self.process.wait()

    def kill_alone(self) -> None:
        """SIGKILL for the process itself; what it has started lives on."""
        self.process.kill()
        self.process.wait()

    def stop(self, within: float = 10) -> int:
        """SIGTERM, and SIGKILL if that was not enough. The exit code."""
        if self.alive:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=within)
        self._signal(signal.SIGKILL)
        return self.process.wait()

    def _signal(self, number: int) -> None:
        # Also those of the group that outlive it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
