#!/usr/bin/env python3
"""A collector: takes due sources of its rules from Tenure, visits them and reports.

    TENURE_URL=http://127.0.0.1:7171 ./collector.py --tasks 40 news forum

It may be killed at any time: its sources then go to other collectors. It needs nothing but the
standard library.
"""

import argparse
import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

TTL = 2.0  # seconds from the last heartbeat of a dead collector until Tenure takes its sources back
PAUSE = 0.05  # seconds between two rounds of report and take
TENURE = urlsplit(os.environ.get("TENURE_URL", "http://127.0.0.1:7171")).netloc
HEADERS = {"Content-Type": "application/json"}
if os.environ.get("TENURE_TOKEN"):
    HEADERS["Authorization"] = f"Bearer {os.environ['TENURE_TOKEN']}"
now = time.monotonic


class Unanswered(Exception):
    """Nobody answered, or the server asks to try again."""


class Tenure:
    """A connection to Tenure, for one thread."""

    def __init__(self, timeout):
        self.wire = http.client.HTTPConnection(TENURE, timeout=timeout)

    def call(self, path, fields):
        """One try."""
        try:
            self.wire.request("POST", f"/v1/{path}", json.dumps(fields), HEADERS)
            answer = self.wire.getresponse()
            data = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as why:
            self.wire.close()
            raise Unanswered(why) from None
        if answer.status in (408, 429) or answer.status >= 500:
            raise Unanswered(data["detail"])
        if answer.status != 200:
            raise ValueError(f"{data['code']}: {data['detail']}")
        return data

    def repeat(self, path, fields):
        """The same call until it is answered: a repeated call takes and settles nothing twice."""
        while True:
            try:
                return self.call(path, fields)
            except Unanswered:
                time.sleep(0.2)


class Visit:
    """One source that this collector holds, until the report on it is answered."""

    def __init__(self, lease, sent):
        self.lease = lease["lease"]
        self.source = lease["job"]["payload"]
        self.proven = sent  # when the last call whose answer confirmed the lease was sent
        self.site = None  # the open connection
        self.given_up = False
        self.report = None  # set at the end

    def run(self, name):
        """Visits, and says when the source is due again: sooner if it has changed, else later."""
        every = self.source["every"]
        try:
            next_in = max(1, every // 2) if self.changed(name) else every * 3 // 2
            self.report = {"outcome": "succeeded", "next_in": f"{next_in}s"}
        except (OSError, http.client.HTTPException) as why:
            failed = {"outcome": "failed", "error": f"{type(why).__name__}: {why}"}
            self.report = {"outcome": "released"} if self.given_up else {**failed, "retry_in": "2s"}

    def changed(self, name):
        """Asks the site."""
        url = urlsplit(self.source["url"])
        self.site = http.client.HTTPConnection(url.netloc, timeout=30)
        try:
            self.site.connect()
            if self.given_up:
                raise OSError("the lease is lost")
            self.site.request("GET", url.path, headers={"User-Agent": name})
            answer = self.site.getresponse()
            answer.read()
        finally:
            self.site.close()
        if answer.status not in (200, 304):
            raise OSError(f"the site answered {answer.status}")
        return answer.status == 200

    def give_up(self):
        """Hangs up, so that the visit is over before another collector gets the source."""
        self.given_up = True
        wire = self.site and self.site.sock
        if wire:
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)


class Collector:
    """Holds at most `tasks` sources at once, of the rules that it serves."""

    def __init__(self, name, rules, tasks):
        self.name, self.rules, self.tasks = name, rules, tasks
        self.worker = f"{name}-{uuid.uuid4()}"  # never the name of an earlier process
        self.visits = {}  # by lease
        self.tenure, self.heart = Tenure(timeout=10), Tenure(timeout=TTL / 5)
        self.threads = ThreadPoolExecutor(tasks)
        self.stopping = threading.Event()

    def take(self):
        """Asks for as many sources as there are free tasks. The answer comes at once."""
        free = self.tasks - len(self.visits)
        if not free:
            return
        ask = {"queues": self.rules, "max": free, "ttl": f"{TTL:g}s", "worker": self.worker}
        sent = now()
        answer = self.tenure.repeat("leases", {**ask, "request_id": str(uuid.uuid4())})
        for lease in answer["leases"]:  # perhaps none
            visit = self.visits[lease["lease"]] = Visit(lease, sent)
            if now() - sent < TTL / 5:
                self.threads.submit(visit.run, self.name)
            else:
                # So late an answer may be of a lease that is lost before its first heartbeat.
                visit.report = {"outcome": "released"}

    def settle(self):
        """Reports all visits that are over."""
        over = [
            {"lease": each.lease, **each.report} for each in self.visits.values() if each.report
        ]
        if not over:
            return
        for item in self.tenure.repeat("leases/settle", {"settle": over})["settled"]:
            source = self.visits.pop(item["lease"]).source["source"]
            if not item["ok"]:
                print(f"{source}: the report counts no more: {item['code']}", flush=True)

    def beat(self):
        """Tells Tenure each fifth of the ttl that all these visits go on."""
        while True:
            sent, leases = now(), list(self.visits)
            try:
                answer = self.heart.call("leases/extend", {"leases": leases})
            except Unanswered:
                time.sleep(TTL / 20)
                continue
            for each in answer["extended"]:
                visit = self.visits.get(each["lease"])
                if visit:
                    visit.proven = sent
            for lease in answer["lost"]:
                visit = self.visits.get(lease)
                if visit and not visit.report:
                    visit.give_up()
            time.sleep(TTL / 5)

    def watch(self):
        """Gives up visits without an answered heartbeat before Tenure gives them to others."""
        while True:
            for visit in list(self.visits.values()):
                if not visit.report and now() - visit.proven > 0.8 * TTL:
                    visit.give_up()
            time.sleep(TTL / 50)

    def work(self):
        """Reports and takes, in turn, until it is stopped and everything is reported."""
        for each in (self.beat, self.watch):
            threading.Thread(target=each, daemon=True).start()
        while not self.stopping.is_set() or self.visits:
            self.settle()
            if not self.stopping.is_set():
                self.take()
            time.sleep(PAUSE)


def main():
    """Reads the command line and works until SIGTERM."""
    options = argparse.ArgumentParser(description="visits sources that are due")
    options.add_argument("rules", nargs="+", metavar="RULE", help="the first with due sources wins")
    options.add_argument("--tasks", type=int, default=40, help="the most sources at once (40)")
    options.add_argument("--name", default=f"collector-{os.getpid()}", help="shown to the sites")
    args = options.parse_args()
    collector = Collector(args.name, args.rules, args.tasks)
    signal.signal(signal.SIGTERM, lambda *_: collector.stopping.set())
    collector.work()


if __name__ == "__main__":
    main()
