"""When leases are extended and holders stopped: rules without a clock, and one with a false one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tenure import _keeper
from tenure._addresses import Address
from tenure._holdings import CANCELLED, LOST, TIMED_OUT, Held, Holdings
from tenure._http import Transport
from tenure._lost import ConnectionLost
from tenure._servers import Servers
from tenure._settings import Settings
from tenure._wire import Request, Response, now

NOW = 1000.0


class Played(Transport):
    """Extends every lease, unless the test says otherwise for a server and a timeout."""

    def __init__(self, play: Callable[[str, float], None], url: str = "http://one.test") -> None:
        self.servers = Servers(Settings.find(url, None, None))
        self._play = play

    def once(self, request: Request, timeout: float) -> Response:
        address = self.servers.current()
        try:
            self._play(address.url, timeout)
        except ConnectionLost:
            self.servers.lost(address)
            raise
        return Response(200, good(*json.loads(request.body or b"")["leases"]))


def held(holdings: Holdings, name: str = "a", ttl: float = 10.0, **more: Any) -> Held:
    made = Held(name, ttl, lambda _: None, NOW, NOW + ttl / 5, **more)
    holdings.add(made)
    return made


def good(*names: str, cancel: tuple[str, ...] = (), at: str = "") -> dict[str, Any]:
    extended = [{"lease": name, "expires_at": at or None} for name in names]
    return {"extended": extended, "lost": [], "cancel": list(cancel)}


def test_an_extend_is_due_each_fifth_of_the_ttl() -> None:
    holdings = Holdings()
    one = held(holdings)
    assert holdings.due(NOW + 1.9) == []
    assert holdings.due(NOW + 2) == [one]
    holdings.answered([one], NOW + 2, NOW + 2.1, good("a"))
    assert holdings.next_extend() == pytest.approx(NOW + 4)


def test_one_call_extends_all_that_are_due_soon() -> None:
    holdings = Holdings()
    one, two = held(holdings), held(holdings, "b")
    two.next_extend += 1.5
    assert holdings.due(NOW + 2) == [one, two]


def test_a_holder_stops_at_four_fifths_of_its_ttl_without_an_answer() -> None:
    holdings = Holdings()
    one = held(holdings)
    holdings.answered([one], NOW + 2, NOW + 5, good("a"))
    assert holdings.next_stop() == pytest.approx(NOW + 10)
    assert holdings.overdue(NOW + 9.9) == []
    assert holdings.overdue(NOW + 10) == [(one, LOST)]
    assert holdings.overdue(NOW + 11) == []


def test_a_lease_being_settled_is_extended_late_and_in_time() -> None:
    holdings = Holdings()
    one = held(holdings, progress=b"1")
    assert holdings.due(NOW + 0.5) == [one]
    # Its report goes with the outcome: an extend that crosses it would find no lease.
    holdings.settle(one, NOW + 1.9)
    assert holdings.due(NOW + 3.8) == []
    assert holdings.due(NOW + 4) == [one]
    late = held(holdings, "b")
    holdings.settle(late, NOW + 7.5)
    assert late.next_extend == NOW + 6


def test_a_failed_extend_is_tried_again_soon_and_moves_no_end() -> None:
    holdings = Holdings()
    one = held(holdings)
    holdings.failed([one], NOW + 2, NOW + 2)
    assert holdings.next_extend() == pytest.approx(NOW + 2.5)
    assert holdings.next_stop() == pytest.approx(NOW + 8)


def test_an_extend_that_is_answered_slowly_is_sent_again_and_counts() -> None:
    holdings = Holdings()
    one = held(holdings)
    here, there = Address.read("http://one.test"), Address.read("http://two.test")
    assert holdings.asks(holdings.due(NOW + 2), NOW + 2, here) == []
    assert holdings.due(NOW + 4.9) == []
    assert holdings.next_extend() == pytest.approx(NOW + 5)
    # The server that has not answered by now is named, so that another one can be asked.
    assert holdings.asks(holdings.due(NOW + 5), NOW + 5, there) == [here]
    holdings.answered([one], NOW + 2, NOW + 6, good("a"))
    assert holdings.next_stop() == pytest.approx(NOW + 10)
    # The second is under way still.
    assert holdings.next_extend() == pytest.approx(NOW + 8)
    holdings.failed([one], NOW + 2, NOW + 6.5)
    assert holdings.next_extend() == pytest.approx(NOW + 8)
    holdings.answered([one], NOW + 5, NOW + 7, good("a"))
    assert holdings.next_extend() == pytest.approx(NOW + 7)
    assert holdings.next_stop() == pytest.approx(NOW + 13)
    holdings.failed([one], NOW + 2, NOW + 7.1)
    assert holdings.next_extend() == pytest.approx(NOW + 7)


def test_an_answer_that_comes_after_the_end_brings_nothing_back() -> None:
    holdings = Holdings()
    one = held(holdings)
    holdings.overdue(NOW + 8)
    holdings.answered([one], NOW + 7.9, NOW + 8.1, good("a"))
    assert one.stopped and one.good_since == NOW


def test_an_older_sending_that_is_answered_later_shortens_nothing() -> None:
    holdings = Holdings()
    one = held(holdings)
    holdings.answered([one], NOW + 4, NOW + 4.1, good("a"))
    holdings.answered([one], NOW + 2, NOW + 4.2, good("a"))
    assert one.good_since == NOW + 4


def test_what_the_server_calls_lost_stops_at_once() -> None:
    holdings = Holdings()
    one = held(holdings)
    answer = {"extended": [], "lost": ["a"], "cancel": []}
    assert holdings.answered([one], NOW + 2, NOW + 2, answer) == [(one, LOST)]
    assert holdings.due(NOW + 50) == []


def test_a_cancel_is_told_once_and_the_lease_goes_on() -> None:
    holdings = Holdings()
    one = held(holdings)
    answer = good("a", cancel=("a",))
    assert holdings.answered([one], NOW + 2, NOW + 2, answer) == [(one, CANCELLED)]
    assert holdings.answered([one], NOW + 4, NOW + 4, answer) == []
    assert holdings.due(NOW + 6) == [one]


def test_a_lease_that_settles_is_extended_and_never_stopped() -> None:
    holdings = Holdings()
    one = held(holdings)
    one.settling = True
    assert holdings.overdue(NOW + 100) == []
    answer = {"extended": [], "lost": ["a"], "cancel": []}
    assert holdings.answered([one], NOW + 2, NOW + 2, answer) == []
    assert holdings.due(NOW + 4) == [one]


def test_a_deadline_stops_the_work_and_not_the_lease() -> None:
    holdings = Holdings()
    one = held(holdings, deadline=NOW + 3)
    assert holdings.overdue(NOW + 3) == [(one, TIMED_OUT)]
    assert holdings.overdue(NOW + 3.1) == []
    assert holdings.due(NOW + 3.1) == [one]


def test_a_deadline_is_known_by_the_servers_own_moments() -> None:
    holdings = Holdings()
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    # The server granted 4 s before the lease was read, so 6 s of its 10 s are left.
    one = held(holdings, ttl=10.0, deadline=NOW + 10, deadline_at=at + timedelta(seconds=10))
    expires = at + timedelta(seconds=4 + 10)
    holdings.answered([one], NOW, NOW, good("a", at=expires.isoformat()))
    assert one.deadline == pytest.approx(NOW + 6)


def test_what_was_let_go_is_not_extended() -> None:
    holdings = Holdings()
    one = held(holdings)
    holdings.remove("a")
    assert holdings.due(NOW + 5) == []
    assert holdings.answered([one], NOW, NOW, {"lost": ["a"]}) == []


def test_a_machine_stops_its_holders_soon_after_a_suspend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(_: str, __: float) -> None:
        raise ConnectionLost("away", sent=False)

    clock = [NOW]
    monkeypatch.setattr(_keeper, "now", lambda: clock[0])
    keeper = _keeper.Keeper(Played(away))
    stopped = threading.Event()
    try:
        keeper.hold("a", ttl=3600, sent=NOW, on_stop=lambda _: stopped.set())
        assert not stopped.wait(0.2)
        # Waits of threads do not count the time of a sleeping machine, and leases do.
        clock[0] += 3600
        assert stopped.wait(5)
    finally:
        keeper.close()


@pytest.fixture
def holds() -> Iterator[Callable[[Transport, float], threading.Event]]:
    """Hold a lease with a ttl by a transport; the event is set when it is lost."""
    made: list[_keeper.Keeper] = []

    def hold(transport: Transport, ttl: float) -> threading.Event:
        lost = threading.Event()
        made.append(_keeper.Keeper(transport))
        assert made[-1].hold("a", ttl=ttl, sent=now(), on_stop=lambda _: lost.set())
        return lost

    yield hold
    for keeper in made:
        keeper.close()


def test_a_lease_is_kept_by_answers_that_come_slowly(
    holds: Callable[[Transport, float], threading.Event],
) -> None:
    ttl = 2.0
    calls = 0

    def play(_: str, timeout: float) -> None:
        nonlocal calls
        calls += 1
        # Later than the next heartbeat, and in time for the lease.
        takes = 0.4 * ttl if calls <= 2 else 0.0
        time.sleep(min(takes, timeout))
        if timeout < takes:
            raise ConnectionLost("no answer in time", sent=True)

    assert not holds(Played(play), ttl).wait(1.2 * ttl)


def test_a_server_that_answers_no_heartbeat_is_left_for_the_next_one(
    holds: Callable[[Transport, float], threading.Event],
) -> None:
    ttl = 2.0

    over = threading.Event()
    asked: list[str] = []

    def play(url: str, _: float) -> None:
        asked.append(url)
        if "one.test" in url:
            over.wait(20)
            raise ConnectionLost("no answer in time", sent=True)

    lost = holds(Played(play, "http://one.test,http://two.test"), ttl)
    try:
        assert not lost.wait(1.2 * ttl)
        assert "one.test" in asked[0]
        assert "two.test" in asked[1]
    finally:
        over.set()
