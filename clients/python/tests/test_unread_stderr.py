"""Nobody reads what a worker logs, as behind a terminal that was stopped by Ctrl-S."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import until
from tenure import Tenure
from tenure._stderr import _QUEUE_BYTES_MAX, StderrHandler

#: A pipe takes 64 KiB, and each job is a line of about a hundred bytes.
_JOBS = 1_500


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_worker_whose_log_nobody_reads_works_and_ends(
    m: Tenure, namespace: str, kind: str
) -> None:
    m.push_many({"queue": "work", "kind": "add", "payload": {"a": n}} for n in range(_JOBS))
    worker = subprocess.Popen(
        [sys.executable, "-m", "tenure", "worker", "handlers:app", "--kind", kind, "-c", "2"],
        cwd=Path(__file__).parent,
        env={
            **os.environ,
            "TENURE_URL": m._settings.url,
            "TENURE_NAMESPACE": namespace,
            "JOURNAL": os.devnull,
        },
        stderr=subprocess.PIPE,
    )
    try:
        until(lambda: not any(m.queues.get("work").counts.values()), 20)
        worker.terminate()
        assert worker.wait(20) == 0
        assert worker.stderr is not None
        assert worker.stderr.read().count(b" succeeded ") > 100
    finally:
        worker.kill()
        worker.wait()


def test_lines_that_do_not_fit_are_counted_and_others_keep_order() -> None:
    may: queue.Queue[None] = queue.Queue()
    took: queue.Queue[bytes] = queue.Queue()

    def write(written: bytes) -> None:
        may.get(timeout=20)
        took.put(written)

    handler: Any = StderrHandler(write)
    handler.say("first")
    until(lambda: handler._is_writing)
    half = "x" * (_QUEUE_BYTES_MAX // 2 - 1)
    for line in (half, half, "lost", "lost too"):
        handler.say(line)
    for _ in range(4):
        may.put(None)
    written = [took.get(timeout=20).decode() for _ in range(4)]
    assert [line[:8].rstrip() for line in written[:3]] == ["first", "x" * 8, "x" * 8]
    assert written[3] == "tenure: 2 lines were lost here: nobody read stderr\n"
    handler.flush()
    assert not handler._waiting
