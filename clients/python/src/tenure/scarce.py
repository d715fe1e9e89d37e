"""Queues, limits and pools: settings that jobs run under."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Optional

from ._calls import Awaiting, Blocking, Part, call, check, stream
from ._paging import walk
from ._wire import Plan, Request, Response, Stream, given, request
from .durations import UNITS, Duration, Moment, duration_text, is_duration, moment_text
from .errors import LimitNotFound, PoolNotFound, QueueNotFound
from .needs import needs_json
from .payloads import encode
from .records import Limit, Pool, PoolResource, Queue, Synced

#: A set up to this size is one array; a larger one is sent as lines, which may have any length.
_ARRAY = 1000
_ARRAY_BYTES = 4 * 1024 * 1024


def until_fields(for_: Optional[Duration], until: Optional[Moment]) -> dict[str, Any]:
    """Write how long something holds; `{}` means until it is ended by a call."""
    fields: dict[str, Any] = {}
    if for_ is not None:
        fields["for"] = duration_text(for_)
    if until is not None:
        fields["until"] = moment_text(until)
    return fields


def gone(response: Response) -> None:
    """Read the answer of a DELETE: after a lost answer "not there" is what was wanted."""
    if not (response.status == 404 and response.repeated):
        check(response)


#: Settings that are durations.
_DURATIONS = ("gap", "timeout", "retain", "quarantine", "cooldown", "lost_delay")


def settings_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Write settings; None is sent as null, which sets a field back to its default."""
    written: dict[str, Any] = {}
    for name, value in fields.items():
        if name in _DURATIONS and value is not None:
            value = duration_text(value)
        elif name == "needs" and value is not None:
            value = needs_json(value)
        elif name == "rate" and isinstance(value, str):
            value = rate_fields(value)
        written[name] = value
    return written


def rate_fields(text: str) -> dict[str, Any]:
    """Read a rate as people write it.

    >>> rate_fields("10/s"), rate_fields("100/5m")
    ({'count': 10, 'per': '1s'}, {'count': 100, 'per': '5m'})
    """
    count, slash, per = text.partition("/")
    if per in UNITS:
        per = f"1{per}"
    if not slash or not count.isdecimal() or not is_duration(per):
        raise ValueError(f'"{text}" is not a rate; write "10/s", "100/5m" or "1000/1h"')
    return {"count": int(count), "per": per}


def set_plan(part: str, name: str, fields: Mapping[str, Any], absent: str) -> Plan[Any]:
    """Change what is named, or make it where it is not there.

    It looks first: the server writes each refused change into its trail, so the refusal of a patch
    would stand there beside each thing that is made.
    """
    body = settings_fields(fields)
    looked = yield request("GET", part, name)
    if looked.status < 400:
        is_there = part != "limits" or _has_own_settings(looked.data)
    else:
        # A token that may not look may change all the same.
        is_there = looked.status == 403
        if not is_there and not _is_code(looked, absent):
            check(looked)
    if is_there:
        changed = yield request("PATCH", part, name, body=body)
        if not _is_code(changed, absent):
            return check(changed)
    return check((yield request("PUT", part, name, body=body)))


def _has_own_settings(limit: Mapping[str, Any]) -> bool:
    """Return False where it shows those of its template, or none since it is only in use."""
    has_some = limit.get("concurrency") is not None or limit.get("rate") is not None
    return has_some and limit.get("template") is None


def _is_code(response: Response, code: str) -> bool:
    return response.status == 404 and (response.data or {}).get("code") == code


def lines_request(*parts: str, query: Mapping[str, Any], items: list[Any]) -> Request:
    """Make a request that sends a whole set: as an array, or as lines where it is large."""
    lines = [encode(item) for item in items]
    if len(lines) <= _ARRAY and sum(map(len, lines)) <= _ARRAY_BYTES:
        return request("PUT", *parts, query=query, body=items)
    made = request("PUT", *parts, query=query)
    body = b"\n".join(lines) + b"\n"
    return Request(made.method, made.path, body, 60.0, content_type="application/x-ndjson")


