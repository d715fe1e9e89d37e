"""Events, and calls about the whole: explain, stats, audit, workers, leases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

from ._calls import call, check, stream
from ._paging import walk
from ._wire import Plan, Stream, request
from .durations import Duration, duration_text, seconds
from .records import Audited, Event, Explained, LeaseSummary, Stats, Worker

#: The longest wait of one call for the next event.
_WAIT_S = 30.0


class Watching:
    """The methods of a client that change nothing."""

    _transport: Any

    @call
    def explain(self, id: str) -> Plan[Explained]:
        """Say what a job waits for: `str()` of it is a sentence, `reasons` has the parts."""
        return Explained.read(check((yield request("GET", "jobs", id, "explain"))))

    @call
    def stats(self) -> Plan[Stats]:
        """Count jobs by queue and state, and what else there is."""
        return Stats.read(check((yield request("GET", "stats"))))

    @call
    def audit(self) -> Plan[Audited]:
        """Let the server count all sums anew and compare."""
        made = request("GET", "audit", wait=60.0)
        return Audited.read(check((yield made)))

    @stream
    def workers(self) -> Stream[Worker]:
        """Show the processes that asked for work within the last minute."""
        return (yield from walk(Worker.read, "workers"))

    @stream
    def leases(
        self,
        *,
        queue: Optional[str] = None,
        limit: Optional[str] = None,
        pool: Optional[str] = None,
        worker: Optional[str] = None,
    ) -> Stream[LeaseSummary]:
        """Show the live leases, oldest first, without data of resources."""
        query = {"queue": queue, "limit": limit, "pool": pool, "worker": worker}
        return (yield from walk(LeaseSummary.read, "leases", query=query))

    @call
    def force_lease(self, lease: str) -> Plan[None]:
        """Take a lease away from its holder."""
        response = yield request("DELETE", "leases", lease)
        if not (response.status == 404 and response.repeated):
            check(response)

    @call
    def last_event(self) -> Plan[str]:
        """Return the id of the newest event; as `since` it means "from now on"."""
        answer = check((yield request("GET", "events")))
        return str(answer["next"])

    @stream
    def events(
        self,
        *,
        since: Optional[str] = None,
        type: Union[str, Sequence[str], None] = None,
        queue: Optional[str] = None,
        job: Optional[str] = None,
        flow: Optional[str] = None,
        schedule: Optional[str] = None,
        limit: Optional[str] = None,
        pool: Optional[str] = None,
        wait: Optional[Duration] = None,
    ) -> Stream[Event]:
        """Iterate over events as they happen, across restarts of the server.

        It begins with what happens after the first step of the iteration, or after `since`: an
        event's id, `last_event()`, or `"first"` for all that are kept. It never ends; with `wait`
        it ends when no event came for that time. Where events were missed, an event of the type
        `gap` says why.
        """
        filter = {
            "type": type, "queue": queue, "job": job, "flow": flow,
            "schedule": schedule, "limit": limit, "pool": pool,
        }  # fmt: skip
        if since is None:
            since = str(check((yield request("GET", "events")))["next"])
        patience = None if wait is None else seconds(wait)
        while True:
            once = _WAIT_S if patience is None else min(patience, _WAIT_S)
            query = {**filter, "since": since, "wait": duration_text(once)}
            answer = check((yield request("GET", "events", query=query, wait=once)))
            gap = answer.get("gap")
            if gap is not None:
                yield [Event.read({**gap, "type": "gap", "id": str(gap.get("first") or since)})]
            items = answer["items"]
            yield [Event.read(raw) for raw in items]
            # A draining server answers at once with what is there; the next call then waits for
            # its successor.
            if not items and answer["next"] == since and patience is not None:
                patience -= once
                if patience <= 0:
                    return
            elif items and wait is not None:
                patience = seconds(wait)
            since = str(answer["next"])
