"""One run of a job, and what it needs of the code that runs it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import threading
from typing import Any, Callable, Optional, Protocol

from .._handlers import Handler, HandlerApp
from .._http import Transport
from .._wire import now
from ..context import Context
from ..errors import CodecError
from ..outcomes import STOPS, Outcome, Stop
from ..payloads import DoesNotFit
from ..records import LeaseRecord
from ..tasks import failed, final, succeeded, unknown_kind
from .written import Written, not_written, write

#: The error of a handler that ended as a cancelled task, though nobody asked for it.
NOT_BY_WORKER = "the handler was cancelled, and not by the worker"


class Run:
    """A granted job. Ends once, by `finish`."""

    def __init__(self, lease: LeaseRecord, queue: str, kind: str) -> None:
        self.lease = lease
        self.id: str = str(lease.lease)
        self.queue = queue
        self.kind = kind
        self.began: float = now()
        #: Why it was told to stop, if it was.
        self.stopping: Optional[str] = None
        #: Its end is being taken in, or was.
        self.ended = False
        #: No runner has it yet.
        self.starting = True
        #: Code of the user may have run for it. Until then, giving it back costs nothing.
        self.begun: bool = False
        #: Since when no runner has it any more although it is not through.
        self.left_since: Optional[float] = None

    def begin(self) -> None:
        """Note that code of the user runs from now on."""
        self.begun = True

    @property
    def job(self) -> str:
        """The id of its job."""
        return self.lease.job.id if self.lease.job is not None else ""


class Runner(Protocol):
    """Where handlers run: threads, an event loop or processes."""

    def open(self) -> None:
        """Run the start hooks of the app; raises `HookFailed`."""

    def start(self, run: Run) -> None:
        """Begin a run; any thread may report its end to the worker."""

    def stop(self, run: Run, reason: str) -> None:
        """Make a run end soon. Must not block: the clock thread calls it."""

    def runs(self, run: Run) -> bool:
        """Say whether it has a run still, until the worker has taken in the end of it."""
        ...

    def good(self, run: Run, stop_at: float) -> None:
        """Note until when a run may go on, as things stand."""

    def look(self) -> None:
        """Mend what has broken; the worker's own thread calls it several times a second."""

    def run_stop_hooks(self) -> None:
        """Run the stop hooks of the app, when all runs are through."""

    def close(self) -> None:
        """End it; nothing runs any more, or what runs is given up."""


def raise_in(thread: int, kind: Optional[type[Stop]]) -> None:
    """Raise an exception in a thread of this process, or take back one that has not come yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if kind is None else ctypes.py_object(kind)
    )


class Interruptible:
    """Work on this thread that another thread can end by an exception.

    The exception comes at the next line of Python that the work runs: code that blocks outside of
    Python, as `time.sleep` does, gets it when it returns.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: Optional[int] = None
        self._kind: Optional[type[Stop]] = None
        self._over = False
        self._cancel: Optional[Callable[[], None]] = None

    @property
    def told(self) -> bool:
        """Say whether the work was told to end."""
        return self._kind is not None

    def stop(self, reason: str) -> None:
        """End the work, now or when it begins."""
        with self._lock:
            if self._kind is not None or self._over:
                return
            self._kind = STOPS[reason]
            if self._cancel is not None:
                self._cancel()
            elif self._thread is not None:
                raise_in(self._thread, self._kind)

    def through(self, cancel: Optional[Callable[[], None]]) -> None:
        """End the work by this call instead, for a coroutine in a loop of its own."""
        with self._lock:
            self._cancel = cancel
            if cancel is not None and self._kind is not None:
                cancel()

    def run(self, work: Callable[[], dict[str, Any]]) -> Optional[dict[str, Any]]:
        """Return the outcome of the work, None if it was ended."""
        item: Optional[dict[str, Any]] = None
        try:
            with self._lock:
                early = self._kind is not None
                self._thread = threading.get_ident()
            if not early:
                item = work()
        except Stop as stop:
            # A handler may raise it too, and then nobody has asked for an end of its run.
            item = None if self.told else failed(stop)
        finally:
            self._close()
        return item

    def _close(self) -> None:
        # The exception may come at any line, here too. It comes once at most, so the second turn
        # goes through.
        while True:
            try:
                with self._lock:
                    self._over = True
                    self._thread = None
                    if self._kind is not None:
                        raise_in(threading.get_ident(), None)
                return
            except Stop:
                continue


def perform(
    app: HandlerApp, run: Run, context: Context, interruptible: Interruptible
) -> Optional[Written]:
    """Run a handler on this thread; return its outcome, None if it was ended."""

    raised: list[BaseException] = []

    def work() -> dict[str, Any]:
        run.begin()
        task, arguments = prepare(app, run, context)
        if task is None:
            return arguments
        try:
            if task.is_async:
                value = _run_coroutine(task.run(arguments, context), interruptible)
            else:
                value = task.run(arguments, context)
        except Stop:
            raise
        except BaseException as error:
            # `sys.exit()` in a handler ends its run and not the worker.
            raised.append(error)
            return failed(error)
        return succeeded(value)

    try:
        item = interruptible.run(work)
        return None if item is None else write(item, context, raised[-1] if raised else None)
    except BaseException as why:
        return not_written(why)


def prepare(
    app: HandlerApp, run: Run, context: Context
) -> tuple[Optional[Handler], dict[str, Any]]:
    """Find the handler and its arguments; without a handler, the outcome instead of arguments."""
    task = app.find(run.queue, run.kind)
    if task is None:
        return None, unknown_kind(run.queue, run.kind)
    try:
        return task, task.arguments(context._open(), context)
    except (CodecError, DoesNotFit) as refused:
        # A retry would read the same.
        return None, final(str(refused))
    except Outcome as outcome:
        # Of the codec: its key cannot be had now.
        return None, outcome.settle_item()


def _run_coroutine(coroutine: Any, interruptible: Interruptible) -> Any:
    async def main() -> Any:
        task = asyncio.ensure_future(coroutine)
        loop = asyncio.get_running_loop()

        def cancel() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)

        interruptible.through(cancel)
        try:
            return await task
        except asyncio.CancelledError:
            if interruptible.told:
                raise Stop from None
            raise RuntimeError(NOT_BY_WORKER) from None

    try:
        return asyncio.run(main())
    finally:
        interruptible.through(None)


def make_context(
    run: Run, transport: Transport, report: Callable[[Optional[bytes]], None]
) -> Context:
    """Make the context of a run."""
    return Context(run.lease, transport, report)
