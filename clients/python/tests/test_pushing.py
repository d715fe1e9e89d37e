"""Pushing: one, some, many; options, ids, unique keys, bad input."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Optional

import pytest

from proxy import Proxy
from tenure import Need, Tenure, errors, limit, pool
from tenure.durations import is_duration, seconds
from tenure.fields import job_fields
from tenure.needs import needs_json


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_a_pushed_job_comes_back_with_an_id_and_its_payload(t: Tenure) -> None:
    job = t.push("mail", {"to": "ann"})
    assert job.id.startswith("job_")
    assert (job.queue, job.state, job.duplicate) == ("mail", "ready", False)
    assert t.jobs.get(job.id).payload == {"to": "ann"}


def test_the_same_id_again_is_the_same_job(t: Tenure) -> None:
    t.push("mail", {"n": 1}, id="m-1")
    again = t.push("mail", {"n": 2}, id="m-1")
    assert again.duplicate
    assert t.jobs.get("m-1").payload == {"n": 1}


def test_a_push_tells_that_nobody_works_on_its_queue(m: Tenure) -> None:
    assert m.push("misspelt").workers == 0


@pytest.mark.parametrize("delay", ["1h", 3600, 3600.0, timedelta(hours=1)])
def test_a_delay_is_text_seconds_or_a_timedelta(m: Tenure, delay: Any) -> None:
    job = m.push("mail", delay=delay)
    assert job.run_at is not None and job.created_at is not None
    assert job.run_at - job.created_at == timedelta(hours=1)
    assert job.state == "scheduled"


@pytest.mark.parametrize("retain", ["1h", 3600, timedelta(hours=1)])
def test_a_retain_is_text_seconds_or_a_timedelta(m: Tenure, retain: Any) -> None:
    assert m.push("mail", retain=retain).raw["retain"] == "1h"


def test_a_moment_is_a_datetime_with_a_zone(m: Tenure) -> None:
    at = datetime(2030, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert m.push("mail", run_at=at).run_at == at


def test_a_moment_without_a_zone_is_refused_before_anything_is_sent(m: Tenure) -> None:
    with pytest.raises(ValueError, match="time zone"):
        m.push("mail", run_at=datetime(2030, 5, 1))
    assert list(m.jobs.list()) == []


def test_a_duration_of_a_wrong_type_is_a_type_error(m: Tenure) -> None:
    with pytest.raises(TypeError, match="duration"):
        m.push("mail", delay=[5])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", ["", "5", "1.5s", "30m1h", "1m1m", "1ms1s", "5 s", "1s\n", "-1s", "\u0663s"]
)
def test_a_duration_has_whole_numbers_and_its_largest_unit_first(wrong: str) -> None:
    assert (seconds("1d2h3m4s5ms"), seconds("5m500ms"), seconds("5ms")) == (93784.005, 300.5, 0.005)
    assert not is_duration(wrong)
    with pytest.raises(ValueError, match="no duration"):
        seconds(wrong)


def test_a_unique_key_is_text_or_a_mapping(t: Tenure) -> None:
    first = t.push("index", {"v": 1}, unique="doc-1", delay="1h")
    kept = t.push("index", {"v": 2}, unique="doc-1", delay="1h")
    assert (kept.id, kept.duplicate) == (first.id, True)
    rule = {"key": "doc-1", "on_conflict": "replace"}
    assert t.push("index", {"v": 3}, unique=rule, delay="1h").replaced
    assert t.jobs.get("key:doc-1").payload == {"v": 3}


def test_a_taken_unique_key_names_the_job_that_holds_it(t: Tenure) -> None:
    first = t.push("index", unique="doc-1", delay="1h")
    with pytest.raises(errors.UniqueConflict) as refused:
        t.push("index", unique={"key": "doc-1", "on_conflict": "reject"})
    assert refused.value.job == first.id


def test_a_payload_may_be_a_dataclass_with_dates_and_ids(m: Tenure) -> None:
    @dataclass
    class Order:
        id: uuid.UUID
        at: datetime

    order = Order(uuid.UUID(int=7), datetime(2026, 1, 2, tzinfo=timezone.utc))
    job = m.push("orders", order)
    assert m.jobs.get(job.id).payload == {
        "id": "00000000-0000-0000-0000-000000000007",
        "at": "2026-01-02T00:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"order": {"at": [1, object()]}}, "payload.order.at[1]: object is not JSON"),
        (object(), "payload: object is not JSON; use str, int, float"),
        ({"n": float("nan")}, "payload.n: nan is not JSON; use None or text"),
        ({"title": "\ud83d"}, "payload.title: text with half a surrogate pair is not JSON"),
        ({"a": {("x", "y"): 1}}, "payload.a: a key is tuple; keys of JSON are text"),
        (_circle(), "a part of itself"),
    ],
    ids=["object in a list", "object", "nan", "surrogate", "key", "circle"],
)
def test_what_is_not_json_is_named_with_its_place(m: Tenure, payload: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        m.push("mail", payload)
    assert told in str(refused.value)
    with pytest.raises((TypeError, ValueError), match=r"\[1\]\.payload"):
        m.push_all([{"queue": "mail"}, {"queue": "mail", "payload": payload}])


def test_a_payload_that_is_nested_too_deeply_is_refused(m: Tenure) -> None:
    # Some versions of Python can write it; then the server refuses it.
    with pytest.raises((ValueError, errors.BadJson), match="deep"):
        m.push("mail", _nested(5000))
    assert m.stats().jobs["ready"] == 0


def test_text_of_any_alphabet_comes_back_as_it_went(t: Tenure) -> None:
    text = "café 東京 🚀 \u2028 \x00"
    job = t.push("mail", {"text": text}, labels={"città": "Zürich"})
    assert t.jobs.get(job.id).payload == {"text": text}
    assert t.jobs.get(job.id).labels == {"città": "Zürich"}


def test_an_id_with_any_characters_is_found_by_it(t: Tenure) -> None:
    odd = "a/b?c=d&e#f g%2F+ü"
    t.push("mail", id=odd)
    assert t.jobs.get(odd).id == odd
    assert t.explain(odd).id == odd


def _told(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    told = [each.getMessage() for each in caplog.records if each.name == "tenure"]
    return [each for each in told if word in each]


def test_an_id_that_is_there_is_warned_of_once_for_each_queue(
    t: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    t.push("mail", id="two")
    t.jobs.cancel("two")
    for _ in range(2):
        assert t.push("mail", {"new": True}, id="two").duplicate
    (told,) = _told(caplog, "already")
    assert re.match(r'job "two" is there already \(cancelled \d+s ago\): nothing was pushed', told)


def test_a_duplicate_may_be_an_error(t: Tenure) -> None:
    t.push("mail", id="two")
    with pytest.raises(errors.DuplicateJob, match=r'"two" is there already \(ready\)') as refused:
        t.push("mail", id="two", on_duplicate="raise")
    assert refused.value.job == "two"
    held = t.push("mail", unique="k", delay="1h")
    with pytest.raises(errors.DuplicateJob, match=r'\(scheduled\) holds the unique key "k"'):
        t.push("mail", unique="k", on_duplicate="raise")
    with pytest.raises(errors.DuplicateJob):
        t.push_all([{"queue": "mail", "unique": "k", "on_duplicate": "raise"}])
    assert t.jobs.get("key:k").id == held.id


def test_a_kept_key_a_wish_for_quiet_and_many_at_once_warn_of_nothing(
    t: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    t.push("mail", id="two", unique="k")
    t.push("mail", unique="k")
    t.push("mail", id="two", on_duplicate="ignore")
    t.push("mail", unique={"key": "k", "on_conflict": "replace"}, on_duplicate="raise")
    assert t.push_many([{"queue": "mail", "id": "two"}]).duplicates == 1
    assert _told(caplog, "already") == []


def test_a_repeat_after_a_lost_answer_is_no_duplicate(
    p: Tenure, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    proxy.spoil("lose", "POST", "/v1/jobs")
    p.push("mail", id="two", on_duplicate="raise")
    assert _told(caplog, "already") == []


def test_a_queue_without_a_worker_is_warned_of_once(
    t: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    t.push("chrage")
    t.push("chrage")
    t.push_many({"queue": queue} for queue in ("chrage", "other"))
    assert [each.split()[1] for each in _told(caplog, "no worker")] == ["'chrage'", "'other'"]


def test_a_wrong_word_for_duplicates_is_refused(m: Tenure) -> None:
    with pytest.raises(ValueError, match='on_duplicate is "warn", "raise" or "ignore"'):
        m.push("mail", on_duplicate="error")  # type: ignore[arg-type]


def test_push_all_stores_jobs_that_name_each_other(t: Tenure) -> None:
    fetch, parse = t.push_all(
        [
            {"queue": "parse", "ref": "p", "after": [{"ref": "f"}]},
            {"queue": "fetch", "ref": "f"},
        ]
    )[::-1]
    assert parse.state == "dependent"
    assert [parent.id for parent in t.jobs.parents(parse.id)] == [fetch.id]
    assert [child.id for child in t.jobs.children(fetch.id)] == [parse.id]


def test_a_job_may_wait_for_a_job_object(m: Tenure) -> None:
    first = m.push("fetch")
    assert m.push("parse", after=[first]).after == [first.id]


def test_push_all_stores_all_or_none(t: Tenure) -> None:
    with pytest.raises(errors.OutOfBounds) as refused:
        t.push_all([{"queue": "a"}, {"queue": "a", "priority": 1000}])
    assert (refused.value.index, refused.value.pointer) == (1, "/1/priority")
    assert list(t.jobs.list()) == []


def test_a_body_that_no_server_takes_is_refused_before_it_is_sent(m: Tenure) -> None:
    with pytest.raises(errors.TooLarge, match="push_many"):
        m.push_all({"queue": "q", "payload": "x" * 200_000} for _ in range(50))
    assert list(m.jobs.list()) == []


def test_push_all_of_nothing_asks_nothing(m: Tenure) -> None:
    assert m.push_all([]) == []


def test_push_many_reads_a_generator_one_portion_at_a_time(
    t: Tenure,
) -> None:
    made = 0

    def jobs() -> Iterator[dict[str, Any]]:
        nonlocal made
        for n in range(1234):
            made += 1
            if n == 900:
                # The first portion is stored while the second is still being made.
                assert sum(t.stats().jobs.values()) == 500
            yield {"queue": "pages", "payload": {"n": n}, "id": f"p-{n}"}

    pushed = t.push_many(jobs())
    assert (made, pushed.count, pushed.duplicates) == (1234, 1234, 0)
    assert t.queues.get("pages").counts["ready"] == 1234
    assert t.push_many({"queue": "pages", "id": f"p-{n}"} for n in range(3)).duplicates == 3


def test_push_many_counts_the_refused_job_from_the_first_of_all(m: Tenure) -> None:
    jobs = ({"queue": "a", "priority": 1000 if n == 700 else 0} for n in range(900))
    with pytest.raises(errors.OutOfBounds) as refused:
        m.push_many(jobs)
    assert refused.value.index == 700
    assert m.queues.get("a").counts["ready"] == 500


def test_push_many_splits_portions_by_their_bytes(m: Tenure) -> None:
    # Sixty of these in one body would be more than the server takes.
    big = "x" * 200_000
    assert m.push_many({"queue": "big", "payload": big} for _ in range(60)).count == 60


def test_push_many_of_nothing_is_nothing(m: Tenure) -> None:
    assert m.push_many([]).count == 0


@pytest.mark.parametrize(
    ("text", "need"),
    [
        ("limit:db", limit("db")),
        ("limit:site:a.com,weight=2,cost=0", limit("site:a.com", weight=2, cost=0)),
        ("pool:accounts", pool("accounts")),
        ("pool:accounts#cn,count=2", pool("accounts", tag="cn", count=2)),
        ("pool:accounts,id=ann", pool("accounts", id="ann")),
    ],
)
def test_a_need_may_be_text_as_on_the_command_line(text: str, need: Need) -> None:
    assert needs_json([text]) == needs_json([need])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("db", 'write "limit:NAME" or "pool:NAME#TAG"'),
        ("limit:", "is not a need"),
        ("lock:deploy", "is not a need"),
        ("limit:db,wieght=2", "a limit takes weight=…, cost=…"),
        ("limit:db,weight=2,weight=3", "each once"),
        ("limit:db,weight", "a limit takes"),
        ("limit:db,weight=two", "must be a whole number"),
        ("pool:accounts,weight=2", "a pool takes prefer=…, id=…, count=…"),
    ],
)
def test_text_that_is_no_need_says_what_to_write(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        needs_json([text])


def test_a_need_as_text_is_granted(t: Tenure) -> None:
    t.limits.set("db", concurrency=1)
    with t.acquire("limit:db", wait="5s") as lease:
        assert lease.limits == ["db"]


def test_needs_are_what_limit_and_pool_say(t: Tenure) -> None:
    t.limits.set("site:*", concurrency=3)
    t.pools.sync("accounts", [{"id": "ann", "data": {}}])
    job = t.push("crawl", needs=[limit("site:x", weight=2), pool("accounts", prefer="ann")])
    assert {"limit": "site:x", "weight": 2}.items() <= job.needs[0].items()
    assert job.needs[1]["prefer"] == "ann"


def test_a_single_need_in_place_of_a_list_is_a_type_error(m: Tenure) -> None:
    with pytest.raises(TypeError, match="needs is a list"):
        m.push("crawl", needs=limit("x"))  # type: ignore[arg-type]


REFUSED: list[tuple[dict[str, Any], type[errors.TenureError], str]] = [
    ({"priority": 101}, errors.OutOfBounds, "/priority"),
    ({"priority": "high"}, errors.InvalidField, "/priority"),
    ({"queue": "a/b"}, errors.InvalidField, "/queue"),
    ({"delay": "soon"}, errors.InvalidField, "/delay"),
    ({"run_at": "tomorrow"}, errors.InvalidField, "/run_at"),
    ({"needs": [limit("no-such-limit")]}, errors.UnknownLimit, "/needs/0"),
    ({"needs": [pool("no-such-pool")]}, errors.UnknownPool, "/needs/0"),
    ({"needs": [limit("lock:a", weight=2)]}, errors.NeverFits, "/needs/0"),
    ({"needs": [limit("lock:a"), limit("lock:a")]}, errors.DuplicateNeed, "/needs/1"),
    ({"after": ["never-there"]}, errors.UnknownParent, "/after/0"),
    ({"id": "x", "after": ["x"]}, errors.Cycle, ""),
    ({"id": "key:x"}, errors.InvalidField, "/id"),
    ({"payload": "x" * 300_000}, errors.OutOfBounds, "/payload"),
    ({"unique": {"key": "k", "untill": "end"}}, errors.UnknownField, "/unique/untill"),
    ({"delay": "5s", "run_at": "2030-01-01T00:00:00Z"}, errors.ConflictingFields, ""),
]


@pytest.mark.parametrize(
    ("fields", "kind", "pointer"), REFUSED, ids=lambda v: getattr(v, "__name__", None)
)
def test_a_refused_push_is_the_exception_of_its_code(
    m: Tenure, fields: dict[str, Any], kind: type[errors.TenureError], pointer: str
) -> None:
    job: dict[str, Any] = {"queue": "mail", **fields}
    with pytest.raises(kind) as refused:
        m.push(**job)
    error = refused.value
    assert type(error) is kind
    assert error.code == kind.code
    assert error.status is not None and 400 <= error.status < 500
    assert error.detail and error.hint
    assert (error.pointer or "").startswith(pointer)
    assert list(m.jobs.list()) == []


def test_a_full_queue_is_waited_for_and_then_told(m: Tenure) -> None:
    m.queues.set("small", max_waiting=1)
    m.push("small")
    with Tenure(m._settings.url, namespace=m._settings.namespace, retry_for=0.2) as hasty:
        with pytest.raises(errors.QueueFull):
            hasty.push("small")


def test_a_job_carries_the_trace_that_it_was_pushed_in(t: Tenure) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    job = t.push("mail", traceparent=trace)
    assert t.jobs.get(job.id).traceparent == trace
    with pytest.raises(errors.InvalidField, match="trace"):
        t.push("mail", traceparent="00-abc")


@pytest.mark.parametrize("call", ["push", "push_all", "push_many"])
def test_a_misspelt_field_is_named_with_the_one_that_was_meant(m: Tenure, call: str) -> None:
    job = {"queue": "mail", "dealy": "5s"}
    with pytest.raises(TypeError, match='has no "dealy"; did you mean "delay"'):
        m.push(**job) if call == "push" else getattr(m, call)([job])  # type: ignore[arg-type]
    assert list(m.jobs.list()) == []


@pytest.mark.parametrize(
    ("fields", "counts_from"),
    [({}, 0), ({"delay": "1h"}, 3600), ({"run_at": "2030-01-01T00:00:00Z"}, None)],
)
def test_an_end_may_be_a_duration_from_when_the_job_may_run(
    fields: dict[str, Any], counts_from: Optional[int]
) -> None:
    before = datetime.now(timezone.utc)
    end = datetime.fromisoformat(job_fields("mail", expires_at="2h", **fields)["expires_at"])
    if counts_from is None:
        assert end == datetime(2030, 1, 1, 2, tzinfo=timezone.utc)
    else:
        late = end - before - timedelta(hours=2, seconds=counts_from)
        assert timedelta(0) <= late < timedelta(minutes=1)


def test_an_end_may_be_a_moment() -> None:
    moment = "2030-01-01T00:00:00Z"
    assert job_fields("mail", expires_at=moment, delay="1h")["expires_at"] == moment
