"""What the parts ask of a crawler: its settings, and where its engine stands.

The engine has no signal for "I begin to close" and none for "this request is through with". Both
are read from its own books here, and nowhere else.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterable
from typing import Any, Optional

from scrapy import Request
from scrapy.crawler import Crawler

from ..client import AsyncTenure
from ..durations import seconds

#: How often the books of the engine are looked at.
LOOK_EVERY_S = 0.25


def server_settings(crawler: Crawler) -> tuple[Optional[str], Optional[str], Optional[str]]:
    """Read where the server is; what is absent comes from the environment."""
    get = crawler.settings.get
    return get("TENURE_URL"), get("TENURE_TOKEN"), get("TENURE_NAMESPACE")


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of the crawl."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "tenure.scrapy needs the asyncio reactor; remove TWISTED_REACTOR from the settings, or "
            'set it to "twisted.internet.asyncioreactor.AsyncioSelectorReactor"'
        ) from None


def make_client(crawler: Crawler) -> AsyncTenure:
    """Make a client of the running event loop."""
    running_loop()
    # As newer versions of Scrapy do: a crawl logs everything, and each call would be three lines.
    for name in ("httpx", "httpcore"):
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.WARNING)
    return AsyncTenure(*server_settings(crawler))


def duration(crawler: Crawler, name: str, default: Optional[str]) -> Optional[float]:
    """Read a setting as seconds: a number, or text such as "5m"; None and "" are the default."""
    value = crawler.settings.get(name)
    if value is None or value == "":
        return None if default is None else seconds(default)
    try:
        return seconds(float(value) if str(value).replace(".", "", 1).isdigit() else value)
    except (TypeError, ValueError) as wrong:
        raise ValueError(f"the setting {name}: {wrong}") from None


def in_progress(crawler: Crawler) -> Iterable[Request]:
    """Return what has left the scheduler and is not through: downloads, callbacks, items."""
    slot = _slot(crawler)
    return () if slot is None else tuple(slot.inprogress)


def is_closing(crawler: Crawler) -> bool:
    """Say whether the spider takes no new requests any more and only waits for the last ones."""
    engine = crawler.engine
    slot = _slot(crawler)
    return engine is None or not engine.running or slot is None or slot.closing is not None


async def close_spider(crawler: Crawler, reason: str) -> None:
    """Close the spider, as soon as the engine runs; it may have ended by itself before."""
    while crawler.crawling and (crawler.engine is None or not crawler.engine.running):
        await asyncio.sleep(0.01)
    engine: Any = crawler.engine
    if engine is None or engine.spider is None:
        return
    if hasattr(engine, "close_spider_async"):
        await engine.close_spider_async(reason=reason)
    else:
        # Scrapy before 2.14.
        closed = engine.close_spider(engine.spider, reason)
        if inspect.isawaitable(closed):
            await closed.asFuture(asyncio.get_running_loop())  # type: ignore[attr-defined]


def _slot(crawler: Crawler) -> Any:
    return getattr(crawler.engine, "_slot", None)
