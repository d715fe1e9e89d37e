"""What surrounds each push and each run of an app, and the run that this code belongs to."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import Context as ContextVars
from contextvars import ContextVar, Token, copy_context
from typing import Any, Optional

from .context import Context

_RUNNING: ContextVar[Context] = ContextVar("tenure_running")


def current() -> Context:
    """Return the context of the run that this code belongs to, wherever in its handler it stands.

    A thread that the handler starts by itself does not know it; `asyncio.to_thread` and tasks do.
    """
    try:
        return _RUNNING.get()
    except LookupError:
        raise LookupError("no job runs here; tenure.current() is for handlers of an app") from None


class Middleware:
    """Code around each push and each run of an app; override one method or both.

    Both are context managers, so that one `with` serves plain functions and coroutines:

    >>> from tenure import App
    >>> class Labels(Middleware):
    ...     @contextlib.contextmanager
    ...     def push(self, job):
    ...         job["labels"] = {**job.get("labels", {}), "from": "shop"}
    ...         yield
    >>> app = App(url)
    >>> app.middleware(Labels())
    >>> @app.job("mail")
    ... def send(to: str) -> None: ...
    >>> send.push("ann").labels
    {'from': 'shop'}
    """

    def push(self, job: dict[str, Any]) -> AbstractContextManager[object]:
        """Surround a push: of a task, of `push_on_commit`, and of the app's own clients.

        A push of `ctx.push` too, which is stored later: with the end of its run.

        `job` is what is about to be sent, with its `id`, and may be changed. What is raised here
        comes out of the push; what is raised before the `yield` prevents it. `push_all` and
        `push_many` call this once for each job of a call, each in a `contextvars.Context` of its
        own, so that what the jobs open stands beside each other.
        """
        return contextlib.nullcontext()

    def run(self, context: Context) -> AbstractContextManager[object]:
        """Surround a run, on its thread or in its task.

        What the handler raises comes out of the `yield`, `Snooze` and other outcomes too. An
        exception of the middleware itself is a failed run, as one of the handler is; it may
        replace the handler's, and cannot swallow it.
        """
        return contextlib.nullcontext()


@contextlib.contextmanager
def around_push(layers: Sequence[Middleware], job: dict[str, Any]) -> Iterator[None]:
    """Enter each layer, the first one outermost."""
    with _stack() as stack:
        for layer in layers:
            stack.enter_context(layer.push(job))
        yield


@contextlib.contextmanager
def around_pushes(layers: Sequence[Middleware], jobs: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Enter each layer for each of the jobs that one call pushes."""
    with _stack() as stack:
        for job in jobs if layers else ():
            # A span that the layers open for a job must not become the parent of the next job's.
            own = copy_context()
            inner = contextlib.ExitStack()
            stack.push(functools.partial(_leave, own, inner))
            for layer in layers:
                own.run(inner.enter_context, own.run(layer.push, job))
        yield


def _leave(own: ContextVars, stack: contextlib.ExitStack, *why: Any) -> None:
    own.run(stack.__exit__, *why)


def around_run(
    layers: Sequence[Middleware], context: Context
) -> contextlib.AbstractContextManager[None]:
    """Make a context the current one, and enter each layer, the first one outermost."""
    return _around_run(layers, context) if layers else _Current(context)


class _Current:
    """Makes a context the current one. A generator would take several times as long."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._token: Token[Context] = _RUNNING.set(self._context)

    def __exit__(self, *why: object) -> None:
        _RUNNING.reset(self._token)


@contextlib.contextmanager
def _around_run(layers: Sequence[Middleware], context: Context) -> Iterator[None]:
    context._around_push = functools.partial(around_push, layers)
    with _Current(context), _stack() as stack:
        for layer in layers:
            stack.enter_context(layer.run(context))
        yield


@contextlib.contextmanager
def _stack() -> Iterator[contextlib.ExitStack]:
    """Make a stack of layers, none of which can swallow what is raised.

    A run without a value must not count as one that succeeded, nor a failed push as one.
    """
    raised: Optional[BaseException] = None
    with contextlib.ExitStack() as stack:
        try:
            yield stack
        except BaseException as error:
            raised = error
            raise
    if raised is not None:
        raise raised
