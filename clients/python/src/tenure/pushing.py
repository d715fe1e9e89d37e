"""Pushing: one job, some that belong together, and any number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from ._calls import call, check
from ._wire import Many, Plan, new_id, request
from .errors import TenureError
from .fields import JobOptions, job_fields
from .jobs import J, bound_job
from .middleware import Middleware, around_push, around_pushes
from .notices import check_choice
from .payloads import encode
from .records import PushedMany
from .sealing import sealed_payload

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The most jobs of a portion of `push_many`, and about the most bytes.
_PORTION = 500
_PORTION_BYTES = 4 * 1024 * 1024


class Pushing(Generic[J]):
    """The three ways to push, shared by both clients."""

    _transport: Any
    _job_kind: type[J]
    #: The middleware of the app whose client this is.
    _layers: Sequence[Middleware] = ()

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
        `duplicate`, and nothing is pushed. For an `id` that is there the logger `tenure` warns,
        once for each queue; `on_duplicate="raise"` raises `DuplicateJob` for both, `"ignore"`
        keeps quiet.

        >>> job = t.push("mail", {"to": "ann"}, delay="5s")
        >>> job.queue, job.state
        ('mail', 'scheduled')
        """
        job = _named({**fields, "queue": queue, "payload": payload})
        with around_push(self._layers, job):
            body, on_duplicate = self._written(job)
            response = yield request("POST", "jobs", body=body)
            answer = check(response, self._transport.codec)
            self._transport.notices.read(body, answer, response, on_duplicate)
        return bound_job(self._job_kind, self._transport, answer)

    @call
    def push_all(self, jobs: Iterable[Mapping[str, Any]]) -> Plan[Many[J]]:
        """Store up to 1,000 jobs, all or none, and return them in their order.

        Each is a mapping with the arguments of `push`, and `ref` for naming it in `after`. With
        `on_duplicate="raise"` in one of them, `DuplicateJob` is raised after the others are stored.

        >>> [job.id for job in t.push_all([{"queue": "mail", "id": n} for n in ("a", "b")])]
        ['a', 'b']
        """
        named = [_named(each) for each in jobs]
        if not named:
            return []
        with around_pushes(self._layers, named):
            written = [self._written(each) for each in named]
            response = yield request("POST", "jobs", body=[body for body, _ in written])
            answer = check(response, self._transport.codec)
        for (body, on_duplicate), raw in zip(written, answer):
            self._transport.notices.read(body, raw, response, on_duplicate)
        return [bound_job(self._job_kind, self._transport, raw) for raw in answer]

    @call
    def push_many(self, jobs: Iterable[Mapping[str, Any]]) -> Plan[PushedMany]:
        """Store jobs of any number, for instance from a generator, in portions.

        A portion is stored as a whole or not at all. If one is refused, the error's `index` counts
        from the first job of the iterable, and the jobs of the portions before it are stored.
        Duplicates are counted, and not warned of.

        >>> t.push_many({"queue": "pages", "payload": {"n": n}} for n in range(1200))
        PushedMany(count=1200, duplicates=0)
        """
        total = PushedMany()
        for portion in _portions(jobs):
            with around_pushes(self._layers, portion):
                bodies = [self._written(each)[0] for each in portion]
                response = yield request("POST", "jobs", body=bodies, minimal=True)
                try:
                    answer = check(response, self._transport.codec)
                except TenureError as refused:
                    if refused.index is not None:
                        refused.index += total.count
                    raise
            for body, raw in zip(bodies, answer):
                self._transport.notices.read(body, raw, response, "ignore")
            total.count += len(answer)
            total.duplicates += sum(1 for each in answer if each["duplicate"])
        return total

    def _written(self, job: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Write a job as the server reads it; and what is said of a duplicate."""
        on_duplicate = job.get("on_duplicate") or "warn"
        check_choice(on_duplicate)
        body = job_fields(**job)
        if self._transport.codec is not None and "payload" in body:
            body["payload"] = sealed_payload(self._transport.codec, body)
        return body, on_duplicate


def _named(job: Mapping[str, Any]) -> dict[str, Any]:
    """Give a job an id, by which the call can be repeated, and middleware say which job it is."""
    named = dict(job)
    if named.get("id") is None:
        named["id"] = new_id("job")
    return named


def _portions(jobs: Iterable[Mapping[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    portion: list[dict[str, Any]] = []
    size = 0
    for job in jobs:
        # Measured by the payload, which alone can be large.
        weight = len(encode(job.get("payload"), "payload")) + 512
        if portion and (len(portion) >= _PORTION or size + weight > _PORTION_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(_named(job))
        size += weight
    if portion:
        yield portion