class _Queues(Part):
    """`client.queues`."""

    @call
    def get(self, name: str) -> Plan[Queue]:
        """Show a queue."""
        return Queue.read(check((yield request("GET", "queues", name))))

    @stream
    def list(self) -> Stream[Queue]:
        """Show all queues, by name."""
        return (yield from walk(Queue.read, "queues"))

    @call
    def set(self, /, name: str, **settings: Any) -> Plan[Queue]:
        """Change settings, and make the queue where it is not there.

        Settings: `needs`, `retry`, `timeout`, `retain`, `max_waiting`, `lost_delay`, `shares`,
        `show_payload`.
        """
        return Queue.read((yield from set_plan("queues", name, settings, QueueNotFound.code)))

    @call
    def replace(self, /, name: str, **settings: Any) -> Plan[Queue]:
        """Set all settings; those that are not given go back to their defaults."""
        body = settings_fields(settings)
        return Queue.read(check((yield request("PUT", "queues", name, body=body))))

    @call
    def pause(
        self, name: str, *, for_: Optional[Duration] = None, until: Optional[Moment] = None
    ) -> Plan[Queue]:
        """Grant nothing of it, for a time or until `resume`; what runs goes on."""
        body = until_fields(for_, until)
        return Queue.read(check((yield request("POST", "queues", name, "pause", body=body))))

    @call
    def resume(self, name: str) -> Plan[Queue]:
        """End a pause."""
        return Queue.read(check((yield request("POST", "queues", name, "resume"))))

    @call
    def delete(self, name: str) -> Plan[None]:
        """Forget an empty queue and its settings."""
        gone((yield request("DELETE", "queues", name)))


class _Limits(Part):
    """`client.limits`."""

    @call
    def get(self, name: str) -> Plan[Limit]:
        """Show a limit, its holders and its line."""
        return Limit.read(check((yield request("GET", "limits", name))))

    @stream
    def list(self) -> Stream[Limit]:
        """Show the limits that are set or in use, by name."""
        return (yield from walk(Limit.read, "limits"))

    @call
    def set(self, /, name: str, **settings: Any) -> Plan[Limit]:
        """Change settings, and make the limit where it is not there.

        Settings: `concurrency`, `rate` (`"10/1s"` or `{"count", "per", "burst"}`), `gap`,
        `quarantine`, `gauge`. `name` may be a template: `site:*`.
        """
        return Limit.read((yield from set_plan("limits", name, settings, LimitNotFound.code)))

    @call
    def replace(self, /, name: str, **settings: Any) -> Plan[Limit]:
        """Set all settings; those that are not given go back to their defaults."""
        body = settings_fields(settings)
        return Limit.read(check((yield request("PUT", "limits", name, body=body))))

    @call
    def pause(
        self, name: str, *, for_: Optional[Duration] = None, until: Optional[Moment] = None
    ) -> Plan[Limit]:
        """Grant nobody a permit before the moment; the later of two moments holds."""
        body = until_fields(for_, until)
        return Limit.read(check((yield request("POST", "limits", name, "pause", body=body))))

    @call
    def resume(self, name: str) -> Plan[Limit]:
        """End a pause."""
        return Limit.read(check((yield request("POST", "limits", name, "resume"))))

    @call
    def observe(self, name: str, external: int, *, for_: Optional[Duration] = None) -> Plan[Limit]:
        """Report permits that work outside of Tenure takes."""
        body = {"external": external, **until_fields(for_, None)}
        return Limit.read(check((yield request("POST", "limits", name, "observe", body=body))))

    @call
    def delete(self, name: str) -> Plan[None]:
        """Forget a limit; jobs that need it wait until it is there again."""
        gone((yield request("DELETE", "limits", name)))


