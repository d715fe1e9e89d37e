"""Pushing: one job, some that belong together, and any number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic

from ._calls import call, check
from ._wire import Many, Plan, new_id, request
from .errors import TenureError
from .fields import JobOptions, job_fields
from .jobs import J, bound_job
from .payloads import encode
from .records import PushedMany

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The most jobs of a portion of `push_many`, and about the most bytes.
_PORTION = 500
_PORTION_BYTES = 4 * 1024 * 1024


class Pushing(Generic[J]):
    """The three ways to push, shared by both clients."""

    _transport: Any
    _job_kind: type[J]

    @call
    def push(
        self,
        queue: str = "default",
        payload: Any = None,
        **fields: Unpack[JobOptions],
    ) -> Plan[J]:
        """Store a job. `tenure.JobOptions` lists the fields beside its queue and payload.

        Without an `id` the client makes one, so that a push whose answer was lost is repeated and
        not done twice. A job with this `id`, or a held `unique` key, is answered as it is, with
        `duplicate`.

        >>> job = t.push("mail", {"to": "ann"}, delay="5s")
        >>> job.queue, job.state
        ('mail', 'scheduled')
        """
        body = job_fields(queue, payload, **fields)
        body.setdefault("id", new_id("job"))
        answer = check((yield request("POST", "jobs", body=body)))
        return bound_job(self._job_kind, self._transport, answer)

    @call
    def push_all(self, jobs: Iterable[Mapping[str, Any]]) -> Plan[Many[J]]:
        """Store up to 1,000 jobs, all or none, and return them in their order.

        Each is a mapping with the arguments of `push`, and `ref` for naming it in `after`.

        >>> [job.id for job in t.push_all([{"queue": "mail", "id": n} for n in ("a", "b")])]
        ['a', 'b']
        """
        body = [_named(each) for each in jobs]
        if not body:
            return []
        answer = check((yield request("POST", "jobs", body=body)))
        return [bound_job(self._job_kind, self._transport, raw) for raw in answer]

    @call
    def push_many(self, jobs: Iterable[Mapping[str, Any]]) -> Plan[PushedMany]:
        """Store jobs of any number, for instance from a generator, in portions.

        A portion is stored as a whole or not at all. If one is refused, the error's `index` counts
        from the first job of the iterable, and the jobs of the portions before it are stored.

        >>> t.push_many({"queue": "pages", "payload": {"n": n}} for n in range(1200))
        PushedMany(count=1200, duplicates=0)
        """
        total = PushedMany()
        for portion in _portions(jobs):
            response = yield request("POST", "jobs", body=portion, minimal=True)
            try:
                answer = check(response)
            except TenureError as refused:
                if refused.index is not None:
                    refused.index += total.count
                raise
            total.count += len(answer)
            total.duplicates += sum(1 for each in answer if each["duplicate"])
        return total


def _named(job: Mapping[str, Any]) -> dict[str, Any]:
    """Give a job an id, so that the call can be repeated."""
    fields = job_fields(**job)
    fields.setdefault("id", new_id("job"))
    return fields


def _portions(jobs: Iterable[Mapping[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    portion: list[dict[str, Any]] = []
    size = 0
    for job in jobs:
        fields = _named(job)
        # Measured by the payload, which alone can be large.
        weight = len(encode(fields.get("payload"))) + 512
        if portion and (len(portion) >= _PORTION or size + weight > _PORTION_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(fields)
        size += weight
    if portion:
        yield portion
