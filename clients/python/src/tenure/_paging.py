"""Lists over their cursors, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Optional, TypeVar

from ._calls import check
from ._wire import Stream, request

T = TypeVar("T")

#: A page; the server never answers more than 8 MiB at once, whatever is asked for.
_PAGE = 200


def walk(
    read: Callable[[Mapping[str, Any]], T],
    *parts: str,
    query: Optional[Mapping[str, Any]] = None,
    max: Optional[int] = None,
) -> Stream[T]:
    """Yield the items of a list, at most `max`, asking for the next page when it is needed."""
    left = max
    cursor: Optional[str] = None
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, 1000)
        page = {**(query or {}), "max": size, "cursor": cursor}
        answer = check((yield request("GET", *parts, query=page)))
        items = [read(item) for item in answer["items"]]
        if left is not None:
            left -= len(items)
        yield items
        cursor = answer.get("next")
        if cursor is None:
            return
