"""Raise at a chosen line of the package: what a fault in any of its lines would do."""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Optional

import tenure

_PACKAGE = str(Path(tenure.__file__).parent)
#: With these a thread begins another run, or hands one on.
_NEXT = {"perform", "prepare", "_assign"}
Tracer = Callable[[FrameType, str, Any], Any]


class Killed(BaseException):
    """The line did not get through."""


class Killer:
    """Counts the lines of the package that one thread runs, and raises at one of them."""

    def __init__(
        self, line: int, tell: Callable[[str], None], then: Optional[Tracer] = None
    ) -> None:
        self._left = line
        #: Called with the place before it raises there.
        self._tell = tell
        #: Traces on when the line was not reached.
        self._then = then
        self._over = False
        self._withs: set[tuple[int, int]] = set()

    def begin(self) -> None:
        """Count from here on, on this thread."""
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:
            if _is_ours(frame):
                frame.f_trace = self.trace
            frame = frame.f_back
        sys.settrace(self.trace)

    def trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        """Look at one step of the thread."""
        if self._over or not _is_ours(frame):
            return None
        if event == "call" and frame.f_code.co_name in _NEXT:
            # The end of the first run is through.
            self._over = True
            sys.settrace(self._then)
            return None
        if event == "line" and not self._leaves(frame):
            if self._left == 0:
                self._over = True
                sys.settrace(None)
                where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                self._tell(f"{where} {frame.f_code.co_name}")
                raise Killed(where)
            self._left -= 1
        return self.trace

    def _leaves(self, frame: FrameType) -> bool:
        """Say whether a `with` block is left: Python comes to its first line a second time.

        What is raised between the last line of a block and its `__exit__` keeps a lock for ever;
        nothing but a tracer can do that.
        """
        place = (id(frame), frame.f_lineno)
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if not line.startswith("with "):
            return False
        came_back = place in self._withs
        self._withs.add(place)
        return came_back


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)


class Listeners:
    """Kills the threads of a worker by processes that listen to its children, each at its line."""

    def __init__(self, tell: Callable[[str], None], apart: int) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._next = 0
        #: From one line at which a thread dies to that of the next.
        self._apart = apart

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Trace a thread; for `threading.settrace`."""
        if threading.current_thread().name != "tenure-child" or not _is_ours(frame):
            return None
        if frame.f_locals.get("kind") != "done" or frame.f_code.co_name != "_take_in":
            return self.trace
        with self._lock:
            killer = Killer(self._next, self._tell, then=self.trace)
            self._next += self._apart
        killer.begin()
        return killer.trace(frame, event, argument)
