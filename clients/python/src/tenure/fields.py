"""The fields of a job beside its queue and payload: the one list of them, their types, their form.

`Tenure.push`, `task.options` and `App.job` take them as keywords; type checkers and editors read
them from the classes here, and so does the check for a misspelt one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Literal, Optional, TypedDict, Union

from ._wire import given
from .durations import (
    Duration,
    Moment,
    duration_text,
    is_duration,
    moment_text,
    read_moment,
    seconds,
)
from .needs import AnyNeed, needs_json

Unique = Union[str, Mapping[str, Any]]


class JobDefaults(TypedDict, total=False):
    """What a handler can give to all its jobs; `App.job` says what each field means."""

    delay: Optional[Duration]
    priority: Optional[int]
    group: Optional[str]
    needs: Union[Iterable[AnyNeed], Callable[..., Iterable[AnyNeed]], None]
    unique: Optional[Unique]
    retry: Union[int, Mapping[str, Any], None]
    timeout: Optional[Duration]
    expires_at: Union[Moment, Duration, None]
    retain: Optional[Duration]
    on_parent_failure: Optional[str]
    labels: Optional[Mapping[str, str]]


class JobOptions(JobDefaults, total=False):
    """What can be said of one job: its defaults, and what no two jobs share."""

    #: Made by the client unless given. A second push of an id stores nothing.
    id: Optional[str]
    #: Which handler of the queue runs it.
    kind: Optional[str]
    #: When it may run, instead of a `delay`.
    run_at: Optional[Moment]
    #: The jobs and flows that it waits for: ids, jobs, or mappings such as `{"flow": "import"}`.
    after: Optional[Sequence[Any]]
    #: The flow that it belongs to.
    flow: Optional[str]
    #: The trace that its run belongs to (W3C Trace Context).
    traceparent: Optional[str]
    #: Of the push and not of the job: what happens if the job is there already. `"warn"` (unless
    #: given) logs it once for each queue, `"raise"` raises `DuplicateJob`, `"ignore"` does neither.
    on_duplicate: Optional[Literal["warn", "raise", "ignore"]]


class JobSpec(JobOptions, total=False):
    """A whole job, as `Tenure.push_all` and `push_many` take it."""

    queue: Optional[str]
    payload: Any
    #: A name for the job within one `push_all`, for the `after` of another.
    ref: Optional[str]


def refuse_unknown(names: Iterable[str], known: Any, of: str) -> None:
    """Raise a `TypeError` for the first name that a class of fields does not have.

    >>> refuse_unknown(["dealy"], JobOptions, "options()")
    Traceback (most recent call last):
    TypeError: options() has no "dealy"; did you mean "delay"?
    """
    fields: list[str] = sorted(known.__optional_keys__)
    for name in names:
        if name not in fields:
            near = difflib.get_close_matches(name, fields, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"it takes {', '.join(fields)}"
            raise TypeError(f'{of} has no "{name}"; {hint}')


def _after(parents: Sequence[Any]) -> list[Any]:
    return [getattr(each, "id", each) for each in parents]


def _retry(retry: Any) -> Any:
    """Write how often a job is tried.

    >>> _retry(5)
    {'max_attempts': 5}
    """
    if isinstance(retry, int) and not isinstance(retry, bool):
        return {"max_attempts": retry}
    if isinstance(retry, Mapping):
        return retry
    raise TypeError(
        f"retry is a number of attempts or a mapping such as {{'max_attempts': 5}}, not {retry!r}"
    )


_WRITERS: dict[str, Callable[[Any], Any]] = {
    "run_at": moment_text,
    "delay": duration_text,
    "needs": needs_json,
    "unique": lambda unique: {"key": unique} if isinstance(unique, str) else unique,
    "retry": _retry,
    "timeout": duration_text,
    "retain": duration_text,
    "expires_in": duration_text,
    "after": _after,
}


def _write(name: str, value: Any) -> Any:
    write = _WRITERS.get(name)
    return value if write is None else write(value)


def scheduled_job_fields(job: Mapping[str, Any]) -> dict[str, Any]:
    """Write the job of a schedule; None is sent as null, which is the default.

    >>> scheduled_job_fields({"queue": "mail", "retain": 60, "timeout": None})
    {'queue': 'mail', 'retain': '60s', 'timeout': None}
    """
    return {name: None if value is None else _write(name, value) for name, value in job.items()}


def job_fields(queue: Optional[str] = None, payload: Any = None, **fields: Any) -> dict[str, Any]:
    """Write a job as the server reads it, with durations and moments of any form.

    >>> job_fields("mail", {"to": "ann"}, id="m-1", delay=90)
    {'queue': 'mail', 'payload': {'to': 'ann'}, 'id': 'm-1', 'delay': '90s'}
    """
    refuse_unknown(fields, JobSpec, "a job")
    body = given(queue=queue, payload=payload)
    for name, value in fields.items():
        if value is not None and name != "on_duplicate":
            body[name] = _write(name, value)
    if "expires_at" in body:
        body["expires_at"] = _end(body)
    return body


def _end(body: Mapping[str, Any]) -> str:
    """Write `expires_at`; a duration counts from the moment from which the job may run."""
    value = body["expires_at"]
    if not is_duration(value):
        return moment_text(value)
    start = read_moment(body.get("run_at")) or datetime.now(timezone.utc)
    wait = seconds(body.get("delay", 0)) + seconds(value)
    return moment_text(start + timedelta(seconds=wait))
