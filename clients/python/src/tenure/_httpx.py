"""The asyncio transport, over httpx."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Optional, TypeVar, Union

from ._addresses import Address
from ._lost import ConnectionLost
from ._repeats import Answer, Attempts
from ._servers import Servers
from ._settings import Settings
from ._tls import advice, is_refused
from ._wire import OWNER, Plan, Request, Response, Stream, read_body, read_retry_after
from .notices import Notices
from .sealing import Codec

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_PATIENCE_S = 15.0


class AsyncTransport:
    """Sends requests from one event loop."""

    def __init__(self, settings: Settings, retry_for: float) -> None:
        try:
            import httpx
        except ImportError:
            raise ImportError("AsyncTenure needs httpx; install it: pip install httpx") from None
        self.settings = settings
        #: Seals and opens the values of jobs; set by the client or worker whose transport this is.
        self.codec: Optional[Codec] = None
        self.retry_for = retry_for
        self.notices: Notices = Notices()
        self.servers: Servers = Servers(settings)
        self._timeout = httpx.Timeout
        self._unsent: tuple[type[Exception], ...] = (
            httpx.ConnectError,
            httpx.ConnectTimeout,
            httpx.PoolTimeout,
        )
        # A server refuses a certificate at the first reading, and httpx hands that error on.
        self._faults: tuple[type[Exception], ...] = (httpx.TransportError, ssl.SSLError)
        # `trust_env`: the blocking transport knows no proxies of the environment either. A call
        # that waits holds its connection, so their number has no bound here.
        self._client: httpx.AsyncClient = httpx.AsyncClient(
            headers=settings.headers(),
            trust_env=False,
            verify=settings.tls() or True,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16),
        )

    async def run(self, plan: Plan[T]) -> T:
        """Drive a plan to its end."""
        try:
            request = next(plan)
            while True:
                try:
                    response = await self.send(request)
                except Exception as error:
                    request = plan.throw(error)
                else:
                    request = plan.send(response)
        except StopIteration as end:
            result: T = end.value
            return result

    async def iterate(self, stream: Stream[T]) -> AsyncIterator[T]:
        """Drive a stream, and hand on its items."""
        answer: Optional[Response] = None
        try:
            while True:
                try:
                    step = stream.send(answer)
                except StopIteration:
                    return
                answer = None
                if isinstance(step, Request):
                    answer = await self.send(step)
                else:
                    for item in step:
                        yield item
        finally:
            stream.close()

    async def send(self, request: Request) -> Response:
        """Send a request until it is answered, or its patience is over."""
        attempts = Attempts(request, self.retry_for, self.servers)
        while True:
            try:
                address = self.servers.at
                if address is None:
                    # They are looked up in Redis, which blocks.
                    address = await asyncio.to_thread(self.servers.current)
                attempts.begin(address)
                answer: Union[Answer, ConnectionLost] = await self._exchange(
                    address, attempts.request
                )
            except ConnectionLost as fault:
                answer = fault
            # Decided outside of the handler: otherwise every error shows the one before as well.
            if isinstance(answer, ConnectionLost):
                pause: Optional[float] = attempts.lost(answer)
            else:
                pause = attempts.answered(*answer)
                if pause is None:
                    return attempts.response(*answer)
            await asyncio.sleep(pause or 0.0)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _exchange(self, address: Address, request: Request) -> Answer:
        timeout = request.wait + _PATIENCE_S
        try:
            answer = await self._client.request(
                request.method,
                address.url + request.path,
                content=request.body,
                headers=request.headers(),
                timeout=self._timeout(timeout, connect=self.servers.connect_within(timeout)),
            )
        except self._faults as fault:
            self.servers.lost(address)
            why = advice(fault, address.host) or str(fault) or type(fault).__name__
            unsent = isinstance(fault, self._unsent) or is_refused(fault)
            raise ConnectionLost(why, sent=not unsent) from None
        retry_after = read_retry_after(answer.headers.get("Retry-After"))
        data = read_body(answer.status_code, answer.content)
        self.servers.answered(address, answer.status_code, data, answer.headers.get(OWNER))
        return answer.status_code, data, retry_after
