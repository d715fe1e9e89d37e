"""Apps: a set of handlers, and the worker that runs them."""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Callable, Optional, TypedDict, TypeVar, Union

from . import _settings
from ._settings import Settings
from .client import AsyncTenure, Tenure
from .durations import Duration, Moment, seconds
from .fields import JobDefaults, job_fields, refuse_unknown
from .hooks import Hooks
from .jobs import AsyncJob, Job
from .middleware import Middleware
from .pushable import Pushable
from .records import Synced
from .scheduled import Entry, Timetable, in_sync
from .sealing import Codec, checked
from .tasks import Task, Unusable

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .worker import Worker

H = TypeVar("H", bound=Callable[..., Any])
Exceptions = Union[type[Exception], tuple[type[Exception], ...]]


class _ClientOptions(TypedDict):
    """What an app gives to its clients, beside the address."""

    retry_for: float
    ca: Optional[str]
    client_cert: Optional[str]
    client_key: Optional[str]
    codec: Optional[Codec]


class App:
    """Handlers by queue and kind.

    With a `codec` the server reads no payload, result or progress of its jobs; see `Codec`.

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
        owner: Optional[str] = None,
        ca: Optional[str] = None,
        codec: Optional[Codec] = None,
    ) -> None:
        #: Seals what its clients push and its workers return, and opens it for handlers.
        self.codec: Optional[Codec] = checked(codec)
        self._owner = _module_that_makes_it() if owner is None else owner
        self._given = (url, token, namespace, ca)
        self._retry_for = retry_for
        self._client: Optional[Tenure] = None
        self._async_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncTenure] = (
            weakref.WeakKeyDictionary()
        )
        self._tasks: dict[tuple[str, str], Task[Any]] = {}
        #: What `on_start` and `on_stop` were given.
        self.hooks: Hooks = Hooks()
        self._layers: list[Middleware] = []
        self._timetable = Timetable()
        self._worker: Optional[Worker] = None

    @property
    def client(self) -> Tenure:
        """The client with which its jobs are pushed, inside its middleware."""
        # Made when it is used: the environment may be set after the import of a module, and a
        # test that follows another speaks to a namespace of its own.
        settings = self.settings
        client = self._client
        if client is None or client._settings != settings:
            client = self._client = Tenure(*_address(settings), **self._options(settings))
            client._layers = self._layers
        return client

    @property
    def async_client(self) -> AsyncTenure:
        """The client with which `apush` pushes: one for each event loop. Needs `httpx`."""
        settings = self.settings
        loop = asyncio.get_running_loop()
        client = self._async_clients.get(loop)
        if client is None or client._settings != settings:
            client = AsyncTenure(*_address(settings), **self._options(settings))
            client._layers = self._layers
            self._async_clients[loop] = client
        return client

    @property
    def settings(self) -> Settings:
        """Where the server is."""
        return _settings.instead or Settings.find(*self._given)

    def _options(self, settings: Settings) -> _ClientOptions:
        return {
            "retry_for": self._retry_for,
            "ca": settings.ca,
            "client_cert": settings.client_cert,
            "client_key": settings.client_key,
            "codec": self.codec,
        }

    def job(
        self,
        queue: str = "default",
        *,
        kind: Optional[str] = None,
        retry_on: Exceptions = (),
        give_up_on: Exceptions = (),
        **defaults: Unpack[JobDefaults],
    ) -> Callable[[H], Task[H]]:
        """Make a handler of a function: plain or `async`.

        Its parameters are the fields of the payload; a single parameter that is a dataclass, a
        TypedDict, a pydantic model or a dict is the payload as a whole. A parameter with the
        annotation `Context` is the run. `kind` is the function's name unless given.

        Which exceptions are worth a retry: with `retry_on`, only those of these classes and of
        their subclasses; any other is a failure for good. One of `give_up_on` always is. Where both
        name a class of an exception, the nearer one decides. `Snooze`, `Final` and the like say it
        themselves, and a run that timed out or was lost is retried by its policy.

        The other options hold for each job that is pushed by the handler, unless `options` says
        otherwise:

        - `priority`: -100 to 100; higher runs first.
        - `delay`: how long it waits before it may run.
        - `timeout`: how long a run may take.
        - `expires_at`: a job that has not begun by then is cancelled: a moment, or a duration from
          when it may run.
        - `retry`: a number of attempts, or
          `{"max_attempts": 5, "max_snoozes": 9, "backoff": {"kind": "exponential", "base": "1s"}}`.
        - `needs`: permits and resources that it holds while it runs: `[limit(…), pool(…)]`, or a
          function of the handler's arguments that returns them.
        - `unique`: a key that one unfinished job holds at a time, or `{"key": …, "for": "1h"}`.
        - `group`: the groups of a queue take turns, so that none holds up the others.
        - `labels`: up to 16 words to find it by, `{"site": "example"}`.
        - `retain`: how long it is kept when it has ended.
        - `on_parent_failure`: what becomes of it if a parent fails: `cancel` or `run`.
        """
        refuse_unknown(defaults, JobDefaults, "@app.job()")
        chosen = {key: value for key, value in defaults.items() if value is not None}
        needs = defaults.get("needs")
        if needs is not None and not callable(needs):
            chosen["needs"] = list(needs)
        # A wrong value is an error of the line that says it, and not of each push.
        plain: dict[str, Any] = {key: each for key, each in chosen.items() if not callable(each)}
        job_fields(**plain)

        def make(function: H) -> Task[H]:
            name = function.__name__ if kind is None else kind
            if (queue, name) in self._tasks:
                raise ValueError(f'queue "{queue}" has a handler of the kind "{name}" already')
            task = Task(
                self, function, queue, name, chosen,
                retry_on=_classes(retry_on), give_up_on=_classes(give_up_on),
            )  # fmt: skip
            self._tasks[(queue, name)] = task
            self._timetable.claim(task)
            return task

        return make

    def schedule(
        self,
        cron: Optional[str] = None,
        *,
        zone: Optional[str] = None,
        every: Optional[Duration] = None,
        payload: Any = None,
        id: Optional[str] = None,
        jitter: Optional[Duration] = None,
        starts_at: Optional[Moment] = None,
        ends_at: Optional[Moment] = None,
        overlap: Optional[str] = None,
        catch_up: Optional[str] = None,
        catch_up_max: Optional[int] = None,
    ) -> Callable[[H], H]:
        """Push a job of a handler at the moments of a cron expression, or `every` so long.

        It stands beside `@app.job`, any number of times. `payload` are the arguments by name, or
        the model that is the whole payload. `id` is `OWNER.KIND` unless given; the other words are
        those of a schedule.

        The decorators of an app are the whole set of schedules of its `owner`: a worker syncs it
        when it starts, and `python -m tenure schedules sync MODULE:APP` does. A schedule whose
        decorator is gone is deleted then. A sync that would delete more than half is refused
        unless forced, and an app without any leaves them alone.

        The jobs have the handler's defaults, without `delay`, `unique` and `on_parent_failure`;
        `expires_at` must be a duration.
        """
        if (cron is None) == (every is None):
            raise TypeError('say when: @app.schedule("0 9 * * *") or @app.schedule(every="1h")')
        timing = {
            "cron": cron,
            "zone": zone,
            "every": every,
            "jitter": jitter,
            "starts_at": starts_at,
            "ends_at": ends_at,
            "overlap": overlap,
            "catch_up": catch_up,
            "catch_up_max": catch_up_max,
        }
        entry = Entry(id, payload, {key: each for key, each in timing.items() if each is not None})

        def note(handler: H) -> H:
            task: Any = handler
            if not isinstance(task, Task):
                self._timetable.wait(handler, entry)
            elif task.app is not self:
                raise ValueError(f"{task.__name__} is a handler of another app")
            else:
                self._timetable.add(task, entry)
            return handler

        return note

    def on_start(self, hook: H) -> H:
        """Run a function in each process that runs handlers, before its first job.

        `hook` takes no arguments and may be a coroutine function. What it raises ends the worker.
        """
        self.hooks.on_start.append(hook)
        return hook

    def on_stop(self, hook: H) -> H:
        """Run a function when a worker ends, after the last job; the last added runs first.

        Where a start hook failed, no stop hook runs. What it raises is logged.
        """
        self.hooks.on_stop.append(hook)
        return hook

    def middleware(self, layer: Middleware) -> None:
        """Put code around each push and each run; what was added first is outermost.

        A push by `client` or `async_client` is one of the app too, also of many jobs at once.
        """
        if not isinstance(layer, Middleware):
            raise TypeError(f"app.middleware() takes a tenure.Middleware, not {layer!r}")
        self._layers.append(layer)

    @property
    def layers(self) -> list[Middleware]:
        """Its middleware, the outermost first."""
        return self._layers

    @property
    def owner(self) -> str:
        """Whose set of schedules its decorators are: the module that makes it, unless given."""
        if self._owner == "__main__":
            raise Unusable('a program\'s own app needs a name for its set: App(owner="shop")')
        return self._owner

    @property
    def schedules(self) -> list[dict[str, Any]]:
        """The schedules of its decorators, as `Tenure.schedules.sync` takes them."""
        return self._timetable.specs(self.owner) if self._timetable else []

    def sync_schedules(self, *, force: bool = False, version: Optional[int] = None) -> Synced:
        """Make its decorators the whole set of schedules of its `owner`."""
        return self.client.schedules.sync(self.owner, self.schedules, force=force, version=version)

    def push(self, task: Pushable[Any], *args: Any, **kwargs: Any) -> Job[Any]:
        """Push a job for a handler: the same as `task.push(...)`, which also checks the types."""
        job: Job[Any] = task.push(*args, **kwargs)
        return job

    def push_job(self, job: Mapping[str, Any]) -> Job[Any]:
        """Push what `task.spec(...)` returned, inside the middleware."""
        return self.client.push(**job)

    async def apush_job(self, job: Mapping[str, Any]) -> AsyncJob[Any]:
        """Push what `task.spec(...)` returned, inside the middleware, in a coroutine."""
        return await self.async_client.push(**job)

    @property
    def tasks(self) -> list[Task[Any]]:
        """Its handlers."""
        return list(self._tasks.values())

    @property
    def queues(self) -> list[str]:
        """The queues of its handlers."""
        return list(dict.fromkeys(queue for queue, _ in self._tasks))

    def find(self, queue: str, kind: str) -> Optional[Task[Any]]:
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
        from .worker.refused import refuse_place

        refuse_place()
        self._worker = Worker(
            self,
            self._served(queues),
            kind=kind,
            concurrency=concurrency,
            ttl=seconds(ttl),
            drain_timeout=seconds(drain_timeout),
            until_empty=until_empty,
        )
        with in_sync(self.settings, self._owner, self.schedules, self.codec):
            self._worker.run()

    def _served(self, queues: Optional[Iterable[str]]) -> list[str]:
        """Return the queues that a worker asks for; one without a handler is a mistake."""
        if not self._tasks:
            raise Unusable("this app has no handlers; give it some with @app.job(...)")
        served = self.queues if queues is None else list(queues)
        for queue in served:
            if queue not in self.queues:
                raise Unusable(
                    f'this app has no handler for queue "{queue}"; it has some for '
                    + ", ".join(self.queues)
                )
        return served

    def stop(self) -> None:
        """Let a running `run` drain, as SIGTERM does."""
        if self._worker is not None:
            self._worker.stop()


def _address(settings: Settings) -> tuple[str, Optional[str], Optional[str]]:
    return settings.url, settings.token, settings.namespace


def _classes(kinds: Exceptions) -> tuple[type[Exception], ...]:
    return kinds if isinstance(kinds, tuple) else (kinds,)


def _module_that_makes_it() -> str:
    """Name the module outside of this package whose code is making an app."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("tenure."):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__"))
