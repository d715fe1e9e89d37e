"""Reports of handlers: how soon the job shows them, and what they cost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from conftest import Workers, until
from proxy import Proxy
from tenure import Tenure
from tenure._holdings import PROGRESS_EVERY_S, Held, Holdings

NOW = 1000.0


def held(holdings: Holdings, name: str) -> Held:
    made = Held(name, 30.0, lambda _: None, NOW, NOW + 6)
    holdings.add(made)
    return made


def test_the_first_report_is_due_at_once_and_later_ones_together() -> None:
    holdings = Holdings()
    one, two = held(holdings, "a"), held(holdings, "b")
    assert holdings.due(NOW) == []
    one.progress = b"1"
    assert (holdings.next_extend() or 0) <= NOW
    assert holdings.due(NOW) == [one]
    one.progress, two.progress = b"2", b"1"
    assert holdings.due(NOW + PROGRESS_EVERY_S - 0.01) == []
    assert holdings.next_extend() == NOW + PROGRESS_EVERY_S
    assert holdings.due(NOW + PROGRESS_EVERY_S) == [one, two]
    assert PROGRESS_EVERY_S < 1


def test_a_report_of_a_run_that_is_over_goes_with_its_outcome() -> None:
    holdings = Holdings()
    one = held(holdings, "a")
    one.progress, one.settling = b"1", True
    assert holdings.due(NOW) == []
    assert holdings.next_extend() == NOW + 6


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_reports_precede_heartbeats_with_about_one_call_a_second(
    proxy: Proxy, namespace: str, folder: Path, m: Tenure, kind: str
) -> None:
    workers = Workers(proxy.url, namespace, folder)
    try:
        # A heartbeat each six seconds.
        workers.start("--kind", kind, "--ttl", "30s", "--concurrency", "2")
        jobs = [m.push("work", kind="report_often") for _ in range(2)]

        def shown() -> list[int]:
            return [(m.jobs.get(job.id).raw["progress"] or {"n": 0})["n"] for job in jobs]

        until(lambda: all(shown()), 20)
        began, calls = time.monotonic(), proxy.count("POST", "/v1/leases/extend")
        for _ in range(2):
            before = shown()
            until(lambda before=before: all(a > b for a, b in zip(shown(), before)), 3)  # type: ignore[misc]
        # A pace takes its time: two reports might come at once.
        until(lambda: time.monotonic() - began > 1.5)
        calls = proxy.count("POST", "/v1/leases/extend") - calls
        assert calls <= (time.monotonic() - began) / PROGRESS_EVERY_S + 2
        workers.go()
        assert all(job.wait(15).state == "succeeded" for job in jobs)
        assert all(n > 0 for n in shown())
    finally:
        workers.kill_all()
