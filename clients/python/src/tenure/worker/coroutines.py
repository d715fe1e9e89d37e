"""Handlers on one event loop, plain functions among them on threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Optional

from ..context import Context
from ..tasks import failed, succeeded
from .runs import NOT_BY_WORKER, Run, make_context, prepare
from .threads import Finish, Threads

if TYPE_CHECKING:
    from ..app import App
    from .exchange import Exchange


class Coroutines:
    """A task for each run, on a loop that has its own thread."""

    def __init__(self, app: App, exchange: Exchange, finish: Finish) -> None:
        self._app = app
        self._exchange = exchange
        self._finish = finish
        self._threads = Threads(app, exchange, finish)
        self._lock = threading.Lock()
        self._running: dict[str, tuple[asyncio.Task[None], Context]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="tenure-loop", daemon=True)
        self._thread.start()

    def start(self, run: Run) -> None:
        """Make a task of a run."""
        task = self._app.find(run.queue, run.kind)
        if task is not None and not task.is_async:
            self._threads.start(run)
            return
        context = make_context(
            run, self._exchange.transport, lambda value: self._exchange.keeper.report(run.id, value)
        )
        self._loop.call_soon_threadsafe(self._begin, run, context)

    def stop(self, run: Run, reason: str) -> None:
        """Cancel the run's task, at the next turn of the loop."""
        self._threads.stop(run, reason)
        with self._lock:
            found = self._running.get(run.id)
        if found is not None:
            found[1].lost.set()
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(found[0].cancel)

    def good(self, run: Run, stop_at: float) -> None:
        """Nothing to note: this process's own clock thread stops it."""

    def close(self) -> None:
        """End the loop."""
        self._threads.close()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1)

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        with contextlib.suppress(Exception):
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _begin(self, run: Run, context: Context) -> None:
        task = self._loop.create_task(self._perform(run, context))
        with self._lock:
            self._running[run.id] = (task, context)
        if run.stopping is not None:
            # It was told to stop before there was a task to cancel.
            task.cancel()

    async def _perform(self, run: Run, context: Context) -> None:
        item: Optional[dict[str, Any]] = None
        try:
            task, arguments = prepare(self._app, run, context)
            item = arguments if task is None else succeeded(await task.run(arguments, context))
        except asyncio.CancelledError:
            if run.stopping is None:
                # The handler cancelled itself, or a library did.
                item = {"outcome": "failed", "error": NOT_BY_WORKER}
        except BaseException as error:
            # `sys.exit()` in a handler ends its run and not the loop.
            item = failed(error)
        finally:
            with self._lock:
                self._running.pop(run.id, None)
        self._finish(run, None if item is None else context._complete(item))
