"""Shows how by_hand/worker.py loses a query, runs one twice, and gives one up that was on its way.

Each step waits for a moment that the registry reports, so it happens in every run.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.request import urlopen

from stage import CannotRun, Part, Scene


class ByHand:
    """The registry, and workers that share a Redis."""

    def __init__(self, scene: Scene):
        if not scene.store.startswith("redis://"):
            raise CannotRun("--by-hand needs a Redis: say --store redis://HOST:PORT")
        self.scene = scene
        url, _, name = scene.store.partition("name=")
        scene.env["REDIS_URL"] = url.rstrip("?&")
        # Beside the keys of this run's store, which go when it ends.
        scene.env["REDIS_PREFIX"] = f"{{{name}}}:by-hand:"
        scene.env["REPORTS_DB"] = str(scene.folder / "by-hand.db")
        # It never fails by itself here, and answers calls for C-9... on command.
        outside = [sys.executable, "outside/third_party.py", "--port", "0", "--calm"]
        part = scene.start("registry", [*outside, "--slow", "90", "--long", "90"], show=False)
        self.registry = part.wait_for("listening on ").split("listening on ")[1]
        scene.env["REGISTRY_URL"] = self.registry

    def worker(self, name: str, *options: str) -> Part:
        """Start a worker."""
        command = [self.scene.python(), "-m", "by_hand.worker", *options]
        return self.scene.start(name, command)

    def push(self, company: str) -> None:
        """Ask for a company, as a customer's request would."""
        self.worker("customer", "--push", company).wait()

    def seen(self, what: str, company: str) -> Any:
        """What the registry saw of a company."""
        with urlopen(self.registry, timeout=30) as answer:
            witness: dict[str, Any] = json.load(answer)
        found = witness[what]
        return company in found if isinstance(found, list) else found.get(company, [])

    def release(self) -> None:
        """Let the registry answer the calls that wait there."""
        urlopen(self.registry + "/release", timeout=30).close()

    def until(self, what: str, company: str) -> None:
        """Wait until the registry saw it."""
        self.scene.until(lambda: bool(self.seen(what, company)), 60, f"{what} {company}")


def show(scene: Scene) -> None:
    """Do the three steps, and check that the failure came."""
    hand = ByHand(scene)
    # `after` sorts behind `lost`: ZPOPMIN would give `lost` first, were it there.
    lost, twice, slow, after = "C-9002", "C-9001", "C-6003", "D-1004"

    first = hand.worker("worker-1")
    hand.push(lost)
    hand.until("answering", lost)
    first.kill()
    scene.say(f"SIGKILL: worker-1, between the ZPOPMIN of {lost} and its end")
    hand.release()
    hand.worker("worker-2")
    hand.push(lost)
    hand.push(after)
    hand.until("answers", after)
    scene.until(lambda: "200" in hand.seen("answers", after), 60, f"the report on {after}")
    scene.until(lambda: not hand.seen("answering", lost), 60, f"the end of the call for {lost}")
    calls = len(hand.seen("answers", lost))
    scene.check(
        calls == 1,
        "by hand, a query is lost with its worker",
        f"{lost} was asked for again, and nobody takes it: it stands in 'processing' for ever",
    )

    hand.push(twice)
    hand.until("answering", twice)
    scene.say("worker-3 starts, and queues again what it finds in 'processing'")
    hand.worker("worker-3", "--recover")
    hand.until("at_once", twice)
    hand.release()
    scene.check(
        hand.seen("at_once", twice),
        "by hand, the mend for it runs a query twice at the same time",
        f"{twice} was in the hands of worker-2, which is alive",
    )

    hand.push(slow)
    scene.until(lambda: len(hand.seen("answers", slow)) >= 5, 60, f"five answers on {slow}")
    answers = hand.seen("answers", slow)
    scene.check(
        answers == ["202"] * 5,
        "by hand, 'still processing' uses up the attempts",
        f"{slow} was given up after {len(answers)} answers of 202, with nothing wrong about it",
    )
