"""Handlers that the tests of workers run. They note what they do in a file that outlives them."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, TypedDict

import tenure
from killing import Killer
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
def follow(ctx: Context) -> str:
    ctx.spent("tokens", 1)
    return ctx.push(add.spec(a=40))


@app.job("work")
async def follow_later(ctx: Context) -> str:
    return ctx.push(add.options(after=[ctx.job]).spec(a=40))


@app.job("work")
def retry_in(ctx: Context) -> int:
    if ctx.attempt == 1:
        raise tenure.RetryIn("10ms", "http 503")
    return ctx.attempt


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


@app.job("work")
def snooze_until(moment: str, ctx: Context) -> int:
    if ctx.job.snoozed == 0:
        raise tenure.Snooze(until=moment)
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
def block(seconds: float, ctx: Context) -> str:
    """Block the thread outside of Python's sight."""
    note("begin", ctx.job.id, os.getpid(), ctx.fence)
    time.sleep(seconds)
    note("end", ctx.job.id, os.getpid(), ctx.fence)
    return "blocked"


@app.job("work")
async def block_loop(seconds: float, ctx: Context) -> str:
    """Block the event loop."""
    note("begin", ctx.job.id, os.getpid(), ctx.fence)
    time.sleep(seconds)
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


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Refusing:
    """A value that refuses to be written."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def model_dump(self, mode: str) -> Any:
        raise SystemExit("no dump")


class OddOutcome(tenure.outcomes.Outcome):
    """An outcome that cannot be read."""

    def settle_item(self) -> dict[str, Any]:
        raise RuntimeError("no item")


class NoOutcome(tenure.outcomes.Outcome):
    """An outcome that is none."""

    def settle_item(self) -> dict[str, Any]:
        return {"outcome": object()}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def endless() -> int:
    return endless() + 1


def in_an_odd_way(how: str, ctx: Context) -> Any:
    """End a run so that its outcome is hard to write."""
    half = "half \ud83d pair"
    ways: dict[str, Any] = {
        "half_pair": lambda: ValueError(half),
        "half_pair_final": lambda: tenure.Final(half),
        "mute": Mute,
        "mute_final": lambda: tenure.Final(Mute()),
        "mute_argument": lambda: KeyError(Refusing()),
        "odd_outcome": OddOutcome,
        "no_outcome": NoOutcome,
        "pause_half": lambda: tenure.PauseLimit(half, "1s"),
        "forged": lambda: ValueError("a\x1b[2J\r\n2026 INFO forged\x00\x9b\u2028\u202e"),
        "stop": tenure.Stop,
        "stop_draining": tenure.outcomes.StopDraining,
    }
    if how in ways:
        raise ways[how]()
    if how == "recursion":
        return endless()
    if how == "progress_half":
        ctx.progress(half)
    elif how.startswith("progress_deep"):
        ctx.progress(nested(int(how.rpartition("_")[2])))
    elif how == "next_in":
        ctx.next_in(Refusing())  # type: ignore[arg-type]
    elif how == "bad_limit":
        ctx.pause(half, "1s")
    results = {"half_pair_result": half, "dump": Refusing(), "cycle": ways}
    ways["cycle"] = ways
    if how.startswith("deep"):
        return nested(int(how.rpartition("_")[2]))
    return results.get(how)


@app.job("work")
def oddly(how: str, ctx: Context) -> Any:
    return in_an_odd_way(how, ctx)


@app.job("work")
async def oddly_later(how: str, ctx: Context) -> Any:
    return in_an_odd_way(how, ctx)


@app.job("work", needs=[pool("accounts")])
def ban_oddly(how: str, ctx: Context) -> None:
    if how == "beside":
        ctx.ban(ctx.resource, "half \ud83d pair")
    else:
        raise tenure.Ban(ctx.resource, "half \ud83d pair")


@app.job("work")
def report_one_value_again_and_again(ctx: Context) -> None:
    """Change what was reported while it is being sent."""
    seen: dict[str, int] = {}
    n = 0
    while not Path(os.environ["JOURNAL"] + ".go").exists():
        seen.clear()
        for key in range(n % 50):
            seen[f"page {key}"] = n
            ctx.progress(seen)
        n += 1


@app.job("work", retry={"max_attempts": 1})
def die_at(line: int, ctx: Context) -> int:
    """Kill the worker's own code at a line after the end of this, at the first run."""
    if f"first {ctx.job.id}\n" not in Path(os.environ["JOURNAL"]).read_text():
        note("first", ctx.job.id)
        Killer(line, lambda where: note("killed", line, where)).begin()
    return line


@app.job("work", retry={"max_attempts": 1})
async def die_at_later(line: int, ctx: Context) -> int:
    """Do the same in a coroutine."""
    await asyncio.sleep(0)
    return die_at(line, ctx)


@app.job("work")
def meet(count: int, ctx: Context) -> bool:
    """Wait until so many of these run at once."""
    note("met", ctx.job.id)
    journal = Path(os.environ["JOURNAL"])
    end = time.monotonic() + 20
    while journal.read_text().count("met ") < count and time.monotonic() < end:
        time.sleep(0.02)
    return time.monotonic() < end


@app.job("work")
async def meet_later(count: int, ctx: Context) -> bool:
    """Do the same in a coroutine."""
    note("met", ctx.job.id)
    journal = Path(os.environ["JOURNAL"])
    end = time.monotonic() + 20
    while journal.read_text().count("met ") < count and time.monotonic() < end:
        await asyncio.sleep(0.02)
    return time.monotonic() < end


@app.job("work")
def report_often(ctx: Context) -> None:
    """Report all the time until the test says so."""
    n = 0
    while not Path(os.environ["JOURNAL"] + ".go").exists():
        n += 1
        ctx.progress({"n": n})
        time.sleep(0.002)


def double(n: int) -> int:
    return 2 * n


@app.job("work")
def in_processes(how: str) -> list[int]:
    """Let processes of its own do the work."""
    if how == "pool":
        with multiprocessing.Pool(2) as processes:
            return processes.map(double, range(4))
    if how == "executor":
        with ProcessPoolExecutor(2) as executor:
            return list(executor.map(double, range(4)))
    with multiprocessing.Manager() as manager:
        return list(manager.list(map(double, range(4))))


def outlast() -> None:
    note("grandchild", os.getpid())
    wait_for_file()


@app.job("work", retry={"max_attempts": 1})
def start_another(ctx: Context) -> None:
    """Start a process, and wait for it without an end."""
    note("begin", ctx.job.id, os.getpid(), ctx.fence)
    process = multiprocessing.get_context("fork").Process(target=outlast)
    process.start()
    while True:
        with contextlib.suppress(BaseException):
            process.join()


@app.job("work")
def log_words(ctx: Context) -> str:
    logging.getLogger("shop").info("seen\tby %s", ctx.attempt)
    return ctx.job.id


@app.job("work")
async def log_words_later(ctx: Context) -> str:
    await asyncio.sleep(0)
    logging.getLogger("shop").info("seen later")
    return ctx.job.id
