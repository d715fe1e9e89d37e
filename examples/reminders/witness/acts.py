"""What is killed in a run, and when. None of it needs a line in the service's own code."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import sys
import time
import urllib.request
from typing import Any, Callable, Optional

from stage import Part, Scene

from .diary import Diary, Messages, Reminder, reminder
from .verdict import Downtime

#: All waits are for events; this is when to give up.
LONG_S = 60.0
#: The notifiers that die one by one. The third one dies only when everything does.
MORTAL = ["notifier-1", "notifier-2"]
#: The longest pause of a worker between two tries to reach its server.
RECONNECT_S = 2.0


class Acts:
    """The parts, and the acts in which they are killed."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.dice = scene.dice
        self.killed = {"notifiers": 0, "the server": 0, "the API": 0}
        #: When each process was killed that sends messages.
        self.deaths: dict[int, float] = {}
        self.downtimes: list[Downtime] = []
        #: Reminders that the acts have caused to be repeated, as a side effect.
        self.sent_unsettled: list[Reminder] = []
        self.told_twice: list[Reminder] = []
        #: How many meetings were changed while a dead notifier's job was to remind of them.
        self.changed_after_death = 0
        self._all_notifiers: list[Part] = []
        self._notifiers: dict[str, Part] = {}
        python = scene.python()
        if scene.args.node:
            self._notifier = scene.node("service/notifier")
        else:
            worker = ["-m", "tenure", "worker", "service.notifier:app", "--ttl", "2s"]
            self._notifier = [python, *worker]
        self._server = scene.serve()
        self._server_port = int(scene.url.rsplit(":", 1)[1])
        inbox = [sys.executable, "witness/inbox.py", str(scene.folder / "inbox")]
        self._inbox = scene.start("inbox", inbox, show=False)
        self._inbox_url = self._inbox.wait_for("listening on ").split()[-1]
        scene.env["INBOX_URL"] = self._inbox_url
        scene.env["MEETINGS_DB"] = str(scene.folder / "meetings.db")
        self._api_command = [python, "-m", "service.api", "--minute", str(scene.args.minute)]
        self._api_port = 0
        self._start_api()
        self._start_notifiers(*MORTAL, "notifier-3")
        self.messages = Messages(scene.folder / "inbox")
        api = scene.env["MEETINGS_URL"]
        self.diary = Diary(api, scene.args.minute, self.messages, scene.dice)

    def play(self) -> None:
        """Kill this and that, until the time is over. Each act is played once at least."""
        acts: list[Callable[[], None]] = [
            self._kill_a_notifier,
            self._kill_after_sending,
            self._kill_before_sending,
            self._kill_before_sending_then_move,
            self._kill_before_sending_then_delete,
            self._kill_the_server,
            self._kill_the_api,
            self._kill_the_api_before_it_tells,
            self._kill_the_api_before_it_notes,
            self._kill_everything,
        ]
        often = [
            self._kill_a_notifier,
            self._kill_after_sending,
            self._kill_before_sending_then_move,
        ]
        deck = [*acts, *often[:2]]
        self.dice.shuffle(deck)
        self.diary.start()
        end = time.monotonic() + self.scene.seconds
        while deck or time.monotonic() < end:
            time.sleep(self.dice.uniform(0.1, 0.4))
            act = deck.pop() if deck else self.dice.choice([*acts, *often])
            act()
            self.diary.go_on()
        self.diary.stop()

    # Notifiers

    def _kill_a_notifier(self) -> None:
        name = self.dice.choice(MORTAL)
        self._kill_notifier(name)
        self.scene.say(f"kill -9 {name}")
        self._start_notifiers(name)

    def _kill_after_sending(self) -> None:
        name, message = self._hold("stored")
        self._kill_notifier(name)
        if message["fate"] == "stored":
            self.sent_unsettled.append(reminder(message))
        what = f"the reminder for {message['who']} of meeting {message['meeting']}"
        self.scene.say(f"kill -9 {name}: the inbox has {what}, and Tenure does not know it")
        self._start_notifiers(name)

    def _kill_before_sending(self) -> None:
        name, message = self._hold("arrived")
        self._kill_notifier(name)
        what = f"the reminder for {message['who']} of meeting {message['meeting']}"
        self.scene.say(f"kill -9 {name} before it sent {what}, which will come late")
        self._start_notifiers(name)

    def _kill_before_sending_then_move(self) -> None:
        self._kill_before_sending_then("moved")

    def _kill_before_sending_then_delete(self) -> None:
        self._kill_before_sending_then("deleted")

    def _kill_before_sending_then(self, how: str) -> None:
        changed = False
        # The diary may have deleted the meeting of a message that was on its way.
        while not changed:
            name, message = self._hold("arrived")
            self._kill_notifier(name)
            changed = self.diary.change_after_death(message["meeting"], how)
            then = f"is {how} now" if changed else "was deleted meanwhile"
            what = f"a reminder of meeting {message['meeting']}"
            self.scene.say(f"kill -9 {name} before it sent {what}, which {then}")
            self._start_notifiers(name)
        self.changed_after_death += 1

    def _hold(self, when: str) -> tuple[str, dict[str, Any]]:
        """Let the inbox leave the next message of a notifier without an answer; wait for it."""
        name = self.dice.choice(MORTAL)
        pid = self._notifiers[name].process.pid
        order = json.dumps({"pid": pid, "when": when}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._inbox_url}/hold", order, headers)
        urllib.request.urlopen(request, timeout=10).close()
        line = self._inbox.wait_for(f'"pid": {pid},', LONG_S)
        return name, json.loads(line.partition(" ")[2])

    def _kill_notifier(self, name: str) -> None:
        part = self._notifiers[name]
        part.kill()
        self.deaths[part.process.pid] = time.time()
        self.killed["notifiers"] += 1

    def _start_notifiers(self, *names: str) -> None:
        for name in names:
            self._notifiers[name] = self.scene.start(name, self._notifier, show=False)
            self._all_notifiers.append(self._notifiers[name])
        for name in names:
            self._notifiers[name].wait_for("takes jobs of", LONG_S)

    # The server and the API

    def _kill_the_server(self) -> None:
        self.scene.say("kill -9 the Tenure server")
        down = self._stop_server()
        self._serve(down)

    def _kill_the_api(self) -> None:
        self.scene.say("kill -9 the API")
        down = self._stop_api()
        self._start_api(down)

    def _kill_the_api_before_it_tells(self) -> None:
        """Die between the commit of a meeting and the push of its reminders."""
        server = self._stop_server()
        meeting = self.diary.create(due_in=1)
        api = self._stop_api()
        self.scene.say(f"kill -9 the API, which has meeting {meeting} and could not tell Tenure")
        self._serve(server)
        self._start_api(api)

    def _kill_the_api_before_it_notes(self) -> None:
        """Die between the push of a reminder and the note that it is pushed; it fires meanwhile."""
        with self.diary.one_call:
            self.scene.until(lambda: self.wishes() == 0, LONG_S, "Tenure is told all wishes")
            server = self._stop_server()
            meeting = self.diary.create(due_in=0.5)
            # Another program holds the database's lock, as a backup might: no note can be made.
            with contextlib.closing(self._database()) as db:
                db.execute("BEGIN IMMEDIATE")
                self._serve(server)
                self.scene.until(
                    lambda: self._all_reminded(meeting), LONG_S, f"all are reminded of {meeting}"
                )
                api = self._stop_api()
                self.told_twice += self.diary.reminders(meeting)
        self.scene.say(f"kill -9 the API, which cannot note that meeting {meeting} is told")
        self._start_api(api)

    def _all_reminded(self, meeting: str) -> bool:
        self.messages.look()
        return self.diary.all_reminded(meeting)

    def _kill_everything(self) -> None:
        self.scene.say("kill -9 everything: the server, the API, three notifiers")
        notifiers = Downtime("notifiers", time.time())
        self.downtimes.append(notifiers)
        names = list(self._notifiers)
        for name in names:
            self._kill_notifier(name)
        server, api = self._stop_server(), self._stop_api()
        time.sleep(self.dice.uniform(0, 1))
        self._serve(server)
        self._start_api(api)
        self._start_notifiers(*names)
        notifiers.until = time.time()

    def _stop_server(self) -> Downtime:
        down = Downtime("server", time.time())
        self.downtimes.append(down)
        self._server.kill()
        self.killed["the server"] += 1
        return down

    def _serve(self, down: Downtime) -> None:
        self._server = self.scene.serve(port=self._server_port)
        up = time.time()
        # Clients double their pauses: they are back after as long again as it was down.
        down.until = up + min(up - down.since, RECONNECT_S)

    def _stop_api(self) -> Downtime:
        down = Downtime("API", time.time())
        self.downtimes.append(down)
        self._api.kill()
        self.killed["the API"] += 1
        return down

    def _start_api(self, down: Optional[Downtime] = None) -> None:
        command = [*self._api_command, "--port", str(self._api_port)]
        self._api = self.scene.start("api", command, show=False)
        url = self._api.wait_for("listening on ", LONG_S).split()[-1]
        self._api_port = int(url.rsplit(":", 1)[1])
        self.scene.env["MEETINGS_URL"] = url
        if down is not None:
            down.until = time.time()

    # The end

    def wishes(self) -> int:
        """Count what the API has not told Tenure yet."""
        with contextlib.closing(self._database()) as db:
            return db.execute("SELECT count(*) FROM wishes").fetchone()[0]

    def _database(self) -> sqlite3.Connection:
        path = self.scene.folder / "meetings.db"
        return sqlite3.connect(path, timeout=60, isolation_level=None)

    def unfinished_jobs(self) -> int:
        """Count the jobs that may still send something."""
        with urllib.request.urlopen(f"{self.scene.url}/v1/queues/reminders", timeout=60) as answer:
            return sum(json.load(answer)["counts"].values())

    def late_heartbeats(self) -> set[str]:
        """List jobs whose notifier found that it had lost them, though it lived."""
        lines = [line for part in self._all_notifiers for line in part.lines]
        found = (re.search(r"job ([^\s:]+).*lease_lost", line) for line in lines)
        return {each.group(1) for each in found if each}

    def check_audit(self) -> None:
        """Ask Tenure whether what it counts is what it holds."""
        with urllib.request.urlopen(f"{self.scene.url}/v1/audit", timeout=60) as answer:
            found = json.load(answer)
        faults = "; ".join(map(str, found["faults"]))
        self.scene.check(found["ok"], "the audit of Tenure finds no fault", faults)
