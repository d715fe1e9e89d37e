"""The registry: a third party that sells reports on companies, and the witness of the run.

It is slow, says "still processing" for a while, and fails now and then. It counts what reaches it
and refuses calls above its published rate. What it does with a company depends on the number:
C-6... is processed for long, C-7... always fails, C-8... is unknown, C-9... takes long to answer.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: At most this many calls in any span of this length, in seconds.
CALLS, SPAN_S = 80, 5.0


class Company:
    """What the registry knows of the calls for one company."""

    def __init__(self, number: str, dice: random.Random, long_s: float):
        self.number = number
        takes_s = long_s if number.startswith("C-6") else dice.uniform(0.8, 2.0)
        self.ready_at = time.monotonic() + takes_s
        # It fails at most twice in vain for each company, so that only C-7... runs out of attempts.
        self.faults_left = 2
        #: The connections of calls that are being answered.
        self.answering: list[socket.socket] = []
        self.orders: set[str] = set()
        self.answers: list[str] = []
        self.as_of: list[int] = []


class Registry:
    """Decides about each call, and counts."""

    def __init__(self, seed: int, calm: bool, slow_s: float, long_s: float):
        self.dice = random.Random(seed)
        self.calm = calm
        self.slow_s = slow_s
        self.long_s = long_s
        self.gate = threading.Event()
        self.lock = threading.Lock()
        self.companies: dict[str, Company] = {}
        self.recent: collections.deque[float] = collections.deque()
        self.most = 0
        self.over_rate = 0
        self.at_once: list[str] = []
        self.serial = 0
        self.asked_for_rest_at = time.monotonic()

    def take(
        self, number: str, order: str, caller: socket.socket
    ) -> tuple[int, Any, dict[str, str]]:
        """One call, from the moment at which it was read to the moment before it is answered."""
        with self.lock:
            company = self.companies.setdefault(number, Company(number, self.dice, self.long_s))
            company.orders.add(order)
            # A process that was killed has no calls, though its last one is still answered.
            if any(is_there(other) for other in company.answering):
                self.at_once.append(number)
            company.answering.append(caller)
            allowed = self._count()
            pause = self.dice.uniform(0.1, 0.4)
            gate = self.gate
        if allowed and number.startswith("C-9"):
            gate.wait(self.slow_s)
        elif allowed:
            time.sleep(pause)
        with self.lock:
            company.answering.remove(caller)
            status, body, headers = self._answer(company) if allowed else self._refuse()
            company.answers.append({0: "cut"}.get(status, str(status)))
            return status, body, headers

    def release(self) -> None:
        """Answer the calls for C-9... that wait now."""
        with self.lock:
            gate, self.gate = self.gate, threading.Event()
        gate.set()

    def _count(self) -> bool:
        now = time.monotonic()
        while self.recent and self.recent[0] <= now - SPAN_S:
            self.recent.popleft()
        self.most = max(self.most, len(self.recent) + 1)
        if len(self.recent) >= CALLS:
            self.over_rate += 1
            return False
        self.recent.append(now)
        return True

    def _refuse(self) -> tuple[int, Any, dict[str, str]]:
        return 429, {"error": "above the published rate"}, {"Retry-After": "1"}

    def _answer(self, company: Company) -> tuple[int, Any, dict[str, str]]:
        now = time.monotonic()
        kind = company.number[:3]
        if kind == "C-8":
            return 404, {"error": "no such company"}, {}
        if kind == "C-7":
            return 500, {"error": "internal"}, {}
        if kind != "C-9" and not self.calm:
            if now - self.asked_for_rest_at > 3 and self.dice.random() < 0.05:
                self.asked_for_rest_at = now
                return 429, {"error": "busy"}, {"Retry-After": "1"}
            if company.faults_left and self.dice.random() < 0.25:
                company.faults_left -= 1
                return (500, {"error": "internal"}, {}) if self.dice.random() < 0.5 else (0, {}, {})
        if kind != "C-9" and now < company.ready_at:
            return 202, {"state": "still processing"}, {"Retry-After": "1"}
        self.serial += 1
        company.as_of.append(self.serial)
        rating = "ABCDE"[int(company.number[2:]) % 5]
        return 200, {"company": company.number, "rating": rating, "as_of": self.serial}, {}

    def witness(self) -> dict[str, Any]:
        """All that was seen from here."""
        with self.lock:
            return {
                "calls": sum(len(each.answers) for each in self.companies.values()),
                "most": self.most,
                "allowed": CALLS,
                "span": SPAN_S,
                "over_rate": self.over_rate,
                "at_once": self.at_once,
                "answering": [each.number for each in self.companies.values() if each.answering],
                "orders": {each.number: len(each.orders) for each in self.companies.values()},
                "answers": {each.number: each.answers for each in self.companies.values()},
            }


def is_there(caller: socket.socket) -> bool:
    """Whether the other side of a connection still has it open."""
    try:
        return caller.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


class Door(BaseHTTPRequestHandler):
    """The HTTP of it."""

    registry: Registry

    def do_POST(self) -> None:
        """Answer one call."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, body, headers = self.registry.take(
            asked["company"], self.headers["Idempotency-Key"], self.connection
        )
        if status == 0:
            # The caller cannot know whether anything was done.
            self.close_connection = True
            return
        self.answer(status, body, headers)

    def do_GET(self) -> None:
        """Say what was seen."""
        if self.path == "/release":
            self.registry.release()
        self.answer(200, self.registry.witness(), {})

    def answer(self, status: int, body: Any, headers: dict[str, str]) -> None:
        """Send an answer."""
        text = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)
        except OSError:
            # The caller was killed.
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Log no line for each request."""


def main() -> None:
    """Serve for ever."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calm", action="store_true", help="no failures by chance")
    parser.add_argument("--slow", type=float, default=1.2, metavar="S", help="for C-9... (1.2)")
    parser.add_argument("--long", type=float, default=8, metavar="S", help="for C-6... (8)")
    given = parser.parse_args()
    Door.registry = Registry(given.seed, given.calm, given.slow, given.long)
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Door)
    server.daemon_threads = True
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
