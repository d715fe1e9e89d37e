"""Handlers: functions that jobs are pushed for and run by."""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar

from .context import Context
from .fields import job_fields
from .jobs import Job
from .outcomes import Outcome
from .payloads import DoesNotFit, encode, fit, is_model

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    from .app import App

    P = ParamSpec("P")
else:
    # Python 3.9 has no ParamSpec.
    P = TypeVar("P")

R = TypeVar("R")

#: The bounds of the server: beyond them it would refuse the settle.
_RESULT_BYTES = 256 * 1024
_ERROR_BYTES = 8 * 1024


class Task(Generic[P, R]):
    """A handler; made by `app.job`. Calling it calls the function, without a queue between."""

    def __init__(
        self,
        app: App,
        function: Callable[..., Any],
        queue: str,
        kind: str,
        options: Mapping[str, Any],
    ) -> None:
        self.app: App = app
        self.function = function
        self.queue = queue
        self.kind = kind
        self.__doc__ = function.__doc__
        self.__name__: str = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self._options = dict(options)
        self.is_async: bool = inspect.iscoroutinefunction(function)
        self._signature = inspect.signature(function)
        self._hints: Optional[dict[str, Any]] = None
        self._whole: Optional[str] = None
        self._context: Optional[str] = None
        self._without_context: Optional[inspect.Signature] = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    def push(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Push a job whose payload are these arguments."""
        return self._push({}, args, kwargs)

    def options(self, **options: Any) -> Pushing[P]:
        """Say more about the job: `mail.options(delay="5s", id="m-1").push(to="ann")`.

        The options are those of `Tenure.push`.
        """
        return Pushing(self, options)

    def spec(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """Return the job as a mapping, for `Tenure.push_all` and `push_many`."""
        return self._fields({}, args, kwargs)

    def _fields(
        self, options: Mapping[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        fields = {**self._options, **options}
        return job_fields(self.queue, self.payload(args, kwargs), kind=self.kind, **fields)

    def _push(
        self, options: Mapping[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Job:
        fields = {"kind": self.kind, **self._options, **options}
        return self.app.client.push(self.queue, self.payload(args, kwargs), **fields)

    def _learn(self) -> dict[str, Any]:
        """Find out about the parameters; not at the decoration, when types may not exist yet."""
        if self._hints is None:
            try:
                hints = typing.get_type_hints(self.function)
            except (NameError, TypeError):
                hints = {}
            names = list(self._signature.parameters)
            for name in names:
                if hints.get(name) is Context or (name == "ctx" and name not in hints):
                    self._context = name
            others = [name for name in names if name != self._context]
            if len(others) == 1 and is_model(hints.get(others[0])):
                kind = self._signature.parameters[others[0]].kind
                if kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
                    self._whole = others[0]
            self._hints = hints
        return self._hints

    def payload(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the payload of arguments: the model itself, or an object of all arguments.

        Arguments that the function does not take are a `TypeError` here, not a failed job later.
        """
        hints = self._learn()
        if self._whole is not None and len(args) == 1 and not kwargs:
            return args[0]
        if self._whole is not None and not args:
            # The fields of the model, by name.
            if set(kwargs) == {self._whole}:
                return kwargs[self._whole]
            return fit(hints[self._whole], kwargs)
        bound = self._payload_signature().bind(*args, **kwargs)
        payload: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if self._signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                payload.update(value)
            else:
                payload[name] = value
        return payload

    def _payload_signature(self) -> inspect.Signature:
        """Return the signature without the context, which is no part of a payload."""
        if self._without_context is None:
            parameters = self._signature.parameters.values()
            kept = [each for each in parameters if each.name != self._context]
            self._without_context = self._signature.replace(parameters=kept)
        return self._without_context

    def arguments(self, payload: Any, context: Context) -> dict[str, Any]:
        """Read a payload as the arguments of the function; raise `DoesNotFit`."""
        hints = self._learn()
        given: dict[str, Any] = {}
        if self._whole is not None:
            given[self._whole] = fit(hints[self._whole], payload)
        else:
            if payload is None:
                payload = {}
            if not isinstance(payload, dict):
                raise DoesNotFit(f"payload must be an object, not {type(payload).__name__}")
            try:
                bound = self._payload_signature().bind(**payload)
            except TypeError as refused:
                raise DoesNotFit(f"payload does not fit {self.__name__}: {refused}") from None
            for name, value in bound.arguments.items():
                if self._signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                    given.update(value)
                else:
                    given[name] = fit(hints.get(name, Any), value, f"payload.{name}")
        if self._context is not None:
            given[self._context] = context
        return given

    def __reduce__(self) -> Any:
        # A process finds it where its module has it.
        return find_task, (self.function.__module__, self.function.__qualname__)

    def __repr__(self) -> str:
        return f"Task({self.queue!r}, kind={self.kind!r})"


class Pushing(Generic[P]):
    """A task with options, of which one job can be pushed."""

    def __init__(self, task: Task[P, Any], options: Mapping[str, Any]) -> None:
        self._task = task
        self._options = options
        self.app: App = task.app

    def push(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Push a job whose payload are these arguments."""
        return self._task._push(self._options, args, kwargs)

    def spec(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """Return the job as a mapping, for `Tenure.push_all` and `push_many`."""
        return self._task._fields(self._options, args, kwargs)


def find_task(module: str, name: str) -> Task[Any, Any]:
    """Import a task."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, Task):
        raise TypeError(f"{module}.{name} is no handler of an app")
    return found


def succeeded(value: Any) -> dict[str, Any]:
    """Write a returned value as an outcome; one that cannot be stored is a failure for good."""
    if value is None:
        return {"outcome": "succeeded"}
    try:
        size = len(encode(value))
    except (TypeError, ValueError) as refused:
        return final(f"its result cannot be stored: {refused}")
    if size > _RESULT_BYTES:
        return final(f"its result has {size} bytes as JSON; at most {_RESULT_BYTES} can be stored")
    return {"outcome": "succeeded", "result": value}


def failed(error: BaseException) -> dict[str, Any]:
    """Write what a handler raised as an outcome."""
    if isinstance(error, Outcome):
        return error.settle_item()
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return {"outcome": "failed", "error": text[-_ERROR_BYTES:]}


def final(why: str) -> dict[str, Any]:
    """Write a failure that a retry would not mend."""
    return {"outcome": "failed", "error": why, "final": True}
