"""The two ways in which people build reminders on Redis: what is wrong with them is on the page."""

from __future__ import annotations

import time
from typing import Callable

from .client import Redis

Send = Callable[[str], None]


# One: a key that expires is the timer. Needs `CONFIG SET notify-keyspace-events Ex`.


def remind_by_expiry(r: Redis, meeting: str, seconds: float) -> None:
    """Set the timer of a meeting."""
    r.set(f"remind:{meeting}", "1", nx=True, px=int(seconds * 1000))


def notify_by_expiry(r: Redis, send: Send) -> None:
    """Run in each of three notifiers."""
    for key in r.listen("__keyevent@*__:expired"):
        # All three hear of it; the first one sends.
        if r.incr(f"sent:{key}") == 1:
            send(key)


# Two: a sorted set by time that everybody polls. Score 0 says that somebody has it in hand.


def remind_by_score(r: Redis, meeting: str, seconds: float) -> None:
    """Set the timer of a meeting, or move it."""
    r.zadd("reminders", {meeting: time.time() + seconds})


def notify_by_score(r: Redis, send: Send) -> None:
    """Run in each of three notifiers, once a second."""
    for meeting in r.zrangebyscore("reminders", 1, time.time()):
        r.zadd("reminders", {meeting: 0})
        send(meeting)
        r.zrem("reminders", meeting)
