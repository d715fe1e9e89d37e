"""The downloader middleware: crawls of a local site by processes, counted by the site."""

from __future__ import annotations

import signal
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from conftest import Server, until
from scrapy_site import Crawlers, Site
from tenure import Tenure, limit
from tenure.scrapy._answers import retry_after
from tenure.scrapy._needs import fill, read_needs

SITE = '{"limit": "site:{host}"}'
ACCOUNT = '{"pool": "accounts"}'


def accounts(client: Tenure, *ids: str) -> None:
    client.pools.sync("accounts", [{"id": id, "data": {"account": id}} for id in ids])


def ends_well(*processes: Any) -> None:
    assert [process.wait(40) for process in processes] == [0] * len(processes)


def test_two_crawlers_keep_the_cap_and_use_no_account_twice_at_once(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    m.limits.set("site:*", concurrency=3)
    accounts(m, "ann", "bob", "cat", "dan")
    args = {"url": site.url, "pages": 25, "query": "ms=20"}
    settings = {"TENURE_NEEDS": f"[{SITE}, {ACCOUNT}]"}
    both = [crawlers.start("pages", args=args, settings=settings) for _ in range(2)]
    ends_well(*both)
    assert len(site.visits) == 50
    assert all(visit.status == 200 for visit in site.visits)
    # How many of the permits are used at one moment is up to the machine.
    assert 2 <= site.most <= 3, crawlers.log()
    assert set(site.most_of.values()) == {1}
    assert set(site.most_of) <= {"ann", "bob", "cat", "dan"}
    assert (m.limits.get("site:127.0.0.1").in_use, m.pools.get("accounts").available) == (0, 4)


def test_the_account_of_a_killed_crawler_rests_its_quarantine(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    accounts(m, "ann")
    m.pools.set("accounts", quarantine="2s")
    settings = {"TENURE_NEEDS": f"[{ACCOUNT}]", "TENURE_TTL": "2s"}
    first = crawlers.start("pages", args={"url": site.url, "query": "gate=1"}, settings=settings)
    until(lambda: site.inside == 1, 20)
    second = crawlers.start("pages", args={"url": site.url, "path": "other"}, settings=settings)
    until(lambda: m.pools.get("accounts").waiting == 1, 20)
    killed = time.monotonic()
    first.kill()
    until(lambda: m.pools.resource("accounts", "ann").state == "cooling", 20)
    ends_well(second)
    other = next(visit for visit in site.visits if visit.path == "/other0")
    assert other.account == "ann"
    assert other.began - killed >= 2


def test_a_429_pauses_the_site_for_all_crawlers(m: Tenure, site: Site, crawlers: Crawlers) -> None:
    m.limits.set("site:*", concurrency=1)
    site.first["/page2"] = [(429, {"Retry-After": "2"})]
    site.first["/other2"] = [(429, {"Retry-After": formatdate(time.time() + 120, usegmt=True)})]
    settings = {"TENURE_NEEDS": f"[{SITE}]", "TENURE_PAUSE_MAX": "1s"}
    ends_well(
        crawlers.start("pages", args={"url": site.url, "pages": 8}, settings=settings),
        crawlers.start(
            "pages", args={"url": site.url, "pages": 8, "path": "other"}, settings=settings
        ),
    )
    assert len(site.visits) == 18
    visits = list(site.visits)
    refused = [n for n, visit in enumerate(visits) if visit.status == 429]
    assert len(refused) == 2
    for n in refused:
        # The pause is cut at a second; nobody comes meanwhile.
        assert visits[n + 1].began - visits[n].began >= 1
    assert "site:127.0.0.1" not in [each.name for each in m.limits.list() if each.paused_until]


def test_an_answer_bans_its_account_and_the_next_one_is_tried(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    accounts(m, "bad", "good")
    site.first["/page0"] = [(403, {})]
    settings = {"TENURE_NEEDS": f"[{ACCOUNT}]", "TENURE_BAN_STATUS": "403"}
    assert crawlers.crawl("pages", args={"url": site.url}, settings=settings) == 0
    assert [visit.status for visit in site.visits] == [403, 200]
    banned = [each for each in m.pools.resources("accounts") if each.state == "banned"]
    assert [(each.id, each.reason) for each in banned] == [(site.visits[0].account, "http 403")]
    assert site.visits[1].account != site.visits[0].account


def test_the_spider_judges_answers_itself(m: Tenure, site: Site, crawlers: Crawlers) -> None:
    accounts(m, "bad")
    # Its slot is another lease, which has nothing to judge.
    m.limits.set("site:*", concurrency=1)
    settings = {"TENURE_NEEDS": f"[{SITE}]", "TENURE_SESSION_NEEDS": f"[{ACCOUNT}]"}
    process = crawlers.start("judging", args={"url": site.url}, settings=settings)
    until(lambda: m.pools.resource("accounts", "bad").state == "banned", 20)
    assert m.pools.resource("accounts", "bad").reason == "captcha"
    # The session is over with its account, and the request waits for another one.
    m.pools.add("accounts", "fine", {"account": "fine"})
    ends_well(process)
    assert [visit.account for visit in site.visits] == ["bad", "fine"]


def test_each_cookie_jar_keeps_its_account(m: Tenure, site: Site, crawlers: Crawlers) -> None:
    m.limits.set("site:*", concurrency=2)
    accounts(m, "ann", "bob")
    settings = {"TENURE_NEEDS": f"[{SITE}]", "TENURE_SESSION_NEEDS": f"[{ACCOUNT}]"}
    args = {"url": site.url, "pages": 10, "jars": 2}
    assert crawlers.crawl("pages", args=args, settings=settings) == 0
    by_jar = [
        {visit.account for visit in site.visits if int(visit.path[-1]) % 2 == jar} for jar in (0, 1)
    ]
    assert sorted(map(sorted, by_jar)) == [["ann"], ["bob"]]
    assert site.most <= 2 and m.pools.get("accounts").available == 2


def test_a_session_ends_where_a_request_says_so(m: Tenure, site: Site, crawlers: Crawlers) -> None:
    accounts(m, "ann", "bob")
    settings = {"TENURE_SESSION_NEEDS": f"[{ACCOUNT}]", "CONCURRENT_REQUESTS": 1}
    assert crawlers.crawl("ending", args={"url": site.url, "pages": 4}, settings=settings) == 0
    by = {visit.path: visit.account for visit in site.visits}
    # The one that was used longest ago is the next; a request may do without any.
    assert (by["/0"], by["/1"]) in [("ann", "bob"), ("bob", "ann")]
    assert (by["/2"], by["/3"], by["/free"]) == (by["/0"], by["/1"], "")


def test_a_slot_returns_when_a_middleware_swallows_the_answer(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    m.limits.set("site:*", concurrency=1)
    site.first["/page0"] = [(418, {})]
    settings = {
        "TENURE_NEEDS": f"[{SITE}]",
        "DOWNLOADER_MIDDLEWARES": '{"scrapy_project.Swallowing": 800}',
    }
    assert crawlers.crawl("pages", args={"url": site.url}, settings=settings) == 0
    assert [visit.status for visit in site.visits] == [418, 200]


def test_a_proxy_of_a_pool_is_used_and_its_password_is_nowhere(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    proxy = f"http://user:geheim@127.0.0.1:{site.port}"
    m.pools.sync("proxies", [{"id": "p1", "data": {"proxy": proxy}}])
    site.first["/page0"] = [(503, {})]
    args = {"url": "http://pages.invalid", "pages": 2}
    settings = {"TENURE_NEEDS": '[{"pool": "proxies"}]', "TENURE_TOKEN": "geheim-too"}
    assert crawlers.crawl("pages", args=args, settings=settings) == 0
    assert [visit.proxied for visit in site.visits] == [True, True, True]
    log = crawlers.log()
    assert "'by': {'proxies': 'p1'}" in log
    assert "geheim" not in log


def test_everything_returns_when_the_spider_is_stopped_while_it_waits(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    m.limits.set("site:*", concurrency=1)
    accounts(m, "ann")
    settings = {"TENURE_NEEDS": f"[{SITE}]", "TENURE_SESSION_NEEDS": f"[{ACCOUNT}]"}
    with m.acquire(limit("site:127.0.0.1"), wait="5s"):
        process = crawlers.start("pages", args={"url": site.url, "pages": 3}, settings=settings)
        until(lambda: m.limits.get("site:127.0.0.1").waiting == 3, 20)
        assert m.pools.get("accounts").leased == 1
        process.send_signal(signal.SIGTERM)
        ends_well(process)
        assert m.limits.get("site:127.0.0.1").waiting == 0
        assert m.pools.get("accounts").available == 1
    assert site.visits == []
    assert "the spider closes" in crawlers.log()


def test_everything_returns_when_the_spider_closes_itself(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    m.limits.set("site:*", concurrency=2)
    settings = {"TENURE_NEEDS": f"[{SITE}]", "CLOSESPIDER_ITEMCOUNT": 1}
    args = {"url": site.url, "pages": 30, "query": "ms=50"}
    assert crawlers.crawl("pages", args=args, settings=settings) == 0
    assert len(site.visits) < 30
    assert "closespider_itemcount" in crawlers.log()
    assert list(m.leases()) == []


def test_a_request_whose_lease_is_lost_is_tried_again(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    m.limits.set("site:*", concurrency=1)
    args = {"url": site.url, "query": "gate=1"}
    process = crawlers.start("watching", args=args, settings={"TENURE_NEEDS": f"[{SITE}]"})
    until(lambda: site.inside == 1, 20)
    (lease,) = m.leases()
    m.force_lease(lease.lease)
    until(lambda: "a lease is lost" in crawlers.log(), 10)
    site.gate.set()
    ends_well(process)
    assert len(site.visits) == 2
    assert "'tenure/lost': 1" in crawlers.log()
    assert "'item_scraped_count': 1" in crawlers.log()


def test_a_request_that_gets_nothing_in_time_is_dropped(
    m: Tenure, site: Site, crawlers: Crawlers
) -> None:
    m.limits.set("site:*", concurrency=1)
    settings = {"TENURE_NEEDS": f"[{SITE}]", "TENURE_WAIT": "100ms"}
    with m.acquire(limit("site:127.0.0.1"), wait="5s", worker="somebody"):
        assert crawlers.crawl("pages", args={"url": site.url}, settings=settings) == 0
    assert site.visits == []
    assert 'could not get limit "site:127.0.0.1" within 100ms; held by somebody' in crawlers.log()


def test_a_limit_that_is_not_there_is_named(m: Tenure, site: Site, crawlers: Crawlers) -> None:
    settings = {"TENURE_NEEDS": '[{"limit": "nobody:{host}"}]'}
    assert crawlers.crawl("pages", args={"url": site.url}, settings=settings) == 0
    assert site.visits == []
    assert "nobody:127.0.0.1" in crawlers.log()
    assert "unknown_limit" in crawlers.log()


def test_a_server_that_is_away_is_waited_for(
    own_server: Server, namespace: str, folder: Path, site: Site
) -> None:
    with Tenure(own_server.url, namespace=namespace) as client:
        client.limits.set("site:*", concurrency=1)
    crawlers = Crawlers(own_server.url, namespace, folder)
    settings = {"TENURE_NEEDS": f"[{SITE}]", "TENURE_TTL": "20s"}
    try:
        args = {"url": site.url, "pages": 6, "query": "gate=1"}
        process = crawlers.start("pages", args=args, settings=settings)
        until(lambda: site.inside == 1, 20)
        own_server.kill()
        site.gate.set()
        own_server.start()
        ends_well(process)
    finally:
        crawlers.kill_all()
    assert (len(site.visits), site.most) == (6, 1)


def test_retry_after_is_read_as_seconds_or_by_the_clock_of_the_site() -> None:
    def asked(**headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return retry_after(Response("http://x/", status=429, headers=named))

    date, later = formatdate(1_000_000, usegmt=True), formatdate(1_000_090, usegmt=True)
    assert asked(Retry_After="7") == 7
    assert asked(Retry_After=later, Date=date) == 90
    assert asked(Retry_After=date, Date=later) == 0
    assert asked(Retry_After="soon") is None
    assert asked() is None


def test_needs_that_are_no_needs_say_what_to_write() -> None:
    for wrong, part in [("[{", "is no JSON"), ({"limit": "x"}, "list of needs"), (7, "list of")]:
        with pytest.raises(ValueError, match=f"TENURE_NEEDS.*{part}"):
            read_needs(wrong, "TENURE_NEEDS")
    with pytest.raises(ValueError, match="cannot be filled"):
        fill([limit("site:{hots}").json()], Request("http://x/"), "s")
