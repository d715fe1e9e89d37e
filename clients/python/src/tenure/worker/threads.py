"""Handlers on threads."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, Callable, Optional

from ..context import Context
from .runs import Interruptible, Run, make_context, perform

if TYPE_CHECKING:
    from ..app import App
    from .exchange import Exchange

Finish = Callable[[Run, Optional[dict[str, Any]]], None]


class Threads:
    """A thread for each run at a time, kept between runs."""

    def __init__(self, app: App, exchange: Exchange, finish: Finish) -> None:
        self._app = app
        self._exchange = exchange
        self._finish = finish
        self._waiting: queue.SimpleQueue[Optional[Run]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._running: dict[str, tuple[Interruptible, Context]] = {}
        self._threads = 0
        self._idle = 0

    def start(self, run: Run) -> None:
        """Hand a run to a thread."""
        context = make_context(
            run, self._exchange.transport, lambda value: self._exchange.keeper.report(run.id, value)
        )
        with self._lock:
            self._running[run.id] = (Interruptible(), context)
            if self._idle == 0:
                self._threads += 1
                # A thread that does not come back must not keep the process alive.
                threading.Thread(
                    target=self._work, name=f"tenure-job-{self._threads}", daemon=True
                ).start()
            else:
                self._idle -= 1
        self._waiting.put(run)

    def stop(self, run: Run, reason: str) -> None:
        """Raise in the run's thread."""
        with self._lock:
            found = self._running.get(run.id)
        if found is not None:
            found[1].lost.set()
            found[0].stop(reason)

    def good(self, run: Run, stop_at: float) -> None:
        """Nothing to note: this process's own clock thread stops it."""

    def close(self) -> None:
        """Let idle threads end."""
        with self._lock:
            threads = self._threads
        for _ in range(threads):
            self._waiting.put(None)

    def _work(self) -> None:
        while True:
            run = self._waiting.get()
            if run is None:
                return
            with self._lock:
                interruptible, context = self._running[run.id]
            item = perform(self._app, run, context, interruptible)
            with self._lock:
                del self._running[run.id]
                self._idle += 1
            self._finish(run, item)
