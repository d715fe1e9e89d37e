"""Requests and answers without any I/O: what is sent, and what came back.

A *plan* is a generator that yields requests, is sent their answers, and returns what its caller
asked for. Plans are written once; a blocking and an asyncio transport drive them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional, TypeVar, Union
from urllib.parse import urlencode

from ._settings import path_part
from .errors import TooLarge
from .payloads import encode

T = TypeVar("T")

#: The bound of the server for a body that is no NDJSON.
_BODY_BYTES = 8 * 1024 * 1024
#: The header of an answer that names the owner of the store, if another server passed the call on.
OWNER = "Tenure-Owner"


def now() -> float:
    """Seconds on a clock that nobody sets, for measuring how long something took.

    It goes on while the machine sleeps, where the system has such a clock: a lease does too.
    """
    return _clock()


def _boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


_clock = _boot_time if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic


def new_id(prefix: str) -> str:
    """Make an id that sorts by time and that nobody else makes."""
    return f"{prefix}_{int(time.time() * 1000):011x}{os.urandom(8).hex()}"


@dataclass(frozen=True)
class Request:
    """One call, whole: sending it again means the same call."""

    method: str
    path: str
    #: May hold payloads and secrets of resources, so it is not shown.
    body: Optional[bytes] = field(default=None, repr=False)
    #: Seconds that the server may take before it answers, beyond its ordinary work.
    wait: float = 0.0
    #: False for a call that would do more if it were done twice: it is repeated only if it
    #: cannot have reached the server.
    repeatable: bool = True
    content_type: str = "application/json"
    minimal: bool = False
    #: How the driver waits out an outage, in seconds; None: as the client was told.
    retry_for: Optional[float] = None
    #: At least this long, in seconds: the rest of the time that its caller waits anyway.
    lasts: float = 0.0
    #: The same call without its wait, which it is repeated as: that the server is back is known at
    #: once, and the caller knows how long is left. None: it is repeated as it is.
    at_once: Optional[Request] = field(default=None, repr=False)

    def headers(self) -> dict[str, str]:
        """What this request carries beside the settings' headers."""
        headers = {}
        if self.body is not None:
            headers["Content-Type"] = self.content_type
        if self.minimal:
            headers["Prefer"] = "return=minimal"
        return headers


@dataclass(frozen=True)
class Response:
    """One answer, and what is known about its sending."""

    status: int
    data: Any = field(repr=False)
    retry_after: Optional[float] = None
    #: When the request was sent for the first time, and when the sending that was answered began.
    first_sent: float = 0.0
    sent: float = 0.0
    #: True if an earlier sending may have been carried out, although its answer was lost.
    repeated: bool = False


Plan = Generator[Request, Response, T]
#: A list, in classes that have a method of that name.
Many = list[T]
#: Yields requests, and lists of items to hand on.
Stream = Generator[Union[Request, "list[T]"], Any, None]


def request(
    method: str,
    *parts: str,
    query: Optional[Mapping[str, Any]] = None,
    body: Any = None,
    written: Optional[bytes] = None,
    wait: float = 0.0,
    repeatable: bool = True,
    minimal: bool = False,
    retry_for: Optional[float] = None,
    lasts: float = 0.0,
) -> Request:
    """Make a request to `/v1/PART/PART…`. Absent values of the query and the body are left out.

    `written` is a body that is JSON already.
    """
    path = "/v1/" + "/".join(path_part(part) for part in parts)
    asked = {name: _query_text(value) for name, value in (query or {}).items() if value is not None}
    if asked:
        path += "?" + urlencode(asked)
    if body is not None:
        written = encode(body)
    if written is not None and len(written) > _BODY_BYTES:
        # The server would close the connection in the middle of it, which looks like an outage.
        raise TooLarge(
            f"the body has {len(written)} bytes as JSON; at most {_BODY_BYTES} go in one call",
            hint="send less at once; push_many cuts any number of jobs into portions",
        )
    at_once = None
    if method == "GET" and wait and lasts:
        without = {**(query or {}), "wait": "0s"}
        at_once = request(method, *parts, query=without, retry_for=retry_for, lasts=lasts)
    return Request(
        method,
        path,
        written,
        wait=wait,
        repeatable=repeatable,
        minimal=minimal,
        retry_for=retry_for,
        lasts=lasts,
        at_once=at_once,
    )


def left(until: Optional[float]) -> float:
    """Return the seconds that are left of a wait, 0 if it has no end."""
    return 0.0 if until is None else max(0.0, until - now())


def given(**fields: Any) -> dict[str, Any]:
    """Keep the fields that were given, as a body."""
    return {name: value for name, value in fields.items() if value is not None}


def _query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(item) for item in value)
    return str(value)


def read_body(status: int, body: bytes) -> Any:
    """Read the JSON of an answer. Anything else comes from a program that is no Tenure server."""
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        return {"code": "unexpected_answer"} if status >= 400 else _NOT_JSON


#: Stands for a body that was expected to be JSON and is not.
_NOT_JSON = object()


def is_json(data: Any) -> bool:
    """Say whether `read_body` could read it."""
    return data is not _NOT_JSON


def read_retry_after(text: Optional[str]) -> Optional[float]:
    """Read `Retry-After` in seconds. The server never sends a date."""
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None
