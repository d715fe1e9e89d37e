"""Spiders whose start requests are leased jobs."""

from __future__ import annotations

import signal
from collections import Counter
from typing import Any

from conftest import free_port, until
from scrapy_site import Crawlers, Site
from tenure import Tenure
from toy_codec import NEW, OLD, VECTOR, Toy

TO_THE_END = {"TENURE_UNTIL_EMPTY": True}


def states(client: Tenure) -> Counter[str]:
    return Counter(job.state for job in client.jobs.list(queue="pages"))


def test_a_job_is_settled_when_all_its_requests_are_done(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    # The second job asks for the same pages as the first; /a links to /b twice, and to itself.
    tree = f"{site.url}/a?links=/b+/b%23x+/c%3Flinks%3D/d"
    first, second = m.push("pages", tree), m.push("pages", {"urls": [tree, f"{site.url}/e"]})
    lost = m.push("pages", f"{site.url}/x?status=404", retry={"max_attempts": 1})
    raises = m.push("pages", f"{site.url}/raise?links=/f", retry={"max_attempts": 1})
    no_url = m.push("pages", {"page": 1}, retry={"max_attempts": 1})
    offsite = m.push("pages", f"{site.url}/g?links=http%3A//elsewhere.invalid/")
    assert crawlers.crawl("jobs", settings=TO_THE_END) == 0
    assert first.wait(5).get() == {"items": 4, "requests": 4}
    assert second.wait(5).get() == {"items": 5, "requests": 5}
    assert offsite.wait(5).get()["items"] == 1
    failures = {job.id: job.wait(5) for job in (lost, raises, no_url)}
    assert {result.state for result in failures.values()} == {"failed"}
    assert "1 errors in 1 requests; the first: HttpError: " in str(failures[lost.id].error)
    assert "KeyError: 'no such field'" in str(failures[raises.id].error)
    assert "give it `url` or `urls`" in str(failures[no_url.id].error)


def test_a_codec_opens_payloads_and_seals_results(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    with Tenure(m._settings.url, namespace=m._settings.namespace, codec=Toy(NEW, OLD)) as client:
        job = client.push("pages", f"{site.url}/a?links=/b")
        broken = m.push("pages", VECTOR)
        assert crawlers.crawl("sealed", settings=TO_THE_END) == 0
        assert client.jobs.wait(job.id, 5).get() == {"items": 2, "requests": 2}
    assert set(m.jobs.get(job.id).result) == {"$sealed", "codec", "queue", "kind"}
    failed = m.jobs.get(broken.id)
    assert failed.attempt == 1 and "was sealed for" in str(failed.error)


def test_a_job_whose_requests_all_wait_in_the_scheduler_is_not_done(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    job = m.push("pages", f"{site.url}/a?links=/b", priority=9)
    m.push("pages", f"{site.url}/other?ms=700")
    settings = {"CONCURRENT_REQUESTS": 1, **TO_THE_END}
    assert crawlers.crawl("jobs", settings=settings) == 0
    assert site.paths() == ["/a", "/other", "/b"]
    assert job.wait(5).get() == {"items": 2, "requests": 2}


def test_an_errback_stands_in_for_a_page_that_is_missing(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    # One answers, though not with the page; at the other nobody listens.
    missing = f"{site.url}/x?status=404", f"http://127.0.0.1:{free_port()}/"
    jobs = [m.push("pages", {"url": url, "instead": f"{site.url}/y"}) for url in missing]
    settings = {"RETRY_ENABLED": False, **TO_THE_END}
    assert crawlers.crawl("with_errback", settings=settings) == 0
    assert [job.wait(5).get() for job in jobs] == [{"items": 2, "requests": 2}] * 2


def test_no_more_jobs_are_leased_than_are_crawled_at_once(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    m.push_many({"queue": "pages", "payload": f"{site.url}/{n}?gate=1"} for n in range(5))
    cancelled = m.push("pages", f"{site.url}/c?gate=1&links=/never", priority=9)
    settings = {"TENURE_JOBS": 2, "TENURE_IDLE_TIMEOUT": "1s"}
    process = crawlers.start("jobs", settings=settings)
    until(lambda: site.inside == 2, 20)
    assert states(m) == {"running": 2, "ready": 4}
    # A job that is cancelled lets its last request end, and sends no more.
    m.jobs.cancel(cancelled.id)
    until(lambda: m.jobs.get(cancelled.id).state == "cancelled", 20)
    site.gate.set()
    until(lambda: states(m) == {"succeeded": 5, "cancelled": 1}, 20)
    # It is idle and waits for more, and ends when none come.
    late = m.push("pages", f"{site.url}/late")
    late.wait(10).get()
    assert process.wait(20) == 0
    assert "/never" not in site.paths()
    assert "links=/never'}" not in crawlers.log()


def test_a_job_whose_lease_is_lost_yields_nothing_more(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    job = m.push("pages", f"{site.url}/a?gate=1&links=/b")
    process = crawlers.start("jobs", settings={"TENURE_IDLE_TIMEOUT": "1s"})
    until(lambda: site.inside == 1, 20)
    (lease,) = m.leases()
    m.force_lease(lease.lease)
    # The same crawler may be granted the job again; the answer to its first run counts no more.
    until(lambda: site.inside == 2 and "lease_lost" in crawlers.log(), 20)
    site.gate.set()
    assert job.wait(20).get() == {"items": 2, "requests": 2}
    assert process.wait(20) == 0
    assert sorted(site.paths()) == ["/a", "/a", "/b"]
    assert crawlers.log().count("Scraped from") == 2


def test_a_killed_crawler_leaves_its_jobs_to_another(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    jobs = [m.push("pages", f"{site.url}/{n}?links=/{n}a%3Fgate%3D1+/{n}b") for n in range(12)]
    settings = {"TENURE_JOBS": 4, "TENURE_TTL": "2s", **TO_THE_END}
    first = crawlers.start("jobs", settings=settings)
    until(lambda: site.inside >= 2, 20)
    first.kill()
    site.gate.set()
    # The queue is empty for a worker while the dead one's leases live.
    until(lambda: states(m)["running"] == 0, 20)
    assert crawlers.crawl("jobs", settings={**settings, "TENURE_IDLE_TIMEOUT": "1s"}) == 0
    until(lambda: crawl_again(m, crawlers, settings), 60)
    assert [job.wait(5).get()["items"] for job in jobs] == [3] * 12


def crawl_again(client: Tenure, crawlers: Crawlers, settings: dict[str, Any]) -> bool:
    """Crawl until no job is left: a suspect of the killed worker runs alone, after a delay."""
    if states(client) == {"succeeded": 12}:
        return True
    crawlers.crawl("jobs", settings=settings)
    return states(client) == {"succeeded": 12}


def test_a_crawler_that_is_stopped_gives_its_jobs_back(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    through = m.push("pages", f"{site.url}/through?gate=1", priority=9)
    cut = m.push("pages", f"{site.url}/cut?gate=1&links=/never")
    waits = m.push("pages", f"{site.url}/waits")
    process = crawlers.start("jobs", settings={"TENURE_JOBS": 2})
    until(lambda: site.inside == 2, 20)
    process.send_signal(signal.SIGTERM)
    until(lambda: "Received SIGTERM" in crawlers.log(), 10)
    site.gate.set()
    assert process.wait(30) == 0
    # The page that was under way was still crawled; nothing was begun any more.
    assert through.wait(5).get() == {"items": 1, "requests": 1}
    given_back = [cut.id, waits.id]
    # A job that is given back twice in a row waits for a second.
    until(lambda: {m.jobs.get(job).state for job in given_back} == {"ready"}, 5)
    assert [(job.attempt, job.lost) for job in map(m.jobs.get, given_back)] == [(0, 0)] * 2
    assert site.paths().count("/never") == 0


def test_a_job_that_closes_the_spider_has_failed(m: Tenure, site: Site, crawlers: Crawlers) -> None:
    job = m.push("pages", f"{site.url}/close", retry={"max_attempts": 1})
    assert crawlers.crawl("jobs") == 0
    assert "CloseSpider" in str(job.wait(5).error)


def test_a_server_that_refuses_closes_the_spider(m: Tenure, crawlers: Crawlers) -> None:
    assert crawlers.crawl("jobs", settings={"TENURE_NAMESPACE": "no such"}) == 0
    assert "Spider closed (tenure_refused)" in crawlers.log()


def test_a_hostile_text_of_a_job_is_one_line_of_the_log(m: Tenure, crawlers: Crawlers) -> None:
    once = {"max_attempts": 1}
    job = m.push("pages", {"raise": "a\x1b[2J\nERROR forged"}, retry=once)
    assert crawlers.crawl("with_errback", settings=TO_THE_END) == 0
    assert job.wait(5).state == "failed"
    # Scrapy's own log is silent about it.
    lines = [line for line in crawlers.log().split("\n") if "2J" in line]
    assert all(r"ValueError: a\x1b[2J\nERROR forged" in line for line in lines), lines
    assert {line.split()[2] for line in lines} == {"[tenure.scrapy]", "[tenure.worker]"}
