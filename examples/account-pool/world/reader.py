"""Reads the pool over HTTP all the time, as anybody may, while masters sync it."""

from __future__ import annotations

import json
import threading
import urllib.request
from typing import Any, Optional


class Reader:
    """Each reading must be one whole table, and none may be older than the one before."""

    def __init__(self, url: str):
        self._url = url + "/v1"
        #: The tables that a reading saw parts of, and the accounts in it.
        self.readings: list[tuple[set[int], frozenset[str]]] = []
        #: Accounts that left the table while they were leased, in the last reading.
        self.retiring: set[str] = set()
        self._failure: Optional[str] = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read_on, daemon=True)
        self._thread.start()

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def _read_on(self) -> None:
        while not self._over.wait(0.03):
            try:
                items = self._call("GET", "/pools/accounts/resources?max=1000")["items"]
            except OSError as why:
                self._failure = str(why)
                continue
            staying = [item for item in items if not item["retiring"]]
            tags = {tag for item in staying for tag in item["tags"]}
            tables = {int(tag[len("table-") :]) for tag in tags if tag.startswith("table-")}
            self.retiring = {item["id"] for item in items if item["retiring"]}
            self.readings.append((tables, frozenset(item["id"] for item in staying)))

    def close(self) -> None:
        """Read no more."""
        self._over.set()
        self._thread.join()

    def newest(self) -> int:
        """Return the number of the table that the last reading showed, 0 if it showed none."""
        return max(self.readings[-1][0], default=0) if self.readings else 0

    def fault(self, tables: dict[int, frozenset[str]]) -> Optional[str]:
        """Describe the first reading that was not one whole table, or an older one."""
        last = 0
        for seen, accounts in self.readings:
            if len(seen) != 1:
                return f"{len(accounts)} accounts of {len(seen)} tables in one reading"
            (number,) = seen
            if accounts != tables[number]:
                return f"{len(accounts)} of the {len(tables[number])} accounts of table {number}"
            if number < last:
                return f"table {number} after table {last}"
            last = number
        return self._failure

    def fence(self) -> int:
        """Draw a fence: above that of every lease until now, below that of every later one."""
        wanted = {"needs": [{"limit": "lock:fence"}], "ttl": "5s", "wait": "5s"}
        lease = self._call("POST", "/leases", wanted)["leases"][0]
        settle = [{"lease": lease["lease"], "outcome": "released"}]
        self._call("POST", "/leases/settle", {"settle": settle})
        return lease["fence"]
