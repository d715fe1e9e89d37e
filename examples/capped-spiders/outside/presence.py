"""Tells the witness when a process that crawls began and ended. Only the example needs this.

The connection stays open for as long as the process lives. If it is killed, the kernel closes it.
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
    """Return the time since the start of this machine: one clock for all its processes."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _born() -> float:
    """Return when this process was started, which is before Scrapy was imported.

    The system counts in ticks of 10 ms. The end of the tick is told: the beginning may be before
    the moment at which the run allowed the start.
    """
    try:
        with open("/proc/self/stat", encoding="ascii") as stat:
            ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
    except OSError:
        # Not Linux. Other systems do not say it without a package.
        return now()
    return (ticks + 1) / os.sysconf("SC_CLK_TCK")


def enter() -> None:
    """Tell that this process is there. One that only lists the spiders does not count."""
    global _wire
    if "WITNESS" not in os.environ or "crawl" not in sys.argv or _wire is not None:
        return
    host, port = os.environ["WITNESS"].rsplit(":", 1)
    _wire = socket.create_connection((host, int(port)))
    # scrapyd gives the job's id as an argument of the spider, `tenure work` in the environment.
    given = [word[len("_job=") :] for word in sys.argv if word.startswith("_job=")]
    job = given[0] if given else os.environ.get("TENURE_JOB_ID", f"crawler-{os.getpid()}")
    _say(job=job, pid=os.getpid(), born=_born())
    # Registered before everything else, so it is the last thing that this process does.
    atexit.register(lambda: _say(gone=now()))


def _say(**what: object) -> None:
    assert _wire is not None
    _wire.sendall(json.dumps(what).encode() + b"\n")
