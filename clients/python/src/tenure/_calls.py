"""Methods that are written once, as plans, and called on a blocking or an asyncio client.

`@call` makes a method of a plan, `@stream` one of a stream. On a `Blocking` object the method
returns the result, or an iterator; on an `Awaiting` one a coroutine, or an asynchronous iterator.
Type checkers see each of the two by the type of the object.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar, Union, overload

from ._http import Transport
from ._httpx import AsyncTransport
from ._wire import Plan, Response, Stream
from .errors import from_problem
from .sealing import NEEDS_OF_SEALED, Codec

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
else:
    # Python 3.9 has no ParamSpec, and the plain client has no dependency that brings one.
    P = TypeVar("P")

T = TypeVar("T")


class Blocking:
    """The base of clients whose methods block until they are answered."""

    _transport: Transport


class Awaiting:
    """The base of clients whose methods are awaited."""

    _transport: AsyncTransport


class call(Generic[P, T]):
    """Make a method of a plan."""

    def __init__(self, make: Callable[Concatenate[Any, P], Plan[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: Blocking, owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, instance: None, owner: Any) -> call[P, T]: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        make = self._make

        @functools.wraps(make)
        def bound(*args: Any, **kwargs: Any) -> Any:
            return instance._transport.run(make(instance, *args, **kwargs))

        return bound


class stream(Generic[P, T]):
    """Make a method of a stream."""

    def __init__(self, make: Callable[Concatenate[Any, P], Stream[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: Blocking, owner: Any) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: Any) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, instance: None, owner: Any) -> stream[P, T]: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        make = self._make

        @functools.wraps(make)
        def bound(*args: Any, **kwargs: Any) -> Any:
            return instance._transport.iterate(make(instance, *args, **kwargs))

        return bound


def check(response: Response, codec: Optional[Codec] = None) -> Any:
    """Return the data of an answer, or raise its error.

    `codec` is the one that sealed the payloads of the call.
    """
    if response.status >= 400:
        error = from_problem(response.status, response.data, response.retry_after)
        if codec is not None and error.status == 422 and "/payload/" in (error.pointer or ""):
            error.hint = NEEDS_OF_SEALED
        raise error
    return response.data


AnyTransport = Union[Transport, AsyncTransport]


class Part:
    """A part of a client, such as `client.jobs`: the methods of one subject."""

    def __init__(self, transport: Any) -> None:
        self._transport: Any = transport
