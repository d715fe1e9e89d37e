"""A small process that ends the processes of handlers whose worker is silent.

Each of those counts its deadline by itself, on a thread. While C code keeps the interpreter's lock,
that thread does not run, and a worker that is stopped kills nobody. So the worker tells this
program the same moments, and it kills at them. It imports nothing of the package, as it is started
as a file: it must be small and soon there.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time

#: A process that can end itself does so first.
_LATER_S = 0.1
#: A wait does not count the time for which the machine sleeps.
_LOOK_S = 0.5
_NEVER = float("inf")


class Watchdog:
    """The worker's side: tells the program until when each process may go on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[int, float] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def look(self) -> None:
        """Start the program if it does not run."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE
            )
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
            for process, until in self._until.items():
                self._write(process, until)

    def allow(self, process: int, until: float) -> None:
        """Let a process go on until a moment of the clock that goes on while the machine sleeps.

        Two heartbeats may be told in the wrong order: the later moment counts, until it is left
        alone.
        """
        with self._lock:
            until = self._until[process] = max(until, self._until.get(process, until))
            self._write(process, until)

    def forget(self, process: int) -> None:
        """Leave a process alone: it runs nothing, or has ended."""
        with self._lock:
            if self._until.pop(process, None) is not None:
                self._write(process, _NEVER)

    def close(self) -> None:
        """End the program."""
        with self._lock:
            self._until.clear()
            self._kill()

    def _write(self, process: int, until: float) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            # Never in parts: it is shorter than what a pipe takes whole.
            os.write(self._process.stdin.fileno(), f"{process} {until!r}\n".encode())
        except OSError:
            # It is gone, or it is stopped and its pipe is full. It must kill nobody by old news.
            self._kill()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process = None


def main() -> None:
    """Read moments from standard input until it ends, and kill who is late."""
    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, signal.SIG_IGN)
    os.set_blocking(0, False)
    until: dict[int, float] = {}
    rest = b""
    while True:
        first = min(until.values(), default=_NEVER) + _LATER_S
        select.select([0], [], [], min(max(0.0, first - _now()), _LOOK_S))
        ended = False
        # All that was said is read before anybody is killed: this process may have been stopped.
        with contextlib.suppress(BlockingIOError):
            while not ended:
                read = os.read(0, 65536)
                ended = not read
                *lines, rest = (rest + read).split(b"\n")
                for words in map(bytes.split, lines):
                    until[int(words[0])] = float(words[1])
        until = {process: at for process, at in until.items() if at != _NEVER}
        for process, at in list(until.items()):
            # Without a worker nobody extends a lease.
            if ended or _now() >= at + _LATER_S:
                del until[process]
                # With all that its handler started: each of them leads a group.
                with contextlib.suppress(OSError):
                    os.killpg(process, signal.SIGKILL)
        if ended:
            return


def _now() -> float:
    # As `_wire.now`, on whose clock the worker says its moments.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


if __name__ == "__main__":
    main()
