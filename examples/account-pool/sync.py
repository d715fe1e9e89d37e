"""A master: keeps the pool like the table of accounts. Run two, so that one may be down."""

import argparse
import os
import sqlite3
import time

import psycopg
from tenure import Tenure, errors

#: One statement, so that the rows and their version are of the same moment.
ROWS = """
SELECT v.version, a.id, a.token, a.tags
FROM accounts_version AS v LEFT JOIN accounts AS a ON a.enabled
ORDER BY a.id
"""


def connect(url: str):
    """Open the database: sqlite:FILE, or an address of PostgreSQL."""
    if url.startswith("sqlite:"):
        return sqlite3.connect(url[len("sqlite:") :], isolation_level=None)
    return psycopg.connect(url, autocommit=True)


def read(database) -> tuple[int, list[dict]]:
    """Read the version of the table, and its accounts."""
    rows = database.execute(ROWS).fetchall()
    accounts = [{"id": row[1], "token": row[2], "tags": row[3]} for row in rows if row[1]]
    return rows[0][0], accounts


def apply(t: Tenure, version: int, accounts: list[dict]) -> str:
    """Make the pool like the table was at that version; return what changed, or why nothing did."""
    try:
        done = t.pools.sync("accounts", accounts, tags="tags", version=version)
    except errors.StaleSync:
        return f"stale_sync: the pool is newer than version {version}, and stays as it is"
    except (errors.EmptySet, errors.RetiresMost) as refused:
        # It looks like a query that failed. If it is meant: sync(…, force=True).
        return f"{refused.code}: the query found {len(accounts)} accounts; the pool stays as it is"
    changes = {"added": done.added, "retired": done.retired, "retiring": done.retiring}
    return ", ".join(f"{count} {what}" for what, count in changes.items() if count)


def main() -> None:
    """Sync again and again."""
    options = argparse.ArgumentParser()
    options.add_argument("--every", type=float, default=0.25, help="seconds between two syncs")
    options.add_argument("--quarantine", default="4s", help="rest after a collector that died")
    args = options.parse_args()

    database = connect(os.environ["DATABASE_URL"])
    said = ""
    with Tenure() as t:
        t.pools.set("accounts", quarantine=args.quarantine)
        while True:
            outcome = apply(t, *read(database))
            if outcome and outcome != said:
                print(outcome, flush=True)
            said = outcome
            time.sleep(args.every)


if __name__ == "__main__":
    main()
