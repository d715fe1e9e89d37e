"""What can be pushed: a handler, or one with options. Its calls take the arguments of the function.

Except for its context, which the run brings. Type checkers cannot take a parameter out of any place
of a signature, so `push`, `apush` and `spec` know these handlers by overloads:

- no context, or the context first: the arguments are checked by place and by name;
- a context called `ctx`, in the last place or by keyword only, behind none to three others: each
  argument must have the type of one of the others; its name and place are checked by the push.

Another place works too, but type checkers ask for the context at the push. `tenure.current()` is
the context without a parameter.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Callable, Generic, Protocol, TypeVar, Union, overload

from ._handlers import HandlerApp
from .context import Context
from .jobs import AsyncJob, Job

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
else:
    # Python 3.9 has no ParamSpec.
    P = TypeVar("P")

F = TypeVar("F", bound=Callable[..., Any], covariant=True)
R = TypeVar("R")
Returned = TypeVar("Returned", covariant=True)
A = TypeVar("A", contravariant=True)
B = TypeVar("B", contravariant=True)
C = TypeVar("C", contravariant=True)

#: What calling a coroutine function returns.
Awaited = Coroutine[Any, Any, R]


class After0(Protocol[Returned]):
    """A function of `ctx` alone, by keyword."""

    def __call__(self, *, ctx: Context) -> Returned:
        """Run it."""
        ...


class After1(Protocol[A, Returned]):
    """A function of one argument and then `ctx`."""

    def __call__(self, a: A, /, *, ctx: Context) -> Returned:
        """Run it."""
        ...


class After2(Protocol[A, B, Returned]):
    """A function of two arguments and then `ctx`."""

    def __call__(self, a: A, b: B, /, *, ctx: Context) -> Returned:
        """Run it."""
        ...


class After3(Protocol[A, B, C, Returned]):
    """A function of three arguments and then `ctx`."""

    def __call__(self, a: A, b: B, c: C, /, *, ctx: Context) -> Returned:
        """Run it."""
        ...


class Pushable(Generic[F]):
    """A handler with the options of its next job; `Task.options` makes one."""

    def __init__(self, app: HandlerApp) -> None:
        self.app: HandlerApp = app

    def _job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a job with these arguments."""
        raise NotImplementedError

    @overload
    def push(
        self: Pushable[Callable[Concatenate[Context, P], Awaited[R]]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Job[R]: ...
    @overload
    def push(
        self: Pushable[Callable[Concatenate[Context, P], R]], *args: P.args, **kwargs: P.kwargs
    ) -> Job[R]: ...
    @overload
    def push(
        self: Pushable[After3[A, B, C, Awaited[R]]],
        *args: Union[A, B, C],
        **kwargs: Union[A, B, C],
    ) -> Job[R]: ...
    @overload
    def push(
        self: Pushable[After3[A, B, C, R]], *args: Union[A, B, C], **kwargs: Union[A, B, C]
    ) -> Job[R]: ...
    @overload
    def push(
        self: Pushable[After2[A, B, Awaited[R]]], *args: Union[A, B], **kwargs: Union[A, B]
    ) -> Job[R]: ...
    @overload
    def push(
        self: Pushable[After2[A, B, R]], *args: Union[A, B], **kwargs: Union[A, B]
    ) -> Job[R]: ...
    @overload
    def push(self: Pushable[After0[Awaited[R]]]) -> Job[R]: ...
    @overload
    def push(self: Pushable[After0[R]]) -> Job[R]: ...
    @overload
    def push(self: Pushable[After1[A, Awaited[R]]], *args: A, **kwargs: A) -> Job[R]: ...
    @overload
    def push(self: Pushable[After1[A, R]], *args: A, **kwargs: A) -> Job[R]: ...
    @overload
    def push(
        self: Pushable[Callable[P, Awaited[R]]], *args: P.args, **kwargs: P.kwargs
    ) -> Job[R]: ...
    @overload
    def push(self: Pushable[Callable[P, R]], *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
    def push(self, *args: Any, **kwargs: Any) -> Job[Any]:
        """Push a job whose payload are these arguments. It blocks: see `apush`."""
        return self.app.push_job(self._job(args, kwargs))

    @overload
    async def apush(
        self: Pushable[Callable[Concatenate[Context, P], Awaited[R]]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> AsyncJob[R]: ...
    @overload
    async def apush(
        self: Pushable[Callable[Concatenate[Context, P], R]], *args: P.args, **kwargs: P.kwargs
    ) -> AsyncJob[R]: ...
    @overload
    async def apush(
        self: Pushable[After3[A, B, C, Awaited[R]]],
        *args: Union[A, B, C],
        **kwargs: Union[A, B, C],
    ) -> AsyncJob[R]: ...
    @overload
    async def apush(
        self: Pushable[After3[A, B, C, R]], *args: Union[A, B, C], **kwargs: Union[A, B, C]
    ) -> AsyncJob[R]: ...
    @overload
    async def apush(
        self: Pushable[After2[A, B, Awaited[R]]], *args: Union[A, B], **kwargs: Union[A, B]
    ) -> AsyncJob[R]: ...
    @overload
    async def apush(
        self: Pushable[After2[A, B, R]], *args: Union[A, B], **kwargs: Union[A, B]
    ) -> AsyncJob[R]: ...
    @overload
    async def apush(self: Pushable[After0[Awaited[R]]]) -> AsyncJob[R]: ...
    @overload
    async def apush(self: Pushable[After0[R]]) -> AsyncJob[R]: ...
    @overload
    async def apush(
        self: Pushable[After1[A, Awaited[R]]], *args: A, **kwargs: A
    ) -> AsyncJob[R]: ...
    @overload
    async def apush(self: Pushable[After1[A, R]], *args: A, **kwargs: A) -> AsyncJob[R]: ...
    @overload
    async def apush(
        self: Pushable[Callable[P, Awaited[R]]], *args: P.args, **kwargs: P.kwargs
    ) -> AsyncJob[R]: ...
    @overload
    async def apush(
        self: Pushable[Callable[P, R]], *args: P.args, **kwargs: P.kwargs
    ) -> AsyncJob[R]: ...
    async def apush(self, *args: Any, **kwargs: Any) -> AsyncJob[Any]:
        """Push a job whose payload are these arguments, in a coroutine.

        It goes by `app.async_client`, which needs `httpx`.
        """
        return await self.app.apush_job(self._job(args, kwargs))

    @overload
    def spec(
        self: Pushable[Callable[Concatenate[Context, P], Any]], *args: P.args, **kwargs: P.kwargs
    ) -> dict[str, Any]: ...
    @overload
    def spec(
        self: Pushable[After3[A, B, C, Any]], *args: Union[A, B, C], **kwargs: Union[A, B, C]
    ) -> dict[str, Any]: ...
    @overload
    def spec(
        self: Pushable[After2[A, B, Any]], *args: Union[A, B], **kwargs: Union[A, B]
    ) -> dict[str, Any]: ...
    @overload
    def spec(self: Pushable[After0[Any]]) -> dict[str, Any]: ...
    @overload
    def spec(self: Pushable[After1[A, Any]], *args: A, **kwargs: A) -> dict[str, Any]: ...
    @overload
    def spec(
        self: Pushable[Callable[P, Any]], *args: P.args, **kwargs: P.kwargs
    ) -> dict[str, Any]: ...
    def spec(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the job as a mapping, for `Tenure.push_all` and `push_many`."""
        return self._job(args, kwargs)
