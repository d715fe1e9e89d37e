"""The API of the meetings: `python -m service.api --port 8000`.

    PUT    /meetings/42   {"title": "plan", "starts": "2030-12-01T10:00:00Z", "people": ["ann"]}
    GET    /meetings/42
    DELETE /meetings/42

PUT creates a meeting or moves it, and may be sent again if its answer was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import threading
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import tenure

from .meetings import Meeting, Meetings, Wish
from .notifier import remind

meetings = Meetings(os.environ["MEETINGS_DB"])
#: Set when there may be a wish to tell.
wished = threading.Event()
#: How early people are reminded: five minutes.
early = timedelta(minutes=5)


def tell(wish: Wish) -> None:
    """Tell Tenure one wish. The key says which reminder it is, so the same twice is the same."""
    key = f"meeting-{wish.meeting}:{wish.who}"
    if wish.starts is None:
        # Nothing has the key if the reminder was sent, or is being sent, or was never set.
        with contextlib.suppress(tenure.errors.JobNotFound):
            remind.app.client.jobs.cancel(f"key:{key}")
        return
    remind.options(
        run_at=datetime.fromisoformat(wish.starts) - early,
        unique={"key": key, "until": "start", "on_conflict": "replace"},
    ).push(meeting=wish.meeting, who=wish.who, starts=wish.starts)


def relay() -> None:
    """Tell all wishes, also those that a process before this one left, for as long as it lives."""
    while True:
        wished.clear()
        told = []
        for wish in meetings.wishes():
            try:
                tell(wish)
                told.append(wish)
            except tenure.TenureError as error:
                print(f"could not tell {wish}: {error}", flush=True)
        # A death before this line tells them twice, which the key allows. The other way round, a
        # death would lose them.
        meetings.told(told)
        if not told:
            wished.wait(timeout=1)


class Api(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Show a meeting."""
        found = meetings.get(self._id())
        self._answer(200, vars(found)) if found else self._answer(404, {"error": "no such meeting"})

    def do_PUT(self) -> None:
        """Create a meeting, or move it."""
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            starts = datetime.fromisoformat(body["starts"].replace("Z", "+00:00"))
            if starts.tzinfo is None:
                raise ValueError('"starts" needs a time zone')
            # One moment is always written in one way, since notifiers compare it as text.
            text = starts.astimezone(timezone.utc).isoformat()
            meeting = Meeting(self._id(), str(body["title"]), text, sorted(set(body["people"])))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._answer(422, {"error": str(error)})
            return
        created = meetings.put(meeting)
        wished.set()
        self._answer(201 if created else 200, vars(meeting))

    def do_DELETE(self) -> None:
        """Delete a meeting."""
        deleted = meetings.delete(self._id())
        wished.set()
        self._answer(204 if deleted else 404, None)

    def _id(self) -> str:
        return self.path.removeprefix("/meetings/")

    def _answer(self, status: int, body: Any) -> None:
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: titles and people are nobody's business."""


class Server(ThreadingHTTPServer):
    """Takes a crowd of callers at once; the default of 5 makes the sixth try again in a second."""

    request_queue_size = 128


def main() -> None:
    """Serve until the end."""
    global early
    arguments = argparse.ArgumentParser(description="The API of the meetings")
    arguments.add_argument("--port", type=int, default=8000)
    arguments.add_argument("--minute", type=float, default=60, help="how many seconds a minute has")
    given = arguments.parse_args()
    early = timedelta(seconds=5 * given.minute)
    server = Server(("127.0.0.1", given.port), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    # On the main thread: if it cannot go on, the process ends and is started again, rather than
    # take meetings without ever sending reminders.
    relay()


if __name__ == "__main__":
    main()
