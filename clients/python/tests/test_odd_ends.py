"""Runs whose outcome is hard to write: each ends, and none takes a slot with it."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

import tenure
from conftest import Workers, until
from tenure import Tenure
from tenure._text import logger
from test_worker import KINDS, Running
from test_worker import running as running  # The fixture: a worker of each kind.

#: How the handler ends, and what stands in the job's error.
ENDS = [
    ("half_pair", "ValueError: half \\ud83d pair"),
    ("half_pair_final", "half \\ud83d pair"),
    ("mute", "Mute (its text cannot be read: RuntimeError)"),
    ("mute_final", "its text cannot be read"),
    ("mute_argument", "KeyError (its text cannot be read: RuntimeError)"),
    ("odd_outcome", "OddOutcome"),
    ("no_outcome", "cannot be written"),
    ("pause_half", "half a surrogate pair"),
    ("recursion", "RecursionError: maximum recursion depth exceeded"),
    ("half_pair_result", "its result cannot be stored"),
    ("dump", "its result cannot be stored: SystemExit: no dump"),
    ("cycle", "its result cannot be stored"),
    ("deep_5000", "its result cannot be stored"),
    ("deep_900", "its result cannot be stored"),
    ("deep_62", "its result cannot be stored: it is nested 62 levels deep; at most 61 go"),
    ("progress_half", "half a surrogate pair"),
    ("progress_deep_5000", "nested"),
    ("progress_deep_62", "progress is nested 62 levels deep; at most 61 go"),
    ("next_in", "Error"),
    ("bad_limit", "half a surrogate pair"),
    ("stop", "Stop: the handler raised it, and nobody had stopped the run"),
    ("stop_draining", "StopDraining: the handler raised it, and nobody had stopped the run"),
]


@pytest.mark.parametrize("handler", ["oddly", "oddly_later"])
def test_every_end_is_an_outcome_and_the_slot_comes_back(running: Running, handler: str) -> None:
    # Twice each, as many as the worker has slots.
    pushed = [
        (
            how,
            says,
            running.client.push("work", {"how": how}, kind=handler, retry={"max_attempts": 1}),
        )
        for how, says in ENDS
        for _ in range(2)
    ]
    for how, says, job in pushed:
        result = job.wait(30)
        assert (how, result.state) == (how, "failed")
        assert says in str(result.error), how
    assert running.run("add", {"a": 1, "b": 5}).get() == 6
    assert running.client.stats().jobs["running"] == 0


@pytest.mark.parametrize("how", ["deep_61", "progress_deep_61"])
def test_what_is_just_not_too_deep_is_stored(running: Running, how: str) -> None:
    assert running.run("oddly", {"how": how}).state == "succeeded"


@pytest.mark.parametrize("how", ["raised", "beside"])
def test_a_verdict_whose_reason_is_no_text_still_counts(running: Running, how: str) -> None:
    running.client.pools.sync("accounts", [{"id": how, "data": {"password": "x"}}], force=True)
    options = {"needs": [{"pool": "accounts"}], "retry": {"max_attempts": 1}}
    running.run("ban_oddly", {"how": how}, **options)
    shown = running.client.pools.resource("accounts", how)
    assert (shown.state, shown.reason) == ("banned", "half \\ud83d pair")


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_that_changes_while_it_is_sent_costs_no_lease(
    m: Tenure, memory_workers: Workers, kind: str
) -> None:
    # The handlers take the processors of a small machine: a lease of a second may end beside them.
    memory_workers.start("--kind", kind, "--ttl", "5s", "--concurrency", "2")
    jobs = [m.push("work", kind="report_one_value_again_and_again") for _ in range(2)]

    def sent() -> Any:
        return all(m.jobs.get(job.id).raw["progress"] for job in jobs)

    until(sent)
    first = [m.jobs.get(job.id).raw["progress"] for job in jobs]

    def sent_again() -> bool:
        shown = [m.jobs.get(job.id) for job in jobs]
        assert [(each.state, each.lost) for each in shown] == [("running", 0)] * 2
        return all(each.raw["progress"] != before for each, before in zip(shown, first))

    until(sent_again)
    memory_workers.go()
    for job in jobs:
        job.wait(15)
        assert (m.jobs.get(job.id).lost, m.jobs.get(job.id).attempt) == (0, 1)
    assert "heartbeat failed" not in memory_workers.log()


def test_a_log_record_of_hostile_text_is_one_printable_line(
    running: Running,
) -> None:
    job = running.client.push("work", {"how": "forged"}, kind="oddly", retry={"max_attempts": 1})
    assert "forged" in str(job.wait(15).error)
    (line,) = until(lambda: [x for x in running.workers.log().split("\n") if job.id in x])
    said = r": ValueError: a\x1b[2J\r\n2026 INFO forged\x00\x9b\u2028\u202e\n  "
    assert said in line and line.isprintable(), line


def test_no_module_has_a_logger_whose_records_may_be_more_than_a_line() -> None:
    package = Path(tenure.__file__).parent
    raw = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if re.search(r"getLogger\(\"tenure|getLogger\(__name__", file.read_text())
    }
    assert raw == set()


def test_a_message_of_the_command_is_one_line(memory_workers: Workers) -> None:
    assert memory_workers.start(app="no\x1b[2J\nERROR:app").wait(20) == 2
    assert memory_workers.log() == 'tenure: there is no module "no\\x1b[2J\\nERROR" here\n'


def test_a_traceback_is_logged_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    log = logger("tenure.test")
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        log.exception("it failed for %s", "a\tb")
    (record,) = caplog.records
    shown = logging.Formatter("%(message)s").format(record)
    assert shown.startswith(r"it failed for a\tb: ValueError: first\nsecond (at test_odd_ends.py:")
    assert "\n" not in shown
