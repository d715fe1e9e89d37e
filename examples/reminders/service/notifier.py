"""The notifier: `python -m tenure worker service.notifier:app`, as many of them as you like."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request

import tenure

from .meetings import Meetings

app = tenure.App()
meetings = Meetings(os.environ["MEETINGS_DB"])


RETRY = {
    # By default a job that was lost three times in a row is taken for one that kills its workers.
    "max_lost": 20,
    # A reminder is of no use an hour later: try sooner, and in the end twice a minute.
    "backoff": {"kind": "exponential", "base": "250ms", "max": "30s"},
    "max_attempts": 100,
}


@app.job("reminders", retry=RETRY)
def remind(ctx: tenure.Context, meeting: str, who: str, starts: str) -> str:
    """Remind one person of one meeting."""
    found = meetings.get(meeting)
    # The meeting may have been moved or deleted since this job was granted for the first time: from
    # then on its key no longer reaches it.
    if found is None or found.starts != starts or who not in found.people:
        return "called off"
    message = {"meeting": meeting, "who": who, "starts": starts, "title": found.title}
    # For the figures of the demo.
    message.update(job=ctx.job.id, lost=ctx.job.lost)
    request = urllib.request.Request(
        os.environ["INBOX_URL"] + "/messages",
        data=json.dumps(message).encode(),
        headers={
            "Content-Type": "application/json",
            "User-Agent": f"notifier/{os.getpid()}",
            # The same for each try by any notifier: the inbox refuses what it has.
            "Idempotency-Key": f"meeting-{meeting}:{who}:{starts}",
        },
    )
    try:
        urllib.request.urlopen(request, timeout=10).close()
    except urllib.error.HTTPError as refused:
        if refused.code != 409:
            raise
        return "was sent already"
    # Here the inbox has the message, and Tenure learns it when this function has returned. If the
    # notifier dies in between, another one sends the message again, and the inbox refuses it.
    return "sent"
