"""Pushing by handlers, and reading payloads by types: without a server where none is needed."""

from __future__ import annotations

import enum
import pickle
import uuid
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from typing import Any, Optional, TypedDict, Union

import pydantic
import pytest

import handlers
from conftest import Server
from tenure import App, Context, JobDefaults, Tenure, errors, limit
from tenure.payloads import DoesNotFit, encode, fit


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Line:
    sku: str
    count: int = 1


@dataclass
class Order:
    id: uuid.UUID
    lines: list[Line]
    at: datetime
    day: Optional[date] = None
    colour: Colour = Colour.RED
    price: float = 0.0
    notes: dict[str, int] = field(default_factory=dict)


class Partial(TypedDict, total=False):
    a: int


class Model(pydantic.BaseModel):
    to: str
    secret: int = 0


ORDER = Order(
    uuid.UUID(int=1), [Line("x", 2)], datetime(2026, 1, 1, tzinfo=timezone.utc), date(2026, 1, 2)
)


def test_a_nested_dataclass_comes_back_as_it_went() -> None:
    import json

    assert fit(Order, json.loads(encode(ORDER))) == ORDER


def test_a_field_that_is_newer_than_the_handler_is_left_out() -> None:
    assert fit(Line, {"sku": "x", "colour": "red"}) == Line("x")


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (Line, {"count": 1}, '"sku" is missing'),
        (Line, {"sku": 7}, "payload.sku must be str, not int"),
        (list[Line], [{"sku": "x"}, {}], "payload[1] does not fit Line"),
        (int, True, "must be int, not bool"),
        (Colour, "blue", "payload is no Colour"),
        (datetime, "soon", "payload is no datetime"),
        (uuid.UUID, 7, "payload is no UUID"),
        (dict[str, int], {"a": "x"}, "payload.a must be int"),
        (Partial, {"a": "x"}, "payload.a must be int"),
        (Model, {"to": "ann", "secret": "geheim"}, "secret: Input should be a valid integer"),
    ],
)
def test_what_does_not_fit_says_where_and_never_what(kind: Any, value: Any, says: str) -> None:
    with pytest.raises(DoesNotFit) as refused:
        fit(kind, value)
    assert says in str(refused.value)
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "value", "is_read"),
    [
        (float, 3, 3.0),
        (Optional[int], None, None),
        (Union[int, str], "x", "x"),
        (set[int], [1, 1], {1}),
        (tuple[int, ...], [1, 2], (1, 2)),
        (datetime, "2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=timezone.utc)),
        (Partial, {}, {}),
        (Any, {"a": [1]}, {"a": [1]}),
    ],
)
def test_values_are_read_as_their_type(kind: Any, value: Any, is_read: Any) -> None:
    assert fit(kind, value) == is_read


@pytest.fixture
def app(memory_server: Server, namespace: str) -> App:
    return App(memory_server.url, namespace=namespace)


def test_arguments_by_name_and_by_place_are_the_payload(app: App, m: Tenure) -> None:
    @app.job("mail")
    def send(to: str, subject: str = "hello") -> None: ...

    job = send.push("ann", subject="hi")
    assert (job.queue, job.kind) == ("mail", "send")
    assert m.jobs.get(job.id).payload == {"to": "ann", "subject": "hi"}
    assert m.jobs.get(app.push(send, to="bob").id).payload == {"to": "bob"}


def test_arguments_unknown_to_the_handler_are_refused_at_the_push(app: App, m: Tenure) -> None:
    @app.job("mail")
    def send(ctx: Context, to: str) -> None: ...

    with pytest.raises(TypeError):
        send.push(too="ann")  # type: ignore[call-overload]
    assert list(m.jobs.list()) == []


def test_a_model_is_pushed_whole_or_by_its_fields(app: App, m: Tenure) -> None:
    @app.job("mail")
    def send(mail: Model, ctx: Context) -> None: ...

    whole, fields = send.push(Model(to="ann")), app.push(send, to="ann")
    for job in (whole, fields):
        assert m.jobs.get(job.id).payload == {"to": "ann", "secret": 0}


def test_options_say_more_about_the_job(app: App, m: Tenure) -> None:
    @app.job("mail", timeout="5m", retry={"max_attempts": 3}, priority=5)
    def send(to: str) -> None: ...

    job = send.options(delay="1h", id="m-1", priority=7).push(to="ann")
    assert (job.id, job.state, job.priority, job.timeout) == ("m-1", "scheduled", 7, "5m")
    assert m.jobs.get("m-1").raw["retry"]["max_attempts"] == 3


