"""The page of the Python API, made from the source: signatures and docstrings as they stand."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tenure"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "python-api.md"

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]

#: The page, section by section: a title, a sentence, and the classes and functions of `tenure`.
SECTIONS: list[tuple[str, str, list[str]]] = [
    (
        "Clients",
        "`Tenure` blocks, `AsyncTenure` is awaited. Both have the methods below; those of "
        "`AsyncTenure` are coroutines, and its iterators are asynchronous.",
        [
            "client.Tenure", "pushing.Pushing", "watching.Watching", "jobs._Jobs",
            "scarce._Queues", "scarce._Limits", "scarce._Pools", "recurring._Schedules",
            "recurring._Flows",
        ],
    ),
    (
        "Jobs",
        "What a push and `client.jobs` return; `AsyncJob` has the same methods, awaited. "
        "`Job[str]` is one whose handler returns a `str`.",
        ["records.JobRecord", "jobs._JobMethods", "records.Result"],
    ),
    (
        "Fields of a job",
        "The keywords of `Tenure.push`, `task.options` and `App.job`.",
        ["fields.JobDefaults", "fields.JobOptions", "fields.JobSpec"],
    ),
    ("Needs", "Permits of limits and resources of pools.", ["needs.limit", "needs.pool"]),
    (
        "Locks and leases",
        "What a `with` block of `lock` and `acquire` gives. `AsyncLease` has the same.",
        ["guards.Lease", "records.Resource"],
    ),
    (
        "Apps and handlers",
        "",
        [
            "app.App", "pushable.Pushable", "tasks.Task", "context.Context", "middleware.current",
            "middleware.Middleware",
            "logs.JobFilter",
        ],
    ),
    (
        "Codecs",
        "For [encrypted payloads](../guides/encrypted-payloads.md).",
        ["sealing.Codec", "sealing.ValuePlace"],
    ),
    (
        "How a handler ends its run",
        "A handler returns its result, or raises one of these. `Outcome` is the base of all but "
        "`Stop`.",
        [
            "outcomes.Snooze", "outcomes.RetryIn", "outcomes.Final", "outcomes.Ban",
            "outcomes.Cool", "outcomes.PauseLimit", "outcomes.Stop",
        ],
    ),
    (
        "Errors",
        "All are `tenure.TenureError`, and stand in `tenure.errors`: one for each "
        "[code](../errors/README.md), and some of the client's own.",
        ["errors.TenureError"],
    ),
    (
        "Tests",
        "The module `tenure.testing`; its fixtures are in [the guide](../guides/python.md#tests).",
        ["testing.*"],
    ),
]  # fmt: skip

#: Classes whose constructor is for users.
MADE_BY_USERS = {
    "Tenure",
    "App",
    "Snooze",
    "RetryIn",
    "Final",
    "Ban",
    "Cool",
    "PauseLimit",
    "Server",
    "Clock",
}
#: Titles on the page for classes with a private name: their parts of a client.
SHOWN = {
    "Pushing": "Tenure: pushing",
    "Watching": "Tenure: watching",
    "_Jobs": "tenure.jobs",
    "_Queues": "tenure.queues",
    "_Limits": "tenure.limits",
    "_Pools": "tenure.pools",
    "_Schedules": "tenure.schedules",
    "_Flows": "tenure.flows",
    "JobRecord": "Job: its fields",
    "_JobMethods": "Job: its methods",
    "Pushable": "Task: pushing",
}


@dataclass
class Module:
    """A source file, parsed."""

    name: str
    tree: ast.Module
    lines: list[str]

    @classmethod
    def read(cls, name: str) -> Module:
        text = (SOURCE / f"{name}.py").read_text()
        return cls(name, ast.parse(text), text.splitlines())

    def find(self, name: str) -> list[Union[ast.ClassDef, Function]]:
        found = [
            node
            for node in self.tree.body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and (node.name == name or (name == "*" and not node.name.startswith("_")))
        ]
        assert found, f"there is no {name} in {self.name}.py"
        return found

    def remark(self, line: int) -> str:
        """Return the comment `#: …` above a line, which says what an attribute is."""
        said: list[str] = []
        line -= 2
        while line >= 0 and self.lines[line].strip().startswith("#:"):
            said.insert(0, self.lines[line].strip()[2:].strip())
            line -= 1
        return " ".join(said)


def page() -> str:
    """Make the page."""
    parts = [
        "# Python API",
        "This page is made from the docstrings of [the package](../../clients/python/README.md); "
        "[the guide](../guides/python.md) shows how its parts go together. Durations are seconds, "
        'a `timedelta` or text such as `"2h30m"`; moments are a `datetime` with a zone or RFC 3339 '
        "text.",
    ]
    for title, said, names in SECTIONS:
        parts.append(f"## {title}")
        if said:
            parts.append(said)
        for name in names:
            module_name, _, what = name.partition(".")
            module = Module.read(module_name)
            for node in module.find(what):
                parts += of_class(module, node) if isinstance(node, ast.ClassDef) else of(node, 3)
        if title == "Errors":
            parts.append(errors())
    return "\n\n".join(parts) + "\n"


def of_class(module: Module, node: ast.ClassDef) -> Iterator[str]:
    yield f"### {SHOWN.get(node.name, node.name)}"
    yield from docstring(node)
    attributes = list(attributes_of(module, node))
    told = [each for each in attributes if each.means]
    if told:
        rows = [f"| `{each.name}` | `{each.kind}` | {each.means} |" for each in told]
        yield "\n".join(["| attribute | type | meaning |", "| --- | --- | --- |", *rows])
    plain = [f"`{each.name}: {each.kind}`" for each in attributes if not each.means]
    if plain:
        also = "Also, as" if told else "Attributes, as"
        yield f"{also} the [reference](README.md) says them: {', '.join(plain)}."
    done: set[str] = set()
    for each in node.body:
        if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        is_public = not each.name.startswith("_") or (each.name == "__init__" and takes(each))
        # Of overloads, the last one stands for all: it has the docstring.
        if is_public and "overload" not in decorators(each) and each.name not in done:
            done.add(each.name)
            yield from of(each, 4, node.name)


def takes(node: Function) -> bool:
    """Say whether a constructor is worth showing: one of a class that users make."""
    return len(node.args.args) > 1 and ast.get_docstring(node) is None


def decorators(node: Function) -> set[str]:
    return {ast.unparse(each) for each in node.decorator_list}


def of(node: Function, depth: int, owner: Optional[str] = None) -> Iterator[str]:
    if node.name == "__init__":
        if owner in MADE_BY_USERS:
            yield code(signature(node, owner))
        return
    yield f"{'#' * depth} {node.name}"
    if "property" in decorators(node):
        yield code(f"{node.name}: {returned(node)}")
    else:
        yield code(signature(node, node.name))
    yield from docstring(node)


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def returned(node: Function) -> str:
    """Return what a call gives: a plan gives its result, a stream iterates over its items."""
    if node.returns is None:
        return "None"
    text = ast.unparse(node.returns)
    text = re.sub(r"^Plan\[(.*)\]$", r"\1", text)
    text = re.sub(r"^Stream\[(.*)\]$", r"Iterator[\1]", text)
    text = re.sub(r"\bMany\[", "list[", text)
    return re.sub(r"\bJ\b", "Job", text)


def signature(node: Function, name: str) -> str:
    parts = parameters(node.args)
    result = "" if node.name == "__init__" else f" -> {returned(node)}"
    shown = f"{name}({', '.join(parts)}){result}"
    if len(shown) <= 100:
        return shown
    lines = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{lines}){result}"


def parameters(arguments: ast.arguments) -> list[str]:
    """Write each parameter as a formatter would, without the object itself."""
    whole = re.sub(r"^/, ", "", ast.unparse(arguments))
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(whole + ","):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(whole[start:at].strip())
            start = at + 1
    return [
        re.sub(r"^(\w+: [^=]+)=", r"\1 = ", part).replace("'", '"')
        for part in parts
        if part and not re.match(r"self\b", part)
    ]


def docstring(node: Union[ast.ClassDef, Function]) -> Iterator[str]:
    text = ast.get_docstring(node)
    if not text:
        return
    for block in re.split(r"\n\s*\n", text):
        if block.lstrip().startswith(">>>"):
            yield f"```pycon\n{textwrap.dedent(block)}\n```"
        else:
            yield re.sub(r"(?<!\n)\n(?![-|*])", " ", block)


@dataclass
class Attribute:
    """A public attribute; `means` is empty where its name says all."""

    name: str
    kind: str
    means: str


def attributes_of(module: Module, node: ast.ClassDef) -> Iterator[Attribute]:
    """Return the public attributes: of the class body, or set by its constructor."""
    named: Iterable[ast.stmt] = node.body
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            named = [*node.body, *each.body]
    for each in named:
        if not isinstance(each, ast.AnnAssign):
            continue
        target = each.target
        name = target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)
        if not name.startswith("_"):
            kind = ast.unparse(each.annotation).replace("|", "\\|").replace("'", '"')
            yield Attribute(name, kind, module.remark(each.lineno))


def errors() -> str:
    """Return the table of all errors."""
    from tenure import errors as module

    rows = ["| class | code | base | means |", "| --- | --- | --- | --- |"]
    for kind in vars(module).values():
        if isinstance(kind, type) and module.TenureError in kind.__mro__[1:]:
            means = (inspect.getdoc(kind) or "").split("\n")[0]
            base = kind.__mro__[1].__name__
            code: str = vars(kind).get("code", "")
            rows.append(f"| `{kind.__name__}` | `{code}` | `{base}` | {means} |")
    return "\n".join(rows)
