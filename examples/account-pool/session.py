"""A session with the site, for as long as this process holds an account.

`tenure lease --need pool:accounts -- python session.py --site URL` runs one session. A collector
(collector.py) opens one after the other.
"""

import argparse
import json
import os
import random
import signal
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
    """Logged in while its `with` block runs."""

    def __init__(self, site: str, account: str, token: str, fence: int, who: str) -> None:
        self._site = site
        self._login = {"login": account, "token": token, "fence": fence, "who": who}
        #: Whether the site has confirmed the logout. Otherwise it may keep the session for a while.
        self.logged_out = False

    def _ask(self, message: dict) -> dict:
        self._socket.send(json.dumps(message))
        answer = json.loads(self._socket.recv())
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer

    def pages(self) -> Iterator[int]:
        """Collect as many pages as there are today."""
        for _ in range(random.randint(4, 20)):
            yield self._ask({"page": "next"})["page"]

    def __enter__(self) -> "Session":
        self._socket = connect(self._site)
        try:
            self._ask(self._login)
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._socket:
            self._socket.send(json.dumps({"logout": True}))
            # The page that was asked for last may come first.
            while "goodbye" not in json.loads(self._socket.recv()):
                pass
        self.logged_out = True


def main() -> None:
    """Run one session with the account that `tenure lease` holds for this process."""
    options = argparse.ArgumentParser()
    options.add_argument("--site", required=True)
    options.add_argument("--name", default="shell")
    options.add_argument("--times", type=int, default=1, help="how often to go through the pages")
    args = options.parse_args()

    # Sent when the lease is lost, or `tenure lease` is ended: log out on the way.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    account, token = os.environ["TENURE_RESOURCE_ID"], os.environ["TENURE_RESOURCE_TOKEN"]
    fence = int(os.environ["TENURE_FENCE"])
    session = Session(args.site, account, token, fence, args.name)
    try:
        with session:
            pages = sum(1 for _ in range(args.times) for _ in session.pages())
        print(f"{pages} pages as {account}")
    except (ConnectionClosed, Refused) as why:
        sys.exit(f"the session of {account} ended: {why}")
    finally:
        if not session.logged_out:
            # The site may still count us as logged in. The account is ours until this process ends.
            time.sleep(SITE_FORGETS_AFTER_S)


if __name__ == "__main__":
    main()
