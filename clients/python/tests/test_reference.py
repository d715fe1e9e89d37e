"""The pages of the reference name every field that the server's own description has."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from conftest import Server

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference"

PAGES = {
    "jobs": ["NewJob", "Job", "Unique", "Retry", "Backoff"],
    "queues": ["Queue", "QueueSettings", "QueueCounts"],
    "limits": ["Limit", "LimitSettings", "Rate", "Holder"],
    "pools": ["Pool", "PoolSettings", "Resource", "NewResource"],
    "leases": ["LeaseCall", "Lease", "LeasedResource", "SettleItem", "ResourceVerdict"],
    "workers": ["Worker"],
}


@pytest.fixture(scope="module")
def schemas(memory_server: Server) -> Any:
    with urllib.request.urlopen(f"{memory_server.url}/openapi.json") as answer:
        return json.load(answer)["components"]["schemas"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_every_field(page: str, schemas: Any) -> None:
    # Blocks of commands have marks of their own.
    text = re.sub(r"^```.*?^```$", "", (REFERENCE / f"{page}.md").read_text(), flags=re.S | re.M)
    named = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`[^`]+`", text))))
    for schema in PAGES[page]:
        kinds = schemas[schema].get("oneOf", [schemas[schema]])
        fields = {name for kind in kinds for name in kind.get("properties", {})}
        assert fields, f"{schema} has no fields"
        assert fields - named == set(), f"{schema} on {page}.md"
