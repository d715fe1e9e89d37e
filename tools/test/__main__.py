"""Runs everything that must hold before a change goes in."""

from __future__ import annotations

import argparse
import os
import sys
import threading

import plan
import processes
from cargo import ROOT, TARGET
from report import Report

NAMES = [
    "redis", "scrapyd", "browser", "prometheus", "axe-core", "small-disk", "python", "node",
    "typescript", "postgres",
]  # fmt: skip
HELP = """
Without PART: the format check, lints, all tests (documentation tests too), the check of the Python
package (clients/python/check) and that of the TypeScript package (clients/typescript/check), and a
command of each example (examples/check). With PART, a crate or a path: the format, lints and tests
of that alone, which is what you run while you work. The tests of the TypeScript package run on the
Node that is here, and with its path or --long on the current one, too.

--without leaves out what needs these. browser is Chromium, which walks through the dashboard and
shows a page of docs/guides/fastapi.md; axe-core finds in the dashboard what readers with other eyes
and hands cannot use, and takes npm; prometheus scrapes two servers, and its promtool reads the
alerts; small-disk is a file system of a test's own, which takes root or user namespaces (unshare);
python is the Python package and the examples, which take venv, pip and PyPI; node is the worker of
docs/guides/http.md, which takes Node 18; typescript is the TypeScript package and, with --long,
those commands of the examples that use it, which take Node 20.19 and npm; postgres is the database
of the example account-pool.

Where Redis, Node or Chromium is missing, it is installed if that needs no password (Debian's
redis-tools, which starts no service, nodejs, and chromium-headless-shell or chromium). What else is
missing is installed into target/tools: Prometheus from Debian, without the service of its package,
scrapyd and the packages of the Python check from PyPI, axe-core and the tools of the TypeScript
check from npm. The examples install what they need into their own folders, and PostgreSQL from
Debian. Where one of them cannot be installed, all the rest is run, and the end is a failure that
says so.

A test that takes longer than two minutes is ended and named. TENURE_SEED=N plays the random
histories of another seed, TENURE_SEED=random of another each time, and TENURE_HISTORIES=N sets how
many are played.
"""


def main() -> int:
    """Run it, and answer the exit code."""
    arguments = argparse.ArgumentParser(
        prog="./test",
        description=__doc__,
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    arguments.add_argument(
        "parts", nargs="*", metavar="PART", help="a crate (core) or a path (crates/engine)"
    )
    arguments.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NAME[,NAME]",
        help=f"leave out what needs {', '.join(NAMES[:-1])} or {NAMES[-1]}",
    )
    arguments.add_argument(
        "--long",
        action="store_true",
        help="run all that, longer, and what takes too long for ./test: an hour or two",
    )
    arguments.add_argument(
        "--slowest", type=int, default=10, metavar="N", help="list so many tests at the end (10)"
    )
    args = arguments.parse_args()
    without = [name for names in args.without for name in names.split(",") if name]
    for name in without:
        if name not in NAMES:
            arguments.error(f"nothing needs {name!r}; --without takes {', '.join(NAMES)}")
    try:
        parts = [plan.part(name) for name in args.parts]
    except plan.Unknown as why:
        arguments.error(str(why))
    processes.take_signals()
    os.chdir(ROOT)
    TARGET.mkdir(exist_ok=True)
    is_whole = not parts and not without and not args.long
    report = Report(TARGET / "test-times.json" if is_whole else None)
    steps = plan.Plan(report, without, args.long)
    run = (lambda: steps.crates_and_folders(parts)) if parts else steps.everything
    work = threading.Thread(target=steps.guarded, args=(run,))
    work.start()
    while work.is_alive() and not processes.stopping.is_set():
        report.tick()
        work.join(0.2)
    processes.kill_all()
    work.join()
    if without:
        report.notes.append(f"left out as asked: {', '.join(without)}")
    number = processes.stopped_by
    if number is not None:
        report.fail("the run", f"ended by signal {number}")
    report.finish(args.slowest)
    if number is not None:
        return 128 + number
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
