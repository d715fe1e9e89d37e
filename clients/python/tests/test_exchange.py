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
from tenure._wire import Request, Response
from tenure.records import LeaseRecord
from tenure.worker.exchange import Exchange
from tenure.worker.written import RELEASED

#: Says what the server answers to an ask; the second value says whether it withdraws one.
Play = Callable[[dict[str, Any], bool], Any]


class Stage(Transport):
    """Answers asks as the test plays them, and settles and extends by itself."""

    def __init__(self) -> None:
        self.play: Play = lambda *_: granted()
        self.asks: list[dict[str, Any]] = []
        self.settled: list[str] = []
        self._stage = threading.Lock()

    def once(self, request: Request, timeout: float) -> Response:
        body = json.loads(request.body or b"{}")
        answer: dict[str, Any] = {}
        ask = body
        if request.path.endswith("/settle"):
            with self._stage:
                self.settled += [each["lease"] for each in body["settle"]]
            answer["settled"] = [{"ok": True} for _ in body["settle"]]
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
    until(lambda: len(stage.asks) == 2)
    exchange.drain()
    until(exchange.idle, 2)
