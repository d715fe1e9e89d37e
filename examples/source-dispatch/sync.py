#!/usr/bin/env python3
"""Makes Tenure's schedules what the table of sources is: one schedule for each row.

    TENURE_URL=http://127.0.0.1:7171 ./sync.py sources.db

Run it as often as you like, also on two machines at once: rows that did not change are not
written. It needs nothing but the standard library.
"""

import json
import os
import sqlite3
import sys
import time
import urllib.error
import urllib.request

TENURE = os.environ.get("TENURE_URL", "http://127.0.0.1:7171")


def schedule(source: str, rule: str, every: int, url: str) -> dict[str, object]:
    """One row. A rule is a queue; the payload is all that a collector sees of the row."""
    return {
        "id": source,
        "every": f"{every}s",
        "job": {
            "queue": rule,
            "payload": {"source": source, "url": url, "every": every},
            # That a collector died says nothing about the source that it was visiting: after
            # three deaths in a row a job would otherwise be given up as poison.
            "retry": {"max_lost": 0},
        },
    }


def main(path):
    """Sends the whole table."""
    # The moment before the query: if an older sync arrives after a newer one, it is refused.
    version = time.time_ns() // 1_000_000
    with sqlite3.connect(path) as table:
        rows = table.execute("SELECT id, rule, every, url FROM sources").fetchall()
    lines = "\n".join(json.dumps(schedule(*row)) for row in rows)
    headers = {"Content-Type": "application/x-ndjson"}
    if os.environ.get("TENURE_TOKEN"):
        headers["Authorization"] = f"Bearer {os.environ['TENURE_TOKEN']}"
    url = f"{TENURE}/v1/schedules?owner=sources&version={version}"
    request = urllib.request.Request(url, lines.encode(), headers, method="PUT")
    while True:
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                print(json.dumps(json.load(answer)))
                return
        except urllib.error.HTTPError as error:
            problem = json.load(error)
            why = f"{problem['code']}: {problem['detail']}"
            if error.code != 503:
                sys.exit(f"{why}; nothing has changed")
        except OSError as error:
            why = str(error)
        # Perhaps it was applied and perhaps not. The same set again is right in both cases.
        print(f"again, since there was no answer: {why}", flush=True)
        time.sleep(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
