"""Processes that handlers start, in a worker by processes: they end with their handler."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Callable

import pytest

from conftest import Workers, until
from tenure import Tenure
from test_worker_ends import is_gone


@pytest.mark.parametrize("how", ["pool", "executor", "manager"])
def test_a_handler_may_use_multiprocessing(m: Tenure, memory_workers: Workers, how: str) -> None:
    memory_workers.start("--kind", "processes", "--concurrency", "1")
    job = m.push("work", {"how": how}, kind="in_processes", retry={"max_attempts": 1})
    assert job.wait(30).get() == [0, 2, 4, 6]


def cancel(m: Tenure, job: str, _worker: subprocess.Popen[bytes], _process: int) -> None:
    m.jobs.cancel(job)


def kill_worker(_m: Tenure, _job: str, worker: subprocess.Popen[bytes], _process: int) -> None:
    worker.kill()


def stop_worker(_m: Tenure, _job: str, worker: subprocess.Popen[bytes], _process: int) -> None:
    worker.send_signal(signal.SIGSTOP)


def kill_process(_m: Tenure, _job: str, _worker: subprocess.Popen[bytes], process: int) -> None:
    os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("end", [cancel, kill_worker, stop_worker, kill_process])
def test_what_a_handler_started_ends_with_its_process(
    m: Tenure, memory_workers: Workers, end: Callable[..., None]
) -> None:
    worker = memory_workers.start("--kind", "processes", "--concurrency", "1", "--ttl", "2s")
    job = m.push("work", kind="start_another", retry={"max_attempts": 1})
    (grandchild,) = until(lambda: memory_workers.notes("grandchild"), 20)
    process = int(memory_workers.notes("begin")[0][2])
    end(m, job.id, worker, process)
    until(lambda: is_gone(int(grandchild[1])), 20)
    until(lambda: is_gone(process))
    if end is kill_process:
        assert job.wait(20).error == "its process ended by signal 9"
        assert m.push("work", {"a": 1}, kind="add").wait(20).get() == 3
