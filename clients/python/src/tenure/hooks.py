"""What an app runs around the life of a worker, to open and to close what its handlers need."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Callable

from ._text import describe, logger, one_line

if TYPE_CHECKING:
    import logging

log: logging.Logger = logger("tenure.worker")

Hook = Callable[[], Any]
#: Runs a coroutine to its end, on the loop that the hooks of a worker share.
RunAsync = Callable[[Coroutine[Any, Any, None]], object]


class NotStarted(Exception):
    """What a worker needs to run handlers could not be started, so it takes no jobs."""


class HookFailed(NotStarted):
    """A start hook of an app raised."""


class Hooks:
    """The hooks of one app, in the order in which they were added."""

    def __init__(self) -> None:
        self.on_start: list[Hook] = []
        self.on_stop: list[Hook] = []

    def start(self, run_async: RunAsync = asyncio.run) -> None:
        """Run the start hooks; raise `HookFailed` at the first one that fails."""
        for hook in self.on_start:
            try:
                _run(hook, run_async)
            except BaseException as error:
                what = f'the start hook "{_name(hook)}" failed: {describe(error)}'
                raise HookFailed(one_line(what)) from error

    def stop(self, run_async: RunAsync = asyncio.run) -> None:
        """Run the stop hooks, the last one first, each whatever became of the others."""
        for hook in reversed(self.on_stop):
            try:
                _run(hook, run_async)
            except BaseException as error:
                log.error('the stop hook "%s" failed: %s', _name(hook), describe(error))


def _run(hook: Hook, run_async: RunAsync) -> None:
    found = hook()
    if inspect.isawaitable(found):
        run_async(_wait_for(found))


async def _wait_for(found: Awaitable[Any]) -> None:
    await found


def _name(hook: Hook) -> str:
    return str(getattr(hook, "__name__", hook))
