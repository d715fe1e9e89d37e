"""The inside of a process that runs handlers, one at a time on its main thread."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import threading
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn, Optional

from .._handlers import HandlerApp
from .._http import Transport
from .._keeper import LOOK_S
from .._stderr import set_up
from .._text import describe
from .._wire import now
from ..context import Context
from ..hooks import HookFailed
from ..records import LeaseRecord
from ..tasks import find_task
from .runs import Interruptible, Run, make_context, perform

#: Exit code of a process that stopped because its lease could not be extended in time.
LEASE_LOST = 75
#: Seconds after which a run has a thread that listens for it.
_LASTS_S = 0.02


@dataclass
class _Current:
    """What runs."""

    run: Run
    interruptible: Interruptible
    context: Context


class _Run(Run):
    """A run that tells the parent by memory that they share, which outlives this process."""

    def __init__(self, lease: LeaseRecord, queue: str, kind: str, begun: Any, number: int) -> None:
        super().__init__(lease, queue, kind)
        self._begun = begun
        self._number = number

    def begin(self) -> None:
        """Note that code of the user runs from now on."""
        self._begun.value = self._number


def main(
    pipe: Connection, tasks: list[tuple[str, str]], begun: Any, log_level: Optional[int]
) -> None:
    """Run what comes through the pipe until it is closed."""
    if log_level is not None:
        set_up(log_level)
    # What handlers start ends with this process: the parent kills the whole group.
    os.setsid()
    # The parent decides when this process ends. A function, not SIG_IGN: programs that a handler
    # starts would inherit that.
    before = {
        which: signal.signal(which, lambda *_: None) for which in (signal.SIGINT, signal.SIGTERM)
    }
    # `multiprocessing` ends the processes of a handler by SIGTERM.
    os.register_at_fork(after_in_child=lambda: _restore(before))
    try:
        # Imported by name, so that the app here is the one of the module here.
        app = next(find_task(module, name) for module, name in tasks).app
    except BaseException as error:
        pipe.send(("not_ready", "", describe(error)))
        return
    Child(pipe, app, begun).run()
    # `multiprocessing` ends a process without this.
    logging.shutdown()


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    for which, handler in handlers.items():
        signal.signal(which, handler)


def _end_with_all() -> NoReturn:
    """End this process, whose parent is gone, and those that its handlers started."""
    os.killpg(0, signal.SIGKILL)
    os._exit(LEASE_LOST)


class Child:
    """Runs handlers, listens to the parent, and watches the clock.

    The main thread reads the pipe between runs, so that a short run costs no switch of threads. A
    run that lasts has a second thread read in its stead, until it ends.
    """

    def __init__(self, pipe: Connection, app: HandlerApp, begun: Any) -> None:
        self._pipe = pipe
        #: The number of the last run that has begun.
        self._begun = begun
        self._app = app
        self._transport = Transport(app.settings, retry_for=15)
        self._transport.codec = app.codec
        self._state = threading.Condition()
        self._send_lock = threading.Lock()
        #: The run that is running, and until when it may go on.
        self._current: Optional[_Current] = None
        self._stop_at = 0.0
        self._watcher_sleeps = False
        self._watcher_reads = False
        self._end_read, self._end_write = os.pipe()

    def run(self) -> None:
        """Run the hooks and the handlers on this thread, until it is told to end."""
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            self._app.hooks.start()
        except HookFailed as failed:
            self._send("hook_failed", "", str(failed))
            return
        self._send("ready", "", None)
        while True:
            try:
                kind, *rest = self._pipe.recv()
            except (EOFError, OSError):
                _end_with_all()
            if kind == "run":
                self._perform(*rest)
            elif kind == "close":
                self._app.hooks.stop()
                return

    def _perform(
        self, number: int, name: str, kind: str, raw: dict[str, Any], stop_at: float
    ) -> None:
        run = _Run(LeaseRecord.read(raw), name, kind, self._begun, number)
        context = make_context(
            run, self._transport, lambda value: self._send("progress", run.id, value)
        )
        current = _Current(run, Interruptible(), context)
        self._stop_at = stop_at
        while now() >= self._stop_at:
            # This process was stopped, and what the parent said since waits in the pipe.
            if not self._pipe.poll():
                os._exit(LEASE_LOST)
            self._read(current)
        with self._state:
            self._current = current
            if self._watcher_sleeps or stop_at - now() < 2 * _LASTS_S:
                self._state.notify_all()
        written = perform(self._app, run, context, current.interruptible)
        with self._state:
            self._current = None
            if self._watcher_reads:
                os.write(self._end_write, b".")
            while self._watcher_reads:
                self._state.wait()
        if written is not None:
            # An exception may hold what no other process can have.
            written = replace(written, raised=None)
        self._send("done", run.id, written)

    def _watch(self) -> None:
        """Read for the main thread while a run lasts."""
        with self._state:
            while True:
                seen = self._current
                if seen is None:
                    self._watcher_sleeps = True
                    self._state.wait()
                    self._watcher_sleeps = False
                    continue
                self._state.wait(max(0.0, min(_LASTS_S, self._stop_at - now())))
                if self._current is not seen:
                    continue
                self._watcher_reads = True
                self._state.release()
                try:
                    self._listen(seen)
                finally:
                    self._state.acquire()
                    self._watcher_reads = False
                    self._state.notify_all()

    def _listen(self, current: _Current) -> None:
        """Take in what the parent says of a run; end this process if it is silent for too long.

        All that has come is read before the clock counts. Nothing runs here while a handler keeps
        the interpreter's lock, or the process is stopped; what the parent said meanwhile waits in
        the pipe, and the lease may be as good as ever.
        """
        while True:
            left = min(max(0.0, self._stop_at - now()), LOOK_S)
            ready = wait([self._pipe, self._end_read], left)
            if self._end_read in ready:
                os.read(self._end_read, 1)
                return
            try:
                if ready:
                    self._read(current)
                    continue
            except (EOFError, OSError):
                # Nobody extends the lease.
                _end_with_all()
            with self._state:
                if self._current is current and now() >= self._stop_at:
                    os._exit(LEASE_LOST)

    def _read(self, current: _Current) -> None:
        """Take in one message of the parent."""
        kind, lease, value = self._pipe.recv()
        if lease != current.run.id:
            return
        if kind == "good":
            self._stop_at = max(self._stop_at, value)
        elif kind == "stop":
            current.context.lost.set()
            current.interruptible.stop(value)

    def _send(self, *message: Any) -> None:
        with self._send_lock:
            self._pipe.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
