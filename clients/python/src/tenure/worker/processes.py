"""Handlers in processes of their own: the parent asks, extends and settles, the children run.

A child that must stop is killed, which works whatever it does. A child whose parent is silent (it
was stopped, or is gone) ends itself in time.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from .._handlers import HandlerApp
from .._holdings import LOST
from .._text import logger
from .._wire import now
from ..hooks import HookFailed, NotStarted
from ..tasks import Unusable
from .child import LEASE_LOST
from .refused import NO_GUARD, NO_GUARD_SAYS
from .runs import Run
from .spawned import Spawned
from .starts import STARTS_MAX, Starts
from .threads import Finish
from .watchdog import Watchdog
from .written import RELEASED, Written, failure

if TYPE_CHECKING:
    import logging

    from .exchange import Exchange

log: logging.Logger = logger("tenure.worker")

#: Seconds in which a handler that must stop may end by itself, before its process is killed.
_GRACE_S = 1.0
#: Seconds in which the stop hooks of all processes must be through.
_CLOSE_S = 10.0


class Processes:
    """As many processes as runs at once, each for one run at a time."""

    def __init__(self, app: HandlerApp, exchange: Exchange, finish: Finish, count: int) -> None:
        self._app = app
        self._exchange = exchange
        self._finish = finish
        self._lock = threading.Lock()
        #: Granted, and no process is ready for it yet.
        self._waiting: deque[Run] = deque()
        self._children: list[Spawned] = []
        self._free: list[Spawned] = []
        self._busy: dict[str, Spawned] = {}
        #: Runs whose end is being taken in by the thread that listens to their process.
        self._ending: dict[str, Spawned] = {}
        self._watchdog = Watchdog()
        self._closing = False
        #: A process was ready for a first run.
        self._was_ready = False
        self._changed = threading.Event()
        self._starts = Starts()
        self._count = count
        #: Starting a process takes long, so not under the lock that the clock thread needs.
        self._filling = threading.Lock()

    def open(self) -> None:
        """Start the processes, each of which runs the start hooks."""
        self._watchdog.look()
        # Before that no job is leased: this worker may be unable to run any.
        while not self._was_ready:
            if self._exchange.fault is not None:
                raise self._exchange.fault
            self._fill()
            self._changed.wait(0.05)

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
            closing = self._closing
            if not closing:
                self._waiting.append(run)
        if closing:
            self._finish(run, RELEASED)
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
            children = list(self._children)
        for child in children:
            if not child.is_listened_to:
                self._replace(child)
            elif not child.is_alive():
                # What its handler has started may keep the pipe open, and lives without a lease.
                child.kill()
                child.hang_up()
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
            child.join()
        self._watchdog.close()

    def _fill(self) -> None:
        """Start as many processes as are missing."""
        with self._filling:
            while not self._closing and self._may_start():
                child = Spawned(self._app, self._starts.in_a_row)
                child.listener = threading.Thread(
                    target=self._listen, args=(child,), name="tenure-child", daemon=True
                )
                with self._lock:
                    self._children.append(child)
                    closing = self._closing
                if closing:
                    # `close` may not have seen it.
                    child.kill()
                child.listener.start()

    def _may_start(self) -> bool:
        with self._lock:
            missing = self._count - len(self._children)
            starting = sum(not child.is_ready for child in self._children)
        return missing > 0 and self._starts.may_start(starting)

    def _kill_if_busy(self, run: Run) -> None:
        with self._lock:
            child = self._busy.get(run.id)
        if child is not None:
            child.kill()

    def _listen(self, child: Spawned) -> None:
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

    def _take_in(self, child: Spawned, kind: str, lease: str, value: Any) -> None:
        """Take in what a process says."""
        if kind == "ready":
            with self._lock:
                self._free.append(child)
                child.is_ready = self._was_ready = True
                self._starts.ready()
            self._changed.set()
            self._assign()
            self._fill()
            return
        if kind == "not_ready":
            child.cannot = value
            return
        if kind == "hook_failed":
            # Another process would fail in the same way.
            self._give_up(HookFailed(value))
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

    def _ended(self, child: Spawned) -> None:
        """Settle what a process ran that has ended, and replace it."""
        self._watchdog.forget(child.id)
        child.join()
        child.kill()
        if not child.is_ready and not self._closing:
            self._never_ready(child)
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

    def _never_ready(self, child: Spawned) -> None:
        """Say why a process was not ready, and give back what waits for one."""
        if child.process.exitcode == NO_GUARD:
            self._give_up(Unusable(NO_GUARD_SAYS))
            return
        why = child.cannot or f"it ended {child.how_it_ended}"
        log.error("a process of the worker was not ready: %s", why)
        with self._lock:
            self._starts.failed(child.failed_before)
            failed = self._starts.in_a_row
        if failed >= STARTS_MAX:
            self._give_up(
                NotStarted(
                    f"no process of the worker was ready, {failed} times in a row; the last one: "
                    f"{why}"
                )
            )
            return
        self._give_back_waiting()

    def _give_up(self, fault: Exception) -> None:
        """End the worker: no process of it can run what it takes."""
        with self._lock:
            self._exchange.fault = self._exchange.fault or fault
            self._closing = True
        self._changed.set()
        self._give_back_waiting()

    def _give_back_waiting(self) -> None:
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
        for run in waiting:
            self._finish(run, RELEASED)

    def _replace(self, child: Spawned) -> None:
        """End a process that nobody listens to; the worker's own thread settles what it ran."""
        child.kill()
        child.join()
        with self._lock:
            self._remove(child)
            if child.run is not None:
                child.run.begun = child.may_have_begun
            for runs in (self._busy, self._ending):
                for lease in [lease for lease, its in runs.items() if its is child]:
                    del runs[lease]

    def _remove(self, child: Spawned) -> None:
        self._watchdog.forget(child.id)
        if child in self._free:
            self._free.remove(child)
        if child in self._children:
            self._children.remove(child)


def _end_of(run: Run, child: Spawned) -> Written:
    """Write the end of a run whose process ended."""
    if child.process.exitcode == LEASE_LOST:
        # It did not hear of an extend in time, though this process may hold the lease still.
        log.warning("job %s: its process stopped, since this one was silent", run.job)
        return RELEASED
    if not run.begun:
        log.warning("job %s: its process ended before the handler began", run.job)
        return RELEASED
    return failure(f"its process ended {child.how_it_ended}")
