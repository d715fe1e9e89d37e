"""What an app runs when a worker starts and when it ends."""

from __future__ import annotations

import signal

import pytest

from conftest import Workers, until
from tenure import Tenure

KINDS = ["threads", "asyncio", "processes"]


@pytest.mark.parametrize("kind", KINDS)
def test_start_hooks_run_first_and_stop_hooks_last_in_reverse(
    m: Tenure, memory_workers: Workers, kind: str
) -> None:
    worker = memory_workers.start("--kind", kind, "--concurrency", "2", app="hooked:app")
    found = m.push("hooked", kind="look").wait(30).get()
    # Coroutines of a worker by asyncio share the loop of the hooks.
    assert found == ["first", "second", str(kind == "asyncio")]
    until(lambda: len(memory_workers.notes("opened")) == (2 if kind == "processes" else 1))
    processes = {words[2] for words in memory_workers.notes("opened")}
    assert (str(worker.pid) in processes) == (kind != "processes")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    for process in processes:
        closed = [words[1] for words in memory_workers.notes("closed") if words[2] == process]
        assert closed == ["second", "first"]
    if kind == "asyncio":
        assert memory_workers.notes("closed")[1][3] == "True"
    failed = 'the stop hook "close_second" failed: ValueError: half\\nclosed'
    assert memory_workers.log().count(failed) == len(processes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_start_hook_ends_the_worker_before_its_first_job(
    m: Tenure, memory_workers: Workers, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_FAILS", "1")
    job = m.push("hooked", kind="look")
    worker = memory_workers.start("--kind", kind, "--concurrency", "2", app="hooked:app")
    assert worker.wait(30) == 1
    said = 'tenure: the start hook "open_first" failed: ConnectionError: no\\ndatabase'
    assert said in memory_workers.log().splitlines()
    assert "Traceback" not in memory_workers.log()
    assert m.jobs.get(job.id).state == "ready"
    assert [event.type for event in m.events(since="first", job=job.id, wait="50ms")] == [
        "job.pushed"
    ]
    assert memory_workers.notes("closed") == []
