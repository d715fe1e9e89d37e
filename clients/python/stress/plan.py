"""The jobs of the stress: what each needs, how long it takes and how it must end."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import tenure

QUEUE = "stress"
#: How many may hold each limit at once. A limit with a key has its family's number.
CAPS = {"five": 5, "site": 2, "lock": 1}
_SITES = 6
POOL = "accounts"
ACCOUNTS = [f"account-{n}" for n in range(4)]

#: How a job must end, by what its handler does. `retries`: fails at its first attempt. `snoozes`:
#: half of its runs say "not yet". `fails`: fails, and at its second attempt for good.
ENDS = {
    "plain": "succeeded",
    "long": "succeeded",
    "retries": "succeeded",
    "snoozes": "succeeded",
    "fails": "failed",
}
_WAYS = ["plain"] * 65 + ["retries"] * 15 + ["snoozes"] * 10 + ["fails"] * 8 + ["long"] * 2


def cap_of(limit: str) -> int:
    """Return how many may hold a limit at once."""
    return CAPS[limit.split(":", 1)[0]]


@dataclass(frozen=True)
class Planned:
    """One job."""

    id: str
    way: str
    limits: tuple[str, ...]
    account: bool
    takes_ms: int

    def spec(self) -> dict[str, Any]:
        """Write it as a push."""
        needs: list[Any] = [tenure.limit(name) for name in self.limits]
        if self.account:
            needs.append(tenure.pool(POOL))
        return {
            "id": self.id,
            "queue": QUEUE,
            "kind": "work",
            "payload": {"way": self.way, "takes_ms": self.takes_ms, "limits": list(self.limits)},
            "needs": needs,
            # Processes are killed more often in a row here than a job's policy would forgive.
            "retry": {
                "max_attempts": 0,
                "max_lost": 0,
                "backoff": {"kind": "fixed", "base": "50ms"},
            },
        }


def quick(id: str) -> Planned:
    """Plan a job that needs nothing and takes next to no time."""
    return Planned(id, "plain", (), account=False, takes_ms=0)


def plan(id: str, dice: random.Random, ttl: float) -> Planned:
    """Plan a job."""
    way = dice.choice(_WAYS)
    limits = {
        0: (),
        1: ("five",),
        2: (f"site:{dice.randrange(_SITES)}",),
        3: ("five", f"site:{dice.randrange(_SITES)}"),
        4: ("lock:one",),
    }[dice.choice([0, 0, 0, 1, 1, 2, 2, 3, 3, 4])]
    # One that is long needs its heartbeats; alone with the lock it would hold up all others.
    takes_ms = dice.randrange(5, 60)
    if way == "long" and "lock:one" not in limits:
        takes_ms = int(ttl * 1500)
    return Planned(id, way, limits, dice.random() < 0.3, takes_ms)
