"""Answers of the server as objects.

Each has the fields of the matching answer, with moments as `datetime`. `raw` is the answer as it
came, also with fields that this version does not know. Payloads, results and data of resources may
be secret or personal, and are left out when an object is shown.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar

from .durations import read_moment
from .errors import JobCancelled, JobFailed, NotFinished

if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    #: The return type of a handler, if it is known. `Job` alone is `Job[Any]`.
    Value = _TypeVar("Value", default=Any)
else:
    # Defaults of type variables (PEP 696) are for Python 3.13.
    Value = TypeVar("Value")

R = TypeVar("R", bound="Record")

FINISHED = frozenset({"succeeded", "failed", "cancelled"})


def _hidden(default: Any = None) -> Any:
    return field(default=default, repr=False)


def _read(how: Callable[[Any], Any], default: Any = None) -> Any:
    return field(default=default, metadata={"read": how})


def _moment() -> Any:
    return _read(read_moment)


def _many(kind: Callable[[], type[Record]]) -> Any:
    return field(
        default_factory=list,
        metadata={"read": lambda items: [kind().read(item) for item in items or ()]},
    )


@functools.cache
def _readers(cls: Any) -> list[tuple[str, str, Optional[Callable[[Any], Any]]]]:
    """Return each field of a class, its key in an answer, and how it is read.

    Asked for with every job of a worker.
    """
    return [
        (each.name, each.metadata.get("key", each.name), each.metadata.get("read"))
        for each in dataclasses.fields(cls)
        if each.name != "raw"
    ]


@dataclass(repr=False)
class Record:
    """One answer."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(cls: type[R], raw: Mapping[str, Any]) -> R:
        """Read an answer; unknown fields are left alone, absent ones have their default."""
        fields: dict[str, Any] = {}
        # Type checkers refuse a class with a type variable where a hashable value is wanted.
        its: Any = cls
        for name, key, how in _readers(its):
            if key in raw:
                value = raw[key]
                fields[name] = value if how is None else how(value)
        return cls(raw=raw, **fields)

    def __repr__(self) -> str:
        # Only what is set: most of a job's fields are at their defaults.
        parts = []
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if not each.repr or value is None or value == each.default or value in ({}, []):
                continue
            shown = value.isoformat() if isinstance(value, datetime) else repr(value)
            parts.append(f"{each.name}={shown}")
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(repr=False)
class JobRecord(Record):
    """A job as an answer shows it. Lists leave `payload` and `result` out unless `full=True`."""

    id: str = ""
    queue: str = ""
    kind: str = ""
    state: str = ""
    payload: Any = _hidden()
    priority: int = 0
    group: Optional[str] = None
    needs: list[dict[str, Any]] = field(default_factory=list, repr=False)
    attempt: int = 0
    lost: int = 0
    #: How often it was snoozed; `retry={"max_snoozes": …}` bounds that.
    snoozed: int = 0
    run_at: Optional[datetime] = _moment()
    created_at: Optional[datetime] = _moment()
    started_at: Optional[datetime] = _moment()
    finished_at: Optional[datetime] = _moment()
    expires_at: Optional[datetime] = _moment()
    result: Any = _hidden()
    error: Optional[str] = _hidden()
    errors: list[dict[str, Any]] = field(default_factory=list, repr=False)
    #: What a run reported last; `Job.progress()` follows it.
    last_progress: Any = field(default=None, repr=False, metadata={"key": "progress"})
    unique: Optional[dict[str, Any]] = _hidden()
    labels: dict[str, str] = field(default_factory=dict, repr=False)
    #: The trace that the job was pushed in (W3C Trace Context), for its worker to go on with.
    traceparent: Optional[str] = _hidden()
    lease: Optional[str] = None
    cancel_requested: bool = False
    flow: Optional[str] = None
    after: Any = _hidden()
    parents: int = 0
    waiting_on: int = 0
    #: What becomes of it if a parent fails: `cancel` or `run`.
    on_parent_failure: str = "cancel"
    #: Of a retry: how many jobs its failure had cancelled. They stay cancelled.
    cancelled_children: int = 0
    schedule: Optional[dict[str, Any]] = None
    #: How often it is tried, and the waits between, as copied at the push.
    retry: Optional[dict[str, Any]] = _hidden()
    timeout: Optional[str] = None
    #: How long it is kept when it has ended; None: 1 h, 7 days if it failed.
    retain: Optional[str] = None
    #: Of a push: the job was there already.
    duplicate: bool = False
    #: Of a push: the job was there and got this content.
    replaced: bool = False
    #: Of a push: 0 if nobody asked for its queue within the last minute, otherwise None.
    workers: Optional[int] = None

    @property
    def finished(self) -> bool:
        """Say whether it succeeded, failed or was cancelled."""
        return self.state in FINISHED


