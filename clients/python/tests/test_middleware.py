"""Middleware around pushes and runs, the current context, and which exceptions are retried."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, Optional

import pytest

from conftest import Server, Workers
from tenure import App, Context, Final, Middleware, Snooze, Tenure, current, errors
from tenure.testing import run_until_idle


class Noting(Middleware):
    """Notes what it sees, in the order in which it sees it."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self._name = name
        self._notes = notes

    @contextlib.contextmanager
    def push(self, job: dict[str, Any]) -> Iterator[None]:
        self._notes.append(f"{self._name} pushes {job['id']}")
        job["labels"] = {**job.get("labels", {}), self._name: "seen"}
        yield
        self._notes.append(f"{self._name} pushed")

    @contextlib.contextmanager
    def run(self, context: Context) -> Iterator[None]:
        assert current() is context
        self._notes.append(f"{self._name} before {context.job.kind}")
        try:
            yield
        except Exception as error:
            self._notes.append(f"{self._name} saw {type(error).__name__}")
            raise
        self._notes.append(f"{self._name} after")


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def app(memory_server: Server, namespace: str, notes: list[str]) -> App:
    app = App(memory_server.url, namespace=namespace)
    app.middleware(Noting("outer", notes))
    app.middleware(Noting("inner", notes))
    return app


@pytest.mark.parametrize("how", ["push", "apush"])
def test_each_push_goes_through_the_layers_in_order(
    app: App, m: Tenure, notes: list[str], how: str
) -> None:
    @app.job("mail")
    def send(to: str) -> None: ...

    async def apush() -> None:
        await send.options(id="m-1").apush("ann")
        await app.async_client.close()

    if how == "push":
        send.options(id="m-1").push("ann")
    else:
        asyncio.run(apush())
    assert notes == ["outer pushes m-1", "inner pushes m-1", "inner pushed", "outer pushed"]
    assert m.jobs.get("m-1").labels == {"outer": "seen", "inner": "seen"}


class Refusing(Middleware):
    @contextlib.contextmanager
    def push(self, job: dict[str, Any]) -> Iterator[None]:
        raise PermissionError("not today")
        yield


def test_a_layer_can_prevent_a_push(app: App, m: Tenure) -> None:
    app.middleware(Refusing())

    @app.job("mail")
    def send() -> None: ...

    with pytest.raises(PermissionError):
        send.push()
    assert list(m.jobs.list()) == []


@pytest.mark.parametrize("how", ["push", "push_all", "push_many"])
@pytest.mark.parametrize("is_async", [False, True])
def test_each_job_pushed_by_the_client_passes_the_layers_once(
    app: App, m: Tenure, notes: list[str], how: str, is_async: bool
) -> None:
    @app.job("mail")
    def send(to: str) -> None: ...

    specs = [send.options(id=f"m-{n}").spec(f"ann{n}") for n in (1, 2)]

    async def later() -> None:
        if how == "push":
            for spec in specs:
                await app.async_client.push(**spec)
        else:
            await getattr(app.async_client, how)(specs)
        await app.async_client.close()

    if is_async:
        asyncio.run(later())
    elif how == "push":
        for spec in specs:
            app.client.push(**spec)
    else:
        getattr(app.client, how)(iter(specs))
    entered = [note for note in notes if "pushes" in note]
    assert entered == [
        "outer pushes m-1", "inner pushes m-1", "outer pushes m-2", "inner pushes m-2",
    ]  # fmt: skip
    assert sorted(notes[-2:]) == ["inner pushed", "outer pushed"] and len(notes) == 8
    for n in (1, 2):
        job = m.jobs.get(f"m-{n}")
        assert job.labels == {"outer": "seen", "inner": "seen"}
        assert (job.payload, job.kind) == ({"to": f"ann{n}"}, "send")


#: As the current span of a tracer.
SPAN: ContextVar[str] = ContextVar("span", default="none")


