"""The collectors of a run: started, killed, stopped, and started again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Callable, NamedTuple, Optional

from stage import Part, Scene
from stage.tools import tenure

from .sitelog import Entry, SiteLog

COLLECTORS = 8
SHELLS = 3

#: A story goes on each time that the condition which it yielded last has become true.
Story = Iterator[Callable[[], bool]]


class Kill(NamedTuple):
    """A collector that was killed."""

    at: float
    who: str
    #: The session that ended with it.
    session: Optional[Entry]


def _after(seconds: float) -> Callable[[], bool]:
    over = time.monotonic() + seconds
    return lambda: time.monotonic() > over


def _knows_its_loss(line: str) -> bool:
    # A line of the package for Python, or of the collector in TypeScript.
    return "was lost before its" in line


class Crew:
    """As many collectors as there should be, in both forms."""

    def __init__(self, scene: Scene, site: str, log: SiteLog):
        self._scene = scene
        self._site = site
        self._log = log
        self._python = scene.python()
        self._started = 0
        self._stopped: Optional[Part] = None
        self.kills: list[Kill] = []
        self._collectors = [self._collector() for _ in range(COLLECTORS)]
        self._shells = [self.shell() for _ in range(SHELLS)]

    def _name(self, kind: str) -> str:
        self._started += 1
        return f"{kind}-{self._started}"

    def _collector(self) -> Part:
        """Takes one account after the other."""
        name = self._name("collector")
        python = [self._python, "collector.py"]
        program = self._scene.node("collector") if self._scene.args.node else python
        return self._scene.start(name, [*program, "--site", self._site, "--name", name], show=False)

    def shell(self, need: str = "pool:accounts", times: int = 1) -> Part:
        """Start a command for one session, which `tenure lease` runs."""
        name = self._name("shell")
        options = ["--site", self._site, "--name", name, "--times", str(times)]
        command = [self._python, "session.py", *options]
        lease = [tenure(), "lease", "--need", need, "--ttl", "2s", "--", *command]
        return self._scene.start(name, lease, show=False)

    def refill(self) -> None:
        """Start again what was killed, and a new command for each that has ended."""
        for parts, start in ((self._collectors, self._collector), (self._shells, self.shell)):
            for at, part in enumerate(parts):
                if not part.alive:
                    parts[at] = start()

    def kill_one(self) -> None:
        """SIGKILL for a collector, whatever it does at this moment."""
        victim = self._scene.dice.choice(self._collectors + self._shells)
        if victim is self._stopped or not victim.alive:
            return
        session = self._log.session_of(victim.name)
        # Taken before the kill, so that all that follows from it is later.
        at = time.monotonic()
        # Of `tenure lease` only itself: the guard must end the command that it leaves behind.
        victim.kill_alone()
        self.kills.append(Kill(at, victim.name, session))
        doing = f"logged in as {session.account}" if session else "between two sessions"
        self._scene.say(f"kill -9 {victim.name}, {doing}")

    def stop_one(self, spared: frozenset[str]) -> Story:
        """SIGSTOP, as when a laptop is closed; SIGCONT once its account is another's.

        `spared` are accounts that leave the table, so that nobody else will come to hold them.
        """
        while True:
            yield _after(0.1)
            part = self._scene.dice.choice(self._collectors)
            session = self._log.session_of(part.name)
            if session is None or session.account in spared:
                continue
            self._stopped = part
            os.kill(part.process.pid, signal.SIGSTOP)
            # It may have logged out at this very moment.
            yield _after(0.3)
            if self._log.session_of(part.name) is session:
                break
            os.kill(part.process.pid, signal.SIGCONT)
        account = session.account
        self._scene.say(f"kill -STOP {part.name}, logged in as {account}")
        yield lambda: bool(self._log.logins(account, above=session.fence))
        other = self._log.logins(account, above=session.fence)[0]
        os.kill(part.process.pid, signal.SIGCONT)
        self._scene.say(f"kill -CONT {part.name}, now that {account} is {other.who}'s")
        # It knows that what it held is another's by now.
        yield lambda: any(_knows_its_loss(line) for line in part.lines)
        (heard, *_) = (line for line in part.lines if _knows_its_loss(line))
        self._scene.say(f"{part.name}: {heard}")
        self._stopped = None
