"""How many jobs are leased ahead of slots, and for how long: rules without a clock."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Workers, until
from tenure import Tenure, limit
from tenure.records import LeaseRecord
from tenure.worker.ahead import LONGEST_WAIT_S, Ahead

NOW = 1000.0


def lease(name: str, **more: Any) -> LeaseRecord:
    return LeaseRecord(lease=name, **more)


def after_runs(*seconds: float, concurrency: int = 4) -> Ahead:
    ahead = Ahead(concurrency)
    for each in seconds:
        ahead.ran(each)
    return ahead


def test_nothing_is_leased_ahead_until_runs_have_proved_short() -> None:
    assert after_runs().room() == 0
    assert after_runs(0.001, 0.001).room() == 0
    assert after_runs(*[0.001] * 100).room() > 0


@pytest.mark.parametrize(("seconds", "room"), [(0.0001, 32), (0.005, 4), (0.01, 2), (0.05, 0)])
def test_as_many_are_leased_ahead_as_will_start_soon(seconds: float, room: int) -> None:
    assert after_runs(*[seconds] * 400).room() == pytest.approx(room, abs=1)


def test_a_single_slot_has_nothing_ahead() -> None:
    assert after_runs(*[0.0001] * 400, concurrency=1).room() == 0


def test_a_long_run_ends_it() -> None:
    ahead = after_runs(*[0.001] * 400)
    ahead.ran(1.0)
    assert ahead.room() == 0


def test_what_waits_counts_and_goes_in_its_order() -> None:
    ahead = after_runs(*[0.001] * 400)
    room = ahead.room()
    ahead.add([lease("a"), lease("b")], NOW - 1, NOW)
    assert (len(ahead), ahead.room()) == (2, room - 2)
    found = ahead.next()
    assert found is not None and (found[0].lease, found[1]) == ("a", NOW - 1)


def test_what_has_waited_for_too_long_is_taken_out_and_ends_it() -> None:
    ahead = after_runs(*[0.001] * 400)
    ahead.add([lease("a")], NOW, NOW)
    ahead.add([lease("b")], NOW, NOW + 0.01)
    assert ahead.overdue_at() == NOW + LONGEST_WAIT_S
    assert ahead.overdue(NOW + LONGEST_WAIT_S - 0.001) == []
    assert [each.lease for each in ahead.overdue(NOW + LONGEST_WAIT_S)] == ["a"]
    assert (len(ahead), ahead.room()) == (1, 0)


def test_jobs_that_hold_limits_or_resources_end_it() -> None:
    ahead = after_runs(*[0.001] * 400)
    ahead.add([lease("a")], NOW, NOW)
    ahead.keeps_scarce()
    assert ahead.room() > 0
    ahead.add([lease("b", limits=["site:x"])], NOW, NOW)
    ahead.keeps_scarce()
    assert ahead.room() == 0


def test_a_long_job_gives_back_the_jobs_leased_behind_it(t: Tenure, workers: Workers) -> None:
    # One slot, so that what is leased ahead waits for the long job and is given back.
    workers.start("--concurrency", "1", "--ttl", "2s")
    many = [t.push("work", {"a": n}, kind="add") for n in range(150)]
    long = t.push("work", kind="run_on")
    rest = [t.push("work", {"a": n}, kind="add") for n in range(20)]
    until(lambda: workers.notes("begin"), 30)
    until(lambda: t.stats().jobs["running"] == 1)
    other = workers.start("--concurrency", "1")
    assert [job.wait(30).get() for job in rest] == [n + 2 for n in range(20)]
    workers.go()
    assert long.wait(30).get() == "ended"
    assert [job.wait(30).get() for job in many] == [n + 2 for n in range(150)]
    assert all(job.attempt == 1 and job.errors == [] for job in t.jobs.list(queue="work"))
    assert other.poll() is None


def test_limits_hold_while_short_jobs_are_leased_ahead(t: Tenure, workers: Workers) -> None:
    t.limits.set("two", concurrency=2)
    jobs = [
        t.push("work", {"a": n}, kind="add", needs=[limit("two")] if n % 3 else [])
        for n in range(200)
    ]
    for _ in range(2):
        workers.start("--concurrency", "4")
    assert [job.wait(30).get() for job in jobs] == [n + 2 for n in range(200)]
    assert t.limits.get("two").in_use == 0


def test_fewer_are_leased_ahead_after_some_had_waited_for_too_long() -> None:
    ahead = after_runs(*[0.0001] * 400, concurrency=100)
    assert ahead.room() == 64
    ahead.add([lease("a")], NOW, NOW)
    ahead.overdue(NOW + 1)
    for _ in range(400):
        ahead.ran(0.0001)
    assert ahead.room() == 32
    ahead.add([], NOW, NOW)
    assert ahead.room() == 33
