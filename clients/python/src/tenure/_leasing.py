"""Lease calls: waiting for needs in slices, and reading what was granted."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional

from ._calls import check
from ._version import VERSION
from ._wire import Plan, given, left, new_id, now, request
from .durations import duration_text
from .errors import NotGranted
from .needs import AnyNeed, describe, needs_json
from .records import LeaseRecord, Reason

#: A slice of a wait is at most this part of the ttl: what comes out of it is fresh.
SLICE = 1 / 6
_LONGEST_SLICE_S = 30.0

#: As the ids that a server makes: digits and letters without i, l, o and u.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
#: Digits at the end of a worker's id: 60 bits, beside the host and the pid.
_RANDOM_DIGITS = 12
_HOST_LENGTH = 64
_OF_A_PROCESS = re.compile(rf"(.*:[0-9]+):[{_ALPHABET}]{{{_RANDOM_DIGITS}}}", re.DOTALL)


def worker_id() -> str:
    """Make the id of a worker: `HOST:PID:RANDOM`, as all clients of Tenure do.

    Lists of holders show it, so it begins with what people know a process by. It ends at random, so
    that it is never used again.
    """
    host = re.sub(r"[^A-Za-z0-9._-]", "", socket.gethostname())[:_HOST_LENGTH] or "worker"
    digits = "".join(_ALPHABET[byte % 32] for byte in os.urandom(_RANDOM_DIGITS))
    return f"{host}:{os.getpid()}:{digits}"


def holder_shown(holder: str) -> str:
    """Return what people know a holder by: host and pid, or the name that it was given.

    >>> holder_shown("web-1:4711:k3v9q0c2m8xt"), holder_shown("nightly")
    ('web-1:4711', 'nightly')
    """
    found = _OF_A_PROCESS.fullmatch(holder)
    return found[1] if found else holder


def worker_fields(id: Optional[str] = None) -> dict[str, Any]:
    """Say which process asks."""
    return {
        "id": id or worker_id(),
        "host": socket.gethostname()[:128],
        "pid": os.getpid(),
        "version": f"python-{VERSION}",
    }


def slice_of(ttl: float) -> float:
    """Return how long one call may wait."""
    return min(ttl * SLICE, _LONGEST_SLICE_S)


@dataclass
class Granted:
    """A lease without a job, and when its call was first sent."""

    lease: LeaseRecord
    sent: float
    ttl: float


def acquire_plan(
    needs: Iterable[AnyNeed],
    until: Optional[float],
    wait: Optional[float],
    ttl: float,
    worker: dict[str, Any],
    asking: dict[str, Any],
) -> Plan[Granted]:
    """Wait for needs until a moment; raise `NotGranted` then, which names the whole wait.

    `asking` is the body of the call that is under way, for `withdraw_plan`.
    """
    asked = needs_json(needs)
    place: Optional[str] = None
    while True:
        slice_s = slice_of(ttl) if until is None else min(left(until), slice_of(ttl))
        id = new_id("request")
        body = {
            "needs": asked,
            "wait": duration_text(slice_s),
            "ttl": duration_text(ttl),
            "worker": worker,
            "request_id": id,
            **given(place=place),
        }
        asking.update(body)
        response = yield request("POST", "leases", body=body, wait=slice_s, lasts=left(until))
        answer = check(response)
        if answer["leases"]:
            return Granted(LeaseRecord.read(answer["leases"][0]), response.first_sent, ttl)
        # All slices of one wait stand at the place of the first.
        place = place or id
        if until is not None and now() >= until:
            reasons = [Reason.read(raw) for raw in answer.get("reasons") or ()]
            raise NotGranted(
                f"could not get {describe(asked)} within {duration_text(wait or 0)}"
                + "".join(_because(reason) for reason in reasons[:3]),
                hint="wait for longer, or look at who holds it",
            )


def withdraw_plan(asking: dict[str, Any], retry_for: float) -> Plan[list[str]]:
    """End a call that nobody waits for any more; return the leases that it was granted.

    To break its connection is not enough: its answer may have been under way. The same request id
    again leaves the line, or gets the lease that the first sending was granted.
    """
    body = {**asking, "wait": "0s"}
    answer = check((yield request("POST", "leases", body=body, retry_for=retry_for)))
    return [str(raw["lease"]) for raw in answer["leases"]]


def _because(reason: Reason) -> str:
    named = [each.get("holder") for each in reason.holders[:3]]
    holders = [holder_shown(str(holder)) for holder in named if holder]
    if holders:
        return f"; held by {', '.join(holders)}"
    return f"; {reason.detail}" if reason.detail else ""
