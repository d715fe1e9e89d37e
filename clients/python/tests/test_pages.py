"""Type checkers find nothing in the Python code of any page: mypy in strict mode, basedpyright.

Each page is a folder, each block a file of it: under the name in its first line, `# jobs.py`, or
under one of its own. A block that goes on with a file says `# jobs.py, continued`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: Blocks that are no programs: how it is done by hand without Tenure, for comparison, with a Redis,
#: a database and functions that stand nowhere; and the header of a request.
FRAGMENTS = {
    ("examples/account-pool/README.md", 2),
    ("examples/async-api/README.md", 2),
    ("examples/capped-spiders/README.md", 1),
    ("examples/reminders/README.md", 3),
    ("examples/reminders/README.md", 4),
    ("examples/reminders/README.md", 5),
    ("examples/source-dispatch/README.md", 3),
    ("README.md", 0),
    ("README.zh-CN.md", 0),
    ("README.zh-CN.md", 2),
    ("README.zh-CN.md", 3),
    ("README.zh-CN.md", 5),
    ("README.zh-CN.md", 7),
}

#: Made of the signatures in the source, which type checkers read there.
SIGNATURES = "docs/reference/python-api.md"

#: Modules that the text of a page names, and not the block.
MODULES = {
    ("clients/python/README.md", 0): "shop.py",
    ("docs/start/python.md", 0): "greetings.py",
}

#: Functions that a reader of a page has of their own.
BROUGHT = {
    "clients/python/README.md": """
def log_in(name: str, password: str) -> str: ...
def fetch(url: str) -> str: ...
""",
    "examples/account-pool/README.md": """
from collections.abc import Iterator
from typing import Any
from tenure import Tenure, pool as pool
t: Tenure
site: str
name: str
database: str
SITE_FORGETS_AFTER_S: float
def read(database: str) -> tuple[int, list[dict[str, Any]]]: ...
class Session:
    logged_out: bool
    def __init__(self, site: str, id: str, token: str, fence: int, name: str) -> None: ...
    def __enter__(self) -> Session: ...
    def __exit__(self, *why: object) -> None: ...
    def pages(self) -> Iterator[object]: ...
""",
    "examples/async-api/README.md": """
from typing import Any, Optional
RETRY: dict[str, Any]
def seconds(text: object) -> float: ...
class registry:
    @staticmethod
    def ask(company: str, order: str) -> Answer: ...
class Answer:
    status: int
    body: dict[str, Any]
    retry_after: float
class reports:
    @staticmethod
    def find(company: str) -> Optional[dict[str, Any]]: ...
    @staticmethod
    def store(company: str, body: dict[str, Any], fence: int) -> bool: ...
""",
    "examples/reminders/README.md": """
from typing import Any, Optional
RETRY: dict[str, Any]
class Wish:
    meeting: str
    who: str
    starts: str
class Meeting:
    starts: str
    people: list[str]
class meetings:
    @staticmethod
    def wishes() -> list[Wish]: ...
    @staticmethod
    def told(wishes: list[Wish]) -> None: ...
    @staticmethod
    def get(meeting: str) -> Optional[Meeting]: ...
def tell(wish: Wish) -> None: ...
def post(meeting: str, who: str, starts: str) -> str: ...
""",
    "examples/source-dispatch/README.md": """
from typing import Any
class Calls:
    def repeat(self, path: str, body: dict[str, Any]) -> dict[str, Any]: ...
class Collector:
    rules: list[str]
    worker: dict[str, Any]
    tenure: Calls
    report: dict[str, Any]
    def changed(self, name: str) -> bool: ...
""",
    "README.zh-CN.md": """
from threading import Event
from typing import Protocol
class Reply(Protocol):
    status: int
    body: dict[str, object]
def crawl_with(name: str, password: str, lost: Event) -> None: ...
def send(meeting: int) -> None: ...
def third_party(company: str) -> Reply: ...
def save(company: str, body: dict[str, object]) -> None: ...
""",
}

#: The program around a block of an example's page; a line that ends with a colon begins the
#: function whose part the block is.
AROUND = {
    ("examples/async-api/README.md", 0): """
import asyncio
from typing import Any
from tenure import AsyncTenure
async def report(tenure: AsyncTenure, company: str, wait: float) -> Any:
""",
    ("examples/async-api/README.md", 1): """
from tenure import AsyncTenure, limit
async def set_up(tenure: AsyncTenure) -> None:
""",
    ("examples/async-api/README.md", 3): """
import logging
from typing import Any
import tenure
app = tenure.App()
""",
    ("examples/capped-spiders/README.md", 0): """
import sqlite3
import time
from tenure import Tenure
def follow(settings: sqlite3.Connection, tenure: Tenure) -> None:
""",
    ("examples/reminders/README.md", 0): """
from datetime import datetime, timedelta
import tenure
app = tenure.App()
@app.job("reminders")
def remind(ctx: tenure.Context, meeting: str, who: str, starts: str) -> str:
    return "sent"
def put(wish: Wish, early: timedelta, key: str) -> None:
""",
    ("examples/reminders/README.md", 1): """
def tell_all(told: list[Wish]) -> None:
""",
    ("examples/reminders/README.md", 2): """
import tenure
app = tenure.App()
""",
    ("examples/source-dispatch/README.md", 1): """
import uuid
def ask_for_work(self: Collector, free: int, TTL: float) -> None:
""",
    ("examples/source-dispatch/README.md", 2): """
