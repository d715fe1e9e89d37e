"""Handlers on threads."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Optional

from .._handlers import HandlerApp
from .._text import logger
from ..context import Context
from .runs import Interruptible, Run, make_context, perform
from .written import Written

if TYPE_CHECKING:
    import logging

    from .exchange import Exchange

log: logging.Logger = logger("tenure.worker")

Finish = Callable[[Run, Optional[Written]], None]


@dataclass
class _Job:
    """A run, and the thread whose it is."""

    run: Run
    interruptible: Interruptible
    context: Context
    thread: _Thread


class _Thread:
    """A thread that takes runs, one after the other."""

    def __init__(self, work: Callable[[_Thread], None], name: str) -> None:
        self.todo: queue.SimpleQueue[Optional[_Job]] = queue.SimpleQueue()
        # A thread that does not come back must not keep the process alive.
        self._thread = threading.Thread(target=work, args=(self,), name=name, daemon=True)
        self._thread.start()

    @property
    def lives(self) -> bool:
        """Say whether it goes on."""
        return self._thread.is_alive()


class Threads:
    """A thread for each run at a time, kept between runs."""

    def __init__(self, app: HandlerApp, exchange: Exchange, finish: Finish) -> None:
        self._app = app
        self._exchange = exchange
        self._finish = finish
        self._lock = threading.Lock()
        self._running: dict[str, _Job] = {}
        self._idle: list[_Thread] = []
        self._made = 0

    def open(self) -> None:
        """Run the start hooks, on the thread that calls this."""
        self._app.hooks.start()

    def run_stop_hooks(self) -> None:
        """Run the stop hooks, on the thread that calls this."""
        self._app.hooks.stop()

    def start(self, run: Run) -> None:
        """Hand a run to a thread."""
        context = make_context(
            run, self._exchange.transport, lambda value: self._exchange.keeper.report(run.id, value)
        )
        with self._lock:
            thread = self._idle.pop() if self._idle else None
            if thread is None or not thread.lives:
                self._made += 1
                thread = _Thread(self._work, f"tenure-job-{self._made}")
            job = self._running[run.id] = _Job(run, Interruptible(), context, thread)
        thread.todo.put(job)

    def stop(self, run: Run, reason: str) -> None:
        """Raise in the run's thread."""
        with self._lock:
            found = self._running.get(run.id)
        if found is not None:
            found.context.lost.set()
            found.interruptible.stop(reason)

    def runs(self, run: Run) -> bool:
        """Say whether a thread has the run."""
        with self._lock:
            found = self._running.get(run.id)
            if found is None or found.thread.lives:
                return found is not None
            del self._running[run.id]
        return False

    def good(self, run: Run, stop_at: float) -> None:
        """Nothing to note: this process's own clock thread stops it."""

    def look(self) -> None:
        """Nothing to mend: a thread that has ended takes no run any more."""

    def close(self) -> None:
        """Let idle threads end."""
        with self._lock:
            idle, self._idle = self._idle, []
        for thread in idle:
            thread.todo.put(None)

    def _work(self, thread: _Thread) -> None:
        try:
            while True:
                job = thread.todo.get()
                if job is None:
                    return
                written = perform(self._app, job.run, job.context, job.interruptible)
                with self._lock:
                    # The end of this run may begin the next one, which is best done here.
                    self._idle.append(thread)
                self._finish(job.run, written)
                with self._lock:
                    del self._running[job.run.id]
        except BaseException:
            # What this thread had is settled by the worker's own thread, which sees that it ended.
            with self._lock:
                self._idle = [each for each in self._idle if each is not thread]
            log.exception("a thread of the worker failed, and another takes its place")