class Spanning(Middleware):
    """Opens a span around each push, and notes what it sees."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    @contextlib.contextmanager
    def push(self, job: dict[str, Any]) -> Iterator[None]:
        self._notes.append(f"{job['id']} in {SPAN.get()}")
        token = SPAN.set(job["id"])
        try:
            yield
        except Exception as error:
            self._notes.append(f"{job['id']} saw {type(error).__name__}")
            raise
        finally:
            SPAN.reset(token)


def test_jobs_pushed_together_pass_the_layers_side_by_side(
    app: App, m: Tenure, notes: list[str]
) -> None:
    app.layers[:] = [Spanning(notes)]
    outside = SPAN.set("request")
    app.client.push_all([{"queue": "mail", "id": id} for id in ("a", "b")])
    assert notes == ["a in request", "b in request"]
    SPAN.reset(outside)


def test_each_layer_of_a_portion_that_is_refused_sees_why(
    app: App, m: Tenure, notes: list[str]
) -> None:
    app.layers[:] = [Spanning(notes)]
    jobs = (
        {"queue": "mail", "id": f"p-{n}", "priority": 0 if n < 600 else 101} for n in range(601)
    )
    with pytest.raises(errors.TenureError) as refused:
        app.client.push_many(jobs)
    assert refused.value.index == 600
    assert m.queues.get("mail").counts["ready"] == 500
    saw = [note.split() for note in notes if "saw" in note]
    assert sorted(job for job, _, _ in saw) == sorted(f"p-{n}" for n in range(500, 601))
    assert {what for _, _, what in saw} == {type(refused.value).__name__}


class Swallowing(Middleware):
    @contextlib.contextmanager
    def push(self, job: dict[str, Any]) -> Iterator[None]:
        with contextlib.suppress(Exception):
            yield


@pytest.mark.parametrize("how", ["push", "push_all", "push_many"])
def test_a_layer_can_swallow_no_error_of_a_push(app: App, m: Tenure, how: str) -> None:
    app.middleware(Swallowing())
    wrong = {"queue": "mail", "priority": 101}
    with pytest.raises(errors.TenureError):
        if how == "push":
            app.push_job(wrong)
        else:
            getattr(app.client, how)([wrong])


@pytest.mark.parametrize("how", ["push_all", "push_many"])
def test_a_layer_can_prevent_a_push_of_many(app: App, m: Tenure, how: str) -> None:
    app.middleware(Refusing())
    with pytest.raises(PermissionError):
        getattr(app.client, how)([{"queue": "mail"}])
    assert list(m.jobs.list()) == []


@pytest.mark.parametrize("kind", ["threads", "asyncio", "testing"])
@pytest.mark.parametrize("is_async", [False, True])
def test_each_run_goes_through_the_layers_in_order(
    app: App, m: Tenure, notes: list[str], kind: str, is_async: bool
) -> None:
    def send(fails: bool) -> str:
        notes.append("runs")
        if fails:
            raise Final("no such address")
        return current().job.kind

    async def send_later(fails: bool) -> str:
        await asyncio.sleep(0)
        return send(fails)

    app.job("mail", kind="send")(send_later if is_async else send)
    good, bad = (m.push("mail", {"fails": fails}, kind="send") for fails in (False, True))
    if kind == "testing":
        run_until_idle(app)
    else:
        app.run(kind=kind, concurrency=1, until_empty=True)
    assert good.get(5) == "send"
    assert m.jobs.get(bad.id).error == "no such address"
    before = ["outer before send", "inner before send", "runs"]
    assert notes == [
        *before, "inner after", "outer after", *before, "inner saw Final", "outer saw Final",
    ]  # fmt: skip


class Failing(Middleware):
    def __init__(self, where: str) -> None:
        self._where = where

    @contextlib.contextmanager
    def run(self, context: Context) -> Iterator[None]:
        if self._where == "before":
            raise ConnectionError("no database")
        with contextlib.suppress(ValueError):
            yield
        if self._where == "after":
            raise ConnectionError("no database")


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize(
    ("where", "fails", "error"),
    [
        ("before", False, "ConnectionError: no database"),
        ("after", False, "ConnectionError: no database"),
        ("swallows", True, "ValueError: wrong"),
    ],
)
def test_an_error_of_a_layer_is_a_failed_run_and_it_can_swallow_none(
    app: App, m: Tenure, kind: str, where: str, fails: bool, error: str
) -> None:
    app.middleware(Failing(where))

    @app.job("mail", retry={"max_attempts": 1})
    async def later(fails: bool) -> None:
        if fails:
            raise ValueError("wrong")

    @app.job("mail", retry={"max_attempts": 1})
    def plain(fails: bool) -> None:
        if fails:
            raise ValueError("wrong")

    jobs = [later.push(fails=fails), plain.push(fails=fails)]
    app.run(kind=kind, until_empty=True)
    for job in jobs:
        shown = m.jobs.get(job.id)
        assert (shown.state, (shown.error or "").partition("\n")[0]) == ("failed", error)


def test_layers_run_in_the_processes_of_a_worker(m: Tenure, memory_workers: Workers) -> None:
    m.push("surrounded", kind="surrounded", id="s-1")
    assert memory_workers.start(
        "--kind", "processes", "-c", "1", "--until-empty", app="handlers:layered"
    ).wait(60) == 0  # fmt: skip
    assert m.jobs.get("s-1").result == "s-1"
    assert memory_workers.notes("layer") == [["layer", "begins", "s-1"], ["layer", "ends", "s-1"]]


def test_there_is_no_current_context_outside_of_a_run() -> None:
    with pytest.raises(LookupError, match="no job runs here"):
        current()


def test_only_middleware_can_be_added(app: App) -> None:
    with pytest.raises(TypeError, match=r"tenure\.Middleware"):
        app.middleware(print)  # type: ignore[arg-type]


class Refused(ConnectionError):
    """More specific than what the handlers name."""


@pytest.mark.parametrize("kind", ["threads", "asyncio", "testing"])
@pytest.mark.parametrize(
    ("retry_on", "give_up_on", "raised", "is_final"),
    [
        ((), (), ValueError(), False),
        ((OSError,), (), ValueError(), True),
        (OSError, (), Refused(), False),
        ((), (ValueError,), ValueError(), True),
        ((), ValueError, UnicodeError("x"), True),
        ((), (ValueError,), KeyError("x"), False),
        ((OSError,), (ConnectionError,), Refused(), True),
        ((OSError,), (ConnectionError,), TimeoutError(), False),
        ((ConnectionError,), (OSError,), Refused(), False),
        ((ConnectionError,), (OSError,), TimeoutError(), True),
        ((ConnectionError,), (OSError,), ValueError(), True),
        ((), (Exception,), Snooze("1h"), None),
        ((OSError,), (), Final("x"), True),
    ],
)
def test_the_nearest_class_says_whether_an_exception_is_retried(
    memory_server: Server, namespace: str, m: Tenure, kind: str,
    retry_on: Any, give_up_on: Any, raised: Exception, is_final: Optional[bool],
) -> None:  # fmt: skip
    app = App(memory_server.url, namespace=namespace)
    options: Any = {
        "retry_on": retry_on, "give_up_on": give_up_on,
        "retry": {"max_attempts": 3, "backoff": {"kind": "fixed", "base": "1h"}},
    }  # fmt: skip

    @app.job("mail", **options)
    def plain() -> None:
        raise raised

    @app.job("mail", **options)
    async def later() -> None:
        raise raised

    jobs = [plain.push(), later.push()]
    if kind == "testing":
        run_until_idle(app, raises=False)
    else:
        app.run(kind=kind, until_empty=True)
    for job in jobs:
        shown = m.jobs.get(job.id)
        assert shown.state == ("failed" if is_final else "scheduled")
        if not isinstance(raised, (Snooze, Final)):
            assert str(shown.raw["errors"][0]["error"]).startswith(type(raised).__name__)


def test_an_exception_that_is_given_up_on_is_raised_in_a_test(
    memory_server: Server, namespace: str
) -> None:
    app = App(memory_server.url, namespace=namespace)

    @app.job("mail", give_up_on=KeyError)
    def send() -> None:
        raise KeyError("no such user")

    send.push()
    with pytest.raises(KeyError, match="no such user"):
        run_until_idle(app)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"retry_on": ValueError, "give_up_on": (KeyError, ValueError)}, "ValueError stands in"),
        ({"retry_on": "ValueError"}, "'ValueError' is none"),
        ({"retry_on": (KeyboardInterrupt,)}, "is none"),
        ({"give_up_on": Snooze}, "which says by itself how a run ends"),
    ],
)
def test_wrong_exceptions_are_refused_at_the_decoration(app: App, options: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):

        @app.job("mail", **options)
        def send() -> None: ...


def test_a_middleware_sees_the_exception_that_the_handler_raised(
    app: App, m: Tenure, notes: list[str]
) -> None:
    @app.job("mail", give_up_on=KeyError)
    def send() -> None:
        raise KeyError("x")

    job = send.push()
    app.run(until_empty=True)
    assert m.jobs.get(job.id).state == "failed"
    assert "outer saw KeyError" in notes
