"""Tells the witness when a process that crawls began and when it ended. Only the example needs this.

The connection stays open for as long as the process lives. If the process is killed, the kernel closes it.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import sys
import time
from typing import Optional

_wire: Optional[socket.socket] = None


def now() -> float:
    """The time since this machine was started, which is the same clock in all its processes."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _born() -> float:
    """When this process was started, which is before Scrapy was imported."""
    try:
        with open("/proc/self/stat", encoding="ascii") as stat:
            ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
    except OSError:
        # Not Linux. Other systems do not say it without a package.
        return now()
    return ticks / os.sysconf("SC_CLK_TCK")


def enter() -> None:
    """Tell that this process is there. A process that only lists the spiders of the project does not count."""
    global _wire
    if "WITNESS" not in os.environ or "crawl" not in sys.argv or _wire is not None:
        return
    host, port = os.environ["WITNESS"].rsplit(":", 1)
    _wire = socket.create_connection((host, int(port)))
    # scrapyd gives the id of the job as an argument of the spider, `tenure work` in the environment.
    given = [word[len("_job=") :] for word in sys.argv if word.startswith("_job=")]
    job = given[0] if given else os.environ.get("TENURE_JOB_ID", f"crawler-{os.getpid()}")
    _say(job=job, pid=os.getpid(), born=_born())
    atexit.register(lambda: _say(gone=now()))


def _say(**what: object) -> None:
    assert _wire is not None
    _wire.sendall(json.dumps(what).encode() + b"\n")
