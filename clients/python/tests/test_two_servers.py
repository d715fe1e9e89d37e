"""Two servers on one Redis, of which one is killed under work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import pytest

from conftest import Server, Workers, until
from tenure import Tenure

JOBS = 200
#: No job may wait for longer from its push to its end, in seconds.
LONGEST_S = 5.0


@pytest.fixture
def two_servers(folder: Path, redis_url: Optional[str]) -> Iterator[tuple[Server, Server]]:
    if redis_url is None:
        pytest.skip("there is no redis-server here")
    made = (Server(redis_url, folder), Server(redis_url, folder))
    try:
        for each in made:
            each.start()
        yield made
    finally:
        for each in made:
            each.kill()


def test_a_worker_and_a_pusher_go_on_when_their_server_is_killed(
    two_servers: tuple[Server, Server], namespace: str, folder: Path
) -> None:
    first, second = two_servers
    url = f"{first.url},{second.url}"
    workers = Workers(url, namespace, folder)
    with (
        Tenure(url, namespace=namespace) as client,
        Tenure(second.url, namespace=namespace) as look,
    ):
        try:
            workers.start("--concurrency", "4")
            pushed = [client.push("work", {"a": n}, kind="add").id for n in range(JOBS // 2)]
            until(lambda: look.stats().jobs["succeeded"] >= 20)
            # All of this was done by the first: nobody has had a reason to leave it.
            first.kill()
            rest = range(JOBS // 2, JOBS)
            pushed += [client.push("work", {"a": n}, kind="add").id for n in rest]
            until(lambda: look.stats().jobs["succeeded"] == JOBS, 20)
            jobs = {job.id: job for job in look.jobs.list(full=True)}
        finally:
            workers.kill_all()
    assert list(jobs) == pushed[::-1]
    assert [jobs[id].result for id in pushed] == [n + 2 for n in range(JOBS)]
    for job in jobs.values():
        assert job.created_at is not None and job.finished_at is not None
        assert (job.finished_at - job.created_at).total_seconds() < LONGEST_S, job
