"""Handlers: functions that jobs are pushed for and run by."""

from __future__ import annotations

import importlib
import inspect
import json
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from ._handlers import HandlerApp
from ._text import describe, message_of, storable, traced
from .context import Context
from .fields import JobOptions, job_fields, refuse_unknown
from .middleware import around_run
from .outcomes import Outcome, Stop
from .payloads import LEVELS, RESULT_BYTES, DoesNotFit, encode, fit, is_model, too_deep
from .pushable import F, Pushable

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Unpack

    P = ParamSpec("P")
else:
    # Python 3.9 has no ParamSpec.
    P = TypeVar("P")

R = TypeVar("R")
Kinds = tuple[type[BaseException], ...]

#: What to do instead of raising `tenure.Stop`, by which a worker stops a handler.
_NOBODY_STOPPED = (
    "the handler raised it, and nobody had stopped the run; raise tenure.Snooze to run again "
    "later, tenure.Final to fail for good"
)


class Unusable(ValueError):
    """An app cannot do what it is asked for: a handler, a queue or a name is missing."""


class Task(Pushable[F]):
    """A handler; made by `App.job`. Calling it calls the function, without a queue between.

    `Task[F]` is that of a function of the type F.
    """

    def __init__(
        self,
        app: HandlerApp,
        function: F,
        queue: str,
        kind: str,
        options: Mapping[str, Any],
        *,
        retry_on: Kinds = (),
        give_up_on: Kinds = (),
    ) -> None:
        super().__init__(app)
        self.function: F = function
        self.queue = queue
        self.kind = kind
        self.__doc__ = function.__doc__
        self.__name__: str = function.__name__
        self.__qualname__: str = function.__qualname__
        self.__module__: str = function.__module__
        self.is_async: bool = inspect.iscoroutinefunction(function)
        #: What `App.job` said of all its jobs.
        self.defaults: dict[str, Any] = dict(options)
        self._retry_on = _exceptions("retry_on", retry_on)
        self._give_up_on = _exceptions("give_up_on", give_up_on)
        both = sorted(each.__name__ for each in self._retry_on & self._give_up_on)
        if both:
            raise ValueError(f"{both[0]} stands in retry_on and in give_up_on; name it in one")
        self._signature = inspect.signature(function)
        self._hints: Optional[dict[str, Any]] = None
        self._whole: Optional[str] = None
        self._context: Optional[str] = None
        self._without_context: Optional[inspect.Signature] = None

    def __call__(self: Task[Callable[P, R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.function(*args, **kwargs)

    def options(self, **options: Unpack[JobOptions]) -> Pushable[F]:
        """Say more about the job: `mail.options(delay="5s", id="m-1").push(to="ann")`.

        The options are those of `Tenure.push`, and go before the defaults of `App.job`.
        """
        refuse_unknown(options, JobOptions, "options()")
        return _WithOptions(self, options)

    def run(self, arguments: dict[str, Any], context: Context) -> Any:
        """Run it inside the middleware of its app; a coroutine function gives a coroutine."""
        if self.is_async:
            return self._run_async(arguments, context)
        try:
            with around_run(self.app.layers, context):
                return self.function(**arguments)
        except Exception as error:
            self._judge(error)
            raise

    async def _run_async(self, arguments: dict[str, Any], context: Context) -> Any:
        try:
            with around_run(self.app.layers, context):
                return await self.function(**arguments)
        except Exception as error:
            self._judge(error)
            raise

    def _judge(self, error: Exception) -> None:
        """Raise `GaveUp` for an exception that is not worth a retry."""
        if not isinstance(error, Outcome) and self.gives_up_on(type(error)):
            raise GaveUp(error) from error

    def gives_up_on(self, kind: type[BaseException]) -> bool:
        """Say whether a run that ends with such an exception is a failure for good.

        The nearest of its classes that `retry_on` or `give_up_on` names decides. If none is named,
        it is retried, unless `retry_on` was given.
        """
        for each in kind.__mro__:
            if each in self._retry_on or each in self._give_up_on:
                return each in self._give_up_on
        return bool(self._retry_on)

    def _job(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: Optional[JobOptions] = None,
    ) -> dict[str, Any]:
        fields = {"kind": self.kind, **self.defaults, **(options or {})}
        if callable(fields.get("needs")):
            fields["needs"] = fields["needs"](*args, **kwargs)
        payload = self.payload(args, kwargs)
        self._check(payload)
        job = job_fields(self.queue, payload, **fields)
        # Said to the client, and not to the server.
        if fields.get("on_duplicate") is not None:
            job["on_duplicate"] = fields["on_duplicate"]
        return job

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
        try:
            bound = self._payload_signature().bind(*args, **kwargs)
        except TypeError as refused:
            raise TypeError(self._refusal(args, kwargs, refused)) from None
        payload: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if self._signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                payload.update(value)
            else:
                payload[name] = value
        return payload

    def _check(self, payload: Any) -> None:
        """Raise if its own worker would refuse the payload: it is read as a worker reads it."""
        if not self._learn():
            return
        try:
            self._read(json.loads(encode(payload, "payload")))
        except DoesNotFit as refused:
            raise TypeError(f"{self.__name__}() refuses it: {refused}") from None

    def _payload_signature(self) -> inspect.Signature:
        """Return the signature without the context, which is no part of a payload."""
        if self._without_context is None:
            parameters = self._signature.parameters.values()
            kept = [each for each in parameters if each.name != self._context]
            self._without_context = self._signature.replace(parameters=kept)
        return self._without_context

    def _refusal(self, args: tuple[Any, ...], kwargs: dict[str, Any], refused: TypeError) -> str:
        """Say which arguments it takes, and what was wrong with those that were given."""
        takes = f"{self.__name__}() takes {_parameters(self._payload_signature())}"
        places = [
            each
            for each in self._payload_signature().parameters.values()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        if len(args) > len(places):
            count = len(args) + len(kwargs)
            return f"{takes}, {count} {'was' if count == 1 else 'were'} given"
        return f"{takes}: {refused}"

    def arguments(self, payload: Any, context: Context) -> dict[str, Any]:
        """Read a payload as the arguments of the function; raise `DoesNotFit`."""
        given = self._read(payload)
        if self._context is not None:
            given[self._context] = context
        return given

    def _read(self, payload: Any) -> dict[str, Any]:
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
        return given

    def __reduce__(self) -> Any:
        # A process finds it where its module has it.
        return find_task, (self.function.__module__, self.function.__qualname__)

    def __repr__(self) -> str:
        return f"Task({self.queue!r}, kind={self.kind!r})"


class _WithOptions(Pushable[F]):
    """A task, and options for one job of it."""

    def __init__(self, task: Task[F], options: JobOptions) -> None:
        super().__init__(task.app)
        self._task = task
        self._options = options

    def _job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return self._task._job(args, kwargs, self._options)


class GaveUp(Outcome):
    """Ends a run for good by an exception that `retry_on` or `give_up_on` does not let retry."""

    def __init__(self, error: Exception) -> None:
        super().__init__(message_of(error))
        self.error: Exception = error

    def settle_item(self) -> dict[str, Any]:
        """Write it as the server reads it."""
        return {**failed(self.error), "final": True}


def _exceptions(name: str, kinds: Kinds) -> frozenset[type[BaseException]]:
    for each in kinds:
        if not (isinstance(each, type) and issubclass(each, Exception)):
            raise TypeError(f"{name} is a tuple of exception classes, and {each!r} is none")
        if issubclass(each, Outcome):
            raise TypeError(f"{name} has {each.__name__}, which says by itself how a run ends")
    return frozenset(kinds)


def _parameters(signature: inspect.Signature) -> str:
    """Write parameters by their names alone, with the sign of those that may be left out.

    >>> def charge(order: str, cents: int = 100, *, test: bool = False) -> None: ...
    >>> _parameters(inspect.signature(charge))
    '(order, cents=100, *, test=False)'
    """
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def find_task(module: str, name: str) -> Task[Any]:
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
        written = encode(value, "result")
    except (TypeError, ValueError) as refused:
        return final(f"its result cannot be stored: {message_of(refused)}")
    except Stop:
        raise
    except BaseException as refused:
        # Writing it may run code of the handler's own: `model_dump` of a model, for example.
        return final(f"its result cannot be stored: {describe(refused)}")
    if deep := too_deep(written):
        return final(
            f"its result cannot be stored: it is nested {deep} levels deep; at most {LEVELS} go"
        )
    size = len(written)
    if size > RESULT_BYTES:
        return final(f"its result has {size} bytes as JSON; at most {RESULT_BYTES} can be stored")
    return {"outcome": "succeeded", "result": value}


def failed(error: BaseException) -> dict[str, Any]:
    """Write what a handler raised as an outcome; its error is bounded when it is sent."""
    if isinstance(error, Stop):
        return {"outcome": "failed", "error": f"{type(error).__name__}: {_NOBODY_STOPPED}"}
    if isinstance(error, Outcome):
        try:
            return error.settle_item()
        except Exception as why:
            text = f"{describe(error)} (its outcome cannot be read: {describe(why)})"
            return {"outcome": "failed", "error": text}
    return {"outcome": "failed", "error": traced(error)}


def final(why: str) -> dict[str, Any]:
    """Write a failure that a retry would not mend."""
    return {"outcome": "failed", "error": storable(why), "final": True}


def unknown_kind(queue: str, kind: str) -> dict[str, Any]:
    """Write the outcome of a job that no handler takes.

    It is retried by its policy: a newer worker may know its kind.
    """
    item = final(f'no handler takes the kind "{kind}" in queue "{queue}"')
    del item["final"]
    return item
