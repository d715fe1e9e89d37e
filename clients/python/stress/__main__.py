"""The command: `clients/python/stress/run`."""

from __future__ import annotations

import argparse
import random
import sys

from .chaos import KINDS, Chaos, Settings
from .services import Missing


def main() -> int:
    """Run it; the exit code is 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="clients/python/stress/run", description=_ABOUT)
    parser.add_argument("--store", choices=["redis", "folder", "both"], default="both")
    parser.add_argument("--seconds", type=float, default=120, help="of killing, each store (120)")
    parser.add_argument("--workers", type=int, default=8, help="processes of each kind (8)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind of worker")
    parser.add_argument("--ttl", type=float, default=3.0, help="of the leases, in seconds (3)")
    parser.add_argument("--seed", type=int, help="chooses the jobs and the kills; told at the end")
    given = parser.parse_args()
    bad = False
    for store in ["redis", "folder"] if given.store == "both" else [given.store]:
        settings = Settings(
            store=store,
            seconds=given.seconds,
            workers=given.workers,
            kinds=tuple(given.kind or KINDS),
            ttl=given.ttl,
            seed=random.randrange(1 << 32) if given.seed is None else given.seed,
        )
        try:
            report = Chaos(settings).run()
        except Missing as missing:
            print(f"stress: {missing}", file=sys.stderr)
            return 2
        print(report.text(), flush=True)
        bad = bad or bool(report.faults)
    return 1 if bad else 0


_ABOUT = """Workers of each kind, children of theirs, the server and Redis are killed with SIGKILL
at random moments, while jobs with caps, keyed caps, accounts, retries and snoozes are pushed, some
twice. Then everything drains, and what the handlers wrote down is judged: nothing is lost, nothing
was over a cap, no job and no account was in two hands. Linux only. TENURE_BIN names the server."""

if __name__ == "__main__":
    sys.exit(main())
