"""The two workers of the page "Any language, over HTTP", taken from it and run by real programs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Optional

import pytest

from conftest import Server, until
from proxy import Proxy
from tenure import Tenure
from tenure.durations import read_moment

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "http.md"
LANGUAGES = {"js": "worker.mjs", "python": "worker.py"}
#: A restart of the server must be over before 0.8 of it, when the worker stops its runs.
TTL_S = 4


def node() -> str:
    """Find Node, unless the tests are to do without."""
    if "node" in os.environ.get("TENURE_WITHOUT", "").split(","):
        pytest.skip("left out: node")
    found = shutil.which("node") or shutil.which("nodejs")
    version = (
        subprocess.run([found, "--version"], capture_output=True, text=True) if found else None
    )
    if found is None or version is None or int(re.findall(r"\d+", version.stdout)[0]) < 18:
        pytest.fail(
            "there is no Node 18 or newer here; install it (apt-get install nodejs), or leave it "
            "out: ./test --without node"
        )
    return found


class Site:
    """Pages that go on until the test says so, and how each visit ended."""

    def __init__(self) -> None:
        self.visits: list[str] = []
        #: Whether each visit that ended got its whole page.
        self.ends: list[tuple[str, bool]] = []
        self._done: dict[str, threading.Event] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.strip("/")
                site.visits.append(name)
                whole = False
                with contextlib.suppress(OSError):
                    self.send_response(200)
                    self.end_headers()
                    while not site._event(name).wait(0.02):
                        self.wfile.write(b".")
                    self.wfile.write(b"end")
                    whole = True
                site.ends.append((name, whole))

            def log_message(self, format: str, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _event(self, name: str) -> threading.Event:
        return self._done.setdefault(name, threading.Event())

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}"

    def finish(self, name: str) -> None:
        """Let a page end."""
        self._event(name).set()

    def close(self) -> None:
        for event in self._done.values():
            event.set()
        self._server.shutdown()
        self._server.server_close()


class PageWorker:
    """The worker of the page as a process."""

    def __init__(self, language: str, folder: Path, drain_s: int) -> None:
        (code,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)
        for name, seconds in (("TTL", TTL_S), ("DRAIN", drain_s)):
            code, changed = re.subn(
                rf"^(const )?{name} = ([\d_.]+)",
                lambda found, s=seconds, n=name: (  # type: ignore[misc]
                    f"{found[1] or ''}{n} = {s * 1000 if found[1] else s}"
                ),
                code,
                flags=re.M,
            )
            assert changed == 1
        self._path = folder / LANGUAGES[language]
        self._path.write_text(code)
        self._command = [node() if language == "js" else sys.executable, str(self._path)]
        self._log = folder / "worker.log"
        self.process: Optional[subprocess.Popen[bytes]] = None

    def start(self, url: str, namespace: str, token: str = "") -> subprocess.Popen[bytes]:
        env = {**os.environ, "TENURE_URL": url, "TENURE_NAMESPACE": namespace}
        env["TENURE_TOKEN"] = token
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, env=env, stdout=log, stderr=log)
        return self.process

    def log(self) -> str:
        return self._log.read_text()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


@pytest.fixture(params=list(LANGUAGES))
def worker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PageWorker]:
    made = PageWorker(request.param, tmp_path, drain_s=2)
    try:
        yield made
    finally:
        if made.process is not None:
            made.process.kill()
            made.process.wait()


def test_it_keeps_a_long_job_over_a_restart_and_settles_an_ended_one(
    worker: PageWorker, site: Site, own_server: Server, namespace: str
) -> None:
    client = Tenure(own_server.url, namespace=namespace, retry_for=20)
    long = client.push("crawl", {"url": site.url("long")})
    short = client.push("crawl", {"url": site.url("short")})
    worker.start(own_server.url, namespace)
    until(lambda: len(site.visits) == 2)

    def is_older_than_its_ttl() -> bool:
        assert client.jobs.get(long.id).state == "running", worker.log()
        return all(_extended_by(lease.raw) > 2 * TTL_S for lease in client.leases())

    until(is_older_than_its_ttl, 20)
    own_server.kill()
    site.finish("short")
    until(lambda: ("short", True) in site.ends)
    own_server.start()
    assert client.jobs.wait(short.id, 20).get()["status"] == 200
    assert client.jobs.get(long.id).state == "running"
    site.finish("long")
    assert client.jobs.wait(long.id, 20).get()["status"] == 200
    for job in (client.jobs.get(long.id), client.jobs.get(short.id)):
        assert (job.attempt, job.lost) == (1, 0)
    assert sorted(site.visits) == ["long", "short"]
    client.close()


def _extended_by(lease: Any) -> float:
    expires, granted = read_moment(lease["expires_at"]), read_moment(lease["granted_at"])
    assert expires is not None
    assert granted is not None
    return (expires - granted).total_seconds()


def test_it_stops_a_job_whose_lease_it_cannot_extend(
    worker: PageWorker, site: Site, own_server: Server, namespace: str
) -> None:
    client = Tenure(own_server.url, namespace=namespace, retry_for=20)
    job = client.push("crawl", {"url": site.url("page")})
    process = worker.start(own_server.url, namespace)
    until(lambda: site.visits == ["page"])
    own_server.pause()
    try:
        until(lambda: site.ends == [("page", False)], 20)
    finally:
        own_server.go_on()
    site.finish("page")
    # The worker is still the same and takes it again.
    assert client.jobs.wait(job.id, 20).get()["status"] == 200
    assert process.poll() is None
    assert site.visits == ["page", "page"]
    client.close()


def test_it_drains(worker: PageWorker, site: Site, m: Tenure, namespace: str) -> None:
    ends = m.push("crawl", {"url": site.url("ends")})
    stays = m.push("crawl", {"url": site.url("stays")})
    process = worker.start(m._settings.url, namespace)
    until(lambda: len(site.visits) == 2)
    process.terminate()
    late = m.push("crawl", {"url": site.url("late")})
    site.finish("ends")
    assert process.wait(20) == 0, worker.log()
    assert m.jobs.get(ends.id).state == "succeeded"
    given_back = m.jobs.get(stays.id)
    assert (given_back.state, given_back.attempt, given_back.lost) == ("ready", 0, 0)
    assert m.jobs.get(late.id).attempt == 0
    until(lambda: ("stays", False) in site.ends)


def test_it_does_nothing_twice_where_answers_are_lost(
    worker: PageWorker, site: Site, proxy: Proxy, m: Tenure, namespace: str
) -> None:
    job = m.push("crawl", {"url": site.url("page")})
    site.finish("page")
    proxy.spoil("lose", "POST", "/v1/leases")
    proxy.spoil("lose", "POST", "/v1/leases/settle")
    worker.start(proxy.url, namespace)
    assert m.jobs.wait(job.id, 20).get() == {"status": 200, "length": 3}
    until(lambda: not list(m.leases()))
    shown = m.jobs.get(job.id)
    assert (shown.attempt, shown.lost, shown.errors) == (1, 0, [])
    assert site.visits == ["page"]


def test_it_tells_failures_cancels_and_deadlines(
    worker: PageWorker, site: Site, m: Tenure, namespace: str
) -> None:
    once = {"max_attempts": 1}
    fails = m.push("crawl", {"url": "http://127.0.0.1:1/"}, retry=once)
    late = m.push("crawl", {"url": site.url("late")}, timeout="2s", retry=once)
    cancelled = m.push("crawl", {"url": site.url("cancelled")})
    process = worker.start(m._settings.url, namespace)
    until(lambda: "cancelled" in site.visits)
    m.jobs.cancel(cancelled.id)
    assert m.jobs.wait(fails.id, 20).state == "failed"
    assert m.jobs.get(fails.id).error
    assert m.jobs.wait(cancelled.id, 20).state == "cancelled"
    assert m.jobs.wait(late.id, 20).error == "timeout"
    until(lambda: sorted(site.ends) == [("cancelled", False), ("late", False)])
    assert process.poll() is None, worker.log()


def test_it_ends_at_a_wrong_token(worker: PageWorker, folder: Path, namespace: str) -> None:
    server = Server("memory:", folder, "a-token-of-thirty-two-characters").start()
    try:
        process = worker.start(server.url, namespace, "another-token-of-as-many-characters")
        assert process.wait(20) == 1
        assert "unauthorized" in worker.log()
    finally:
        server.kill()
