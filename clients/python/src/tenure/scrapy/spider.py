"""Spiders whose start requests are leased jobs."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Optional, Union

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import arg_to_iter
from twisted.python.failure import Failure

from .._text import logger
from .._wire import now
from ..app import App
from ..context import Context
from ._crawler import LOOK_EVERY_S, close_spider, duration, server_settings
from ._crawling import install, own
from ._jobs import JobCounts, SpiderJob, SpiderJobs

if TYPE_CHECKING:
    import logging

log: logging.Logger = logger("tenure.scrapy")

__all__ = ["JobCounts", "RequestsFailed", "TenureSpider"]


class RequestsFailed(Exception):
    """Some requests of a job failed, or their callbacks did."""


class TenureSpider(Spider):
    """A spider that crawls for jobs of a queue, and settles each when its requests are done.

    Set `queue` (a name, or a list of names), and override `start_job` if a payload is more than a
    URL. Callbacks and items are those of any spider.
    """

    queue: Union[str, list[str]] = ""

    _tenure_jobs: SpiderJobs
    _tenure_closing: asyncio.Task[None]

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Add what keeps a job and its requests together."""
        super().update_settings(settings)
        install(settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> TenureSpider:
        """Make it for a crawler."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        if not spider.queue or not all(spider.queue):
            raise ValueError(f'{cls.__name__} needs a queue: queue = "pages"')
        connect = crawler.signals.connect
        connect(spider._tenure_opened, signal=signals.spider_opened)
        connect(spider._tenure_closed, signal=signals.spider_closed)
        connect(spider._tenure_scraped, signal=signals.item_scraped)
        connect(spider._tenure_failed, signal=signals.spider_error)
        return spider

    def start_job(self, job: Context) -> Any:
        """Return the first requests of a job: a request, or an iterable, asynchronous or not.

        The payload is the URL, or a list of URLs, or an object with `url` or `urls`.
        """
        payload = job.job.payload
        if isinstance(payload, dict):
            payload = payload.get("urls", payload.get("url"))
        urls = [payload] if isinstance(payload, str) else payload
        if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
            raise ValueError("the payload has no URL; give it `url` or `urls`, or write start_job")
        return [Request(url) for url in urls]

    def finish_job(self, job: Context, counts: JobCounts) -> Any:
        """Return the job's result when its requests are done, or raise what its failure is.

        `tenure.Final`, `tenure.Snooze` and the others say it as in any handler.
        """
        if counts.errors:
            raise RequestsFailed(
                f"{counts.errors} errors in {counts.requests} requests; the first: {counts.error}"
            )
        return {"items": counts.items, "requests": counts.requests}

    def job_of(self, answer: Union[Request, Response, Failure]) -> Context:
        """Return the job for which something was requested, as a handler of the job sees it."""
        job = self._tenure_jobs.of(answer)
        if job is None:
            raise LookupError(f"{answer!r} is of no job, or of one that is over")
        return job.context

    async def start(self) -> AsyncIterator[Any]:
        """Yield the first requests of jobs, as long as there are any."""
        jobs = self._tenure_jobs
        jobs.start()
        looking = asyncio.ensure_future(self._tenure_look())
        try:
            while True:
                job = await jobs.arrivals.get()
                if job is None:
                    break
                if job.stopped_at is not None:
                    continue
                async for each in self._tenure_start(job):
                    yield each
                # The engine takes a request before it asks for the next.
                job.starting = False
                jobs.look()
        finally:
            looking.cancel()
            jobs.stop()
        if jobs.fault is not None:
            log.error("the server gives no jobs: %s", jobs.fault)
            # Not awaited: the end of the engine would cancel this, and be cancelled by it.
            closing = close_spider(self.crawler, "tenure_refused")
            self._tenure_closing = asyncio.ensure_future(closing)

    async def _tenure_start(self, job: SpiderJob) -> AsyncIterator[Any]:
        try:
            output = self.start_job(job.context)
            if inspect.isawaitable(output):
                output = await output
            if hasattr(output, "__aiter__"):
                async for each in output:
                    yield self._tenure_own(each, job)
            else:
                for each in arg_to_iter(output):
                    yield self._tenure_own(each, job)
        except Exception as error:
            log.error("job %s cannot be started: %s", job.run.job, error, exc_info=True)
            job.failed(error)

    def _tenure_own(self, each: Any, job: SpiderJob) -> Any:
        return own(each, job, self._tenure_jobs) if isinstance(each, Request) else each

    async def _tenure_look(self) -> None:
        """Settle jobs that are through while the engine has no time to ask, and end when idle."""
        patience = duration(self.crawler, "TENURE_IDLE_TIMEOUT", None)
        idle_since = now()
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self._tenure_jobs.look()
            if not self._tenure_jobs.idle:
                idle_since = now()
            elif patience is not None and now() - idle_since >= patience:
                self._tenure_jobs.stop()

    def _tenure_opened(self) -> None:
        settings = self.crawler.settings
        queues = [self.queue] if isinstance(self.queue, str) else list(self.queue)
        self._tenure_jobs = SpiderJobs(
            self.crawler,
            App(*server_settings(self.crawler), codec=settings.get("TENURE_CODEC")),
            queues,
            self.finish_job,
            concurrency=settings.getint("TENURE_JOBS", 8),
            ttl=duration(self.crawler, "TENURE_TTL", "30s") or 0.0,
            until_empty=settings.getbool("TENURE_UNTIL_EMPTY"),
        )

    async def _tenure_closed(self) -> None:
        await self._tenure_jobs.close()

    def _tenure_scraped(self, item: Any, response: Any) -> None:
        job: Optional[SpiderJob] = self._tenure_jobs.of(response)
        if job is not None:
            job.counts.items += 1

    def _tenure_failed(self, failure: Failure, response: Any) -> None:
        job = self._tenure_jobs.of(response)
        if job is not None:
            job.failed(failure.value)
