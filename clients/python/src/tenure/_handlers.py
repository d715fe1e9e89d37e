"""Handlers and their app as those see them who push and run: interfaces, no code.

`App` makes tasks and workers, and both need their app. They name it by these interfaces, so that no
file needs `app.py` that `app.py` needs.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Callable, Optional, Protocol

from ._settings import Settings
from .context import Context
from .hooks import Hooks
from .jobs import AsyncJob, Job
from .middleware import Middleware
from .sealing import Codec


class Handler(Protocol):
    """What a worker needs of a `Task`."""

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself, by whose module and name another process imports the handler."""
        ...

    @property
    def is_async(self) -> bool:
        """Whether `run` returns a coroutine."""
        ...

    def arguments(self, payload: Any, context: Context) -> dict[str, Any]:
        """Read a payload as the arguments of the function; raise `DoesNotFit`."""
        ...

    def run(self, arguments: dict[str, Any], context: Context) -> Any:
        """Run it inside the middleware of its app; a coroutine function gives a coroutine."""
        ...


class HandlerApp(Protocol):
    """What handlers and workers need of an `App`."""

    @property
    def settings(self) -> Settings:
        """Where the server is."""
        ...

    @property
    def codec(self) -> Optional[Codec]:
        """What seals and opens the values of its jobs."""
        ...

    @property
    def hooks(self) -> Hooks:
        """What runs before the first job and after the last."""
        ...

    @property
    def layers(self) -> list[Middleware]:
        """Its middleware, the outermost first."""
        ...

    @property
    def tasks(self) -> Sequence[Handler]:
        """Its handlers."""
        ...

    def find(self, queue: str, kind: str) -> Optional[Handler]:
        """Find the handler of a job. A job without a kind goes to the only one of its queue."""
        ...

    def push_job(self, job: Mapping[str, Any]) -> Job[Any]:
        """Push what `task.spec(...)` returned, inside the middleware."""
        ...

    def apush_job(self, job: Mapping[str, Any]) -> Coroutine[Any, Any, AsyncJob[Any]]:
        """Push what `task.spec(...)` returned, inside the middleware, in a coroutine."""
        ...
