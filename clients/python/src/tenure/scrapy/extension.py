"""The job whose spider this is: its result, its progress, and its lease if it was handed over.

Only the holder of a lease extends and settles it, and settles it once. Under `tenure work` the
worker is the holder, so the extension only writes what the worker reads. A spider that was started
with the argument `tenure_lease` is the holder itself. A spider that `tenure work --scrapyd` started
has neither: that worker holds the lease, and reads the end of the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest

from .._calls import check
from .._holdings import CANCELLED, LOST
from .._http import Transport
from .._keeper import Keeper
from .._settings import Settings
from .._text import logger
from .._wire import Plan, request
from ..durations import duration_text
from ..errors import TenureError
from ..guards import release_plan
from ..payloads import encode
from ..tasks import succeeded
from ._crawler import close_spider, duration, running_loop, server_settings

if TYPE_CHECKING:
    import logging

log: logging.Logger = logger("tenure.scrapy")

#: Ends of a crawl that did as much as it was allowed to, as `tenure work --scrapyd` has it.
_GOOD_ENDS = frozenset(
    {"finished", "closespider_itemcount", "closespider_pagecount", "closespider_timeout"}
)
_PROGRESS_EVERY_S = 5.0
_LOST_REASON = "tenure_lease_lost"


def outcome_of(reason: str, stats: Mapping[str, Any]) -> dict[str, Any]:
    """Write the end of a crawl as a settle item: the same form as that of `--scrapyd`.

    >>> outcome_of("finished", {"item_scraped_count": 2, "start_time": "today"})["result"]
    {'finish_reason': 'finished', 'items': 2, 'stats': {'item_scraped_count': 2}}
    >>> outcome_of("shutdown", {})
    {'outcome': 'failed', 'error': 'the spider ended with "shutdown"'}
    """
    if reason not in _GOOD_ENDS:
        return {"outcome": "failed", "error": f'the spider ended with "{reason}"'}
    numbers = {
        name: value
        for name, value in stats.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    items = numbers.get("item_scraped_count", 0)
    return succeeded({"finish_reason": reason, "items": items, "stats": numbers})


class _Worked:
    """The child of a `tenure work`: that worker reads these files, and settles."""

    def __init__(self, folder: Mapping[str, str]) -> None:
        self._result = folder.get("TENURE_RESULT_FILE")
        self._outcome = folder.get("TENURE_OUTCOME_FILE")
        self._progress = folder.get("TENURE_PROGRESS_FILE")

    async def take(self) -> bool:
        """The worker has it."""
        return True

    def report(self, progress: dict[str, Any]) -> None:
        """Write progress; the worker takes it along with a heartbeat."""
        _write(self._progress, progress)

    async def end(self, item: Optional[dict[str, Any]]) -> None:
        """Write the outcome, which goes before the exit status."""
        if item is None:
            return
        if item["outcome"] == "succeeded":
            _write(self._result, item.get("result"))
        else:
            _write(self._outcome, item)


class _Handed:
    """The holder of a lease that somebody else took for this spider."""

    def __init__(self, crawler: Crawler, lease: str) -> None:
        self._crawler = crawler
        self._lease = lease
        self._ttl = duration(crawler, "TENURE_TTL", "30s") or 0.0
        self._transport = Transport(Settings.find(*server_settings(crawler)), retry_for=60.0)
        self._keeper = Keeper(self._transport)
        self._loop = running_loop()
        self._cancelled = False

    async def take(self) -> bool:
        """Extend the lease for the first time; False if somebody else may have the job."""
        # `hold` then measures from the moment of this call.
        sent = await asyncio.to_thread(self._transport.run, self._extend())
        return sent is not None and await asyncio.to_thread(
            self._keeper.hold, self._lease, ttl=self._ttl, sent=sent, on_stop=self._stop
        )

    def _extend(self) -> Plan[Optional[float]]:
        # The ttl is ours from now on, whatever it was while the spider waited to be started.
        body = {"leases": [self._lease], "ttl": duration_text(self._ttl)}
        response = yield request("POST", "leases", "extend", body=body)
        return None if self._lease in check(response)["lost"] else response.sent

    def _stop(self, reason: str) -> None:
        # Called on the keeper's threads.
        self._cancelled = self._cancelled or reason == CANCELLED
        why = _LOST_REASON if reason == LOST else f"tenure_{reason}"
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._close, why)

    def _close(self, why: str) -> None:
        log.warning("the spider closes: %s", why)
        self._closing = asyncio.ensure_future(close_spider(self._crawler, why))

    def report(self, progress: dict[str, Any]) -> None:
        """Send progress within a second."""
        self._keeper.report(self._lease, encode(progress))

    async def end(self, item: Optional[dict[str, Any]]) -> None:
        """Settle, unless the lease is lost; a spider that was told to stop gives its job back."""
        if self._cancelled:
            item = {"outcome": "released"}
        if item is not None and self._keeper.settling(self._lease):
            plan = release_plan({"lease": self._lease, **item}, retry_for=max(60.0, self._ttl))
            try:
                await asyncio.to_thread(self._transport.run, plan)
            except TenureError as error:
                log.error("the job's outcome was not answered; it may run again: %s", error)
        self._keeper.let_go(self._lease)
        self._keeper.close()
        self._transport.close()


def _of_scrapyd(spider: Spider) -> bool:
    """Whether a scrapyd runs it: then the files are of the job that runs scrapyd itself.

    Every scrapyd hands the id of its job over as an argument of the spider. Older releases set
    a variable as well, which counts where a spider does not keep its arguments.
    """
    return hasattr(spider, "_job") or "SCRAPY_JOB" in os.environ


class JobExtension:
    """Tells the job whose spider this is how the crawl goes and ended, if there is one."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> JobExtension:
        """Make it for a crawler."""
        made = cls(crawler)
        crawler.signals.connect(made._opened, signal=signals.spider_opened)
        crawler.signals.connect(made._closed, signal=signals.spider_closed)
        crawler.signals.connect(made._stopped, signal=signals.engine_stopped)
        return made

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._job: Any = None
        self._reporting: Optional[asyncio.Task[None]] = None
        self._closing: Optional[asyncio.Task[None]] = None
        self._reason: Optional[str] = None

    async def _opened(self, spider: Spider) -> None:
        handed = getattr(spider, "tenure_lease", None)
        if handed:
            self._job = _Handed(self._crawler, str(handed))
        elif "TENURE_RESULT_FILE" in os.environ and not _of_scrapyd(spider):
            self._job = _Worked(os.environ)
        else:
            return
        held = False
        try:
            held = await self._job.take()
        except TenureError as error:
            log.error("the lease of this spider could not be taken over: %s", error)
        if held:
            self._reporting = asyncio.ensure_future(self._report())
            return
        log.error("the spider closes: its job's lease is lost, and somebody else may run it")
        # The engine does not run yet: until it can be closed, nothing may be fetched.
        self._crawler.signals.connect(self._refuse, signal=signals.request_scheduled)
        self._crawler.signals.connect(self._give_up, signal=signals.spider_idle)
        self._closing = asyncio.ensure_future(close_spider(self._crawler, _LOST_REASON))

    def _refuse(self) -> None:
        raise IgnoreRequest("the lease of this spider's job is lost")

    def _give_up(self) -> None:
        raise CloseSpider(_LOST_REASON)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(_PROGRESS_EVERY_S)
            stats = self._stats()
            self._job.report(
                {
                    "items": stats.get("item_scraped_count", 0),
                    "responses": stats.get("response_received_count", 0),
                }
            )

    def _closed(self, reason: str) -> None:
        self._reason = reason

    async def _stopped(self) -> None:
        # At the very end: exports and pipelines are closed by now.
        if self._job is None:
            return
        if self._reporting is not None:
            self._reporting.cancel()
        reason = self._reason or "shutdown"
        await self._job.end(None if reason == _LOST_REASON else outcome_of(reason, self._stats()))
        self._job = None

    def _stats(self) -> dict[str, Any]:
        return {} if self._crawler.stats is None else self._crawler.stats.get_stats()


def _write(path: Optional[str], value: Any) -> None:
    if path is None:
        return
    whole = Path(f"{path}.part")
    try:
        whole.write_bytes(encode(value))
        # The worker may read at any moment.
        whole.replace(path)
    except OSError as error:
        log.error("the worker's file could not be written: %s", error)
