"""One stress: starts everything, kills it at random, lets the rest drain, and judges."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import tenure
from tenure.durations import read_moment

from . import services
from .journal import FOLDER, Journal, Told, moment, read
from .judge import Shown, faults, most_at_once
from .plan import ACCOUNTS, CAPS, POOL, QUEUE, plan, quick

KINDS = ("threads", "asyncio", "processes")
#: Jobs of one push: of quick jobs, which a worker leases ahead, and of all others.
_QUICK_BATCH, _BATCH = 100, 10
#: Of this many pushes the last ones are of quick jobs: a short stress has both kinds.
_PHASE, _QUICK_PUSHES = 10, 2
#: Nothing is pushed while this many jobs have not ended.
_BACKLOG = 300
#: One push in this many is made twice, with the same ids.
_TWICE_EVERY = 5
#: Jobs that have not ended when the killing has been over for this long are stranded.
_DRAINED_WITHIN_S = 180.0


@dataclass(frozen=True)
class Settings:
    """How hard a stress is."""

    store: str = "redis"
    seconds: float = 120.0
    #: The killing goes on until there were this many kills, even on a busy machine.
    kills: int = 0
    #: Worker processes of each kind.
    workers: int = 8
    kinds: tuple[str, ...] = KINDS
    ttl: float = 3.0
    seed: int = 0


@dataclass
class Report:
    """What a stress came to."""

    settings: Settings
    faults: list[str]
    kills: Counter[str]
    jobs: Counter[str]
    runs: Counter[str]
    most: dict[str, int]
    repeated: int
    folder: Optional[Path] = None

    def text(self) -> str:
        """Write it for people."""

        def counts(of: dict[str, int]) -> str:
            return ", ".join(f"{n} {name}" for name, n in sorted(of.items())) or "none"

        lines = [
            f"store {self.settings.store}, {self.settings.seconds:.0f} s of killing, "
            f"{self.settings.workers} workers each by {', '.join(self.settings.kinds)}, "
            f"ttl {self.settings.ttl:g} s, seed {self.settings.seed}",
            f"killed: {counts(self.kills)}",
            f"jobs: {counts(self.jobs)}; {self.repeated} pushed twice",
            f"runs: {counts(self.runs)}",
            f"most at once: {counts(self.most)} (caps: {counts(CAPS)}; accounts: 1 each)",
        ]
        if self.faults:
            lines += [f"{len(self.faults)} faults:", *self.faults[:50]]
            lines.append(f"the journals and logs are in {self.folder}")
        else:
            lines.append("nothing is lost, nothing was over a cap, nobody touched another's work")
        return "\n".join(lines)


class _Deaths(threading.Thread):
    """Writes down when processes that run handlers die, whoever ended them."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        super().__init__(name="deaths", daemon=True)
        self._folder = folder
        self._journal = journal
        self._known: set[str] = set()
        self._poll = select.poll()
        self._watched: dict[int, str] = {}
        self._over = False

    def run(self) -> None:
        while not self._over:
            self._look_for_new()
            self._note_dead(20)

    def finish(self) -> None:
        """Note those that are dead by now, and end."""
        self._over = True
        self.join()
        self._look_for_new()
        self._note_dead(0)
        for descriptor in self._watched:
            os.close(descriptor)

    def living(self) -> list[int]:
        """Return the processes that live."""
        return [int(name.split("-")[0]) for name in list(self._watched.values())]

    def _look_for_new(self) -> None:
        for path in self._folder.glob("run-*"):
            if path.name in self._known:
                continue
            self._known.add(path.name)
            name = path.name[len("run-") :]
            try:
                descriptor = os.pidfd_open(int(name.split("-")[0]))
            except ProcessLookupError:
                self._journal.note("D", moment(), name)
                continue
            self._watched[descriptor] = name
            self._poll.register(descriptor, select.POLLIN)

    def _note_dead(self, wait_ms: int) -> None:
        for descriptor, _ in self._poll.poll(wait_ms):
            self._journal.note("D", moment(), self._watched.pop(descriptor))
            self._poll.unregister(descriptor)
            os.close(descriptor)


