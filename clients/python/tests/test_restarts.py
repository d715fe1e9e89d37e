"""The server is killed, hangs or drains in the middle of calls."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Optional

import pytest

from conftest import Server, until
from tenure import AsyncTenure, Tenure, errors
from test_jobs import end


@pytest.fixture(params=["file", "redis"])
def server(
    request: pytest.FixtureRequest, folder: Path, redis_url: Optional[str], namespace: str
) -> Iterator[Server]:
    """A server that the test may kill, on each store that outlives it."""
    if request.param == "file":
        store = f"file:{folder / namespace}"
    elif redis_url is None:
        pytest.skip("there is no redis-server here")
    else:
        store = redis_url
    made = Server(store, folder).start()
    try:
        yield made
    finally:
        made.kill()


def restart_in(server: Server, seconds: float) -> threading.Timer:
    """Kill the server now, and start it again in a moment."""
    server.kill()
    timer = threading.Timer(seconds, server.start)
    timer.start()
    return timer


def test_a_push_rides_out_a_restart(server: Server, namespace: str) -> None:
    with Tenure(server.url, namespace=namespace, retry_for=30) as client:
        client.push("q", id="before")
        timer = restart_in(server, 0.5)
        client.push("q", id="after")
        timer.join()
        assert {job.id for job in client.jobs.list()} == {"before", "after"}


def test_a_wait_for_a_result_goes_on_over_a_restart(server: Server, namespace: str) -> None:
    with Tenure(server.url, namespace=namespace, retry_for=30) as client:
        job = client.push("q")
        found: list[Any] = []
        waiter = threading.Thread(target=lambda: found.append(job.wait(30)))
        waiter.start()
        until(lambda: client.stats().raw.get("result_waiters", 1))
        restart_in(server, 0.3).join()
        end(client, "q", result=7)
        waiter.join(20)
        assert found[0].get() == 7


def waits(client: Tenure) -> list[tuple[str, Any]]:
    """What may wait for a job of a queue, or for its flow or lock, for 30 s."""
    job = client.push("q", flow="f")
    return [
        ("get", lambda: job.get(30)),
        ("wait", lambda: job.wait(30).get()),
        ("progress", lambda: list(job.progress(30)) or 7),
        ("flow", lambda: client.flows.wait("f", 30).finished and 7),
        ("lock", lambda: locked(client)),
    ]


def locked(client: Tenure) -> int:
    with client.lock("l", wait="30s", ttl="10s"):
        return 7


@pytest.mark.parametrize("what", range(5))
def test_a_wait_outlasts_a_short_patience(own_server: Server, namespace: str, what: int) -> None:
    with (
        Tenure(own_server.url, namespace=namespace, retry_for=30) as client,
        Tenure(own_server.url, namespace=namespace, retry_for=0.2) as impatient,
        ExitStack() as held,
    ):
        held.enter_context(client.lock("l", wait="5s", ttl="20s"))
        name, call = waits(impatient)[what]
        found: list[Any] = []
        waiter = threading.Thread(target=lambda: found.append(call()))
        waiter.start()
        if name == "lock":
            until(lambda: client.limits.get("lock:l").waiting == 1)
        else:
            until(lambda: client.stats().raw.get("result_waiters"))
        restart_in(own_server, 1.5).join()
        end(client, "q", result=7)
        held.close()
        waiter.join(20)
        assert found == [7], name


def test_a_wait_in_a_coroutine_outlasts_a_short_patience(own_server: Server) -> None:
    async def main() -> Any:
        async with AsyncTenure(own_server.url, retry_for=0.2) as impatient:
            job = await impatient.push("q")
            waiter = asyncio.ensure_future(job.get(30))
            await asyncio.sleep(0)
            with Tenure(own_server.url, retry_for=30) as client:
                await asyncio.to_thread(until, lambda: client.stats().raw.get("result_waiters"))
                timer = restart_in(own_server, 1.5)
                await asyncio.to_thread(timer.join)
                await asyncio.to_thread(end, client, "q", result=7)
            return await waiter

    assert asyncio.run(main()) == 7


def test_events_go_on_over_a_restart(server: Server, namespace: str) -> None:
    with Tenure(server.url, namespace=namespace, retry_for=30) as client:
        events = client.events(since=client.last_event(), type="job.pushed")
        client.push("q", id="before")
        assert next(events).job == "before"
        restart_in(server, 0.3).join()
        client.push("q", id="after")
        assert next(events).job == "after"


def test_a_guard_keeps_its_lease_over_a_restart(server: Server, namespace: str) -> None:
    with Tenure(server.url, namespace=namespace, retry_for=30) as client:
        with client.lock("deploy", wait="5s", ttl="6s") as lease:
            restart_in(server, 0.3).join()
            held = client.limits.get("lock:deploy")
            assert [each["lease"] for each in held.holders] == [lease.id]
            assert not lease.lost.is_set()
        assert client.limits.get("lock:deploy").in_use == 0


def test_a_lock_waiter_gets_the_lock_after_a_restart(server: Server, namespace: str) -> None:
    with Tenure(server.url, namespace=namespace, retry_for=30) as client:
        got = threading.Event()

        def wait() -> None:
            with client.lock("deploy", wait="30s", ttl="10s"):
                got.set()

        with client.lock("deploy", wait="5s", ttl="10s"):
            waiter = threading.Thread(target=wait)
            waiter.start()
            until(lambda: client.limits.get("lock:deploy").waiting == 1)
            restart_in(server, 0.3).join()
            assert not got.is_set()
        assert got.wait(15)
        waiter.join()


def test_a_patience_that_is_over_is_told(own_server: Server) -> None:
    with Tenure(own_server.url, retry_for=0.3) as client:
        client.stats()
        own_server.kill()
        began = time.monotonic()
        with pytest.raises((errors.Unreachable, errors.OutcomeUnknown)):
            client.push("q")
        assert time.monotonic() - began < 5


def test_an_asyncio_call_rides_out_a_restart(own_server: Server) -> None:
    async def main() -> None:
        async with AsyncTenure(own_server.url, retry_for=30) as client:
            await client.push("q", id="before")
            timer = restart_in(own_server, 0.5)
            await client.push("q", id="after")
            timer.join()
            assert {job.id async for job in client.jobs.list()} == {"before", "after"}

    asyncio.run(main())


def test_a_server_that_hangs_makes_a_guard_lose_before_its_ttl(own_server: Server) -> None:
    with Tenure(own_server.url, retry_for=10) as client:
        began = time.monotonic()
        with client.lock("deploy", wait="5s", ttl="2s") as lease:
            own_server.pause()
            paused = time.monotonic()
            try:
                assert lease.lost.wait(5)
                # Counted from the last answered call, which was sent between the two moments.
                lost = time.monotonic()
                assert lost - began > 1.0
                assert lost - paused < 2.0
            finally:
                own_server.go_on()


def test_a_draining_server_hands_over_to_the_next(own_server: Server) -> None:
    with Tenure(own_server.url, retry_for=30) as client:
        client.push("q", id="kept")
        own_server.terminate()
        timer = threading.Timer(0.3, own_server.start)
        timer.start()
        assert client.jobs.get("kept").id == "kept"
        timer.join()
