"""A web site that counts its visitors, and crawlers of it as processes of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Optional
from urllib.parse import parse_qs, urlsplit

from forked import Forked, Program


class Visit:
    """One request, as the site saw it."""

    def __init__(self, path: str, account: str, proxied: bool) -> None:
        self.path = path
        self.account = account
        self.proxied = proxied
        self.began = time.monotonic()
        self.status = 0


class Site:
    """What it answers is told by the query: `ms`, `status`, `retry_after`, `links`, `gate`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.visits: list[Visit] = []
        self.most = 0
        #: The most visitors at once of each account.
        self.most_of: Counter[str] = Counter()
        self._now: Counter[str] = Counter()
        #: Visitors of pages with `gate` stay until it is opened.
        self.gate = threading.Event()
        #: Statuses that a path answers before it answers 200.
        self.first: dict[str, list[tuple[int, dict[str, str]]]] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site._answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def inside(self) -> int:
        return sum(self._now.values())

    def paths(self) -> list[str]:
        return [visit.path for visit in list(self.visits)]

    def _answer(self, asked: BaseHTTPRequestHandler) -> None:
        # A proxy is asked for the whole address.
        proxied = asked.path.startswith("http")
        parts = urlsplit(asked.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        visit = Visit(parts.path, asked.headers.get("X-Account", ""), proxied)
        with self._lock:
            self.visits.append(visit)
            self._now[visit.account] += 1
            self.most = max(self.most, self.inside)
            self.most_of[visit.account] = max(self.most_of[visit.account], self._now[visit.account])
            left = self.first.get(parts.path)
            status, headers = left.pop(0) if left else (int(query.get("status", 200)), {})
        if "gate" in query:
            self.gate.wait(30)
        time.sleep(float(query.get("ms", 0)) / 1000)
        links = "".join(f'<a href="{link}">x</a>' for link in query.get("links", "").split())
        body = f"<html><body>{visit.account}{links}</body></html>".encode()
        with self._lock:
            self._now[visit.account] -= 1
            visit.status = status
        # Nobody may read it any more.
        with contextlib.suppress(OSError):
            asked.send_response(status)
            asked.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                asked.send_header(name, value)
            asked.end_headers()
            asked.wfile.write(body)


class Crawlers:
    """`scrapy crawl` as processes, with one log."""

    def __init__(self, url: str, namespace: str, folder: Path) -> None:
        self.url = url
        self.namespace = namespace
        self._log = folder / f"crawl-{namespace}.log"
        self._processes: list[Program] = []

    def start(
        self, spider: str, *, args: Optional[dict[str, Any]] = None,
        settings: Optional[dict[str, Any]] = None, env: Optional[dict[str, str]] = None,
    ) -> Program:  # fmt: skip
        """Crawl, in a process that has imported Scrapy."""
        process = Forked(
            "scrapy", crawl(spider, args, settings), Path(__file__).parent,
            {**crawl_env(self.url, self.namespace), **(env or {})}, self._log,
        )  # fmt: skip
        self._processes.append(process)
        return process

    def run(
        self, command: list[str], env: Optional[dict[str, str]] = None
    ) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                command, cwd=Path(__file__).parent, stdout=log, stderr=log,
                env={**crawl_env(self.url, self.namespace), **(env or {})},
            )  # fmt: skip
        self._processes.append(process)
        return process

    def crawl(self, spider: str, within: float = 40, **options: Any) -> int:
        """Crawl to the end; return the exit status."""
        return self.start(spider, **options).wait(within)

    def log(self) -> str:
        return self._log.read_text()

    def kill_all(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


def crawl_env(url: str, namespace: str) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("TENURE_")},
        "TENURE_URL": url,
        "TENURE_NAMESPACE": namespace,
        "SCRAPY_SETTINGS_MODULE": "scrapy_project",
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
    }


def command(
    spider: str, args: Optional[dict[str, Any]] = None, settings: Optional[dict[str, Any]] = None
) -> Iterator[str]:
    """Write the command of a crawl, for others to run."""
    yield from (sys.executable, "-m", "scrapy", *crawl(spider, args, settings))


def crawl(
    spider: str, args: Optional[dict[str, Any]], settings: Optional[dict[str, Any]]
) -> list[str]:
    """Write the arguments of Scrapy's own command."""
    given = [word for name, value in (args or {}).items() for word in ("-a", f"{name}={value}")]
    set_up = [
        word for name, value in (settings or {}).items() for word in ("-s", f"{name}={value}")
    ]
    return ["crawl", spider, *given, *set_up]
