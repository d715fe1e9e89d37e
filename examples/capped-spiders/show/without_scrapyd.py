"""The second page: `tenure work articles -- scrapy crawl article`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from .look import most_at_once, over_the_cap, slow_start
from .parts import PATIENCE_S, Parts

if TYPE_CHECKING:
    from stage import Scene

FIRST, LATER = ["1", "2", "3", "4"], ["5", "6"]


def show(scene: Scene) -> None:
    """The whole of it. The site's gate is closed at first: no spider ends before it is opened."""
    parts = Parts(scene, "command")
    witness = parts.witness
    parts.tenure("limit", "set", "articles", "--concurrency", "2")
    parts.follow_speed()
    scrapy = str(Path(parts.python).parent / "scrapy")
    parts.work = ["-c", "4", "--ttl", "3s", "--", scrapy, "crawl", "article"]
    parts.start_worker()
    parts.start_worker()

    parts.push(FIRST)
    running = parts.wait_alive(2, "two spiders run")
    parts.explain(next(each for each in FIRST if f"article-{each}" not in running))

    parts.raise_speed(4)
    parts.wait_alive(4, "the higher cap is used")
    parts.push(LATER)
    time.sleep(scene.dice.uniform(0, 2))
    before = witness.seen()["spiders"]
    killed_at = time.monotonic()
    held = parts.kill_a_worker()
    doomed = {each["pid"] for each in before if each["job"] in held}
    ended = lambda: {each["pid"] for each in witness.seen()["spiders"] if "gone" in each}  # noqa: E731
    scene.until(lambda: doomed <= ended(), PATIENCE_S, "its spiders end with it")
    scene.say(f"its spiders ended with it, within {time.monotonic() - killed_at:.1f} s")
    parts.wait_alive(4, "as many run again as may")

    parts.lower_speed(1)
    witness.open_gate()
    parts.wait_next()
    parts.raise_speed(4)
    until = time.monotonic() + scene.seconds
    while time.monotonic() < until:
        time.sleep(scene.dice.uniform(0, 3))
        parts.kill_a_worker()
    parts.wait_done([*FIRST, *LATER])
    judge(parts)


def judge(parts: Parts) -> None:
    """Counts."""
    scene, seen = parts.scene, parts.witness.seen()
    over = over_the_cap(seen)
    scene.check(not over, "no spider was started above the cap", "; ".join(over) or most_at_once(seen))
    scene.say(f"the processes were there {slow_start(seen)} before their first request")
    spiders = seen["spiders"]
    names = {each["job"] for each in spiders}
    beside = [
        name
        for name in names
        for mine in [sorted((s["born"], s["gone"]) for s in spiders if s["job"] == name)]
        if any(one[1] > other[0] for one, other in zip(mine, mine[1:]))
    ]
    scene.check(not beside, "no article was read by two spiders at once", " ".join(beside))
    starts = [each["job"] for each in spiders]
    unasked = sorted(name for name in names if starts.count(name) > 1 + parts.orphaned.count(name))
    scene.check(
        not unasked,
        "an article was started again only if its worker had been killed",
        " ".join(unasked) or f"{len(names)} articles, {len(starts) - len(names)} started again",
    )
    missing = {*FIRST, *LATER} - {*seen["read"]}
    scene.check(not missing, "every article was read", f"{len(names)} articles")
