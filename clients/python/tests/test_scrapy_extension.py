"""The job whose spider this is: under `tenure work`, and with a lease that was handed over."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from conftest import tenure_binary, until
from scrapy_site import Crawlers, Site, command
from tenure import Tenure
from tenure._wire import request
from tenure.scrapy.extension import _Worked, outcome_of


def lease_job(client: Tenure, ttl: str = "30s") -> str:
    """Lease a job, as a program does that starts spiders somewhere else."""
    body = {
        "queues": ["visits"],
        "ttl": ttl,
        "worker": "starter",
        "request_id": os.urandom(8).hex(),
    }
    (lease,) = client._transport.send(request("POST", "leases", body=body)).data["leases"]
    return str(lease["lease"])


def work(crawlers: Crawlers, *spider: str) -> Any:
    options = ["--until-empty", "--drain-timeout", "5s"]
    return crawlers.run([tenure_binary(), "work", "visits", *options, "--", *spider])


def test_a_spider_under_tenure_work_leaves_its_counts_as_the_result(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    job = m.push("visits", {})
    args = {"url": site.url, "pages": 3}
    assert work(crawlers, *command("pages", args)).wait(40) == 0
    result = job.wait(5).get()
    assert (result["finish_reason"], result["items"]) == ("finished", 3)
    assert result["stats"]["downloader/request_count"] == 3


def test_what_a_worker_reads_is_written_whole(tmp_path: Path) -> None:
    names = ("TENURE_RESULT_FILE", "TENURE_OUTCOME_FILE", "TENURE_PROGRESS_FILE")
    paths = {name: str(tmp_path / name) for name in names}
    worked = _Worked(paths)
    worked.report({"items": 1})
    asyncio.run(worked.end(outcome_of("finished", {"item_scraped_count": 2})))
    written = {each.name: json.loads(each.read_text()) for each in tmp_path.iterdir()}
    assert written == {
        "TENURE_PROGRESS_FILE": {"items": 1},
        "TENURE_RESULT_FILE": {
            "finish_reason": "finished", "items": 2, "stats": {"item_scraped_count": 2},
        },
    }  # fmt: skip


def test_a_spider_under_tenure_work_that_ends_badly_has_failed(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    job = m.push("visits", {}, retry={"max_attempts": 1})
    args = {"url": site.url, "pages": 3, "path": "raise"}
    settings = {"CLOSESPIDER_ERRORCOUNT": 1}
    spider = command("raising", args, settings)
    assert work(crawlers, *spider).wait(40) == 0
    assert job.wait(5).error == 'the spider ended with "closespider_errorcount"'


def test_a_spider_that_was_handed_a_lease_extends_and_settles_it(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    job = m.push("visits", {})
    lease = lease_job(m, ttl="8s")
    args = {"url": site.url, "query": "gate=1", "tenure_lease": lease}
    # The environment of a worker around it is not its business.
    other = {"TENURE_LEASE": "somebody-elses", "SCRAPY_JOB": "visit-1"}
    process = crawlers.start("pages", args=args, settings={"TENURE_TTL": "5s"}, env=other)
    until(lambda: site.inside == 1, 20)
    # Beyond what it was granted for: the spider extends it.
    (held,) = m.leases()
    until(lambda: [each.expires_at for each in m.leases()] > [held.expires_at], 15)
    site.gate.set()
    assert process.wait(30) == 0
    assert job.wait(5).get()["items"] == 1
    assert list(m.leases()) == []


@pytest.mark.parametrize(
    ("args", "env"), [({"_job": "visit-1"}, {}), ({}, {"SCRAPY_JOB": "visit-1"})]
)
def test_a_spider_of_a_scrapyd_writes_no_files_of_the_outer_job(
    site: Site, crawlers: Crawlers, tmp_path: Path, args: dict[str, str], env: dict[str, str]
) -> None:
    files = {"TENURE_RESULT_FILE": str(tmp_path / "result"), "TENURE_LEASE": "that-of-scrapyd"}
    process = crawlers.start("pages", args={"url": site.url, **args}, env={**files, **env})
    assert process.wait(30) == 0
    assert len(site.visits) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_spider_whose_lease_is_lost_closes_and_settles_nothing(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    job = m.push("visits", {})
    lease = lease_job(m)
    m.force_lease(lease)
    args = {"url": site.url, "pages": 3, "tenure_lease": lease}
    assert crawlers.crawl("pages", args=args) == 0
    assert site.visits == []
    assert "Spider closed (tenure_lease_lost)" in crawlers.log()
    assert m.jobs.get(job.id).state in ("ready", "scheduled")


def test_a_cancelled_job_closes_its_spider(m: Tenure, site: Site, crawlers: Crawlers) -> None:
    # A failure of the last attempt would stand against the cancel.
    job = m.push("visits", {}, retry={"max_attempts": 1})
    lease = lease_job(m)
    args = {"url": site.url, "query": "gate=1", "pages": 3, "tenure_lease": lease}
    process = crawlers.start("pages", args=args, settings={"TENURE_TTL": "5s"})
    until(lambda: site.inside == 3, 20)
    m.jobs.cancel(job.id)
    until(lambda: "the spider closes: tenure_cancelled" in crawlers.log(), 10)
    site.gate.set()
    assert process.wait(30) == 0
    assert job.wait(5).state == "cancelled"
