"""Processes of a worker that end before they are ready for a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Workers, until
from tenure import Tenure

OPTIONS = ("--kind", "processes", "--concurrency", "4", "--ttl", "3s")
NO_GUARD = """
import tenure

app = tenure.App()

@app.job("work")
def add(a: int) -> int:
    return a + 1

add.push(1)
app.run(kind="processes", concurrency=1)
"""


def broken(workers: Workers) -> Path:
    """The file that makes the processes of `never_ready` end."""
    return Path(f"{workers.journal}.broken")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("killed", "it ended by signal 9"),
        ("raises", "ImportError: no driver\\nfor the database"),
    ],
)
def test_a_worker_whose_processes_never_start_ends_with_the_reason(
    m: Tenure, memory_workers: Workers, how: str, reason: str
) -> None:
    broken(memory_workers).write_text(how)
    jobs = [m.push("work", kind="process") for _ in range(4)]
    worker = memory_workers.start(*OPTIONS, app="never_ready:app")
    assert worker.wait(40) == 1
    failed = [line for line in memory_workers.log().splitlines() if "was not ready" in line]
    assert failed and all(
        f"a process of the worker was not ready: {reason}" in line for line in failed
    )
    said = f"tenure: no process of the worker was ready, 5 times in a row; the last one: {reason}"
    assert memory_workers.log().splitlines()[-1] == said
    # All at first, and then one at a time.
    assert len(memory_workers.notes("started")) == 4 + 4
    for job in jobs:
        assert [event.type for event in m.events(since="first", job=job.id, wait="50ms")] == [
            "job.pushed"
        ]


def test_a_process_that_is_ready_at_last_takes_the_jobs(m: Tenure, memory_workers: Workers) -> None:
    broken(memory_workers).write_text("killed")
    memory_workers.start(*OPTIONS, app="never_ready:app")
    memory_workers.says("a process of the worker was not ready: it ended by signal 9")
    broken(memory_workers).unlink()
    assert m.push("work", kind="process").wait(20).state == "succeeded"


def test_a_worker_whose_processes_fail_later_releases_its_jobs(
    m: Tenure, memory_workers: Workers
) -> None:
    worker = memory_workers.start(
        "--kind", "processes", "--concurrency", "1", app="never_ready:app"
    )
    process = m.push("work", kind="process").wait(20).get()
    broken(memory_workers).write_text("killed")
    os.kill(process, signal.SIGKILL)
    memory_workers.says("a process of the worker was not ready")
    job = m.push("work", kind="process")
    assert worker.wait(40) == 1
    found = m.jobs.get(job.id)
    assert found.state in ("ready", "scheduled")
    assert (found.attempt, found.lost) == (0, 0)


def test_a_program_without_the_guard_of_its_main_module_is_told_so(
    m: Tenure, namespace: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(NO_GUARD)
    ended = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "TENURE_URL": m._settings.url, "TENURE_NAMESPACE": namespace},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert ended.returncode != 0
    assert 'put what it does under `if __name__ == "__main__":`' in ended.stderr
    # Its own push, and that of the one process that it started.
    assert len(list(m.jobs.list(queue="work"))) == 2
    until(lambda: all(job.state != "running" for job in m.jobs.list(queue="work")))
