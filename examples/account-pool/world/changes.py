"""What happens to the table while collectors come and go, and what was seen of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Callable

from stage import Part, Scene

from .crew import Crew, Story
from .operators import Operators
from .reader import Reader
from .sitelog import SiteLog


class Changes:
    """The changes, one after the other."""

    def __init__(self, scene: Scene, table: Operators, reader: Reader, log: SiteLog, crew: Crew):
        self._scene = scene
        self._table = table
        self._reader = reader
        self._log = log
        self._crew = crew
        some = scene.dice.sample(sorted(table.accounts), 5)
        self._to_renew, self._to_remove = some[:3], some[3:]
        #: By account: the number of its new token, and a fence that lies between those of the
        #: leases before its sync and those after.
        self.renewed: dict[str, tuple[int, int]] = {}
        #: By account that left the table: such a fence.
        self.removed: dict[str, int] = {}
        self.removed_when_free = False
        #: While this is set nobody else changes the table.
        self.is_empty = False
        self.refused_empty = 0
        self.logins_while_empty = 0
        self.late_master = ""

    @property
    def to_remove(self) -> frozenset[str]:
        """Return the accounts that leave the table in this run."""
        return frozenset(self._to_remove)

    def _synced(self, number: int) -> Callable[[], bool]:
        return lambda: self._reader.newest() >= number

    def story(self, masters: list[Part], late: Part, go_on: Path) -> Story:
        """Change the table, and see each change arrive; `late` syncs when `go_on` is there."""
        table, say = self._table, self._scene.say
        yield self._synced(table.add(2))
        say("the table has 2 accounts more")

        for account in self._to_renew:
            yield self._synced(table.renew(account))
            self.renewed[account] = (table.tokens[account], self._reader.fence())
        say(f"new tokens for {', '.join(sorted(self._to_renew))}")

        leased, other = self._to_remove
        yield from self._remove_leased(leased)
        yield from self._empty(masters)

        yield self._synced(table.add(1))
        yield self._synced(table.remove(other))
        self.removed[other] = self._reader.fence()
        say(f"the table has 1 account more, and {other} no longer")

        # This one read the table before all that.
        go_on.touch()
        yield lambda: not late.alive
        self.late_master = late.lines[-1]

    def _remove_leased(self, account: str) -> Story:
        holder = self._crew.shell(f"pool:accounts,id={account}", times=5)
        yield lambda: self._log.session_of(holder.name) is not None or not holder.alive
        yield self._synced(self._table.remove(account))
        self.removed[account] = self._reader.fence()
        self._scene.say(f"{account} leaves the table while {holder.name} is logged in with it")
        yield lambda: account in self._reader.retiring or not holder.alive
        during = self._log.session_of(holder.name) is not None
        yield lambda: not holder.alive and account not in self._reader.retiring
        last = [entry.event for entry in self._log.entries if entry.who == holder.name][-1:]
        self.removed_when_free = during and last == ["logout"]
        self._scene.say(f"{account} leaves the pool, now that {holder.name} has given it back")

    def _empty(self, masters: list[Part]) -> Story:
        before = time.monotonic()

        def logins() -> int:
            return sum(login.at > before for login in self._log.of("login"))

        self.is_empty = True
        self._table.disable_all()
        self._scene.say("an UPDATE without its WHERE: the query for accounts finds none")
        for master in masters:
            yield lambda lines=master.lines: any(line.startswith("empty_set") for line in lines)
            self.refused_empty += 1
        # The collectors go on as if nothing had happened.
        yield lambda: logins() >= 10
        self.logins_while_empty = logins()
        number = self._table.enable_all()
        self.is_empty = False
        yield self._synced(number)
