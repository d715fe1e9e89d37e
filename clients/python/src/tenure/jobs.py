"""Jobs: pushing, looking at, changing and waiting for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Optional, TypeVar, Union

from ._calls import Awaiting, Blocking, Part, call, check, stream
from ._paging import walk
from ._wire import Many, Plan, Stream, given, left, now, request
from .durations import Duration, Moment, duration_text, moment_text, seconds
from .fields import job_fields
from .records import Child, DoneMany, Explained, Failure, JobRecord, Parent, Result, Value
from .sealing import Codec, ValuePlace, opened, sealed, show, shown

#: The longest wait of one call; a longer wait is several calls.
_LONGEST_WAIT_S = 30.0


def filter_fields(
    queue: Optional[str] = None,
    state: Union[str, Sequence[str], None] = None,
    kind: Optional[str] = None,
    label: Optional[str] = None,
    flow: Optional[str] = None,
    schedule: Optional[str] = None,
    error: Optional[str] = None,
    finished_after: Optional[Moment] = None,
    finished_before: Optional[Moment] = None,
) -> dict[str, Any]:
    """Write a filter of jobs as the server reads it."""
    return given(
        queue=queue,
        state=state if state is None or isinstance(state, str) else ",".join(state),
        kind=kind,
        label=label,
        flow=flow,
        schedule=schedule,
        error=error,
        finished_after=None if finished_after is None else moment_text(finished_after),
        finished_before=None if finished_before is None else moment_text(finished_before),
    )


def result_plan(
    id: str, timeout: Optional[Duration], codec: Optional[Codec] = None
) -> Plan[Result[Any]]:
    """Wait for a job's end, and open its result; raise `CodecError` if that fails."""
    until = None if timeout is None else now() + seconds(timeout)
    while True:
        wait = _LONGEST_WAIT_S if until is None else min(left(until), _LONGEST_WAIT_S)
        query = {"wait": duration_text(wait)}
        response = yield request(
            "GET", "jobs", id, "result", query=query, wait=wait, lasts=left(until)
        )
        result: Result[Any] = Result.read(check(response))
        if result.finished or (until is not None and now() >= until):
            result.result = opened(codec, result.result, "result")
            result.progress = shown(codec, result.progress, "progress")
            return result
        # The key may pass to another job; the wait is for the one that held it at first.
        id = result.id


def progress_stream(
    id: str, timeout: Optional[Duration], codec: Optional[Codec] = None
) -> Stream[Any]:
    """Follow what a job reports until it ends."""
    until = None if timeout is None else now() + seconds(timeout)
    seen, wait = "none", 0.0
    while True:
        query = {"wait": duration_text(wait), "seen": seen}
        response = yield request(
            "GET", "jobs", id, "result", query=query, wait=wait, lasts=left(until)
        )
        result: Result[Any] = Result.read(check(response))
        if result.progress_id is not None and result.progress_id != seen:
            seen = result.progress_id
            yield [opened(codec, result.progress, "progress")]
        wait = _LONGEST_WAIT_S if until is None else min(left(until), _LONGEST_WAIT_S)
        if result.finished or wait <= 0:
            return
        # As in `result_plan`: a key may pass to another job.
        id = result.id


class _JobMethods(Generic[Value]):
    """Calls about a job that is at hand; `self` is a `JobRecord` too."""

    id: str
    _transport: Any

    @call
    def get(self, timeout: Optional[Duration] = None) -> Plan[Value]:
        """Wait until it ends, and return its result; raise `JobFailed` or `JobCancelled`.

        `NotFinished` is raised when `timeout` is over before it ends.
        """
        result: Result[Value] = yield from result_plan(self.id, timeout, self._transport.codec)
        return result.get()

    @call
    def wait(self, timeout: Optional[Duration] = None) -> Plan[Result[Value]]:
        """Wait until it ends, or `timeout` is over; for ever without one.

        Look at `finished`, or call `get()`, which returns the result or raises.
        """
        return (yield from result_plan(self.id, timeout, self._transport.codec))

    @stream
    def progress(self, timeout: Optional[Duration] = None) -> Stream[Any]:
        """Follow what its run reports: an iterator that ends with the job, or after `timeout`.

        It begins with the last report, and has each later one about a second after
        `ctx.progress(…)`: the worker sends a report within a second, and the server tells of it.
        One that is replaced sooner may be left out.
        """
        return (yield from progress_stream(self.id, timeout, self._transport.codec))

    @call
    def explain(self) -> Plan[Explained]:
        """Say what it waits for, since when, and what must happen next."""
        return Explained.read(check((yield request("GET", "jobs", self.id, "explain"))))


