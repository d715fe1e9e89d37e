"""The first page: `tenure work --scrapyd`."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from stage import tools

from .look import ask, most_at_once, over_the_cap, slow_start
from .parts import PATIENCE_S, Parts

if TYPE_CHECKING:
    from stage import Scene

FIRST, LATER = ["1", "2", "3"], ["4", "5", "6", "7"]
BY_HAND = ["by-hand-1", "by-hand-2"]


def start_scrapyd(parts: Parts) -> str:
    """Start a scrapyd with the user's settings, on a free port, with its files in the scratch."""
    port = tools.free_port()
    home = parts.scene.folder / "scrapyd"
    home.mkdir()
    conf = (parts.scene.example / "scrapyd.conf").read_text()
    (home / "scrapyd.conf").write_text(conf.replace("6800", str(port)))
    shutil.copy(parts.scene.example / "scrapy.cfg", home)
    command = [parts.python, "-m", "scrapyd"]
    daemon = parts.scene.start("scrapyd", command, env=parts.env, cwd=home, show=False)
    daemon.wait_for("Site starting on", PATIENCE_S)
    return f"http://127.0.0.1:{port}"


def by_hand(parts: Parts, scrapyd: str, name: str) -> None:
    """Start a spider past Tenure, as with curl."""
    form = {"project": "articles", "spider": "article", "jobid": name}
    form["url"] = f"{parts.witness.site}/articles/{name}/1"
    answer = ask("POST", f"{scrapyd}/schedule.json", urlencode(form).encode())
    assert answer["status"] == "ok", answer
    parts.scene.say(f"somebody starts a spider on scrapyd by hand: {name}")


def show(scene: Scene) -> None:
    """Show it, and judge by what the witness counted."""
    parts = Parts(scene, "scrapyd")
    try:
        act(parts)
    except AssertionError as why:
        # The witness is heard all the same.
        scene.check(False, "the run came to its end", str(why))
    judge(parts)


def act(parts: Parts) -> None:
    """Go through it. The site's gate is closed at first: no spider ends before that opens."""
    scene, witness = parts.scene, parts.witness
    scrapyd = start_scrapyd(parts)
    gauge = ["--gauge-scrapyd", scrapyd, "--gauge-every", "500ms", "--gauge-lag", "4s"]
    parts.tenure("limit", "set", "articles", "--concurrency", "2", *gauge)
    parts.follow_speed()
    parts.work = ["-c", "8", "--ttl", "3s", "--scrapyd", scrapyd, "--poll-every", "200ms"]
    parts.start_worker()
    parts.start_worker()

    by_hand(parts, scrapyd, BY_HAND[0])
    parts.push(FIRST)
    parts.wait_alive(2, "a spider runs beside the one by hand")
    parts.explain_one(FIRST)

    parts.raise_speed(4)
    parts.until(lambda: parts.limit()["in_use"] == 3, "all three are granted")
    time.sleep(scene.dice.uniform(0, 2))
    parts.kill_a_worker()
    parts.wait_alive(4, "the higher cap is used")
    seen = witness.seen()
    at = seen["notes"][-1]["at"]
    starts = [f"{each['born'] - at:.1f} s" for each in seen["spiders"] if each["born"] > at]
    scene.say(f"after the row was changed, they began within {' and '.join(starts)}")

    # The spider by hand ends. Its permit goes to a job whose worker died: another takes it up.
    witness.open_gate(BY_HAND[0])
    lost: list[str] = []

    def taken_up() -> bool:
        lost[:] = [each for each in FIRST if parts.job(each)["lost"]]
        return any(parts.job(each)["state"] == "running" for each in lost)

    parts.until(taken_up, "a spider of the dead worker is followed by another")
    alive = witness.alive()
    scene.check(
        all(f"article-{each}" in alive for each in lost),
        "the spiders of the killed worker lived on until another worker found them",
        " ".join(f"article-{each}" for each in lost),
    )

    # One that was still on its way to its end would be read while the users push.
    parts.until(lambda: BY_HAND[0] not in witness.alive(), "the spider by hand ends")
    by_hand(parts, scrapyd, BY_HAND[1])
    parts.wait_alive(4, "the second spider by hand runs")
    parts.push(LATER)
    parts.lower_speed(1)
    for article in FIRST:
        witness.open_gate(article)
    parts.until(lambda: witness.alive() == {BY_HAND[1]}, "it drains")
    scene.say("it drained; the spider by hand alone fills the cap of 1")
    witness.open_gate(BY_HAND[1])
    parts.wait_next()

    parts.raise_speed(4)
    witness.open_gate()
    parts.kill_workers(scene.seconds)
    parts.wait_done([*FIRST, *LATER])


def judge(parts: Parts) -> None:
    """Judge by what the witness counted."""
    scene, seen = parts.scene, parts.witness.seen()
    over = over_the_cap(seen)
    scene.check(
        not over, "no spider was started above the cap", "; ".join(over) or most_at_once(seen)
    )
    scene.say(f"the processes were there {slow_start(seen)} before their first request")
    starts = [each["job"] for each in seen["spiders"]]
    twice = sorted({job for job in starts if starts.count(job) > 1})
    scene.check(
        not twice, "no article was started twice", f"{len(starts)} starts {' '.join(twice)}"
    )
    wanted = sorted([*FIRST, *LATER, *BY_HAND])
    scene.check(
        sorted(seen["read"]) == wanted, "every article was read once", f"{len(wanted)} articles"
    )
