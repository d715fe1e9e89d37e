"""The parts of Scrapy that keep a job and its requests together."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Callable, Optional

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.misc import arg_to_iter, load_object
from twisted.python.failure import Failure

from ._jobs import META_KEY, SpiderJob, SpiderJobs
from .downloader import RequestLeaseLost, RequestNotGranted

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

#: Before all others at the engine's side: it sees what they leave.
SPIDER_MIDDLEWARE_ORDER = 10


def install(settings: BaseSettings) -> None:
    """Switch them on for a spider."""
    middlewares = settings.getdict("SPIDER_MIDDLEWARES")
    middlewares[JobSpiderMiddleware] = SPIDER_MIDDLEWARE_ORDER
    _set(settings, "SPIDER_MIDDLEWARES", middlewares)
    # Only where the project has none of its own.
    if not settings.getpriority("DUPEFILTER_CLASS"):
        _set(settings, "DUPEFILTER_CLASS", JobDupeFilter)
    scheduler = load_object(settings["SCHEDULER"])
    _set(settings, "SCHEDULER", type(scheduler.__name__, (_JobScheduler, scheduler), {}))


def _set(settings: BaseSettings, name: str, value: Any) -> None:
    # `scrapy crawl` writes the project's settings over those of the spider once more, with the
    # priority that they have.
    settings.set(name, value, priority=(settings.getpriority(name) or 0) + 1)


def own(request: Request, job: SpiderJob, jobs: SpiderJobs) -> Request:
    """Make a request one of a job."""
    request.meta[META_KEY] = job.run.id
    if not isinstance(request.errback, _Errback):
        request.errback = _Errback(request.errback, jobs)
    return request


class _JobScheduler:
    """Put before the class of the scheduler: says when a job has nothing left in it."""

    _crawler: Crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Any:
        made = super().from_crawler(crawler)  # type: ignore[misc]
        made._crawler = crawler
        return made

    def enqueue_request(self, request: Request) -> bool:
        jobs = _jobs(self._crawler)
        if jobs.is_over(request) or not super().enqueue_request(request):  # type: ignore[misc]
            return False
        jobs.scheduled(request, 1)
        return True

    def next_request(self) -> Optional[Request]:
        jobs = _jobs(self._crawler)
        while True:
            request: Optional[Request] = super().next_request()  # type: ignore[misc]
            if request is None:
                jobs.look()
                return None
            jobs.scheduled(request, -1)
            if not jobs.is_over(request):
                return request


class JobDupeFilter(RFPDupeFilter):
    """Filters duplicates within each run of a job.

    Otherwise a job that is tried again would lack all pages that its failed run has seen.
    """

    _crawler: Crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> JobDupeFilter:
        """Make it for a crawler."""
        made = super().from_crawler(crawler)
        made._crawler = crawler
        return made

    def request_seen(self, request: Request) -> bool:
        """Say whether the same was requested for the same run."""
        job = _jobs(self._crawler).of(request)
        if job is None:
            return super().request_seen(request)
        fingerprint = self.fingerprinter.fingerprint(request)
        if fingerprint in job.seen:
            return True
        job.seen.add(fingerprint)
        return False


class JobSpiderMiddleware(BaseSpiderMiddleware):
    """Lets requests inherit the job of the answer that they come from."""

    def get_processed_request(
        self, request: Request, response: Optional[Response]
    ) -> Optional[Request]:
        """Make a request one of the job, and drop it if the job is over."""
        if response is None:
            return request
        jobs = _jobs(self.crawler)
        return _inherit(request, response, jobs)

    def get_processed_item(self, item: Any, response: Optional[Response]) -> Any:
        """Drop an item of a job that somebody else may work on by now."""
        over = response is not None and _is_over(response, _jobs(self.crawler))
        return None if over else item

    def process_spider_exception(
        self, response: Response, exception: Exception, spider: Any = None
    ) -> None:
        """Note which job closed the spider: no signal says so."""
        job = _jobs(self.crawler).of(response)
        if job is not None and isinstance(exception, CloseSpider):
            job.failed(exception)


class _Errback:
    """The errback of each request of a job: it counts the failure, or hands it on."""

    def __init__(self, errback: Optional[Callable[[Failure], Any]], jobs: SpiderJobs) -> None:
        self._errback = errback
        self._jobs = jobs

    def __call__(self, failure: Failure) -> Any:
        job = self._jobs.of(failure)
        if job is None:
            return None
        if self._errback is None:
            error = failure.value
            # Requests that are filtered on purpose have not failed.
            if not isinstance(error, IgnoreRequest) or isinstance(
                error, (HttpError, RequestNotGranted, RequestLeaseLost)
            ):
                job.failed(error)
            return failure
        output = self._errback(failure)
        return output if isinstance(output, Failure) else self._owned(output, failure)

    async def _owned(self, output: Any, failure: Failure) -> AsyncIterator[Any]:
        # The output of an errback goes through no spider middleware.
        if inspect.isawaitable(output):
            output = await output
        if hasattr(output, "__aiter__"):
            async for each in output:
                if (kept := self._keep(each, failure)) is not None:
                    yield kept
        else:
            for each in arg_to_iter(output):
                if (kept := self._keep(each, failure)) is not None:
                    yield kept

    def _keep(self, each: Any, failure: Failure) -> Any:
        if isinstance(each, Request):
            return _inherit(each, failure, self._jobs)
        return None if _is_over(failure, self._jobs) else each


def _inherit(request: Request, parent: Any, jobs: SpiderJobs) -> Optional[Request]:
    if META_KEY not in parent.request.meta:
        return request
    job = jobs.of(parent)
    return None if job is None else own(request, job, jobs)


def _is_over(answer: Any, jobs: SpiderJobs) -> bool:
    request = getattr(answer, "request", None)
    return request is not None and jobs.is_over(request)


def _jobs(crawler: Crawler) -> SpiderJobs:
    jobs: SpiderJobs = crawler.spider._tenure_jobs  # type: ignore[union-attr]
    return jobs
