"""What a program says in passing is taken as it was meant, or refused where it stands."""

from __future__ import annotations

from typing import Any

import pytest

from tenure import App, Tenure, limit
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


def test_retry_takes_a_number_and_refuses_what_it_cannot_be_at_the_import() -> None:
    app = App()

    @app.job("q", retry=5)
    def works() -> None: ...

    assert works.spec()["retry"] == {"max_attempts": 5}
    for wrong in ("5", True, 2.5, [5]):
        with pytest.raises(TypeError, match="retry is a number of attempts"):
            app.job("q", retry=wrong)  # type: ignore[arg-type]


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
