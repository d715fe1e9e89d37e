"""Exceptions by which a handler says how its run went, and those that stop a handler."""

from __future__ import annotations

from typing import Any, Optional

from ._text import message_of, storable
from .durations import Duration, Moment, duration_text, moment_text
from .records import Resource


class Outcome(Exception):
    """Ends a run with an outcome other than success. Any other exception is a failure."""

    def settle_item(self) -> dict[str, Any]:
        """Write it as the server reads it."""
        raise NotImplementedError


class Snooze(Outcome):
    """Not yet: run the job again later. Costs no attempt.

    With `reset` its attempts start again from 0. A job that lives on by snoozing, as one that
    follows a feed for a year, would otherwise fail for good in time, however many runs went well.
    """

    def __init__(
        self,
        for_: Optional[Duration] = None,
        *,
        until: Optional[Moment] = None,
        reset: bool = False,
    ) -> None:
        if (for_ is None) == (until is None):
            raise TypeError('say for how long, or until when: Snooze("5s")')
        super().__init__(for_ if for_ is not None else until)
        self._when = (
            {"for": duration_text(for_)}
            if for_ is not None
            else {"until": moment_text(until or "")}
        )
        self._reset = {"reset": True} if reset else {}

    def settle_item(self) -> dict[str, Any]:
        """Write it as the server reads it."""
        return {"outcome": "snoozed", **self._when, **self._reset}


class RetryIn(Outcome):
    """The run failed. Its next attempt is after `wait`, whatever the policy of the job says."""

    def __init__(self, wait: Duration, message: str = "failed") -> None:
        super().__init__(message)
        self._wait = duration_text(wait)

    def settle_item(self) -> dict[str, Any]:
        """Write it as the server reads it."""
        error = message_of(self) or "failed"
        return {"outcome": "failed", "error": error, "retry_in": self._wait}


class Final(Outcome):
    """Failed for good: a retry would not help."""

    def settle_item(self) -> dict[str, Any]:
        """Write it as the server reads it."""
        return {"outcome": "failed", "error": message_of(self) or "failed for good", "final": True}


class Ban(Outcome):
    """The resource is not to be handed out again. The run failed, and is retried by its policy."""

    def __init__(self, resource: Resource, reason: str) -> None:
        reason = storable(str(reason))
        super().__init__(f"{resource.pool}/{resource.id} is banned: {reason}")
        self._verdict = {
            "pool": resource.pool,
            "id": resource.id,
            "verdict": "ban",
            "reason": reason,
        }

    def settle_item(self) -> dict[str, Any]:
        """Write it as the server reads it."""
        return {"outcome": "failed", "error": message_of(self), "resources": [self._verdict]}


class Cool(Outcome):
    """The resource is to rest. The run failed, and is retried by its policy."""

    def __init__(self, resource: Resource, for_: Duration) -> None:
        rest = duration_text(for_)
        super().__init__(f"{resource.pool}/{resource.id} rests for {rest}")
        self._verdict = {"pool": resource.pool, "id": resource.id, "verdict": "cool", "for": rest}

    def settle_item(self) -> dict[str, Any]:
        """Write it as the server reads it."""
        return {"outcome": "failed", "error": message_of(self), "resources": [self._verdict]}


class PauseLimit(Outcome):
    """The limit is to grant nothing for a time, as a site asked that answered 429.

    The job snoozes for as long, which costs no attempt.
    """

    def __init__(self, limit: str, for_: Duration) -> None:
        self._limit, self._for = limit, duration_text(for_)
        super().__init__(f"{limit} is paused for {self._for}")

    def settle_item(self) -> dict[str, Any]:
        """Write it as the server reads it."""
        pause = {"limit": self._limit, "pause": self._for}
        return {"outcome": "snoozed", "for": self._for, "limits": [pause]}


class Stop(BaseException):
    """Raised inside a handler whose work must end now.

    It is no `Exception`, so that `except Exception` in a handler does not keep the work going.
    """

    #: Why, as the log says it.
    reason = "stopped"


class StopLost(Stop):
    """The lease is lost, or could not be extended in time: somebody else may be granted the job."""

    reason = "lost"


class StopCancelled(Stop):
    """Somebody asked for the job to be cancelled."""

    reason = "cancelled"


class StopTimedOut(Stop):
    """The deadline of the run is over."""

    reason = "timed_out"


class StopDraining(Stop):
    """The worker ends, and gives the job back."""

    reason = "draining"


STOPS: dict[str, type[Stop]] = {
    kind.reason: kind for kind in (StopLost, StopCancelled, StopTimedOut, StopDraining)
}
