"""Standard error of the commands: a program that works for others never waits for its reader.

A terminal that was stopped by Ctrl-S and a full pipe take nothing, and a thread that writes to them
waits for good. So a thread of its own writes, in order. Lines that do not fit into its queue are
dropped and counted; a line reports their number as soon as stderr is read again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import sys
import threading
import weakref
from collections import deque
from typing import Callable, Optional, Union

from .logs import JobFilter

#: Bytes that wait to be written.
_QUEUE_BYTES_MAX = 1 << 20
#: At its end a program waits this long at most until all is written.
_LAST_WORDS_S = 0.5


class StderrHandler(logging.Handler):
    """Writes the records of a program to stderr. Never blocks the thread that logs."""

    def __init__(self, write: Optional[Callable[[bytes], None]] = None) -> None:
        super().__init__()
        self._write: Callable[[bytes], None] = _write if write is None else write
        self._begin()
        _HANDLERS.add(self)

    def _begin(self) -> None:
        # A handler of the job may log in a signal handler, on a thread that is in here already.
        self._changed = threading.Condition(threading.RLock())
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        #: Lines that did not fit since the last report of them.
        self._dropped = 0
        self._is_writing = False
        #: Started by the first line.
        self._thread: Optional[threading.Thread] = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            self.say(self.format(record))
        except Exception:
            self.handleError(record)

    def say(self, line: str) -> None:
        """Write a line, without its end."""
        written = line.encode("utf-8", "backslashreplace") + b"\n"
        with self._changed:
            if self._bytes + len(written) > _QUEUE_BYTES_MAX:
                self._dropped += 1
                return
            self._waiting.append(written)
            self._bytes += len(written)
            if self._thread is None:
                # It may stand still in a write for good, and must not keep the process alive.
                self._thread = threading.Thread(
                    target=self._write_all, name="tenure-stderr", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all is written, for half a second at most."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._waiting and not self._is_writing, _LAST_WORDS_S
            )

    def _write_all(self) -> None:
        while True:
            written = self._next()
            with contextlib.suppress(OSError):
                self._write(written)
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    def _next(self) -> bytes:
        """Wait for the next line. The report of lost lines stands where they are missing."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._dropped)
            self._is_writing = True
            if self._waiting:
                written = self._waiting.popleft()
                self._bytes -= len(written)
                return written
            lost, self._dropped = self._dropped, 0
            return f"tenure: {lost} lines were lost here: nobody read stderr\n".encode()


class _Formatter(logging.Formatter):
    """Names the job before what its handler logs."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        job = getattr(record, "job_id", "-")
        if job != "-":
            record.message = f"job {job}: {record.message}"
        return super().formatMessage(record)


def set_up(level: Union[int, str]) -> None:
    """Log to stderr, as the commands do."""
    handler = StderrHandler()
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(JobFilter())
    logging.basicConfig(level=level, handlers=[handler])
    # httpx of a handler would log a line for each of its requests.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def level_of_commands() -> Optional[int]:
    """Return the level of the log if it was set up here, so that other processes do the same."""
    root = logging.getLogger()
    ours = any(isinstance(each, StderrHandler) for each in root.handlers)
    return root.level if ours else None


_HANDLERS: weakref.WeakSet[StderrHandler] = weakref.WeakSet()


def say(line: str) -> None:
    """Write a line to stderr, without its end: by the handler of this program if it has one."""
    for each in logging.getLogger().handlers:
        if isinstance(each, StderrHandler):
            each.say(line)
            return
    print(line, file=sys.stderr)


def _write(written: bytes) -> None:
    # Not by `sys.stderr`: a thread that stands still in it keeps its lock, which the interpreter
    # takes when it ends.
    left = memoryview(written)
    while left:
        try:
            left = left[os.write(2, left) :]
        except BlockingIOError:
            # Another process that shares it has made it so.
            select.select([], [2], [])


def _after_fork() -> None:
    # The thread does not survive a fork, and what waits is written by the parent.
    for each in list(_HANDLERS):
        each._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
