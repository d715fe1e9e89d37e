"""An app whose handlers need what its hooks open."""

from __future__ import annotations

import asyncio
import os
from typing import Optional

import tenure
from handlers import note

app = tenure.App()
opened: list[str] = []
loop: Optional[asyncio.AbstractEventLoop] = None


@app.on_start
def open_first() -> None:
    note("opened", "first", os.getpid())
    if os.environ.get("HOOK_FAILS"):
        raise ConnectionError("no\ndatabase")
    opened.append("first")


@app.on_start
async def open_second() -> None:
    global loop
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    opened.append("second")


@app.on_stop
async def close_first() -> None:
    note("closed", "first", os.getpid(), asyncio.get_running_loop() is loop)


@app.on_stop
def close_second() -> None:
    note("closed", "second", os.getpid())
    raise ValueError("half\nclosed")


@app.job("hooked")
async def look() -> list[str]:
    return [*opened, str(asyncio.get_running_loop() is loop)]