def visit(self: Collector, name: str, every: int) -> None:
""",
}

#: Settings of mypy that a page's subject needs. Only a plugin knows the fields of Django's models.
SETTINGS = {
    "docs/guides/django.md": """
plugins = mypy_django_plugin.main
[mypy.plugins.django-stubs]
django_settings_module = settings
""",
}

BLOCK = re.compile(r"^```(?:python|py)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# (\S+\.py)(, continued)?\n")


def pages() -> list[str]:
    own = [ROOT / "README.md", ROOT / "README.zh-CN.md", ROOT / "clients" / "python" / "README.md"]
    # The Chinese pages of the examples have the same blocks.
    examples = sorted((ROOT / "examples").glob("*/README.md"))
    found = [*own, *sorted((ROOT / "docs").rglob("*.md")), *examples]
    names = [str(page.relative_to(ROOT)) for page in found if BLOCK.search(page.read_text())]
    return [name for name in names if name != SIGNATURES and set(numbers(name)) - FRAGMENTS]


def numbers(page: str) -> list[tuple[str, int]]:
    """Number the blocks of a page."""
    return [(page, n) for n in range(len(BLOCK.findall((ROOT / page).read_text())))]


PAGES = pages()


def file_name(page: str, n: int, code: str) -> str:
    """Name the file of a block; no other page has one of the same name, unless the page says it."""
    named = NAMED.match(code)
    return named[1] if named else MODULES.get((page, n), f"{slug(page)}_{n}.py")


def brought(page: str) -> str:
    return f"brought_{slug(page)}"


def slug(page: str) -> str:
    return re.sub(r"\W", "_", page)


def batches() -> list[list[str]]:
    """Divide the pages, so that no batch has two files of one name or two pages' settings.

    mypy takes seconds to read what all pages import, so it reads a batch at once. There the modules
    of one page are in sight of another; basedpyright, which keeps the pages apart, is not misled.
    """
    found: list[tuple[list[str], set[str]]] = []
    for page in PAGES:
        codes = BLOCK.findall((ROOT / page).read_text())
        names = {file_name(page, n, code).split("/")[0] for n, code in enumerate(codes)}
        for others, taken in found:
            alike = all(SETTINGS.get(other) == SETTINGS.get(page) for other in others)
            if alike and not names & taken:
                others.append(page)
                taken |= names
                break
        else:
            found.append(([page], names))
    return [batch for batch, _ in found]


def write(page: str, folder: Path) -> None:
    """Write the blocks of a page as files."""
    for n, code in enumerate(BLOCK.findall((ROOT / page).read_text())):
        if (page, n) in FRAGMENTS:
            continue
        named = NAMED.match(code)
        file = folder / file_name(page, n, code)
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.parent != folder:
            (file.parent / "__init__.py").touch()
        with file.open("a") as out:
            if page in BROUGHT and not named:
                out.write(f"from {brought(page)} import *\n")
            around = AROUND.get((page, n), "")
            out.write(around + (indent(code, "    ") if around.endswith(":\n") else code))
    if page in BROUGHT:
        # A stub, so that the functions need no bodies.
        (folder / f"{brought(page)}.pyi").write_text(BROUGHT[page])


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("pages")
    found = {page: root / slug(page) for page in PAGES}
    for page, folder in found.items():
        folder.mkdir()
        write(page, folder)
    return found


@pytest.mark.skipif("TENURE_LONG" not in os.environ, reason="long: basedpyright reads the same")
@pytest.mark.parametrize("batch", batches(), ids=lambda batch: f"{len(batch)}-from-{batch[0]}")
def test_mypy_finds_nothing_in_the_pages(batch: list[str], folders: dict[str, Path]) -> None:
    chosen = [folders[page] for page in batch]
    root = chosen[0].parent
    settings = SETTINGS.get(batch[0], "")
    config = root / f"{slug(batch[0])}.ini"
    bases = ":".join(str(folder) for folder in chosen)
    config.write_text(
        f"[mypy]\nstrict = True\nexplicit_package_bases = True\nmypy_path = {bases}\n{settings}"
    )
    # A cache of other settings is of no use.
    kind = "plugins" if settings else "pages"
    cache = Path(os.environ.get("MYPY_CACHE_DIR", root / "cache")) / kind
    command = [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", cache]
    done = subprocess.run(
        [*map(str, command), *map(str, chosen)], cwd=chosen[0], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_basedpyright_finds_nothing_in_the_pages(folders: dict[str, Path]) -> None:
    root = next(iter(folders.values())).parent
    settings = {
        "typeCheckingMode": "standard",
        "executionEnvironments": [{"root": folder.name} for folder in folders.values()],
    }
    (root / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tables_name_blocks_that_are_there() -> None:
    for page, n in [*FRAGMENTS, *MODULES, *AROUND]:
        assert (page, n) in numbers(page)
    assert {*BROUGHT, *SETTINGS} <= set(PAGES) and len(PAGES) >= 17


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("examples/")])
def test_the_chinese_page_of_an_example_has_the_same_blocks(page: str) -> None:
    own, chinese = (
        BLOCK.findall((ROOT / name).read_text())
        for name in (page, page.replace("README", "README.zh-CN"))
    )
    assert len(own) == len(chinese)
    for n, (here, there) in enumerate(zip(own, chinese)):
        assert here == there or (page, n) in FRAGMENTS
