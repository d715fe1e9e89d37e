"""A collector: takes an account for as long as a session lives, gives it back, takes the next."""

import argparse
import logging
import signal
import sys

from tenure import Tenure, pool
from websockets.exceptions import ConnectionClosed

from session import SITE_FORGETS_AFTER_S, Refused, Session


def collect(t: Tenure, site: str, name: str) -> None:
    """Run one session, with whichever account is free first."""
    # Waits in the line of the pool. An account that is given back wakes the first in it.
    with t.acquire(pool("accounts"), ttl="2s") as lease:
        account = lease.resource
        session = Session(site, account.id, account.data["token"], lease.fence, name)
        try:
            with session:
                for _page in session.pages():
                    if lease.lost.is_set():
                        print(f"{account.id} may be another's soon: leaving")
                        break
        except (ConnectionClosed, Refused) as why:
            print(f"the session of {account.id} ended: {why}")
        finally:
            if not session.logged_out:
                # The site may still count us as logged in: let it rest before the next login.
                lease.cool(SITE_FORGETS_AFTER_S)


def main() -> None:
    """Collect until SIGTERM."""
    options = argparse.ArgumentParser()
    options.add_argument("--site", required=True)
    options.add_argument("--name", required=True)
    args = options.parse_args()

    logging.basicConfig(format="%(message)s")
    # Logs out and gives the account back on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Tenure() as t:
        while True:
            collect(t, args.site, args.name)


if __name__ == "__main__":
    main()
