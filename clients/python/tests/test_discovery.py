"""A store in Redis as the address: its servers are looked up there."""

from __future__ import annotations

import asyncio
import socketserver
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import pytest

from conftest import Server
from doubles import Double
from tenure import App, AsyncTenure, Tenure, errors
from tenure._addresses import Address, Store
from tenure._discovery import read_servers
from tenure._lost import NoServerFound
from tenure._servers import Servers
from tenure._settings import Settings

OWNER = f"{7:032x}"


class Written:
    """A store in which a test writes down servers, as servers do."""

    def __init__(self, redis_url: str, name: str) -> None:
        import redis

        self.url = f"{redis_url}?name={name}"
        self._name = name
        self._redis: Any = redis.Redis.from_url(redis_url, decode_responses=True)

    def server(self, id: int, url: str, seconds_ago: float = 0.0) -> None:
        seconds, micros = self._redis.time()
        said = seconds * 1_000_000 + micros - int(seconds_ago * 1e6)
        self._redis.hset(f"{{{self._name}}}:servers", f"{id:032x}", f"{said} 0.1.0 1 5 {url}")

    def owner(self, id: int) -> None:
        self._redis.hset(f"{{{self._name}}}:own", "owner", f"{id:032x}")

    def close(self) -> None:
        self._redis.close()


@pytest.fixture
def written(redis_url: Optional[str], namespace: str) -> Iterator[Written]:
    if redis_url is None:
        pytest.skip("there is no redis-server here")
    made = Written(redis_url, namespace)
    try:
        yield made
    finally:
        made.close()


