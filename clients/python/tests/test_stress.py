"""The judge of the stress finds what is wrong, and a short stress has nothing wrong."""

from __future__ import annotations

import os
import sys

import pytest

from conftest import redis_here, tenure_binary
from stress.chaos import Chaos, Settings
from stress.journal import Told
from stress.judge import Shown, faults

#: How long things are killed.
SECONDS = float(os.environ.get("TENURE_STRESS_SECONDS", "5"))

#: Two jobs, one after the other, with a cap, an account and a lock; the first was tried twice.
RIGHT = """\
P a retries
P b plain
B 10 p1 1 a five x
T 12 1
E 20 1 tried
B 20 p2 2 a five x
T 25 2
E 30 2 succeeded
B 30 p1 3 b lock:one x
T 31 3
E 40 3 succeeded"""

#: The third run has a lower fence than those before.
BACKWARDS = RIGHT.replace("p1 3 b", "p1 0 b").replace("T 31 3", "T 31 0").replace("40 3", "40 0")

ENDED = {"a": Shown("succeeded", finished_at=31), "b": Shown("succeeded", finished_at=41)}


def judged(text: str, shown: dict[str, Shown] = ENDED) -> list[str]:
    told = Told()
    told.read(text.splitlines())
    told.bury()
    return faults(told, shown)


def without(line: str) -> str:
    assert line in RIGHT
    return RIGHT.replace(line + "\n", "")


def changed(line: str, to: str) -> str:
    assert line in RIGHT
    return RIGHT.replace(line, to)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert judged(RIGHT) == []


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ("P c plain\n" + RIGHT, "job c is lost: the server does not know it"),
        (without("P b plain"), "nobody pushed b"),
        (changed("E 30 2 succeeded", "E 30 2 stopped"), "job a succeeded without a last run"),
        (changed("E 40 3 succeeded", "D 40 p1"), "job b succeeded without a last run"),
        (changed("E 20 1 tried", "E 21 1 tried"), "job a was in two hands: fences 1 and 2"),
        (changed("E 30 2 succeeded", "E 31 2 succeeded"), "account x was in two hands"),
        (without("E 20 1 tried"), "its run under fence 1 has no end, and its process lived"),
        (without("E 20 1 tried") + "\nD 19 p3", "has no end, and its process lived"),
        (without("E 20 1 tried") + "\nD 22 p1", "job a was in two hands: fences 1 and 2"),
        (BACKWARDS, "a fence of account x went back: 2, then 0"),
        (changed("T 12 1", "T 28 1"), "job a was touched under fence 1 after 2"),
        (changed("T 31 3", "T 41 3"), "job b was touched under fence 3 after that run's end"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(wrong: str, found: str) -> None:
    told = judged(wrong)
    assert any(found in fault for fault in told), told


def test_a_run_that_died_with_its_process_held_until_then() -> None:
    died = without("E 20 1 tried") + "\nD 20 p1"
    assert judged(died) == []


@pytest.mark.parametrize(("held", "over"), [(5, False), (6, True)])
def test_a_cap_that_is_passed_is_found(held: int, over: bool) -> None:
    lines = [f"P j{n} plain\nB {n} p{n} {n} j{n} five -\nE 50 {n} succeeded" for n in range(held)]
    told = judged("\n".join(lines), {f"j{n}": Shown("succeeded") for n in range(held)})
    assert told == (["6 runs held five at once; its cap is 5"] if over else [])


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        (Shown("running"), "job b is running and must be succeeded"),
        (Shown("failed"), "job b is failed and must be succeeded"),
        (Shown("succeeded", finished_at=2), "job b was granted after it had ended"),
        (Shown("succeeded", lost_at=[31]), ""),
    ],
)
def test_what_the_server_shows_is_compared(shown: Shown, found: str) -> None:
    told = judged(RIGHT, {**ENDED, "b": shown})
    assert any(found in fault for fault in told) if found else told == []


def test_a_run_that_goes_on_after_its_loss_is_found() -> None:
    late = RIGHT.replace("E 40 3", f"E {10**9} 3")
    shown = {**ENDED, "b": Shown("succeeded", lost_at=[35])}
    assert judged(late) == []
    (fault,) = judged(late, shown)
    assert "job b went on under fence 3 after its loss: 1000 ms" in fault


@pytest.mark.skipif(sys.platform != "linux", reason="the stress watches processes as Linux does")
@pytest.mark.parametrize("store", ["redis", "folder"])
def test_a_short_stress_loses_nothing_and_passes_no_cap(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store == "folder" and redis_here() is not None and "TENURE_LONG" not in os.environ:
        pytest.skip("long: with Redis, the same and one thing more is killed")
    if store == "redis" and redis_here() is None:
        pytest.skip("there is no redis-server here")
    monkeypatch.setenv("TENURE_BIN", tenure_binary())
    settings = Settings(store=store, seconds=SECONDS, kills=4, workers=1, ttl=2.0, seed=7)
    report = Chaos(settings).run()
    assert report.faults == [], report.text()
    assert report.jobs["succeeded"] > 20, report.text()
    assert report.most, report.text()
    assert sum(report.kills.values()) >= 4, report.text()
