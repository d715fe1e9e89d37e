"""Leases of running jobs: blocked handlers, stopped and killed processes, cancels, drains."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import Workers, until
from tenure import Tenure

KINDS = ["threads", "asyncio", "processes"]


def is_gone(process: int) -> bool:
    """Say whether a process has ended."""
    try:
        # A zombie that nobody has waited for yet does not run any more.
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def ends_before_the_next_grant(m: Tenure, job: str, process: int) -> bool:
    """Say which comes first: the end of a handler's process, or a job that others may have.

    The lease ends between them, a fifth of a ttl after the process. When a machine has stood still
    for longer, both are due at once; the lost job waits two seconds more.
    """
    first = until(
        lambda: "end" if is_gone(process) else m.jobs.get(job).state == "ready" and "next grant"
    )
    return bool(first == "end")


def test_a_handler_that_blocks_for_five_ttls_keeps_its_lease(
    m: Tenure, memory_workers: Workers
) -> None:
    jobs = {}
    # All at once, since each takes five ttls, and a ttl of 2 s is lost where a busy machine lets a
    # server or a worker stand still for less than two. Each worker takes one job, so the next
    # job goes to the next worker.
    for kind, handler in [("threads", "block"), ("asyncio", "block_loop"), ("processes", "block")]:
        memory_workers.start("--kind", kind, "--ttl", "3s", "--concurrency", "1")
        jobs[kind] = m.push("work", {"seconds": 15}, kind=handler)
        until(lambda: len(memory_workers.notes("begin")) == len(jobs))
    for kind, job in jobs.items():
        assert job.wait(40).finished, kind
        shown = m.jobs.get(job.id)
        seen = (shown.state, shown.attempt, shown.lost, shown.errors)
        assert seen == ("succeeded", 1, 0, []), kind
    assert len(memory_workers.notes("begin")) == len(memory_workers.notes("end")) == len(jobs)


@pytest.mark.parametrize(
    ("kind", "handler"),
    [("threads", "run_on"), ("asyncio", "run_on_async"), ("processes", "run_on")],
)
def test_a_stopped_process_does_not_touch_the_work_of_its_successor(
    m: Tenure, memory_workers: Workers, kind: str, handler: str
) -> None:
    first = memory_workers.start("--kind", kind, "--ttl", "2s", "--concurrency", "1")
    job = m.push("work", kind=handler)
    (begun,) = until(lambda: memory_workers.notes("begin"))
    first.send_signal(signal.SIGSTOP)
    try:
        # The lease is over after one ttl, and the job waits a moment since it was lost once.
        until(lambda: m.jobs.get(job.id).lost == 1, 20)
        # Its lease is long: only the first one is to lose the job, however busy the machine is.
        second = memory_workers.start("--kind", kind, "--concurrency", "1")
        until(lambda: len(memory_workers.notes("begin")) == 2, 20)
        # By now the first was stopped for two ttls and more.
    finally:
        first.send_signal(signal.SIGCONT)
    fence = m.jobs.get(job.id).lease
    until(lambda: f"job {job.id} work {handler} attempt 1 lease_lost" in memory_workers.log())
    assert m.jobs.get(job.id).lease == fence
    memory_workers.go()
    assert job.wait(20).get() == "ended"
    shown = m.jobs.get(job.id)
    assert [each["outcome"] for each in shown.errors] == ["lost"]
    # The handler of the first process never came to its end.
    assert [line[3] for line in memory_workers.notes("end")] == [
        memory_workers.notes("begin")[1][3]
    ]
    assert begun[3] != memory_workers.notes("end")[0][3]
    assert second.poll() is None


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_of_a_killed_worker_run_again(t: Tenure, workers: Workers, kind: str) -> None:
    handler = "run_on_async" if kind == "asyncio" else "run_on"
    first = workers.start("--kind", kind, "--ttl", "2s", "--concurrency", "2")
    jobs = [t.push("work", kind=handler) for _ in range(2)]
    until(lambda: len(workers.notes("begin")) == 2)
    first.kill()
    workers.go()
    workers.start("--kind", kind, "--ttl", "2s", "--concurrency", "2")
    for job in jobs:
        assert job.wait(30).get() == "ended"
        assert [each["outcome"] for each in t.jobs.get(job.id).errors] == ["lost"]


def test_a_killed_handler_process_fails_its_run_and_is_replaced(
    t: Tenure, workers: Workers
) -> None:
    workers.start("--kind", "processes", "--concurrency", "1")
    retry = {"backoff": {"kind": "fixed", "base": "50ms"}}
    job = t.push("work", kind="die", retry=retry)
    assert job.wait(30).get() == "survived"
    (error,) = t.jobs.get(job.id).errors
    assert error["error"] == "its process ended by signal 9"


def test_processes_of_a_killed_worker_end_too(m: Tenure, memory_workers: Workers) -> None:
    worker = memory_workers.start("--kind", "processes", "--concurrency", "1")
    m.push("work", kind="run_on")
    (begun,) = until(lambda: memory_workers.notes("begin"))
    child = int(begun[2])
    assert child != worker.pid
    worker.kill()
    worker.wait()

    until(lambda: is_gone(child))


def test_processes_of_a_stopped_worker_end_before_the_next_grant(
    m: Tenure, memory_workers: Workers
) -> None:
    worker = memory_workers.start("--kind", "processes", "--concurrency", "1", "--ttl", "5s")
    job = m.push("work", kind="run_on")
    (begun,) = until(lambda: memory_workers.notes("begin"))
    worker.send_signal(signal.SIGSTOP)
    assert ends_before_the_next_grant(m, job.id, int(begun[2]))


def test_a_process_that_holds_the_gil_ends_with_its_stopped_worker(
    m: Tenure, memory_workers: Workers
) -> None:
    worker = memory_workers.start("--kind", "processes", "--concurrency", "1", "--ttl", "5s")
    job = m.push("work", {"seconds": 20}, kind="hold_gil")
    (begun,) = until(lambda: memory_workers.notes("begin"))
    worker.send_signal(signal.SIGSTOP)
    assert ends_before_the_next_grant(m, job.id, int(begun[2]))


def process_of(worker: int) -> int:
    """Find the process that runs the handlers of a worker with one."""
    for child in Path(f"/proc/{worker}/task/{worker}/children").read_text().split():
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    return 0


def test_a_process_that_hears_of_a_run_too_late_does_not_begin_it(
    m: Tenure, memory_workers: Workers
) -> None:
    worker = memory_workers.start("--kind", "processes", "--concurrency", "1", "--ttl", "1s")
    assert m.push("work", {"a": 1}, kind="add").wait(20).get() == 3
    child = process_of(worker.pid)
    os.kill(child, signal.SIGSTOP)
    try:
        job = m.push("work", kind="run_on")
        (granted,) = until(lambda: list(m.leases()))
        # The worker has told its process of the run long before it extends the lease.
        until(lambda: [each.expires_at for each in m.leases()] > [granted.expires_at])
        worker.send_signal(signal.SIGSTOP)
        until(lambda: m.jobs.get(job.id).lost == 1, 20)
    finally:
        os.kill(child, signal.SIGCONT)
    until(lambda: is_gone(child))
    assert memory_workers.notes("begin") == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_job_is_stopped_in_its_handler(t: Tenure, workers: Workers, kind: str) -> None:
    handler = "run_on_async" if kind == "asyncio" else "run_on"
    workers.start("--kind", kind, "--ttl", "2s")
    job = t.push("work", kind=handler)
    until(lambda: workers.notes("begin"))
    t.jobs.cancel(job.id)
    assert job.wait(15).state == "cancelled"
    assert [line[1] for line in workers.notes("stopped")] == ["cancelled"]
    until(lambda: f"job {job.id} work {handler} attempt 1 cancelled in " in workers.log())
    assert workers.notes("end") == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_lease_that_is_taken_away_stops_the_handler(
    t: Tenure, workers: Workers, kind: str
) -> None:
    handler = "run_on_async" if kind == "asyncio" else "run_on"
    workers.start("--kind", kind, "--ttl", "2s", "--concurrency", "1")
    job = t.push("work", kind=handler)
    until(lambda: workers.notes("begin"))
    t.force_lease(str(t.jobs.get(job.id).lease))
    until(lambda: len(workers.notes("begin")) == 2, 20)
    workers.says(f"job {job.id} work {handler} attempt 1 lease_lost")
    workers.go()
    assert job.wait(15).get() == "ended"
    assert len(workers.notes("end")) == 1


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_run_is_stopped_at_its_deadline(t: Tenure, workers: Workers, kind: str) -> None:
    workers.start("--kind", kind, "--ttl", "10s")
    retry = {"max_attempts": 1}
    job = t.push("work", kind="overtime", timeout="1s", retry=retry)
    result = job.wait(15)
    assert (result.state, result.error) == ("failed", "timeout")
    until(lambda: workers.notes("stopped") or kind == "processes")


@pytest.mark.parametrize("kind", KINDS)
def test_a_drain_lets_what_runs_end_and_takes_no_more(
    t: Tenure, workers: Workers, kind: str
) -> None:
    handler = "run_on_async" if kind == "asyncio" else "run_on"
    worker = workers.start("--kind", kind, "--concurrency", "2")
    job = t.push("work", kind=handler)
    until(lambda: workers.notes("begin"))
    worker.send_signal(signal.SIGTERM)
    until(lambda: "drains: 1 jobs still run" in workers.log())
    late = t.push("work", {"a": 1}, kind="add")
    workers.go()
    assert worker.wait(20) == 0
    assert t.jobs.get(job.id).state == "succeeded"
    assert t.jobs.get(late.id).state == "ready"
    # The call that waited for jobs was ended at the server, so it was granted nothing.
    told = t.events(since="first", job=late.id, wait="50ms")
    assert [event.type for event in told] == ["job.pushed"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_signal_gives_back_what_runs(t: Tenure, workers: Workers, kind: str) -> None:
    handler = "run_on_async" if kind == "asyncio" else "run_on"
    worker = workers.start("--kind", kind)
    job = t.push("work", kind=handler)
    until(lambda: workers.notes("begin"))
    worker.send_signal(signal.SIGTERM)
    until(lambda: "drains" in workers.log())
    worker.send_signal(signal.SIGTERM)
    worker.wait(20)
    shown = t.jobs.get(job.id)
    assert (shown.state, shown.attempt, shown.lost) == ("ready", 0, 0)
    assert workers.notes("end") == []


def test_a_drain_that_takes_too_long_gives_back_what_runs(t: Tenure, workers: Workers) -> None:
    worker = workers.start("--drain-timeout", "200ms")
    job = t.push("work", kind="run_on")
    until(lambda: workers.notes("begin"))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    assert (t.jobs.get(job.id).state, t.jobs.get(job.id).attempt) == ("ready", 0)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_handler_that_cannot_be_stopped_ends_with_its_process(
    m: Tenure, memory_workers: Workers, kind: str
) -> None:
    worker = memory_workers.start("--kind", kind, "--drain-timeout", "100ms")
    job = m.push("work", kind="refuse_to_stop")
    until(lambda: memory_workers.notes("begin"))
    worker.send_signal(signal.SIGINT)
    worker.wait(20)
    assert m.jobs.get(job.id).state in ("ready", "scheduled")


def test_a_program_whose_handler_cannot_be_stopped_does_not_go_on(
    m: Tenure, memory_workers: Workers
) -> None:
    worker = memory_workers.start(
        code="import handlers; handlers.app.run(drain_timeout='100ms'); handlers.note('went on')"
    )
    job = m.push("work", kind="refuse_to_stop")
    until(lambda: memory_workers.notes("begin"))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 1
    assert m.jobs.get(job.id).state == "ready"
    assert memory_workers.notes("went") == []


def test_an_idle_worker_ends_at_once(t: Tenure, workers: Workers) -> None:
    worker = workers.start()
    until(lambda: list(t.workers()))
    began = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    # A call that waits for jobs does so for five seconds: it was ended at the server.
    assert time.monotonic() - began < 3


def test_a_drain_loses_no_job_that_was_granted_meanwhile(
    m: Tenure, memory_workers: Workers
) -> None:
    pushing = threading.Event()

    def push() -> None:
        n = 0
        while not pushing.is_set():
            m.push("work", {"a": n}, kind="add")
            n += 1

    pusher = threading.Thread(target=push)
    pusher.start()
    try:
        for _ in range(3):
            worker = memory_workers.start()
            before = m.stats().jobs["succeeded"]
            until(lambda before=before: m.stats().jobs["succeeded"] > before)  # type: ignore[misc]
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(20) == 0
            assert m.stats().jobs["running"] == 0
    finally:
        pushing.set()
        pusher.join()
    assert all(job.attempt <= 1 and job.lost == 0 for job in m.jobs.list())


def test_a_drain_loses_no_job_to_a_call_that_comes_late(
    proxy: Any, namespace: str, folder: Any, m: Tenure
) -> None:
    workers = Workers(proxy.url, namespace, folder)
    try:
        proxy.spoil("hold", "POST", "/v1/leases")
        worker = workers.start("--concurrency", "1")
        until(lambda: proxy.left() == 0)
        worker.send_signal(signal.SIGTERM)
        # The call that ends the wait comes to the server before the call that is to wait there.
        until(lambda: proxy.answered)
        job = m.push("work", {"a": 1}, kind="add")
        proxy.released.set()
        assert worker.wait(20) == 0
        until(lambda: proxy.answered == len(proxy.seen))
        assert m.jobs.get(job.id).state == "ready"
    finally:
        proxy.released.set()
        workers.kill_all()


@pytest.mark.parametrize("what", ["lose", "refuse"])
def test_settles_that_are_not_answered_are_repeated(
    proxy: Any, namespace: str, folder: Any, m: Tenure, what: str
) -> None:
    workers = Workers(proxy.url, namespace, folder)
    try:
        proxy.spoil(what, "POST", "/v1/leases/settle", times=3)
        workers.start("--concurrency", "2")
        jobs = [m.push("work", {"a": n}, kind="add") for n in range(5)]
        assert [job.wait(20).get() for job in jobs] == [2, 3, 4, 5, 6]
        until(lambda: proxy.left() == 0)
        assert all(job.attempt == 1 for job in m.jobs.list(queue="work"))
        assert "lease_lost" not in workers.log()
    finally:
        workers.kill_all()


def test_grants_whose_answers_are_lost_are_asked_for_again(
    proxy: Any, namespace: str, folder: Any, m: Tenure
) -> None:
    workers = Workers(proxy.url, namespace, folder)
    try:
        jobs = [m.push("work", {"a": n}, kind="add") for n in range(5)]
        proxy.spoil("lose", "POST", "/v1/leases", times=2)
        workers.start("--concurrency", "2")
        assert [job.wait(20).get() for job in jobs] == [2, 3, 4, 5, 6]
        assert all(job.errors == [] for job in m.jobs.list(queue="work"))
    finally:
        workers.kill_all()


def test_lost_extends_cost_nothing_while_some_are_answered(
    proxy: Any, namespace: str, folder: Any, m: Tenure
) -> None:
    workers = Workers(proxy.url, namespace, folder)
    try:
        proxy.spoil("refuse", "POST", "/v1/leases/extend", times=6)
        workers.start("--ttl", "2s")
        job = m.push("work", kind="run_on")
        until(lambda: proxy.left() == 0)
        workers.go()
        assert job.wait(20).get() == "ended"
        assert m.jobs.get(job.id).lost == 0
    finally:
        workers.kill_all()


def test_a_worker_ending_without_its_server_reports_lost_outcomes(
    own_server: Any, namespace: str, folder: Any
) -> None:
    workers = Workers(own_server.url, namespace, folder)
    try:
        with Tenure(own_server.url, namespace=namespace, retry_for=30) as client:
            worker = workers.start("--drain-timeout", "300ms")
            client.push("work", kind="run_on")
            until(lambda: workers.notes("begin"))
            own_server.kill()
            workers.go()
            until(lambda: workers.notes("end"))
            worker.send_signal(signal.SIGTERM)
            worker.wait(30)
            assert "outcomes that the server did not answer" in workers.log()
    finally:
        workers.kill_all()


def test_a_worker_rides_out_a_restart_of_the_server(
    own_server: Any, namespace: str, folder: Any
) -> None:
    workers = Workers(own_server.url, namespace, folder)
    try:
        with Tenure(own_server.url, namespace=namespace, retry_for=30) as client:
            workers.start("--ttl", "6s", "--concurrency", "2")
            job = client.push("work", kind="run_on")
            until(lambda: workers.notes("begin"))
            own_server.kill()
            # Ends while the server is away: its settle waits for the server.
            workers.go()
            until(lambda: workers.notes("end"))
            own_server.start()
            assert job.wait(20).get() == "ended"
            assert client.push("work", {"a": 1}, kind="add").wait(20).get() == 3
            assert client.jobs.get(job.id).attempt == 1
    finally:
        workers.kill_all()
