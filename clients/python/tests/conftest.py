"""Servers, stores and clients for the tests: all real, and all stopped at the end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import pytest

from forked import Forked, Program
from proxy import Proxy
from scrapy_site import Crawlers, Site
from stress.services import Missing, redis_command
from tenure import Tenure

pytest_plugins = ["event_writer"]

#: Files whose tests take longest: begun last, they would run alone at the end.
LONGEST = [
    "test_worker_ends.py", "test_killed_ends.py", "test_scrapy_requests.py", "test_pages.py",
    "test_django.py", "test_scrapy_jobs.py", "test_start.py", "test_wheels.py", "test_stress.py",
    "test_blocked.py", "test_restarts.py", "test_guards.py",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the longest files begin first."""
    # Programs that the tests start find the packages compiled beside their code, and would fill the
    # cache of these tests with files from folders that are gone tomorrow.
    if os.environ.pop("PYTHONPYCACHEPREFIX", None) is not None:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    rank = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


def until(what: Callable[[], Any], within: float = 30.0) -> Any:
    """Wait for something to become true, and return it."""
    end = time.monotonic() + within
    # What takes seconds is asked for less often: a hundred calls a second would keep a processor
    # busy that other tests need.
    pause = 0.005
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"it did not happen within {within} s")
        time.sleep(pause)
        pause = min(pause * 1.2, 0.05)


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tenure_binary() -> str:
    """Find the server: TENURE_BIN, this workspace's build, or the PATH."""
    named = os.environ.get("TENURE_BIN")
    if named:
        return named
    root = Path(__file__).resolve().parents[3]
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    for candidate in (target / "debug" / "tenure", target / "release" / "tenure"):
        if candidate.exists():
            return str(candidate)
    found = shutil.which("tenure")
    if found is None:
        pytest.exit("there is no `tenure` binary; build it, or set TENURE_BIN", returncode=2)
    return found


def pytest_configure() -> None:
    """Let the package's own plugin, which knows no workspace, find the same server."""
    os.environ.setdefault("TENURE_BIN", tenure_binary())


def redis_here() -> Optional[list[str]]:
    """Find a Redis or Valkey, unless the tests are to do without."""
    if "redis" in os.environ.get("TENURE_WITHOUT", "").split(","):
        return None
    try:
        return redis_command()
    except Missing:
        return None


def browser_here() -> Optional[str]:
    """Find Chromium, unless the tests are to do without."""
    if "browser" in os.environ.get("TENURE_WITHOUT", "").split(","):
        return None
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found is not None:
            return found
    return None


class Server:
    """One `tenure serve`, which may be killed and started again at its address."""

    def __init__(self, store: str, folder: Path, token: Optional[str] = None, *extra: str) -> None:
        self.port = free_port()
        self.store = store
        self.token = token
        self._extra = extra
        self._log = folder / f"serve-{self.port}.log"
        self._process: Optional[subprocess.Popen[bytes]] = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Server:
        env = {k: v for k, v in os.environ.items() if not k.startswith("TENURE_")}
        if self.token:
            env["TENURE_TOKEN"] = self.token
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    tenure_binary(), "serve", "--listen", f"127.0.0.1:{self.port}",
                    "--store", self.store, *self._extra,
                ],
                stdout=log, stderr=log, env=env,
            )  # fmt: skip
        until(self._answers, 20)
        return self

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """Kill it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let it hang: connections are taken and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """End the pause."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Let it drain and end."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(30)
        self._process = None


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenure-python-") as made:
        yield Path(made)


