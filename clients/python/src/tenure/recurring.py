"""Schedules and flows: jobs that come back, and jobs that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, Optional

from ._calls import Awaiting, Blocking, Part, call, check, stream
from ._paging import walk
from ._wire import Many, Plan, Stream, given, left, new_id, now, request
from .durations import Duration, Moment, duration_text, moment_text, read_moment, seconds
from .fields import scheduled_job_fields
from .jobs import AsyncJob, J, Job, bound_job
from .records import DoneMany, Flow, Schedule, Synced
from .scarce import gone, lines_request, until_fields
from .sealing import sealed_payload

_LONGEST_WAIT_S = 30.0


def schedule_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Write a schedule as the server reads it."""
    written: dict[str, Any] = {}
    for name, value in fields.items():
        if name in ("every", "jitter") and value is not None:
            value = duration_text(value)
        elif name in ("starts_at", "ends_at", "from") and value is not None:
            value = moment_text(value)
        elif name == "job" and isinstance(value, Mapping):
            value = scheduled_job_fields(value)
        written[name] = value
    return written


class _Schedules(Part, Generic[J]):
    """`client.schedules`."""

    _kind: type[J]

    def _written(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        written = schedule_fields(fields)
        job = written.get("job")
        if self._transport.codec is not None and job is not None:
            written["job"] = {**job, "payload": sealed_payload(self._transport.codec, job)}
        return written

    @call
    def get(self, id: str) -> Plan[Schedule]:
        """Show a schedule, with its next five moments."""
        return Schedule.read(check((yield request("GET", "schedules", id))))

    @stream
    def list(self, *, owner: Optional[str] = None, full: bool = False) -> Stream[Schedule]:
        """Show all schedules, or those of an owner."""
        query = {"owner": owner, "full": True if full else None}
        return (yield from walk(Schedule.read, "schedules", query=query))

    @call
    def set(self, /, id: str, **settings: Any) -> Plan[Schedule]:
        """Set all of a schedule: `cron` and `zone`, or `every`; `job`; and the other settings.

        `starts_at`, `ends_at`, `jitter`, `overlap`, `catch_up`, `catch_up_max`, `owner`.
        """
        body = self._written(settings)
        response = yield request("PUT", "schedules", id, body=body)
        return Schedule.read(check(response, self._transport.codec))

    @call
    def change(self, /, id: str, **settings: Any) -> Plan[Schedule]:
        """Change what is named."""
        body = self._written(settings)
        response = yield request("PATCH", "schedules", id, body=body)
        return Schedule.read(check(response, self._transport.codec))

    @call
    def delete(self, id: str) -> Plan[None]:
        """Delete a schedule; jobs that it made go on."""
        gone((yield request("DELETE", "schedules", id)))

    @call
    def pause(
        self, id: str, *, for_: Optional[Duration] = None, until: Optional[Moment] = None
    ) -> Plan[Schedule]:
        """Fire nothing, for a time or until `resume`; nothing of it is made up."""
        body = until_fields(for_, until)
        return Schedule.read(check((yield request("POST", "schedules", id, "pause", body=body))))

    @call
    def resume(self, id: str) -> Plan[Schedule]:
        """End a pause."""
        return Schedule.read(check((yield request("POST", "schedules", id, "resume"))))

    @call
    def run_now(self, id: str, *, job_id: Optional[str] = None) -> Plan[J]:
        """Push its job now; while one of its jobs is unfinished, show that one."""
        body = {"id": job_id or new_id("job")}
        made = request("POST", "schedules", id, "run-now", body=body)
        return bound_job(self._kind, self._transport, check((yield made)))

    @call
    def sync(
        self,
        owner: str,
        schedules: Iterable[Mapping[str, Any]],
        *,
        force: bool = False,
        version: Optional[int] = None,
    ) -> Plan[Synced]:
        """Make these schedules the whole set of an owner; others are left alone."""
        items = [self._written(each) for each in schedules]
        query = {"owner": owner, "force": True if force else None, "version": version}
        response = yield lines_request("schedules", query=query, items=items)
        return Synced.read(check(response, self._transport.codec))

    @call
    def preview(
        self,
        *,
        id: Optional[str] = None,
        cron: Optional[str] = None,
        zone: Optional[str] = None,
        every: Optional[Duration] = None,
        starts_at: Optional[Moment] = None,
        ends_at: Optional[Moment] = None,
        from_: Optional[Moment] = None,
        count: Optional[int] = None,
    ) -> Plan[Many[datetime]]:
        """Show the moments of a timing; nothing is stored."""
        fields = given(
            id=id, cron=cron, zone=zone, every=every, starts_at=starts_at, ends_at=ends_at
        )
        body = schedule_fields({**fields, **given(**{"from": from_}, count=count)})
        answer = check((yield request("POST", "schedules", "preview", body=body)))
        return [moment for moment in map(read_moment, answer["next"]) if moment is not None]


class _Flows(Part):
    """`client.flows`."""

    @call
    def get(self, name: str) -> Plan[Flow]:
        """Show a flow: how many of its jobs are in which state."""
        return Flow.read(check((yield request("GET", "flows", name))))

    @stream
    def list(self) -> Stream[Flow]:
        """Show all flows, by name."""
        return (yield from walk(Flow.read, "flows"))

    @call
    def wait(self, name: str, timeout: Optional[Duration] = None) -> Plan[Flow]:
        """Wait until no job of it is unfinished, or `timeout` is over."""
        until = None if timeout is None else now() + seconds(timeout)
        while True:
            wait = _LONGEST_WAIT_S if until is None else min(left(until), _LONGEST_WAIT_S)
            query = {"wait": duration_text(wait)}
            response = yield request(
                "GET", "flows", name, query=query, wait=wait, lasts=left(until)
            )
            flow = Flow.read(check(response))
            if flow.finished or (until is not None and now() >= until):
                return flow

    @call
    def cancel(self, name: str) -> Plan[Flow]:
        """Cancel all of it that is unfinished, and what these jobs push into it."""
        return Flow.read(check((yield request("POST", "flows", name, "cancel"))))

    @call
    def retry(self, name: str) -> Plan[DoneMany]:
        """Retry its failed and cancelled jobs, parents before their children."""
        done = 0
        while True:
            body = {"flow": name, "state": "failed,cancelled"}
            made = request("POST", "jobs", "retry", body=body, repeatable=False)
            answer = check((yield made))
            done += answer["done"]
            if not answer["done"] and not answer["more"]:
                return DoneMany(done=done)


class Schedules(_Schedules[Job[Any]], Blocking):
    """`tenure.schedules`."""

    _kind = Job


class AsyncSchedules(_Schedules[AsyncJob[Any]], Awaiting):
    """`tenure.schedules`, awaited."""

    _kind = AsyncJob


class Flows(_Flows, Blocking):
    """`tenure.flows`."""


class AsyncFlows(_Flows, Awaiting):
    """`tenure.flows`, awaited."""
