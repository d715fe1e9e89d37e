"""The commands: `python -m tenure worker module:app`, and `schedules sync module:app`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Any, Optional, Union

from ._reload import end_with_reloader, watch
from ._stderr import say, set_up
from ._text import one_line
from .app import App
from .errors import TenureError
from .hooks import NotStarted
from .tasks import Unusable


def main(arguments: Optional[list[str]] = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tenure", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    worker = commands.add_parser(
        "worker",
        help="run the handlers of an app",
        description="Run the handlers of an app until SIGTERM. Running jobs may end within "
        "--drain-timeout; a second SIGTERM stops them and gives them back.",
    )
    _add_app(worker)
    worker.add_argument("--concurrency", "-c", type=int, metavar="N", help="how many jobs at once")
    worker.add_argument("--kind", choices=["threads", "asyncio", "processes"], default="threads")
    worker.add_argument("--queue", "-q", action="append", metavar="NAME", help="only this queue")
    worker.add_argument("--ttl", default="30s", metavar="D", help="ttl of the leases (30s)")
    worker.add_argument("--drain-timeout", default="25s", metavar="D", help="25s unless given")
    worker.add_argument("--until-empty", action="store_true", help="end when no job can run now")
    worker.add_argument(
        "--reload", action="store_true", help="start again when a file changes, for development"
    )
    worker.add_argument(
        "--check", action="store_true", help="only see whether the app and its server are there"
    )
    _add_schedules(commands)
    given = parser.parse_args(arguments)
    if given.command == "worker":
        if given.concurrency is not None and given.concurrency < 1:
            parser.error("--concurrency is at least 1")
        if given.reload:
            return watch(sys.argv[1:])
        end_with_reloader()
    set_up(os.environ.get("TENURE_LOG", "INFO").upper())
    sys.path.insert(0, os.getcwd())
    try:
        app = find_app(given.app)
        if given.command == "worker" and given.check:
            print(check(given.app, app, given.queue))
        elif given.command == "worker":
            app.run(
                concurrency=given.concurrency,
                kind=given.kind,
                queues=given.queue,
                ttl=given.ttl,
                drain_timeout=given.drain_timeout,
                until_empty=given.until_empty,
            )
        else:
            done = app.sync_schedules(force=given.force, version=given.version)
            print(
                f"schedules of {app.owner}: {done.added} added, {done.updated} changed, "
                f"{done.deleted} deleted, {done.unchanged} as they were"
            )
    except (NotStarted, Unusable, TenureError) as error:
        say(one_line(f"tenure: {error}"))
        return exit_code(error)
    return 0


def check(where: str, app: App, queues: Optional[list[str]]) -> str:
    """Say what a worker of an app would do; raise what it would fail with."""
    from .worker.reach import ask_once

    served = app._served(queues)
    ask_once(app.settings)
    return f"{where} would take jobs of {', '.join(served)} from {app.settings.shown}"


def exit_code(error: Union[NotStarted, Unusable, TenureError]) -> int:
    """Return how a command ends that met an error."""
    if isinstance(error, NotStarted):
        return 1
    if isinstance(error, Unusable):
        return 2
    if error.status in (401, 403):
        return 77
    return 69 if error.status is None or error.status >= 500 else 1


def _add_app(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "app", metavar="MODULE:APP", help="where the app is, such as shop.jobs:app"
    )


def _add_schedules(commands: Any) -> None:
    schedules = commands.add_parser("schedules", help="the schedules that an app's decorators name")
    sync = schedules.add_subparsers(dest="action", required=True).add_parser(
        "sync",
        help="make the decorators of an app the whole set of schedules of its owner",
        description="Make the @app.schedule decorators of an app the whole set of schedules of its "
        "owner. A schedule whose decorator is gone is deleted. A worker does so when it starts.",
    )
    _add_app(sync)
    sync.add_argument(
        "--force", action="store_true", help="also when more than half of the set would be deleted"
    )
    sync.add_argument(
        "--version", type=int, metavar="N", help="refuse this set after one with a higher number"
    )


def find_app(where: str) -> App:
    """Import the app that `MODULE:APP` names."""
    module, colon, name = where.partition(":")
    if not colon or not module or not name:
        raise Unusable(f'"{where}" names no app; write MODULE:APP, such as shop.jobs:app')
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A module that the app's own module misses is a mistake of that module.
        if error.name is not None and not (module + ".").startswith(error.name + "."):
            raise
        raise Unusable(f'there is no module "{module}" here') from None
    app = getattr(found, name, None)
    if not isinstance(app, App):
        raise Unusable(f'module "{module}" has no app "{name}"')
    return app


if __name__ == "__main__":
    sys.exit(main())
