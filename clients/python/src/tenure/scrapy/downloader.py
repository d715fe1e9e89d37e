"""The downloader middleware: what a request needs is held while it is under way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Optional, Union

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from .. import errors
from .._leasing import worker_id
from .._text import logger
from .._wire import now
from ..client import AsyncTenure
from ..durations import duration_text, seconds
from ..errors import TenureError
from ..guards import AsyncGuard, AsyncLease
from ..needs import describe
from ._answers import Rules
from ._crawler import LOOK_EVERY_S, duration, is_closing, make_client
from ._needs import fill, read_needs
from ._sessions import Session, Sessions

if TYPE_CHECKING:
    import logging

log: logging.Logger = logger("tenure.scrapy")

_KEYS = {"needs", "session", "wait", "end_session"}


class RequestNotGranted(IgnoreRequest):
    """What the request needs was not granted within `TENURE_WAIT`, or before the spider closed."""


class RequestLeaseLost(IgnoreRequest):
    """The lease of a request was lost under way, and it was tried as often as `RETRY_TIMES`."""


class _Held:
    """What is held for one request."""

    def __init__(self) -> None:
        self.guard: Optional[AsyncGuard] = None
        self.lease: Optional[AsyncLease] = None
        self.session: Optional[Session] = None
        #: The session is given back after this request.
        self.end_session = False
        #: The request's proxy is one of a lease.
        self.proxy = False

    @property
    def leases(self) -> list[AsyncLease]:
        """The leases, the session's first."""
        session = self.session.lease if self.session is not None else None
        return [lease for lease in (session, self.lease) if lease is not None]

    @property
    def judged(self) -> list[AsyncLease]:
        """The leases that the spider sees: those with a resource, or all if none has any."""
        return [lease for lease in self.leases if lease.resources] or self.leases


