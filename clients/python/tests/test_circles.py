"""No circle between the Python files of this repository: a reader of one needs none that needs it.

Imports in functions and those for type checkers count too: they hide a circle and break none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Optional

ROOT = Path(__file__).resolve().parents[3]
#: The folders from which files import each other by name.
FOLDERS = [
    "clients/python/src",
    "clients/python",
    "clients/python/tests",
    "clients/python-server",
    "tools/test",
    "examples",
    *(str(path.parent.relative_to(ROOT)) for path in (ROOT / "examples").glob("*/run")),
]
Needs = dict[str, set[str]]


def modules(folder: Path) -> dict[str, Path]:
    """Find the files below a folder by the names that imports give them."""
    found = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        if not any(part.startswith(".") for part in parts):
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imports(module: str, is_package: bool, code: str, names: Iterable[str]) -> set[str]:
    """Return which of the modules with these names a file imports, wherever in it that stands."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {_nearest(alias.name, names) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")
            above = above[: len(above) - node.level + is_package] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            found |= {_nearest(f"{source}.{alias.name}", names) for alias in node.names}
    return {each for each in found if each is not None} - {module}


def _nearest(name: str, names: Iterable[str]) -> Optional[str]:
    """Return the module of an import, which may name a thing in it."""
    while name and name not in names:
        name = name.rpartition(".")[0]
    return name or None


def circle(start: str, needs: Mapping[str, Iterable[str]]) -> Optional[list[str]]:
    """Return the modules on a way from this one back to it, if there is one."""
    seen: set[str] = set()
    ways = [[start]]
    while ways:
        way = ways.pop()
        for following in sorted(needs.get(way[-1], ())):
            if following == start:
                return [*way, start]
            if following not in seen:
                seen.add(following)
                ways.append([*way, following])
    return None


def test_python_files_need_each_other_in_one_direction() -> None:
    seen = 0
    for folder in FOLDERS:
        files = modules(ROOT / folder)
        needs: Needs = {
            name: imports(name, path.name == "__init__.py", path.read_text(), files)
            for name, path in files.items()
        }
        ways = [circle(name, needs) or [] for name in sorted(needs)]
        shortest = min(filter(None, ways), key=len, default=[])
        assert not shortest, f"{folder}: {' needs '.join(shortest)}"
        seen += sum(map(len, needs.values()))
    assert seen > 700, f"only {seen} imports are seen"


def test_each_form_of_an_import_is_seen() -> None:
    names = ["a", "a.b", "a.b.c", "a.d", "e"]
    code = (
        "import e.what, sys\n"
        "def f():\n    from . import d, other\n"
        "if TYPE_CHECKING:\n    from .b.c import (\n        X,\n    )\n"
    )
    assert imports("a.x", False, code, names) == {"e", "a", "a.d", "a.b.c"}
    assert imports("a", True, code, names) == {"e", "a.d", "a.b.c"}
    assert imports("a.b.c", False, "from ..d import Y\nfrom .. import b", names) == {"a.d", "a.b"}
    assert imports("a.b", True, "from . import c\nfrom .. import d", names) == {"a.b.c", "a.d"}


def test_a_circle_is_seen() -> None:
    needs = {"a": ["b"], "b": ["c"], "c": ["d"], "d": ["b"]}
    assert circle("b", needs) == ["b", "c", "d", "b"]
    assert circle("a", needs) is None
