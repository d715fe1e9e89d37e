"""What was to run a job dies before the handler begins: the run costs no attempt."""

from __future__ import annotations

import os
import signal

import pytest

from conftest import Workers, until
from tenure import Tenure

ONCE = {"max_attempts": 1}
NOT_HANDED = """
import dying
from tenure.worker.spawned import Spawned
Spawned.send_now = dying.once(Spawned.send_now, lambda: [][0])
dying.app.run(kind="processes", concurrency=1)
"""


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
@pytest.mark.parametrize("handler", ["add", "add_later"])
def test_a_run_whose_executor_died_before_it_began_is_released(
    m: Tenure, memory_workers: Workers, kind: str, handler: str
) -> None:
    memory_workers.start("--kind", kind, "--concurrency", "1", app="dying:app")
    job = m.push("work", {"a": 1}, kind=handler, retry=ONCE)
    assert job.wait(20).state == "succeeded"
    assert memory_workers.notes("died")
    assert (m.jobs.get(job.id).attempt, m.jobs.get(job.id).errors) == (1, [])
    assert f"job {job.id} work {handler} attempt 1 released in" in memory_workers.log()


def test_a_run_that_its_killed_process_had_not_read_is_given_back(
    m: Tenure, memory_workers: Workers
) -> None:
    memory_workers.start("--kind", "processes", "--concurrency", "1")
    # Tells which process it is.
    memory_workers.go()
    m.push("work", kind="run_on").wait(20)
    child = int(memory_workers.notes("begin")[0][2])
    os.kill(child, signal.SIGSTOP)
    job = m.push("work", {"a": 1}, kind="add", retry=ONCE)
    until(lambda: m.jobs.get(job.id).state == "running")
    os.kill(child, signal.SIGKILL)
    assert job.wait(20).get() == 3
    assert m.jobs.get(job.id).errors == []


def test_a_run_that_began_in_a_process_that_was_killed_has_failed(
    m: Tenure, memory_workers: Workers
) -> None:
    memory_workers.start("--kind", "processes", "--concurrency", "1")
    job = m.push("work", kind="run_on", retry=ONCE)
    (begun,) = until(lambda: memory_workers.notes("begin"))
    os.kill(int(begun[2]), signal.SIGKILL)
    assert job.wait(20).state == "failed"
    assert m.jobs.get(job.id).error == "its process ended by signal 9"


def test_a_run_not_handed_to_a_process_is_released_with_its_slot(
    m: Tenure, memory_workers: Workers
) -> None:
    memory_workers.start(code=NOT_HANDED)
    # Only then is the job handed over by the thread that asks, which nobody replaces.
    until(lambda: memory_workers.notes("ready"), 20)
    jobs = [m.push("work", {"a": n}, kind="add", retry=ONCE) for n in range(4)]
    assert [job.wait(10).get() for job in jobs] == [2, 3, 4, 5]
    assert memory_workers.notes("died")
    assert all(m.jobs.get(job.id).errors == [] for job in jobs)
