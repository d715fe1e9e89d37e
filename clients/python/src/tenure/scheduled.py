"""The schedules that an app's decorators name, and their sync with the server."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Optional

from ._settings import Settings
from ._text import logger
from .client import Tenure
from .durations import duration_text, is_duration
from .errors import EmptySet, RetiresMost, TenureError
from .sealing import Codec
from .tasks import Task, Unusable

if TYPE_CHECKING:
    import logging

log: logging.Logger = logger("tenure.worker")

#: Seconds between two tries while the server is away; the worker itself logs that it is.
_PAUSE_S = 2.0
#: Defaults of a handler that say when a job runs beside others. For a scheduled job its schedule
#: says that, and the server takes none of them.
_OF_PUSHES = ("delay", "unique", "on_parent_failure")


@dataclass(frozen=True)
class Entry:
    """One `@app.schedule`, as it was given."""

    id: Optional[str]
    payload: Any = field(repr=False)
    timing: Mapping[str, Any]


class Timetable:
    """The schedules of an app."""

    def __init__(self) -> None:
        self._entries: list[tuple[Task[Any], Entry]] = []
        #: Entries of functions that have no `@app.job` yet: a decorator below it comes first.
        self._waiting: dict[Callable[..., Any], list[Entry]] = {}

    def __bool__(self) -> bool:
        return bool(self._entries or self._waiting)

    def add(self, task: Task[Any], entry: Entry) -> None:
        """Note a schedule of a handler."""
        self._entries.append((task, entry))

    def wait(self, function: Callable[..., Any], entry: Entry) -> None:
        """Note a schedule of a function that is to become a handler."""
        self._waiting.setdefault(function, []).append(entry)

    def claim(self, task: Task[Any]) -> None:
        """Give a new handler the schedules that its function has."""
        for entry in self._waiting.pop(task.function, []):
            self.add(task, entry)

    def specs(self, owner: str) -> list[dict[str, Any]]:
        """Write all schedules as `Tenure.schedules.sync` takes them."""
        for function in self._waiting:
            raise Unusable(f"{function.__qualname__} has @app.schedule and no @app.job")
        found: dict[str, dict[str, Any]] = {}
        for task, entry in self._entries:
            id = entry.id or f"{owner}.{task.kind}"
            if id in found:
                raise Unusable(
                    f'two schedules have the id "{id}"; give one another: @app.schedule(…, id="…")'
                )
            found[id] = {"id": id, **entry.timing, "job": _job(task, entry)}
        return list(found.values())


def _job(task: Task[Any], entry: Entry) -> dict[str, Any]:
    """Write the job of each moment."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(entry.payload, Mapping):
        kwargs = dict(entry.payload)
    elif entry.payload is not None:
        args = (entry.payload,)
    end = task.defaults.get("expires_at")
    if end is not None and not is_duration(end):
        raise Unusable(
            f"{task.__name__} has a schedule, whose jobs cannot all end at one moment; "
            'give expires_at as a duration, such as "1h"'
        )
    without: Any = dict.fromkeys((*_OF_PUSHES, "expires_at"))
    try:
        job = task._job(args, kwargs, without)
    except (TypeError, ValueError) as refused:
        raise Unusable(f"the schedule of {task.__name__}: {refused}") from None
    return job if end is None else {**job, "expires_in": duration_text(end)}


@contextlib.contextmanager
def in_sync(
    settings: Settings, owner: str, specs: list[dict[str, Any]], codec: Optional[Codec] = None
) -> Iterator[None]:
    """Sync an app's schedules beside a block that runs its worker, as soon as the server answers.

    An app that has none leaves those of its owner alone: it may never have had any.
    """
    if not specs:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(
        target=sync_until_done,
        args=(settings, owner, specs, over, codec),
        name="tenure-schedules",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_PAUSE_S)


def sync_until_done(
    settings: Settings,
    owner: str,
    specs: list[dict[str, Any]],
    over: threading.Event,
    codec: Optional[Codec] = None,
) -> None:
    """Sync schedules as soon as a server answers, unless it is `over` before."""
    with Tenure(
        settings.url, settings.token, settings.namespace, retry_for=0, codec=codec
    ) as client:
        while True:
            try:
                done = client.schedules.sync(owner, specs)
            except TenureError as error:
                if error.status is None or error.status >= 500 or error.status == 429:
                    if over.wait(_PAUSE_S):
                        return
                    continue
                log.error("the schedules of %s are as they were: %s%s", owner, error, _way(error))
            else:
                log.info(
                    "schedules of %s: %d added, %d changed, %d deleted, %d as they were",
                    owner,
                    done.added,
                    done.updated,
                    done.deleted,
                    done.unchanged,
                )
            return


def _way(error: TenureError) -> str:
    """Say how a person does what a worker refuses to do by itself."""
    if not isinstance(error, (EmptySet, RetiresMost)):
        return ""
    return "; to do it all the same: python -m tenure schedules sync MODULE:APP --force"
