"""The parts that the first two pages have in common: the site, the table, the server, the workers and the users."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from stage import tools

from .look import Witness, ask

if TYPE_CHECKING:
    from stage import Part, Scene

#: Longer than any wait of a healthy run, on a machine that does other things as well.
PATIENCE_S = 90


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

    def tenure(self, *words: str) -> None:
        """Runs one command, as in a shell."""
        made = self.scene.start("tenure", [tools.tenure(), *words], show=False)
        if made.wait() != 0:
            raise AssertionError(f"tenure {' '.join(words)}: {made.lines}")

    def follow_speed(self) -> None:
        self.scene.start("settings", [self.python, "follow_speed.py", self.table])

    def start_worker(self) -> None:
        name = f"worker-{len(self.workers) + 1}"
        command = [tools.tenure(), "work", "articles", *self.work]
        self.workers.append(self.scene.start(name, command, env=self.env, show=False))

    def set_speed(self, speed: int) -> None:
        """Changes the row, as a page of settings would."""
        self._write("UPDATE settings SET value = ? WHERE name = 'REPTILE_SPEED'", speed)
        self.scene.say(f"REPTILE_SPEED is {speed} now")

    def raise_speed(self, speed: int) -> None:
        self.witness.note_speed(speed)
        self.set_speed(speed)

    def lower_speed(self, speed: int) -> None:
        """Called while as many run as may and none can end, so that no start is under way."""
        self.set_speed(speed)
        in_force = lambda: self.limit()["concurrency"] == speed  # noqa: E731
        self.scene.until(in_force, PATIENCE_S, "the lower cap is in force")
        self.witness.note_speed(speed)

    def push(self, articles: list) -> None:
        """Users ask for articles, all at once, while as many spiders run as may."""
        before = len(self.witness.seen()["read"])
        command = [self.python, "push_articles.py", self.way, self.witness.site, *articles]
        users = self.scene.start("users", command)
        answered = users.wait(PATIENCE_S) == 0
        # Nothing has ended meanwhile, and nothing can: a push that waits for its turn would not be answered.
        self.scene.check(
            answered and len(self.witness.seen()["read"]) == before,
            f"{len(articles)} users were answered while no spider could end",
            users.lines[-1].split("; ")[-1],
        )

    def limit(self) -> dict:
        return ask("GET", f"{self.scene.url}/v1/limits/articles")

    def job(self, article: str) -> dict:
        return ask("GET", f"{self.scene.url}/v1/jobs/article-{article}")

    def explain(self, article: str) -> None:
        why = ask("GET", f"{self.scene.url}/v1/jobs/article-{article}/explain")["summary"]
        self.scene.say(f"article-{article} waits; tenure explain says: {why}")

    def wait_alive(self, count: int, why: str) -> set:
        self.scene.until(lambda: len(self.witness.alive()) >= count, PATIENCE_S, why)
        alive = self.witness.alive()
        self.scene.say(f"the witness counts {len(alive)}: {' '.join(sorted(alive))}")
        return alive

    def wait_next(self) -> None:
        """Waits until a spider has begun since the cap was changed."""

        def begun() -> bool:
            seen = self.witness.seen()
            return any(each["born"] > seen["notes"][-1]["at"] for each in seen["spiders"])

        self.scene.until(begun, PATIENCE_S, "the next spider begins")

    def wait_done(self, articles: list) -> None:
        done = lambda: all(self.job(each)["state"] == "succeeded" for each in articles)  # noqa: E731
        self.scene.until(done, PATIENCE_S, "all articles have succeeded")
        self.scene.until(lambda: not self.witness.alive(), PATIENCE_S, "the last process ends")

    def kill_a_worker(self) -> list:
        """SIGKILL for a worker that holds a job, if one does: it is the one whose death matters. Its jobs."""
        alive = [worker for worker in self.workers if worker.alive]
        holding = [worker for worker in alive if self.held_by(worker)]
        victim = self.scene.dice.choice(holding or alive)
        # Stopped first, so that it neither begins nor ends anything between the look and the kill.
        victim.process.send_signal(signal.SIGSTOP)
        held = self.held_by(victim)
        victim.kill_alone()
        self.orphaned += held
        self.scene.say(f"{victim.name} is killed; it held {' '.join(held) or 'nothing'}")
        self.start_worker()
        return held

    def held_by(self, worker: Part) -> list:
        """Its jobs, as Tenure knows them."""
        leases = ask("GET", f"{self.scene.url}/v1/leases?queue=articles")["items"]
        known = ask("GET", f"{self.scene.url}/v1/workers")["items"]
        ids = {each["id"] for each in known if each["pid"] == worker.process.pid}
        return sorted(lease["job"] for lease in leases if lease["holder"] in ids)
