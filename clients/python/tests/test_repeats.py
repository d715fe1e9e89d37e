"""Lost answers: what a call did is done once, and its caller hears how it went."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from conftest import Server
from proxy import Proxy
from tenure import AsyncTenure, Tenure, errors
from test_jobs import end


def test_a_push_whose_answer_was_lost_is_one_job(p: Tenure, proxy: Proxy) -> None:
    proxy.spoil("lose", "POST", "/v1/jobs", times=2)
    job = p.push("q", {"n": 1})
    assert (proxy.count("POST", "/v1/jobs"), proxy.left()) == (3, 0)
    assert [each.id for each in p.jobs.list()] == [job.id]


def test_a_repeat_is_the_same_request_to_the_byte(p: Tenure, proxy: Proxy) -> None:
    proxy.spoil("lose", "POST", "/v1/jobs")
    p.push("q", {"n": 1}, delay=5)
    assert len(set(proxy.bodies)) == 1 and len(proxy.bodies) == 2


def test_half_an_answer_is_no_answer(p: Tenure, proxy: Proxy) -> None:
    proxy.spoil("half", "POST", "/v1/jobs")
    p.push("q")
    assert p.stats().jobs["ready"] == 1


def test_a_request_that_never_arrived_is_sent_again(p: Tenure, proxy: Proxy) -> None:
    proxy.spoil("refuse", "POST", "/v1/jobs", times=3)
    p.push("q")
    assert p.stats().jobs["ready"] == 1


def test_an_array_whose_answer_was_lost_is_stored_once(p: Tenure, proxy: Proxy) -> None:
    proxy.spoil("lose", "POST", "/v1/jobs")
    jobs = p.push_all([{"queue": "q"}, {"queue": "q"}])
    assert {each.id for each in p.jobs.list()} == {job.id for job in jobs}


def test_portions_whose_answers_were_lost_are_stored_once(p: Tenure, proxy: Proxy) -> None:
    proxy.spoil("lose", "POST", "/v1/jobs", times=2)
    pushed = p.push_many({"queue": "q"} for _ in range(1100))
    assert pushed.count == 1100
    assert p.queues.get("q").counts["ready"] == 1100


def test_a_delete_whose_answer_was_lost_is_done(p: Tenure, proxy: Proxy) -> None:
    job = p.push("q")
    proxy.spoil("lose", "DELETE", "/v1/jobs")
    p.jobs.delete(job.id)
    assert list(p.jobs.list()) == []


def test_a_retry_whose_answer_was_lost_is_done_once(p: Tenure, proxy: Proxy) -> None:
    job = p.push("q")
    end(p, "q", "failed", error="boom", final=True)
    proxy.spoil("lose", "POST", f"/v1/jobs/{job.id}/retry")
    assert p.jobs.retry(job.id).state == "ready"
    assert proxy.count("POST", f"/v1/jobs/{job.id}/retry") == 2


def test_a_lost_retry_is_not_repeated_on_a_job_that_failed_again(
    p: Tenure, m: Tenure, proxy: Proxy
) -> None:
    job = p.push("q")
    end(p, "q", "failed", error="first", final=True)
    proxy.after_loss = lambda: end(m, "q", "failed", error="second", final=True)
    proxy.spoil("lose", "POST", f"/v1/jobs/{job.id}/retry")
    shown = p.jobs.retry(job.id)
    assert proxy.count("POST", f"/v1/jobs/{job.id}/retry") == 2
    assert (shown.state, shown.error) == ("failed", "second")


def test_a_run_now_whose_answer_was_lost_makes_one_job(p: Tenure, proxy: Proxy) -> None:
    p.schedules.set("s", every="1h", overlap="allow", job={"queue": "q"})
    proxy.spoil("lose", "POST", "/v1/schedules/s/run-now")
    job = p.schedules.run_now("s")
    assert [each.id for each in p.jobs.list()] == [job.id]


def test_a_bulk_retry_is_not_repeated_when_a_repeat_could_do_more(p: Tenure, proxy: Proxy) -> None:
    job = p.push("q")
    p.jobs.cancel(job.id)
    proxy.spoil("lose", "POST", "/v1/jobs/retry")
    with pytest.raises(errors.OutcomeUnknown, match="may have been carried out"):
        p.jobs.retry_many(queue="q")
    assert proxy.count("POST", "/v1/jobs/retry") == 1


def test_a_bulk_retry_of_a_closed_window_is_repeated(p: Tenure, proxy: Proxy) -> None:
    job = p.push("q")
    p.jobs.cancel(job.id)
    proxy.spoil("lose", "POST", "/v1/jobs/retry")
    p.jobs.retry_many(queue="q", finished_before="2100-01-01T00:00:00Z")
    assert p.jobs.get(job.id).state == "ready"


SETTERS: list[tuple[str, Callable[[Tenure], Any], Callable[[Tenure], Any], Any]] = [
    ("PUT", lambda t: t.limits.replace("x", concurrency=3),
     lambda t: t.limits.get("x").concurrency, 3),
    ("PATCH", lambda t: t.queues.set("x", max_waiting=3),
     lambda t: t.queues.get("x").max_waiting, 3),
    ("POST", lambda t: t.queues.pause("x"), lambda t: t.queues.get("x").paused, True),
    ("PUT", lambda t: t.pools.sync("x", [{"id": "a", "data": 1}], version=5),
     lambda t: t.pools.get("x").available, 1),
    ("PUT", lambda t: t.schedules.sync("x", [{"id": "a", "every": "1h", "job": {}}], version=5),
     lambda t: len(list(t.schedules.list(owner="x"))), 1),
]  # fmt: skip


@pytest.mark.parametrize(("method", "do", "look", "is_now"), SETTERS, ids=range(len(SETTERS)))
def test_a_setting_whose_answer_was_lost_is_set(
    p: Tenure, proxy: Proxy, method: str, do: Any, look: Any, is_now: Any
) -> None:
    p.queues.set("x")
    proxy.spoil("lose", method, "/v1/")
    do(p)
    assert proxy.left() == 0
    assert look(p) == is_now


def test_a_lock_whose_grant_was_lost_is_held_once_and_given_back(p: Tenure, proxy: Proxy) -> None:
    proxy.spoil("lose", "POST", "/v1/leases")
    with p.lock("deploy", wait="5s") as lease:
        held = p.limits.get("lock:deploy")
        assert held.in_use == 1
        assert [each["lease"] for each in held.holders] == [lease.id]
    assert p.limits.get("lock:deploy").in_use == 0


def test_a_release_whose_answer_was_lost_is_done(
    p: Tenure, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    with p.lock("deploy", wait="5s"):
        proxy.spoil("lose", "POST", "/v1/leases/settle")
    assert proxy.count("POST", "/v1/leases/settle") == 2
    assert p.limits.get("lock:deploy").in_use == 0
    assert caplog.text == ""


def test_a_wait_for_a_result_goes_on_after_a_lost_answer(p: Tenure, proxy: Proxy) -> None:
    job = p.push("q")
    end(p, "q", result=7)
    proxy.spoil("lose", "GET", f"/v1/jobs/{job.id}/result")
    assert job.wait(10).get() == 7


@pytest.mark.parametrize("how", ["refuse", "answer 503 0"])
def test_a_wait_that_is_asked_again_ends_at_its_own_deadline(
    p: Tenure, proxy: Proxy, how: str
) -> None:
    job = p.push("q")
    proxy.spoil(how, "GET", f"/v1/jobs/{job.id}/result")
    assert not job.wait(1).finished
    asked = [path for method, path in proxy.seen if method == "GET"]
    # The first one waits for what is left of a second; the second one only sees that the server is
    # back.
    assert [path.endswith("?wait=0s") for path in asked[:2]] == [False, True]


def test_events_are_neither_lost_nor_doubled_by_a_lost_answer(p: Tenure, proxy: Proxy) -> None:
    since = p.last_event()
    for n in range(3):
        p.push("q", id=f"e-{n}")
    proxy.spoil("lose", "GET", "/v1/events", times=2)
    found = p.events(since=since, type="job.pushed", wait="100ms")
    assert [event.job for event in found] == ["e-0", "e-1", "e-2"]


def test_retry_after_is_waited_for(p: Tenure, proxy: Proxy) -> None:
    proxy.spoil("answer 503 1", "GET", "/v1/stats")
    began = time.monotonic()
    p.stats()
    assert time.monotonic() - began >= 1.0


def test_a_retry_after_beyond_the_patience_is_told_at_once(proxy: Proxy) -> None:
    with Tenure(proxy.url, retry_for=2) as client:
        proxy.spoil("answer 503 3600", "GET", "/v1/stats")
        began = time.monotonic()
        with pytest.raises(errors.Draining) as refused:
            client.stats()
    assert refused.value.retry_after == 3600
    assert time.monotonic() - began < 2


def test_a_refusal_is_not_repeated(p: Tenure, proxy: Proxy) -> None:
    with pytest.raises(errors.OutOfBounds):
        p.push("q", priority=1000)
    assert proxy.count("POST", "/v1/jobs") == 1


def test_connections_are_kept(memory_server: Server, namespace: str) -> None:
    with Tenure(memory_server.url, namespace=namespace) as client:
        client.stats()
        (kept,) = client._transport._idle
        for _ in range(10):
            client.push("q")
        assert client._transport._idle == [kept]


def test_many_threads_share_a_client(m: Tenure) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(16) as threads:
        ids = list(threads.map(lambda n: m.push("q", n).id, range(200)))
    assert {job.id for job in m.jobs.list()} == set(ids)


def test_a_forked_child_opens_connections_of_its_own(m: Tenure) -> None:
    import os

    m.stats()
    child = os.fork()
    if child == 0:
        try:
            m.push("q", id="from-child")
            os._exit(0)
        finally:
            os._exit(1)
    m.push("q", id="from-parent")
    assert os.waitpid(child, 0)[1] == 0
    assert {job.id for job in m.jobs.list()} == {"from-child", "from-parent"}


def test_an_asyncio_push_whose_answer_was_lost_is_one_job(proxy: Proxy, namespace: str) -> None:
    async def main() -> None:
        async with AsyncTenure(proxy.url, namespace=namespace, retry_for=10) as client:
            proxy.spoil("lose", "POST", "/v1/jobs", times=2)
            job = await client.push("q")
            assert [each.id async for each in client.jobs.list()] == [job.id]

    asyncio.run(main())


def test_an_asyncio_lock_whose_grant_was_lost_is_held_once(proxy: Proxy, namespace: str) -> None:
    async def main() -> None:
        async with AsyncTenure(proxy.url, namespace=namespace, retry_for=10) as client:
            proxy.spoil("lose", "POST", "/v1/leases")
            async with client.lock("deploy", wait="5s"):
                assert (await client.limits.get("lock:deploy")).in_use == 1
            assert (await client.limits.get("lock:deploy")).in_use == 0

    asyncio.run(main())
