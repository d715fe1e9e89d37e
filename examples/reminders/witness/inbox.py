"""The inbox: what the people see, and the witness of the run. It knows nothing of Tenure.

It stores each message once, by its `Idempotency-Key`, and answers 409 to one that it has. All that
reaches it is a line in a file, with the moment and the process that sent it.

    POST /messages   a message
    POST /hold       {"pid": 123, "when": "arrived"}   do not store the next message of this
                     process, and do not answer it; `"when": "stored"` stores it and does not answer
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: So long a held sender gets no answer, unless it is dead by then.
HOLD_S = 30.0


class Inbox:
    """What was stored, and whom to leave without an answer."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", buffering=1, encoding="utf-8")  # noqa: SIM115
        self._lock = threading.Lock()
        self._stored: set[str] = set()
        self._holds: dict[int, str] = {}

    def hold(self, pid: int, when: str) -> None:
        """Leave the next message of this process without an answer."""
        with self._lock:
            self._holds[pid] = when

    def take(self, key: str, pid: int, message: dict[str, Any]) -> tuple[str, str]:
        """Store a message, or refuse it. Returns what became of it, and whether to hold it."""
        with self._lock:
            hold = self._holds.pop(pid, "")
            if hold == "arrived":
                fate = "left"
            elif key in self._stored:
                fate = "refused"
            else:
                fate = "stored"
                self._stored.add(key)
            line = {"at": time.time(), "fate": fate, "key": key, "pid": pid, **message}
            self._file.write(json.dumps(line) + "\n")
            if hold:
                print(f"holds {json.dumps(line)}", flush=True)
        return fate, hold


class Door(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    inbox: Inbox

    def do_POST(self) -> None:
        """Take a message, or an order for the next one."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/hold":
            self.inbox.hold(body["pid"], body["when"])
            self._answer(200)
            return
        pid = int(self.headers["User-Agent"].partition("/")[2])
        fate, hold = self.inbox.take(self.headers["Idempotency-Key"], pid, body)
        if hold:
            # The sender is killed now. One that lives on after all finds its connection closed.
            time.sleep(HOLD_S)
            self.close_connection = True
            return
        self._answer(409 if fate == "refused" else 201)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing; the file has it all."""


class Server(ThreadingHTTPServer):
    """Many people are reminded at the same moment."""

    request_queue_size = 1024
    daemon_threads = True


if __name__ == "__main__":
    Door.inbox = Inbox(sys.argv[1])
    server = Server(("127.0.0.1", 0), Door)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
