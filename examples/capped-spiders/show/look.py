"""Looks at the world from outside: what the witness says, and what follows from it."""

from __future__ import annotations

import json
import urllib.request
from typing import Any, Optional


def ask(method: str, url: str, body: Optional[bytes] = None) -> Any:
    """One HTTP call, and its answer as JSON if it is that."""
    call = urllib.request.Request(url, data=body, method=method)
    if body is not None and body[:1] in (b"{", b"["):
        call.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(call, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text[:1] in (b"{", b"[") else text


class Witness:
    """The witness of `outside/site.py`, and the gate of its site."""

    def __init__(self, said: str):
        """`said` is the line with which it begins."""
        _, self.site, _, self.address = said.split()

    def seen(self) -> dict:
        """Everything that it saw."""
        return ask("GET", f"{self.site}/witness")

    def note_speed(self, speed: int) -> None:
        """Note how many may run from now on.

        A higher cap is noted before it is set, and a lower one when it is in force.
        """
        ask("PUT", f"{self.site}/note/{speed}")

    def open_gate(self, article: str = "") -> None:
        """Let spiders end: those of one article, or all from now on."""
        ask("PUT", f"{self.site}/gate/open/{article}")

    def alive(self) -> set:
        """The jobs whose processes are there at this moment."""
        return {spider["job"] for spider in self.seen()["spiders"] if "gone" not in spider}


def overlap(seen: dict, moment: float) -> int:
    """How many processes there were at a moment, those that began at it included."""
    return sum(each["born"] <= moment < each.get("gone", seen["now"]) for each in seen["spiders"])


def speed_at(seen: dict, moment: float) -> int:
    """The cap that was in force."""
    return int([note["text"] for note in seen["notes"] if note["at"] <= moment][-1])


def over_the_cap(seen: dict) -> list:
    """Each start of an article at which more processes were there than the cap of that moment.

    Only a start makes the number rise, so nothing between two starts needs a look. A start by hand
    asks nobody: it is counted at the starts of the others, and not judged itself.
    """
    found = []
    for spider in seen["spiders"]:
        there, cap = overlap(seen, spider["born"]), speed_at(seen, spider["born"])
        if spider["job"].startswith("article-") and there > cap:
            others = [
                f"{each['job']} (from {each['born']:.2f} to {each.get('gone', seen['now']):.2f})"
                for each in seen["spiders"]
                if each["born"] <= spider["born"] < each.get("gone", seen["now"])
            ]
            found.append(
                f"{spider['job']} was started as number {there} of {cap}, noted at "
                f"{seen['notes'][-1]['at']:.2f}: {', '.join(others)}"
            )
    return found


def most_at_once(seen: dict) -> str:
    """For each cap in its turn, the most processes that were there at a start."""
    told = []
    for note, following in zip(seen["notes"], [*seen["notes"][1:], {"at": seen["now"]}]):
        births = [each["born"] for each in seen["spiders"]]
        most = [overlap(seen, each) for each in births if note["at"] <= each < following["at"]]
        told.append(f"{max(most, default=0)} of {note['text']}")
    return ", then ".join(told)


def slow_start(seen: dict) -> str:
    """How long processes were there before their first request."""
    starts = [each["job"] for each in seen["spiders"]]
    took = [
        asked - each["born"]
        for each in seen["spiders"]
        # The first request of a spider that ran again is not told from the one before.
        if starts.count(each["job"]) == 1
        for asked in [seen["asked"].get(each["job"].replace("article-", ""))]
        if asked is not None
    ]
    return f"{min(took):.1f} to {max(took):.1f} s" if took else "some time"
