"""Several servers of one store: which one is called, when it is left, and whom a client follows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Callable, Optional

import pytest

from conftest import free_port
from doubles import Double
from tenure import App, AsyncTenure, Tenure, errors
from tenure._addresses import Address
from tenure._servers import Servers
from tenure._settings import Settings
from tenure.worker.reach import WatchedTransport

TOKEN = "a-token-of-at-least-32-characters-long"


@pytest.fixture
def doubles() -> Iterator[list[Double]]:
    made = [Double(), Double(), Double()]
    try:
        yield made
    finally:
        for each in made:
            each.stop()


class Calls:
    """Calls of one client, blocking or awaited, one after the other."""

    def __init__(self, is_async: bool, url: str, **options: Any) -> None:
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        if is_async:
            self._loop = asyncio.new_event_loop()
        self._client: Any = (AsyncTenure if is_async else Tenure)(url, **options)

    def stats(self) -> None:
        if self._loop is not None:
            self._loop.run_until_complete(self._client.stats())
        else:
            self._client.stats()

    def close(self) -> None:
        if self._loop is not None:
            self._loop.run_until_complete(self._client.close())
            self._loop.close()
        else:
            self._client.close()


Calling = Callable[..., Calls]


@pytest.fixture(params=[False, True], ids=["blocking", "awaited"])
def calling(request: pytest.FixtureRequest) -> Iterator[Calling]:
    """Make a client of servers."""
    made: list[Calls] = []

    def make(*servers: Double, **options: Any) -> Calls:
        options.setdefault("retry_for", 0)
        made.append(Calls(request.param, ",".join(each.url for each in servers), **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def counts(doubles: list[Double]) -> list[int]:
    return [len(each.seen) for each in doubles]


@pytest.mark.parametrize(
    ("given", "urls"),
    [
        ("http://a:7070,https://b:7070", ["http://a:7070", "https://b:7070"]),
        ("redis:6379,redis-2:6379", ["http://redis:6379", "http://redis-2:6379"]),
        (" a:1 , b:2/t ", ["http://a:1", "http://b:2/t"]),
        ("tenure://a,[::1]:2,a:7171", ["http://a:7171", "http://[::1]:2"]),
    ],
)
def test_a_list_has_these_forms(given: str, urls: list[str]) -> None:
    settings = Settings.find(given, None, None)
    assert [each.url for each in settings.addresses] == urls
    assert Settings.find(settings.url, None, None) == settings


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("http://a:1,", "empty part"),
        (",http://a:1", "empty part"),
        ("http://a:1,,http://b:1", "empty part"),
        ("http://a:1,geheim", "address 2 of 2: the address of a server is HOST:PORT"),
        ("http://a:1,http://ann:geheim@b:1", "address 2 of 2: .* takes no user and no password"),
        ("http://a:1,redis://:geheim@b:1", 'address 2 of 2: "redis:" is the address of a store'),
        ("redis://:geheim@b:1,http://a:1", "address of a Redis"),
        ("http://a:1,http://b:99999", "port"),
        ("http://a:1,http://b:geheim", "port"),
    ],
)
def test_a_bad_list_is_refused_and_not_repeated(given: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        Tenure(given)
    assert "geheim" not in str(refused.value)


def test_the_first_that_answers_is_used_and_stays(calling: Calling, doubles: list[Double]) -> None:
    first, second, third = doubles
    first.stop()
    client = calling(first, second, third)
    for _ in range(3):
        client.stats()
    assert counts(doubles) == [0, 3, 0]


def test_a_lost_server_is_left_at_once_and_not_asked_again(
    calling: Calling, doubles: list[Double]
) -> None:
    client = calling(*doubles)
    client.stats()
    doubles[0].stop()
    # A patience of nothing allows no pause.
    client.stats()
    client.stats()
    assert counts(doubles) == [1, 2, 0]


def test_after_the_last_comes_the_first_again(calling: Calling, doubles: list[Double]) -> None:
    first, second, _ = doubles
    client = calling(first, second)
    first.serves_not("draining")
    client.stats()
    first.status, first.body = 200, {"jobs": {}}
    second.serves_not("draining")
    client.stats()
    assert counts(doubles) == [2, 2, 0]


@pytest.mark.parametrize("code", ["draining", "not_owner", "store_unavailable"])
def test_a_server_that_does_not_serve_is_left_at_once(
    calling: Calling, doubles: list[Double], code: str
) -> None:
    # It asks for more patience than there is; another server needs none.
    doubles[0].serves_not(code, retry_after="3600")
    client = calling(*doubles)
    client.stats()
    assert counts(doubles) == [1, 1, 0]


@pytest.mark.parametrize("code", ["overloaded", "store_full", "outcome_unknown"])
def test_a_refusal_that_all_servers_would_repeat_moves_nobody(
    calling: Calling, doubles: list[Double], code: str
) -> None:
    doubles[0].serves_not(code)
    client = calling(*doubles)
    with pytest.raises(errors.TenureError) as refused:
        client.stats()
    assert refused.value.code == code
    assert counts(doubles) == [1, 0, 0]


def test_each_is_asked_once_before_a_call_is_given_up(
    calling: Calling, doubles: list[Double]
) -> None:
    for each in doubles:
        each.serves_not("store_unavailable")
    client = calling(*doubles)
    with pytest.raises(errors.StoreUnavailable):
        client.stats()
    assert counts(doubles) == [1, 1, 1]


def test_a_list_that_nobody_answers_is_named_whole(calling: Calling, doubles: list[Double]) -> None:
    for each in doubles:
        each.stop()
    with pytest.raises(errors.Unreachable) as lost:
        calling(*doubles).stats()
    assert all(each.url in str(lost.value) for each in doubles)


def test_an_unrepeatable_call_in_doubt_goes_to_no_other_server(
    doubles: list[Double],
) -> None:
    first, second, _ = doubles
    # A proxy whose server broke off in the middle.
    first.status, first.body = 502, {}
    with Tenure(f"{first.url},{second.url}", retry_for=5) as client:
        with pytest.raises(errors.UnexpectedAnswer):
            client.jobs.retry_many(queue="q")
    assert counts(doubles) == [1, 0, 0]


def test_single_calls_of_a_worker_move_as_well(doubles: list[Double]) -> None:
    from tenure._lost import ConnectionLost
    from tenure._wire import request

    first, second, _ = doubles
    first.stop()
    app = App(f"{first.url},{second.url}")
    transport = WatchedTransport(app.settings)
    try:
        with pytest.raises(ConnectionLost):
            transport.once(request("GET", "stats"), 5)
        assert transport.once(request("GET", "stats"), 5).status == 200
        second.serves_not("draining")
        assert transport.once(request("GET", "stats"), 5).status == 503
        assert transport.servers.at == Address.read(first.url)
    finally:
        transport.close()


def test_a_client_goes_to_the_owner_that_an_answer_names(
    calling: Calling, doubles: list[Double]
) -> None:
    first, second, owner = doubles
    first.names_as_owner(owner)
    client = calling(first, second, token=TOKEN)
    for _ in range(3):
        client.stats()
    assert counts(doubles) == [1, 0, 2]
    assert set(owner.tokens) == {f"Bearer {TOKEN}"}


def test_a_client_of_one_address_stays_there(calling: Calling, doubles: list[Double]) -> None:
    first, _, owner = doubles
    first.names_as_owner(owner)
    client = calling(first)
    client.stats()
    client.stats()
    assert counts(doubles) == [2, 0, 0]


def test_an_owner_that_is_gone_is_left_for_the_server_that_named_it(
    calling: Calling, doubles: list[Double]
) -> None:
    first, second, owner = doubles
    first.stop()
    second.names_as_owner(owner)
    client = calling(first, second)
    client.stats()
    client.stats()
    owner.stop()
    # Named again by each of these answers, and not tried: that would not show as a call.
    for _ in range(3):
        client.stats()
    assert counts(doubles) == [0, 4, 1]


def test_an_owner_that_could_not_be_reached_is_followed_after_30_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moment = 100.0
    monkeypatch.setattr("tenure._servers.now", lambda: moment)
    servers = Servers(Settings.find("gone:1,a:1", None, None))
    gone, listed, owner = (Address.read(url) for url in ("gone:1", "a:1", "c:1"))
    servers.lost(gone)
    servers.answered(listed, 200, {}, owner.url)
    assert servers.at == owner
    servers.lost(owner)
    assert servers.at == listed
    for moment, at in ((100.0, listed), (129.9, listed), (130.1, owner)):
        servers.answered(listed, 200, {}, owner.url)
        assert servers.at == at, moment


def test_an_owner_that_only_drains_is_followed_again_when_it_is_named(
    calling: Calling, doubles: list[Double]
) -> None:
    first, second, owner = doubles
    first.names_as_owner(owner)
    client = calling(first, second)
    client.stats()
    owner.serves_not("draining")
    client.stats()
    owner.status, owner.body = 200, {"jobs": {}}
    client.stats()
    assert counts(doubles) == [2, 0, 2]


@pytest.mark.parametrize(
    ("given", "asked", "owner", "token", "follows"),
    [
        ("http://a:1,http://b:1", "http://a:1", "http://c:1", TOKEN, True),
        ("http://a:1,http://b:1", "http://a:1", "https://c:1", TOKEN, True),
        ("https://a:1,https://b:1", "https://a:1", "https://c:1", TOKEN, True),
        ("https://a:1,https://b:1", "https://a:1", "http://c:1", None, False),
        ("http://a:1,https://b:1", "http://a:1", "http://c:1", TOKEN, False),
        ("http://a:1,https://b:1", "http://a:1", "http://c:1", None, True),
        ("http://a:1,http://b:1", "http://a:1", "http://ann:x@c:1", None, False),
        ("http://a:1,http://b:1", "http://a:1", "file:/etc/passwd", None, False),
        ("http://a:1,http://b:1", "http://a:1", "", None, False),
        # An answer that comes late, of a server that was left meanwhile.
        ("http://a:1,http://b:1", "http://b:1", "http://c:1", None, False),
    ],
)
def test_nobody_is_led_to_a_weaker_scheme_or_to_nonsense(
    given: str, asked: str, owner: str, token: Optional[str], follows: bool
) -> None:
    servers = Servers(Settings.find(given, token, None))
    before = servers.at
    servers.answered(Address.read(asked), 200, {}, owner)
    assert (servers.at != before) == follows


def test_a_refusal_names_no_owner() -> None:
    servers = Servers(Settings.find("a:1,b:1", None, None))
    servers.answered(Address.read("a:1"), 500, {"code": "internal"}, "http://c:1")
    assert servers.at == Address.read("a:1")


def test_a_client_shows_all_its_addresses(doubles: list[Double]) -> None:
    url = f"http://127.0.0.1:{free_port()},{doubles[0].url}"
    with Tenure(url) as client:
        assert url in repr(client)
    app = App(url)
    app.client.stats()
    assert app.client is app.client
    app.client.close()
