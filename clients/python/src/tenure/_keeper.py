"""Heartbeats on threads of their own, and the clock on another.

Two threads send extends: while a call of one hangs, the other sends what is due. The third only
looks at the clock and stops holders in time, so that a server that hangs cannot delay the end of a
right. None ends by an exception, and none runs anything that a handler could block.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref
from datetime import datetime
from typing import Callable, Optional

from ._holdings import EXTEND_AT, LONGEST_TRY_S, STOP_AT, TRY_FOR, Held, Holdings, OnStop
from ._http import Transport
from ._lost import ConnectionLost
from ._text import logger
from ._wire import now, request
from .payloads import encode

log: logging.Logger = logger("tenure")

#: An extend is waited for twice as long as until it is sent again, since there are two threads.
_TRIES = 2
#: The most leases in one call.
_BATCH = 1000
_NEVER = float("inf")
#: A wait does not count the time for which the machine sleeps, and a lease does. So the clock is
#: looked at this often, and a holder stops this soon after its machine wakes.
LOOK_S = 0.5
#: The call itself is refused, so the same call again would be.
_WRONG = (400, 413, 422)


class _Threads:
    """The threads of a keeper, from their start to its close."""

    def __init__(self) -> None:
        self.closed = False


class Keeper:
    """Extends leases until they are let go."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._begin()
        _KEEPERS.add(self)

    def _begin(self) -> None:
        self._lock = threading.Condition()
        self._holdings = Holdings()
        #: Until when the threads for each of the two sleep; a lease that is due before wakes them.
        self._beats_at = 0.0
        self._clock_at = 0.0
        self._threads: Optional[_Threads] = None

    def hold(
        self,
        lease: str,
        *,
        ttl: float,
        sent: float,
        on_stop: OnStop,
        timeout: Optional[float] = None,
        deadline_at: Optional[datetime] = None,
        on_good: Optional[Callable[[float], None]] = None,
        alive: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Hold a lease whose call was first sent at `sent`; False if it is lost already.

        A lease that is read late is extended, and the answer read, before its work may start.
        `alive` says whether somebody works under it still: otherwise it is not extended.
        """
        moment = now()
        held = Held(
            lease,
            ttl,
            on_stop,
            good_since=sent,
            next_extend=sent + EXTEND_AT * ttl,
            deadline=None if timeout is None else moment + timeout,
            deadline_at=deadline_at,
            on_good=on_good,
            alive=alive,
        )
        if moment - sent > EXTEND_AT * ttl and not self._confirm(held):
            return False
        with self._lock:
            self._holdings.add(held)
            self._start()
            if held.next_extend < self._beats_at or held.first_stop() < self._clock_at:
                self._lock.notify_all()
        return True

    def settling(self, lease: str) -> bool:
        """Say that its work is done: it is only extended from now on. False if it was lost."""
        with self._lock:
            held = self._holdings.get(lease)
            # The clock thread may not have run yet, in a process that was stopped.
            if held is None or held.stopped or (not held.settling and now() >= held.stop_at):
                return False
            self._holdings.settle(held, now())
            return True

    def let_go(self, lease: str) -> None:
        """Extend it no more."""
        with self._lock:
            self._holdings.remove(lease)

    def is_lost(self, lease: str) -> bool:
        """Say whether its right is over, also if the clock thread has not run yet."""
        with self._lock:
            held = self._holdings.get(lease)
            return held is None or held.stopped or now() >= held.stop_at

    def stop_at(self, lease: str) -> float:
        """Return when its work must stop, as things stand."""
        with self._lock:
            held = self._holdings.get(lease)
            return 0.0 if held is None else held.stop_at

    def report(self, lease: str, progress: Optional[bytes]) -> None:
        """Send progress, which is JSON, within a second; only the last report of a lease counts."""
        with self._lock:
            held = self._holdings.get(lease)
            if held is None:
                return
            held.progress = progress
            at = self._holdings.next_extend()
            if at is not None and at < self._beats_at:
                self._lock.notify_all()

    def unsent_progress(self, lease: str) -> Optional[bytes]:
        """Return progress that no heartbeat has taken along yet, None if there is none."""
        with self._lock:
            held = self._holdings.get(lease)
            return None if held is None else held.progress

    def close(self) -> None:
        """End the threads. Leases that are held are not given back."""
        with self._lock:
            if self._threads is not None:
                self._threads.closed = True
                self._threads = None
            self._lock.notify_all()

    def _confirm(self, held: Held) -> bool:
        """Extend a lease that was read late; True if it is held."""
        until = now() + STOP_AT * held.ttl
        while now() < until:
            sent = now()
            if self._extend([held], sent, alone=True):
                return held.good_since == sent
        return False

    def _start(self) -> None:
        if self._threads is not None:
            return
        threads = self._threads = _Threads()
        for name, work in (("beats", self._beat), ("again", self._beat), ("clock", self._watch)):
            threading.Thread(
                target=self._forever, args=(work, threads), name=f"tenure-{name}", daemon=True
            ).start()

    def _forever(self, work: Callable[[], None], threads: _Threads) -> None:
        while not threads.closed:
            try:
                work()
            except BaseException:
                # Whatever it was, a heartbeat thread that ends loses every lease.
                with contextlib.suppress(BaseException):
                    log.exception("a heartbeat failed; the next one is sent in time")
                with self._lock:
                    self._lock.wait(0.1)

    def _beat(self) -> None:
        with self._lock:
            if self._threads is None:
                return
            moment = now()
            due = self._holdings.due(moment)
            if not due:
                at = self._holdings.next_extend()
                self._beats_at = _NEVER if at is None else at
                self._lock.wait(None if at is None else min(max(0.001, at - moment), LOOK_S))
                return
            servers = self._transport.servers
            silent = self._holdings.asks(due, moment, servers.at)
        for address in silent:
            # Where there are several servers, the next one is asked.
            servers.lost(address)
        alive: list[Held] = []
        left: list[Held] = []
        for held in due:
            (alive if held.alive() else left).append(held)
        with self._lock:
            # Looked at again soon: its outcome may be written by then.
            self._holdings.failed(left, moment, now())
            # The outcomes of the others have come up since they were due.
            alive = self._holdings.still_due(alive, now())
        for start in range(0, len(alive), _BATCH):
            self._extend(alive[start : start + _BATCH], now())

    def _extend(self, asked: list[Held], sent: float, *, alone: bool = False) -> bool:
        """Extend leases once; False if it was not answered."""
        reports = [(held, held.progress) for held in asked]
        items = [
            encode(held.lease)
            if progress is None
            else b'{"lease":%b,"progress":%b}' % (encode(held.lease), progress)
            for held, progress in reports
        ]
        shortest = min(held.ttl for held in asked)
        made = request("POST", "leases", "extend", written=b'{"leases":[%b]}' % b",".join(items))
        try:
            patience = _TRIES * min(TRY_FOR * shortest, LONGEST_TRY_S)
            response = self._transport.once(made, patience)
        except ConnectionLost:
            return self._not_extended(asked, sent, alone)
        if response.status >= 400:
            code = (response.data or {}).get("code")
            if response.status in _WRONG and any(progress for _, progress in reports):
                # A report that is refused must not cost the leases their heartbeat.
                log.error("a progress report was refused (%s) and is dropped", code)
                with self._lock:
                    for held, progress in reports:
                        if held.progress is progress:
                            held.progress = None
            return self._not_extended(asked, sent, alone)
        with self._lock:
            if alone:
                held = asked[0]
                if held.lease not in response.data.get("lost", ()):
                    held.good_since = sent
                    held.next_extend = sent + EXTEND_AT * held.ttl
                return True
            stops = self._holdings.answered(asked, sent, now(), response.data)
            for held, progress in reports:
                if held.progress is progress:
                    held.progress = None
            told = [(held.on_good, held.stop_at) for held in asked if held.on_good is not None]
        self._tell(stops)
        for on_good, stop_at in told:
            on_good(stop_at)
        return True

    def _not_extended(self, asked: list[Held], sent: float, alone: bool) -> bool:
        # Not logged: a log that blocks would block the heartbeats of all other leases.
        with self._lock:
            if alone:
                self._lock.wait(EXTEND_AT * asked[0].ttl / 4)
            else:
                self._holdings.failed(asked, sent, now())
        return False

    def _watch(self) -> None:
        with self._lock:
            if self._threads is None:
                return
            stops = self._holdings.overdue(now())
            if not stops:
                at = self._holdings.next_stop()
                self._clock_at = _NEVER if at is None else at
                self._lock.wait(None if at is None else min(max(0.001, at - now()), LOOK_S))
                return
        self._tell(stops)

    def _tell(self, stops: list[tuple[Held, str]]) -> None:
        for held, reason in stops:
            try:
                held.on_stop(reason)
            except Exception:
                log.exception("a holder could not be stopped")


_KEEPERS: weakref.WeakSet[Keeper] = weakref.WeakSet()


def _after_fork() -> None:
    # Threads do not survive a fork, a lock that one of them held does, and the leases are those of
    # the parent, which goes on extending them.
    for keeper in list(_KEEPERS):
        keeper._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
