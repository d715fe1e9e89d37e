"""The inside of a process that runs handlers, one at a time on its main thread."""

from __future__ import annotations

import os
import queue
import signal
import threading
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Optional

from .._http import Transport
from .._wire import now
from ..context import Context
from ..records import LeaseRecord
from ..tasks import find_task
from .runs import Interruptible, Run, make_context, perform

if TYPE_CHECKING:
    from ..app import App

#: Exit code of a process that stopped because its lease could not be extended in time.
LEASE_LOST = 75


def main(pipe: Connection, tasks: list[tuple[str, str]]) -> None:
    """Run what comes through the pipe until it is closed."""
    # The parent decides when this process ends. A function, not SIG_IGN: programs that a handler
    # starts would inherit that.
    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, lambda *_: None)
    # Imported by name, so that the app here is the one of the module here.
    app = next(find_task(module, name) for module, name in tasks).app
    Child(pipe, app).run()


class Child:
    """Runs handlers, listens to the parent, and watches the clock."""

    def __init__(self, pipe: Connection, app: App) -> None:
        self._pipe = pipe
        self._app = app
        self._transport = Transport(app.settings, retry_for=15)
        self._lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._runs: queue.SimpleQueue[tuple[Run, Interruptible, Context]] = queue.SimpleQueue()
        #: The run that is queued or running, and until when it may go on.
        self._current: Optional[tuple[Interruptible, Context]] = None
        self._stop_at = 0.0

    def run(self) -> None:
        """Run handlers on this thread, for ever."""
        threading.Thread(target=self._listen, daemon=True).start()
        self._send("ready", "", None)
        while True:
            run, interruptible, context = self._runs.get()
            item = perform(self._app, run, context, interruptible)
            with self._lock:
                self._current = None
            self._send("done", run.id, item)

    def _listen(self) -> None:
        """Take in what the parent says; end this process if it has been silent for too long.

        One thread does both, and reads all that has come before it looks at the clock. Nothing
        runs here while a handler keeps the interpreter's lock, or the process is stopped; what the
        parent said meanwhile waits in the pipe, and the lease may be as good as ever.
        """
        while True:
            with self._lock:
                left = None if self._current is None else max(0.0, self._stop_at - now())
            try:
                if self._pipe.poll(left):
                    self._take_in(*self._pipe.recv())
                    continue
            except (EOFError, OSError):
                # The parent is gone, and nobody extends the lease.
                os._exit(LEASE_LOST)
            with self._lock:
                if self._current is not None and now() >= self._stop_at:
                    os._exit(LEASE_LOST)

    def _take_in(self, kind: str, *rest: Any) -> None:
        if kind == "run":
            self._accept(*rest)
        elif kind == "good":
            with self._lock:
                self._stop_at = max(self._stop_at, rest[0])
        elif kind == "stop":
            with self._lock:
                current = self._current
            if current is not None:
                current[1].lost.set()
                current[0].stop(rest[0])

    def _accept(self, name: str, kind: str, raw: dict[str, Any], stop_at: float) -> None:
        run = Run(LeaseRecord.read(raw), name, kind)
        interruptible = Interruptible()
        context = make_context(
            run, self._transport, lambda value: self._send("progress", run.id, value)
        )
        with self._lock:
            self._current = (interruptible, context)
            self._stop_at = stop_at
        self._runs.put((run, interruptible, context))

    def _send(self, *message: Any) -> None:
        with self._send_lock:
            self._pipe.send(message)
