"""Tests of programs that use Tenure: a real server, and jobs that run when the test says so.

The pytest plugin has these as fixtures; other test frameworks use them directly.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Optional

from . import _settings
from ._calls import check
from ._http import Transport
from ._leasing import worker_fields
from ._settings import Settings
from ._text import bounded
from ._wire import new_id, request
from .app import App
from .client import Tenure
from .context import Context
from .durations import Duration, duration_text, read_moment
from .errors import CodecError, RouteNotFound, TenureError
from .jobs import Job
from .outcomes import Outcome
from .payloads import DoesNotFit
from .records import JobRecord, LeaseRecord
from .tasks import GaveUp, Task, failed, final, succeeded, unknown_kind

#: No test takes longer for one job, so nothing has to extend its lease.
_TTL = "1h"
_START_S = 30.0


def find_binary() -> str:
    """Find the server: TENURE_BIN, what tenure-server installed beside this Python, or the PATH."""
    named = os.environ.get("TENURE_BIN")
    installed = Path(sysconfig.get_path("scripts"), "tenure")
    found = named or (str(installed) if installed.exists() else shutil.which("tenure"))
    if found is None:
        raise FileNotFoundError(
            "there is no `tenure` binary here; put it on the PATH, or name it in TENURE_BIN "
            "(`cargo build --release` in a clone of Tenure makes it)"
        )
    return found


class Server:
    """A `tenure serve --store memory:` on a free port, until the end of a `with` block.

    With `clock`, its time stands still and `Clock` moves it.

    >>> with Server() as server:
    ...     Tenure(server.url).push("mail").state
    'ready'
    """

    def __init__(self, *, clock: bool = False) -> None:
        self._options = ["--test-clock"] if clock else []
        self._process: Optional[subprocess.Popen[bytes]] = None
        #: `http://127.0.0.1:PORT`, once it has started.
        self.url: str = ""

    def start(self) -> Server:
        """Start it, and wait until it listens."""
        # What this program's environment says of its own server must not reach the test's.
        env = {key: value for key, value in os.environ.items() if not key.startswith("TENURE_")}
        # Where it listens is read from what it says to people.
        env["TENURE_LOG_FORMAT"] = "text"
        command = [find_binary(), "serve", "--store", "memory:", "--listen", "127.0.0.1:0"]
        with tempfile.TemporaryFile() as log:
            self._process = subprocess.Popen([*command, *self._options], env=env, stderr=log)
            until = time.monotonic() + _START_S
            while not self.url:
                ended = self._process.poll() is not None
                # Not by `seek`: the server writes at the same offset.
                said = os.pread(log.fileno(), 65536, 0).decode(errors="replace")
                found = re.search(r"^listening on (http://\S+)$", said, re.MULTILINE)
                if found:
                    self.url = found[1]
                elif ended or time.monotonic() > until:
                    self.stop()
                    raise RuntimeError(f"`{' '.join(command)}` did not start: {said.strip()}")
                else:
                    time.sleep(0.01)
        return self

    def stop(self) -> None:
        """End it; all its data is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self.url = ""

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.contextmanager
def namespace(url: str, name: Optional[str] = None) -> Iterator[Tenure]:
    """Give a test a namespace of its own, and a client of it.

    Within the block every app speaks there, even one that was made with another address: no test
    reaches a server that matters. `TENURE_URL` and `TENURE_NAMESPACE` say it to other programs.
    """
    settings = Settings.find(url, None, name or new_id("test").replace("_", "-").lower())
    said = {"TENURE_URL": url, "TENURE_NAMESPACE": str(settings.namespace), "TENURE_TOKEN": None}
    before = {key: os.environ.get(key) for key in said}
    _set(said)
    instead, _settings.instead = _settings.instead, settings
    try:
        with Tenure(url, namespace=settings.namespace, retry_for=5) as client:
            yield client
    finally:
        _settings.instead = instead
        _set(before)


def _set(variables: Mapping[str, Optional[str]]) -> None:
    for key, value in variables.items():
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value


