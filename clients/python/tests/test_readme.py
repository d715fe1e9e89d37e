"""Every example of the README, the guide and the docstrings is run against a real server."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Server
from tenure import App, Tenure

PACKAGE = Path(__file__).resolve().parents[1]
README = PACKAGE / "README.md"
GUIDE = PACKAGE.parents[1] / "docs" / "guides" / "python.md"

#: Functions that a reader of an example has of their own.
BROUGHT: dict[str, Any] = {
    "log_in": lambda name, password: f"captcha for {name}",
    "fetch": lambda url: f"page of {url}",
}


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


def in_a_namespace(server: Server, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("TENURE_URL", server.url)
    monkeypatch.setenv("TENURE_NAMESPACE", name)
    monkeypatch.delenv("TENURE_TOKEN", raising=False)


def run(code: str) -> dict[str, Any]:
    found: dict[str, Any] = dict(BROUGHT)
    exec(compile(code, "example", "exec"), found)
    return found


PAGES = [(page, n) for page in (README, GUIDE) for n in range(len(blocks(page)))]


@pytest.mark.parametrize(("page", "n"), PAGES, ids=[f"{page.stem}-{n}" for page, n in PAGES])
def test_an_example_runs(
    page: Path, n: int, memory_server: Server, monkeypatch: pytest.MonkeyPatch,
    namespace: str, tmp_path: Path,
) -> None:  # fmt: skip
    in_a_namespace(memory_server, monkeypatch, namespace)
    code = blocks(page)[n]
    if "from shop import" in code:
        # The quick start: the block before is that module, run by a worker.
        (tmp_path / "shop.py").write_text(blocks(page)[n - 1])
        worker = subprocess.Popen(
            [sys.executable, "-m", "tenure", "worker", "shop:app"],
            cwd=tmp_path, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        monkeypatch.syspath_prepend(tmp_path)
        try:
            assert run(code)["job"].wait(5).get() == "sent 'hello' to ann"
        finally:
            worker.kill()
            worker.wait()
            sys.modules.pop("shop", None)
        return
    found = run(code)
    app = found.get("app")
    if isinstance(app, App) and app.client.stats().jobs["ready"]:
        app.run(until_empty=True)
        assert app.client.stats().jobs["succeeded"] > 0


def five() -> list[str]:
    return blocks(README)[2:7]


def test_the_five_snippets_have_twelve_lines_at_most() -> None:
    counts = [len([line for line in code.splitlines() if line.strip()]) for code in five()]
    assert len(counts) == 5
    assert max(counts) <= 12


def test_the_snippet_of_the_account_bans_it(m: Tenure, monkeypatch: Any, namespace: str) -> None:
    monkeypatch.setenv("TENURE_URL", m._settings.url)
    monkeypatch.setenv("TENURE_NAMESPACE", namespace)
    run(five()[0])
    assert m.pools.resource("accounts", "ann").reason == "captcha"


def test_the_snippet_of_the_reminder_moves_one_job(
    m: Tenure, monkeypatch: Any, namespace: str
) -> None:
    monkeypatch.setenv("TENURE_URL", m._settings.url)
    monkeypatch.setenv("TENURE_NAMESPACE", namespace)
    run(five()[2])
    (job,) = m.jobs.list()
    assert (job.state, job.run_at and job.run_at.hour) == ("cancelled", 10)


def test_the_snippet_of_the_query_answers_repeated_questions(
    m: Tenure, monkeypatch: Any, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from test_jobs import end

    monkeypatch.setenv("TENURE_URL", m._settings.url)
    monkeypatch.setenv("TENURE_NAMESPACE", namespace)
    answer = run(five()[3])["answer"]
    assert capsys.readouterr().out == "still processing\n"
    end(m, "questions", result="seven")
    assert [answer("how many?"), answer("how many?")] == ["seven", "seven"]
    assert len(list(m.jobs.list())) == 1


def test_the_snippet_of_the_collector_makes_schedules_whose_jobs_run(
    m: Tenure, monkeypatch: Any, namespace: str
) -> None:
    monkeypatch.setenv("TENURE_URL", m._settings.url)
    monkeypatch.setenv("TENURE_NAMESPACE", namespace)
    app = run(five()[4])["app"]
    job = m.schedules.run_now("source-42")
    app.run(until_empty=True)
    assert m.jobs.wait(job.id, 5).get() == len("page of https://example.com/feed")


def docstrings() -> list[tuple[str, str, str]]:
    """All docstrings with examples: module, name, text."""
    found = []
    for path in sorted((PACKAGE / "src" / "tenure").rglob("*.py")):
        parts = path.relative_to(PACKAGE / "src").with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node)
                if text and ">>>" in text:
                    found.append((module, getattr(node, "name", "module"), text))
    return found


DOCSTRINGS = docstrings()


@pytest.mark.parametrize(
    ("module", "name", "text"), DOCSTRINGS, ids=[f"{each[0]}.{each[1]}" for each in DOCSTRINGS]
)
def test_an_example_of_a_docstring_says_what_comes(
    module: str, name: str, text: str, m: Tenure, monkeypatch: pytest.MonkeyPatch, namespace: str
) -> None:
    monkeypatch.setenv("TENURE_NAMESPACE", namespace)
    m.pools.sync("accounts", [{"id": "ann", "tags": ["cn"], "data": {"password": "x"}}])
    known = {**vars(importlib.import_module(module)), "t": m, "url": m._settings.url}
    known.update(pool=importlib.import_module("tenure").pool)
    test = doctest.DocTestParser().get_doctest(text, known, f"{module}.{name}", None, None)
    assert test.examples
    runner = doctest.DocTestRunner(verbose=False)
    told: list[str] = []
    runner.run(test, out=told.append)
    assert runner.failures == 0, "".join(told)


def test_there_are_examples_in_docstrings() -> None:
    assert len(DOCSTRINGS) >= 12
    assert os.path.exists(GUIDE)
