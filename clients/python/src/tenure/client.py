"""The two clients: `Tenure` blocks, `AsyncTenure` is awaited."""

from __future__ import annotations

from typing import Any, Optional

from ._calls import Awaiting, Blocking
from ._http import Transport
from ._httpx import AsyncTransport
from ._keeper import Keeper
from ._settings import Settings
from .durations import Duration
from .guards import AsyncGuard, Guard
from .jobs import AsyncJob, AsyncJobs, Job, Jobs
from .needs import AnyNeed, limit
from .pushing import Pushing
from .recurring import AsyncFlows, AsyncSchedules, Flows, Schedules
from .scarce import AsyncLimits, AsyncPools, AsyncQueues, Limits, Pools, Queues
from .sealing import Codec, checked
from .watching import Watching


class Tenure(Pushing[Job[Any]], Watching, Blocking):
    """A client that blocks until it is answered. Safe for threads.

    Arguments that are not given come from TENURE_URL, TENURE_TOKEN and TENURE_NAMESPACE. A call
    whose answer is lost, or that meets a restarting server, is repeated for `retry_for` seconds.

    `url` may be several addresses with commas between, of servers that share one store. The first
    that answers is used; a call that it does not serve, or whose answer is lost, goes to the next.

    For a server of `https://`, `ca` is a PEM file with the authority of its certificate, instead
    of those of the system; `client_cert` and `client_key` are shown to one that asks for them.
    The variables are TENURE_CA, TENURE_CLIENT_CERT and TENURE_CLIENT_KEY.

    With a `codec` the server reads no payload, result or progress; see `Codec`.

    >>> with Tenure(url) as client:
    ...     client.push("mail", {"to": "ann"}).queue
    'mail'
    """

    _job_kind = Job

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        namespace: Optional[str] = None,
        *,
        retry_for: float = 60.0,
        ca: Optional[str] = None,
        client_cert: Optional[str] = None,
        client_key: Optional[str] = None,
        codec: Optional[Codec] = None,
    ) -> None:
        self._settings = Settings.find(url, token, namespace, ca, client_cert, client_key)
        self._transport = Transport(self._settings, retry_for)
        self._transport.codec = checked(codec)
        self._keeper = Keeper(self._transport)
        self.jobs: Jobs = Jobs(self._transport)
        self.queues: Queues = Queues(self._transport)
        self.limits: Limits = Limits(self._transport)
        self.pools: Pools = Pools(self._transport)
        self.schedules: Schedules = Schedules(self._transport)
        self.flows: Flows = Flows(self._transport)

    def lock(
        self,
        name: str,
        *,
        wait: Optional[Duration] = None,
        ttl: Duration = "30s",
        worker: Optional[str] = None,
    ) -> Guard:
        """Hold a lock while a block runs; wait for it without end, or for `wait`.

        >>> with t.lock("deploy", wait="5s") as lease:
        ...     lease.fence > 0
        True
        """
        return self.acquire(limit(f"lock:{name}"), wait=wait, ttl=ttl, worker=worker)

    def acquire(
        self,
        *needs: AnyNeed,
        wait: Optional[Duration] = None,
        ttl: Duration = "30s",
        worker: Optional[str] = None,
    ) -> Guard:
        """Hold permits and resources while a block runs: all of them, granted in one step.

        >>> with t.acquire(pool("accounts", tag="cn"), wait="5s") as lease:
        ...     lease.resource.id
        'ann'
        """
        return Guard(self._transport, self._keeper, needs, wait, ttl, worker)

    def close(self) -> None:
        """Close the kept connections. Leases that are held are not given back."""
        self._keeper.close()
        self._transport.close()

    def __enter__(self) -> Tenure:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Tenure({self._settings.shown!r}, namespace={self._settings.namespace!r})"


class AsyncTenure(Pushing[AsyncJob[Any]], Watching, Awaiting):
    """The same client for asyncio; needs httpx, which the extra `httpx` brings.

    Use one in each event loop. Iterators are asynchronous: `async for job in t.jobs.list()`.
    """

    _job_kind = AsyncJob

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        namespace: Optional[str] = None,
        *,
        retry_for: float = 60.0,
        ca: Optional[str] = None,
        client_cert: Optional[str] = None,
        client_key: Optional[str] = None,
        codec: Optional[Codec] = None,
    ) -> None:
        self._settings = Settings.find(url, token, namespace, ca, client_cert, client_key)
        self._transport = AsyncTransport(self._settings, retry_for)
        self._transport.codec = checked(codec)
        # Heartbeats go on a thread of their own, which a blocked event loop cannot stop.
        self._beats = Transport(self._settings, retry_for)
        self._keeper = Keeper(self._beats)
        self.jobs: AsyncJobs = AsyncJobs(self._transport)
        self.queues: AsyncQueues = AsyncQueues(self._transport)
        self.limits: AsyncLimits = AsyncLimits(self._transport)
        self.pools: AsyncPools = AsyncPools(self._transport)
        self.schedules: AsyncSchedules = AsyncSchedules(self._transport)
        self.flows: AsyncFlows = AsyncFlows(self._transport)

    def lock(
        self,
        name: str,
        *,
        wait: Optional[Duration] = None,
        ttl: Duration = "30s",
        worker: Optional[str] = None,
    ) -> AsyncGuard:
        """Hold a lock while an `async with` block runs."""
        return self.acquire(limit(f"lock:{name}"), wait=wait, ttl=ttl, worker=worker)

    def acquire(
        self,
        *needs: AnyNeed,
        wait: Optional[Duration] = None,
        ttl: Duration = "30s",
        worker: Optional[str] = None,
    ) -> AsyncGuard:
        """Hold permits and resources while an `async with` block runs."""
        return AsyncGuard(self._transport, self._keeper, needs, wait, ttl, worker)

    async def close(self) -> None:
        """Close the connections. Leases that are held are not given back."""
        self._keeper.close()
        self._beats.close()
        await self._transport.close()

    async def __aenter__(self) -> AsyncTenure:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncTenure({self._settings.shown!r}, namespace={self._settings.namespace!r})"
