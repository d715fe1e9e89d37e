"""An app whose handlers' processes end before they are ready, while a file says so."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import tenure
from handlers import note

app = tenure.App()

_BROKEN = Path(os.environ["JOURNAL"] + ".broken")
if multiprocessing.parent_process() is not None and _BROKEN.exists():
    note("started")
    if _BROKEN.read_text() == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ImportError("no driver\nfor the database")


@app.job("work")
def process() -> int:
    return os.getpid()
