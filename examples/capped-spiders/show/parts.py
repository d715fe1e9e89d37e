"""What the first two pages have in common: the site, the table, the server, the workers, users."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Callable

from stage import tools

from .look import Witness, ask, over_the_cap

if TYPE_CHECKING:
    from stage import Part, Scene

#: Longer than any wait of a healthy run, on a machine that does other things as well.
PATIENCE_S = 240


class Parts:
    """Everything that runs, with a cap of 2 in the table."""

    def __init__(self, scene: Scene, way: str):
        self.scene = scene
        self.way = way
        self.python = scene.python()
        site = scene.start("site", [self.python, "outside/site.py"], show=False)
        self.witness = Witness(site.wait_for("witness", PATIENCE_S))
        self.table = str(scene.folder / "settings.db")
        self._write("CREATE TABLE settings (name TEXT PRIMARY KEY, value INTEGER)")
        self._write("INSERT INTO settings VALUES ('REPTILE_SPEED', 2)")
        self.witness.note_speed(2)
        self.server = scene.serve()
        self.workers: list[Part] = []
        #: The options of `tenure work`.
        self.work: list[str] = []
        #: The jobs that killed workers held, each as often as that happened to it.
        self.orphaned: list[str] = []
        self.env = {
            "PYTHONPATH": str(scene.example),
            "WITNESS": self.witness.address,
            "SETTINGS_TAKE": str(scene.args.settings_take),
        }

    def _write(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.table, timeout=30)) as table, table:
            table.execute(statement, values)

    def until(self, happened: Callable[[], bool], what: str) -> None:
        """Wait for it; no longer than until the cap is exceeded, since that decides the run."""
        over: list = []

        def either() -> bool:
            over[:] = over_the_cap(self.witness.seen())
            return bool(over) or happened()

        self.scene.until(either, PATIENCE_S, what)
        if over:
            raise AssertionError(over[0])

    def tenure(self, *words: str) -> None:
        """Run one command, as in a shell."""
        made = self.scene.start("tenure", [tools.tenure(), *words], show=False)
        if made.wait() != 0:
            raise AssertionError(f"tenure {' '.join(words)}: {made.lines}")

    def follow_speed(self) -> None:
        """Start the user's script that keeps the cap like the row."""
        self.scene.start("settings", [self.python, "follow_speed.py", self.table])

    def start_worker(self) -> None:
        """Start one more `tenure work`."""
        name = f"worker-{len(self.workers) + 1}"
        command = [tools.tenure(), "work", "articles", *self.work]
        self.workers.append(self.scene.start(name, command, env=self.env, show=False))

    def set_speed(self, speed: int) -> None:
        """Change the row, as a page of settings would."""
        self._write("UPDATE settings SET value = ? WHERE name = 'REPTILE_SPEED'", speed)
        self.scene.say(f"REPTILE_SPEED is {speed} now")

    def raise_speed(self, speed: int) -> None:
        """Allow more from this moment on."""
        self.witness.note_speed(speed)
        self.set_speed(speed)

    def lower_speed(self, speed: int) -> None:
        """Allow fewer. No start is under way: as many run as may, and none can end."""
        self.set_speed(speed)

        def in_force() -> bool:
            return self.limit()["concurrency"] == speed

        self.until(in_force, "the lower cap is in force")
        self.witness.note_speed(speed)

    def push(self, articles: list) -> None:
        """Let users ask for articles, all at once, while as many spiders run as may."""
        before = len(self.witness.seen()["read"])
        python = [self.python, "push_articles.py"]
        program = self.scene.node("push_articles") if self.scene.args.node else python
        users = self.scene.start("users", [*program, self.way, self.witness.site, *articles])
        answered = users.wait(PATIENCE_S) == 0
        # Nothing has ended meanwhile: a push that waits for its turn would not be answered.
        self.scene.check(
            answered and len(self.witness.seen()["read"]) == before,
            f"{len(articles)} users were answered while no spider could end",
            users.lines[-1].split("; ")[-1],
        )

    def limit(self) -> dict:
        """Show the cap, as Tenure knows it."""
        return ask("GET", f"{self.scene.url}/v1/limits/articles")

    def job(self, article: str) -> dict:
        """Show the job of an article."""
        return ask("GET", f"{self.scene.url}/v1/jobs/article-{article}")

    def explain_one(self, articles: list) -> None:
        """Say why one of them waits."""
        waits = [each for each in articles if f"article-{each}" not in self.witness.alive()]
        if not waits:
            raise AssertionError("none of the articles waits, though the cap is below their number")
        article = waits[0]
        why = ask("GET", f"{self.scene.url}/v1/jobs/article-{article}/explain")["summary"]
        self.scene.say(f"article-{article} waits; tenure explain says: {why}")

    def wait_alive(self, count: int, why: str) -> set:
        """Wait until the witness counts this many, and return what it counts."""
        self.until(lambda: len(self.witness.alive()) >= count, why)
        alive = self.witness.alive()
        self.scene.say(f"the witness counts {len(alive)}: {' '.join(sorted(alive))}")
        return alive

    def wait_next(self) -> None:
        """Wait until a spider has begun since the cap was changed."""

        def begun() -> bool:
            seen = self.witness.seen()
            return any(each["born"] > seen["notes"][-1]["at"] for each in seen["spiders"])

        self.until(begun, "the next spider begins")

    def wait_done(self, articles: list) -> None:
        """Wait until everything has succeeded and ended."""

        def done() -> bool:
            return all(self.job(each)["state"] == "succeeded" for each in articles)

        self.until(done, "all articles have succeeded")
        self.until(lambda: not self.witness.alive(), "the last process ends")

    def kill_a_worker(self) -> list:
        """Kill one of the workers that hold a job, and start another one. Return its jobs."""
        holding = [each for each in self.workers if each.alive and self.held_by(each)]
        if not holding:
            return []
        victim = self.scene.dice.choice(holding)
        # Stopped first, so that it neither begins nor ends anything between the look and the kill.
        victim.process.send_signal(signal.SIGSTOP)
        held = self.held_by(victim)
        victim.kill_alone()
        self.orphaned += held
        self.scene.say(f"{victim.name} is killed; it held {' '.join(held) or 'nothing'}")
        self.start_worker()
        return held

    def kill_workers(self, seconds: int) -> None:
        """Kill workers at random moments, for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(self.scene.dice.uniform(0, min(3, left)))
            self.kill_a_worker()

    def held_by(self, worker: Part) -> list:
        """The jobs of a worker, as Tenure knows them."""
        leases = ask("GET", f"{self.scene.url}/v1/leases?queue=articles")["items"]
        known = ask("GET", f"{self.scene.url}/v1/workers")["items"]
        ids = {each["id"] for each in known if each["pid"] == worker.process.pid}
        return sorted(lease["job"] for lease in leases if lease["holder"] in ids)
