"""A session with the site, for as long as this process holds an account.

`tenure lease --need pool:accounts -- python session.py --site URL` runs one session. A collector
(collector.py) opens one after the other.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

#: The longest time for which the site keeps a session whose connection broke.
SITE_FORGETS_AFTER_S = 4


class Refused(Exception):
    """The site did not let us in."""


class Session:
    """Logged in until its `with` block ends."""

    def __init__(self, site: str, account: str, token: str, fence: int, who: str) -> None:
        self._socket = connect(site)
        self._ask(login=account, token=token, fence=fence, who=who)

    def _ask(self, **message) -> dict:
        self._socket.send(json.dumps(message))
        answer = json.loads(self._socket.recv())
        if "refused" in answer:
            self._socket.close()
            raise Refused(answer["refused"])
        return answer

    def pages(self) -> Iterator[int]:
        """Collect as many pages as there are today."""
        for _ in range(random.randint(4, 20)):
            yield self._ask(page="next")["page"]

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._ask(logout=True)
        finally:
            self._socket.close()


def main() -> None:
    """Run one session with the account that `tenure lease` holds for this process."""
    options = argparse.ArgumentParser()
    options.add_argument("--site", required=True)
    options.add_argument("--name", default="shell")
    options.add_argument("--times", type=int, default=1, help="how often to go through the pages")
    args = options.parse_args()

    account, token = os.environ["TENURE_RESOURCE_ID"], os.environ["TENURE_RESOURCE_TOKEN"]
    fence = int(os.environ["TENURE_FENCE"])
    try:
        with Session(args.site, account, token, fence, args.name) as session:
            pages = sum(1 for _ in range(args.times) for _ in session.pages())
        print(f"{pages} pages as {account}")
    except ConnectionClosed:
        # The site may still count us as logged in. Nobody else gets the account before we exit.
        time.sleep(SITE_FORGETS_AFTER_S)
        sys.exit(f"the site closed the session of {account}")
    except Refused as why:
        sys.exit(f"the site refused {account}: {why}")


if __name__ == "__main__":
    main()
