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


#: A need as an object, as the server reads it, or as text: `"limit:x"`, `"pool:accounts#cn"`.
AnyNeed = Union[Need, Mapping[str, Any], str]


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


#: The options that each kind of need takes as text, and whether they are numbers.
_OPTIONS = {
    "limit": {"weight": True, "cost": True},
    "pool": {"prefer": False, "id": False, "count": True},
}


def read_need(text: str) -> Need:
    """Read a need as the command line writes it.

    >>> read_need("limit:site:example.com,weight=2") == limit("site:example.com", weight=2)
    True
    >>> read_need("pool:accounts#cn,prefer=ann") == pool("accounts", tag="cn", prefer="ann")
    True
    """
    head, *options = text.split(",")
    kind, colon, name = head.partition(":")
    if kind not in _OPTIONS or not colon or not name:
        raise ValueError(f'"{text}" is not a need; write "limit:NAME" or "pool:NAME#TAG"')
    given: dict[str, Any] = {}
    for option in options:
        word, equals, value = option.partition("=")
        known = _OPTIONS[kind]
        if word not in known or not equals or word in given:
            takes = ", ".join(f"{each}=…" for each in known)
            raise ValueError(f'"{option}" in "{text}": a {kind} takes {takes}, each once')
        if known[word] and not value.isdecimal():
            raise ValueError(f'"{option}" in "{text}" must be a whole number')
        given[word] = int(value) if known[word] else value
    if kind == "limit":
        return limit(name, **given)
    name, _, tag = name.partition("#")
    return pool(name, tag=tag or None, **given)


def _one(need: AnyNeed) -> dict[str, Any]:
    if isinstance(need, str):
        need = read_need(need)
    return need.json() if isinstance(need, Need) else dict(need)


def needs_json(needs: Iterable[AnyNeed]) -> list[dict[str, Any]]:
    """Write needs as the server reads them."""
    if isinstance(needs, (str, Mapping, Need)):
        raise TypeError('needs is a list: needs=["limit:x", pool("accounts", tag="cn")]')
    return [_one(need) for need in needs]


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
