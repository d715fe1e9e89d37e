"""Durations and moments, as Python says them and as the server reads them.

A duration is a number of seconds, a ``timedelta`` or text such as ``"2h30m"``. A moment is a
``datetime`` with a time zone, or RFC 3339 text.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any, Optional, Union

Duration = Union[str, int, float, timedelta]
Moment = Union[str, datetime]

#: The units of a duration, largest first, in seconds.
UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_FORM = re.compile("".join(f"(?:([0-9]+){unit})?" for unit in UNITS))


def duration_text(value: Duration) -> str:
    """Write a duration as the server reads it. Numbers are seconds.

    >>> duration_text(90), duration_text(0.25), duration_text(timedelta(hours=2))
    ('90s', '250ms', '7200s')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        kind = type(value).__name__
        raise TypeError(f'a duration is seconds, a timedelta or text such as "5m", not {kind}')
    ms = round(value * 1000)
    if ms < 0:
        raise ValueError("a duration cannot be negative")
    return f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms}ms"


def seconds(value: Duration) -> float:
    """Read a duration as seconds.

    >>> seconds("1m30s"), seconds("250ms"), seconds(2)
    (90.0, 0.25, 2.0)
    """
    text = duration_text(value)
    form = _FORM.fullmatch(text)
    if not text or form is None:
        raise ValueError(f'"{text}" is no duration; write it as "500ms", "90s" or "2h30m"')
    return sum(int(number or 0) * size for number, size in zip(form.groups(), UNITS.values()))


def is_duration(value: object) -> bool:
    """Say whether a value is a duration, where a moment may stand too.

    >>> is_duration("2h30m"), is_duration(timedelta(days=1)), is_duration("2026-12-01T09:55:00Z")
    (True, True, False)
    """
    if isinstance(value, str):
        return bool(value) and _FORM.fullmatch(value) is not None
    return isinstance(value, (int, float, timedelta))


def moment_text(value: Moment) -> str:
    """Write a moment as the server reads it.

    >>> moment_text(datetime(2026, 12, 1, 9, 55, tzinfo=timezone.utc))
    '2026-12-01T09:55:00+00:00'
    """
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise ValueError(
            "a moment needs a time zone; use datetime(..., tzinfo=timezone.utc) "
            "or datetime.now(timezone.utc)"
        )
    return value.isoformat()


def read_moment(text: Any) -> Optional[datetime]:
    """Read a moment that the server wrote: in UTC, with six decimals.

    >>> read_moment("2026-12-01T09:55:00.000000Z")
    datetime.datetime(2026, 12, 1, 9, 55, tzinfo=datetime.timezone.utc)
    """
    if text is None:
        return None
    # Before Python 3.11 `fromisoformat` does not know the letter Z.
    return datetime.fromisoformat(str(text).replace("Z", "+00:00")).astimezone(timezone.utc)
