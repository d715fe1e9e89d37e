"""Exceptions, one class for each error code of the server.

Catch a class, or compare `code`; `detail` and `hint` are for people and may change.

>>> error = from_problem(404, {"code": "job_not_found", "detail": "there is no job \\"x\\""})
>>> isinstance(error, JobNotFound), error.code, error.status
(True, 'job_not_found', 404)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional


class TenureError(Exception):
    """A call was refused, or could not be made. A refused call changed nothing."""

    #: For programs; never changes its meaning.
    code: str = "error"

    def __init__(
        self,
        detail: str,
        *,
        hint: Optional[str] = None,
        status: Optional[int] = None,
        code: Optional[str] = None,
        pointer: Optional[str] = None,
        index: Optional[int] = None,
        job: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(detail)
        if code is not None:
            self.code = code
        #: The fault of this very call, in a sentence.
        self.detail = detail
        #: What to do next.
        self.hint = hint
        #: The HTTP status, None if the server did not answer.
        self.status = status
        #: Where: an RFC 6901 pointer into the body, or `/query/NAME`, `/path/NAME`.
        self.pointer = pointer
        #: The item of an array; for `push_many` counted from the start of the iterable.
        self.index = index
        #: The job that is in the way.
        self.job = job
        #: Seconds after which a new try makes sense.
        self.retry_after = retry_after

    def __str__(self) -> str:
        where = f" at {self.pointer}" if self.pointer else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.detail} [{self.code}{where}]{hint}"


class Unreachable(TenureError):
    """The server could not be reached; nothing happened."""

    code = "unreachable"


class UnexpectedAnswer(TenureError):
    """What answered is no Tenure server."""

    code = "unexpected_answer"


class NotGranted(TenureError):
    """A lock, or another need, could not be granted within its wait."""

    code = "not_granted"


class NotFinished(TenureError):
    """The job has no result yet."""

    code = "not_finished"


class JobFailed(TenureError):
    """The job whose result was asked for failed."""

    code = "job_failed"


class JobCancelled(TenureError):
    """The job whose result was asked for was cancelled."""

    code = "job_cancelled"


class CodecError(TenureError):
    """A value is sealed and cannot be opened here, or could not be sealed.

    `no_codec`: this client has no codec. `wrong_codec`: it has one of another name. `codec_failed`:
    its codec raised, as for a wrong key; `__cause__` is what it raised.
    """

    code = "codec_failed"


class NotFound(TenureError):
    """Nothing of this name is there: the base of all codes with status 404."""


class BadJson(TenureError):
    """The body is not JSON."""

    code = "bad_json"


class DuplicateJob(TenureError):
    """A push with `on_duplicate="raise"` stored nothing: a job has its id or its unique key."""

    code = "duplicate_job"


class Unauthorized(TenureError):
    """A token is needed."""

    code = "unauthorized"


class Forbidden(TenureError):
    """The token does not permit it."""

    code = "forbidden"


class ForbiddenOrigin(TenureError):
    """Not from this address."""

    code = "forbidden_origin"


class JobNotFound(NotFound):
    """No such job."""

    code = "job_not_found"


class QueueNotFound(NotFound):
    """No such queue."""

    code = "queue_not_found"


class LimitNotFound(NotFound):
    """No such limit."""

    code = "limit_not_found"


class PoolNotFound(NotFound):
    """No such pool."""

    code = "pool_not_found"


class ResourceNotFound(NotFound):
    """No such resource."""

    code = "resource_not_found"


class ScheduleNotFound(NotFound):
    """No such schedule."""

    code = "schedule_not_found"


class FlowNotFound(NotFound):
    """No such flow."""

    code = "flow_not_found"


class LeaseNotFound(NotFound):
    """No such lease."""

    code = "lease_not_found"


class RouteNotFound(NotFound):
    """No such route."""

    code = "route_not_found"


class MethodNotAllowed(TenureError):
    """Not that method."""

    code = "method_not_allowed"


class RequestTimeout(TenureError):
    """The request came too slowly."""

    code = "request_timeout"


class WrongState(TenureError):
    """Not in this state."""

    code = "wrong_state"


class UniqueConflict(TenureError):
    """The unique key is taken."""

    code = "unique_conflict"


class NotEmpty(TenureError):
    """There are unfinished jobs."""

    code = "not_empty"


class InUse(TenureError):
    """It is in use."""

    code = "in_use"


class StaleSync(TenureError):
    """A newer set was synced."""

    code = "stale_sync"


class OtherOwner(TenureError):
    """It belongs to another owner."""

    code = "other_owner"


class BadRequest(TenureError):
    """The request is not HTTP."""

    code = "bad_request"


class HeadTooLarge(TenureError):
    """The head of the request is too large."""

    code = "head_too_large"


class TooLarge(TenureError):
    """The body is too large."""

    code = "too_large"


class UnsupportedMediaType(TenureError):
    """Not this content type."""

    code = "unsupported_media_type"


class InvalidField(TenureError):
    """A field has a wrong value."""

    code = "invalid_field"


class UnknownField(TenureError):
    """There is no such field."""

    code = "unknown_field"


class OutOfBounds(TenureError):
    """A value is outside its bounds."""

    code = "out_of_bounds"


class ConflictingFields(TenureError):
    """Two fields exclude each other."""

    code = "conflicting_fields"


class UnknownLimit(TenureError):
    """No such limit, and no template for it."""

    code = "unknown_limit"


class UnknownPool(TenureError):
    """No such pool."""

    code = "unknown_pool"


class UnknownResource(TenureError):
    """No such resource."""

    code = "unknown_resource"


class NeverFits(TenureError):
    """More than the limit can ever give."""

    code = "never_fits"


class DuplicateNeed(TenureError):
    """The same need twice."""

    code = "duplicate_need"


class EmptySet(TenureError):
    """The set is empty."""

    code = "empty_set"


class RetiresMost(TenureError):
    """More than half would retire."""

    code = "retires_most"


class Cycle(TenureError):
    """The jobs wait for each other."""

    code = "cycle"


class UnknownParent(TenureError):
    """No such parent."""

    code = "unknown_parent"


class UnknownZone(TenureError):
    """No such time zone."""

    code = "unknown_zone"


class NeverFires(TenureError):
    """No moment within ten years."""

    code = "never_fires"


class QueueFull(TenureError):
    """The queue is full."""

    code = "queue_full"


class LineFull(TenureError):
    """Too many callers wait."""

    code = "line_full"


class NamespacesFull(TenureError):
    """There are too many namespaces."""

    code = "namespaces_full"


class StoreFull(TenureError):
    """The store is full."""

    code = "store_full"


class Overloaded(TenureError):
    """Too many bytes are in flight."""

    code = "overloaded"


class Draining(TenureError):
    """The server is draining."""

    code = "draining"


class StoreUnavailable(TenureError):
    """The store cannot be reached."""

    code = "store_unavailable"


class TrailUnwritable(TenureError):
    """The trail cannot be written."""

    code = "trail_unwritable"


class NotOwner(TenureError):
    """Another server owns the store."""

    code = "not_owner"


class OutcomeUnknown(TenureError):
    """It may have happened."""

    code = "outcome_unknown"


class LeaseLost(TenureError):
    """The lease is no longer held."""

    code = "lease_lost"


class AlreadySettled(TenureError):
    """The lease was settled otherwise."""

    code = "already_settled"


class Internal(TenureError):
    """A bug."""

    code = "internal"


_BY_CODE: dict[str, type[TenureError]] = {
    kind.code: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, TenureError)
}


def from_problem(status: int, problem: Any, retry_after: Optional[float] = None) -> TenureError:
    """Make the exception of an error answer.

    A code that is newer than this client is a plain `TenureError`.
    """
    if not isinstance(problem, Mapping) or "detail" not in problem:
        return UnexpectedAnswer(
            f"what answered with status {status} is no Tenure server",
            hint="look at the address, and at what stands between here and the server",
            status=status,
        )
    code = str(problem.get("code", "error"))
    return _BY_CODE.get(code, TenureError)(
        str(problem["detail"]),
        hint=problem.get("hint"),
        status=status,
        code=code,
        pointer=problem.get("pointer"),
        index=problem.get("index"),
        job=problem.get("job"),
        retry_after=retry_after,
    )