@dataclass(repr=False)
class Result(Record, Generic[Value]):
    """How a job ended, or that it has not ended yet."""

    id: str = ""
    state: str = ""
    result: Any = _hidden()
    error: Optional[str] = _hidden()
    finished_at: Optional[datetime] = _moment()
    attempt: int = 0
    progress: Any = _hidden()
    #: Tells one report from another.
    progress_id: Optional[str] = _hidden()

    @property
    def finished(self) -> bool:
        """Say whether it succeeded, failed or was cancelled."""
        return self.state in FINISHED

    def get(self) -> Value:
        """Return the result; raise `JobFailed`, `JobCancelled` or `NotFinished` otherwise."""
        if self.state == "succeeded":
            result: Value = self.result
            return result
        if self.state == "failed":
            raise JobFailed(f'job "{self.id}" failed: {self.error}', job=self.id)
        if self.state == "cancelled":
            raise JobCancelled(f'job "{self.id}" was cancelled: {self.error}', job=self.id)
        raise NotFinished(f'job "{self.id}" is {self.state}', hint="wait for longer", job=self.id)


@dataclass(repr=False)
class Parent(Record):
    """A parent of a job, or a flow that it waits for (then `id` is empty and `flow` is not)."""

    id: str = ""
    state: str = ""
    error: Optional[str] = _hidden()
    finished_at: Optional[datetime] = _moment()
    result: Any = _hidden()
    flow: Optional[str] = None
    counts: Optional[dict[str, int]] = None


@dataclass(repr=False)
class Child(Record):
    """A job that waits for another."""

    id: str = ""
    state: str = ""
    on_parent_failure: str = "cancel"


@dataclass
class PushedMany:
    """What became of the jobs of a `push_many`."""

    #: How many jobs the server has now, the duplicates among them.
    count: int = 0
    #: How many of them were there before.
    duplicates: int = 0


@dataclass
class DoneMany(Record):
    """How many jobs a bulk call changed."""

    done: int = 0


@dataclass(repr=False)
class Resource(Record):
    """A resource in a lease, with its data. The data is never shown."""

    pool: str = ""
    id: str = ""
    data: Any = _hidden()
    tags: list[str] = field(default_factory=list)


@dataclass(repr=False)
class LeaseRecord(Record):
    """A granted lease. Its resources have their data here and nowhere else."""

    lease: Optional[str] = None
    fence: int = 0
    holder: str = ""
    granted_at: Optional[datetime] = _moment()
    expires_at: Optional[datetime] = _moment()
    deadline: Optional[datetime] = _moment()
    job: Optional[JobRecord] = _read(lambda raw: None if raw is None else JobRecord.read(raw))
    resources: list[Resource] = _many(lambda: Resource)
    limits: list[str] = field(default_factory=list)


@dataclass(repr=False)
class LeaseSummary(Record):
    """A lease in the list of all leases."""

    lease: str = ""
    fence: int = 0
    holder: str = ""
    queue: Optional[str] = None
    granted_at: Optional[datetime] = _moment()
    expires_at: Optional[datetime] = _moment()
    #: When its run must have ended; None without a timeout.
    deadline: Optional[datetime] = _moment()
    job: Any = _hidden()
    #: The resources that it holds, without their data.
    resources: list[Resource] = _many(lambda: Resource)
    limits: list[str] = field(default_factory=list)
    cancel_requested: bool = False


