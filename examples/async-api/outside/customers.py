"""The customers: pairs of them ask our API for the same company at the same moment.

All come within 1.5 s, which is more than the registry's rate allows, and some stay.

Each asks once without waiting, then with ?wait=2s until there is an end. SIGTERM: no new
companies; what was asked for is asked for until its end. The last line of the output is what they
saw, as JSON.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import signal
import threading
import time
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

stopping = threading.Event()

#: The longest time that a customer asks on, in seconds: until it gives up, and one last answer.
ENDS_WITHIN = 150


def stop() -> None:
    """Let nobody ask for more. If somebody still asks after that time, stderr says where."""
    stopping.set()
    faulthandler.dump_traceback_later(ENDS_WITHIN)


class Seen:
    """What became of one company, as its two customers saw it."""

    def __init__(self) -> None:
        self.jobs: set[str] = set()
        self.ends: list[dict[str, Any]] = []


class Customers:
    """Asks, and keeps what was answered."""

    def __init__(self, api: str, seed: int):
        self.api = api
        self.dice = random.Random(seed)
        self.lock = threading.Lock()
        self.next = 0
        self.seen: dict[str, Seen] = {}
        self.at_once_s: list[float] = []
        self.known: list[str] = []
        self.known_again = 0
        self.wrong: list[str] = []

    def pair(self, stays: bool) -> None:
        """One company after the other, and now and then one that must be known by now."""
        time.sleep(1.5 * random.random())
        again = True
        while again and not stopping.is_set():
            again = stays
            company = self._pick()
            gate = threading.Barrier(2)
            both = [threading.Thread(target=self._ask, args=(company, gate)) for _ in range(2)]
            for each in both:
                each.start()
            for each in both:
                each.join()
            # A pair that ends asks no more, so that its end takes a known time at most.
            if not stopping.is_set():
                self._ask_again()

    def _pick(self) -> str:
        with self.lock:
            self.next += 1
            kind = {2: 6, 3: 7, 20: 7}.get(self.next, 8 if self.next % 12 == 5 else 1)
            company = f"C-{kind}{self.next:03}"
            self.seen[company] = Seen()
            return company

    def _ask(self, company: str, gate: threading.Barrier) -> None:
        seen = self.seen[company]
        gate.wait()
        wait = ""
        give_up = time.monotonic() + 90
        while time.monotonic() < give_up:
            began = time.monotonic()
            status, body = self._get(f"/reports/{company}{wait}")
            with self.lock:
                if status == 202:
                    seen.jobs.add(body["job"])
                    if not wait:
                        self.at_once_s.append(time.monotonic() - began)
                elif status in (200, 502):
                    seen.ends.append(body)
                    if status == 200:
                        self.known.append(company)
                    return
            wait = "?wait=2s"
            if status not in (200, 202, 502):
                time.sleep(0.2)
        with self.lock:
            seen.ends.append({"state": "no end within 90 s"})

    def _ask_again(self) -> None:
        with self.lock:
            if not self.known or self.dice.random() > 0.3:
                return
            company = self.dice.choice(self.known)
        status, body = self._get(f"/reports/{company}")
        with self.lock:
            if status == 200 and body["company"] == company:
                self.known_again += 1
            elif status not in (0, 503):
                self.wrong.append(f"{company} was known, and then {status}: {body}")

    def _get(self, path: str) -> tuple[int, Any]:
        try:
            try:
                # For the connection, the head and the body each.
                answer = urlopen(self.api + path, timeout=20)
            except HTTPError as refused:
                answer = refused
            with answer:
                return answer.status, json.load(answer)
        except (OSError, HTTPException, ValueError):
            # Our API was killed, or is not up yet.
            return 0, None

    def summary(self) -> dict[str, Any]:
        """All that they saw."""
        times = sorted(self.at_once_s) or [0.0]
        return {
            "companies": {
                number: {"jobs": sorted(seen.jobs), "ends": seen.ends}
                for number, seen in self.seen.items()
            },
            "first_ms": [round(1000 * times[len(times) // 2]), round(1000 * times[-1])],
            "known_again": self.known_again,
            "wrong": self.wrong,
        }


def main() -> None:
    """Ask until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("api", help="http://HOST:PORT of the API")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--staying", type=int, default=12, help="pairs that ask for more")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: stop())
    customers = Customers(given.api, given.seed)
    stays = [number < given.staying for number in range(given.pairs)]
    pairs = [threading.Thread(target=customers.pair, args=[each]) for each in stays]
    for each in pairs:
        each.start()
    for each in pairs:
        each.join()
    print("seen " + json.dumps(customers.summary()), flush=True)


if __name__ == "__main__":
    main()
