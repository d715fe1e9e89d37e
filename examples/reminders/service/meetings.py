"""The table of meetings, and beside it what is still to be told to Tenure: the outbox.

A meeting and the wishes that follow from it are written in one transaction. So there is no moment
in which the process can die and leave a meeting of whose reminders nobody knows.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

TABLES = """
CREATE TABLE IF NOT EXISTS meetings (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, starts TEXT NOT NULL, people TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS wishes (
    meeting TEXT, who TEXT, starts TEXT, PRIMARY KEY (meeting, who));
"""


@dataclass(frozen=True)
class Meeting:
    """A row of the table."""

    id: str
    title: str
    starts: str
    people: list[str]


@dataclass(frozen=True)
class Wish:
    """Remind this person of a meeting that starts then; of none if `starts` is None."""

    meeting: str
    who: str
    starts: Optional[str]


class Meetings:
    """The database. Its methods may be called by any thread and any process."""

    def __init__(self, path: str) -> None:
        self._path = path
        with self._open() as db:
            # Notifiers read while the API writes.
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(TABLES)

    def get(self, id: str) -> Optional[Meeting]:
        """Show a meeting; None if there is none."""
        with self._open() as db:
            return _find(db, id)

    def put(self, meeting: Meeting) -> bool:
        """Create a meeting, or move it. The same again changes nothing. True if it is new."""
        with self._transaction() as db:
            before = _find(db, meeting.id)
            row = (meeting.id, meeting.title, meeting.starts, json.dumps(meeting.people))
            db.execute("INSERT OR REPLACE INTO meetings VALUES (?, ?, ?, ?)", row)
            moved = before is None or before.starts != meeting.starts
            known = set() if before is None else set(before.people)
            for who in meeting.people:
                if moved or who not in known:
                    _wish(db, Wish(meeting.id, who, meeting.starts))
            for who in known - set(meeting.people):
                _wish(db, Wish(meeting.id, who, None))
        return before is None

    def delete(self, id: str) -> bool:
        """Delete a meeting. False if there is none."""
        with self._transaction() as db:
            before = _find(db, id)
            db.execute("DELETE FROM meetings WHERE id = ?", (id,))
            for who in before.people if before else ():
                _wish(db, Wish(id, who, None))
        return before is not None

    def wishes(self) -> list[Wish]:
        """List what Tenure has not been told yet."""
        with self._open() as db:
            rows = db.execute("SELECT meeting, who, starts FROM wishes ORDER BY rowid LIMIT 100")
            return [Wish(*row) for row in rows]

    def told(self, wishes: list[Wish]) -> None:
        """Take wishes out, except where another has taken the place of one meanwhile."""
        with self._transaction() as db:
            db.executemany(
                "DELETE FROM wishes WHERE meeting = ? AND who = ? AND starts IS ?",
                [(wish.meeting, wish.who, wish.starts) for wish in wishes],
            )

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self._path, timeout=60, isolation_level=None)
        try:
            yield db
        finally:
            db.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._open() as db:
            # Locked before it is read, so that two moves of one meeting follow each other.
            db.execute("BEGIN IMMEDIATE")
            yield db
            # Without this line, because of an exception or a death, all of it is undone.
            db.execute("COMMIT")


def _find(db: sqlite3.Connection, id: str) -> Optional[Meeting]:
    row = db.execute("SELECT * FROM meetings WHERE id = ?", (id,)).fetchone()
    return None if row is None else Meeting(row[0], row[1], row[2], json.loads(row[3]))


def _wish(db: sqlite3.Connection, wish: Wish) -> None:
    row = (wish.meeting, wish.who, wish.starts)
    db.execute("INSERT OR REPLACE INTO wishes VALUES (?, ?, ?)", row)