@dataclass(repr=False)
class Reason(Record):
    """One thing that a job or a caller waits for."""

    kind: str = ""
    name: Optional[str] = None
    in_use: Optional[int] = None
    capacity: Optional[int] = None
    holders: list[dict[str, Any]] = field(default_factory=list)
    position: Optional[int] = None
    ahead: Optional[int] = None
    earliest: Optional[datetime] = _moment()
    detail: str = ""


@dataclass(repr=False)
class Explained(Record):
    """Why a job is in its state, as a sentence and in parts."""

    id: str = ""
    state: str = ""
    summary: str = ""
    reasons: list[Reason] = _many(lambda: Reason)
    lease: Optional[dict[str, Any]] = None

    @property
    def sentence(self) -> str:
        """Say it in one sentence that begins with the job."""
        return self.summary if self.id in self.summary else f"{self.id}: {self.summary}"

    def __str__(self) -> str:
        return self.sentence


@dataclass(repr=False)
class Queue(Record):
    """A queue: its defaults for jobs, and what is in it."""

    name: str = ""
    paused: bool = False
    paused_until: Optional[datetime] = _moment()
    needs: list[dict[str, Any]] = field(default_factory=list)
    retry: Any = None
    timeout: Optional[str] = None
    retain: Any = None
    max_waiting: Optional[int] = None
    #: How long a job waits whose worker was lost; None: 2 s, and twice as long each time.
    lost_delay: Optional[str] = None
    shares: dict[str, int] = field(default_factory=dict)
    #: Whether lists of the dashboard show one line of each payload.
    show_payload: bool = True
    counts: dict[str, int] = field(default_factory=dict)
    oldest_ready_at: Optional[datetime] = _moment()
    workers: int = 0
    #: How many moments of schedules into it were skipped because it was full.
    skipped: int = 0


@dataclass(repr=False)
class Limit(Record):
    """A limit: its settings, its holders and its line."""

    name: str = ""
    template: Optional[str] = None
    concurrency: Optional[int] = None
    rate: Optional[dict[str, Any]] = None
    gap: Optional[str] = None
    quarantine: str = "0s"
    #: Where the server counts work that it does not run, and what it read there last.
    gauge: Optional[dict[str, Any]] = _hidden()
    in_use: int = 0
    #: How many permits of `in_use` rest: for the gap, the quarantine or the next reading.
    resting: int = 0
    external: int = 0
    waiting: int = 0
    over_limit: int = 0
    paused_until: Optional[datetime] = _moment()
    holders: list[dict[str, Any]] = field(default_factory=list)
    line: list[dict[str, Any]] = field(default_factory=list)


@dataclass(repr=False)
class Pool(Record):
    """A pool: its settings, and how many resources are in which state."""

    name: str = ""
    quarantine: str = "0s"
    cooldown: str = "0s"
    rate: Optional[dict[str, Any]] = None
    max_uses: Optional[int] = None
    pick: str = "lru"
    available: int = 0
    leased: int = 0
    cooling: int = 0
    banned: int = 0
    waiting: int = 0


@dataclass(repr=False)
class PoolResource(Record):
    """A resource as its pool shows it: the keys of its data, never the values."""

    id: str = ""
    data: Any = _hidden()
    tags: list[str] = field(default_factory=list)
    slots: int = 1
    state: str = ""
    reason: Optional[str] = None
    in_use: int = 0
    until: Optional[datetime] = _moment()
    retiring: bool = False
    holders: list[dict[str, Any]] = field(default_factory=list)
    uses: int = 0
    last_used_at: Optional[datetime] = _moment()


