"""How we ask the registry, the third party that sells reports."""

import json
import os
from http.client import HTTPMessage
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

URL = os.environ.get("REGISTRY_URL", "http://127.0.0.1:8100")


class Answer(NamedTuple):
    """What the registry said."""

    status: int
    retry_after: int
    body: dict[str, Any]


def ask(company: str, order: str) -> Answer:
    """Call it once. `order` is the same in all calls for one report, which is sold only once."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": order}
    body = json.dumps({"company": company}).encode()
    try:
        with urlopen(Request(f"{URL}/reports", body, headers), timeout=10) as answer:
            return _read(answer.status, answer.headers, answer.read())
    except HTTPError as refused:
        with refused:
            return _read(refused.code, refused.headers, refused.read())


def _read(status: int, headers: HTTPMessage, body: bytes) -> Answer:
    return Answer(status, int(headers.get("Retry-After", 5)), json.loads(body))
