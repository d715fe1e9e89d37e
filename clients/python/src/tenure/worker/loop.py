"""A worker's life: start, run, drain, end."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Optional

from .._handlers import HandlerApp
from .._holdings import CANCELLED, LOST, TIMED_OUT
from .._text import logger
from .._wire import now
from ..hooks import HookFailed
from ..outcomes import StopDraining
from ..records import LeaseRecord
from .exchange import Exchange
from .reach import WatchedTransport
from .runs import Run, Runner
from .written import RELEASED, Written, failure, not_written

if TYPE_CHECKING:
    from collections.abc import Iterator

log: logging.Logger = logger("tenure.worker")

DRAINING = StopDraining.reason
#: How long handlers that were told to stop may take before they are given up.
_GRACE_S = 2.0
#: A run that no thread or process runs any more is ended here, if its end is missing this long.
_LEFT_S = 0.2
_LEFT = "the worker failed at the end of the run, and its outcome is lost; see the worker's log"
_DEFAULTS = {"threads": 8, "asyncio": 100, "processes": os.cpu_count() or 1}


class Worker:
    """Runs the handlers of an app."""

    def __init__(
        self,
        app: HandlerApp,
        queues: list[str],
        *,
        kind: str,
        concurrency: Optional[int],
        ttl: float,
        drain_timeout: float,
        until_empty: bool,
    ) -> None:
        if kind not in _DEFAULTS:
            raise ValueError(f'kind is "threads", "asyncio" or "processes", not "{kind}"')
        self._concurrency = concurrency or _DEFAULTS[kind]
        self._kind = kind
        self._app = app
        self._queues = queues
        self._drain_timeout = drain_timeout
        self._until_empty = until_empty
        transport = WatchedTransport(app.settings)
        transport.codec = app.codec
        self._reach = transport.reach
        self._exchange = Exchange(
            transport,
            queues,
            self._concurrency,
            ttl,
            self._begin,
            until_empty,
        )
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._stops = 0
        #: Leases that have a slot and no run; most often one that begins or ends just now.
        self._unknown: set[str] = set()
        self._wake = threading.Condition()
        self._runner: Runner

    def run(self) -> None:
        """Run until a signal, or `stop`."""
        self._runner = self._make_runner()
        try:
            # Before the signals are counted: a hook that hangs can be interrupted.
            self._runner.open()
        except BaseException:
            self._exchange.close()
            self._runner.close()
            raise
        with self._signals():
            log.info(
                "takes jobs of %s, %d at once by %s",
                ", ".join(self._queues),
                self._concurrency,
                self._kind,
            )
            self._exchange.start()
            try:
                self._wait(lambda: self._stops > 0 or self._is_done())
                self._drain()
                self._runner.run_stop_hooks()
            finally:
                self._exchange.close()
                self._runner.close()
        if self._exchange.fault is not None:
            raise self._exchange.fault

    def stop(self) -> None:
        """Drain; a second time: end now."""
        self._stops += 1

    def _make_runner(self) -> Runner:
        if self._kind == "threads":
            from .threads import Threads

            return Threads(self._app, self._exchange, self._finish)
        if self._kind == "asyncio":
            from .coroutines import Coroutines

            return Coroutines(self._app, self._exchange, self._finish)
        from .processes import Processes

        return Processes(self._app, self._exchange, self._finish, self._concurrency)

    def _is_done(self) -> bool:
        if self._exchange.fault is not None:
            return True
        return self._until_empty and self._exchange.found_nothing and self._exchange.idle()

    def _wait(self, until: Any, seconds: Optional[float] = None) -> bool:
        end = None if seconds is None else now() + seconds
        # A signal handler may only set a number: a lock that the main thread holds would be held
        # for ever. So this looks, twenty times a second.
        while not until():
            if end is not None and now() >= end:
                return False
            self._look()
            with self._wake:
                self._wake.wait(0.05)
        return True

    def _drain(self) -> None:
        self._exchange.drain()
        if not self._exchange.idle():
            log.info("drains: %d jobs still run", len(self._runs))
        # Without what its hooks open, nothing of this worker goes on.
        patience = 0.0 if isinstance(self._exchange.fault, HookFailed) else self._drain_timeout
        self._wait(lambda: self._exchange.idle() or self._stops > 1, patience)
        if self._exchange.idle():
            return
        with self._lock:
            left = list(self._runs.values())
        for run in left:
            self._stop(run, DRAINING)
        if self._wait(self._exchange.idle, _GRACE_S):
            return
        with self._lock:
            stuck = [run for run in self._runs.values() if not run.ended]
            for run in stuck:
                run.ended = True
        for run in stuck:
            self._exchange.give_back(run.id, run.job)
        if not self._wait(self._exchange.settled, _GRACE_S):
            log.error("ends with outcomes that the server did not answer; their jobs may run again")
        if stuck and self._kind != "processes":
            # Their code still runs, and cannot be stopped from here. The jobs are given back, so
            # nothing of them may go on in this process.
            log.warning("ends at once: %d handlers could not be stopped", len(stuck))
            logging.shutdown()
            os._exit(1)

    def _begin(self, lease: LeaseRecord, sent: float) -> None:
        """Begin a granted job; called on the thread that asks."""
        assert lease.job is not None
        run = Run(lease, lease.job.queue, lease.job.kind)
        timeout = None
        if lease.deadline is not None and lease.granted_at is not None:
            timeout = (lease.deadline - lease.granted_at).total_seconds()
        try:
            with self._lock:
                self._runs[run.id] = run
            held = self._exchange.keeper.hold(
                run.id,
                ttl=self._exchange.ttl,
                sent=sent,
                on_stop=lambda reason: self._stop(run, reason),
                timeout=timeout,
                deadline_at=lease.deadline,
                on_good=lambda stop_at: self._runner.good(run, stop_at),
                alive=lambda: self._lives(run) or self._exchange.settles(run.id),
            )
            if held:
                self._runner.start(run)
            else:
                run.stopping = LOST
                self._finish(run, None)
        except Exception:
            log.exception("job %s could not be started and is given back", run.job)
            self._finish(run, RELEASED)
        finally:
            run.starting = False

    def _lives(self, run: Run) -> bool:
        """Say whether somebody runs it, or takes in its end."""
        return run.starting or self._runner.runs(run)

    def _look(self) -> None:
        """Say how the server is reached, and end the runs that nobody runs any more.

        Called several times a second. Whoever runs a handler reports its end. Should that fail, at
        whatever line, then nobody would ever free its slot, nor let its lease go.
        """
        news = self._reach.look(now())
        if news is not None:
            log.log(*news)
        self._runner.look()
        with self._lock:
            runs = list(self._runs.values())
            unknown = self._exchange.slots() - self._runs.keys()
        for lease in unknown & self._unknown:
            self._exchange.finish(lease, "", RELEASED)
        self._unknown = unknown
        for run in runs:
            if self._lives(run):
                run.left_since = None
            elif run.left_since is None:
                run.left_since = now()
            elif now() - run.left_since > _LEFT_S:
                run.ended = True
                self._end(run, None if run.stopping is not None else _left(run))

    def _stop(self, run: Run, reason: str) -> None:
        with self._lock:
            if run.ended or run.stopping == LOST:
                return
            run.stopping = reason
        self._runner.stop(run, reason)

    def _finish(self, run: Run, written: Optional[Written]) -> None:
        """Take in the end of a run; `written` is None if it was stopped."""
        with self._lock:
            if run.ended:
                return
            run.ended = True
        self._end(run, written)

    def _end(self, run: Run, written: Optional[Written]) -> None:
        """Settle a run and free its slot. A second time it does what is left to be done."""
        try:
            written = self._to_settle(run, written)
            self._log(run, written)
        except Exception as why:
            log.exception("job %s: its end could not be taken in", run.job)
            written = not_written(why)
        self._exchange.finish(run.id, run.job, written, now() - run.began)
        with self._lock:
            self._runs.pop(run.id, None)

    def _to_settle(self, run: Run, written: Optional[Written]) -> Optional[Written]:
        """Return what to settle, None for nothing."""
        keeper = self._exchange.keeper
        if written is None:
            written = _stopped(run.stopping)
        # A report that came after the last heartbeat goes with the settle.
        if written is not None:
            written = written.with_progress(keeper.unsent_progress(run.id))
        if keeper.settling(run.id):
            return written
        # Somebody else may hold the job by now: what this run found counts no more.
        keeper.let_go(run.id)
        return None

    @staticmethod
    def _log(run: Run, written: Optional[Written]) -> None:
        attempt = run.lease.job.attempt if run.lease.job is not None else 0
        outcome = "lease_lost" if written is None else written.outcome
        if outcome == "released" and run.stopping == CANCELLED:
            # A run that is given back after a cancel is the job's end.
            outcome = CANCELLED
        level = logging.WARNING if outcome in ("lease_lost", "failed") else logging.INFO
        error = f": {written.error}" if written is not None and written.error else ""
        raised = written.raised if written is not None else None
        # Neither the payload nor the result is logged.
        log.log(
            level,
            "job %s %s %s attempt %d %s in %.3f s%s",
            run.job,
            run.queue,
            run.kind or "-",
            attempt,
            outcome,
            now() - run.began,
            error,
            exc_info=raised,
            extra={"says_its_error": True},
        )

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Count SIGTERM and SIGINT while it runs, where this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def count(*_: Any) -> None:
            self._stops += 1

        before = {which: signal.signal(which, count) for which in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for which, handler in before.items():
                signal.signal(which, handler)


def _left(run: Run) -> Written:
    """Say how a run is settled that nobody runs any more, though its end did not come."""
    return failure(_LEFT) if run.begun else RELEASED


def _stopped(reason: Optional[str]) -> Optional[Written]:
    """Say how a run that was stopped is settled; None: not at all."""
    if reason == LOST:
        return None
    if reason == TIMED_OUT:
        return failure("timeout")
    # After a cancel this end makes the job `cancelled`.
    assert reason in (CANCELLED, DRAINING, None), reason
    return RELEASED
