"""Settings and spiders of the crawls in the tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import scrapy
from scrapy.exceptions import CloseSpider

import tenure
from tenure.scrapy import TenureSpider
from toy_codec import NEW, OLD, Toy

ADDONS = {"tenure.scrapy.Addon": 500}
SPIDER_MODULES = ["scrapy_project"]
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
CONCURRENT_REQUESTS_PER_DOMAIN = 16
LOG_LEVEL = "DEBUG"
TENURE_TTL = "3s"


class Pages(scrapy.Spider):
    """Fetches `pages` pages of `path`."""

    name = "pages"
    url = ""
    pages = 1
    path = "page"
    query = ""
    jars = 0

    async def start(self) -> AsyncIterator[Any]:
        for n in range(int(self.pages)):
            meta = {"cookiejar": n % int(self.jars)} if int(self.jars) else {}
            yield scrapy.Request(f"{self.url}/{self.path}{n}?{self.query}", meta=meta)

    def tenure_request(self, request: scrapy.Request, lease: tenure.AsyncLease) -> None:
        for resource in lease.resources:
            if "account" in (resource.data or {}):
                request.headers["X-Account"] = resource.data["account"]

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"page": response.url, "by": response.meta.get("tenure_resources")}


class Judging(Pages):
    """Says what answers mean by itself."""

    name = "judging"

    def tenure_answer(self, request: scrapy.Request, answer: Any, lease: tenure.AsyncLease) -> bool:
        if isinstance(answer, Exception) or b"bad" not in answer.body:
            return False
        lease.ban("captcha")
        return True


class Ending(Pages):
    """Ends its session with every page."""

    name = "ending"

    async def start(self) -> AsyncIterator[Any]:
        for n in range(int(self.pages)):
            yield scrapy.Request(f"{self.url}/{n}", meta={"tenure": {"end_session": True}})
        yield scrapy.Request(f"{self.url}/free", meta={"tenure": False})


class Swallowing:
    """A downloader middleware that is nearer to the site, and tries the first answer again."""

    def process_response(self, request: scrapy.Request, response: Any, spider: Any = None) -> Any:
        return response if response.status == 200 else request.replace(dont_filter=True)


class Watching(Pages):
    """Logs when a lease is lost."""

    name = "watching"

    def tenure_request(self, request: scrapy.Request, lease: tenure.AsyncLease) -> None:
        request.meta["watch"] = asyncio.ensure_future(self._watch(lease))

    async def _watch(self, lease: tenure.AsyncLease) -> None:
        await lease.lost.wait()
        self.logger.info("a lease is lost")


class Raising(Pages):
    """Understands no page."""

    name = "raising"

    def parse(self, response: Any) -> Iterator[Any]:
        raise KeyError("no such field")


class Jobs(TenureSpider):
    """Crawls for jobs: a page, and the pages that it links to."""

    name = "jobs"
    queue = "pages"
    allowed_domains: ClassVar = ["127.0.0.1"]

    def parse(self, response: Any) -> Iterator[Any]:
        if "raise" in response.url:
            raise KeyError("no such field")
        if "close" in response.url:
            raise CloseSpider("enough")
        yield {"page": response.url}
        for link in response.css("a::attr(href)").getall():
            # Links wait until the first pages of other jobs are fetched.
            yield response.follow(link, priority=-1)


class Sealed(Jobs):
    """Crawls for jobs whose payloads are sealed."""

    name = "sealed"

    @classmethod
    def update_settings(cls, settings: Any) -> None:
        super().update_settings(settings)
        settings.set("TENURE_CODEC", Toy(NEW, OLD))


class WithErrback(TenureSpider):
    """Goes on where a page is missing."""

    name = "with_errback"
    queue = "pages"

    async def start_job(self, job: tenure.Context) -> AsyncIterator[scrapy.Request]:
        if "raise" in job.job.payload:
            raise ValueError(job.job.payload["raise"])
        yield scrapy.Request(job.job.payload["url"], errback=self.missing)

    def missing(self, failure: Any) -> Iterator[Any]:
        yield {"missing": failure.request.url}
        yield scrapy.Request(self.job_of(failure).job.payload["instead"])

    def parse(self, response: Any) -> Any:
        return {"page": response.url}
