"""Apps: a set of handlers, and the worker that runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, overload

from . import _settings
from ._settings import Settings
from .client import Tenure
from .context import Context
from .durations import Duration, seconds
from .jobs import Job
from .needs import AnyNeed
from .tasks import Task, final

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    from .worker import Worker

    P = ParamSpec("P")
else:
    # Python 3.9 has no ParamSpec.
    P = TypeVar("P")

R = TypeVar("R")


class _Decorator:
    """What `app.job(...)` returns. A parameter for the context is none of the payload's."""

    def __init__(self, make: Callable[[Callable[..., Any]], Task[Any, Any]]) -> None:
        self._make = make

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R]) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Task[Any, Any]:
        return self._make(function)


class App:
    """Handlers by queue and kind.

    >>> app = App(url)
    >>> @app.job("mail")
    ... def send(to: str) -> str:
    ...     return f"sent to {to}"
    >>> job = send.push(to="ann")
    >>> app.run(until_empty=True)
    >>> job.wait(10).get()
    'sent to ann'
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        namespace: Optional[str] = None,
        *,
        retry_for: float = 60.0,
    ) -> None:
        self._given = (url, token, namespace)
        self._retry_for = retry_for
        self._client: Optional[Tenure] = None
        self._tasks: dict[tuple[str, str], Task[Any, Any]] = {}
        self._worker: Optional[Worker] = None

    @property
    def client(self) -> Tenure:
        """The client with which its jobs are pushed."""
        # Made when it is used: the environment may be set after the import of a module, and a
        # test that follows another speaks to a namespace of its own.
        settings = self.settings
        client = self._client
        if client is None or client._settings != settings:
            url = settings.origin + settings.prefix
            client = self._client = Tenure(
                url, settings.token, settings.namespace, retry_for=self._retry_for
            )
        return client

    @property
    def settings(self) -> Settings:
        """Where the server is."""
        return _settings.instead or Settings.find(*self._given)

    def job(
        self,
        queue: str = "default",
        *,
        kind: Optional[str] = None,
        retry: Optional[Mapping[str, Any]] = None,
        timeout: Optional[Duration] = None,
        needs: Optional[Iterable[AnyNeed]] = None,
        priority: Optional[int] = None,
        retain: Any = None,
        labels: Optional[Mapping[str, str]] = None,
    ) -> _Decorator:
        """Make a handler of a function: plain or `async`.

        Its parameters are the fields of the payload; a single parameter that is a dataclass, a
        TypedDict, a pydantic model or a dict is the payload as a whole. `kind` is the function's
        name unless given; the other options hold for each job that is pushed with `push`.
        """
        options = {
            "retry": retry,
            "timeout": timeout,
            "needs": None if needs is None else list(needs),
            "priority": priority,
            "retain": retain,
            "labels": labels,
        }

        def make(function: Callable[..., Any]) -> Task[Any, Any]:
            name = function.__name__ if kind is None else kind
            if (queue, name) in self._tasks:
                raise ValueError(f'queue "{queue}" has a handler of the kind "{name}" already')
            chosen = {key: value for key, value in options.items() if value is not None}
            task: Task[Any, Any] = Task(self, function, queue, name, chosen)
            self._tasks[(queue, name)] = task
            return task

        return _Decorator(make)

    def push(self, task: Task[P, Any], *args: P.args, **kwargs: P.kwargs) -> Job:
        """Push a job for a handler: the same as `task.push(...)`."""
        return task.push(*args, **kwargs)

    @property
    def tasks(self) -> list[Task[Any, Any]]:
        """Its handlers."""
        return list(self._tasks.values())

    @property
    def queues(self) -> list[str]:
        """The queues of its handlers."""
        return list(dict.fromkeys(queue for queue, _ in self._tasks))

    def find(self, queue: str, kind: str) -> Optional[Task[Any, Any]]:
        """Find the handler of a job. A job without a kind goes to the only one of its queue."""
        task = self._tasks.get((queue, kind))
        if task is None and kind == "":
            own = [task for (name, _), task in self._tasks.items() if name == queue]
            task = own[0] if len(own) == 1 else None
        return task

    def run(
        self,
        *,
        concurrency: Optional[int] = None,
        kind: str = "threads",
        queues: Optional[Iterable[str]] = None,
        ttl: Duration = "30s",
        drain_timeout: Duration = "25s",
        until_empty: bool = False,
    ) -> None:
        """Run jobs until SIGTERM or SIGINT, or `stop()`.

        `kind` is `threads` (8 at once unless given), `asyncio` (100) or `processes` (one for each
        core). The first signal lets running jobs end within `drain_timeout`; what then still runs,
        or at a second signal, is stopped and given back. With `until_empty` it ends when no job is
        left that could run now.
        """
        from .worker import Worker

        if not self._tasks:
            raise ValueError("this app has no handlers; give it some with @app.job(...)")
        self._worker = Worker(
            self,
            list(queues) if queues is not None else self.queues,
            kind=kind,
            concurrency=concurrency,
            ttl=seconds(ttl),
            drain_timeout=seconds(drain_timeout),
            until_empty=until_empty,
        )
        self._worker.run()

    def stop(self) -> None:
        """Let a running `run` drain, as SIGTERM does."""
        if self._worker is not None:
            self._worker.stop()


def unknown_kind(queue: str, kind: str) -> dict[str, Any]:
    """Write the outcome of a job that no handler takes.

    It is retried by its policy: a newer worker may know its kind.
    """
    item = final(f'no handler takes the kind "{kind}" in queue "{queue}"')
    del item["final"]
    return item
