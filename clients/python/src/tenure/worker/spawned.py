"""A process of a worker as the worker sees it: started, told, killed."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import queue
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any, Optional

from .._handlers import HandlerApp
from .._stderr import level_of_commands
from .child import main
from .runs import Run

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

#: A message of this size fits into an empty pipe wherever there are pipes.
_FITS_BYTES = 32 * 1024


class Spawned:
    """One process and what it runs."""

    def __init__(self, app: HandlerApp, failed: int) -> None:
        # Not forked: this process has threads, and a lock that one holds would stay locked.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self.pipe: Any = ours
        tasks = [(task.function.__module__, task.function.__qualname__) for task in app.tasks]
        #: The number of the last run that has begun there.
        self._begun: Any = context.RawValue(ctypes.c_ulonglong, 0)
        self._number = 0
        # No daemon: those may have no processes of their own, and handlers may.
        given = (theirs, tasks, self._begun, level_of_commands())
        self.process: BaseProcess = context.Process(target=main, args=given, daemon=False)
        self.process.start()
        theirs.close()
        self.id: int = self.process.pid or 0
        #: It has run the start hooks, and takes runs.
        self.is_ready = False
        #: How many starts in a row had failed before it.
        self.failed_before = failed
        #: Why it cannot be ready, if it said so.
        self.cannot: Optional[str] = None
        self.run: Optional[Run] = None
        #: The thread that reads what it says.
        self.listener: Optional[threading.Thread] = None
        self._sending = threading.Lock()
        self._looking = threading.Lock()
        self._out: queue.SimpleQueue[Optional[tuple[Any, ...]]] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="tenure-pipe", daemon=True).start()

    def give(self, run: Run) -> int:
        """Note that it has a run, and return the run's number."""
        self.run = run
        self._number += 1
        return self._number

    @property
    def may_have_begun(self) -> bool:
        """Say of a process that was ended whether code of the user may have run for its run."""
        return self.is_alive() or bool(self._begun.value == self._number)

    @property
    def is_listened_to(self) -> bool:
        """Say whether what it says is taken in. Its thread starts a moment after it."""
        thread = self.listener
        return thread is None or thread.ident is None or thread.is_alive()

    def send(self, *message: Any) -> None:
        """Tell it something. A process that reads nothing blocks nobody here."""
        self._out.put(message)

    def send_now(self, *message: Any) -> None:
        """Tell a process that has read all before: what is small fits into the pipe at once."""
        # Data of JSON alone, for which the pickler of `Connection.send` does needless work.
        written = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        if len(written) <= _FITS_BYTES and self._sending.acquire(blocking=False):
            try:
                with contextlib.suppress(OSError, ValueError):
                    self.pipe.send_bytes(written)
            finally:
                self._sending.release()
        else:
            self._out.put(message)

    def kill(self) -> None:
        """End it whatever it does, with all processes that its handlers have started."""
        try:
            # It leads a group. One that is gone has left its group to those that it started.
            os.killpg(self.id, signal.SIGKILL)
        except OSError:
            self.process.kill()
        self._out.put(None)

    def is_alive(self) -> bool:
        """Say whether it runs."""
        with self._looking:
            return self.process.is_alive()

    def join(self) -> None:
        """Wait for its end, for 5 s at most; how it ended is known then."""
        self.process.join(5)
        # Another thread may have taken its exit code from the system, and not noted it yet.
        with self._looking:
            self.process.join(0)

    def hang_up(self) -> None:
        """Let its listener come to an end, also if a process of a handler has the pipe still."""
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self.pipe.fileno())) as pipe:
            pipe.shutdown(socket.SHUT_RD)

    @property
    def how_it_ended(self) -> str:
        """Say how it ended."""
        code = self.process.exitcode
        return f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"

    def _write(self) -> None:
        # The end of a process is noticed by the thread that reads.
        with contextlib.suppress(OSError, ValueError):
            while True:
                message = self._out.get()
                if message is None:
                    return
                with self._sending:
                    self.pipe.send(message)
