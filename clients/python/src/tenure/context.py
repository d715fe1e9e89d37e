"""The run of a job, as its handler sees it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Optional

from ._http import Transport
from ._leased import secrets_of, value_without, without
from ._paging import walk
from ._text import storable
from .durations import Duration, duration_text
from .errors import CodecError
from .outcomes import Outcome
from .payloads import LEVELS, RESULT_BYTES, encode, too_deep
from .records import JobRecord, LeaseRecord, Parent, Resource
from .sealing import ValuePlace, opened, sealed, show

_PROGRESS_BYTES = 4096
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
        self._pauses: dict[str, dict[str, Any]] = {}
        self._next_in: Optional[str] = None

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
        self._pauses[limit] = {"limit": limit, "pause": duration_text(for_)}

    def next_in(self, wait: Duration) -> None:
        """Say beside the outcome how long after it the schedule of this job is due next.

        Whole seconds, at least one: a source that rarely changes is visited less often. The last
        word counts. For a job that no schedule made it means nothing.
        """
        self._next_in = duration_text(wait)

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
        pauses = {**self._pauses, **{each["limit"]: each for each in item.get("limits", ())}}
        if self._transport.codec is not None and "result" in item:
            self._seal_result(item)
        if verdicts:
            item["resources"] = list(verdicts.values())
        if pauses:
            item["limits"] = list(pauses.values())
        if self._next_in is not None:
            item.setdefault("next_in", self._next_in)
        if "error" in item:
            item["error"] = without(str(item["error"]), self._secrets())
        return item

    def _secrets(self) -> list[str]:
        return secrets_of(each.data for each in self.resources)

    def __repr__(self) -> str:
        return f"Context(job={self.job.id!r}, attempt={self.attempt}, fence={self.fence})"