@dataclass(repr=False)
class Job(JobRecord, _JobMethods[Value], Blocking):
    """A job of a `Tenure`. `Job[str]` is one whose handler returns a `str`."""

    _transport: Any = field(default=None, repr=False, compare=False)


@dataclass(repr=False)
class AsyncJob(JobRecord, _JobMethods[Value], Awaiting):
    """A job of an `AsyncTenure`. `AsyncJob[str]` is one whose handler returns a `str`."""

    _transport: Any = field(default=None, repr=False, compare=False)


J = TypeVar("J", Job[Any], AsyncJob[Any])


def bound_job(kind: type[J], transport: Any, raw: Mapping[str, Any]) -> J:
    """Read a job and give it the connection on which it is waited for."""
    job = kind.read(raw)
    job._transport = transport
    show(transport.codec, job)
    return job


class _Jobs(Part, Generic[J]):
    """`client.jobs`."""

    _kind: type[J]

    def _job(self, raw: Mapping[str, Any]) -> J:
        return bound_job(self._kind, self._transport, raw)

    @call
    def get(self, id: str) -> Plan[J]:
        """Show a job, by its id or as `key:KEY`."""
        return self._job(check((yield request("GET", "jobs", id))))

    @stream
    def list(self, /, *, full: bool = False, max: Optional[int] = None, **filter: Any) -> Stream[J]:
        """Show jobs, newest first: an iterator that asks for further pages by itself.

        Filters: `queue`, `state` (one or several), `kind`, `label="k:v"`, `flow`, `schedule`,
        `error` (its last error contains this), `finished_after`, `finished_before`.
        """
        query = {**filter_fields(**filter), "full": True if full else None}
        return (yield from walk(self._job, "jobs", query=query, max=max))

    @call
    def cancel(self, id: str) -> Plan[J]:
        """Cancel a job. One that runs is asked to stop, and shows `cancel_requested`."""
        return self._job(check((yield request("POST", "jobs", id, "cancel"))))

    @call
    def retry(self, id: str) -> Plan[J]:
        """Run a failed or cancelled job once more, its attempts from 0."""
        shown = check((yield request("GET", "jobs", id)))
        # With the end that was seen, a repeat cannot retry a job that failed again meanwhile.
        body = given(finished_at=shown.get("finished_at"))
        response = yield request("POST", "jobs", id, "retry", body=body)
        if response.repeated and response.status == 409:
            # The first sending did it, and its answer was lost.
            return self._job(check((yield request("GET", "jobs", id))))
        return self._job(check(response))

    @call
    def run_now(self, id: str) -> Plan[J]:
        """Let a scheduled job be ready at once."""
        return self._job(check((yield request("POST", "jobs", id, "run-now"))))

    @call
    def reschedule(
        self, id: str, *, at: Optional[Moment] = None, delay: Optional[Duration] = None
    ) -> Plan[J]:
        """Move a job that has not begun to another moment."""
        body = given(
            run_at=None if at is None else moment_text(at),
            delay=None if delay is None else duration_text(delay),
        )
        return self._job(check((yield request("PATCH", "jobs", id, body=body))))

    @call
    def change(self, /, id: str, **fields: Any) -> Plan[J]:
        """Change a job that has not begun: `priority`, `payload`, `needs`, `group`, `labels`, …."""
        body = job_fields(None, **fields)
        if self._transport.codec is not None and "payload" in body:
            job = JobRecord.read(check((yield request("GET", "jobs", id))))
            place = ValuePlace("payload", job.queue, job.kind)
            body["payload"] = sealed(self._transport.codec, body["payload"], place)
            # The key may pass to another job, of another place.
            id = job.id
        return self._job(check((yield request("PATCH", "jobs", id, body=body))))

    @call
    def delete(self, id: str) -> Plan[None]:
        """Forget a job that does not run; one that waits is cancelled by it."""
        response = yield request("DELETE", "jobs", id)
        if not (response.status == 404 and response.repeated):
            check(response)

    @call
    def wait(self, id: str, timeout: Optional[Duration] = None) -> Plan[Result[Any]]:
        """Wait for a job's end, by its id or as `key:KEY`."""
        return (yield from result_plan(id, timeout, self._transport.codec))

    @stream
    def progress(self, id: str, timeout: Optional[Duration] = None) -> Stream[Any]:
        """Follow what a job's run reports, by its id or as `key:KEY`; see `Job.progress`."""
        return (yield from progress_stream(id, timeout, self._transport.codec))

    @call
    def explain(self, id: str) -> Plan[Explained]:
        """Say what a job waits for."""
        return Explained.read(check((yield request("GET", "jobs", id, "explain"))))

    @stream
    def parents(self, id: str, *, full: bool = False) -> Stream[Parent]:
        """Show what a job waits for or waited for, with results if `full`."""
        query = {"full": True if full else None}
        codec = self._transport.codec

        def read(raw: Mapping[str, Any]) -> Parent:
            parent = Parent.read(raw)
            parent.result = shown(codec, parent.result, "result")
            return parent

        return (yield from walk(read, "jobs", id, "parents", query=query))

    @stream
    def children(self, id: str) -> Stream[Child]:
        """Show the jobs that wait for a job."""
        return (yield from walk(Child.read, "jobs", id, "children"))

    @call
    def cancel_many(self, /, **filter: Any) -> Plan[DoneMany]:
        """Cancel all jobs of a filter (see `list`); at least one filter is needed."""
        return (yield from _bulk("cancel", filter_fields(**filter), repeatable=True))

    @call
    def retry_many(self, /, **filter: Any) -> Plan[DoneMany]:
        """Retry all failed and cancelled jobs of a filter.

        If an answer is lost, the call is repeated only with `finished_before`: without it a repeat
        could retry a job that has failed again meanwhile.
        """
        safe = filter.get("finished_before") is not None
        return (yield from _bulk("retry", filter_fields(**filter), repeatable=safe))

    @call
    def delete_many(self, /, **filter: Any) -> Plan[DoneMany]:
        """Forget all jobs of a filter that do not run."""
        return (yield from _bulk("delete", filter_fields(**filter), repeatable=True))

    @call
    def failures(
        self,
        *,
        queue: Optional[str] = None,
        kind: Optional[str] = None,
        finished_after: Optional[Moment] = None,
        max: Optional[int] = None,
    ) -> Plan[Many[Failure]]:
        """Count failed jobs by queue, kind and the first line of their error.

        With `finished_after` those that ended at this moment or later.
        """
        after = None if finished_after is None else moment_text(finished_after)
        query = {"queue": queue, "kind": kind, "finished_after": after, "max": max}
        answer = check((yield request("GET", "failures", query=query)))
        return [Failure.read(raw) for raw in answer["items"]]


class Jobs(_Jobs[Job[Any]], Blocking):
    """`tenure.jobs`."""

    _kind = Job


class AsyncJobs(_Jobs[AsyncJob[Any]], Awaiting):
    """`tenure.jobs`, awaited."""

    _kind = AsyncJob


def _bulk(verb: str, filter: dict[str, Any], *, repeatable: bool) -> Plan[DoneMany]:
    done = 0
    cursor: Optional[str] = None
    while True:
        body = {**filter, **given(cursor=cursor)}
        answer = check((yield request("POST", "jobs", verb, body=body, repeatable=repeatable)))
        done += answer["done"]
        cursor = answer.get("next")
        if cursor is None:
            return DoneMany(done=done)
