"""Handlers in processes of their own: the parent asks, extends and settles, the children run.

A child that must stop is killed, which works whatever it does. A child whose parent is silent (it
was stopped, or is gone) ends itself in time.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import pickle
import queue
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Optional

from .._holdings import LOST
from .._text import logger
from .._wire import now
from ..hooks import HookFailed
from .child import LEASE_LOST, main
from .runs import Run
from .threads import Finish
from .watchdog import Watchdog
from .written import RELEASED, Written, failure

if TYPE_CHECKING:
    import logging

    from ..app import App
    from .exchange import Exchange

log: logging.Logger = logger("tenure.worker")

#: Seconds in which a handler that must stop may end by itself, before its process is killed.
_GRACE_S = 1.0
#: Seconds in which the stop hooks of all processes must be through.
_CLOSE_S = 10.0
#: A message of this size fits into an empty pipe wherever there are pipes.
_FITS_BYTES = 32 * 1024


class _Child:
    """One process and what it runs."""

    def __init__(self, app: App) -> None:
        # Not forked: this process has threads, and a lock that one holds would stay locked.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        tasks = [(task.function.__module__, task.function.__qualname__) for task in app.tasks]
        #: The number of the last run that has begun there.
        self._begun: Any = context.RawValue(ctypes.c_ulonglong, 0)
        self._number = 0
        self.process = context.Process(target=main, args=(theirs, tasks, self._begun), daemon=True)
        self.process.start()
        theirs.close()
        self.id: int = self.process.pid or 0
        self.run: Optional[Run] = None
        #: The thread that reads what it says.
        self.listener: Optional[threading.Thread] = None
        self._sending = threading.Lock()
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
        return self.process.is_alive() or bool(self._begun.value == self._number)

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
        """End it whatever it does."""
        self.process.kill()
        self._out.put(None)

    def _write(self) -> None:
        # The end of a process is noticed by the thread that reads.
        with contextlib.suppress(OSError, ValueError):
            while True:
                message = self._out.get()
                if message is None:
                    return
                with self._sending:
                    self.pipe.send(message)


class Processes:
    """As many processes as runs at once, each for one run at a time."""

    def __init__(self, app: App, exchange: Exchange, finish: Finish, count: int) -> None:
        self._app = app
        self._exchange = exchange
        self._finish = finish
        self._lock = threading.Lock()
        #: Granted, and no process is ready for it yet.
        self._waiting: deque[Run] = deque()
        self._children: list[_Child] = []
        self._free: list[_Child] = []
        self._busy: dict[str, _Child] = {}
        #: Runs whose end is being taken in by the thread that listens to their process.
        self._ending: dict[str, _Child] = {}
        self._watchdog = Watchdog()
        self._closing = False
        #: How many processes were ready for a first run.
        self._ready = 0
        self._changed = threading.Event()
        self._count = count
        #: Starting a process takes long, so not under the lock that the clock thread needs.
        self._filling = threading.Lock()

    def open(self) -> None:
        """Start the processes, each of which runs the start hooks."""
        self._watchdog.look()
        self._fill()
        while self._app.hooks.on_start and self._ready == 0:
            if self._exchange.fault is not None:
                raise self._exchange.fault
            self._changed.wait(0.2)

    def run_stop_hooks(self) -> None:
        """Let each process that is free run the stop hooks, and end."""
        with self._lock:
            self._closing = True
            free = list(self._free) if self._app.hooks.on_stop else []
        for child in free:
            child.send("close")
        end = now() + _CLOSE_S
        for child in free:
            child.process.join(max(0.0, end - now()))

    def start(self, run: Run) -> None:
        """Hand a run to a process as soon as one is ready."""
        with self._lock:
            self._waiting.append(run)
        self._assign()

    def _assign(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or not self._free:
                    return
                run, child = self._waiting.popleft(), self._free.pop()
                number = child.give(run)
                self._busy[run.id] = child
            try:
                # As of now: a process may have taken seconds to begin.
                stop_at = self._exchange.keeper.stop_at(run.id)
                with self._lock:
                    if self._busy.get(run.id) is child:
                        self._watchdog.allow(child.id, stop_at)
                child.send_now("run", number, run.queue, run.kind, dict(run.lease.raw), stop_at)
                if run.stopping is not None:
                    self.stop(run, run.stopping)
            except BaseException:
                # It may never hear of the run. That is settled when it has ended.
                child.kill()
                raise

    def stop(self, run: Run, reason: str) -> None:
        """End a run: by an exception first, unless its right is over already."""
        with self._lock:
            child = self._busy.get(run.id)
            if child is None and run in self._waiting:
                # It never began. The worker's own thread takes in its end: that logs, which may
                # block, and this is the clock thread.
                self._waiting.remove(run)
        if child is None:
            return
        if reason == LOST:
            child.kill()
            return
        child.send("stop", run.id, reason)
        timer = threading.Timer(_GRACE_S, self._kill_if_busy, (run,))
        timer.daemon = True
        timer.start()

    def runs(self, run: Run) -> bool:
        """Say whether the run waits for a process, or a process has it."""
        with self._lock:
            ending = self._ending.get(run.id)
            return (
                run.id in self._busy
                or run in self._waiting
                or (ending is not None and ending.is_listened_to)
            )

    def look(self) -> None:
        """Replace the processes that nobody listens to."""
        with self._lock:
            deaf = [child for child in self._children if not child.is_listened_to]
        for child in deaf:
            self._replace(child)
        self._watchdog.look()
        self._fill()
        self._assign()

    def good(self, run: Run, stop_at: float) -> None:
        """Tell the process until when it may go on."""
        with self._lock:
            child = self._busy.get(run.id)
            if child is not None:
                self._watchdog.allow(child.id, stop_at)
        if child is not None:
            child.send("good", run.id, stop_at)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closing = True
            children = list(self._children)
        for child in children:
            child.kill()
        for child in children:
            child.process.join(5)
        self._watchdog.close()

    def _fill(self) -> None:
        """Start as many processes as are missing."""
        with self._filling:
            while not self._closing and len(self._children) < self._count:
                child = _Child(self._app)
                child.listener = threading.Thread(
                    target=self._listen, args=(child,), name="tenure-child", daemon=True
                )
                with self._lock:
                    self._children.append(child)
                child.listener.start()

    def _kill_if_busy(self, run: Run) -> None:
        with self._lock:
            child = self._busy.get(run.id)
        if child is not None:
            child.kill()

    def _listen(self, child: _Child) -> None:
        try:
            while True:
                try:
                    message = child.pipe.recv()
                except (EOFError, OSError):
                    break
                self._take_in(child, *message)
            self._ended(child)
        except BaseException:
            # The worker's own thread sees that nobody listens to this process any more.
            log.exception("a process of the worker is not listened to any more, and is replaced")

    def _take_in(self, child: _Child, kind: str, lease: str, value: Any) -> None:
        """Take in what a process says."""
        if kind == "ready":
            with self._lock:
                self._free.append(child)
                self._ready += 1
            self._changed.set()
            self._assign()
            return
        if kind == "hook_failed":
            self._exchange.fault = HookFailed(value)
            # Another process would fail in the same way.
            self._closing = True
            self._changed.set()
            return
        run = child.run
        if run is None or run.id != lease:
            return
        if kind == "progress":
            self._exchange.keeper.report(run.id, value)
            return
        with self._lock:
            run.begin()
            self._watchdog.forget(child.id)
            self._ending[run.id] = child
            del self._busy[run.id]
            child.run = None
            self._free.append(child)
        self._finish(run, value)
        with self._lock:
            del self._ending[run.id]
        self._assign()

    def _ended(self, child: _Child) -> None:
        """Settle what a process ran that has ended, and replace it."""
        self._watchdog.forget(child.id)
        child.process.join(5)
        child.kill()
        with self._lock:
            self._remove(child)
            run, child.run = child.run, None
            if run is not None:
                run.begun = child.may_have_begun
                self._ending[run.id] = child
                del self._busy[run.id]
        if run is not None:
            self._finish(run, None if run.stopping is not None else _end_of(run, child))
            with self._lock:
                del self._ending[run.id]
        self._fill()

    def _replace(self, child: _Child) -> None:
        """End a process that nobody listens to; the worker's own thread settles what it ran."""
        child.kill()
        child.process.join(5)
        with self._lock:
            self._remove(child)
            if child.run is not None:
                child.run.begun = child.may_have_begun
            for runs in (self._busy, self._ending):
                for lease in [lease for lease, its in runs.items() if its is child]:
                    del runs[lease]

    def _remove(self, child: _Child) -> None:
        self._watchdog.forget(child.id)
        if child in self._free:
            self._free.remove(child)
        if child in self._children:
            self._children.remove(child)


def _end_of(run: Run, child: _Child) -> Written:
    """Write the end of a run whose process ended."""
    code = child.process.exitcode
    if code == LEASE_LOST:
        # It did not hear of an extend in time, though this process may hold the lease still.
        log.warning("job %s: its process stopped, since this one was silent", run.job)
        return RELEASED
    if not run.begun:
        log.warning("job %s: its process ended before the handler began", run.job)
        return RELEASED
    how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    return failure(f"its process ended {how}")
