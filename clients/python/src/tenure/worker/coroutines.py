"""Handlers on one event loop, plain functions among them on threads."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from .._handlers import HandlerApp
from .._text import logger
from ..context import Context
from ..tasks import failed, succeeded
from .runs import NOT_BY_WORKER, Run, make_context, prepare
from .threads import Finish, Threads
from .written import Written, not_written, write

if TYPE_CHECKING:
    import logging

    from .exchange import Exchange

log: logging.Logger = logger("tenure.worker")


@dataclass
class _Job:
    """A run, and what the loop has to do for it."""

    context: Context
    coroutine: Coroutine[Any, Any, None]
    #: Once the coroutine has begun.
    task: Optional[asyncio.Task[None]] = None

    @property
    def lives(self) -> bool:
        """Say whether the loop has it to do still."""
        return inspect.getcoroutinestate(self.coroutine) != inspect.CORO_CLOSED

    @property
    def waits(self) -> bool:
        """Say whether it has not begun."""
        return (
            self.task is None and inspect.getcoroutinestate(self.coroutine) == inspect.CORO_CREATED
        )


class Coroutines:
    """A task for each run, on a loop that has its own thread."""

    def __init__(self, app: HandlerApp, exchange: Exchange, finish: Finish) -> None:
        self._app = app
        self._exchange = exchange
        self._finish = finish
        self._threads = Threads(app, exchange, finish)
        self._lock = threading.Lock()
        self._running: dict[str, _Job] = {}
        self._closing = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="tenure-loop", daemon=True)
        self._thread.start()

    def open(self) -> None:
        """Run the start hooks; coroutines on the loop of the handlers."""
        self._app.hooks.start(self._run_on_loop)

    def run_stop_hooks(self) -> None:
        """Run the stop hooks; coroutines on the loop of the handlers."""
        self._app.hooks.stop(self._run_on_loop)

    def _run_on_loop(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def start(self, run: Run) -> None:
        """Make a task of a run."""
        task = self._app.find(run.queue, run.kind)
        if task is not None and not task.is_async:
            self._threads.start(run)
            return
        context = make_context(
            run, self._exchange.transport, lambda value: self._exchange.keeper.report(run.id, value)
        )
        coroutine = self._perform(run, context)
        with self._lock:
            self._running[run.id] = _Job(context, coroutine)
        self._loop.call_soon_threadsafe(self._loop.create_task, coroutine)

    def stop(self, run: Run, reason: str) -> None:
        """Cancel the run's task, at the next turn of the loop."""
        self._threads.stop(run, reason)
        with self._lock:
            found = self._running.get(run.id)
        if found is None:
            return
        found.context.lost.set()
        # Without a task yet, it is cancelled when there is one.
        if found.task is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(found.task.cancel)

    def runs(self, run: Run) -> bool:
        """Say whether the loop has the run, or a thread if it is no coroutine."""
        with self._lock:
            found = self._running.get(run.id)
            if found is not None and not (found.lives and self._thread.is_alive()):
                del self._running[run.id]
                found = None
        return found is not None or self._threads.runs(run)

    def good(self, run: Run, stop_at: float) -> None:
        """Nothing to note: this process's own clock thread stops it."""

    def look(self) -> None:
        """Close the coroutines that the loop did not take: they look like those about to begin."""
        with self._lock:
            waiting = [job for job in self._running.values() if job.waits]
        for job in waiting:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._close_if_left, job)

    def _close_if_left(self, job: _Job, is_last_look: bool = False) -> None:
        # The loop runs callbacks in order. At the first look it has tried to make a task of the
        # coroutine; at the second, which is scheduled after that, the task has begun.
        if not job.waits:
            return
        if is_last_look:
            job.coroutine.close()
        else:
            self._loop.call_soon(self._close_if_left, job, True)

    def close(self) -> None:
        """End the loop."""
        self._closing = True
        self._threads.close()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1)

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._closing:
            try:
                self._loop.run_forever()
            except BaseException:
                # A callback of some library called `sys.exit()`: all that runs here would end.
                log.exception("the event loop was left, and goes on")
        with contextlib.suppress(Exception):
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _perform(self, run: Run, context: Context) -> None:
        try:
            with self._lock:
                self._running[run.id].task = asyncio.current_task()
            # It may have been told to stop before there was a task to cancel.
            written = await self._run(run, context) if run.stopping is None else None
            self._finish(run, written)
        except BaseException:
            # The worker's own thread settles it: it sees that the coroutine is over.
            log.exception("job %s: its end could not be taken in", run.job)
        finally:
            with self._lock:
                self._running.pop(run.id, None)

    async def _run(self, run: Run, context: Context) -> Optional[Written]:
        try:
            item, raised = await self._call(run, context)
            return None if item is None else write(item, context, raised)
        except BaseException as why:
            return not_written(why)

    async def _call(
        self, run: Run, context: Context
    ) -> tuple[Optional[dict[str, Any]], Optional[BaseException]]:
        try:
            run.begin()
            task, arguments = prepare(self._app, run, context)
            if task is None:
                return arguments, None
            return succeeded(await task.run(arguments, context)), None
        except asyncio.CancelledError:
            if run.stopping is not None:
                return None, None
            # The handler cancelled itself, or a library did.
            return {"outcome": "failed", "error": NOT_BY_WORKER}, None
        except BaseException as error:
            # `sys.exit()` in a handler ends its run and not the loop.
            return failed(error), error
