"""Handlers that block more than their own thread, and processes that are stopped for a while."""

from __future__ import annotations

import os
import signal
import time

import pytest

from conftest import Workers, until
from tenure import Tenure
from tenure.worker.watchdog import Watchdog
from test_worker_ends import is_gone


def test_all_jobs_of_a_blocked_event_loop_keep_their_leases(
    m: Tenure, memory_workers: Workers
) -> None:
    memory_workers.start("--kind", "asyncio", "--ttl", "2s", "--concurrency", "2")
    waits = m.push("work", kind="run_on_async")
    until(lambda: memory_workers.notes("begin"))
    # It blocks the loop on which the other one waits, for more than twice the ttl.
    blocks = m.push("work", {"seconds": 5}, kind="block_loop")
    assert blocks.wait(20).finished
    memory_workers.go()
    assert waits.wait(20).get() == "ended"
    for job in (waits, blocks):
        shown = m.jobs.get(job.id)
        assert (shown.state, shown.attempt, shown.lost, shown.errors) == ("succeeded", 1, 0, [])


def test_a_process_whose_interpreter_is_blocked_keeps_its_lease(
    m: Tenure, memory_workers: Workers
) -> None:
    memory_workers.start("--kind", "processes", "--ttl", "2s", "--concurrency", "1")
    job = m.push("work", {"seconds": 5}, kind="hold_gil")
    assert job.wait(20).finished
    shown = m.jobs.get(job.id)
    assert (shown.state, shown.attempt, shown.lost, shown.errors) == ("succeeded", 1, 0, [])
    assert len(memory_workers.notes("begin")) == len(memory_workers.notes("end")) == 1


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_blocked_interpreter_loses_its_lease_and_settles_nothing(
    m: Tenure, memory_workers: Workers, kind: str
) -> None:
    memory_workers.start("--kind", kind, "--ttl", "1s", "--concurrency", "1")
    job = m.push("work", {"seconds": 4}, kind="hold_gil")
    (first,) = until(lambda: memory_workers.notes("begin"))
    memory_workers.start("--kind", kind, "--concurrency", "1")
    # No heartbeat could be sent, so the server gives the job to the second worker.
    fence = job.wait(20).get()
    assert fence != int(first[3])
    until(lambda: "lease_lost" in memory_workers.log())
    shown = m.jobs.get(job.id)
    assert shown.result == fence
    assert [each["outcome"] for each in shown.errors] == ["lost"]


def test_a_handlers_process_that_was_stopped_goes_on_under_its_lease(
    m: Tenure, memory_workers: Workers
) -> None:
    memory_workers.start("--kind", "processes", "--ttl", "1s", "--concurrency", "1")
    job = m.push("work", kind="run_on")
    (begun,) = until(lambda: memory_workers.notes("begin"))
    stopped_at = time.monotonic()
    os.kill(int(begun[2]), signal.SIGSTOP)
    try:
        until(lambda: time.monotonic() > stopped_at + 2)
    finally:
        os.kill(int(begun[2]), signal.SIGCONT)
    # Its worker extended the lease meanwhile, and what it told waits in the pipe.
    memory_workers.go()
    assert job.wait(20).get() == "ended"
    shown = m.jobs.get(job.id)
    assert (shown.attempt, shown.lost, shown.errors) == (1, 0, [])
    assert len(memory_workers.notes("begin")) == 1


def test_a_stopped_worker_and_its_process_do_nothing_after_their_loss(
    m: Tenure, memory_workers: Workers
) -> None:
    first = memory_workers.start("--kind", "processes", "--ttl", "1s", "--concurrency", "1")
    job = m.push("work", kind="run_on")
    (begun,) = until(lambda: memory_workers.notes("begin"))
    child, stopped_at = int(begun[2]), time.monotonic()
    first.send_signal(signal.SIGSTOP)
    os.kill(child, signal.SIGSTOP)
    try:
        # Its leases are long: only the first one is to lose the job, however busy the machine is.
        memory_workers.start("--kind", "processes", "--concurrency", "1")
        until(lambda: len(memory_workers.notes("begin")) == 2, 20)
        until(lambda: time.monotonic() > stopped_at + 2)
    finally:
        os.kill(child, signal.SIGCONT)
    # The process ends by itself, while its worker still sleeps and can tell it nothing.
    until(lambda: is_gone(child))
    first.send_signal(signal.SIGCONT)
    until(lambda: f"job {job.id} work run_on attempt 1 lease_lost" in memory_workers.log())
    memory_workers.go()
    assert job.wait(20).get() == "ended"
    assert [each["outcome"] for each in m.jobs.get(job.id).errors] == ["lost"]
    (end,) = memory_workers.notes("end")
    assert end[3] != begun[3]


def test_a_heartbeat_that_is_told_late_takes_no_time_away() -> None:
    watchdog = Watchdog()
    watchdog.allow(1, 5.0)
    # Answered before the other one, and told after it.
    watchdog.allow(1, 3.0)
    assert watchdog._until == {1: 5.0}
    # The next run of the process has a lease of its own.
    watchdog.forget(1)
    watchdog.allow(1, 4.0)
    assert watchdog._until == {1: 4.0}