class BreaksOff(socketserver.ThreadingTCPServer):
    """A server that ends each connection at once, and counts them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.connections = 0
        self.address = f"127.0.0.1:{self.server_address[1]}"

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        super().process_request(request, client_address)


@pytest.fixture
def breaks_off() -> Iterator[BreaksOff]:
    with BreaksOff() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        yield server
        server.shutdown()


@pytest.fixture
def doubles() -> Iterator[list[Double]]:
    made = [Double(), Double()]
    try:
        yield made
    finally:
        for each in made:
            each.stop()


@pytest.mark.parametrize(
    ("given", "shown", "name"),
    [
        ("redis://h:6379", "redis://h:6379", "tenure"),
        ("redis://ann:geheim@h/2?name=x&replicas=1", "redis://h/2?name=x", "x"),
        ("rediss://:geheim@[::1]:1", "rediss://[::1]:1", "tenure"),
        ("valkey://h?name=x&forgets=never", "valkey://h?name=x", "x"),
        ("redis-cluster://:geheim@a,b:7000", "redis-cluster://a,b:7000", "tenure"),
        ("redis-sentinel://:geheim@a/main/2", "redis-sentinel://a/main/2", "tenure"),
    ],
)
def test_a_store_is_named_without_its_password(given: str, shown: str, name: str) -> None:
    settings = Settings.find(given, None, None)
    assert settings.store is not None
    assert (settings.shown, settings.store.name) == (shown, name)
    assert "geheim" not in repr(settings)
    assert Settings.find(settings.url, None, None) == settings


@pytest.mark.parametrize(
    "given",
    ["redis://", "redis://a,b", "redis://h:x", "redis://h?name={x}"],
)
def test_a_wrong_address_of_a_store_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"address|name of a store"):
        Tenure(given)


def test_what_servers_wrote_is_read_with_the_owner_first() -> None:
    second = 1_000_000
    servers = {
        f"{1:032x}": f"{97 * second} 0.1.0 1 5 http://a:1",
        f"{2:032x}": f"{99 * second} 0.1.0 1 5 http://b:1",
        f"{3:032x}": f"{89 * second} 0.1.0 1 5 http://gone:1",
        OWNER: f"{95 * second} 0.1.0 1 5 https://owner:1",
        "x": "another form of a newer release",
        "y": f"{99 * second} 0.1.0 1 5 nonsense",
    }
    found = read_servers(OWNER, servers, 100 * second)
    assert [each.url for each in found] == ["https://owner:1", "http://b:1", "http://a:1"]
    assert read_servers(None, servers, 100 * second)[0] == Address.read("b:1")
    assert read_servers(OWNER, {}, 100 * second) == ()


def test_the_parts_of_an_address_are_understood() -> None:
    store = Store.read(
        "redis-sentinel://me:ge%40heim@a:1,[::1]/my%20main/2"
        "?tls=true&ca=/x/ca.pem&sentinel_user=s&sentinel_password=p%26p"
    )
    assert store is not None
    assert store.hosts == (("a", 1), ("::1", 26379))
    assert (store.master, store.db, store.is_cluster) == ("my main", 2, False)
    assert (store.login.user, store.login.password) == ("me", "ge@heim")
    assert (store.sentinel_login.user, store.sentinel_login.password) == ("s", "p&p")
    assert (store.is_tls, store.ca) == (True, "/x/ca.pem")
    cluster = Store.read("redis-cluster://a,b:7000")
    assert cluster is not None
    assert (cluster.hosts, cluster.is_cluster) == ((("a", 6379), ("b", 7000)), True)


def test_the_server_that_really_runs_is_found(
    redis_url: Optional[str], namespace: str, folder: Path
) -> None:
    if redis_url is None:
        pytest.skip("there is no redis-server here")
    store = f"{redis_url}?name={namespace}"
    server = Server(store, folder).start()
    try:
        # It writes itself down within a second.
        with Tenure(store, retry_for=20) as client:
            client.stats()
    finally:
        server.kill()


def test_calls_go_to_the_owner_of_the_store(written: Written, doubles: list[Double]) -> None:
    other, owner = doubles
    written.server(1, other.url)
    written.server(2, owner.url, seconds_ago=2)
    written.owner(2)
    with Tenure(written.url) as client:
        client.stats()
        assert (len(other.seen), len(owner.seen)) == (0, 1)
    app = App(written.url)
    app.client.stats()
    assert app.client is app.client
    app.client.close()

    async def awaited() -> None:
        async with AsyncTenure(written.url) as client:
            await client.stats()

    asyncio.run(awaited())
    assert (len(other.seen), len(owner.seen)) == (0, 3)


def test_the_servers_are_looked_up_again_when_all_are_gone(
    written: Written, doubles: list[Double]
) -> None:
    first, later = doubles
    written.server(1, first.url)
    with Tenure(written.url, retry_for=10) as client:
        client.stats()
        first.stop()
        written.server(2, later.url)
        written.owner(2)
        client.stats()
    assert (len(first.seen), len(later.seen)) == (1, 1)


def test_a_server_that_passes_on_is_left_for_the_owner_that_it_names(
    written: Written, doubles: list[Double]
) -> None:
    first, owner = doubles
    written.server(1, first.url)
    first.names_as_owner(owner)
    with Tenure(written.url, retry_for=0) as client:
        client.stats()
        client.stats()
    assert (len(first.seen), len(owner.seen)) == (1, 1)


def test_a_store_without_a_living_server_says_what_to_start(written: Written) -> None:
    written.server(1, "http://127.0.0.1:1", seconds_ago=11)
    for retry_for in (0.0, 0.2):
        with Tenure(written.url, retry_for=retry_for) as client:
            with pytest.raises(errors.Unreachable) as lost:
                client.stats()
        shown = written.url
        assert lost.value.detail == (
            f"no server of Tenure uses {shown}; start one: tenure serve --store {shown}"
        )


@pytest.mark.parametrize("form", ["redis://{}@{}", "redis-sentinel://{}@{}/main"])
def test_a_redis_that_breaks_off_is_asked_once_and_hides_its_password(
    form: str, breaks_off: BreaksOff
) -> None:
    url = form.format(":geheim", breaks_off.address)
    with Tenure(url, retry_for=0) as client:
        with pytest.raises(errors.Unreachable) as lost:
            client.stats()
        assert "geheim" not in f"{client!r} {lost.value}"
    assert breaks_off.address in str(lost.value)
    assert breaks_off.connections == 1


def test_without_redis_py_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ImportError, match="pip install redis"):
        Tenure("redis://127.0.0.1")


TLS = "https://safe:1"
FOUND = tuple(
    map(Address.read, ("http://ten.example:1", TLS, "http://127.0.0.1:2", "http://[::1]:3"))
)
SAFE = {"ca": {"ca": "ca.pem"}, "certificate": {"client_cert": "c.pem"}, "rediss": {}}


def searched(monkeypatch: pytest.MonkeyPatch, how: str, *found: Address) -> Servers:
    """The servers of a client that finds these in its Redis, and may speak in clear to few."""
    monkeypatch.setattr("tenure._discovery.find_servers", lambda _: found)
    store = "rediss://h" if how == "rediss" else "redis://h"
    return Servers(Settings.find(store, "a token", None, **SAFE.get(how, {})))


@pytest.mark.parametrize("how", SAFE)
def test_a_client_of_tls_sends_nothing_in_clear_to_a_found_address(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    servers = searched(monkeypatch, how, *FOUND)
    first = servers.current()
    assert first.url == TLS
    # Named by a server that was found, as the owner.
    servers.answered(first, 200, {}, "http://ten.example:1")
    assert servers.current().url == TLS
    called = []
    for _ in range(3):
        called.append(servers.current().url)
        servers.lost(servers.current())
    here = ["http://127.0.0.1:2", "http://[::1]:3"]
    # With an authority or a certificate of its own, a client calls not even this machine in clear.
    assert called == ([TLS, *here] if how == "rediss" else [TLS, TLS, TLS])


def test_a_client_of_tls_says_why_no_found_server_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(NoServerFound, match=r"http://ten\.example:1 in clear"):
        searched(monkeypatch, "ca", FOUND[0]).current()


def test_a_client_without_tls_calls_what_it_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = searched(monkeypatch, "clear", FOUND[0])
    assert servers.current() == FOUND[0]
    servers.answered(FOUND[0], 200, {}, "http://another:1")
    assert servers.current().url == "http://another:1"


def test_a_server_that_is_found_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tenure")
    servers = searched(monkeypatch, "clear", FOUND[0], FOUND[1])
    for _ in range(4):
        servers.lost(servers.current())
    assert caplog.messages == [
        "found the server http://ten.example:1 in redis://h",
        "found the server https://safe:1 in redis://h",
    ]
