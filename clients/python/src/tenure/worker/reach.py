"""Whether the server answers, as the log of a worker says it.

The calls of a worker are made by several threads, some of which must not wait for a log. So they
only note what became of a call, and the worker's own thread looks and logs.
"""

from __future__ import annotations

import itertools
import logging
import threading
from typing import Optional

from .._calls import check
from .._http import Transport
from .._lost import ConnectionLost
from .._settings import Settings
from .._wire import Request, Response, now, request
from ..errors import from_problem

#: Shorter outages are no news: a server that starts again, a connection that was closed.
_NEWS_S = 0.5
#: A call that is not answered for longer than this, beyond its wait, is an outage.
_SILENT_S = 1.5
_SAY_AGAIN_S = 60.0
_BRACES = str.maketrans({"{": "{{", "}": "}}"})


class Reach:
    """What is known of the way to the servers."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._ids = itertools.count()
        #: Of each call under way, when it is answered at the latest if all is well.
        self._expected: dict[int, float] = {}
        self._away_since: Optional[float] = None
        #: The text of the present failure, with a placeholder for its duration.
        self._wrong = ""
        self._said_at: Optional[float] = None
        #: For how long it was away, until that is logged.
        self._was_away: Optional[float] = None

    def begin(self, now: float, wait: float) -> int:
        """Note that a call is sent that waits at the server for as long; return its number."""
        with self._lock:
            call = next(self._ids)
            self._expected[call] = now + wait
            return call

    def end(self, call: int) -> None:
        """Note that a call is over."""
        with self._lock:
            self._expected.pop(call, None)

    def answered(self, now: float) -> None:
        """Note that the server answered."""
        with self._lock:
            if self._away_since is not None and self._said_at is not None:
                self._was_away = now - self._away_since
            self._away_since = self._said_at = None

    def lost(self, now: float, why: str) -> None:
        """Note that a call was not answered, and why."""
        with self._lock:
            self._note(now, f"cannot reach {self.address}{{}}: {why.translate(_BRACES)}")

    def refused(self, now: float, why: str) -> None:
        """Note that the server answered that it cannot serve, and why."""
        with self._lock:
            self._note(now, f"{self.address} cannot serve{{}}: {why.translate(_BRACES)}")

    def _note(self, since: float, wrong: str) -> None:
        self._wrong = wrong
        if self._away_since is None:
            self._away_since = since

    def look(self, now: float) -> Optional[tuple[int, str]]:
        """Return what is to be logged now, with its level."""
        with self._lock:
            first = min(self._expected.values(), default=now)
            if self._away_since is None and now - first >= _SILENT_S:
                self._note(first, f"cannot reach {self.address}{{}}: it does not answer")
            if self._was_away is not None:
                was_away, self._was_away = self._was_away, None
                return logging.INFO, f"reached {self.address} again after {_long(was_away)}"
            if self._away_since is None or now - self._away_since < _NEWS_S:
                return None
            if self._said_at is None:
                how_long = ""
            elif now - self._said_at >= _SAY_AGAIN_S:
                how_long = f" for {_long(now - self._away_since)}"
            else:
                return None
            self._said_at = now
            return logging.WARNING, f"{self._wrong.format(how_long)}; trying again"


class WatchedTransport(Transport):
    """A transport that notes which of its single calls are answered."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, retry_for=0)
        self.reach: Reach = Reach(settings.shown)

    def once(self, request: Request, timeout: float) -> Response:
        """Send a request once; `ConnectionLost` says that it was not answered."""
        call = self.reach.begin(now(), request.wait)
        try:
            response = super().once(request, timeout)
        except ConnectionLost as fault:
            self.reach.lost(now(), str(fault))
            raise
        finally:
            self.reach.end(call)
        if response.status >= 500:
            error = from_problem(response.status, response.data, response.retry_after)
            self.reach.refused(now(), error.detail)
        else:
            self.reach.answered(now())
        return response


def ask_once(settings: Settings) -> None:
    """Call the server once; raise the error that a worker would meet."""
    transport = Transport(settings, retry_for=0)
    try:
        # An extend of nothing: it needs the scope of a worker and no other, and the leader answers.
        check(transport.send(request("POST", "leases", "extend", body={"leases": []})))
    finally:
        transport.close()


def _long(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
