"""What leased resources hold, kept out of what a run says: errors, progress, the worker's log.

The rule is that of docs/guides/pools.md, and the same in the command line's worker: a string of at
least six characters out of the data becomes three dots, and so does the login of an address, out of
the data or not, since libraries print the addresses that they were given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

HIDDEN = "•••"
#: A shorter string stands in too many texts by accident.
_SECRET_CHARACTERS_MIN = 6
_LOGIN = re.compile(r"(?<=://)[^\s/?#\"]+(?=@)")


def _strings(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
        for login in _LOGIN.findall(data):
            yield login
            yield from login.split(":", 1)
    elif isinstance(data, dict):
        for value in data.values():
            yield from _strings(value)
    elif isinstance(data, (list, tuple)):
        for value in data:
            yield from _strings(value)


def secrets_of(data: Iterable[Any]) -> list[str]:
    """Return the strings that must not be shown, the longest first."""
    found = {each for one in data for each in _strings(one)}
    return sorted(
        (each for each in found if len(each) >= _SECRET_CHARACTERS_MIN), key=len, reverse=True
    )


def value_without(value: Any, secrets: list[str]) -> Any:
    """Return a JSON value without these strings in its texts; all else stays as it is."""
    if isinstance(value, str):
        return without(value, secrets)
    if isinstance(value, dict):
        return {without(key, secrets): value_without(each, secrets) for key, each in value.items()}
    if isinstance(value, list):
        return [value_without(each, secrets) for each in value]
    return value


def without(text: str, secrets: Iterable[str]) -> str:
    """Return a text without these strings, also as JSON writes them, and without logins."""
    for secret in secrets:
        for form in (
            secret,
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
        ):
            text = text.replace(form, HIDDEN)
    return _LOGIN.sub(HIDDEN, text)
