"""Handlers in processes of their own: the parent asks, extends and settles, the children run.

A child that must stop is killed, which works whatever it does. A child whose parent is silent (it
was stopped, or is gone) ends itself in time.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import pickle
import queue
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Optional

from .._holdings import LOST
from .child import LEASE_LOST, main
from .runs import Run
from .threads import Finish

if TYPE_CHECKING:
    from ..app import App
    from .exchange import Exchange

log: logging.Logger = logging.getLogger("tenure.worker")

#: Seconds in which a handler that must stop may end by itself, before its process is killed.
_GRACE_S = 1.0
#: A message of this size fits into an empty pipe wherever there are pipes.
_FITS_BYTES = 32 * 1024


class _Child:
    """One process and what it runs."""

    def __init__(self, app: App) -> None:
        # Not forked: this process has threads, and a lock that one holds would stay locked.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        tasks = [(task.function.__module__, task.function.__qualname__) for task in app.tasks]
        self.process = context.Process(target=main, args=(theirs, tasks), daemon=True)
        self.process.start()
        theirs.close()
        self.run: Optional[Run] = None
        self._sending = threading.Lock()
        self._out: queue.SimpleQueue[Optional[tuple[Any, ...]]] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="tenure-pipe", daemon=True).start()

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
        self._closing = False
        for _ in range(count):
            self._spawn()

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
                child.run = run
                self._busy[run.id] = child
            # As of now: a process may have taken seconds to begin.
            stop_at = self._exchange.keeper.stop_at(run.id)
            child.send_now("run", run.queue, run.kind, dict(run.lease.raw), stop_at)
            if run.stopping is not None:
                self.stop(run, run.stopping)

    def stop(self, run: Run, reason: str) -> None:
        """End a run: by an exception first, unless its right is over already."""
        with self._lock:
            child = self._busy.get(run.id)
            never_began = child is None and run in self._waiting
            if never_began:
                self._waiting.remove(run)
        if never_began:
            # On another thread: it logs, which may block, and this is the clock thread.
            threading.Thread(target=self._finish, args=(run, None), daemon=True).start()
        if child is None:
            return
        if reason == LOST:
            child.kill()
            return
        child.send("stop", run.id, reason)
        timer = threading.Timer(_GRACE_S, self._kill_if_busy, (run,))
        timer.daemon = True
        timer.start()

    def good(self, run: Run, stop_at: float) -> None:
        """Tell the process until when it may go on."""
        with self._lock:
            child = self._busy.get(run.id)
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

    def _spawn(self) -> None:
        child = _Child(self._app)
        with self._lock:
            self._children.append(child)
        threading.Thread(
            target=self._listen, args=(child,), name="tenure-child", daemon=True
        ).start()

    def _kill_if_busy(self, run: Run) -> None:
        with self._lock:
            child = self._busy.get(run.id)
        if child is not None:
            child.kill()

    def _listen(self, child: _Child) -> None:
        while True:
            try:
                kind, lease, value = child.pipe.recv()
            except (EOFError, OSError):
                self._ended(child)
                return
            if kind == "ready":
                with self._lock:
                    self._free.append(child)
                self._assign()
                continue
            run = child.run
            if run is None or run.id != lease:
                continue
            if kind == "progress":
                self._exchange.keeper.report(run.id, value)
                continue
            with self._lock:
                del self._busy[run.id]
                child.run = None
                self._free.append(child)
            self._finish(run, value)
            self._assign()

    def _ended(self, child: _Child) -> None:
        """Replace a process that ended, and settle what it ran."""
        child.process.join(5)
        child.kill()
        with self._lock:
            run, child.run = child.run, None
            if run is not None:
                del self._busy[run.id]
            if child in self._free:
                self._free.remove(child)
            self._children.remove(child)
            closing = self._closing
        if not closing:
            self._spawn()
        if run is None:
            return
        if run.stopping is not None:
            self._finish(run, None)
            return
        code = child.process.exitcode
        if code == LEASE_LOST:
            # It did not hear of an extend in time, though this process may hold the lease still.
            log.warning("job %s: its process stopped, since this one was silent", run.job)
            self._finish(run, {"outcome": "released"})
            return
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        self._finish(run, {"outcome": "failed", "error": f"its process ended {how}"})
