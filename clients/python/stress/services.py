"""The processes of the stress: Redis, the server and workers, all of which may be killed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Optional

_HOME = Path(__file__).resolve().parents[1]
#: How many jobs each kind of worker runs at once here.
_AT_ONCE = {"threads": 3, "asyncio": 4, "processes": 2}
_APPS = {"asyncio": "stress.handlers:coroutines"}


class Missing(Exception):
    """A program that the stress needs is not there."""


def until(what: Callable[[], Any], within: float) -> Any:
    """Wait for something to become true, and return it."""
    end = time.monotonic() + within
    while True:
        found = what()
        if found or time.monotonic() > end:
            return found
        time.sleep(0.02)


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def find_binary() -> str:
    """Find the server: TENURE_BIN, or this workspace's build."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", _HOME.parents[1] / "target"))
    builds = [target / "release" / "tenure", target / "debug" / "tenure"]
    for candidate in [os.environ.get("TENURE_BIN", ""), *map(str, builds)]:
        if candidate and Path(candidate).exists():
            return candidate
    raise Missing("there is no `tenure` binary; build it, or set TENURE_BIN")


def redis_command() -> list[str]:
    """Find Redis or Valkey, as the beginning of a command."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is not None:
        return [found]
    # Debian's redis-tools has the server under the name of a checker: it is what it is called.
    checker = shutil.which("redis-check-rdb")
    if checker is None:
        raise Missing("there is no Redis here; install it: apt-get install redis-tools")
    return ["bash", "-c", 'exec -a redis-server "$0" "$@"', checker]


class Service:
    """A process that may be killed and started again."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str]) -> None:
        self._command = command
        self._log = log
        self._env = env
        self._process: Optional[subprocess.Popen[bytes]] = None

    @property
    def pid(self) -> int:
        """The id of the process that runs, or ran last."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=_HOME, env=self._env, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """Kill it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def terminate(self) -> None:
        """Ask it to end."""
        if self._process is not None:
            self._process.terminate()

    def ended(self, within: float) -> bool:
        """Wait for its end."""
        assert self._process is not None
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            return False
        return True


class Listener(Service):
    """A service on a port; started means that it listens."""

    def __init__(self, port: int, command: list[str], log: Path, env: dict[str, str]) -> None:
        super().__init__(command, log, env)
        self.port = port

    def start(self) -> None:
        """Start it, and wait until it listens. The port may be taken for a moment still."""
        for _ in range(5):
            super().start()
            if until(self._listens_or_ended, 30) is True:
                return
            self.kill()
        raise Missing(f"{self._command[0]} does not start; its log is {self._log}")

    def _listens_or_ended(self) -> object:
        if self.ended(0):
            return "ended"
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def _plain_env() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}


def redis(folder: Path) -> Listener:
    """Make a Redis that has forgotten nothing of what it answered."""
    data = folder / "redis"
    data.mkdir()
    port = free_port()
    command = [*redis_command(), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--appendonly", "yes", "--appendfsync", "always", "--dir", str(data)]
    return Listener(port, command, folder / "redis.log", _plain_env())


def server(folder: Path, store: str) -> Listener:
    """Make a server on a store."""
    port = free_port()
    command = [find_binary(), "serve", "--listen", f"127.0.0.1:{port}", "--store", store]
    return Listener(port, command, folder / "server.log", _plain_env())


def worker(folder: Path, kind: str, number: int, ttl: float, env: dict[str, str]) -> Service:
    """Make a worker process."""
    command = [sys.executable, "-m", "tenure", "worker", _APPS.get(kind, "stress.handlers:app")]
    command += ["--kind", kind, "--ttl", f"{int(ttl * 1000)}ms"]
    command += ["--concurrency", str(_AT_ONCE[kind])]
    paths = [str(_HOME / "src"), os.environ.get("PYTHONPATH", "")]
    python = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "TENURE_LOG": "WARNING"}
    log = folder / f"worker-{kind}-{number}.log"
    return Service(command, log, {**_plain_env(), **python, **env})
