"""Guards: places in line, extends, losses, verdicts."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Any

import pytest

from conftest import Server, until
from proxy import Proxy
from tenure import AsyncTenure, Tenure, errors, limit, pool


def test_a_lock_is_held_by_one_and_given_back(t: Tenure) -> None:
    with t.lock("deploy", wait="5s") as lease:
        assert lease.limits == ["lock:deploy"]
        assert t.limits.get("lock:deploy").in_use == 1
    assert t.limits.get("lock:deploy").in_use == 0
    # Nothing is extended any more.
    assert len(t._keeper._holdings) == 0


def test_a_lock_is_given_back_when_its_block_raises(t: Tenure) -> None:
    with pytest.raises(KeyError):
        with t.lock("deploy", wait="5s"):
            raise KeyError("boom")
    assert t.limits.get("lock:deploy").in_use == 0


def test_a_lock_that_is_taken_is_not_granted_and_names_its_holder(t: Tenure) -> None:
    with t.lock("deploy", wait="5s", worker="ann"):
        began = time.monotonic()
        with pytest.raises(errors.NotGranted) as refused:
            with t.lock("deploy", wait="300ms"):
                pass
        assert 0.3 <= time.monotonic() - began < 5
    assert 'could not get lock "deploy" within 300ms' in str(refused.value)
    assert "held by ann" in str(refused.value)


def test_a_holder_that_is_a_process_is_named_by_its_host_and_pid(t: Tenure) -> None:
    with t.lock("deploy", wait="5s"):
        with pytest.raises(errors.NotGranted, match=rf"held by [\w.-]+:{os.getpid()} "):
            with t.lock("deploy", wait=0):
                pass


def test_a_wait_of_nothing_tries_once(t: Tenure) -> None:
    with t.lock("deploy", wait=0):
        with pytest.raises(errors.NotGranted):
            with t.lock("deploy", wait="0s"):
                pass


def test_fences_only_grow(t: Tenure) -> None:
    fences = []
    for _ in range(3):
        with t.lock("deploy", wait="5s") as lease:
            fences.append(lease.fence)
    assert fences == sorted(set(fences))


def test_a_lock_waiter_gets_the_lock_at_its_release(t: Tenure) -> None:
    order: list[str] = []

    def wait() -> None:
        with t.lock("deploy", wait="10s"):
            order.append("second")

    with t.lock("deploy", wait="5s"):
        waiter = threading.Thread(target=wait)
        waiter.start()
        until(lambda: t.limits.get("lock:deploy").waiting == 1)
        order.append("first")
    waiter.join(5)
    assert order == ["first", "second"]


def test_a_place_in_line_is_kept_over_many_slices(
    t: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    got: list[str] = []
    send = t._transport.send

    def count(made: Any) -> Any:
        if made.path == "/v1/leases":
            asked.append(threading.current_thread().name)
        return send(made)

    monkeypatch.setattr(t._transport, "send", count)

    def wait(ttl: str) -> None:
        # A slice is a sixth of the ttl: the first asks again and again while the others wait on.
        with t.lock("deploy", wait="30s", ttl=ttl):
            got.append(threading.current_thread().name)

    def line() -> list[str]:
        return [str(each["since"]) for each in t.limits.get("lock:deploy").line]

    waiters = []
    with t.lock("deploy", wait="5s"):
        for name, ttl in [("ann", "1s"), ("bob", "1m"), ("cat", "1m")]:
            waiters.append(threading.Thread(target=wait, args=(ttl,), name=name))
            waiters[-1].start()
            until(lambda: len(line()) == len(waiters))
        before = line()
        until(lambda: asked.count("ann") >= 4)
        # Nobody has moved: the line is ordered by the first asking of each wait.
        until(lambda: line() == before)
    for waiter in waiters:
        waiter.join(10)
    assert sorted(got) == ["ann", "bob", "cat"]


def test_all_needs_are_granted_in_one_step(t: Tenure) -> None:
    t.limits.set("site:*", concurrency=1)
    t.pools.sync("accounts", [{"id": "ann", "tags": ["cn"], "data": {"pw": "x"}}])
    with t.acquire(limit("site:x"), pool("accounts", tag="cn"), wait="5s") as lease:
        assert lease.limits == ["site:x"]
        assert (lease.resource.id, lease.resource.data) == ("ann", {"pw": "x"})
    with t.lock("only", wait="5s") as lease:
        with pytest.raises(LookupError, match="pool"):
            _ = lease.resource


def test_what_waits_holds_nothing(t: Tenure) -> None:
    t.limits.set("a", concurrency=1)
    t.limits.set("b", concurrency=1)
    with t.acquire(limit("a"), wait="5s"):
        with pytest.raises(errors.NotGranted, match='limit "b" and limit "a"'):
            with t.acquire(limit("b"), limit("a"), wait="200ms"):
                pass
        with t.acquire(limit("b"), wait="1s"):
            pass


def test_several_resources_come_with_count(t: Tenure) -> None:
    t.pools.sync("proxies", [{"id": str(n), "data": n} for n in range(3)])
    with t.acquire(pool("proxies", count=2), wait="5s") as lease:
        assert len({resource.id for resource in lease.resources}) == 2


def test_a_ban_is_told_at_the_end_of_the_block(t: Tenure) -> None:
    t.pools.sync("accounts", [{"id": "ann", "data": {}}])
    with t.acquire(pool("accounts"), wait="5s") as lease:
        lease.ban("captcha")
    shown = t.pools.resource("accounts", "ann")
    assert (shown.state, shown.reason) == ("banned", "captcha")


def test_a_ban_is_told_when_the_block_raises(t: Tenure) -> None:
    t.pools.sync("accounts", [{"id": "ann", "data": {}}])
    with pytest.raises(RuntimeError):
        with t.acquire(pool("accounts"), wait="5s") as lease:
            lease.ban("captcha")
            raise RuntimeError("captcha")
    assert t.pools.resource("accounts", "ann").state == "banned"


def test_a_resource_cools_and_a_limit_is_paused_at_the_end(t: Tenure) -> None:
    t.pools.sync("accounts", [{"id": "ann", "data": {}}])
    t.limits.set("site:*", concurrency=1)
    with t.acquire(pool("accounts"), limit("site:x"), wait="5s") as lease:
        lease.cool("1h")
        lease.pause("site:x", "1h")
    assert t.pools.resource("accounts", "ann").state == "cooling"
    assert t.limits.get("site:x").paused_until is not None


def test_a_block_that_lasts_many_ttls_keeps_its_lease(t: Tenure) -> None:
    with t.lock("deploy", wait="5s", ttl="1s") as lease:
        assert not lease.lost.wait(3)
        assert [h["lease"] for h in t.limits.get("lock:deploy").holders] == [lease.id]


def test_a_lease_that_was_taken_away_is_lost(t: Tenure, caplog: pytest.LogCaptureFixture) -> None:
    with t.lock("deploy", wait="5s", ttl="1s") as lease:
        t.force_lease(lease.id)
        assert lease.lost.wait(5)
    assert "was lost before its block ended, and is not given back" in caplog.text


def test_an_end_that_comes_late_does_not_end_the_lease_of_another(t: Tenure) -> None:
    first = t.lock("deploy", wait="5s", ttl="30s")
    lease = first.__enter__()
    t.force_lease(lease.id)
    with t.lock("deploy", wait="5s") as second:
        first.__exit__(None, None, None)
        assert [h["lease"] for h in t.limits.get("lock:deploy").holders] == [second.id]


def test_nothing_to_ask_for_is_a_mistake(m: Tenure) -> None:
    with pytest.raises(ValueError, match="ask for something"):
        m.acquire()


@pytest.mark.parametrize(
    ("needs", "kind"),
    [
        ([limit("no-such")], errors.UnknownLimit),
        ([pool("no-such")], errors.UnknownPool),
        ([limit("lock:a", weight=2)], errors.NeverFits),
    ],
)
def test_what_can_never_be_is_refused_at_once(m: Tenure, needs: Any, kind: Any) -> None:
    with pytest.raises(kind):
        with m.acquire(*needs, wait="30s"):
            pass


def test_a_ttl_out_of_bounds_is_refused(m: Tenure) -> None:
    with pytest.raises(errors.OutOfBounds):
        with m.lock("a", ttl="10ms"):
            pass


def test_a_client_that_was_closed_holds_leases_again(m: Tenure) -> None:
    with m.lock("a", wait="5s"):
        pass
    m.close()
    with m.lock("a", wait="5s", ttl="2s") as lease:
        assert not lease.lost.wait(2.5)
        assert [h["lease"] for h in m.limits.get("lock:a").holders] == [lease.id]


def test_a_forked_child_keeps_its_own_leases_and_not_its_parents(m: Tenure) -> None:
    import os

    with m.lock("mine", wait="5s", ttl="2s") as lease:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with m.lock("yours", wait="5s", ttl="2s") as own:
                    lost = own.lost.wait(2.5)
                    held = [h["lease"] for h in m.limits.get("lock:yours").holders]
                    code = 0 if not lost and held == [own.id] else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert not lease.lost.is_set()


def test_guards_of_different_ttls_are_extended_by_one_client(m: Tenure) -> None:
    with m.lock("a", wait="5s", ttl="2s") as short, m.lock("b", wait="5s", ttl="20s") as long:
        assert not short.lost.wait(2.5)
        assert not long.lost.is_set()


def test_an_asyncio_guard_holds_and_gives_back(memory_server: Server, namespace: str) -> None:
    async def main() -> None:
        async with AsyncTenure(memory_server.url, namespace=namespace) as client:
            await client.pools.sync("accounts", [{"id": "ann", "data": {"pw": "x"}}])
            async with client.acquire(pool("accounts"), wait="5s") as lease:
                assert lease.resource.data == {"pw": "x"}
                lease.ban("captcha")
            assert (await client.pools.resource("accounts", "ann")).state == "banned"

    asyncio.run(main())


def test_an_asyncio_guard_survives_a_blocked_loop(memory_server: Server, namespace: str) -> None:
    async def main() -> None:
        async with AsyncTenure(memory_server.url, namespace=namespace) as client:
            async with client.lock("deploy", wait="5s", ttl="1s") as lease:
                time.sleep(3)  # The subject of this test: nothing of the loop runs meanwhile.
                await asyncio.sleep(0)
                assert not lease.lost.is_set()
                holders = (await client.limits.get("lock:deploy")).holders
                assert [holder["lease"] for holder in holders] == [lease.id]

    asyncio.run(main())


def test_an_asyncio_lease_that_was_taken_away_is_lost(
    memory_server: Server, namespace: str
) -> None:
    async def main() -> None:
        async with AsyncTenure(memory_server.url, namespace=namespace) as client:
            async with client.lock("deploy", wait="5s", ttl="1s") as lease:
                await client.force_lease(lease.id)
                await asyncio.wait_for(lease.lost.wait(), 5)

    asyncio.run(main())


def test_a_limit_that_a_lease_does_not_hold_is_not_paused_by_it(m: Tenure) -> None:
    with m.lock("deploy", wait="5s") as lease:
        with pytest.raises(LookupError, match="does not hold"):
            lease.pause("site:example.com", "5s")
    assert m.limits.get("lock:deploy").in_use == 0


def test_a_wait_cancelled_during_its_grant_gives_the_grant_back(
    memory_server: Server, namespace: str, m: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with AsyncTenure(memory_server.url, namespace=namespace) as client:
            answered = asyncio.Event()
            exchange = client._transport._exchange

            async def unread(*call: Any) -> Any:
                answer = await exchange(*call)
                if not answered.is_set():
                    answered.set()
                    await asyncio.sleep(60)
                return answer

            monkeypatch.setattr(client._transport, "_exchange", unread)
            task = asyncio.ensure_future(client.lock("deploy").__aenter__())
            await answered.wait()
            assert (await asyncio.to_thread(m.limits.get, "lock:deploy")).in_use == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert m.limits.get("lock:deploy").in_use == 0


def test_a_task_that_is_cancelled_at_its_grant_gives_the_lease_back(
    memory_server: Server, namespace: str, m: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with AsyncTenure(memory_server.url, namespace=namespace) as client:
            taking, cancelled = asyncio.Event(), threading.Event()
            loop, hold = asyncio.get_running_loop(), client._keeper.hold

            def slow(*args: Any, **kwargs: Any) -> bool:
                # It was granted, and the task does not have it yet.
                loop.call_soon_threadsafe(taking.set)
                assert cancelled.wait(10)
                return hold(*args, **kwargs)

            monkeypatch.setattr(client._keeper, "hold", slow)
            task = asyncio.ensure_future(client.lock("deploy").__aenter__())
            await taking.wait()
            task.cancel()
            await asyncio.sleep(0)
            cancelled.set()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert m.limits.get("lock:deploy").in_use == 0


def test_a_cancelled_task_gives_its_lease_back(memory_server: Server, namespace: str) -> None:
    async def main() -> None:
        async with AsyncTenure(memory_server.url, namespace=namespace) as client:
            inside = asyncio.Event()

            async def hold() -> None:
                async with client.lock("deploy", wait="5s"):
                    inside.set()
                    await asyncio.sleep(60)

            task = asyncio.create_task(hold())
            await asyncio.wait_for(inside.wait(), 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await client.limits.get("lock:deploy")).in_use == 0

    asyncio.run(main())


def test_tasks_of_one_loop_stand_in_one_line(memory_server: Server, namespace: str) -> None:
    async def main() -> None:
        async with AsyncTenure(memory_server.url, namespace=namespace) as client:
            inside = most = 0

            async def hold() -> None:
                nonlocal inside, most
                async with client.lock("deploy", wait="20s"):
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0.01)
                    inside -= 1

            await asyncio.gather(*(hold() for _ in range(10)))
            assert most == 1

    asyncio.run(main())


def test_a_lease_that_is_believed_lost_is_not_given_back(p: Tenure, proxy: Proxy) -> None:
    with p.lock("deploy", wait="5s", ttl="1s") as lease:
        proxy.spoil("refuse", "POST", "/v1/leases/extend", times=100)
        assert lease.lost.wait(5)
    assert proxy.count("POST", "/v1/leases/settle") == 0


def test_an_asyncio_lease_that_is_believed_lost_is_not_given_back(
    proxy: Proxy, namespace: str
) -> None:
    async def main() -> None:
        async with AsyncTenure(proxy.url, namespace=namespace) as client:
            async with client.lock("deploy", wait="5s", ttl="1s") as lease:
                proxy.spoil("refuse", "POST", "/v1/leases/extend", times=100)
                await asyncio.wait_for(lease.lost.wait(), 5)

    asyncio.run(main())
    assert proxy.count("POST", "/v1/leases/settle") == 0