class _Pusher(threading.Thread):
    """Pushes jobs under ids of its own, and some of them twice."""

    def __init__(self, client: tenure.Tenure, journal: Journal, settings: Settings) -> None:
        super().__init__(name="pusher", daemon=True)
        self._client = client
        self._journal = journal
        self._ttl = settings.ttl
        self._dice = random.Random(settings.seed + 1)
        self._over = threading.Event()
        self.repeated = 0
        self.fault: Optional[str] = None

    def run(self) -> None:
        try:
            number = 0
            while not self._over.is_set():
                self._push(number)
                number += 1
                while _left(self._client) > _BACKLOG and not self._over.wait(0.1):
                    pass
                self._over.wait(0.02)
        except Exception as error:
            self.fault = f"the pusher failed: {type(error).__name__}: {error}"

    def finish(self) -> None:
        """Push no more."""
        self._over.set()
        self.join()

    def _push(self, number: int) -> None:
        if number % _PHASE >= _PHASE - _QUICK_PUSHES:
            jobs = [quick(f"job-{number}-{n}") for n in range(_QUICK_BATCH)]
        else:
            jobs = [plan(f"job-{number}-{n}", self._dice, self._ttl) for n in range(_BATCH)]
        specs = [job.spec() for job in jobs]
        pushed = self._client.push_all(specs)
        for job in jobs:
            self._journal.note("P", job.id, job.way)
        if number % _TWICE_EVERY == 0:
            again = self._client.push_all(specs)
            self.repeated += len(again)
            made = [(one.id, two.id) for one, two in zip(pushed, again) if one.id != two.id]
            if made:
                raise AssertionError(f"a repeated push made other jobs: {made}")


def _left(client: tenure.Tenure) -> int:
    """Return how many jobs have not ended."""
    ended = ("succeeded", "failed", "cancelled")
    return sum(n for state, n in client.stats().jobs.items() if state not in ended)


