"""The people who make meetings: they create, move and delete them, and write down what they did.

The diary holds what was asked of the API and when it was answered. With it the verdict knows what
the inbox must have, without a word from the API, its database or Tenure.
"""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

PEOPLE = [
    *("ann", "bob", "cem", "dora", "emil", "fay", "gus", "hana", "ivo", "jin"),
    *("kim", "li", "mei", "noor", "otto", "pia", "quin", "rosa", "sam", "tess"),
]


#: A meeting, a person, and when the meeting starts.
Reminder = tuple[str, str, float]


def reminder(message: dict[str, Any]) -> Reminder:
    """Say which reminder a message is."""
    starts = datetime.fromisoformat(message["starts"]).timestamp()
    return message["meeting"], message["who"], starts


@dataclass
class Entry:
    """What holds for one person and one meeting from the moment at which it was asked for."""

    starts: Optional[float]
    """When the meeting starts; None from when it is deleted."""
    asked: float
    """When the call was sent for the first time."""
    answered: float
    """When the API had answered it."""
    after_death: bool = False
    """A notifier died with this reminder in its hands, unsent, right before the call."""


class Messages:
    """What has reached the inbox, as far as its file tells now."""

    def __init__(self, path: Path) -> None:
        self.lines: list[dict[str, Any]] = []
        self.stored: set[Reminder] = set()
        self.refused: set[Reminder] = set()
        self._path = path
        self._read = 0

    def look(self) -> None:
        """Read what came since the last look."""
        with open(self._path, "rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        for text in whole.splitlines():
            line = json.loads(text)
            self.lines.append(line)
            if line["fate"] == "stored":
                self.stored.add(reminder(line))
            elif line["fate"] == "refused":
                self.refused.add(reminder(line))


class Diary:
    """Somebody who makes meetings until told to stop."""

    def __init__(self, api: str, minute: float, messages: Messages, dice: random.Random) -> None:
        self.histories: dict[tuple[str, str], list[Entry]] = {}
        self.counts = {"created": 0, "moved": 0, "moved after it": 0, "deleted": 0}
        self._fault: Optional[BaseException] = None
        self._api = api
        self._minute = minute
        self._messages = messages
        self._dice = dice
        self._meetings: dict[str, tuple[float, list[str]]] = {}
        self._done: set[str] = set()
        # One after the other, so that the diary has the order in which the API got them. The
        # holder of this is the only one that makes calls.
        self.one_call = threading.RLock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Do this and that, on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End it. Raises what went wrong meanwhile."""
        self._over.set()
        self._thread.join()
        self.go_on()

    def go_on(self) -> None:
        """Raise what went wrong, if anything did."""
        if self._fault is not None:
            raise self._fault

    def _run(self) -> None:
        try:
            # Many people at one moment.
            everybody = [f"{who}-{n}" for who in PEOPLE for n in (1, 2)]
            self.create(due_in=4, people=everybody)
            while not self._over.wait(self._dice.uniform(0.02, 0.08)):
                self._messages.look()
                with self.one_call:
                    self._do_something()
        except BaseException as fault:
            self._fault = fault

    def _do_something(self) -> None:
        roll = self._dice.random()
        if roll < 0.6:
            self.create()
        elif roll < 0.75:
            self._change(self._waiting(), "moved")
        elif roll < 0.85:
            self._change(self._reminded(), "moved after it")
        else:
            self._change(self._waiting(), "deleted")

    def create(self, due_in: Optional[float] = None, people: Optional[list[str]] = None) -> str:
        """Make a meeting."""
        with self.one_call:
            id = str(len(self._meetings) + 1)
            people = people or self._dice.sample(PEOPLE, self._dice.randint(1, 5))
            self._meetings[id] = (0.0, people)
            self._put(id, due_in)
            self.counts["created"] += 1
        return id

    def change_after_death(self, id: str, how: str) -> bool:
        """Move or delete a meeting of which a dead notifier was to remind. False if it is gone."""
        with self.one_call:
            if id in self._done:
                return False
            self.counts[how] += 1
            if how == "moved":
                self._put(id, after_death=True)
            else:
                self._delete(id, after_death=True)
        return True

    def reminders(self, id: str) -> list[Reminder]:
        """List the reminders of a meeting as it stands."""
        starts, people = self._meetings[id]
        return [(id, who, starts) for who in people]

    def changed_since(self, reminder: Reminder) -> bool:
        """Say whether a meeting was moved or deleted after it had this reminder."""
        meeting, who, starts = reminder
        return self.histories[(meeting, who)][-1].starts != starts

    def _delete(self, id: str, after_death: bool = False) -> None:
        self._done.add(id)
        self._note(id, None, self._call("DELETE", id), after_death)

    def due(self, id: str) -> float:
        """Say when people are to be reminded of a meeting."""
        return self._meetings[id][0] - 5 * self._minute

    def all_reminded(self, id: str) -> bool:
        """Say whether everybody has been reminded of a meeting as it stands."""
        return all(each in self._messages.stored for each in self.reminders(id))

    def _waiting(self) -> list[str]:
        now = time.time()
        return [id for id in self._meetings if id not in self._done and self.due(id) > now]

    def _reminded(self) -> list[str]:
        return [id for id in self._meetings if id not in self._done and self.all_reminded(id)]

    def _change(self, ids: list[str], how: str) -> None:
        if not ids:
            return
        id = self._dice.choice(ids)
        if how == "deleted":
            self._delete(id)
        else:
            self._put(id)
        self.counts[how] += 1

    def _put(self, id: str, due_in: Optional[float] = None, after_death: bool = False) -> None:
        if due_in is None:
            due_in = self._dice.uniform(0.6, 3)
        before, people = self._meetings[id]
        # Meetings start at whole minutes, so that many people are reminded at once.
        whole = int((time.time() + due_in + 5 * self._minute) / self._minute)
        while True:
            starts = round((whole + 1) * self._minute, 3)
            # A time that people were reminded of already would give no new reminder.
            if not any((id, who, starts) in self._messages.stored for who in people):
                break
            whole += 1
        if starts == before:
            return
        moment = datetime.fromtimestamp(starts, timezone.utc).isoformat()
        body = {"title": f"meeting {id}", "starts": moment, "people": people}
        self._meetings[id] = (starts, people)
        self._note(id, starts, self._call("PUT", id, body), after_death)

    def _note(
        self, id: str, starts: Optional[float], when: tuple[float, float], after_death: bool
    ) -> None:
        for who in self._meetings[id][1]:
            history = self.histories.setdefault((id, who), [])
            history.append(Entry(starts, *when, after_death))

    def _call(self, method: str, id: str, body: Any = None) -> tuple[float, float]:
        """Ask the API until it answers: it is killed now and then."""
        data = None if body is None else json.dumps(body).encode()
        asked = time.time()
        while True:
            request = urllib.request.Request(f"{self._api}/meetings/{id}", data, method=method)
            request.add_header("Content-Type", "application/json")
            try:
                urllib.request.urlopen(request, timeout=60).close()
                return asked, time.time()
            except urllib.error.HTTPError as refused:
                # A delete that is sent again finds nothing.
                if refused.code == 404:
                    return asked, time.time()
                raise
            except OSError:
                if time.time() > asked + 60:
                    raise
                time.sleep(0.05)
