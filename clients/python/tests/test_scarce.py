"""Queues, limits, pools: their settings and their sets."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from proxy import Proxy
from tenure import Tenure, errors, limit
from tenure._wire import Response
from tenure.scarce import set_plan


def test_set_makes_a_queue_and_then_changes_only_what_it_names(t: Tenure) -> None:
    t.queues.set("mail", timeout="5m", max_waiting=10, lost_delay=0, show_payload=False)
    assert t.queues.get("mail").lost_delay == "0s"
    assert not t.queues.get("mail").show_payload
    changed = t.queues.set("mail", max_waiting=20)
    assert (changed.timeout, changed.max_waiting) == ("5m", 20)


@pytest.mark.parametrize("retain", ["1h", 3600, timedelta(hours=1)])
def test_a_retain_of_a_queue_is_text_seconds_or_a_timedelta(m: Tenure, retain: Any) -> None:
    assert m.queues.set("mail", retain=retain).retain == "1h"
    assert m.queues.replace("mail", retain=retain).retain == "1h"
    assert m.queues.set("mail", retain=None).retain is None


SETS: list[tuple[str, Callable[[Tenure], object], Callable[[Tenure], object]]] = [
    ("/v1/queues/x", lambda t: t.queues.set("x", timeout="5m"),
     lambda t: t.queues.set("x", max_waiting=3)),
    ("/v1/limits/site:x", lambda t: t.limits.set("site:x", concurrency=1),
     lambda t: t.limits.set("site:x", rate="3/s")),
    ("/v1/pools/x", lambda t: t.pools.set("x", cooldown="5s"),
     lambda t: t.pools.set("x", max_uses=3)),
]  # fmt: skip


@pytest.mark.parametrize(("path", "make", "change"), SETS, ids=[each[0] for each in SETS])
def test_a_set_sends_no_change_that_is_refused(
    p: Tenure, m: Tenure, proxy: Proxy, path: str, make: Any, change: Any
) -> None:
    # The settings of this template hold for the limit until it has its own.
    m.limits.set("site:*", concurrency=9)
    make(p)
    change(p)
    methods = ["GET", "PUT", "GET", "PATCH"]
    assert proxy.seen == [(method, path) for method in methods]


_MISSING = Response(404, {"code": "limit_not_found", "detail": "there is no limit"})
_FORBIDDEN = Response(403, {"code": "forbidden", "detail": "the token may not"})
_SHOWN = Response(200, {"name": "site:a", "template": None, "concurrency": 1, "rate": None})
_WITH_RATE = Response(200, {"name": "site:a", "concurrency": None, "rate": {"count": 1}})
_OF_TEMPLATE = Response(200, {"name": "site:a", "template": "site:*", "concurrency": 1})
_IN_USE = Response(200, {"name": "site:a", "template": None, "concurrency": None, "rate": None})
_DONE = Response(200, {"name": "site:a", "concurrency": 3})

SEQUENCES: list[tuple[str, dict[str, Response], str]] = [
    ("missing", {"GET": _MISSING, "PUT": _DONE}, "GET PUT"),
    ("there", {"GET": _SHOWN, "PATCH": _DONE}, "GET PATCH"),
    ("there with a rate alone", {"GET": _WITH_RATE, "PATCH": _DONE}, "GET PATCH"),
    ("with settings of its template alone", {"GET": _OF_TEMPLATE, "PUT": _DONE}, "GET PUT"),
    ("deleted and still held", {"GET": _IN_USE, "PUT": _DONE}, "GET PUT"),
    ("hidden and there", {"GET": _FORBIDDEN, "PATCH": _DONE}, "GET PATCH"),
    ("hidden and missing", {"GET": _FORBIDDEN, "PATCH": _MISSING, "PUT": _DONE}, "GET PATCH PUT"),
    ("deleted meanwhile", {"GET": _SHOWN, "PATCH": _MISSING, "PUT": _DONE}, "GET PATCH PUT"),
    ("forbidden", {"GET": _FORBIDDEN, "PATCH": _FORBIDDEN}, "GET PATCH"),
    ("behind a wrong token", {"GET": Response(401, {"code": "unauthorized"})}, "GET"),
    ("behind a fault", {"GET": Response(500, {"code": "internal"})}, "GET"),
]


def _driven(plan: Any, answers: dict[str, Response]) -> tuple[list[str], Any]:
    """Return the methods that a plan sends, and what it returns or the status that it raises."""
    methods: list[str] = []
    answer: Any = None
    try:
        while True:
            methods.append(plan.send(answer).method)
            answer = answers[methods[-1]]
    except StopIteration as end:
        return methods, end.value
    except errors.TenureError as refused:
        return methods, refused.status


@pytest.mark.parametrize(
    ("answers", "sent"), [s[1:] for s in SEQUENCES], ids=[s[0] for s in SEQUENCES]
)
def test_a_set_looks_before_it_changes(answers: dict[str, Response], sent: str) -> None:
    plan = set_plan("limits", "site:a", {"concurrency": 3}, "limit_not_found")
    methods, outcome = _driven(plan, answers)
    last = answers[methods[-1]]
    assert " ".join(methods) == sent
    assert outcome == (last.data if last.status < 400 else last.status)


def test_a_limit_that_was_deleted_while_it_is_held_is_put(
    p: Tenure, m: Tenure, proxy: Proxy
) -> None:
    m.limits.set("held", concurrency=1)
    with m.acquire(limit("held"), wait="5s"):
        m.limits.delete("held")
        assert m.limits.get("held").template is None
        p.limits.set("held", concurrency=2)
    assert proxy.seen == [("GET", "/v1/limits/held"), ("PUT", "/v1/limits/held")]


def test_replace_sets_back_what_is_not_given(t: Tenure) -> None:
    t.queues.set("mail", timeout="5m", max_waiting=10)
    assert t.queues.replace("mail", max_waiting=20).timeout is None


def test_none_sets_a_field_back_to_its_default(t: Tenure) -> None:
    t.queues.set("mail", timeout="5m")
    assert t.queues.set("mail", timeout=None).timeout is None


def test_a_paused_queue_shows_it_until_it_is_resumed(t: Tenure) -> None:
    assert t.queues.pause("mail").paused
    assert t.queues.pause("mail", for_="1h").paused
    assert not t.queues.resume("mail").paused


def test_a_queue_with_jobs_is_not_deleted(t: Tenure) -> None:
    t.push("mail")
    with pytest.raises(errors.NotEmpty):
        t.queues.delete("mail")
    t.jobs.delete_many(queue="mail")
    t.queues.delete("mail")
    assert [queue.name for queue in t.queues.list()] == []


def test_a_limit_is_set_by_concurrency_rate_and_gap(t: Tenure) -> None:
    made = t.limits.set("site:*", concurrency=2, rate="10/1s", gap=timedelta(seconds=1))
    assert made.concurrency == 2
    assert made.rate is not None and made.rate["count"] == 10 and made.rate["per"] == "1s"
    assert made.gap == "1s"
    member = t.limits.get("site:example.com")
    assert (member.template, member.concurrency) == ("site:*", 2)


@pytest.mark.parametrize(
    ("rate", "count", "per"), [("10/s", 10, "1s"), ("100/5m", 100, "5m"), ("3/h", 3, "1h")]
)
def test_a_rate_is_written_as_people_say_it(t: Tenure, rate: str, count: int, per: str) -> None:
    made = t.limits.set("api", rate=rate)
    assert made.rate is not None
    assert (made.rate["count"], made.rate["per"]) == (count, per)


def test_a_rate_that_is_no_rate_is_refused_before_it_is_sent(m: Tenure) -> None:
    with pytest.raises(ValueError, match="10/s"):
        m.limits.set("x", rate="fast")


def test_a_limit_that_is_not_there_is_not_found(t: Tenure) -> None:
    with pytest.raises(errors.LimitNotFound):
        t.limits.get("nobody")


def test_a_paused_limit_shows_until_when(t: Tenure) -> None:
    t.limits.set("x", concurrency=1)
    assert t.limits.pause("x", for_="1h").paused_until is not None
    assert t.limits.resume("x").paused_until is None


def test_work_outside_is_observed(t: Tenure) -> None:
    t.limits.set("x", concurrency=3)
    assert t.limits.observe("x", 2, for_="1m").external == 2
    t.limits.delete("x")


def test_the_built_in_lock_template_cannot_be_deleted(m: Tenure) -> None:
    with pytest.raises(errors.InUse):
        m.limits.delete("lock:*")


def test_sync_takes_the_rows_of_a_database_cursor(t: Tenure) -> None:
    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    db.execute("create table account (phone, tags, password)")
    db.execute("insert into account values (139, 'cn, vip', 'geheim'), (170, '', 'secret')")
    rows = (dict(row) for row in db.execute("select * from account"))
    synced = t.pools.sync("accounts", rows, id="phone", tags="tags")
    assert (synced.added, synced.retired) == (2, 0)
    found = {each.id: each for each in t.pools.resources("accounts")}
    assert sorted(found["139"].tags) == ["cn", "vip"] and found["170"].tags == []
    with t.acquire({"pool": "accounts", "tag": "vip"}, wait="5s") as lease:
        assert lease.resource.data == {"password": "geheim"}


def test_a_second_sync_says_what_it_changed(t: Tenure) -> None:
    def account(n: int, word: str = "x") -> dict[str, object]:
        return {"id": str(n), "data": {"word": word}}

    t.pools.sync("accounts", [account(n) for n in range(4)])
    synced = t.pools.sync("accounts", [account(0), account(1, "new"), account(2), account(9)])
    counts = (synced.added, synced.updated, synced.unchanged, synced.retired)
    assert counts == (1, 1, 2, 1)


def test_a_set_of_more_than_a_thousand_resources_is_synced(t: Tenure) -> None:
    synced = t.pools.sync("proxies", ({"id": f"p{n}", "data": {"n": n}} for n in range(2500)))
    assert synced.added == 2500
    assert t.pools.get("proxies").available == 2500


def test_an_empty_set_is_refused_unless_it_is_meant(t: Tenure) -> None:
    t.pools.sync("accounts", [{"id": "a", "data": 1}])
    with pytest.raises(errors.EmptySet):
        t.pools.sync("accounts", [])
    assert t.pools.sync("accounts", [], force=True).retired == 1


def test_a_set_that_retires_most_is_refused(t: Tenure) -> None:
    t.pools.sync("accounts", [{"id": str(n), "data": 1} for n in range(4)])
    with pytest.raises(errors.RetiresMost):
        t.pools.sync("accounts", [{"id": "0", "data": 1}])


def test_an_older_version_of_a_set_is_refused(t: Tenure) -> None:
    t.pools.sync("accounts", [{"id": "a", "data": 1}], version=7)
    with pytest.raises(errors.StaleSync):
        t.pools.sync("accounts", [{"id": "a", "data": 1}], version=6)


def test_a_row_without_an_id_is_refused_before_anything_is_sent(m: Tenure) -> None:
    with pytest.raises(ValueError, match="id="):
        m.pools.sync("accounts", [{"phone": 1}])


def test_a_resource_is_added_banned_restored_cooled_and_removed(t: Tenure) -> None:
    t.pools.set("accounts", quarantine="1m")
    assert t.pools.add("accounts", "ann", {"pw": "x"}, tags=["cn"]).state == "available"
    assert t.pools.ban("accounts", "ann", "captcha").reason == "captcha"
    assert t.pools.restore("accounts", "ann").state == "available"
    assert t.pools.cool("accounts", "ann", for_="1h").state == "cooling"
    t.pools.remove("accounts", "ann")
    with pytest.raises(errors.ResourceNotFound):
        t.pools.resource("accounts", "ann")
    t.pools.delete("accounts")
    assert list(t.pools.list()) == []


def test_a_list_of_resources_never_has_their_secrets(t: Tenure) -> None:
    t.pools.sync("accounts", [{"id": "ann", "data": {"password": "geheim"}}])
    assert next(t.pools.resources("accounts")).data == {"password": "•"}


def test_a_change_of_a_resource_leaves_alone_what_it_does_not_name(t: Tenure) -> None:
    t.pools.sync("accounts", [{"id": "ann", "data": {"pw": "x"}, "tags": ["cn"], "slots": 2}])
    changed = t.pools.change("accounts", "ann", tags=["de"], slots=3)
    assert (changed.tags, changed.slots, changed.data) == (["de"], 3, {"pw": "•"})
    changed = t.pools.change("accounts", "ann", data={"token": "y"}, tags=None, slots=None)
    assert (changed.tags, changed.slots, changed.data) == ([], 1, {"token": "•"})
    with t.acquire("pool:accounts") as lease:
        assert lease.resource.data == {"token": "y"}
    with pytest.raises(errors.ResourceNotFound):
        t.pools.change("accounts", "bob", slots=2)
    with pytest.raises(errors.UnknownField):
        t.pools.change("accounts", "ann", slot=2)
