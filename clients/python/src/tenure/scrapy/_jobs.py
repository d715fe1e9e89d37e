"""The jobs that a spider works on: leased by a worker on threads of its own, crawled on the loop.

The worker is the package's own: it asks, extends, settles and drains. A run is over when no request
of it is left in the scheduler or in the engine, which is looked up and not counted: requests are
dropped in many places (filters, middlewares, pipelines), and one that was missed in a count would
keep its job for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional

from scrapy import Request
from scrapy.crawler import Crawler

from .._holdings import LOST
from .._text import describe, logger
from .._wire import now
from ..app import App
from ..context import Context
from ..errors import CodecError, TenureError
from ..outcomes import Outcome
from ..tasks import failed, final, succeeded
from ..worker.loop import DRAINING, Worker
from ..worker.runs import Run, Runner, make_context
from ..worker.written import Written, write
from ._crawler import in_progress, running_loop

if TYPE_CHECKING:
    import logging

log: logging.Logger = logger("tenure.scrapy")

#: Inherited by all requests that come from a job: the lease under which it runs.
META_KEY = "tenure_job"
#: How long a run that was told to stop waits for its last answers.
_LAST_ANSWERS_S = 5.0


@dataclass
class JobCounts:
    """What came of a job."""

    #: Requests that were scheduled for it, redirects and retries among them.
    requests: int = 0
    items: int = 0
    #: Requests that failed without an errback, and callbacks that raised.
    errors: int = 0
    #: The first of them.
    error: Optional[str] = None


class SpiderJob:
    """One run of a job by this spider."""

    def __init__(self, run: Run, context: Context) -> None:
        self.run = run
        self.context = context
        self.counts = JobCounts()
        #: Requests of it that are in the scheduler.
        self.scheduled = 0
        #: Its first requests are not all made yet.
        self.starting = True
        #: When it was told to stop; its requests are dropped from then on.
        self.stopped_at: Optional[float] = None
        self.seen: set[bytes] = set()

    def failed(self, error: Optional[BaseException]) -> None:
        """Count an error."""
        self.counts.errors += 1
        if self.counts.error is None:
            self.counts.error = None if error is None else describe(error)


class SpiderJobs:
    """All jobs of a spider. Only the loop's thread touches it, except where it says so."""

    def __init__(
        self,
        crawler: Crawler,
        app: App,
        queues: list[str],
        finish: Callable[[Context, JobCounts], Any],
        *,
        concurrency: int,
        ttl: float,
        until_empty: bool,
    ) -> None:
        self._crawler = crawler
        self._finish = finish
        self._running: dict[str, SpiderJob] = {}
        self._loop: asyncio.AbstractEventLoop
        self._thread: Optional[threading.Thread] = None
        #: Jobs that were granted; None: no more will come.
        self.arrivals: asyncio.Queue[Optional[SpiderJob]]
        #: Why the server gives no jobs, if it refuses to.
        self.fault: Optional[TenureError] = None
        self._worker = _FeedingWorker(
            app,
            queues,
            kind="asyncio",
            concurrency=concurrency,
            ttl=ttl,
            # The spider says when it closes; what still runs then is given back.
            drain_timeout=float("inf"),
            until_empty=until_empty,
        )
        self._worker.jobs = self

    def start(self) -> None:
        """Begin to ask for jobs."""
        self._loop = running_loop()
        self.arrivals = asyncio.Queue()
        self._thread = threading.Thread(target=self._work, name="tenure-jobs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask for no more jobs; those that run go on."""
        self._worker.stop()

    async def close(self) -> None:
        """Settle what is through, give the rest back, and wait until the server has it."""
        self.look()
        for job in list(self._running.values()):
            # The rest of its requests would not mend a job that has failed already.
            if job.counts.errors:
                self._settle(job)
        # The second time ends what still runs.
        self._worker.stop()
        self._worker.stop()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    @property
    def idle(self) -> bool:
        """Say whether there is no job at all."""
        return not self._running and self.arrivals.empty()

    def of(self, owner: Any) -> Optional[SpiderJob]:
        """Return the job of a request, response or failure; None if it has none, or it is over."""
        request = owner if isinstance(owner, Request) else getattr(owner, "request", None)
        job = None if request is None else self._running.get(request.meta.get(META_KEY, ""))
        return None if job is None or job.stopped_at is not None else job

    def is_over(self, request: Request) -> bool:
        """Say whether a request is of a job that is not worked on any more."""
        return META_KEY in request.meta and self.of(request) is None

    def scheduled(self, request: Request, by: int) -> None:
        """Note that a request went into the scheduler or left it."""
        job = self._running.get(request.meta.get(META_KEY, ""))
        if job is not None:
            job.scheduled += by
            job.counts.requests += max(by, 0)

    def look(self) -> None:
        """Settle the jobs of which no request is left."""
        if not self._running:
            return
        busy = {request.meta.get(META_KEY) for request in in_progress(self._crawler)}
        for lease, job in list(self._running.items()):
            if job.stopped_at is not None:
                if lease not in busy or now() - job.stopped_at > _LAST_ANSWERS_S:
                    self._end(job, None)
            elif not job.starting and job.scheduled == 0 and lease not in busy:
                self._settle(job)

    def _settle(self, job: SpiderJob) -> None:
        """Ask the spider how a job ended, and settle it so."""
        try:
            item = succeeded(self._finish(job.context, job.counts))
        except Exception as error:
            item = failed(error)
        self._end(job, write(item, job.context))

    def _end(self, job: SpiderJob, written: Optional[Written]) -> None:
        self._running.pop(job.run.id, None)
        self._worker._finish(job.run, written)

    def _work(self) -> None:
        """Run the worker; on a thread of its own."""
        try:
            self._worker.run()
        except TenureError as error:
            self.fault = error
        except BaseException:
            log.exception("the worker that leases jobs for the spider failed")
        self._call(self.arrivals.put_nowait, None)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> None:
        # The loop may be closed when a process ends.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _arrive(self, run: Run) -> None:
        if run.ended:
            return
        keeper = self._worker._exchange.keeper
        transport = self._worker._exchange.transport
        job = SpiderJob(
            run, make_context(run, transport, lambda value: keeper.report(run.id, value))
        )
        self._running[run.id] = job
        try:
            job.context._open()
        except CodecError as refused:
            self._end(job, write(final(str(refused)), job.context))
        except Outcome as outcome:
            self._end(job, write(outcome.settle_item(), job.context))
        else:
            self.arrivals.put_nowait(job)

    def _told_to_stop(self, run: Run, reason: str) -> None:
        job = self._running.get(run.id)
        if job is None:
            return
        job.stopped_at = now()
        job.context.lost.set()
        if reason == LOST or run.ended:
            self._end(job, None)


class _FeedingWorker(Worker):
    """A worker whose jobs run in the crawl. Its own thread runs it."""

    jobs: SpiderJobs

    def _make_runner(self) -> Runner:
        return _InCrawl(self)


class _InCrawl:
    """Hands jobs to the loop; called on the worker's threads."""

    def __init__(self, worker: _FeedingWorker) -> None:
        self._worker = worker

    def open(self) -> None:
        """Nothing to open: the app of a crawl has no hooks."""

    def run_stop_hooks(self) -> None:
        """Nothing to close."""

    def start(self, run: Run) -> None:
        """Let the spider begin it."""
        self._worker.jobs._call(self._worker.jobs._arrive, run)

    def stop(self, run: Run, reason: str) -> None:
        """Let the spider drop its requests."""
        self._worker.jobs._call(self._worker.jobs._told_to_stop, run, reason)
        if reason in (LOST, DRAINING):
            # Nothing of it counts any more, so nobody waits for a loop that may be blocked.
            self._worker._finish(run, None)

    def runs(self, run: Run) -> bool:
        """Say whether the crawl has the run, or will have it when its loop comes to it."""
        return not run.ended

    def look(self) -> None:
        """Nothing to mend: the crawl looks after its jobs."""

    def good(self, run: Run, stop_at: float) -> None:
        """Nothing to note: the keeper's clock stops it."""

    def close(self) -> None:
        """Nothing to end: the crawl ends by itself."""
