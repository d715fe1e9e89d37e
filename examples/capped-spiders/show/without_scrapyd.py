"""The second page: `tenure work articles -- scrapy crawl article`."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from .look import most_at_once, over_the_cap, slow_start
from .parts import Parts

if TYPE_CHECKING:
    from stage import Scene

FIRST, LATER = ["1", "2", "3", "4"], ["5", "6"]


def show(scene: Scene) -> None:
    """Show it, and judge by what the witness counted."""
    parts = Parts(scene, "command")
    try:
        act(parts)
    except AssertionError as why:
        # The witness is heard all the same.
        scene.check(False, "the run came to its end", str(why))
    judge(parts)


def act(parts: Parts) -> None:
    """Go through it. The site's gate is closed at first: no spider ends before it is opened."""
    scene, witness = parts.scene, parts.witness
    parts.tenure("limit", "set", "articles", "--concurrency", "2")
    parts.follow_speed()
    scrapy = str(Path(parts.python).parent / "scrapy")
    parts.work = ["-c", "4", "--ttl", "3s", "--", scrapy, "crawl", "article"]
    parts.start_worker()
    parts.start_worker()

    parts.push(FIRST)
    parts.wait_alive(2, "two spiders run")
    parts.explain_one(FIRST)

    parts.raise_speed(4)
    parts.wait_alive(4, "the higher cap is used")
    parts.push(LATER)
    time.sleep(scene.dice.uniform(0, 2))
    before = witness.seen()["spiders"]
    killed_at = time.monotonic()
    held = parts.kill_a_worker()
    doomed = {each["pid"] for each in before if each["job"] in held}

    def ended() -> bool:
        return doomed <= {each["pid"] for each in witness.seen()["spiders"] if "gone" in each}

    parts.until(ended, "its spiders end with it")
    scene.say(f"its spiders ended with it, within {time.monotonic() - killed_at:.1f} s")
    parts.wait_alive(4, "as many run again as may")

    parts.lower_speed(1)
    witness.open_gate()
    parts.wait_next()
    parts.raise_speed(4)
    parts.kill_workers(scene.seconds)
    parts.wait_done([*FIRST, *LATER])


def read_twice_at_once(seen: dict) -> list:
    """The articles that a spider began to read before another one had ended."""
    found = []
    spans: dict[str, list] = {}
    for each in seen["spiders"]:
        spans.setdefault(each["job"], []).append((each["born"], each.get("gone", seen["now"])))
    for name, mine in sorted(spans.items()):
        mine.sort()
        if any(one[1] > other[0] for one, other in zip(mine, mine[1:])):
            found.append(name)
    return found


def ends_that_are_no_ends(parts: Parts, seen: dict) -> tuple:
    """Why articles were started again, as their jobs say it, and those that do not say it."""
    reasons: Counter = Counter()
    unasked = []
    for article in [*FIRST, *LATER]:
        starts = sum(each["job"] == f"article-{article}" for each in seen["spiders"])
        errors = [each["error"] for each in parts.job(article)["errors"]]
        reasons.update(errors)
        if starts > 1 + len(errors):
            unasked.append(f"article-{article} was started {starts} times: {errors}")
    return reasons, unasked


def judge(parts: Parts) -> None:
    """Judge by what the witness counted."""
    scene, seen = parts.scene, parts.witness.seen()
    over = over_the_cap(seen)
    told = "; ".join(over) or most_at_once(seen)
    scene.check(not over, "no spider was started above the cap", told)
    scene.say(f"the processes were there {slow_start(seen)} before their first request")
    twice = read_twice_at_once(seen)
    scene.check(not twice, "no article was read by two spiders at once", " ".join(twice))
    again, unasked = ends_that_are_no_ends(parts, seen)
    told = "; ".join(unasked) or "; ".join(f"{many}: {why}" for why, many in again.items())
    scene.check(not unasked, "every further start of an article has its reason", told)
    missing = {*FIRST, *LATER} - {*seen["read"]}
    scene.check(not missing, "every article was read", f"{len(FIRST) + len(LATER)} articles")
