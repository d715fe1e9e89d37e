"""Needs of requests: read from settings and meta, with the parts of a request filled in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request

from ..needs import Need, needs_json


def read_needs(given: Any, where: str) -> list[dict[str, Any]]:
    """Read needs: a list of `limit(…)`, `pool(…)` or mappings, or JSON text of such a list.

    >>> read_needs('[{"limit": "site:{host}"}]', "TENURE_NEEDS")
    [{'limit': 'site:{host}'}]
    """
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else []
        except ValueError as wrong:
            raise ValueError(f"{where} is no JSON ({wrong}); write a list of needs") from None
    if isinstance(given, (Mapping, Need)) or not isinstance(given, Iterable):
        raise ValueError(f"{where} is a list of needs, as [limit(...), pool(...)]")
    return needs_json(given)


def fill(needs: Iterable[Mapping[str, Any]], request: Request, spider: str) -> list[dict[str, Any]]:
    """Fill the templates of needs for one request.

    >>> fill([{"limit": "site:{host}"}], Request("http://example.com:81/a"), "news")
    [{'limit': 'site:example.com'}]
    """
    return [
        {
            key: fill_text(value, request, spider) if isinstance(value, str) else value
            for key, value in need.items()
        }
        for need in needs
    ]


def fill_text(text: str, request: Request, spider: str) -> str:
    """Fill a template: `{host}`, `{port}`, `{spider}` and `{meta[KEY]}`."""
    if "{" not in text:
        return text
    parts = urlsplit(request.url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    known = {"host": parts.hostname or "", "port": port, "spider": spider, "meta": request.meta}
    try:
        return text.format_map(known)
    except (KeyError, IndexError, ValueError, AttributeError, TypeError) as wrong:
        raise ValueError(
            f'the need "{text}" cannot be filled for {request.url} ({type(wrong).__name__}: '
            f"{wrong}); it may name {{host}}, {{port}}, {{spider}} and {{meta[KEY]}}"
        ) from None
