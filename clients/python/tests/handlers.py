"""Handlers that the tests of workers run. They note what they do in a file that outlives them."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, TypedDict

import tenure
from tenure import Context, pool

app = tenure.App()
without_handlers = tenure.App()


def note(*words: object) -> None:
    """Add a line to the journal, whole or not at all."""
    line = " ".join(str(word) for word in words) + "\n"
    with open(os.environ["JOURNAL"], "ab", buffering=0) as journal:
        journal.write(line.encode())


@dataclass
class Mail:
    to: str
    copies: int = 1


class Page(TypedDict):
    url: str


@app.job("work")
def add(a: int, b: int = 2) -> int:
    return a + b


@app.job(
    "work", kind="mail", retry={"max_attempts": 3, "backoff": {"kind": "fixed", "base": "100ms"}}
)
def send(mail: Mail) -> str:
    """Send it."""
    return f"{mail.copies} to {mail.to}"


@app.job("work")
def fetch(ctx: Context, page: Page) -> dict[str, Any]:
    return {"url": page["url"], "attempt": ctx.attempt, "fence": ctx.fence}


@app.job("work")
def visit(ctx: Context) -> None:
    ctx.next_in("6h")


@app.job("work")
async def later(ctx: Context, word: str) -> str:
    await asyncio.sleep(0)
    return f"{word} {ctx.job.id}"


@app.job("work")
def anything(payload: dict[str, Any]) -> int:
    return len(payload)


@app.job("work")
def fail(times: int, ctx: Context) -> str:
    if ctx.attempt <= times:
        raise ValueError(f"attempt {ctx.attempt}")
    return "at last"


@app.job("work")
def final() -> None:
    raise tenure.Final("no such page")


@app.job("work")
def snooze(ctx: Context) -> int:
    note("snooze", ctx.attempt)
    if len(Path(os.environ["JOURNAL"]).read_text().splitlines()) < 2:
        raise tenure.Snooze("100ms")
    return ctx.attempt


@app.job("work", needs=[pool("accounts")])
def judge(verdict: str, ctx: Context) -> str:
    if verdict == "ban":
        raise tenure.Ban(ctx.resource, "captcha")
    if verdict == "cool":
        raise tenure.Cool(ctx.resource, "1h")
    if verdict == "quiet":
        ctx.ban(ctx.resource, "old")
    return str(ctx.resource.data["password"])


@app.job("work")
def too_many(site: str) -> None:
    raise tenure.PauseLimit(site, "1h")


@app.job("work")
def unstorable(how: str) -> Any:
    return object() if how == "object" else "x" * 300_000


@app.job("work")
def report(ctx: Context) -> Any:
    before = ctx.job.last_progress
    ctx.progress({"page": 7})
    note("reported")
    wait_for_file(ctx)
    return before


@app.job("work")
def report_last(ctx: Context) -> None:
    ctx.progress({"page": 8})


@app.job("work")
def large() -> str:
    return "x" * 250_000


@app.job("work")
def parents(ctx: Context) -> list[Any]:
    return [parent.result for parent in ctx.parents()]


def wait_for_file(ctx: Optional[Context] = None) -> None:
    """Go on when the test says so."""
    while not Path(os.environ["JOURNAL"] + ".go").exists():
        time.sleep(0.01)


@app.job("work")
def block(ctx: Context) -> str:
    """Block the thread outside of Python's sight until the test says so."""
    note("begin", ctx.job.id, os.getpid(), ctx.fence)
    end = time.monotonic() + 5.0
    time.sleep(5.0)
    note("end", ctx.job.id, os.getpid(), ctx.fence)
    return f"blocked {time.monotonic() - end >= 0}"


@app.job("work")
async def block_loop(ctx: Context) -> str:
    """Block the event loop."""
    note("begin", ctx.job.id, os.getpid(), ctx.fence)
    time.sleep(5.0)
    note("end", ctx.job.id, os.getpid(), ctx.fence)
    return "blocked"


@app.job("work")
def hold_gil(seconds: int, ctx: Context) -> int:
    """Block all threads of the process, as a C extension does that keeps the interpreter's lock."""
    note("begin", ctx.job.id, os.getpid(), ctx.fence)
    if ctx.job.lost == 0:
        ctypes.PyDLL(None).sleep(seconds)
    note("end", ctx.job.id, os.getpid(), ctx.fence)
    return ctx.fence


@app.job("work")
def run_on(ctx: Context) -> str:
    """Run until the test says so, or until it is stopped."""
    note("begin", ctx.job.id, os.getpid(), ctx.fence)
    try:
        wait_for_file()
    except tenure.Stop as stop:
        note("stopped", stop.reason, ctx.fence)
        raise
    except Exception:
        note("swallowed", ctx.fence)
    note("end", ctx.job.id, os.getpid(), ctx.fence)
    return "ended"


@app.job("work")
async def run_on_async(ctx: Context) -> str:
    """Run until the test says so, or until it is stopped."""
    note("begin", ctx.job.id, os.getpid(), ctx.fence)
    try:
        while not Path(os.environ["JOURNAL"] + ".go").exists():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        note("stopped", "cancelled", ctx.fence)
        raise
    note("end", ctx.job.id, os.getpid(), ctx.fence)
    return "ended"


@app.job("work", timeout="1s")
def overtime(ctx: Context) -> None:
    note("begin", ctx.job.id, os.getpid(), ctx.fence)
    try:
        wait_for_file()
    except tenure.Stop as stop:
        note("stopped", stop.reason, ctx.fence)
        raise


@app.job("work")
def die(ctx: Context) -> str:
    if ctx.attempt + ctx.job.lost == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


@app.job("work")
def leave() -> None:
    sys.exit("bye")


@app.job("work")
async def leave_later() -> None:
    sys.exit("bye")


@app.job("work")
def refuse_to_stop(ctx: Context) -> None:
    note("begin", ctx.job.id, os.getpid(), ctx.fence)
    while True:
        try:
            time.sleep(0.02)
        except BaseException:
            continue


@app.job("other")
def elsewhere() -> None: ...


class Noting(tenure.Middleware):
    @contextlib.contextmanager
    def run(self, context: Context) -> Iterator[None]:
        note("layer", "begins", context.job.id)
        yield
        note("layer", "ends", context.job.id)


layered = tenure.App()
layered.middleware(Noting())


@layered.job("surrounded")
def surrounded() -> str:
    return tenure.current().job.id
