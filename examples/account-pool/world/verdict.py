"""What must be true at the end; each check names a failure of hand-made pools."""

from __future__ import annotations

import json

from stage import Part, Scene

from .changes import Changes
from .crew import Kill
from .operators import Operators
from .reader import Reader
from .sitelog import SiteLog


def check_sessions(scene: Scene, log: SiteLog, kills: list[Kill], table: Operators) -> None:
    """Judge by the site's log alone."""
    logins, refused = log.of("login"), log.of("refused")
    why = "; ".join(f"{entry.account}: {entry.why}" for entry in refused[:3])
    scene.check(
        not refused,
        "no account is used twice at once: the site refused no login",
        f"{len(logins)} logins, {len(refused)} refused{f' ({why})' if why else ''}",
    )

    last = max(kill.at for kill in kills)
    gone = sorted(account for account in table.accounts if not log.logins(account, since=last))
    scene.check(
        not gone,
        "no account is popped and lost: each was logged in again after the last kill",
        f"{len(kills)} kills, {len(table.accounts)} accounts, lost: {', '.join(gone) or 'none'}",
    )

    rests, same = [], 0
    for kill in kills:
        if kill.session is None:
            continue
        # It may have logged out in the moment between the look at the log and the kill.
        broken = [each for each in log.of("broken") if each.fence == kill.session.fence]
        after = log.logins(kill.session.account, above=kill.session.fence)
        if broken and after:
            rests.append(after[0].at - kill.at)
            same += after[0].who == kill.who
    scene.check(
        bool(rests) and not same and min(rests) >= scene.args.quarantine,
        "the account of a killed collector rests its quarantine, then goes to another",
        f"{len(rests)} accounts, {min(rests, default=0):.1f} to {max(rests, default=0):.1f} s",
    )


def check_strangers(scene: Scene, log: SiteLog, meddler: Part) -> None:
    """Judge what the meddler was answered."""
    tries = [json.loads(line) for line in meddler.lines]
    scene.check(
        bool(tries) and not any(each["extended"] for each in tries),
        "a heartbeat with the wrong key prolongs nothing",
        f"{len(tries)} heartbeats for leases that were over, each answered as lost",
    )
    # Where the holder itself had released, its own answer is repeated; that changes nothing either.
    known = all(each["release"] in ("lease_lost", "already_settled", "again") for each in tries)
    crashed = [each for each in tries if each["release"] == "lease_lost"]
    scene.check(
        bool(crashed) and known and not log.out_of_order(),
        "a release by someone who is not the holder frees nothing",
        f"{len(tries)} releases, {len(crashed)} of them for a crashed holder: lease_lost",
    )


def check_pool(scene: Scene, reader: Reader, table: Operators, changes: Changes) -> None:
    """Judge what others saw of the pool while it was synced."""
    fault = reader.fault(table.tables)
    scene.check(
        fault is None,
        "the cache is never emptied while others read it: each reading is one whole table",
        fault or f"{len(reader.readings)} readings, {table.newest} tables, two masters",
    )
    scene.check(
        changes.refused_empty == 2 and changes.logins_while_empty > 0,
        "a query that came back empty retires no account",
        f"422 empty_set for {changes.refused_empty} masters, "
        f"{changes.logins_while_empty} logins meanwhile",
    )
    scene.check(
        changes.late_master.startswith("stale_sync"),
        "a master that hung between its query and its sync undoes nothing",
        changes.late_master.replace("stale_sync", "409 stale_sync"),
    )


def check_table(scene: Scene, log: SiteLog, changes: Changes) -> None:
    """Judge whether the leases follow the table."""
    later = [
        login.generation < number
        for account, (number, fence) in changes.renewed.items()
        for login in log.logins(account, above=fence)
    ]
    scene.check(
        bool(later) and not any(later),
        "a token that changed in the table is the one that each later lease has",
        f"{len(changes.renewed)} tokens, {len(later)} later leases, {sum(later)} with an old one",
    )
    removed = changes.removed.items()
    again = sum(len(log.logins(account, above=fence)) for account, fence in removed)
    scene.check(
        changes.removed_when_free and not again,
        "an account that was removed while leased stays until it is free, and never comes back",
        f"{len(removed)} removed, {again} later leases",
    )
