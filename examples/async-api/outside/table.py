"""The database seen from outside: a trigger notes each attempt to write a report."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from typing import Any

TRIGGER = """
CREATE TABLE attempts (company TEXT, fence INTEGER, fence_there INTEGER);
CREATE TRIGGER note_attempt BEFORE INSERT ON reports BEGIN
    INSERT INTO attempts SELECT NEW.company, NEW.fence,
        (SELECT fence FROM reports WHERE company = NEW.company);
END
"""
LATE = "SELECT count(*) FROM attempts WHERE fence < fence_there AND company LIKE ?"
ROWS = """
SELECT reports.company, report, reports.fence, max(attempts.fence)
FROM reports JOIN attempts USING (company) GROUP BY reports.company
"""


class Table:
    """The table of reports."""

    def __init__(self, path: str):
        self.db = sqlite3.connect(path, timeout=60, isolation_level=None)
        self.db.executescript(TRIGGER)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Meanwhile others can read, and wait where they want to write."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self.db.execute("ROLLBACK")

    def late(self, company: str = "%") -> int:
        """How many attempts came when a report with a higher fence was there already."""
        return self.db.execute(LATE, [company]).fetchone()[0]

    def rows(self) -> dict[str, tuple[dict[str, Any], int, int]]:
        """For each company its report, its fence, and the highest fence of all attempts."""
        return {row[0]: (json.loads(row[1]), row[2], row[3]) for row in self.db.execute(ROWS)}