class Chaos:
    """One stress."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._dice = random.Random(settings.seed)
        self._folder = Path(tempfile.mkdtemp(prefix="tenure-stress-"))
        self._journals = self._folder / "journals"
        self._journals.mkdir()
        self._journal = Journal(self._journals, "chaos")
        self._deaths = _Deaths(self._journals, self._journal)
        self._kills = 0
        self._redis: Optional[services.Listener] = None
        store = f"file:{self._folder / 'store'}"
        if settings.store == "redis":
            self._redis = services.redis(self._folder)
            store = f"redis://127.0.0.1:{self._redis.port}?forgets=never"
        self._server = services.server(self._folder, store)
        env = {
            "TENURE_URL": f"http://127.0.0.1:{self._server.port}",
            FOLDER: str(self._journals),
        }
        self._workers = [
            (kind, services.worker(self._folder, kind, number, settings.ttl, env))
            for number in range(settings.workers)
            for kind in settings.kinds
        ]

    def run(self) -> Report:
        """Run it; the folder stays if something is wrong."""
        try:
            report = self._run()
        finally:
            for _, worker in self._workers:
                worker.kill()
            self._server.kill()
            if self._redis is not None:
                self._redis.kill()
        if not report.faults:
            shutil.rmtree(self._folder)
        return report

    def _run(self) -> Report:
        if self._redis is not None:
            self._redis.start()
        self._server.start()
        url = f"http://127.0.0.1:{self._server.port}"
        with tenure.Tenure(url, retry_for=120) as client:
            self._set_up(client)
            self._deaths.start()
            for _, worker in self._workers:
                worker.start()
            pusher = _Pusher(client, self._journal, self.settings)
            pusher.start()
            self._kill()
            pusher.finish()
            stranded = self._drain(client)
            slow = self._end_workers()
            shown = _show(client)
            wrong = [*stranded, *slow, *_rest(client)]
            if pusher.fault is not None:
                wrong.append(pusher.fault)
        self._deaths.finish()
        told = read(self._journals)
        wrong += faults(told, shown)
        return self._report(told, shown, wrong, pusher.repeated)

    def _set_up(self, client: tenure.Tenure) -> None:
        for family, cap in CAPS.items():
            name = family if family == "five" else f"{family}:*"
            client.limits.set(name, concurrency=cap)
        client.pools.sync(POOL, [{"id": id, "data": {}} for id in ACCOUNTS])

    def _kill(self) -> None:
        end = time.monotonic() + self.settings.seconds
        victims = [self._kill_worker] * 6 + [self._kill_handler] + [self._kill_server] * 2
        if self._redis is not None:
            victims += [self._kill_redis] * 2
        while True:
            pause = self._dice.uniform(0.2, 1.2)
            if time.monotonic() + pause > end and self._kills >= self.settings.kills:
                return
            time.sleep(pause)
            self._dice.choice(victims)()

    def _kill_worker(self) -> None:
        kind, worker = self._dice.choice(self._workers)
        worker.kill()
        self._killed(f"workers({kind})")
        worker.start()

    def _kill_handler(self) -> None:
        """Kill a process that runs handlers, which is a child of a worker if it has some."""
        workers = {worker.pid for _, worker in self._workers}
        children = [pid for pid in self._deaths.living() if pid not in workers]
        if children:
            os.kill(self._dice.choice(children), signal.SIGKILL)
            self._killed("children")

    def _kill_server(self) -> None:
        self._restart(self._server, "servers")

    def _kill_redis(self) -> None:
        assert self._redis is not None
        self._restart(self._redis, "redis")

    def _restart(self, service: services.Listener, name: str) -> None:
        service.kill()
        self._killed(name)
        # Sometimes for longer than leases live without a heartbeat.
        long = self._dice.random() < 0.1
        time.sleep(self._dice.uniform(0, self.settings.ttl * 1.2 if long else 0.5))
        service.start()

    def _killed(self, name: str) -> None:
        self._journal.note("K", moment(), name)
        self._kills += 1

    def _drain(self, client: tenure.Tenure) -> list[str]:
        # A lease of a dead worker ends first, and a job that was lost often waits for a while.
        if services.until(lambda: _left(client) == 0, _DRAINED_WITHIN_S):
            return []
        left = client.jobs.list(queue=QUEUE, state=["ready", "blocked", "scheduled", "running"])
        return [f"job {job.id} is stranded: {client.explain(job.id)}" for job in left]

    def _end_workers(self) -> list[str]:
        for _, worker in self._workers:
            worker.terminate()
        slow = [kind for kind, worker in self._workers if not worker.ended(60)]
        return [f"{len(slow)} workers did not end after SIGTERM: {slow}"] if slow else []

    def _report(
        self, told: Told, shown: dict[str, Shown], wrong: list[str], repeated: int
    ) -> Report:
        return Report(
            settings=self.settings,
            faults=wrong,
            kills=told.kills,
            jobs=Counter(each.state for each in shown.values()),
            runs=Counter(run.outcome or "cut short" for run in told.runs),
            most=most_at_once(told.runs),
            repeated=repeated,
            folder=self._folder,
        )


def _show(client: tenure.Tenure) -> dict[str, Shown]:
    """Ask for all jobs; moments of losses are written by the clock of the journals."""
    offset = time.time_ns() - moment()

    def here(at: Any) -> int:
        return int(at.timestamp() * 1e9) - offset

    shown: dict[str, Shown] = {}
    for job in client.jobs.list(queue=QUEUE):
        losses = [error["at"] for error in job.errors if error["outcome"] == "lost"]
        each = Shown(job.state, lost_at=[here(read_moment(at)) for at in losses])
        if job.finished_at is not None:
            each.finished_at = round(job.finished_at.timestamp() * 1e6)
        shown[job.id] = each
    return shown


def _rest(client: tenure.Tenure) -> list[str]:
    """Return what the server still counts as held, and faults that it finds itself."""
    found = [
        f"{limit.in_use} of limit {limit.name} are in use at the end"
        for limit in client.limits.list()
        if limit.in_use
    ]
    pool = client.pools.get(POOL)
    if pool.leased:
        found.append(f"{pool.leased} accounts are leased at the end")
    return found + [f"audit: {fault}" for fault in client.audit().faults]
