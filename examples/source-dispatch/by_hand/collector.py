#!/usr/bin/env python3
"""The hand-made dispatcher, to show how it fails. Do not copy it.

    ./collector.py --name collector-1 --lock 300 sources.db

The table has two more columns: `next_at`, and `locked_until` as the task lock. In Redis the same
lock is `SET task:ID 1 NX EX 300`, and `DEL` at the end; a column needs nothing installed.
"""

import argparse
import http.client
import queue
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

DUE = """
    SELECT id, every, url FROM sources
    WHERE next_at <= :now AND locked_until <= :now ORDER BY next_at LIMIT :most
"""


def take(table, lock, most):
    """Locks and answers due sources that nobody has locked."""
    at = time.time()
    with table:
        table.execute("BEGIN IMMEDIATE")
        due = table.execute(DUE, {"now": at, "most": most}).fetchall()
        lock_it = "UPDATE sources SET locked_until = ? WHERE id = ?"
        table.executemany(lock_it, [(at + lock, source) for source, _, _ in due])
    return due


def report(table, source, every, changed):
    """Sets the next moment and unlocks the source, whoever has locked it by now."""
    next_at = time.time() + (max(1, every // 2) if changed else every * 3 // 2)
    unlock = "UPDATE sources SET next_at = ?, locked_until = 0 WHERE id = ?"
    with table:
        table.execute(unlock, (next_at, source))


def visit(name, source, every, url, over):
    """Asks the site."""
    at = urlsplit(url)
    site = http.client.HTTPConnection(at.netloc, timeout=30)
    try:
        site.request("GET", at.path, headers={"User-Agent": name})
        over.put((source, every, site.getresponse().status == 200))
    except (OSError, http.client.HTTPException):
        over.put((source, every, False))
    finally:
        site.close()


def main():
    """Reports and takes, in turn, until it is killed."""
    options = argparse.ArgumentParser()
    options.add_argument("table")
    options.add_argument("--name", required=True)
    options.add_argument("--lock", type=float, required=True, help="seconds until a lock expires")
    options.add_argument("--tasks", type=int, default=40)
    args = options.parse_args()
    table = sqlite3.connect(args.table, timeout=60, isolation_level=None)
    threads, over, held = ThreadPoolExecutor(args.tasks), queue.Queue(), 0
    while True:
        while not over.empty():
            report(table, *over.get())
            held -= 1
        for row in take(table, args.lock, args.tasks - held):
            threads.submit(visit, args.name, *row, over)
            held += 1
        time.sleep(0.05)


if __name__ == "__main__":
    main()
