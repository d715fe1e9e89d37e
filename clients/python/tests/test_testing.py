"""`tenure.testing` and the pytest plugin, against real servers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tenure as package
from tenure import App, Context, Final, Snooze, Tenure, limit
from tenure.payloads import DoesNotFit
from tenure.testing import Clock, Server, assert_pushed, pushed, run_until_idle

TWICE = {"max_attempts": 2, "backoff": {"kind": "fixed", "base": "10m"}}


@pytest.fixture
def app(tenure: Tenure) -> App:
    """An app that was made for another server: no test may reach it."""
    return App("http://127.0.0.1:1", token="of-another-server", namespace="other")


def test_handlers_run_in_this_thread_in_order(app: App, tenure: Tenure) -> None:
    seen: list[Any] = []

    @app.job("mail")
    def send(ctx: Context, to: str) -> str:
        seen.append((to, threading.get_ident()))
        ctx.progress({"at": to})
        if to == "ann":
            send.push(to="cas")
        return to

    @app.job("mail")
    async def later(to: str) -> str:
        await asyncio.sleep(0)
        return to

    send.push(to="ann")
    later.push(to="bob")
    runs = run_until_idle(app)
    assert [(run.job.kind, run.outcome, run.result) for run in runs] == [
        ("send", "succeeded", "ann"),
        ("later", "succeeded", "bob"),
        ("send", "succeeded", "cas"),
    ]
    assert seen == [("ann", threading.get_ident()), ("cas", threading.get_ident())]
    assert tenure.jobs.get(runs[0].job.id).last_progress == {"at": "ann"}
    assert run_until_idle(app) == []


def test_what_a_handler_raises_is_settled_and_raised(app: App, tenure: Tenure) -> None:
    @app.job("mail", retry=TWICE)
    def send() -> None:
        raise KeyError("ann")

    job = send.push()
    with pytest.raises(KeyError, match="ann"):
        run_until_idle(app)
    shown = tenure.jobs.get(job.id)
    assert (shown.state, shown.attempt) == ("scheduled", 1)
    assert shown.error is not None and shown.error.startswith("KeyError: 'ann'\n")


def test_it_can_be_asked_not_to_raise(app: App, tenure: Tenure) -> None:
    @app.job("mail", retry=TWICE)
    def send() -> None:
        raise KeyError("ann")

    job = send.push()
    (run,) = run_until_idle(app, raises=False)
    assert run.outcome == "failed" and run.error is not None
    assert run.error.startswith("KeyError: 'ann'\n")
    assert tenure.jobs.get(job.id).state == "scheduled"


def test_outcomes_are_not_raised(app: App, tenure: Tenure) -> None:
    @app.job("mail")
    def send(how: str) -> None:
        raise Final("no such page") if how == "final" else Snooze("1h")

    ends, waits = send.push("final"), send.push("snooze")
    assert [run.outcome for run in run_until_idle(app)] == ["failed", "snoozed"]
    assert (tenure.jobs.get(ends.id).state, tenure.jobs.get(waits.id).state) == (
        "failed",
        "scheduled",
    )


def test_a_job_that_nobody_takes_and_one_that_does_not_fit_are_raised(
    app: App, tenure: Tenure
) -> None:
    @app.job("mail")
    def send(to: str) -> None:
        pass

    tenure.push("mail", {"of": "ann"}, kind="send")
    with pytest.raises(DoesNotFit):
        run_until_idle(app)
    tenure.push("mail", kind="sned")
    with pytest.raises(LookupError, match="sned"):
        run_until_idle(app)


def test_a_coroutine_may_run_coroutines(app: App) -> None:
    @app.job("mail")
    async def send(to: str) -> str:
        if to == "bob":
            raise KeyError(to)
        return to

    async def main() -> None:
        send.push("ann")
        assert [run.result for run in run_until_idle(app)] == ["ann"]
        send.push("bob")
        with pytest.raises(KeyError):
            run_until_idle(app)

    asyncio.run(main())


def test_a_handler_that_pushes_itself_for_ever_is_found_out(app: App) -> None:
    @app.job("mail")
    def send() -> None:
        send.push()

    send.push()
    with pytest.raises(RuntimeError, match="push itself"):
        run_until_idle(app, limit=5)


def test_time_stands_still_unless_the_test_moves_it(
    app: App, tenure: Tenure, tenure_clock: Clock
) -> None:
    @app.job("mail")
    def send() -> str:
        return "sent"

    before = tenure_clock.now()
    job = send.options(delay="1h").push()
    assert run_until_idle(app) == []
    assert tenure_clock.advance("59m") == before + timedelta(minutes=59)
    assert run_until_idle(app) == []
    tenure_clock.advance(60)
    assert [run.job.id for run in run_until_idle(app)] == [job.id]


def test_advance_goes_from_due_moment_to_due_moment(
    app: App, tenure: Tenure, tenure_clock: Clock
) -> None:
    attempts: list[Any] = []

    daily = {"max_attempts": 3, "backoff": {"kind": "fixed", "base": "1d", "jitter": False}}

    @app.job("mail", retry=daily)
    def send() -> None:
        attempts.append(tenure_clock.now())
        raise KeyError("ann")

    tenure.schedules.set("daily", every="1h", job={"queue": "mail", "kind": "report"})
    reports: list[Any] = []

    @app.job("mail", kind="report")
    def report() -> None:
        reports.append(tenure_clock.now())

    job = send.push()
    run_until_idle(app, advance=True, raises=False)
    assert tenure.jobs.get(job.id).state == "failed"
    assert len(attempts) == 3
    assert attempts[2] - attempts[0] >= timedelta(days=2)
    # A schedule makes one job in each jump, as it skips while that waits, and keeps nothing going.
    assert len(reports) == 2


@pytest.mark.parametrize(("overlap", "made"), [("skip", 1), ("allow", 5)])
def test_a_schedule_fires_in_a_clock_jump_as_its_overlap_allows(
    tenure: Tenure, tenure_clock: Clock, overlap: str, made: int
) -> None:
    tenure.schedules.set("s", every="1h", overlap=overlap, job={"queue": "q"})
    tenure_clock.advance("5h")
    assert len(list(tenure.jobs.list(queue="q"))) == made


def test_advance_waits_for_what_time_frees(app: App, tenure: Tenure, tenure_clock: Clock) -> None:
    tenure.limits.set("api", rate="1/1h")

    @app.job("calls", needs=[limit("api")])
    def ask() -> None:
        pass

    for _ in range(3):
        ask.push()
    assert len(run_until_idle(app)) == 1
    assert len(run_until_idle(app, advance=True)) == 2
    tenure.queues.pause("calls")
    ask.push()
    assert run_until_idle(app, advance=True) == []


def test_advance_moves_no_clock_for_others(app: App, tenure: Tenure, tenure_clock: Clock) -> None:
    app.job("mail")(lambda: None)
    tenure.queues.pause("mail", for_="1h")
    tenure.push("other", delay="2h")
    before = tenure_clock.now()
    assert run_until_idle(app, advance=True) == []
    assert tenure_clock.now() == before


def test_a_clock_that_cannot_be_moved_says_how_to_get_one(tenure: Tenure) -> None:
    with pytest.raises(RuntimeError, match="tenure_clock"):
        Clock(tenure).advance("1m")


def test_what_was_pushed(tenure: Tenure) -> None:
    one = tenure.push("mail", {"to": "ann", "copies": 1}, kind="send").id
    two = tenure.push("mail", {"to": "bob"}).id

    def ids(*args: Any, **filter: Any) -> list[str]:
        return [job.id for job in pushed(tenure, *args, **filter)]

    assert ids() == [one, two]
    assert ids(kind="send") == [one]
    assert ids("mail", payload={"to": "cas"}) == []
    assert [job.id for job in assert_pushed(tenure, "mail", payload={"to": "ann"})] == [one]
    assert assert_pushed(tenure, "other", count=0) == []
    with pytest.raises(AssertionError, match="got 2, not 1, jobs; it got: 'send'"):
        assert_pushed(tenure, "mail", count=1)
    with pytest.raises(AssertionError, match="got no job; it got: nothing"):
        assert_pushed(tenure, "other")


def test_each_test_has_its_namespace_and_the_environment_comes_back(
    tenure_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenure.testing import namespace

    monkeypatch.setenv("TENURE_NAMESPACE", "mine")
    monkeypatch.setenv("TENURE_TOKEN", "a-secret")
    app = App()
    with namespace(tenure_server.url) as one:
        app.client.push("mail")
        assert Tenure().stats().jobs["ready"] == 1
        with namespace(tenure_server.url) as two:
            assert app.client.stats().jobs["ready"] == two.stats().jobs["ready"] == 0
        assert app.client.stats().jobs["ready"] == one.stats().jobs["ready"] == 1
    assert (os.environ["TENURE_NAMESPACE"], os.environ["TENURE_TOKEN"]) == ("mine", "a-secret")
    assert app.settings.namespace == "mine"


def test_a_server_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "tenure"
    broken.write_text("#!/bin/sh\necho no such option >&2\nexit 2\n")
    broken.chmod(0o755)
    monkeypatch.setenv("TENURE_BIN", str(broken))
    with pytest.raises(RuntimeError, match="no such option"):
        Server().start()


def test_the_example_of_the_guide_passes(tmp_path: Path) -> None:
    from test_readme import GUIDE, blocks

    (code,) = [block for block in blocks(GUIDE) if "def test_" in block]
    (tmp_path / "test_shop.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout
    assert f"{code.count('def test_')} passed" in done.stdout


def test_the_plugin_costs_a_run_that_does_not_use_it_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\ndef test_it():\n    assert 'tenure.testing' not in sys.modules\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert package.__version__
