"""What type checkers know of handlers. mypy and basedpyright read this file; pytest runs it too."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from conftest import Server
from tenure import App, AsyncJob, Context, Job, Tenure
from tenure.testing import run_until_idle

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value: Any, kind: Any) -> Any:
        return value


@dataclass
class Page:
    url: str


app = App(owner="types")


@app.job("types")
def nothing() -> dict[str, Any]:
    return {"a": 1}


@app.job("types")
def plain(month: str, copies: int = 1) -> str:
    return f"{copies} of {month}"


@app.job("types")
def first(ctx: Context, page: Page) -> dict[str, Any]:
    return {"url": page.url, "attempt": ctx.attempt}


@app.job("types")
def last(month: str, ctx: Context) -> str:
    return f"{month} {ctx.attempt}"


@app.job("types")
def keyword(month: str, copies: int = 1, *, ctx: Context) -> str:
    return f"{copies} of {month} {ctx.attempt}"


@app.job("types")
def alone(*, ctx: Context) -> int:
    return ctx.attempt


@app.job("types")
async def later_alone(*, ctx: Context) -> int:
    return ctx.attempt


@app.job("types")
def three(a: str, b: int, c: float, ctx: Context) -> float:
    return len(a) + b + c + ctx.attempt


@app.job("types")
async def later(ctx: Context, month: str) -> list[str]:
    return [month] * ctx.attempt


@app.job("types")
async def later_last(month: str, ctx: Context) -> dict[str, Any]:
    return {month: ctx.attempt}


@app.job("types")
async def later_nothing() -> int:
    return 7


@app.job("types")
def bare(ctx: Context) -> dict:  # type: ignore[type-arg]
    return {"attempt": ctx.attempt}


@pytest.fixture(autouse=True)
def _here(memory_server: Server, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_URL", memory_server.url)
    monkeypatch.setenv("TENURE_NAMESPACE", namespace)


def test_a_handler_s_job_has_the_type_of_what_it_returns() -> None:
    made = (
        assert_type(nothing.push(), Job[dict[str, Any]]),
        assert_type(plain.push("may", copies=2), Job[str]),
        assert_type(first.push(Page("x")), Job[dict[str, Any]]),
        assert_type(first.push(page=Page("x")), Job[dict[str, Any]]),
        assert_type(last.push("may"), Job[str]),
        assert_type(last.push(month="may"), Job[str]),
        assert_type(keyword.push("may", copies=3), Job[str]),
        assert_type(three.push("a", 2, c=0.5), Job[float]),
        assert_type(alone.push(), Job[int]),
        assert_type(later_alone.push(), Job[int]),
        assert_type(later.push(month="may"), Job[list[str]]),
        assert_type(later_last.push("may"), Job[dict[str, Any]]),
        assert_type(later_nothing.push(), Job[int]),
        assert_type(plain.options(delay="0s").push("may"), Job[str]),
        assert_type(last.options(delay="0s").push("may"), Job[str]),
    )
    run_until_idle(app)
    assert_type(made[1].get(5), str)
    assert_type(made[1].wait(5).get(), str)
    assert [job.get(5) for job in made] == [
        {"a": 1}, "2 of may", {"url": "x", "attempt": 1}, {"url": "x", "attempt": 1},
        "may 1", "may 1", "3 of may 1", 4.5, 1, 1, ["may"], {"may": 1}, 7, "1 of may", "may 1",
    ]  # fmt: skip
    if TYPE_CHECKING:
        assert_type(bare.push(), Job[dict[Any, Any]])  # pyright: ignore[reportAssertTypeFailure]


def test_a_coroutine_pushes_by_apush() -> None:
    async def main() -> AsyncJob[str]:
        job = assert_type(await last.apush("may"), AsyncJob[str])
        assert_type(await later.options(priority=5).apush("may"), AsyncJob[list[str]])
        assert_type(await later.apush(month="may"), AsyncJob[list[str]])
        assert_type(await nothing.apush(), AsyncJob[dict[str, Any]])
        await asyncio.to_thread(run_until_idle, app)
        assert assert_type(await job.get(5), str) == "may 1"
        await app.async_client.close()
        return job

    asyncio.run(main())


def test_a_call_has_the_types_of_the_function() -> None:
    assert assert_type(plain("may"), str) == "1 of may"
    assert asyncio.run(later_nothing()) == 7


def test_wrong_arguments_are_found_by_type_checkers_and_by_the_push(tenure: Tenure) -> None:
    # mypy's `warn_unused_ignores` makes each of these an error if it were none.
    with pytest.raises(TypeError):
        nothing.push(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        plain.push()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        plain.push("may", copy=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        first.push(Page("x"), 2)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        plain.options(dealy="5s")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        app.job("types", dealy="5s")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        tenure.push("types", dealy="5s")  # type: ignore[call-arg]
    if TYPE_CHECKING:
        plain.push(7)  # type: ignore[arg-type]
        first.push("x")  # type: ignore[call-overload]
        last.push(7)  # type: ignore[call-overload]
        last.push(month=7)  # type: ignore[call-overload]
        keyword.push(7.5)  # type: ignore[call-overload]
        later.push(7)  # type: ignore[call-overload]
        alone.push(7)  # type: ignore[call-overload]
        three.push("a", b"")  # type: ignore[call-overload]
        plain.options(delay="5s").push(7)  # type: ignore[arg-type]
        plain.options(priority="high")  # type: ignore[arg-type]
        app.job("types", priority="high")  # type: ignore[arg-type]
    assert list(tenure.jobs.list()) == []
