"""What an answer says about the site and the resource with which it was asked for."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Any, Optional

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from ..guards import HeldLease
from ._crawler import duration
from ._needs import fill_text


def retry_after(response: Response) -> Optional[float]:
    """Return for how many seconds the site asks to be left alone, None if it does not say.

    A date is compared with the answer's own date, so that a wrong clock here does not matter.
    """
    text = _header(response, "Retry-After")
    if not text:
        return None
    try:
        return max(0.0, float(int(text)))
    except ValueError:
        pass
    moment = _moment(text)
    if moment is None:
        return None
    date = _moment(_header(response, "Date"))
    return max(0.0, moment - (time.time() if date is None else date))


def _header(response: Response, name: str) -> str:
    value = response.headers.get(name)
    return value.decode("latin-1").strip() if value else ""


def _moment(text: str) -> Optional[float]:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


class Rules:
    """The rules of the settings: which status pauses a limit, bans or cools a resource."""

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._pause = _statuses(settings.getlist("TENURE_PAUSE_STATUS", [429]))
        self._ban = _statuses(settings.getlist("TENURE_BAN_STATUS"))
        self._cool = _statuses(settings.getlist("TENURE_COOL_STATUS"))
        self._limit: str = settings.get("TENURE_PAUSE_LIMIT", "site:{host}")
        self._pause_for = duration(crawler, "TENURE_PAUSE_FOR", "30s") or 0.0
        self._pause_max = duration(crawler, "TENURE_PAUSE_MAX", "1h") or 0.0
        self._cool_for = duration(crawler, "TENURE_COOL_FOR", "10m") or 0.0

    def pause(
        self, request: Request, response: Response, spider: Spider
    ) -> Optional[tuple[str, float]]:
        """Return which limit is to grant nothing, and for how many seconds."""
        if response.status not in self._pause or not self._limit:
            return None
        asked = retry_after(response)
        seconds = min(self._pause_for if asked is None else asked, self._pause_max)
        # A limit that is paused for no time at all is not paused.
        if seconds < 0.001:
            return None
        return fill_text(self._limit, request, spider.name), seconds

    def judge(self, response: Response, lease: HeldLease) -> Optional[str]:
        """Ban or cool the first resource of a lease; return what was said, None if nothing."""
        if not lease.resources:
            return None
        if response.status in self._ban:
            lease.ban(f"http {response.status}")
            return "banned"
        if response.status in self._cool:
            lease.cool(self._cool_for)
            return "cooled"
        return None


def _statuses(values: list[Any]) -> frozenset[int]:
    return frozenset(int(value) for value in values)