@pytest.fixture(scope="session")
def redis_url(folder: Path) -> Iterator[Optional[str]]:
    command = redis_here()
    if command is None:
        yield None
        return
    port = free_port()
    process = subprocess.Popen(
        [
            *command, "--port", str(port), "--bind", "127.0.0.1", "--save", "",
            "--dir", str(folder), "--appendonly", "no",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:

        def answers() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        until(answers)
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


#: The client calls a server over HTTP and sees nothing of its store. `./test --long` looks at both.
STORES = ["memory", "redis"] if os.environ.get("TENURE_LONG") else ["memory"]


@pytest.fixture(scope="session", params=STORES)
def shared_server(
    request: pytest.FixtureRequest, folder: Path, redis_url: Optional[str]
) -> Iterator[Server]:
    """One server for each of these stores, used by all tests that do not stop it."""
    store = "memory:" if request.param == "memory" else redis_url
    if store is None:
        pytest.skip("there is no redis-server here")
    server = Server(store, folder).start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test uses."""
    return f"t{os.urandom(6).hex()}"


@pytest.fixture
def t(shared_server: Server, namespace: str) -> Iterator[Tenure]:
    """A client of a namespace of its own, on each of these stores."""
    with Tenure(shared_server.url, namespace=namespace, retry_for=15) as client:
        yield client


@pytest.fixture(scope="session")
def memory_server(folder: Path) -> Iterator[Server]:
    """One server for tests whose subject is the client alone."""
    server = Server("memory:", folder).start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def m(memory_server: Server, namespace: str) -> Iterator[Tenure]:
    """A client of a namespace of its own."""
    with Tenure(memory_server.url, namespace=namespace, retry_for=15) as client:
        yield client


@pytest.fixture
def own_server(folder: Path) -> Iterator[Server]:
    """A server of this test alone, on a folder, which the test may kill and start again."""
    store = tempfile.mkdtemp(prefix="store-", dir=folder)
    server = Server(f"file:{store}", folder).start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def proxy(memory_server: Server) -> Iterator[Proxy]:
    """A proxy before the memory server."""
    made = Proxy(memory_server.port)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def p(proxy: Proxy, namespace: str) -> Iterator[Tenure]:
    """A client that speaks through the proxy."""
    with Tenure(proxy.url, namespace=namespace, retry_for=15) as client:
        yield client


class Workers:
    """Worker processes of the command line, and the journal of their handlers."""

    def __init__(self, url: str, namespace: str, folder: Path, token: Optional[str] = None) -> None:
        self.url = url
        self.namespace = namespace
        self._token = token
        self.journal = folder / f"journal-{namespace}"
        self.journal.touch()
        self._log = folder / f"worker-{namespace}.log"
        self._processes: list[Program] = []

    def start(
        self, *options: str, app: str = "handlers:app", code: Optional[str] = None
    ) -> Program:
        """Start the command, or a program of the test's own."""
        env = {
            **os.environ,
            "TENURE_URL": self.url,
            "TENURE_NAMESPACE": self.namespace,
            "JOURNAL": str(self.journal),
        }
        if self._token is not None:
            env["TENURE_TOKEN"] = self._token
        process: Program
        if code is None:
            words = ["worker", app, *options]
            process = Forked("tenure", words, Path(__file__).parent, env, self._log)
        else:
            with self._log.open("ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-c", code],
                    cwd=Path(__file__).parent,
                    env=env,
                    stdout=log,
                    stderr=log,
                )
        self._processes.append(process)
        return process

    def log(self) -> str:
        return self._log.read_text()

    def says(self, words: str, within: float = 20.0) -> None:
        """Wait until the log says so; one that does not is shown."""
        try:
            until(lambda: words in self.log(), within)
        except AssertionError:
            raise AssertionError(
                f"no {words!r} within {within} s in this log:\n{self.log()}"
            ) from None

    def notes(self, first: str = "") -> list[list[str]]:
        """The journal's lines that begin with a word."""
        lines = [line.split() for line in self.journal.read_text().splitlines()]
        return [line for line in lines if not first or line[0] == first]

    def go(self) -> None:
        """Let the handlers that wait for it go on."""
        Path(f"{self.journal}.go").touch()

    def kill_all(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


@pytest.fixture
def workers(t: Tenure, namespace: str, folder: Path) -> Iterator[Workers]:
    """Workers of the client `t`."""
    made = Workers(t._settings.url, namespace, folder)
    try:
        yield made
    finally:
        made.kill_all()


@pytest.fixture
def memory_workers(m: Tenure, namespace: str, folder: Path) -> Iterator[Workers]:
    """Workers of the client `m`."""
    made = Workers(m._settings.url, namespace, folder)
    try:
        yield made
    finally:
        made.kill_all()


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site of this test alone."""
    made = Site()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def crawlers(m: Tenure, namespace: str, folder: Path) -> Iterator[Crawlers]:
    """Crawls of Scrapy beside the client `m`."""
    made = Crawlers(m._settings.url, namespace, folder)
    try:
        yield made
    finally:
        made.kill_all()
