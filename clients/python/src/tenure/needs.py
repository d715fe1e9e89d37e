"""Needs of a job or a caller beside its turn: permits of limits, resources of pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union


@dataclass(frozen=True)
class Need:
    """One need; made by `limit` and `pool`."""

    fields: tuple[tuple[str, Any], ...]

    def json(self) -> dict[str, Any]:
        """Write it as the server reads it."""
        return dict(self.fields)


AnyNeed = Union[Need, Mapping[str, Any]]


def limit(name: str, *, weight: int = 1, cost: int = 1) -> Need:
    """Need `weight` permits and `cost` rate tokens of a limit.

    >>> limit("site:example.com").json()
    {'limit': 'site:example.com'}
    """
    fields: list[tuple[str, Any]] = [("limit", name)]
    if weight != 1:
        fields.append(("weight", weight))
    if cost != 1:
        fields.append(("cost", cost))
    return Need(tuple(fields))


def pool(
    name: str,
    *,
    tag: Optional[str] = None,
    prefer: Optional[str] = None,
    id: Optional[str] = None,
    count: int = 1,
) -> Need:
    """Need a resource of a pool: any, one with a tag, rather this one, or only this one.

    >>> pool("accounts", tag="cn").json()
    {'pool': 'accounts', 'tag': 'cn'}
    """
    asked = (("tag", tag), ("prefer", prefer), ("id", id), ("count", None if count == 1 else count))
    return Need((("pool", name), *((key, value) for key, value in asked if value is not None)))


def needs_json(needs: Iterable[AnyNeed]) -> list[dict[str, Any]]:
    """Write needs as the server reads them."""
    if isinstance(needs, (str, Mapping, Need)):
        raise TypeError("needs is a list: needs=[limit(...), pool(...)]")
    return [need.json() if isinstance(need, Need) else dict(need) for need in needs]


def describe(needs: Iterable[Mapping[str, Any]]) -> str:
    """Name needs for a message.

    >>> describe([{"limit": "lock:deploy"}, {"pool": "accounts", "tag": "cn"}])
    'lock "deploy" and pool "accounts" (cn)'
    """
    return " and ".join(_describe_one(need) for need in needs)


def _describe_one(need: Mapping[str, Any]) -> str:
    if "limit" in need:
        family, _, key = str(need["limit"]).partition(":")
        return f'lock "{key}"' if family == "lock" and key else f'limit "{need["limit"]}"'
    which = need.get("tag") or need.get("id")
    return f'pool "{need.get("pool")}"' + (f" ({which})" if which else "")
