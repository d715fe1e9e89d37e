"""What a program says in passing is taken as it was meant, or refused where it stands."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Callable, Optional

import pytest

from conftest import until
from tenure import App, AsyncJob, AsyncTenure, Context, Job, Snooze, Tenure, limit
from tenure.notices import _REMEMBERED, Notices
from tenure.scarce import _resource


@pytest.mark.parametrize(
    ("row", "made"),
    [
        ({"id": "a", "tags": ["cn"]}, {"id": "a", "tags": ["cn"], "data": {}}),
        ({"id": "a", "slots": 2, "pw": "x"}, {"id": "a", "slots": 2, "data": {"pw": "x"}}),
        # A column that is called so and holds something else is data.
        (
            {"id": "a", "tags": "x", "slots": True},
            {"id": "a", "data": {"tags": "x", "slots": True}},
        ),
        ({"id": "a", "data": 1, "tags": ["cn"]}, {"id": "a", "data": 1, "tags": ["cn"]}),
    ],
)
def test_a_row_of_a_sync_keeps_its_tags_and_slots(
    row: dict[str, Any], made: dict[str, Any]
) -> None:
    assert _resource(row, "id", None) == made


def test_retry_takes_a_whole_number_and_refuses_the_rest_at_import() -> None:
    app = App()

    @app.job("q", retry=5)
    def works() -> None: ...

    assert works.spec()["retry"] == {"max_attempts": 5}
    for wrong in ("5", True, 2.5, [5]):
        with pytest.raises(TypeError, match="retry is a number of attempts"):
            app.job("q", retry=wrong)  # type: ignore[arg-type]


@dataclass
class Page:
    url: str
    depth: int = 0


def test_arguments_of_another_type_are_refused_at_the_push() -> None:
    app = App()

    @app.job("q")
    def add(a: int, *more: int, b: Optional[int] = None, ctx: Context) -> None: ...

    @app.job("q")
    def fetch(page: Page) -> None: ...

    @app.job("q")
    def anything(a, b=None) -> None: ...  # type: ignore[no-untyped-def]

    wrong: Any = "x"
    refusals: list[tuple[Callable[[], object], str]] = [
        (lambda: add.spec(wrong), r"add\(\) refuses it: payload.a must be int, not str"),
        (lambda: add.spec(1, b=wrong), "payload.b must be int, not str"),
        (lambda: add.options(priority=1).spec(wrong), "payload.a must be int"),
        (lambda: fetch.spec(Page(wrong, depth=wrong)), "payload.depth must be int, not str"),
    ]
    for refused, says in refusals:
        with pytest.raises(TypeError, match=says):
            refused()
    assert add.spec(1, b=2)["payload"] == {"a": 1, "b": 2}
    assert fetch.spec(Page("u"))["payload"] == Page("u")
    job: Any = anything
    assert job.spec(wrong, b=[])["payload"]["a"] == "x"


def test_a_schedule_that_is_run_now_gives_a_job_to_wait_for(m: Tenure, namespace: str) -> None:
    m.schedules.set("s", every="1h", job={"queue": "q"})
    job = m.schedules.run_now("s")
    assert isinstance(job, Job)
    assert not job.wait(0).finished

    async def main() -> AsyncJob[Any]:
        async with AsyncTenure(m._settings.url, namespace=namespace) as client:
            again = await client.schedules.run_now("s")
            assert not (await again.wait(0)).finished
            return again

    assert asyncio.run(main()).id == job.id


def test_snoozes_are_counted_and_bounded(m: Tenure, namespace: str) -> None:
    app = App(m._settings.url, namespace=namespace)

    @app.job("q", retry={"max_snoozes": 1, "max_attempts": 1})
    def later() -> None:
        raise Snooze("1s")

    job = later.push()
    app.run(until_empty=True)
    until(lambda: m.jobs.get(job.id).state == "ready" or m.jobs.get(job.id).finished)
    app.run(until_empty=True)
    found = m.jobs.get(job.id)
    assert (found.state, found.snoozed) == ("failed", 2)


def test_needs_may_be_made_of_the_arguments() -> None:
    app = App()

    @app.job("q", needs=lambda host, page=1: [limit(f"site:{host}")])
    def fetch(host: str, page: int = 1) -> None: ...

    for job in (fetch.spec("a.example"), fetch.spec(host="a.example", page=2)):
        assert job["needs"] == [{"limit": "site:a.example"}]
    other = fetch.options(needs=[limit("other")]).spec("a.example")
    assert other["needs"] == [{"limit": "other"}]


def test_a_synced_row_is_granted_by_its_tag(t: Tenure) -> None:
    t.pools.sync("trap-accounts", [{"id": "a", "tags": ["cn"]}])
    assert [each.tags for each in t.pools.resources("trap-accounts")] == [["cn"]]


def test_notices_of_queues_without_end_take_no_memory_without_end() -> None:
    notices = Notices()
    for n in range(3 * _REMEMBERED):
        notices._first("workers", f"queue-{n}")
    assert len(notices._said) <= _REMEMBERED
