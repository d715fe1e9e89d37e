"""What a worker that ends makes of its last call for jobs, by a transport that a test plays."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, Optional

import pytest

from conftest import until
from tenure._http import Transport
from tenure._lost import ConnectionLost
from tenure._wire import Request, Response, now
from tenure.records import LeaseRecord
from tenure.worker.exchange import Exchange
from tenure.worker.settles import Settles, repair
from tenure.worker.written import RELEASED, Written

#: Says what the server answers to an ask; the second value says whether it withdraws one.
Play = Callable[[dict[str, Any], bool], Any]


class Stage(Transport):
    """Answers asks as the test plays them, and settles and extends by itself."""

    def __init__(self) -> None:
        self.play: Play = lambda *_: granted()
        self.asks: list[dict[str, Any]] = []
        self.settled: list[str] = []
        #: Says the code with which the settle of a lease is refused, by how often it came.
        self.settles_as: Callable[[str, int], Optional[str]] = lambda *_: None
        self._stage = threading.Lock()

    def once(self, request: Request, timeout: float) -> Response:
        body = json.loads(request.body or b"{}")
        answer: dict[str, Any] = {}
        ask = body
        if request.path.endswith("/settle"):
            with self._stage:
                leases = [each["lease"] for each in body["settle"]]
                self.settled += leases
                codes = [self.settles_as(each, self.settled.count(each)) for each in leases]
            answer["settled"] = [{"ok": not code, "code": code} for code in codes]
            ask = body.get("lease")
        elif request.path.endswith("/extend"):
            answer = {"extended": [{"lease": lease} for lease in body["leases"]]}
            ask = None
        if ask is None:
            return Response(200, answer)
        self.asks.append(ask)
        leases = self.play(ask, ask is body and ask["wait"] == "0s")
        return Response(200, {**answer, "leases": leases} if isinstance(leases, list) else leases)


def granted(*leases: str) -> list[dict[str, Any]]:
    return [{"lease": each, "fence": 1, "job": {"id": f"job-{each}"}} for each in leases]


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def exchanges(stage: Stage) -> Iterator[Callable[..., Exchange]]:
    made: list[Exchange] = []

    def make(begin: Callable[[Exchange, LeaseRecord], None]) -> Exchange:
        exchange = Exchange(
            stage, ["work"], 1, 30.0, lambda lease, _: begin(exchange, lease), until_empty=False
        )
        made.append(exchange)
        return exchange

    yield make
    for exchange in made:
        exchange.close()


def leave(exchange: Exchange, lease: LeaseRecord) -> None:
    """Begin a run that the test ends."""


def end(exchange: Exchange, lease: str) -> None:
    """End a run whose settle the next ask takes along: the asker waits for its slot."""
    until(lambda: lease in exchange.slots() and not exchange._asker_is_away)
    exchange.finish(lease, "a job", RELEASED, 1.0)


class Watched(dict[str, Any]):
    """An answer that calls somebody when its leases are looked at."""

    def __init__(self, data: dict[str, Any], look: Callable[[], None]) -> None:
        super().__init__(data)
        self._look: Optional[Callable[[], None]] = look

    def __getitem__(self, key: str) -> Any:
        if key == "leases" and self._look is not None:
            look, self._look = self._look, None
            look()
        return super().__getitem__(key)


def test_a_worker_is_not_idle_while_it_reads_what_was_granted(
    stage: Stage, exchanges: Callable[..., Exchange]
) -> None:
    exchange = exchanges(leave)
    idle: list[bool] = []

    def look() -> None:
        # The settle is answered, nothing runs any more, and a job is granted that nobody has.
        exchange.drain()
        idle.append(exchange.idle())

    def play(*_: Any) -> Any:
        if len(stage.asks) == 1:
            return granted("a")
        return Watched({"settled": [{"ok": True}], "leases": granted("b")}, look)

    stage.play = play
    exchange.start()
    end(exchange, "a")
    until(lambda: idle)
    assert idle == [False]
    until(exchange.idle)
    assert stage.settled == ["a", "b"]


def test_a_drain_does_not_give_back_what_just_began(
    stage: Stage, exchanges: Callable[..., Exchange]
) -> None:
    begun = threading.Event()

    def begin(exchange: Exchange, _: LeaseRecord) -> None:
        # As if its handler ended the worker in its first line.
        exchange.drain()
        begun.set()

    exchange = exchanges(begin)
    stage.play = lambda *_: granted("a")
    exchange.start()
    assert begun.wait(10)
    assert exchange.slots() == {"a"}
    exchange.finish("a", "a job", RELEASED, 0.0)
    until(exchange.idle)
    assert len(stage.asks) == len(stage.settled) == 1


@pytest.mark.parametrize("carries", [False, True], ids=["alone", "with-a-settle"])
def test_a_drain_gives_back_what_a_lost_answer_granted(
    stage: Stage, exchanges: Callable[..., Exchange], carries: bool
) -> None:
    exchange = exchanges(leave)
    lost = threading.Event()

    def play(_: dict[str, Any], withdraws: bool) -> Any:
        if carries and len(stage.asks) == 1:
            return granted("a")
        if not withdraws:
            lost.set()
            raise ConnectionLost("cut off", sent=True)
        return granted("b")

    stage.play = play
    exchange.start()
    if carries:
        end(exchange, "a")
    assert lost.wait(10)
    exchange.drain()
    until(exchange.idle)
    assert len({ask["request_id"] for ask in stage.asks}) == 1 + carries
    assert set(stage.settled) == ({"a", "b"} if carries else {"b"})


def test_a_drain_does_not_wait_for_what_reached_nobody(
    stage: Stage, exchanges: Callable[..., Exchange]
) -> None:
    exchange = exchanges(leave)

    def play(*_: Any) -> Any:
        raise ConnectionLost("connection refused", sent=False)

    stage.play = play
    exchange.start()
    until(lambda: len(stage.asks) >= 2)
    exchange.drain()
    until(exchange.idle, 2)


def test_a_settle_that_finds_a_full_queue_keeps_its_lease_and_goes_again(
    stage: Stage, exchanges: Callable[..., Exchange], caplog: pytest.LogCaptureFixture
) -> None:
    # Two runs of one call push to a queue that has room for one.
    stage.settles_as = lambda lease, times: "queue_full" if (lease, times) == ("a", 1) else None
    exchange = exchanges(leave)
    stage.play = lambda *_: granted("a") if len(stage.asks) == 1 else []
    exchange.start()
    until(lambda: "a" in exchange.slots())
    exchange.keeper.hold("a", ttl=30.0, sent=now(), on_stop=lambda _: None)
    exchange.finish("a", "a job", Written("succeeded"), 1.0)
    until(lambda: stage.settled == ["a"])
    assert exchange.settles("a") and not exchange.settled()
    assert exchange.keeper.settling("a")
    until(lambda: stage.settled == ["a", "a"])
    until(exchange.settled)
    assert not exchange.settles("a") and not exchange.keeper.settling("a")
    assert "counts no more" not in caplog.text


@pytest.mark.parametrize("index", [0, 1])
def test_a_call_that_is_refused_for_a_full_queue_goes_on_without_its_item(index: int) -> None:
    settles = Settles(30.0)
    for lease in ("a", "b"):
        settles.add(lease, "a job", Written("succeeded"), 0.0)
    problem = {"code": "queue_full", "index": index, "pointer": f"/settle/{index}/push/0"}
    taken = settles.take(0.0)
    assert repair(Response(429, problem), taken, 0.0)
    assert settles.put_back(taken, 0.0) == []
    assert [each.lease for each in settles.take(0.5)] == ["ba"[index]]
    # The other one comes again, alone.
    settles.add("c", "a job", Written("succeeded"), 0.6)
    assert [each.lease for each in settles.take(1.5)] == ["c"]
    assert [each.lease for each in settles.take(1.5)] == ["ab"[index]]
    # It is not repeated for ever.
    late = taken[index]
    late.again = 61.0
    assert settles.put_back([late], 60.5) == [late]


def test_a_refusal_of_the_whole_call_or_of_an_item_that_is_not_there_mends_nothing() -> None:
    settles = Settles(30.0)
    settles.add("a", "a job", Written("succeeded"), 0.0)
    taken = settles.take(0.0)
    for problem in (
        {"code": "rate_limited"},
        {"code": "queue_full", "index": 3, "pointer": "/settle/3/push/0"},
        {"code": "line_full", "pointer": "/lease"},
    ):
        assert not repair(Response(429, problem), taken, 0.0)
    assert taken[0].written == Written("succeeded")
