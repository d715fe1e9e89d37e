#!/usr/bin/env python3
"""Shows which rules fall behind, and why, as Tenure knows it.

    TENURE_URL=http://127.0.0.1:7171 ./behind.py news forum

It needs nothing but the standard library.
"""

import json
import os
import sys
import time
import urllib.request
from datetime import datetime
from urllib.parse import quote

TENURE = os.environ.get("TENURE_URL", "http://127.0.0.1:7171")
HEADERS = {}
if os.environ.get("TENURE_TOKEN"):
    HEADERS["Authorization"] = f"Bearer {os.environ['TENURE_TOKEN']}"


def get(path):
    """The answer to one GET."""
    request = urllib.request.Request(f"{TENURE}/v1/{path}", headers=HEADERS)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def seconds_since(moment):
    """How long ago a moment was; 0 if there is none."""
    if not moment:
        return 0.0
    return time.time() - datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()


def main(rules):
    """Prints a line for each rule, and the reasons where moments were skipped."""
    print("rule      visited  waiting  the oldest waits  moments skipped")
    for rule in rules:
        queue = get(f"queues/{quote(rule)}")
        running, ready = queue["counts"]["running"], queue["counts"]["ready"]
        oldest = seconds_since(queue["oldest_ready_at"])
        print(f"{rule:<8} {running:>8} {ready:>8} {oldest:>15.1f} s {queue['skipped']:>16}")
        # A moment is skipped if its source still waits for the visit of the moment before.
        newest = get(f"jobs?queue={quote(rule)}&state=ready&max=1")["items"]
        if queue["skipped"] and newest:
            job = newest[0]
            for reason in get(f"jobs/{quote(job['id'])}/explain")["reasons"]:
                print(f"         {job['schedule']['id']} waits: {reason['detail']}")
    schedules = get("stats")["schedules"]
    print(f"{schedules['count']} schedules, {schedules['due']} with a moment still to be decided")


if __name__ == "__main__":
    main(sys.argv[1:])
