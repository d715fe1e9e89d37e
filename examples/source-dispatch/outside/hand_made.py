"""Runs the hand-made dispatcher against the same sites, with a short task lock and a long one."""

from __future__ import annotations

import sqlite3
import sys
import time

from stage import Part, Scene

from .judge import Judge, Source

SHORT, LONG = 3, 300
SOURCES, EVERY, COLLECTORS = 600, 2, 4


def show(scene: Scene) -> None:
    """Runs both, and checks that each fails in its own way."""
    short, long = _run(scene, SHORT), _run(scene, LONG)
    # The first with two collectors: a collector also hands sources to itself twice.
    overlaps = sorted(short.overlaps, key=lambda overlap: overlap[1] == overlap[2])
    held = long.interrupted()
    scene.check(
        bool(overlaps),
        f"a lock of {SHORT} s expires during a long visit, and the source is handed out twice",
        "{} times, such as {} to {} and {}".format(len(overlaps), *overlaps[0]) if overlaps else "",
    )
    scene.check(
        held > 0,
        f"a lock of {LONG} s keeps the sources of a dead collector from all others",
        f"of {long.cut} visits that died, {held} were not repeated by the end of the run",
    )


def _run(scene: Scene, lock: int) -> Judge:
    """One run with this lock. Answers with the judge, who has read all."""
    path, log = scene.folder / f"lock-{lock}.db", scene.folder / f"lock-{lock}.log"
    command = [sys.executable, "outside/site.py", str(log), "--slow", "0.02"]
    site = scene.start("sites", command, show=False)
    url = site.wait_for("listening on ").split()[-1]
    judge = Judge(log)
    now = time.time()
    columns = "id TEXT PRIMARY KEY, every INTEGER, url TEXT, next_at REAL, locked_until REAL"
    with sqlite3.connect(path) as table:
        table.execute("PRAGMA journal_mode = WAL")
        table.execute(f"CREATE TABLE sources ({columns})")
        for number in range(SOURCES):
            name, due = f"source-{number}", now + number / SOURCES * EVERY
            row = name, EVERY, f"{url}/news/{name}", due
            table.execute("INSERT INTO sources VALUES (?, ?, ?, ?, 0)", row)
            judge.sources[name] = Source("news", EVERY, 0, 0)

    def start(number: int) -> Part:
        name = f"collector-{number}"
        options = ["--name", name, "--lock", str(lock)]
        return scene.start(name, [sys.executable, "by_hand/collector.py", str(path), *options])

    def nothing_yet() -> bool:
        return not (judge.overlaps if lock == SHORT else judge.interrupted())

    collectors = [start(number) for number in range(COLLECTORS)]
    kills = 0
    until = time.time() + scene.seconds / 2
    # On a busy machine it takes longer until there is something to see.
    while time.time() < until or (nothing_yet() and time.time() < until + 60):
        time.sleep(scene.dice.uniform(0.8, 1.2))
        if lock == LONG:
            victim = scene.dice.randrange(COLLECTORS)
            collectors[victim].kill()
            collectors[victim] = start(COLLECTORS + kills)
            kills += 1
        judge.follow()
    # All others that are due are visited meanwhile.
    time.sleep(2)
    judge.follow()
    for part in (*collectors, site):
        part.kill()
    scene.say(f"task lock of {lock} s: {judge.begun} visits, {kills} collectors killed")
    return judge
