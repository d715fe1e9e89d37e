"""`manage.py tenure_worker MODULE:APP`."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable

from asgiref.sync import sync_to_async
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import close_old_connections

from ....__main__ import check, exit_code, find_app
from ...._text import one_line
from ....errors import TenureError
from ....hooks import NotStarted
from ....tasks import Unusable


class Command(BaseCommand):
    """Runs the handlers of an app with Django set up around them."""

    help = (
        "Runs the handlers of an app until SIGTERM. Running jobs may end within --drain-timeout; a "
        "second SIGTERM stops them and gives them back."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the arguments of `python -m tenure worker`."""
        parser.add_argument("app", metavar="MODULE:APP", help="such as shop.jobs:app")
        parser.add_argument("--concurrency", "-c", type=int, metavar="N", help="jobs at once")
        # A process of its own for each job would have to set up Django first: start more workers.
        parser.add_argument("--kind", choices=["threads", "asyncio"], default="threads")
        parser.add_argument("--queue", "-q", action="append", metavar="NAME", help="only this")
        parser.add_argument("--ttl", default="30s", metavar="D", help="ttl of the leases (30s)")
        parser.add_argument("--drain-timeout", default="25s", metavar="D", help="25s unless given")
        parser.add_argument("--until-empty", action="store_true", help="end when none can run now")
        parser.add_argument(
            "--check", action="store_true", help="only see whether the app and its server are there"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it."""
        if options["concurrency"] is not None and options["concurrency"] < 1:
            raise CommandError("--concurrency is at least 1")
        try:
            app = find_app(options["app"])
            if options["check"]:
                self.stdout.write(check(options["app"], app, options["queue"]))
                return
            for task in app.tasks:
                task.function = with_fresh_connections(task.function)
            app.run(
                concurrency=options["concurrency"],
                kind=options["kind"],
                queues=options["queue"],
                ttl=options["ttl"],
                drain_timeout=options["drain_timeout"],
                until_empty=options["until_empty"],
            )
        except (NotStarted, Unusable, TenureError) as error:
            raise CommandError(one_line(str(error)), returncode=exit_code(error)) from None


def with_fresh_connections(function: Callable[..., Any]) -> Callable[..., Any]:
    """Close database connections that are broken or too old around a run, as a request does.

    A worker lives for weeks, and nothing else would ever notice that the database closed one.
    """
    if inspect.iscoroutinefunction(function):
        close = sync_to_async(close_old_connections)

        @functools.wraps(function)
        async def run_later(*args: Any, **kwargs: Any) -> Any:
            await close()
            try:
                return await function(*args, **kwargs)
            finally:
                await close()

        return run_later

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return run
