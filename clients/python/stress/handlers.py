"""The handlers of the stress. They write down what they do, piece by piece."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import tenure

from .journal import FOLDER, Journal, moment
from .plan import POOL, QUEUE

#: A piece of work takes this long.
_PIECE_S = 0.01

app = tenure.App()
#: The same as coroutines.
coroutines = tenure.App()

_who = f"{os.getpid()}-{moment()}"
_journal = Journal(Path(os.environ[FOLDER]), f"run-{_who}")


class _Record:
    """The lines of one run."""

    def __init__(self, ctx: tenure.Context, limits: list[str]) -> None:
        self._fence = ctx.fence
        self._outcome = "stopped"
        accounts = [each.id for each in ctx.resources if each.pool == POOL]
        _journal.note(
            "B", moment(), _who, ctx.fence, ctx.job.id, ",".join(limits), ",".join(accounts)
        )

    def piece(self) -> None:
        """Do a piece of the work: it is the line."""
        _journal.note("T", moment(), self._fence)

    def finish(self, way: str, attempt: int) -> None:
        """Come to the outcome that the plan wants."""
        if way == "snoozes" and random.random() < 0.5:
            self._outcome = "snoozed"
            raise tenure.Snooze("200ms")
        if way in ("retries", "fails") and attempt == 1:
            self._outcome = "tried"
            raise ValueError("as planned")
        if way == "fails":
            self._outcome = "failed"
            raise tenure.Final("as planned")
        self._outcome = "succeeded"

    def end(self) -> None:
        """Write how it ended; `stopped` if the plan did not come to its end."""
        _journal.note("E", moment(), self._fence, self._outcome)


@app.job(QUEUE)
def work(ctx: tenure.Context, way: str, takes_ms: int, limits: list[str]) -> None:
    """Work in pieces."""
    record = _Record(ctx, limits)
    try:
        until = time.monotonic() + takes_ms / 1000
        while time.monotonic() < until:
            time.sleep(_PIECE_S)
            record.piece()
        record.finish(way, ctx.attempt)
    finally:
        record.end()


@coroutines.job(QUEUE, kind="work")
async def work_async(ctx: tenure.Context, way: str, takes_ms: int, limits: list[str]) -> None:
    """Work in pieces, on an event loop."""
    record = _Record(ctx, limits)
    try:
        until = time.monotonic() + takes_ms / 1000
        while time.monotonic() < until:
            await asyncio.sleep(_PIECE_S)
            record.piece()
        record.finish(way, ctx.attempt)
    finally:
        record.end()
