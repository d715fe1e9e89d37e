"""A program with a bug: it sends heartbeats and releases for leases that are over.

It remembers each lease that it sees, and uses its id once the account is leased to another.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request

API = os.environ["TENURE_URL"] + "/v1/leases"


def call(path: str = "", body: dict | None = None) -> dict:
    """Call the server."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(API + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


done: set[str] = set()
seen: dict[str, str] = {}
while True:
    items = call("?pool=accounts&max=1000")["items"]
    live = {item["lease"]: item["resources"][0]["id"] for item in items}
    leased = set(live.values())
    for lease, account in seen.items():
        # Only when the account is another's: that is when the hand-made version does harm.
        if lease in live or lease in done or account not in leased:
            continue
        done.add(lease)
        extended = call("/extend", {"leases": [lease]})["extended"]
        settle = [{"lease": lease, "outcome": "released"}]
        told = call("/settle", {"settle": settle})["settled"][0]
        answers = {"extended": len(extended), "release": told.get("code", "again")}
        print(json.dumps(answers), flush=True)
    seen.update(live)
    time.sleep(0.1)
