"""A worker's call for jobs: what is sent under one request id, until it is answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._wire import Request, new_id, now, request
from ..durations import duration_text


@dataclass
class Ask:
    """One call, however often it is sent."""

    id: str = field(default_factory=lambda: new_id("request"))
    #: When it was first sent: what it is granted counts from then.
    first_sent: float = 0.0
    #: The body of the last sending.
    body: dict[str, Any] = field(default_factory=dict)
    #: A sending that was not answered may have been granted jobs. They would wait for their ttl and
    #: count as lost, unless the same request id asks for them again.
    in_doubt: bool = False

    def write(
        self, queues: list[str], most: int, wait: float, ttl: float, worker: dict[str, Any]
    ) -> None:
        """Write what is sent now."""
        self.first_sent = self.first_sent or now()
        self.body = {
            "queues": queues,
            "max": most,
            "wait": duration_text(wait),
            "ttl": duration_text(ttl),
            "worker": worker,
            "request_id": self.id,
        }

    def withdrawal(self) -> Request:
        """Return the same call without its wait.

        A sending that still waits is answered with nothing at once. What an earlier sending was
        granted is the answer to this one.
        """
        return request("POST", "leases", body={**self.body, "wait": "0s"})