class Clock:
    """The clock of a server that was started with `--test-clock`: only a test moves it."""

    def __init__(self, client: Tenure) -> None:
        self._transport = client._transport

    def now(self) -> datetime:
        """Say what time it is there."""
        return self._read(request("GET", "test", "clock"))

    def advance(self, duration: Duration) -> datetime:
        """Let time pass: jobs become due, leases run out, schedules fire."""
        body = {"advance": duration_text(duration)}
        # A repeat would move it twice.
        return self._read(request("POST", "test", "clock", body=body, repeatable=False))

    def _read(self, made: Any) -> datetime:
        try:
            now = read_moment(check(self._transport.send(made))["now"])
        except RouteNotFound:
            raise RuntimeError(
                "the clock of this server cannot be moved; take the fixture `tenure_clock`, or "
                "start it with Server(clock=True)"
            ) from None
        assert now is not None
        return now


@dataclass(frozen=True)
class Ran:
    """A run of a handler by `run_until_idle`."""

    job: JobRecord
    #: `succeeded`, `failed`, `snoozed` or `released`.
    outcome: str
    result: Any = field(default=None, repr=False)
    error: Optional[str] = None


def run_until_idle(
    app: App,
    *,
    queues: Optional[Iterable[str]] = None,
    advance: bool = False,
    raises: bool = True,
    limit: int = 1000,
) -> list[Ran]:
    """Run the handlers of an app until no job is left that may run now; return the runs in order.

    They run in this thread, one after the other, so that a test sees what they see. What a handler
    raises is settled as a worker would, and then raised here; with `raises=False` it is not, and a
    job that failed waits for its next attempt. `Snooze`, `Final` and the like are never raised.
    Jobs that are scheduled for later stay; with `advance` the test clock jumps to the next moment
    at which a job may run, until no job is left that time alone would let run. A schedule fires at
    each moment that a jump passes, as its `overlap` allows: no handler runs during a jump.

    >>> app = App(url)
    >>> @app.job("mail")
    ... def send(to: str) -> str:
    ...     return f"sent to {to}"
    >>> job = send.push(to="ann")
    >>> [run.result for run in run_until_idle(app)]
    ['sent to ann']
    """
    asked = list(app.queues if queues is None else queues)
    client = app.client
    clock = Clock(client)
    runs: list[Ran] = []
    moves = 0
    while True:
        answer = _lease(client._transport, asked)
        for raw in answer["leases"]:
            run, error = _run(app, LeaseRecord.read(raw), client._transport)
            runs.append(run)
            if error is not None and (raises or not isinstance(error, Exception)):
                raise error
        if len(runs) >= limit or moves >= limit:
            raise RuntimeError(
                f"it is not idle after {limit} steps; the last was {runs[-1] if runs else None}. "
                "Does a handler push itself again?"
            )
        if answer["leases"]:
            continue
        next_at = read_moment(answer.get("next_at"))
        if not advance or next_at is None or not _waits(client, asked):
            return runs
        # Moves are whole milliseconds, and one at least.
        left = next_at - clock.now() + timedelta(microseconds=999)
        clock.advance(max(left, timedelta(milliseconds=1)))
        moves += 1


def _lease(transport: Transport, queues: list[str]) -> Any:
    body = {
        "queues": queues,
        "wait": "0s",
        "ttl": _TTL,
        "worker": worker_fields(),
        "request_id": new_id("request"),
    }
    return check(transport.send(request("POST", "leases", body=body)))


def _waits(client: Tenure, queues: list[str]) -> bool:
    """Say whether a job waits here: `next_at` may be the moment of another queue or of a pause."""
    counts = [client.queues.get(queue).counts for queue in queues]
    return any(each[state] for each in counts for state in ("ready", "blocked", "scheduled"))