@dataclass
class Synced(Record):
    """How many items of a whole set a sync changed."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    #: Of a pool.
    retired: int = 0
    retiring: int = 0
    #: Of schedules.
    deleted: int = 0


@dataclass(repr=False)
class Schedule(Record):
    """A schedule: its timing, the job of its moments, and what became of them."""

    id: str = ""
    owner: Optional[str] = None
    cron: Optional[str] = None
    zone: Optional[str] = None
    every: Optional[str] = None
    starts_at: Optional[datetime] = _moment()
    ends_at: Optional[datetime] = _moment()
    jitter: str = "0s"
    overlap: str = "skip"
    catch_up: str = "last"
    catch_up_max: int = 100
    job: dict[str, Any] = field(default_factory=dict, repr=False)
    summary: str = ""
    next_at: Optional[datetime] = _moment()
    next: list[datetime] = field(
        default_factory=list, metadata={"read": lambda items: [read_moment(i) for i in items or ()]}
    )
    #: Whether a run has set `next_at`, by `ctx.next_in`.
    moved: bool = False
    paused: bool = False
    paused_until: Optional[datetime] = _moment()
    ended: bool = False
    unfinished: int = 0
    fired: int = 0
    skipped: int = 0
    missed: int = 0
    #: The last moment that fired, and its job: `{"at", "job"}`.
    last: Optional[dict[str, Any]] = None
    #: The last job that ended: `{"job", "state", "finished_at"}`.
    last_ended: Optional[dict[str, Any]] = None
    last_succeeded_at: Optional[datetime] = _moment()
    created_at: Optional[datetime] = _moment()
    #: When its timing was set last.
    changed_at: Optional[datetime] = _moment()


@dataclass(repr=False)
class Flow(Record):
    """The jobs that carry one name, counted."""

    flow: str = ""
    state: str = ""
    cancelling: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    created_at: Optional[datetime] = _moment()
    finished_at: Optional[datetime] = _moment()

    @property
    def finished(self) -> bool:
        """Say whether none of its jobs is unfinished."""
        return self.state == "finished"


@dataclass(repr=False)
class Event(Record):
    """Something that happened. Further fields of its type are in `raw`: `event["attempt"]`."""

    #: Give it as `since` to go on after this event.
    id: str = ""
    at: Optional[datetime] = _moment()
    #: `job.failed` and so on; `gap` where events were missed: then `why` says so.
    type: str = ""
    job: Optional[str] = None
    queue: Optional[str] = None
    flow: Optional[str] = None
    schedule: Optional[str] = None
    limit: Optional[str] = None
    pool: Optional[str] = None
    why: Optional[str] = None
    #: The name of the token whose call made it, if the call needed `operate` or `admin`.
    by: Optional[str] = None

    def __getitem__(self, name: str) -> Any:
        return self.raw[name]


@dataclass(repr=False)
class Failure(Record):
    """Failed jobs with the same queue, kind and first line of their error."""

    queue: str = ""
    kind: str = ""
    error: str = ""
    count: int = 0
    first_at: Optional[datetime] = _moment()
    last_at: Optional[datetime] = _moment()
    job: str = ""


@dataclass(repr=False)
class Worker(Record):
    """A process that asked for work within the last minute."""

    id: str = ""
    host: Optional[str] = None
    pid: Optional[int] = None
    version: Optional[str] = None
    queues: list[str] = field(default_factory=list)
    leases: int = 0
    last_seen_at: Optional[datetime] = _moment()


@dataclass(repr=False)
class Stats(Record):
    """Totals of the namespace."""

    jobs: dict[str, int] = field(default_factory=dict)
    queues: dict[str, dict[str, int]] = field(default_factory=dict)
    leases: int = 0
    #: How many callers wait for the end of a job or of a flow.
    result_waiters: int = 0
    oldest_ready_at: Optional[datetime] = _moment()
    store: dict[str, Any] = field(default_factory=dict)
    schedules: dict[str, Any] = field(default_factory=dict)
    flows: int = 0
    events: dict[str, Any] = field(default_factory=dict)
    #: The last line of the server's trail, if it has one.
    trail: Optional[dict[str, Any]] = None


@dataclass(repr=False)
class Audited(Record):
    """Whether all sums of the store are right."""

    ok: bool = False
    checked: Any = None
    faults: list[Any] = field(default_factory=list)
