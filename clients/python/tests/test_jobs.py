"""Looking at jobs, changing them, waiting for them, many at once."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from conftest import Server, until
from tenure import AsyncTenure, Tenure, errors
from tenure._wire import new_id, request


def take(client: Tenure, queue: str, wait: str = "5s") -> dict[str, Any]:
    """Lease a job by hand."""
    body = {"queues": [queue], "wait": wait, "request_id": new_id("request"), "worker": "hand"}
    answer = client._transport.send(request("POST", "leases", body=body, wait=5)).data
    lease: dict[str, Any] = answer["leases"][0]
    return lease


def settle(client: Tenure, lease: dict[str, Any], outcome: str, **fields: Any) -> dict[str, Any]:
    """Settle a lease by hand."""
    body = {"settle": [{"lease": lease["lease"], "outcome": outcome, **fields}]}
    answer = client._transport.send(request("POST", "leases", "settle", body=body)).data
    told: dict[str, Any] = answer["settled"][0]
    return told


def report(client: Tenure, lease: dict[str, Any], progress: Any) -> None:
    """Report progress by hand."""
    body = {"leases": [{"lease": lease["lease"], "progress": progress}]}
    client._transport.send(request("POST", "leases", "extend", body=body))


def end(client: Tenure, queue: str, outcome: str = "succeeded", **fields: Any) -> None:
    """Run the next job of a queue by hand."""
    assert settle(client, take(client, queue), outcome, **fields)["ok"]


def test_a_list_goes_over_its_pages_by_itself(t: Tenure) -> None:
    t.push_many({"queue": "q", "id": f"j-{n}"} for n in range(450))
    ids = [job.id for job in t.jobs.list(queue="q")]
    assert len(ids) == len(set(ids)) == 450
    assert ids[0] == "j-449"


def test_a_list_asks_for_no_more_than_its_max(m: Tenure) -> None:
    m.push_many({"queue": "q"} for _ in range(10))
    assert len(list(m.jobs.list(max=3))) == 3
    assert list(m.jobs.list(max=0)) == []


def test_a_list_has_payloads_only_if_they_are_asked_for(m: Tenure) -> None:
    m.push("q", {"a": 1})
    assert next(m.jobs.list()).payload is None
    assert next(m.jobs.list(full=True)).payload == {"a": 1}


def test_lists_are_narrowed_by_queue_state_kind_and_label(t: Tenure) -> None:
    t.push("a", kind="x", labels={"source": "feed"}, id="1")
    t.push("a", kind="y", delay="1h", id="2")
    t.push("b", kind="x", id="3")

    def ids(**filter: Any) -> set[str]:
        return {job.id for job in t.jobs.list(**filter)}

    assert ids(queue="a") == {"1", "2"}
    assert ids(state="scheduled") == {"2"}
    assert ids(state=["scheduled", "ready"], queue="a") == {"1", "2"}
    assert ids(kind="x") == {"1", "3"}
    assert ids(label="source:feed") == {"1"}


def test_an_unknown_filter_is_a_type_error(m: Tenure) -> None:
    with pytest.raises(TypeError):
        list(m.jobs.list(que="a"))


def test_a_job_that_is_not_there_is_not_found(t: Tenure) -> None:
    with pytest.raises(errors.JobNotFound) as missing:
        t.jobs.get("nobody")
    assert isinstance(missing.value, errors.NotFound)
    assert missing.value.status == 404


def test_a_waiting_job_is_cancelled_at_once_and_retried(t: Tenure) -> None:
    job = t.push("q")
    assert t.jobs.cancel(job.id).state == "cancelled"
    assert t.jobs.cancel(job.id).state == "cancelled"
    assert t.jobs.retry(job.id).state == "ready"


def test_a_running_job_is_asked_to_stop(t: Tenure) -> None:
    job = t.push("q")
    lease = take(t, "q")
    assert t.jobs.cancel(job.id).cancel_requested
    settle(t, lease, "released")
    assert t.jobs.get(job.id).state == "cancelled"


def test_a_finished_job_cannot_be_cancelled(t: Tenure) -> None:
    job = t.push("q")
    end(t, "q")
    with pytest.raises(errors.WrongState):
        t.jobs.cancel(job.id)


def test_a_retry_begins_with_the_first_attempt_again(t: Tenure) -> None:
    job = t.push("q")
    end(t, "q", "failed", error="boom", final=True)
    failed = t.jobs.get(job.id)
    assert (failed.state, failed.error, failed.attempt) == ("failed", "boom", 1)
    assert t.jobs.retry(job.id).attempt == 0


def test_a_job_is_moved_by_its_key(t: Tenure) -> None:
    t.push("q", unique="meeting", delay="1h")
    at = datetime(2031, 1, 1, tzinfo=timezone.utc)
    assert t.jobs.reschedule("key:meeting", at=at).run_at == at
    assert t.jobs.reschedule("key:meeting", delay="2h").state == "scheduled"
    assert t.jobs.run_now("key:meeting").state == "ready"


def test_a_change_names_fields_of_a_waiting_job(t: Tenure) -> None:
    job = t.push("q", {"a": 1}, delay="1h")
    changed = t.jobs.change(job.id, priority=7, payload={"a": 2})
    assert (changed.priority, changed.payload) == (7, {"a": 2})


def test_a_running_job_cannot_be_changed(t: Tenure) -> None:
    job = t.push("q")
    take(t, "q")
    with pytest.raises(errors.WrongState):
        t.jobs.change(job.id, priority=1)


def test_a_deleted_job_is_gone_and_a_second_delete_says_so(t: Tenure) -> None:
    job = t.push("q")
    t.jobs.delete(job.id)
    with pytest.raises(errors.JobNotFound):
        t.jobs.delete(job.id)


@pytest.mark.parametrize("how", ["wait", "get"])
def test_a_wait_ends_with_the_job(t: Tenure, how: str) -> None:
    job = t.push("q")
    timer = threading.Timer(0.1, end, (t, "q"), {"result": {"n": 1}})
    timer.start()
    began = time.monotonic()
    assert (job.get(10) if how == "get" else job.wait(10).get()) == {"n": 1}
    assert time.monotonic() - began < 5
    timer.join()


def test_a_wait_that_is_over_says_that_the_job_still_waits(t: Tenure) -> None:
    result = t.push("q").wait("100ms")
    assert (result.finished, result.state) == (False, "ready")
    with pytest.raises(errors.NotFinished):
        result.get()


def test_the_result_of_a_failed_job_is_its_error(t: Tenure) -> None:
    job = t.push("q")
    end(t, "q", "failed", error="no such page", final=True)
    with pytest.raises(errors.JobFailed, match="no such page"):
        job.wait(5).get()


def test_the_result_of_a_cancelled_job_is_that(t: Tenure) -> None:
    job = t.push("q")
    t.jobs.cancel(job.id)
    with pytest.raises(errors.JobCancelled):
        job.wait(5).get()


def test_a_wait_by_key_stays_with_the_job_that_held_it(t: Tenure) -> None:
    first = t.push("q", unique="k")
    assert t.jobs.wait("key:k", "50ms").id == first.id


def test_explain_is_a_sentence_and_an_object(t: Tenure) -> None:
    t.limits.set("db", concurrency=1)
    with t.acquire({"limit": "db"}, worker="backup"):
        job = t.push("q", needs=[{"limit": "db"}])
        # It is tried when somebody asks for the queue.
        body = {"queues": ["q"], "request_id": new_id("request")}
        t._transport.send(request("POST", "leases", body=body))
        why = t.explain(job.id)
        assert why.state == "blocked"
        reason = why.reasons[0]
        assert (reason.kind, reason.name, reason.in_use, reason.capacity) == ("limit", "db", 1, 1)
        assert reason.holders[0]["holder"] == "backup"
        assert job.id in why.sentence and "db" in str(why)


def test_explain_of_a_scheduled_job_says_when(t: Tenure) -> None:
    job = t.push("q", delay="1h")
    why = job.explain()
    assert why.reasons[0].kind == "scheduled"
    assert why.reasons[0].earliest == job.run_at


def test_bulk_calls_go_over_all_that_match(t: Tenure) -> None:
    t.push_many({"queue": "q", "labels": {"half": str(n % 2)}} for n in range(1500))
    assert t.jobs.cancel_many(queue="q", label="half:0").done == 750
    assert t.jobs.retry_many(queue="q", state="cancelled").done == 750
    assert t.jobs.delete_many(queue="q").done == 1500


def test_a_bulk_call_without_a_filter_is_refused(m: Tenure) -> None:
    m.push("q")
    with pytest.raises(errors.InvalidField):
        m.jobs.cancel_many()
    assert next(m.jobs.list()).state == "ready"


def test_failures_since_a_moment_are_counted(m: Tenure) -> None:
    m.push("q", retry=1)
    end(m, "q", "failed", error="http 500")
    now = datetime.now(timezone.utc)
    hour = timedelta(hours=1)
    assert [each.count for each in m.jobs.failures(finished_after=now - hour)] == [1]
    assert m.jobs.failures(finished_after=(now + hour).isoformat()) == []


def test_failures_are_counted_by_their_text(t: Tenure) -> None:
    for n in range(3):
        t.push("q", id=f"f-{n}")
        end(t, "q", "failed", error=f"http {500 + n}", final=True)
    found = until(lambda: t.jobs.failures(queue="q"))
    assert [(each.error, each.count) for each in found] == [("http #", 3)]


def test_a_job_shows_its_errors_and_progress(t: Tenure) -> None:
    job = t.push("q")
    lease = take(t, "q")
    report(t, lease, {"page": 7})
    settle(t, lease, "failed", error="boom", retry_in="1h")
    shown = t.jobs.get(job.id)
    assert shown.last_progress == {"page": 7}
    assert [each["error"] for each in shown.errors] == ["boom"]


def test_fields_that_this_version_does_not_know_are_kept_in_raw(m: Tenure) -> None:
    from tenure.records import JobRecord

    job = JobRecord.read({"id": "x", "queue": "q", "colour": "red"})
    assert (job.id, job.raw["colour"]) == ("x", "red")


def test_a_result_is_had_from_the_job_itself(m: Tenure) -> None:
    job = m.push("q")
    with pytest.raises(errors.NotFinished):
        job.get(timeout="50ms")
    end(m, "q", result="seven")
    assert job.get(timeout=10) == "seven"
    failed = m.push("q", retry={"max_attempts": 1})
    end(m, "q", "failed", error="no such page")
    with pytest.raises(errors.JobFailed, match="no such page"):
        failed.get(10)


def test_progress_is_followed_until_the_job_ends(t: Tenure) -> None:
    job = t.push("reports")
    seen: list[Any] = []
    lease = take(t, "reports")
    following = job.progress(timeout=30)
    for page in (1, 1, 2):
        report(t, lease, {"page": page})
        if {"page": page} not in seen:
            seen.append(next(following))
    settle(t, lease, "succeeded")
    assert seen == [{"page": 1}, {"page": 2}]
    assert list(following) == []
    # Whoever comes later has the last one.
    assert list(t.jobs.progress(job.id)) == [{"page": 2}]


def test_progress_ends_when_its_timeout_is_over(t: Tenure) -> None:
    assert list(t.push("reports").progress(timeout=0.05)) == []
    with pytest.raises(errors.JobNotFound):
        list(t.jobs.progress("nobody"))


def test_progress_is_followed_in_a_coroutine(t: Tenure, shared_server: Server) -> None:
    job = t.push("reports")
    lease = take(t, "reports")
    report(t, lease, {"page": 1})

    async def follow() -> list[Any]:
        async with AsyncTenure(t._settings.url, namespace=t._settings.namespace) as client:
            seen = []
            async for progress in (await client.jobs.get(job.id)).progress():
                seen.append(progress)
                settle(t, lease, "succeeded")
            return seen

    assert asyncio.run(follow()) == [{"page": 1}]
