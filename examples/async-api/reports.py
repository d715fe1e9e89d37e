"""The table of reports: all that is known."""

import contextlib
import json
import os
import sqlite3
from typing import Any, Optional

TABLE = """
CREATE TABLE IF NOT EXISTS reports (
    company TEXT PRIMARY KEY, report TEXT NOT NULL, fence INTEGER NOT NULL
)
"""

# A worker that was taken for dead may wake up and store what it got long ago. Its fence is lower
# than that of the worker that holds the job now, so it changes nothing.
STORE = """
INSERT INTO reports (company, report, fence) VALUES (?, ?, ?)
ON CONFLICT (company) DO UPDATE SET report = excluded.report, fence = excluded.fence
WHERE reports.fence <= excluded.fence
"""


def find(company: str) -> Optional[dict[str, Any]]:
    """Return the report of a company, if it is known."""
    with _database() as db:
        row = db.execute("SELECT report FROM reports WHERE company = ?", [company]).fetchone()
    return None if row is None else json.loads(row[0])


def store(company: str, report: dict[str, Any], fence: int) -> bool:
    """Store a report. False: a newer holder of the same job has stored its own already."""
    with _database() as db:
        return db.execute(STORE, [company, json.dumps(report), fence]).rowcount == 1


@contextlib.contextmanager
def _database():
    # isolation_level=None: each statement is a transaction of its own. A writer waits for as long
    # as a run may take: a process that was stopped in the middle of a write keeps the others out.
    path = os.environ.get("REPORTS_DB", "reports.db")
    with contextlib.closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as db:
        # A worker that is stopped while it reads or waits does not keep others from writing.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(TABLE)
        yield db
