"""Events, stats, audit, workers, leases."""

from __future__ import annotations

import threading
from hashlib import sha256
from pathlib import Path

import pytest

from conftest import Server
from tenure import Tenure, errors
from test_jobs import end, take


def test_events_tell_what_happened_in_order(t: Tenure) -> None:
    since = t.last_event()
    job = t.push("q")
    end(t, "q")
    types = [event.type for event in t.events(since=since, wait="200ms") if event.job == job.id]
    assert types == ["job.pushed", "job.granted", "job.succeeded"]


def test_events_are_narrowed_by_type_and_queue(t: Tenure) -> None:
    t.push("a", id="1")
    t.push("b", id="2")
    found = t.events(since="first", type=["job.pushed", "queue.*"], queue="b", wait="100ms")
    assert [(event.type, event.job) for event in found] == [("job.pushed", "2")]


def test_an_iteration_waits_for_the_next_event(t: Tenure) -> None:
    since = t.last_event()
    timer = threading.Timer(0.1, t.push, ("q",), {"id": "late"})
    timer.start()
    assert next(t.events(since=since)).job == "late"
    timer.join()


def test_an_iteration_goes_on_after_the_last_event_that_was_read(t: Tenure) -> None:
    for n in range(5):
        t.push("q", id=f"j-{n}")
    first = t.events(since="first", type="job.pushed")
    seen = [next(first), next(first)]
    more = t.events(since=seen[-1].id, type="job.pushed", wait="100ms")
    assert [e.job for e in seen] + [e.job for e in more] == [f"j-{n}" for n in range(5)]


def test_an_event_has_more_in_brackets(m: Tenure) -> None:
    m.push("q")
    end(m, "q")
    granted = next(m.events(since="first", type="job.granted"))
    assert granted["attempt"] == 1 and granted["fence"] > 0


def test_an_event_names_the_token_whose_call_made_it(folder: Path) -> None:
    token = "a-token-of-thirty-two-characters"
    (folder / "tokens.toml").write_text(
        '[[token]]\nname = "ann"\nscopes = ["admin", "push", "view"]\nnamespaces = ["*"]\n'
        f'sha256 = "{sha256(token.encode()).hexdigest()}"\n'
    )
    server = Server("memory:", folder, None, "--tokens", str(folder / "tokens.toml")).start()
    try:
        with Tenure(server.url, token=token) as client:
            client.limits.set("site", concurrency=1)
            client.push("q")
            events = client.events(since="first", wait="100ms")
            assert [(event.type, event.by) for event in events] == [
                ("limit.changed", "ann"),
                ("job.pushed", None),
            ]
    finally:
        server.kill()


def test_events_that_were_dropped_are_told_as_a_gap(folder: object) -> None:
    from pathlib import Path

    server = Server("memory:", Path(str(folder)), None, "--events-bytes", "8KiB").start()
    try:
        with Tenure(server.url) as client:
            since = client.last_event()
            client.push_many({"queue": "q"} for _ in range(1500))
            client.push("q")
            first = next(client.events(since=since))
            assert (first.type, first.why) == ("gap", "dropped")
    finally:
        server.kill()


def test_an_unknown_type_of_event_is_refused(m: Tenure) -> None:
    with pytest.raises(errors.InvalidField):
        next(m.events(since="first", type="job.exploded"))


def test_stats_and_audit_answer_for_the_namespace(t: Tenure) -> None:
    t.push("q")
    assert t.stats().jobs["ready"] == 1
    assert t.stats().queues["q"]["ready"] == 1
    assert t.audit().ok


def test_leases_are_listed_without_secrets_and_ended_by_force(t: Tenure) -> None:
    t.pools.sync("accounts", [{"id": "ann", "data": {"password": "geheim"}}])
    t.push("q", needs=[{"pool": "accounts"}])
    take(t, "q")
    (lease,) = t.leases(queue="q")
    assert lease.holder == "hand" and "geheim" not in str(lease.raw)
    t.force_lease(lease.lease)
    assert list(t.leases()) == []


def test_a_worker_that_took_a_job_is_listed_with_its_leases(t: Tenure) -> None:
    t.push("q")
    take(t, "q")
    assert [(worker.id, worker.leases) for worker in t.workers()] == [("hand", 1)]
