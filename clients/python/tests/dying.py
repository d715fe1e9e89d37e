"""An app whose worker once loses, between a grant and its handler, what was to run it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Callable

import tenure.worker.child
import tenure.worker.threads
from handlers import note
from killing import Killed
from tenure import App

app = App()


@app.job("work")
def add(a: int, b: int = 2) -> int:
    return a + b


@app.job("work")
async def add_later(a: int, b: int = 2) -> int:
    return a + b


@app.on_start
def tell() -> None:
    note("ready")


def once(real: Callable[..., Any], end: Callable[[], object]) -> Callable[..., Any]:
    """Come to an end instead, the first time that any process calls it."""

    def called(*arguments: Any, **options: Any) -> Any:
        if "died" not in Path(os.environ["JOURNAL"]).read_text():
            note("died")
            end()
        return real(*arguments, **options)

    return called


def fail() -> None:
    raise Killed("before the handler")


threads: Any = tenure.worker.threads
child: Any = tenure.worker.child
threads.perform = once(threads.perform, fail)
child.perform = once(child.perform, lambda: os._exit(9))
asyncio.BaseEventLoop.create_task = once(asyncio.BaseEventLoop.create_task, fail)  # type: ignore[method-assign]
