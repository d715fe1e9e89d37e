"""The blocking transport: kept connections of `http.client`, shared by all threads."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, Optional, TypeVar, Union

from ._addresses import Address
from ._lost import ConnectionLost
from ._repeats import Answer, Attempts
from ._servers import Servers
from ._settings import Settings
from ._tls import advice, is_refused
from ._wire import OWNER, Plan, Request, Response, Stream, now, read_body, read_retry_after
from .notices import Notices
from .sealing import Codec

T = TypeVar("T")

#: An answer comes within its wait and this; a server that is silent for longer is taken for gone.
_PATIENCE_S = 15.0
_KEPT = 16
#: A connection that rested for longer is not used again: something between may have dropped it
#: without a word, and then a sending would wait for the whole patience.
_LONGEST_REST_S = 60.0


class _Connection:
    """One connection, and when it was last used."""

    def __init__(self, address: Address, tls: Optional[ssl.SSLContext], timeout: float) -> None:
        self.address = address
        self.used = False
        self.rests_since = 0.0
        if address.is_tls:
            self.http: http.client.HTTPConnection = http.client.HTTPSConnection(
                address.host, address.port, timeout=timeout, context=tls
            )
        else:
            self.http = http.client.HTTPConnection(address.host, address.port, timeout=timeout)

    def connect(self, within: float) -> None:
        """Connect, so that a refused connection differs from a lost answer."""
        if self.http.sock is None:
            timeout, self.http.timeout = self.http.timeout, within
            self.http.connect()
            self.set_timeout(timeout)
            # The stubs say that it is None still.
            made: Any = self.http.sock
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def set_timeout(self, timeout: Optional[float]) -> None:
        """Bound each read and write from now on."""
        self.http.timeout = timeout
        if self.http.sock is not None:
            self.http.sock.settimeout(timeout)

    def close(self) -> None:
        """Close it; whether that works does not matter any more."""
        with contextlib.suppress(OSError):
            self.http.close()


class Transport:
    """Sends requests; safe for threads, and for use after a fork."""

    def __init__(self, settings: Settings, retry_for: float) -> None:
        self.settings = settings
        #: Seals and opens the values of jobs; set by the client or worker whose transport this is.
        self.codec: Optional[Codec] = None
        self.servers: Servers = Servers(settings)
        self.retry_for = retry_for
        self.notices: Notices = Notices()
        self._headers = settings.headers()
        self._tls: Optional[ssl.SSLContext] = settings.tls()
        self._begin()
        _TRANSPORTS.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []

    def run(self, plan: Plan[T]) -> T:
        """Drive a plan to its end."""
        try:
            request = next(plan)
            while True:
                try:
                    response = self.send(request)
                except Exception as error:
                    request = plan.throw(error)
                else:
                    request = plan.send(response)
        except StopIteration as end:
            result: T = end.value
            return result

    def iterate(self, stream: Stream[T]) -> Iterator[T]:
        """Drive a stream, and hand on its items."""
        answer: Optional[Response] = None
        with contextlib.closing(stream):
            while True:
                try:
                    step = stream.send(answer)
                except StopIteration:
                    return
                answer = None
                if isinstance(step, Request):
                    answer = self.send(step)
                else:
                    yield from step

    def send(self, request: Request) -> Response:
        """Send a request until it is answered, or its patience is over."""
        attempts = Attempts(request, self.retry_for, self.servers)
        while True:
            try:
                address = self.servers.current()
                attempts.begin(address)
                sending = attempts.request
                answer: Union[Answer, ConnectionLost] = self._exchange(
                    address, sending, sending.wait + _PATIENCE_S
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
            time.sleep(pause or 0.0)

    def once(self, request: Request, timeout: float) -> Response:
        """Send a request once; `ConnectionLost` says that it was not answered."""
        sent = now()
        address = self.servers.current()
        status, data, retry_after = self._exchange(address, request, timeout)
        return Response(status, data, retry_after, sent, sent)

    def close(self) -> None:
        """Close what is kept. A later call opens a new connection."""
        with self._lock:
            kept, self._idle = self._idle, []
        for connection in kept:
            connection.close()

    def _exchange(self, address: Address, request: Request, timeout: float) -> Answer:
        connection = self._take(address, timeout)
        fresh = not connection.used
        sent = False
        try:
            connection.connect(self.servers.connect_within(timeout))
            sent = True
            connection.http.request(
                request.method,
                address.prefix + request.path,
                body=request.body,
                headers={**self._headers, **request.headers()},
            )
            answer = connection.http.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as fault:
            connection.close()
            # The server closes a kept connection without an answer when it restarts.
            closed = isinstance(fault, (http.client.RemoteDisconnected, ConnectionError))
            was_idle = sent and closed and not fresh
            # A new connection says whether the server is there still.
            if not was_idle:
                self.servers.lost(address)
            raise ConnectionLost(
                advice(fault, address.host) or _why(fault),
                sent=sent and not is_refused(fault),
                was_idle=was_idle,
            ) from None
        except BaseException:
            # Interrupted in the middle: what comes on this connection belongs to nobody.
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._give_back(connection)
        retry_after = read_retry_after(answer.getheader("Retry-After"))
        data = read_body(answer.status, body)
        self.servers.answered(address, answer.status, data, answer.getheader(OWNER))
        return answer.status, data, retry_after

    def _take(self, address: Address, timeout: float) -> _Connection:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                rests = now() - connection.rests_since
                if connection.address == address and rests < _LONGEST_REST_S:
                    connection.set_timeout(timeout)
                    return connection
                connection.close()
        return _Connection(address, self._tls, timeout)

    def _give_back(self, connection: _Connection) -> None:
        connection.used = True
        connection.rests_since = now()
        with self._lock:
            if len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()


def _why(fault: BaseException) -> str:
    if isinstance(fault, TimeoutError):
        return "no answer in time"
    if isinstance(fault, OSError) and fault.strerror:
        # Without the number of the error, which a person must look up.
        return fault.strerror.lower()
    return str(fault) or type(fault).__name__


_TRANSPORTS: weakref.WeakSet[Transport] = weakref.WeakSet()


def _after_fork() -> None:
    # A forked child must not speak on its parent's connections, nor wait for a lock that a thread
    # of the parent held.
    for transport in list(_TRANSPORTS):
        transport._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
