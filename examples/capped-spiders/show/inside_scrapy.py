"""The third page: `tenure.scrapy`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .look import ask
from .parts import PATIENCE_S

if TYPE_CHECKING:
    from stage import Part, Scene

SITES = ["news.example", "shop.example"]
CAP = 2
SHELVES = 5
PAGES = 4
ACCOUNTS = ["abe", "bob", "cat", "dan"]


def show(scene: Scene) -> None:
    """Show it."""
    python = scene.python()
    web = scene.start("web", [python, "outside/web.py"], show=False)
    proxies = web.wait_for("proxies", PATIENCE_S).split()[1:]
    scene.serve()
    api = f"{scene.url}/v1"

    def put(path: str, body: object) -> None:
        ask("PUT", f"{api}/{path}", json.dumps(body).encode())

    put("limits/site:*", {"concurrency": CAP})
    for pool in ("accounts", "proxies"):
        put(f"pools/{pool}", {"quarantine": "2s"})
    accounts = [{"id": name, "data": {"password": f"secret of {name}"}} for name in ACCOUNTS]
    put("pools/accounts/resources", accounts)
    put(
        "pools/proxies/resources",
        [{"id": f"p{n}", "data": {"proxy": at}} for n, at in enumerate(proxies)],
    )
    jobs = [
        {
            "id": f"{site}-{n}",
            "queue": "shelves",
            "payload": {"url": f"http://{site}/shelves/{site}-{n}/1"},
            "retry": {"max_attempts": 5, "max_lost": 0},
        }
        for n in range(SHELVES)
        for site in SITES
    ]
    ask("POST", f"{api}/jobs", json.dumps(jobs).encode())

    crawlers: list[Part] = []

    def start_crawler() -> None:
        command = [str(Path(python).parent / "scrapy"), "crawl", "shelves", "-s", "TENURE_JOBS=4"]
        env = {"SETTINGS_TAKE": "0"}
        crawlers.append(scene.start(f"crawler-{len(crawlers) + 1}", command, env=env, show=False))

    def answered() -> list:
        return ask("GET", f"{proxies[0]}/witness")

    for _ in range(3):
        start_crawler()

    def crawling() -> set:
        return {each["crawler"] for each in answered() if each["status"] == 200}

    scene.until(lambda: len(crawling()) == 3, PATIENCE_S, "all three crawl")
    until = time.monotonic() + scene.seconds
    killed = 0
    while time.monotonic() < until:
        alive = [each for each in crawlers if each.alive]
        victim = scene.dice.choice(alive)
        victim.kill_alone()
        killed += 1
        scene.say(f"{victim.name} is killed")
        start_crawler()
        time.sleep(scene.dice.uniform(1, 3))

    def states() -> set:
        return {each["state"] for each in ask("GET", f"{api}/jobs?queue=shelves")["items"]}

    scene.until(lambda: states() == {"succeeded"}, PATIENCE_S, "every shelf is read")
    for crawler in crawlers:
        if crawler.alive:
            # As a deploy does it. A crawler that goes in peace gives back what it holds.
            crawler.process.terminate()
    for crawler in crawlers:
        crawler.wait(PATIENCE_S)
    judge(scene, answered(), killed)
    secrets = [line for crawler in crawlers for line in crawler.lines if "secret of" in line]
    scene.check(not secrets, "no password is in a log of the crawlers")
    held = ask("GET", f"{api}/leases")["items"]
    scene.check(not held, "crawlers that ended in peace hold nothing")


def most_at_once(seen: list) -> int:
    """The most of these requests that were under way at one moment."""
    return max(
        sum(other["began"] <= one["began"] < other["ended"] for other in seen) for one in seen
    )


def in_two_hands(seen: list, what: str) -> list:
    """Accounts or proxies that a second crawler used before the first had done with them."""
    found = []
    for name in sorted({each[what] for each in seen}, key=str):
        uses = [each for each in seen if each[what] == name]
        spans = sorted(
            (min(each["began"] for each in mine), max(each["ended"] for each in mine), crawler)
            for crawler in {each["crawler"] for each in uses}
            for mine in [[each for each in uses if each["crawler"] == crawler]]
        )
        found += [
            f"{name}: {one[2]} and {other[2]}"
            for one, other in zip(spans, spans[1:])
            if other[0] < one[1]
        ]
    return found


def judge(scene: Scene, seen: list, killed: int) -> None:
    """Counts what the sites and the proxies saw."""
    crawlers = {each["crawler"] for each in seen}
    for site in SITES:
        most = most_at_once([each for each in seen if each["site"] == site])
        scene.check(
            most <= CAP, f"{site} answered at most {CAP} requests at once", f"at most {most}"
        )
    for what in ("account", "proxy"):
        twice = in_two_hands(seen, what)
        names = {each[what] for each in seen}
        told = (
            "; ".join(twice)
            or f"{len(names)} for {len(crawlers)} crawlers, {killed} of them killed"
        )
        scene.check(not twice, f"no {what} was in two hands", told)
    refused = [each for each in seen if each["status"] == 403]
    scene.check(
        len({each["crawler"] for each in refused}) == 1,
        "the account that the sites refuse was handed out once, and banned",
        f"{len(refused)} requests were refused",
    )
    pages = {each["page"] for each in seen if each["status"] == 200}
    wanted = {
        f"{site}-{n}/{page}"
        for site in SITES
        for n in range(SHELVES)
        for page in range(1, PAGES + 1)
    }
    scene.check(
        pages == wanted, "every page was read", f"{len(seen)} requests for {len(wanted)} pages"
    )
