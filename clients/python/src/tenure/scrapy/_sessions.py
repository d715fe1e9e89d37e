"""Leases that outlive a request: of the whole spider, or of one cookie jar."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable
from typing import Any, Callable

from ..guards import AsyncGuard, AsyncLease

Enter = Callable[[list[dict[str, Any]]], Awaitable[tuple[AsyncGuard, AsyncLease]]]
Leave = Callable[[AsyncGuard], Awaitable[None]]


class Session:
    """A lease that several requests use, one after another or at once."""

    def __init__(self, key: str, guard: AsyncGuard, lease: AsyncLease) -> None:
        self.key = key
        self.guard = guard
        self.lease = lease
        #: Requests that are under way with it.
        self.users = 0
        #: Nobody takes it any more; it is given back when its last request is through.
        self.retired = False


class Sessions:
    """The sessions of a crawler. Each begins with the first request that needs it."""

    def __init__(self, enter: Enter, leave: Leave) -> None:
        self._enter = enter
        self._leave = leave
        self._tasks: dict[str, asyncio.Task[Session]] = {}

    async def take(self, jar: object, needs: list[dict[str, Any]]) -> Session:
        """Use the session of a cookie jar, and wait for its lease if there is none yet."""
        # Other needs are another session: a request may ask for more than its jar has.
        key = json.dumps([repr(jar), needs], sort_keys=True)
        while True:
            task = self._tasks.get(key)
            if task is None:
                task = asyncio.ensure_future(self._begin(key, needs))
                self._tasks[key] = task
            try:
                # One request that is cancelled must not end the wait of the others.
                session = await asyncio.shield(task)
            except BaseException:
                if task.done() and self._tasks.get(key) is task:
                    del self._tasks[key]
                raise
            if session.lease.lost.is_set() and not session.retired:
                self.retire(session)
                if session.users == 0:
                    await self._leave(session.guard)
            if not session.retired:
                session.users += 1
                return session

    async def _begin(self, key: str, needs: list[dict[str, Any]]) -> Session:
        guard, lease = await self._enter(needs)
        return Session(key, guard, lease)

    def retire(self, session: Session) -> None:
        """Let no further request use a session; the next one gets another lease."""
        if not session.retired:
            # While it is not retired, the task under its key is its own.
            session.retired = True
            del self._tasks[session.key]

    async def done(self, session: Session) -> None:
        """Note that a request is through with it."""
        session.users -= 1
        if session.retired and session.users == 0:
            await self._leave(session.guard)

    async def close(self) -> None:
        """Give all sessions back. Waits for leases have been ended before."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            with contextlib.suppress(Exception, asyncio.CancelledError):
                session = await task
                await self._leave(session.guard)
