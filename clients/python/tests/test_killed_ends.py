"""Each line between the end of a handler and its settle fails once: slot and lease come back."""

from __future__ import annotations

import os

import pytest

from conftest import Workers, until
from tenure import Tenure

#: A worker's kind, its handlers, and how many jobs it runs at once.
KINDS = [
    ("threads", "die_at", "meet", 40),
    ("asyncio", "die_at_later", "meet_later", 40),
    ("processes", "die_at", "meet", 2),
]
#: As many lines are tried at once for each slot, and at most 40: jobs that were lost wait for their
#: next run.
LINES_OF_A_SLOT = 5
#: The lines between two at which a listener dies. Each costs a new process, so that each line is
#: tried by `./test --long` alone.
APART = int(os.environ.get("TENURE_LINES_APART", "3"))
#: In the worker's own process, a thread that listens to a child dies at each of its lines.
LISTENERS = f"""
import threading
import handlers
from killing import Listeners
listeners = Listeners(lambda where: handlers.note("killed", where), {APART})
threading.settrace(listeners.trace)
handlers.app.run(kind="processes", concurrency=2, ttl="1s")
"""


@pytest.mark.parametrize(("kind", "handler", "meet", "slots"), KINDS)
def test_a_fault_in_any_line_after_a_handler_frees_slot_and_lease(
    m: Tenure, memory_workers: Workers, kind: str, handler: str, meet: str, slots: int
) -> None:
    memory_workers.start("--kind", kind, "--ttl", "1s", "--concurrency", str(slots))
    line, lines = 0, min(slots * LINES_OF_A_SLOT, 40)
    while len(memory_workers.notes("killed")) == line:
        jobs = [m.push("work", {"line": line + n}, kind=handler) for n in range(lines)]
        for job in jobs:
            # A job that was lost goes behind those that have waited for longer.
            assert job.wait(60).finished, memory_workers.notes("killed")
        line += lines
    assert line > 20
    every_slot_works(m, meet, slots)


def test_a_fault_in_any_line_beside_a_process_frees_slot_and_lease(
    m: Tenure, memory_workers: Workers
) -> None:
    memory_workers.start(code=LISTENERS)
    killed = -1
    while len(memory_workers.notes("killed")) > killed:
        killed = len(memory_workers.notes("killed"))
        # More than a few of them: which lines run is not the same each time.
        once = {"max_attempts": 1}
        for job in [m.push("work", {"a": n}, kind="add", retry=once) for n in range(12)]:
            assert job.wait(20).finished, memory_workers.notes("killed")
    assert killed > 20 / APART
    every_slot_works(m, "meet", 2)


def every_slot_works(m: Tenure, meet: str, slots: int) -> None:
    """See as many jobs run at once as the worker takes, and no lease left."""
    probes = [m.push("work", {"count": slots}, kind=meet) for _ in range(slots)]
    assert all(probe.wait(25).get() for probe in probes)
    until(lambda: m.stats().jobs["running"] == 0)