class DownloaderMiddleware:
    """Takes slots, rates, accounts and proxies for requests, and gives them back."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DownloaderMiddleware:
        """Make it for a crawler."""
        made = cls(crawler)
        crawler.signals.connect(made._closed, signal=signals.spider_closed)
        return made

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        settings = crawler.settings
        self._needs = read_needs(settings.get("TENURE_NEEDS") or [], "TENURE_NEEDS")
        self._session_needs = read_needs(
            settings.get("TENURE_SESSION_NEEDS") or [], "TENURE_SESSION_NEEDS"
        )
        self._wait = duration(crawler, "TENURE_WAIT", None)
        self._ttl = duration(crawler, "TENURE_TTL", "30s") or 0.0
        self._rules = Rules(crawler)
        self._worker = worker_id()
        self._held: dict[Request, _Held] = {}
        #: Leases that are waited for, and those that are being given back.
        self._waiting: set[asyncio.Task[Any]] = set()
        self._returning: set[asyncio.Task[Any]] = set()
        self._client: Optional[AsyncTenure] = None
        self._looking: Optional[asyncio.Task[None]] = None
        self._sessions = Sessions(self._enter, self._give_back)

    async def process_request(self, request: Request, spider: Optional[Spider] = None) -> None:
        """Wait until everything that the request needs is granted."""
        needs, session, wait, end_session = self._asked(request)
        if not needs and not session:
            return
        if self._client is None:
            self._client = make_client(self._crawler)
            self._looking = asyncio.ensure_future(self._look())
        held = _Held()
        held.end_session = end_session
        began = now()
        try:
            # A session is never waited for while a slot is held: others wait for that.
            if session:
                taking = self._sessions.take(request.meta.get("cookiejar"), session)
                held.session = await self._within(taking, wait, session)
            if needs:
                left = None if wait is None else max(0.0, wait - (now() - began))
                held.guard, held.lease = await self._enter(needs, left)
            self._prepare(request, held)
        except BaseException as error:
            if isinstance(error, RequestNotGranted):
                log.warning("%s is dropped: %s", request, error)
            await self._let_go(request, held)
            raise
        self._held[request] = held
        self._count("granted")

    async def process_response(
        self, request: Request, response: Response, spider: Optional[Spider] = None
    ) -> Union[Request, Response]:
        """Tell Tenure what the answer says, and give back what was held for it."""
        again = await self._answered(request, response)
        return response if again is None else again

    async def process_exception(
        self, request: Request, exception: Exception, spider: Optional[Spider] = None
    ) -> Optional[Request]:
        """Give back what was held for a request that got no answer."""
        return await self._answered(request, exception)

    async def _answered(
        self, request: Request, answer: Union[Response, Exception]
    ) -> Optional[Request]:
        """Take in an answer; return the request anew if it is to be tried again."""
        held = self._held.pop(request, None)
        if held is None:
            return None
        lost = any(self._is_lost(lease) for lease in held.leases)
        reasons = ["lost"] if lost else []
        try:
            if lost:
                self._count("lost")
            else:
                reasons = await self._judge(request, answer, held)
        finally:
            returning = self._return(request, held)
        if not reasons:
            return None
        # The same request must not meet the same resource before Tenure knows the verdict.
        await returning
        if reasons == ["paused"]:
            # Whether a 429 is tried again is up to RETRY_HTTP_CODES; it is by default.
            return None
        reason = reasons[0] if reasons[0] != "paused" else reasons[1]
        again = get_retry_request(request, spider=self._spider, reason=f"tenure_{reason}")
        if again is None and lost:
            log.warning("%s is dropped: its lease was lost under way", request)
            raise RequestLeaseLost(f"the lease of {request} was lost under way")
        return again

    @property
    def _spider(self) -> Spider:
        assert self._crawler.spider is not None
        return self._crawler.spider

    def _asked(
        self, request: Request
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Optional[float], bool]:
        """Read what a request needs: the settings, and over them its own `meta["tenure"]`."""
        own = request.meta.get("tenure", {})
        if own is False or own is None:
            return [], [], None, False
        if not isinstance(own, dict) or not _KEYS.issuperset(own):
            raise ValueError(
                f'meta["tenure"] of {request} is False or a dict with {", ".join(sorted(_KEYS))}'
            )
        needs, session, wait = self._needs, self._session_needs, self._wait
        if "needs" in own:
            needs = read_needs(own["needs"] or [], 'meta["tenure"]["needs"]')
        if "session" in own:
            session = read_needs(own["session"] or [], 'meta["tenure"]["session"]')
        if own.get("wait") is not None:
            wait = seconds(own["wait"])
        name = self._spider.name
        filled = fill(needs, request, name), fill(session, request, name)
        return (*filled, wait, bool(own.get("end_session")))

    async def _enter(
        self, needs: list[dict[str, Any]], wait: Optional[float] = None
    ) -> tuple[AsyncGuard, AsyncLease]:
        """Wait for a lease; the wait ends when the spider closes."""
        assert self._client is not None
        guard = self._client.acquire(*needs, wait=wait, ttl=self._ttl, worker=self._worker)
        task = asyncio.ensure_future(guard.__aenter__())
        self._waiting.add(task)
        try:
            return guard, await task
        except errors.NotGranted as refused:
            self._count("not_granted")
            raise RequestNotGranted(refused.detail) from None
        except asyncio.CancelledError:
            if is_closing(self._crawler):
                raise RequestNotGranted("the spider closes") from None
            raise
        finally:
            self._waiting.discard(task)

    async def _within(
        self, taking: Awaitable[Session], wait: Optional[float], needs: list[dict[str, Any]]
    ) -> Session:
        """Bound the wait of one request for a session that others wait for too."""
        try:
            return await asyncio.wait_for(taking, wait)
        except asyncio.TimeoutError:
            self._count("not_granted")
            raise RequestNotGranted(
                f"could not get {describe(needs)} for a session within {duration_text(wait or 0)}"
            ) from None
        except asyncio.CancelledError:
            if is_closing(self._crawler):
                raise RequestNotGranted("the spider closes") from None
            raise

    def _prepare(self, request: Request, held: _Held) -> None:
        """Put into the request what its resources are for."""
        ids: dict[str, str] = {}
        for resource in [each for lease in held.leases for each in lease.resources]:
            ids[resource.pool] = resource.id
            data = resource.data
            if isinstance(data, dict) and isinstance(data.get("proxy"), str):
                request.meta["proxy"] = data["proxy"]
                held.proxy = True
        own = getattr(self._spider, "tenure_request", None)
        if own is not None:
            for lease in held.judged:
                own(request, lease)
        # Ids only: the data of a resource may be secret, and meta is shown.
        request.meta["tenure_resources"] = ids

    async def _judge(
        self, request: Request, answer: Union[Response, Exception], held: _Held
    ) -> list[str]:
        """Apply the rules, then the spider's own; return what was said."""
        reasons = []
        if isinstance(answer, Response):
            pause = self._rules.pause(request, answer, self._spider)
            if pause is not None:
                await self._pause(*pause, held)
                reasons.append("paused")
        own = getattr(self._spider, "tenure_answer", None)
        for lease in held.judged:
            said = self._rules.judge(answer, lease) if isinstance(answer, Response) else None
            if own is not None and own(request, answer, lease):
                said = said or "rejected"
            if said is not None:
                reasons.append(said)
            if held.session is not None and lease is held.session.lease and lease._verdicts:
                self._sessions.retire(held.session)
        for reason in reasons:
            self._count(reason)
        return reasons

    async def _pause(self, limit: str, for_: float, held: _Held) -> None:
        """Pause a limit: with the release if the lease has it, otherwise by a call of its own."""
        if held.lease is not None and limit in held.lease.limits:
            held.lease.pause(limit, for_)
            return
        assert self._client is not None
        try:
            await self._client.limits.pause(limit, for_=for_)
        except TenureError as error:
            log.warning("the limit %s could not be paused: %s", limit, error)

    def _return(self, request: Request, held: _Held) -> asyncio.Task[None]:
        return self._in_background(self._let_go(request, held))

    async def _let_go(self, request: Request, held: _Held) -> None:
        """Give back what was held for a request; a session only if nobody uses it any more."""
        if held.proxy:
            # Otherwise a copy of the request would go through it after it was given back.
            request.meta.pop("proxy", None)
            if request.meta.pop("_auth_proxy", None) is not None:
                request.headers.pop("Proxy-Authorization", None)
        if held.guard is not None and held.lease is not None:
            await self._give_back(held.guard)
        if held.session is not None:
            if held.end_session or self._is_lost(held.session.lease):
                self._sessions.retire(held.session)
            await self._sessions.done(held.session)

    def _is_lost(self, lease: AsyncLease) -> bool:
        # Not `lease.lost`: the loop may not have come to set it yet.
        return self._client is None or self._client._keeper.is_lost(lease.id)

    async def _give_back(self, guard: AsyncGuard) -> None:
        await guard.__aexit__(None, None, None)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)
        return task

    async def _look(self) -> None:
        """End waits when the spider closes, and give back what no answer gave back."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if is_closing(self._crawler):
                self._end_waits()
            # A middleware that is nearer to the site may swallow an answer.
            engine = self._crawler.engine
            active = engine.downloader.active if engine is not None else ()
            for request in [request for request in self._held if request not in active]:
                self._return(request, self._held.pop(request))

    def _end_waits(self) -> None:
        # Each once: a wait that is cancelled again would not give back what it was granted last.
        while self._waiting:
            self._waiting.pop().cancel()

    async def _closed(self) -> None:
        """Give everything back."""
        if self._client is None:
            return
        self._end_waits()
        if self._looking is not None:
            self._looking.cancel()
        for request, held in self._held.items():
            self._return(request, held)
        self._held.clear()
        while self._returning:
            await asyncio.wait(set(self._returning))
        await self._sessions.close()
        with contextlib.suppress(Exception):
            await self._client.close()
        self._client = None

    def _count(self, what: str) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"tenure/{what}")
