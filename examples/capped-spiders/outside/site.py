"""The outside world: a site with articles, and the witness that counts the processes that crawl.

It knows nothing of Tenure or scrapyd. While its gate is closed, the last page of every article is
not answered, so that a spider that has come this far stays there. The run opens and closes it, to
meet each situation on purpose.

    GET /articles/ID/PAGE   a page with a link to the next, after 0.2 s
    PUT /gate/open          for all; /gate/open/ID for one article
    PUT /note/TEXT          the witness writes the text down, with the time
    GET /witness            everything that it saw
"""

from __future__ import annotations

import json
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from presence import now

PAGES = 3
PAGE_TAKES_S = 0.2


class Witness:
    """Each process with its beginning and its end, and the notes of the run."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.spiders: list[dict] = []
        self.notes: list[dict] = []
        #: Articles whose last page was answered, and when each was asked for first.
        self.read: list[str] = []
        self.asked: dict[str, float] = {}
        #: Articles whose last page is answered; None is all.
        self.opened: set = set()

    def enter(self, spider: dict) -> None:
        """Write down a process that has begun."""
        with self.changed:
            self.spiders.append(spider)

    def leave(self, spider: dict, gone: float) -> None:
        """Write down its end, unless it is written down already."""
        with self.changed:
            spider.setdefault("gone", gone)

    def ask(self, article: str) -> None:
        """Write down the first request for an article."""
        with self.changed:
            self.asked.setdefault(article, now())

    def note(self, text: str) -> None:
        """Write down a note of the run."""
        with self.changed:
            self.notes.append({"at": now(), "text": text})

    def open_gate(self, article: str) -> None:
        """Let spiders end: those of one article, or all."""
        with self.changed:
            self.opened.add(article or None)
            self.changed.notify_all()

    def pass_gate(self, article: str) -> None:
        """Wait for the gate, and count the article as read."""
        with self.changed:
            self.changed.wait_for(lambda: self.opened & {None, article})
            self.read.append(article)

    def seen(self) -> str:
        """Tell everything."""
        with self.changed:
            seen = {"now": now(), "spiders": self.spiders, "notes": self.notes}
            return json.dumps({**seen, "read": self.read, "asked": self.asked})


WITNESS = Witness()


class Site(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a page, or what the witness saw."""
        if self.path == "/witness":
            return self._answer("application/json", WITNESS.seen())
        _, kind, article, page = [*self.path.split("/"), "", "", ""][:4]
        if kind != "articles" or not page.isdigit():
            return self.send_error(404)
        WITNESS.ask(article)
        time.sleep(PAGE_TAKES_S)
        if int(page) < PAGES:
            link = f'<a class="next" href="/articles/{article}/{int(page) + 1}">next</a>'
        else:
            WITNESS.pass_gate(article)
            link = "the end"
        return self._answer("text/html", f"<title>Article {article}, page {page}</title>{link}")

    def do_PUT(self) -> None:
        """Do what the run says."""
        _, kind, what, article = [*self.path.split("/"), "", "", ""][:4]
        if kind == "gate":
            WITNESS.open_gate(article)
        else:
            WITNESS.note(what)
        self._answer("text/plain", "done")

    def _answer(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            # The spider was killed meanwhile.
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Door(socketserver.StreamRequestHandler):
    """One connection of `presence.py`, from the birth of a process to its end."""

    def handle(self) -> None:
        """Listen until the process has ended."""
        spider: dict = {}
        try:
            for line in self.rfile:
                said = json.loads(line)
                if "born" in said:
                    spider = said
                    WITNESS.enter(spider)
                else:
                    WITNESS.leave(spider, said["gone"])
        except OSError:
            # A process that is killed may reset its connection.
            pass
        # One that was killed has not said when: it ended when its connection was closed.
        WITNESS.leave(spider, now())


class Doors(socketserver.ThreadingTCPServer):
    """Where processes enter."""

    daemon_threads = True


def main() -> None:
    """Serve until killed."""
    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    doors = Doors(("127.0.0.1", 0), Door)
    threading.Thread(target=doors.serve_forever, daemon=True).start()
    witness = "{}:{}".format(*doors.server_address)
    print(f"site http://127.0.0.1:{site.server_address[1]} witness {witness}", flush=True)
    site.serve_forever()


if __name__ == "__main__":
    main()
