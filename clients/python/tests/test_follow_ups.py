"""What a handler says beside its outcome: jobs that are stored with it, tokens, waits, attempts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from conftest import until
from tenure import App, Context, Middleware, RetryIn, Snooze, Tenure, limit
from tenure.testing import run_until_idle
from toy_codec import NEW, Toy


@pytest.fixture
def app(m: Tenure, namespace: str) -> App:
    return App(m._settings.url, namespace=namespace)


@contextlib.contextmanager
def working(app: App, concurrency: int = 4) -> Iterator[None]:
    """Run a worker of an app beside a block."""
    thread = threading.Thread(target=lambda: app.run(concurrency=concurrency))
    thread.start()
    try:
        yield
    finally:
        until(lambda: app._worker)
        app.stop()
        thread.join()


def test_a_push_of_a_run_is_stored_with_its_end(m: Tenure, app: App) -> None:
    seen: list[str] = []

    @app.job("mail")
    def mail(to: str) -> str:
        return f"sent to {to}"

    @app.job("bill")
    def bill(ctx: Context) -> list[str]:
        made = [
            ctx.push(mail.options(id="m-1").spec(to="ann")),
            ctx.push({"queue": "later", "payload": {"n": 1}, "after": [ctx.job.id], "delay": 3600}),
        ]
        seen.extend(job.id for job in m.jobs.list(queue="mail"))
        return made

    job = bill.push()
    app.run(until_empty=True)
    first, second = job.get()
    assert (seen, first) == ([], "m-1")
    assert m.jobs.wait("m-1", 10).get() == "sent to ann"
    later = m.jobs.get(second)
    assert (later.queue, later.payload, later.state) == ("later", {"n": 1}, "scheduled")


@pytest.mark.parametrize("how", ["fails", "snoozes"])
def test_a_run_that_does_not_succeed_pushes_nothing(m: Tenure, app: App, how: str) -> None:
    @app.job("work", retry={"backoff": {"kind": "fixed", "base": "0s"}})
    def work(ctx: Context) -> int:
        ctx.push({"queue": "later", "payload": {"attempt": ctx.attempt}})
        if ctx.attempt + ctx.job.snoozed == 1:
            raise Snooze("100ms") if how == "snoozes" else ValueError("no")
        return ctx.attempt

    job = work.push()
    with working(app):
        attempt = job.get(10)
    assert [each.payload for each in m.jobs.list(queue="later", full=True)] == [
        {"attempt": attempt}
    ]


def test_a_push_after_the_end_of_its_run_is_refused(app: App) -> None:
    kept: list[Context] = []

    @app.job("work")
    def work(ctx: Context) -> None:
        kept.append(ctx)

    work.push()
    app.run(until_empty=True)
    with pytest.raises(RuntimeError, match="after the end of the run"):
        kept[0].push({"queue": "later"})


def test_what_a_run_pushes_is_checked_at_once(app: App) -> None:
    refusals: list[str] = []

    @app.job("work")
    def work(ctx: Context) -> None:
        wrongs: list[Any] = [
            {"queue": "q", "dealy": 5},
            {"queue": "q", "on_duplicate": "raise"},
            {"queue": "q", "payload": object()},
            [],
        ]
        for wrong in wrongs:
            try:
                ctx.push(wrong)
            except (TypeError, ValueError) as refused:
                refusals.append(str(refused))
        for n in range(101):
            try:
                ctx.push({"queue": "q", "id": f"f-{n}"})
            except ValueError as refused:
                refusals.append(f"{n} {refused}")

    job = work.push()
    app.run(until_empty=True)
    assert job.get() is None
    assert 'did you mean "delay"' in refusals[0]
    assert "DuplicateJob" in refusals[1]
    assert "payload: object is not JSON" in refusals[2]
    assert "takes a job" in refusals[3]
    assert refusals[4].startswith("100 a run pushes at most 100 jobs")
    assert len(list(app.client.jobs.list(queue="q"))) == 100


def test_the_pushes_of_a_run_fit_into_one_call(app: App) -> None:
    @app.job("work", retry=1)
    def work(ctx: Context) -> None:
        for _ in range(100):
            ctx.push({"queue": "q", "payload": "x" * 200_000})

    job = work.push()
    app.run(until_empty=True)
    assert "a run pushes at most 4194304 bytes" in str(job.wait(10).error)


def test_a_push_of_a_run_goes_through_the_middleware_and_the_codec(
    m: Tenure, namespace: str
) -> None:
    app = App(m._settings.url, namespace=namespace, codec=Toy(NEW))

    class Labels(Middleware):
        @contextlib.contextmanager
        def push(self, job: dict[str, Any]) -> Iterator[None]:
            job["labels"] = {"by": job["id"]}
            yield

    app.middleware(Labels())
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @app.job("mail")
    def mail(to: str) -> str:
        return to

    @app.job("work")
    def work(ctx: Context) -> str:
        return ctx.push(mail.spec(to="secret"))

    job = work.options(traceparent=trace).push()
    app.run(until_empty=True)
    made = m.jobs.get(job.get())
    assert "secret" not in str(made.raw)
    assert (made.labels, made.traceparent) == ({"by": made.id}, trace)
    assert app.client.jobs.wait(made.id, 10).get() == "secret"


def test_a_test_runs_what_a_run_pushes(m: Tenure, app: App) -> None:
    @app.job("second")
    def second() -> None: ...

    @app.job("first")
    def first(ctx: Context) -> None:
        ctx.push(second.spec())

    first.push()
    assert [each.job.queue for each in run_until_idle(app)] == ["first", "second"]


def test_a_push_whose_key_is_held_fails_its_run_and_holds_up_no_other(m: Tenure, app: App) -> None:
    unique = {"key": "k", "on_conflict": "reject"}
    m.push("later", unique=unique)
    go = threading.Event()

    @app.job("work")
    def work(n: int, ctx: Context) -> int:
        go.wait(30)
        if n == 1:
            ctx.push({"queue": "later", "unique": unique})
        return n

    jobs = [work.push(n) for n in range(3)]
    with working(app):
        until(lambda: m.stats().jobs["running"] == 3)
        go.set()
        assert [jobs[0].get(10), jobs[2].get(10)] == [0, 2]
        ended = jobs[1].wait(10)
    assert (ended.state, "its outcome was refused" in str(ended.error)) == ("failed", True)


def test_a_push_to_a_full_queue_is_settled_later_and_holds_up_no_other(m: Tenure, app: App) -> None:
    m.queues.set("small", max_waiting=1)
    first = m.push("small")
    go = threading.Event()

    @app.job("work")
    def work(n: int, ctx: Context) -> int:
        go.wait(30)
        if n == 1:
            ctx.push({"queue": "small", "payload": n})
        return n

    jobs = [work.push(n) for n in range(3)]
    with working(app):
        until(lambda: m.stats().jobs["running"] == 3)
        go.set()
        assert [jobs[0].get(10), jobs[2].get(10)] == [0, 2]
        # The worker goes on meanwhile, and the lease of the run stays.
        assert work.push(3).get(10) == 3
        assert m.jobs.get(jobs[1].id).state == "running"
        m.jobs.cancel(first.id)
        assert jobs[1].get(10) == 1
    assert [job.payload for job in m.jobs.list(queue="small", state="ready", full=True)] == [1]


def test_a_worker_that_is_to_end_waits_for_room_in_a_full_queue(m: Tenure, app: App) -> None:
    m.queues.set("small", max_waiting=1)
    m.push("small")

    @app.job("work")
    def work(ctx: Context) -> str:
        threading.Timer(1.5, lambda: m.queues.set("small", max_waiting=None)).start()
        return ctx.push({"queue": "small"})

    job = work.push()
    app.run(until_empty=True)
    assert m.jobs.get(job.get(1)).state == "ready"


@pytest.mark.parametrize(("spent", "state"), [(None, "blocked"), (1, "succeeded")])
def test_a_run_says_how_many_tokens_it_spent(m: Tenure, app: App, spent: Any, state: str) -> None:
    m.limits.set("tokens", rate={"count": 1, "per": "1h", "burst": 10})

    @app.job("ask", needs=[limit("tokens", cost=5)])
    def ask(ctx: Context) -> None:
        if spent is not None:
            ctx.spent("tokens", 9)
            ctx.spent("tokens", spent)

    @app.job("more", needs=[limit("tokens", cost=9)])
    def more() -> None: ...

    ask.push()
    app.run(until_empty=True)
    job = more.push()
    app.run(until_empty=True)
    until(lambda: m.jobs.get(job.id).state == state)


def test_tokens_that_are_spent_are_a_whole_number(app: App) -> None:
    @app.job("ask", retry=1)
    def ask(n: float, ctx: Context) -> None:
        ctx.spent("tokens", n)  # type: ignore[arg-type]

    jobs = [ask.push(wrong) for wrong in (-1.0, 1.5)]
    app.run(until_empty=True)
    assert ["a whole number from 0 on" in str(job.wait(10).error) for job in jobs] == [True, True]


def test_a_pause_and_the_tokens_of_a_limit_are_one_verdict(m: Tenure, app: App) -> None:
    m.limits.set("tokens", rate={"count": 1, "per": "1h", "burst": 10})

    @app.job("ask", needs=[limit("tokens", cost=5)])
    def ask(ctx: Context) -> None:
        ctx.pause("tokens", "1h")
        ctx.spent("tokens", 1)

    job = ask.push()
    app.run(until_empty=True)
    assert job.wait(10).state == "succeeded"
    assert m.limits.get("tokens").paused_until is not None


def test_a_run_says_when_its_next_attempt_is(m: Tenure, app: App) -> None:
    @app.job("work", retry={"max_attempts": 2, "backoff": {"kind": "fixed", "base": "1h"}})
    def work(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise RetryIn("50ms", "http 503")
        return ctx.attempt

    job = work.push()
    with working(app):
        assert job.get(10) == 2
    assert [each["error"] for each in m.jobs.get(job.id).errors] == ["http 503"]


def test_a_snooze_may_let_the_attempts_start_again(m: Tenure, app: App) -> None:
    attempts: list[int] = []

    @app.job("work", retry={"max_attempts": 3, "backoff": {"kind": "fixed", "base": "0s"}})
    def work(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        if len(attempts) == 1:
            raise ValueError("no")
        if len(attempts) == 2:
            raise Snooze("100ms")
        if len(attempts) == 3:
            # It is over when it is settled, so another wait is settled in its place.
            raise Snooze(until="2026-01-01T00:00:00Z", reset=True)

    job = work.push()
    with working(app):
        job.get(10)
    assert attempts == [1, 2, 2, 1]
