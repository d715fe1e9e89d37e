"""Outcomes that are to be settled, in their order, until each is answered or it is too late."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Optional

from .._wire import Response
from ..payloads import encode
from ..tasks import final

log: logging.Logger = logging.getLogger("tenure.worker")

#: Seconds for which a settle is repeated, or the ttl of its lease if that is longer.
_SETTLE_FOR_S = 60.0
#: The most settles of a call, and about the most bytes of them: the server takes 8 MiB.
_BATCH = 200
_BATCH_BYTES = 4 * 1024 * 1024
#: What an outcome without a result or an error takes at most.
_PLAIN_BYTES = 512


@dataclass
class Settle:
    """One outcome."""

    item: dict[str, Any] = field(repr=False)
    lease: str
    job: str
    since: float
    bytes: int
    wrong_form: bool = False


class Settles:
    """The outcomes of one worker. Its owner's lock guards it."""

    def __init__(self, ttl: float) -> None:
        self._patience = max(_SETTLE_FOR_S, ttl)
        self._waiting: deque[Settle] = deque()
        #: How many are taken out and not answered.
        self._sending = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, lease: str, job: str, item: dict[str, Any], now: float) -> None:
        """Add an outcome."""
        whole = {"lease": lease, **item}
        size = _PLAIN_BYTES if len(item) == 1 else len(encode(whole))
        self._waiting.append(Settle(whole, lease, job, now, size))

    def first_since(self) -> Optional[float]:
        """Return since when the first one waits."""
        return self._waiting[0].since if self._waiting else None

    def all_answered(self) -> bool:
        """Say whether nothing waits and nothing is on its way."""
        return not self._waiting and self._sending == 0

    def take(self) -> list[Settle]:
        """Take out as many as go in one call."""
        taken: list[Settle] = []
        size = 0
        while self._waiting and len(taken) < _BATCH:
            size += self._waiting[0].bytes
            if taken and size > _BATCH_BYTES:
                break
            taken.append(self._waiting.popleft())
        self._sending += len(taken)
        return taken

    def answered(self, settles: list[Settle]) -> None:
        """Note that these were answered."""
        self._sending -= len(settles)

    def put_back(self, settles: list[Settle], now: float) -> list[Settle]:
        """Keep what was not answered; return those for which it is too late."""
        self._sending -= len(settles)
        late = [each for each in settles if now - each.since > self._patience]
        self._waiting.extendleft(each for each in reversed(settles) if each not in late)
        for each in late:
            log.error(
                "job %s: its outcome %s was not answered for %.0f s; it may be lost, and "
                "the job may run again",
                each.job,
                each.item["outcome"],
                now - each.since,
            )
        return late


def tell_refused(settles: list[Settle], answers: list[dict[str, Any]]) -> None:
    """Log the outcomes that count no more."""
    for each, answer in zip(settles, answers):
        if not answer["ok"]:
            log.warning(
                "job %s: its outcome %s counts no more: %s",
                each.job,
                each.item["outcome"],
                answer["code"],
            )


def repair(response: Response, settles: list[Settle]) -> None:
    """Replace an outcome that the server cannot read by one that it can."""
    problem = response.data if isinstance(response.data, dict) else {}
    index = problem.get("index")
    pointer = str(problem.get("pointer") or "")
    if response.status == 422 and isinstance(index, int) and pointer.startswith("/settle/"):
        wrong = settles[index]
        log.error("job %s: its outcome is refused: %s", wrong.job, problem.get("detail"))
        item = final(f"its outcome was refused: {problem.get('detail')}")
        if wrong.wrong_form:
            item = {"outcome": "released"}
        wrong.wrong_form = True
        wrong.item = {"lease": wrong.lease, **item}
