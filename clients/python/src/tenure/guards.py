"""Guards: a lease for the length of a `with` block.

A guard extends its lease by itself. If the lease is lost all the same (the machine slept, the
server could not be reached for most of the ttl), `lease.lost` is set before anybody else can be
granted the same; long work looks at it, or passes `lease.fence` to the store that it writes to.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Sequence
from typing import Any, Optional, Union

from ._http import Transport
from ._httpx import AsyncTransport
from ._keeper import Keeper
from ._leasing import Granted, acquire_plan, withdraw_plan, worker_fields
from ._text import logger, storable
from ._wire import Plan, now, request
from .durations import Duration, duration_text, seconds
from .errors import TenureError
from .needs import AnyNeed
from .records import Resource

log: logging.Logger = logger("tenure")

#: A release that is not answered for longer is given up: the lease then ends by its ttl.
_RELEASE_FOR_S = 10.0


class HeldLease:
    """The lease of a guard, with its resources."""

    def __init__(self, granted: Granted) -> None:
        record = granted.lease
        #: The lease's id.
        self.id: str = str(record.lease)
        #: Grows with every grant: a store that compares it can refuse an older holder.
        self.fence: int = record.fence
        self.limits: list[str] = record.limits
        self.resources: list[Resource] = record.resources
        self._verdicts: dict[tuple[str, str], dict[str, Any]] = {}
        self._pauses: dict[str, dict[str, Any]] = {}

    @property
    def resource(self) -> Resource:
        """The first resource; its `data` is in no list and no log."""
        if not self.resources:
            raise LookupError("this lease holds no resource; ask for pool(...)")
        return self.resources[0]

    def ban(self, reason: str, resource: Optional[Resource] = None) -> None:
        """Hand a resource out no more; the server hears of it when the block ends."""
        self._judge(resource, {"verdict": "ban", "reason": storable(str(reason))})

    def cool(self, for_: Duration, resource: Optional[Resource] = None) -> None:
        """Let a resource rest; the server hears of it when the block ends."""
        self._judge(resource, {"verdict": "cool", "for": duration_text(for_)})

    def pause(self, limit: str, for_: Duration) -> None:
        """Let a limit grant nothing for a time; the server hears of it when the block ends."""
        if limit not in self.limits:
            # The server would refuse it together with the release.
            raise LookupError(
                f'this lease does not hold the limit "{limit}"; pause it with limits.pause(...)'
            )
        self._pauses[limit] = {"limit": limit, "pause": duration_text(for_)}

    def _judge(self, resource: Optional[Resource], verdict: dict[str, Any]) -> None:
        judged = resource or self.resource
        key = (judged.pool, judged.id)
        self._verdicts[key] = {"pool": judged.pool, "id": judged.id, **verdict}

    def _settle_item(self) -> dict[str, Any]:
        item: dict[str, Any] = {"lease": self.id, "outcome": "released"}
        if self._verdicts:
            item["resources"] = list(self._verdicts.values())
        if self._pauses:
            item["limits"] = list(self._pauses.values())
        return item

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, fence={self.fence})"


class Lease(HeldLease):
    """A lease that a `with` block holds."""

    def __init__(self, granted: Granted) -> None:
        super().__init__(granted)
        #: Set when the right is over before the block ends.
        self.lost: threading.Event = threading.Event()


class AsyncLease(HeldLease):
    """A lease that an `async with` block holds."""

    def __init__(self, granted: Granted) -> None:
        super().__init__(granted)
        #: Set when the right is over before the block ends.
        self.lost: asyncio.Event = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def _lose(self, _reason: str) -> None:
        # Called on the clock thread; the loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.lost.set)


def release_plan(item: dict[str, Any], retry_for: float = _RELEASE_FOR_S) -> Plan[None]:
    """Give a lease back, with its verdicts."""
    made = request("POST", "leases", "settle", body={"settle": [item]}, retry_for=retry_for)
    response = yield made
    if response.status >= 400:
        log.error("a lease could not be given back: %s", (response.data or {}).get("detail"))
        return
    told = response.data["settled"][0]
    if not told["ok"]:
        log.warning("lease %s was over before it was given back: %s", item["lease"], told["code"])


class _AnyGuard:
    def __init__(
        self,
        transport: Any,
        keeper: Keeper,
        needs: Sequence[AnyNeed],
        wait: Optional[Duration],
        ttl: Duration,
        worker: Optional[str],
    ) -> None:
        if not needs:
            raise ValueError("ask for something: acquire(limit(...), pool(...))")
        self._transport = transport
        self._keeper = keeper
        self._needs = list(needs)
        self._wait = None if wait is None else seconds(wait)
        self._ttl = seconds(ttl)
        self._worker = worker

    def _gives_back(self, lease: AnyLease) -> bool:
        """Extend a lease no more; say whether it is ours still, and so to be given back."""
        lost = self._keeper.is_lost(lease.id)
        self._keeper.let_go(lease.id)
        if lost:
            log.warning("lease %s was lost before its block ended, and is not given back", lease.id)
        return not lost

    def _until(self) -> Optional[float]:
        return None if self._wait is None else now() + self._wait

    def _plan(self, until: Optional[float], asking: dict[str, Any]) -> Plan[Granted]:
        worker = worker_fields(self._worker)
        return acquire_plan(self._needs, until, self._wait, self._ttl, worker, asking)


class Guard(_AnyGuard):
    """What `Tenure.lock` and `Tenure.acquire` return: use it with `with`, once."""

    _transport: Transport
    _lease: Optional[Lease] = None

    def __enter__(self) -> Lease:
        until = self._until()
        # Again only if the lease was lost before its grant could be read.
        while True:
            granted = self._transport.run(self._plan(until, {}))
            lease = Lease(granted)

            def lose(_reason: str, lost: threading.Event = lease.lost) -> None:
                lost.set()

            if self._keeper.hold(lease.id, ttl=granted.ttl, sent=granted.sent, on_stop=lose):
                self._lease = lease
                return lease

    def __exit__(self, *_: object) -> None:
        lease = self._lease
        if lease is None:
            return
        self._lease = None
        if not self._gives_back(lease):
            return
        try:
            self._transport.run(release_plan(lease._settle_item()))
        except TenureError as error:
            # The block has ended, and its own exception must not be hidden by this one.
            log.warning("lease %s was not given back and ends by its ttl: %s", lease.id, error)


class AsyncGuard(_AnyGuard):
    """What `AsyncTenure.lock` and `AsyncTenure.acquire` return: use it with `async with`, once."""

    _transport: AsyncTransport
    _lease: Optional[AsyncLease] = None

    async def __aenter__(self) -> AsyncLease:
        until = self._until()
        while True:
            asking: dict[str, Any] = {}
            try:
                granted = await self._transport.run(self._plan(until, asking))
            except asyncio.CancelledError:
                await asyncio.shield(self._withdraw(asking))
                raise
            lease = AsyncLease(granted)
            # `hold` may send an extend, which blocks.
            holding = asyncio.ensure_future(
                asyncio.to_thread(
                    self._keeper.hold,
                    lease.id,
                    ttl=granted.ttl,
                    sent=granted.sent,
                    on_stop=lease._lose,
                )
            )
            try:
                held = await asyncio.shield(holding)
            except asyncio.CancelledError:
                # Nobody would give it back, and it would be extended until the client is closed.
                if await holding:
                    self._lease = lease
                    await self.__aexit__()
                raise
            if held:
                self._lease = lease
                return lease

    async def _withdraw(self, asking: dict[str, Any]) -> None:
        """Give back what a cancelled wait was granted at its last moment."""
        if not asking:
            return
        try:
            for lease in await self._transport.run(withdraw_plan(asking, _RELEASE_FOR_S)):
                await self._transport.run(release_plan({"lease": lease, "outcome": "released"}))
        except TenureError as error:
            log.warning("a wait was given up; if it was granted, it ends by its ttl: %s", error)

    async def __aexit__(self, *_: object) -> None:
        lease = self._lease
        if lease is None:
            return
        self._lease = None
        if not self._gives_back(lease):
            return
        try:
            # A cancelled task gives its lease back too.
            await asyncio.shield(self._transport.run(release_plan(lease._settle_item())))
        except TenureError as error:
            log.warning("lease %s was not given back and ends by its ttl: %s", lease.id, error)


AnyLease = Union[Lease, AsyncLease]
