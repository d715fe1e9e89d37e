"""What the site wrote down: read while it grows, and counted at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Optional


@dataclass
class Entry:
    """One line."""

    at: float
    #: login, logout, broken or refused.
    event: str
    account: str
    who: str
    fence: int
    #: Of a login: the number of the token.
    generation: int = 0
    #: Of a refusal.
    why: str = ""


class SiteLog:
    """All lines until now."""

    def __init__(self, path: Path):
        path.touch(mode=0o600)
        self._file = path.open()
        self._half = ""
        self._entries: list[Entry] = []

    @property
    def entries(self) -> list[Entry]:
        """Return all entries."""
        *lines, self._half = (self._half + self._file.read()).split("\n")
        self._entries.extend(Entry(**json.loads(line)) for line in lines)
        return self._entries

    def of(self, event: str) -> list[Entry]:
        """Return those of one kind."""
        return [entry for entry in self.entries if entry.event == event]

    def logins(self, account: str, since: float = 0, above: int = 0) -> list[Entry]:
        """Return the logins of an account after a moment, by leases with a higher fence."""
        found = [entry for entry in self.of("login") if entry.account == account]
        return [entry for entry in found if entry.at > since and entry.fence > above]

    def session_of(self, who: str) -> Optional[Entry]:
        """Return the login of the session that a collector has at this moment."""
        now: Optional[Entry] = None
        for entry in self.entries:
            if entry.who == who and entry.event != "refused":
                now = entry if entry.event == "login" else None
        return now

    def handovers(self) -> list[float]:
        """Return the seconds from each logout to the next login of the same account, sorted."""
        left: dict[str, float] = {}
        times = []
        for entry in self.entries:
            if entry.event == "logout":
                left[entry.account] = entry.at
            elif entry.event == "login" and entry.account in left:
                times.append(entry.at - left.pop(entry.account))
        return sorted(times)

    def out_of_order(self) -> int:
        """Count logins whose fence is not above that of the account's login before."""
        last: dict[str, int] = {}
        found = 0
        for entry in self.of("login"):
            found += entry.fence <= last.get(entry.account, 0)
            last[entry.account] = entry.fence
        return found
