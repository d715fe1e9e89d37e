"""The people and programs that change the table. They know the site, and nothing of Tenure."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from pathlib import Path
from typing import Callable


class Operators:
    """Changes the table, and remembers which accounts it had after each change.

    Each change also writes its number into the tags of all accounts. So a reader of the pool can
    tell which table it sees, and whether it sees parts of two.
    """

    def __init__(self, run: Callable[[str], object], secret: bytes):
        self._run = run
        self._secret = secret
        self._made = 0
        #: By account: the number of its newest token.
        self.tokens: dict[str, int] = {}
        #: By the number of the change: the accounts of the table after it.
        self.tables: dict[int, frozenset[str]] = {}

    @property
    def newest(self) -> int:
        """Return the number of the last change."""
        return len(self.tables)

    @property
    def accounts(self) -> frozenset[str]:
        """Return the accounts of the table."""
        return self.tables[self.newest]

    def _token(self, account: str) -> str:
        number = self.tokens[account]
        signed = hmac.new(self._secret, f"{account} {number}".encode(), hashlib.sha256)
        return f"{number}.{signed.hexdigest()}"

    def _change(self, sql: str) -> int:
        number = self.newest + 1
        # First, since a reader of the pool may see it before this call returns.
        self.tables[number] = frozenset(self.tokens)
        self._run(f"{sql}; UPDATE accounts SET tags = 'cn, table-{number}'")
        return number

    def touch(self) -> int:
        """Change nothing but the tags."""
        return self._change("")

    def add(self, how_many: int) -> int:
        """Add accounts."""
        rows = []
        for _ in range(how_many):
            self._made += 1
            account = f"account-{self._made:02}"
            self.tokens[account] = 1
            rows.append(f"('{account}', '{self._token(account)}')")
        return self._change(f"INSERT INTO accounts (id, token) VALUES {', '.join(rows)}")

    def renew(self, account: str) -> int:
        """Give an account a new token."""
        self.tokens[account] += 1
        token = self._token(account)
        return self._change(f"UPDATE accounts SET token = '{token}' WHERE id = '{account}'")

    def remove(self, account: str) -> int:
        """Delete an account."""
        del self.tokens[account]
        return self._change(f"DELETE FROM accounts WHERE id = '{account}'")

    def disable_all(self) -> None:
        """Forget a WHERE: from now on the query of the masters finds nothing."""
        self._run("UPDATE accounts SET enabled = false")

    def enable_all(self) -> int:
        """Mend it."""
        return self._change("UPDATE accounts SET enabled = true")


def sqlite(file: Path) -> Callable[[str], None]:
    """Return what runs statements as one transaction on a file."""

    def run(sql: str) -> None:
        database = sqlite3.connect(file, timeout=30)
        database.executescript(f"BEGIN IMMEDIATE; {sql}; COMMIT")
        database.close()

    return run