def _run(app: App, lease: LeaseRecord, transport: Transport) -> tuple[Ran, Optional[BaseException]]:
    """Run a job and settle it; return what its handler raised, unless that is an outcome."""
    job = lease.job
    assert job is not None
    progress: dict[str, Any] = {}

    def report(written: Optional[bytes]) -> None:
        progress["progress"] = None if written is None else json.loads(written)

    context = Context(lease, transport, report)
    error: Optional[BaseException] = None
    task = app.find(job.queue, job.kind)
    try:
        if task is None:
            item = unknown_kind(job.queue, job.kind)
            raise LookupError(item["error"])
        value = _call(task, task.arguments(context._open(), context), context)
        item = succeeded(value)
    except (CodecError, DoesNotFit) as refused:
        error, item = refused, final(str(refused))
    except GaveUp as gave_up:
        error, item = gave_up.error, gave_up.settle_item()
    except Outcome as outcome:
        item = outcome.settle_item()
    except BaseException as raised:
        error, item = raised, failed(raised)
    result = item.get("result")
    item = context._complete({"lease": lease.lease, **item, **progress})
    if "error" in item:
        item["error"] = bounded(item["error"])
    answer = check(transport.send(request("POST", "leases", "settle", body={"settle": [item]})))
    (settled,) = answer["settled"]
    if not settled["ok"]:
        error = error or TenureError(f"job {job.id}: its outcome counts no more", code="lease_lost")
    done = item["outcome"] == "succeeded"
    return Ran(job, item["outcome"], result if done else None, item.get("error")), error


def _call(task: Task[Any], arguments: dict[str, Any], context: Context) -> Any:
    if not task.is_async:
        return task.run(arguments, context)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(task.run(arguments, context))
    # The test is a coroutine itself: a loop cannot run within a loop of the same thread.
    found: list[Any] = []

    def work() -> None:
        try:
            found.extend((asyncio.run(task.run(arguments, context)), None))
        except BaseException as raised:
            found.extend((None, raised))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if found[1] is not None:
        raise found[1]
    return found[0]


def pushed(
    client: Tenure, queue: Optional[str] = None, *, kind: Optional[str] = None, payload: Any = ...
) -> list[Job]:
    """List the jobs of a namespace that match, oldest first, with their payloads.

    A payload that is a mapping matches if the job's payload has these fields, whatever else it has.

    >>> job = t.push("mail", {"to": "ann", "copies": 2})
    >>> [job.payload["copies"] for job in pushed(t, "mail", payload={"to": "ann"})]
    [2]
    """
    found = list(client.jobs.list(full=True, queue=queue, kind=kind))[::-1]
    return [job for job in found if _matches(job.payload, payload)]


def _matches(payload: Any, wanted: Any) -> bool:
    if wanted is ...:
        return True
    if isinstance(wanted, Mapping) and isinstance(payload, Mapping):
        missing = object()
        return all(payload.get(key, missing) == value for key, value in wanted.items())
    return bool(payload == wanted)


def assert_pushed(
    client: Tenure,
    queue: str,
    *,
    kind: Optional[str] = None,
    payload: Any = ...,
    count: Optional[int] = None,
) -> list[Job]:
    """Fail unless a queue got such a job (see `pushed`), or exactly `count` of them; return them.

    >>> job = t.push("mail", {"to": "ann"})
    >>> assert_pushed(t, "mail", payload={"to": "bob"})
    Traceback (most recent call last):
    AssertionError: queue "mail" got no job with the payload {'to': 'bob'}; it got: '' {'to': 'ann'}
    """
    found = pushed(client, queue, kind=kind, payload=payload)
    if (found and count is None) or len(found) == count:
        return found
    wanted = "" if kind is None else f' of the kind "{kind}"'
    wanted += "" if payload is ... else f" with the payload {payload!r}"
    number = "no" if not found else str(len(found))
    exactly = "" if count is None else f", not {count},"
    there = "; ".join(f"{job.kind!r} {job.payload!r}" for job in pushed(client, queue))
    raise AssertionError(
        f'queue "{queue}" got {number}{exactly} job{"s" if len(found) > 1 else ""}{wanted}; '
        f"it got: {there or 'nothing'}"
    )