def test_each_field_of_a_job_can_be_a_default_and_is_in_the_docstring(app: App, m: Tenure) -> None:
    defaults: dict[str, Any] = {
        "priority": 5, "delay": "1h", "timeout": "5m", "expires_at": "2h", "unique": "the-report",
        "retry": {"max_attempts": 3}, "needs": [limit("lock:x")], "group": "eu", "retain": "1d",
        "labels": {"site": "example"}, "on_parent_failure": "run",
    }  # fmt: skip
    assert set(defaults) == set(JobDefaults.__optional_keys__)
    for name in defaults:
        assert f"- `{name}`:" in str(App.job.__doc__)

    @app.job("reports", **defaults)
    def report() -> None: ...

    job = report.push()
    shown = m.jobs.get(job.id)
    assert (shown.priority, shown.state, shown.timeout, shown.group) == (5, "scheduled", "5m", "eu")
    assert shown.labels == {"site": "example"} and shown.raw["retry"]["max_attempts"] == 3
    assert shown.run_at is not None and shown.expires_at is not None
    late = shown.expires_at - shown.run_at - timedelta(hours=2)
    assert abs(late) < timedelta(minutes=1)
    assert [need["limit"] for need in shown.needs] == ["lock:x"]
    # The key is held: a second push is the first job.
    assert report.push().id == job.id
    assert report.options(unique=None).push().id != job.id


def test_a_duplicate_is_an_error_for_a_handler_s_push_too(app: App, m: Tenure) -> None:
    @app.job("mail")
    def send(to: str) -> None: ...

    only = send.options(id="m-1", on_duplicate="raise")
    only.push("ann")
    for again in (lambda: only.push("bob"), lambda: m.push_all([only.spec("bob")])):
        with pytest.raises(errors.DuplicateJob):
            again()


def test_a_misspelt_option_is_named_at_once(app: App) -> None:
    @app.job("mail")
    def send() -> None: ...

    with pytest.raises(TypeError, match=r'options\(\) has no "dealy"; did you mean "delay"\?'):
        send.options(dealy="5s")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r'@app.job\(\) has no "lables"; did you mean "labels"\?'):
        app.job("mail", lables={})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match='has no "id"; it takes delay, expires_at'):
        app.job("mail", id="x")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        (("o-1", 5), {}, "charge() takes (order), 2 were given"),
        ((), {}, "charge() takes (order): missing a required argument: 'order'"),
        (("o-1",), {"cents": 5}, "charge() takes (order): got an unexpected keyword argument"),
        ((), {"ordre": "o-1"}, "charge() takes (order): missing a required argument: 'order'"),
    ],
)
def test_wrong_arguments_are_told_with_those_that_it_takes(
    app: App, args: tuple[Any, ...], kwargs: dict[str, Any], says: str
) -> None:
    @app.job("shop")
    def charge(ctx: Context, order: str) -> None: ...

    push: Any = charge.push
    with pytest.raises(TypeError) as refused:
        push(*args, **kwargs)
    assert says in str(refused.value)


def test_a_worker_for_a_queue_without_a_handler_is_a_mistake(app: App) -> None:
    @app.job("mail")
    def send() -> None: ...

    with pytest.raises(ValueError, match='no handler for queue "nope"; it has some for mail'):
        app.run(queues=["mail", "nope"])


def test_a_spec_is_what_push_many_takes(app: App, m: Tenure) -> None:
    @app.job("mail")
    def send(to: str) -> None: ...

    assert m.push_many(send.spec(to=str(n)) for n in range(3)).count == 3
    assert m.push_many([send.options(id="x").spec(to="x")]).count == 1
    assert {job.kind for job in m.jobs.list()} == {"send"}


def test_a_call_of_a_handler_calls_its_function(app: App) -> None:
    @app.job("mail")
    def double(n: int) -> int:
        return 2 * n

    assert double(4) == 8


def test_two_handlers_of_one_kind_are_a_mistake(app: App) -> None:
    @app.job("mail", kind="x")
    def one() -> None: ...

    with pytest.raises(ValueError, match="already"):

        @app.job("mail", kind="x")
        def two() -> None: ...


def test_an_app_without_handlers_does_not_run(app: App) -> None:
    with pytest.raises(ValueError, match="no handlers"):
        app.run()


def test_an_unknown_kind_of_worker_is_a_mistake(app: App) -> None:
    @app.job("mail")
    def send() -> None: ...

    with pytest.raises(ValueError, match="threads"):
        app.run(kind="gevent")


def test_a_job_without_a_kind_goes_to_the_only_handler_of_its_queue(app: App, m: Tenure) -> None:
    @app.job("mail")
    def send(to: str) -> str:
        return to

    job = m.push("mail", {"to": "ann"})
    app.run(until_empty=True)
    assert job.wait(5).get() == "ann"


def test_an_app_is_stopped_from_another_thread(app: App, m: Tenure) -> None:
    import threading

    @app.job("mail")
    def send(to: str) -> str:
        return to

    runner = threading.Thread(target=app.run)
    runner.start()
    assert send.push(to="ann").wait(10).get() == "ann"
    app.stop()
    runner.join(10)
    assert not runner.is_alive()


def test_a_handler_is_found_again_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(handlers.add)) is handlers.add
