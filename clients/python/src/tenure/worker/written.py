"""Outcomes as the server reads them: bytes, written once where a run ends.

What a handler returned, raised or said is looked at for the last time here. Nothing that comes
later (a value that another thread still changes, a deep stack) can keep an outcome from being sent,
and with it the outcomes of other runs in the same call.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from json.encoder import encode_basestring_ascii
from typing import Any, Optional

from .._text import bounded, describe, one_line
from ..context import Context
from ..payloads import encode
from ..tasks import final


@dataclass(frozen=True)
class Written:
    """One outcome."""

    outcome: str
    #: For the log.
    error: Optional[str] = field(default=None, repr=False)
    #: The item's other fields beside its outcome, as JSON without the braces.
    rest: bytes = field(default=b"", repr=False)
    #: The exception of the handler, for handlers of the log; None if it ran in another process.
    raised: Optional[BaseException] = field(default=None, repr=False, compare=False)

    def with_progress(self, progress: Optional[bytes]) -> Written:
        """Add a report that is JSON already."""
        if progress is None:
            return self
        return replace(self, rest=self.rest + b',"progress":' + progress)

    def item(self, lease: str) -> bytes:
        """Write the item of a settle call."""
        return b'{"lease":%b,"outcome":"%b"%b}' % (
            encode_basestring_ascii(lease).encode(),
            self.outcome.encode(),
            self.rest,
        )


RELEASED = Written("released")
_OUTCOMES = {"succeeded", "failed", "snoozed", "released"}
_OF_NOTHING = {outcome: Written(outcome) for outcome in _OUTCOMES}


def write(
    item: dict[str, Any],
    context: Optional[Context] = None,
    raised: Optional[BaseException] = None,
) -> Written:
    """Write an outcome, with what was said beside it; one that cannot be written is a failure."""
    try:
        if context is None:
            return _write(item)
        written = _write(context._complete(item))
        return written if raised is None else replace(written, raised=raised)
    except BaseException as why:
        return not_written(why)


def not_written(why: BaseException) -> Written:
    """Write that a run has ended, and that its outcome is lost for a reason."""
    return failure(f"its outcome cannot be written: {describe(why)}")


def failure(error: str) -> Written:
    """Write a failed run that is retried by its policy."""
    item = final(error)
    del item["final"]
    return _write(item)


def _write(item: dict[str, Any]) -> Written:
    said = dict(item)
    outcome = said.pop("outcome")
    if outcome not in _OUTCOMES:
        raise ValueError(f"there is no outcome {one_line(repr(outcome)[:80])}")
    if not said:
        # Most runs: handlers that return nothing.
        return _OF_NOTHING[outcome]
    error = said.get("error")
    if error is not None:
        said["error"] = error = bounded(str(error))
    rest = encode(said)[1:-1]
    return Written(outcome, error, rest and b"," + rest)