class _Pools(Part):
    """`client.pools`."""

    @call
    def get(self, name: str) -> Plan[Pool]:
        """Show a pool."""
        return Pool.read(check((yield request("GET", "pools", name))))

    @stream
    def list(self) -> Stream[Pool]:
        """Show all pools, by name."""
        return (yield from walk(Pool.read, "pools"))

    @call
    def set(self, /, name: str, **settings: Any) -> Plan[Pool]:
        """Change settings, and make the pool where it is not there.

        Settings: `quarantine`, `cooldown`, `rate`, `max_uses`, `pick`.
        """
        return Pool.read((yield from set_plan("pools", name, settings, PoolNotFound.code)))

    @call
    def replace(self, /, name: str, **settings: Any) -> Plan[Pool]:
        """Set all settings; those that are not given go back to their defaults."""
        body = settings_fields(settings)
        return Pool.read(check((yield request("PUT", "pools", name, body=body))))

    @call
    def delete(self, name: str) -> Plan[None]:
        """Forget a pool that nobody holds anything of."""
        gone((yield request("DELETE", "pools", name)))

    @call
    def sync(
        self,
        name: str,
        resources: Iterable[Mapping[str, Any]],
        *,
        id: str = "id",
        tags: Optional[str] = None,
        force: bool = False,
        version: Optional[int] = None,
    ) -> Plan[Synced]:
        """Make these resources the whole set of a pool, for instance from a database cursor.

        Each is `{"id", "data", "tags", "slots"}`, or a row without `data`: then `id` names the
        column of its id, `tags` the column of its tags (text with commas, or a list; a list under
        `tags` is taken unasked), a whole number under `slots` is how many may hold it, and all
        other columns are its data. Leases, cooling and bans stay; what is absent retires when it
        is free. A set that is empty or retires more than half is refused without `force`.
        """
        items = [_resource(row, id, tags) for row in resources]
        query = {"force": True if force else None, "version": version}
        made = lines_request("pools", name, "resources", query=query, items=items)
        return Synced.read(check((yield made)))

    @call
    def add(
        self,
        name: str,
        id: str,
        data: Any = None,
        *,
        tags: Iterable[str] = (),
        slots: Optional[int] = None,
    ) -> Plan[PoolResource]:
        """Add a resource, or give it new data."""
        body = given(id=id, data=data, tags=[*tags] or None, slots=slots)
        answer = check((yield request("POST", "pools", name, "resources", body=body)))
        return PoolResource.read(answer[0] if isinstance(answer, type([])) else answer)

    @stream
    def resources(self, name: str) -> Stream[PoolResource]:
        """Show the resources of a pool, without their data."""
        return (yield from walk(PoolResource.read, "pools", name, "resources"))

    @call
    def resource(self, name: str, id: str) -> Plan[PoolResource]:
        """Show one resource, without its data."""
        return PoolResource.read(check((yield request("GET", "pools", name, "resources", id))))

    @call
    def change(self, /, name: str, id: str, **changes: Any) -> Plan[PoolResource]:
        """Change `data`, `tags` or `slots` of a resource; new data is for the next lease."""
        made = request("PATCH", "pools", name, "resources", id, body=changes)
        return PoolResource.read(check((yield made)))

    @call
    def remove(self, name: str, id: str) -> Plan[None]:
        """Retire a resource: it is gone when it is free."""
        gone((yield request("DELETE", "pools", name, "resources", id)))

    @call
    def cool(
        self,
        name: str,
        id: str,
        *,
        for_: Optional[Duration] = None,
        until: Optional[Moment] = None,
    ) -> Plan[PoolResource]:
        """Let a resource rest."""
        body = until_fields(for_, until)
        made = request("POST", "pools", name, "resources", id, "cool", body=body)
        return PoolResource.read(check((yield made)))

    @call
    def ban(self, name: str, id: str, reason: str) -> Plan[PoolResource]:
        """Hand a resource out no more, until `restore`."""
        made = request("POST", "pools", name, "resources", id, "ban", body={"reason": reason})
        return PoolResource.read(check((yield made)))

    @call
    def restore(self, name: str, id: str) -> Plan[PoolResource]:
        """End cooling or a ban."""
        made = request("POST", "pools", name, "resources", id, "restore")
        return PoolResource.read(check((yield made)))


def _resource(row: Mapping[str, Any], id: str, tags: Optional[str]) -> dict[str, Any]:
    if "data" in row:
        return dict(row)
    fields = dict(row)
    if id not in fields:
        raise ValueError(f'a resource has no "{id}"; say with id= which column names it')
    made: dict[str, Any] = {"id": str(fields.pop(id))}
    if tags is not None:
        found = fields.pop(tags, None) or []
        made["tags"] = (
            [tag.strip() for tag in found.split(",") if tag.strip()]
            if isinstance(found, str)
            else [*found]
        )
    elif isinstance(fields.get("tags"), (list, tuple)):
        made["tags"] = [*fields.pop("tags")]
    if isinstance(fields.get("slots"), int) and not isinstance(fields["slots"], bool):
        made["slots"] = fields.pop("slots")
    made["data"] = fields
    return made


class Queues(_Queues, Blocking):
    """`tenure.queues`."""


class AsyncQueues(_Queues, Awaiting):
    """`tenure.queues`, awaited."""


class Limits(_Limits, Blocking):
    """`tenure.limits`."""


class AsyncLimits(_Limits, Awaiting):
    """`tenure.limits`, awaited."""


class Pools(_Pools, Blocking):
    """`tenure.pools`."""


class AsyncPools(_Pools, Awaiting):
    """`tenure.pools`, awaited."""
