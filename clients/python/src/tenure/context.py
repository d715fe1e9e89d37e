"""The run of a job, as its handler sees it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Optional

from ._http import Transport
from ._leased import secrets_of, value_without, without
from ._paging import walk
from ._text import storable
from ._wire import new_id
from .durations import Duration, duration_text
from .errors import CodecError
from .fields import job_fields
from .outcomes import Outcome
from .payloads import LEVELS, RESULT_BYTES, encode, too_deep
from .records import JobRecord, LeaseRecord, Parent, Resource
from .sealing import ValuePlace, opened, sealed, sealed_payload, show

_PROGRESS_BYTES = 4096
#: The most jobs that a run pushes, and the most bytes of them: a settle has one call, of 8 MiB.
_PUSHES = 100
_PUSHED_BYTES = 4 * 1024 * 1024
_MAKING = threading.Lock()


class Context:
    """The run of a job: give a handler a parameter with this annotation to get it."""

    def __init__(
        self, lease: LeaseRecord, transport: Transport, report: Callable[[Optional[bytes]], None]
    ) -> None:
        assert lease.job is not None
        #: The job, with its payload. `job.last_progress` is what the run before reported.
        self.job: JobRecord = lease.job
        #: Grows with every grant: a store that compares it can refuse an older holder.
        self.fence: int = lease.fence
        #: The number of this run, from 1.
        self.attempt: int = lease.job.attempt
        #: When the run must have ended, by the server's clock; None without a timeout.
        self.deadline: Optional[datetime] = lease.deadline
        self.resources: list[Resource] = lease.resources
        self._lost: Optional[threading.Event] = None
        self._transport = transport
        self._report = report
        self._verdicts: dict[tuple[str, str], dict[str, Any]] = {}
        self._limits: dict[str, dict[str, Any]] = {}
        self._next_in: Optional[str] = None
        self._pushes: list[Any] = []
        self._pushed_bytes = 0
        #: Its outcome is written, so what comes later would be dropped.
        self._is_written = False
        #: The middleware of its app around a push.
        self._around_push: Callable[[dict[str, Any]], AbstractContextManager[object]] = (
            contextlib.nullcontext
        )

    @property
    def lost(self) -> threading.Event:
        """Set when the run is to stop, for handlers that block where no exception comes."""
        # Made for the few runs that ask for it: it costs as much as all the rest of a context.
        with _MAKING:
            if self._lost is None:
                self._lost = threading.Event()
            return self._lost

    @property
    def resource(self) -> Resource:
        """The first resource."""
        if not self.resources:
            raise LookupError("this job holds no resource; push it with needs=[pool(...)]")
        return self.resources[0]

    def progress(self, value: Any) -> None:
        """Say how far it is, in JSON of at most 4 KiB: the job shows it within a second.

        A codec makes it a third longer, and the bound is for what it made.

        The value is read at once; what is changed in it later is not reported.
        """
        written = encode(value, "progress")
        if deep := too_deep(written):
            raise ValueError(f"progress is nested {deep} levels deep; at most {LEVELS} go")
        if self.resources:
            # Within its texts: a secret of digits may stand in a number, or be one of JSON's marks.
            written = encode(value_without(json.loads(written), self._secrets()))
        if self._transport.codec is not None:
            written = encode(self._sealed(json.loads(written), "progress"))
        if len(written) > _PROGRESS_BYTES:
            raise ValueError(
                f"progress has {len(written)} bytes as JSON; at most {_PROGRESS_BYTES} go"
            )
        self._report(None if value is None else written)

    def parents(self) -> list[Parent]:
        """Ask for the jobs that it waited for, with their results."""
        found = walk(Parent.read, "jobs", self.job.id, "parents", query={"full": True})
        parents = list(self._transport.iterate(found))
        for each in parents:
            each.result = opened(self._transport.codec, each.result, "result")
        return parents

    def ban(self, resource: Resource, reason: str) -> None:
        """Say beside the outcome that a resource is not to be handed out again."""
        self._judge(resource, {"verdict": "ban", "reason": storable(str(reason))})

    def cool(self, resource: Resource, for_: Duration) -> None:
        """Say beside the outcome that a resource is to rest."""
        self._judge(resource, {"verdict": "cool", "for": duration_text(for_)})

    def pause(self, limit: str, for_: Duration) -> None:
        """Say beside the outcome that a limit is to grant nothing for a time."""
        self._judge_limit(limit, "pause", duration_text(for_))

    def spent(self, limit: str, tokens: int) -> None:
        """Say beside the outcome how many tokens of a rate the run has really spent.

        They are counted instead of the cost that the grant booked. The last word counts.
        """
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
            raise ValueError(f"tokens must be a whole number from 0 on, not {tokens!r}")
        self._judge_limit(limit, "spent", tokens)

    def next_in(self, wait: Duration) -> None:
        """Say beside the outcome how long after it the schedule of this job is due next.

        Whole seconds, at least one: a source that rarely changes is visited less often. The last
        word counts. For a job that no schedule made it means nothing.
        """
        self._next_in = duration_text(wait)

    def push(self, job: Mapping[str, Any]) -> str:
        """Push a job in the step that settles this run as succeeded; return the id of the job.

        Both happen or neither. `job` is what `task.spec(…)` returns, or a mapping as
        `Tenure.push_all` takes it; it is read at once. At most 100, and 4 MiB of them. A run that
        does not succeed pushes nothing: its next run would push the same again.

        A queue that is full keeps the run from being settled until there is room. A push that the
        server refuses for another reason fails the job for good.
        """
        if not isinstance(job, Mapping):
            raise TypeError(f"ctx.push takes a job as task.spec(…) returns it, not {job!r}")
        if job.get("on_duplicate") == "raise":
            raise ValueError("ctx.push cannot raise DuplicateJob; the run ends before it is stored")
        pushed = dict(job)
        if pushed.get("id") is None:
            pushed["id"] = new_id("job")
        if pushed.get("traceparent") is None:
            # The work of this run goes on in that job.
            pushed["traceparent"] = self.job.traceparent
        with self._around_push(pushed):
            body = job_fields(**pushed)
            if self._transport.codec is not None and "payload" in body:
                body["payload"] = sealed_payload(self._transport.codec, body)
            encode(body.get("payload"), "payload")
            written = encode(body)
            self._add_push(written)
        return str(body["id"])

    def _add_push(self, written: bytes) -> None:
        if self._is_written:
            raise RuntimeError(
                "ctx.push comes after the end of the run, which stores what it pushes"
            )
        if len(self._pushes) >= _PUSHES:
            raise ValueError(
                f"a run pushes at most {_PUSHES} jobs; push the others by task.push(…)"
            )
        if self._pushed_bytes + len(written) > _PUSHED_BYTES:
            raise ValueError(
                f"a run pushes at most {_PUSHED_BYTES} bytes; push the others by task.push(…)"
            )
        self._pushed_bytes += len(written)
        self._pushes.append(json.loads(written))

    def _judge_limit(self, limit: str, name: str, value: Any) -> None:
        self._limits.setdefault(limit, {"limit": limit})[name] = value

    def _judge(self, resource: Resource, verdict: dict[str, Any]) -> None:
        fields = {"pool": resource.pool, "id": resource.id, **verdict}
        self._verdicts[(resource.pool, resource.id)] = fields

    def _open(self) -> Any:
        """Return the payload as it was pushed, here and in `job`; raise `CodecError`."""
        codec = self._transport.codec
        self.job.payload = opened(codec, self.job.payload, "payload", self.job)
        # The report of the run before is a help, and no reason to fail.
        show(codec, self.job)
        return self.job.payload

    def _sealed(self, value: Any, part: str) -> Any:
        return sealed(self._transport.codec, value, ValuePlace(part, self.job.queue, self.job.kind))

    def _seal_result(self, item: dict[str, Any]) -> None:
        """Seal the result of an outcome; one that cannot be stored is a failure for good."""
        result = item.pop("result")
        try:
            made = self._sealed(result, "result")
            if (size := len(encode(made))) > RESULT_BYTES:
                raise CodecError(
                    f"its result has {size} bytes once it is sealed; at most {RESULT_BYTES} "
                    "can be stored"
                )
        except Outcome as outcome:
            item.update(outcome.settle_item())
        except CodecError as refused:
            item.update(outcome="failed", error=refused.detail, final=True)
        else:
            item["result"] = made

    def _complete(self, item: dict[str, Any]) -> dict[str, Any]:
        """Add what was said beside the outcome; what the outcome itself says goes before."""
        said = {(each["pool"], each["id"]): each for each in item.get("resources", ())}
        verdicts = {**self._verdicts, **said}
        limits = dict(self._limits)
        for each in item.get("limits", ()):
            limits[each["limit"]] = {**limits.get(each["limit"], {}), **each}
        if self._transport.codec is not None and "result" in item:
            self._seal_result(item)
        if verdicts:
            item["resources"] = list(verdicts.values())
        if limits:
            item["limits"] = list(limits.values())
        self._is_written = True
        if self._pushes and item["outcome"] == "succeeded":
            item["push"] = self._pushes
        if self._next_in is not None:
            item.setdefault("next_in", self._next_in)
        if "error" in item:
            item["error"] = without(str(item["error"]), self._secrets())
        return item

    def _secrets(self) -> list[str]:
        return secrets_of(each.data for each in self.resources)

    def __repr__(self) -> str:
        return f"Context(job={self.job.id!r}, attempt={self.attempt}, fence={self.fence})"
