"""The client for asyncio: the same calls, awaited."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Callable

import pytest

from conftest import Server
from tenure import AsyncTenure, Tenure, errors

Run = Callable[[Callable[[AsyncTenure], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture
def run(shared_server: Server, namespace: str) -> Run:
    """Run a coroutine with a client, on each store."""

    def runner(main: Callable[[AsyncTenure], Coroutine[Any, Any, Any]]) -> Any:
        async def whole() -> Any:
            async with AsyncTenure(shared_server.url, namespace=namespace, retry_for=15) as client:
                return await main(client)

        return asyncio.run(whole())

    return runner


def test_an_awaited_push_is_a_job_that_is_waited_for(run: Run, t: Tenure) -> None:
    from test_jobs import end

    async def main(client: AsyncTenure) -> Any:
        job = await client.push("q", {"n": 1})
        await asyncio.to_thread(end, t, "q", "succeeded", result=7)
        return (await job.wait(10)).get()

    assert run(main) == 7


def test_an_awaited_refusal_is_the_exception_of_its_code(run: Run) -> None:
    async def main(client: AsyncTenure) -> None:
        with pytest.raises(errors.OutOfBounds):
            await client.push("q", priority=1000)
        with pytest.raises(errors.JobNotFound):
            await client.jobs.get("nobody")

    run(main)


def test_an_asynchronous_list_goes_over_its_pages(run: Run) -> None:
    async def main(client: AsyncTenure) -> int:
        await client.push_many({"queue": "q"} for _ in range(450))
        return len([job async for job in client.jobs.list()])

    assert run(main) == 450


def test_an_odd_id_goes_through_httpx_as_it_is(run: Run) -> None:
    odd = "a/b?c=d&e#f g%2F+ü"

    async def main(client: AsyncTenure) -> tuple[str, str]:
        await client.push("q", id=odd)
        return (await client.jobs.get(odd)).id, (await client.explain(odd)).id

    assert run(main) == (odd, odd)


def test_events_are_iterated_over_asynchronously(run: Run) -> None:
    async def main(client: AsyncTenure) -> Any:
        since = await client.last_event()
        await client.push("q", id="x")
        async for event in client.events(since=since):
            return event.job

    assert run(main) == "x"


def test_many_calls_of_one_loop_go_at_once(run: Run) -> None:
    async def main(client: AsyncTenure) -> int:
        await asyncio.gather(*(client.push("q", n) for n in range(100)))
        return (await client.stats()).jobs["ready"]

    assert run(main) == 100


def test_a_wait_that_is_cancelled_leaves_the_client_usable(run: Run) -> None:
    async def main(client: AsyncTenure) -> str:
        job = await client.push("q")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(job.wait(30), 0.1)
        return (await client.jobs.get(job.id)).state

    assert run(main) == "ready"


def test_both_clients_have_the_same_methods() -> None:
    def names(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert names(Tenure) == names(AsyncTenure)
    one, other = Tenure("http://127.0.0.1:1"), AsyncTenure("http://127.0.0.1:1")
    for part in ("jobs", "queues", "limits", "pools", "schedules", "flows"):
        mine, theirs = type(getattr(one, part)), type(getattr(other, part))
        assert names(mine) == names(theirs)
        assert len(names(mine)) >= 5


def test_every_public_method_says_what_it_does() -> None:
    client = Tenure("http://127.0.0.1:1")
    parts = [
        client,
        *(value for value in vars(client).values() if "Part" in str(type(value).mro())),
    ]
    assert len(parts) == 7
    for part in parts:
        for name in dir(type(part)):
            if not name.startswith("_"):
                assert inspect.getdoc(getattr(part, name)), name


def test_the_plain_client_needs_nothing_but_python() -> None:
    code = (
        "import tenure\n"
        "tenure.Tenure('http://127.0.0.1:1'); tenure.App()\n"
        "try: tenure.AsyncTenure('http://127.0.0.1:1')\n"
        "except ImportError as error: print(error)\n"
    )
    # -S: no package that is installed can be imported.
    told = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(Path(__file__).parents[1] / "src")},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "pip install httpx" in told
