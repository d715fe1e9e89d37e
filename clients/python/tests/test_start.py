"""The pages that a newcomer follows, run as they stand: the three starts and the README's tour."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import free_port, tenure_binary
from page_shell import Block, blocks, matches, page_shell

ROOT = Path(__file__).resolve().parents[3]
TOUR = blocks(ROOT / "README.md", "A tour of two minutes")
PATHS = {
    "shell": blocks(ROOT / "docs" / "start" / "shell.md"),
    "http": blocks(ROOT / "docs" / "start" / "http.md"),
    "python": blocks(ROOT / "docs" / "start" / "python.md"),
    "readme": TOUR,
}


@pytest.mark.parametrize("name", PATHS)
def test_a_page_can_be_followed_literally(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_CLONE", str(ROOT))
    page = PATHS[name]
    assert sum(block.kind == "sh" for block in page) >= 6
    with page_shell(tmp_path, tenure_binary(), free_port()) as shell:
        shell.follow(page)


def test_the_tour_in_chinese_has_the_same_commands() -> None:
    chinese = blocks(ROOT / "README.zh-CN.md", "两分钟上手")
    assert [each.code for each in chinese if each.kind == "sh"] == [
        each.code for each in TOUR if each.kind == "sh"
    ]


def test_a_page_that_says_something_else_is_found(tmp_path: Path) -> None:
    wrong = [Block("sh", "echo hello ann\n"), Block("text", "hello bob\n")]
    fails = [Block("sh", "echo hello; false\n")]
    with (
        page_shell(tmp_path, tenure_binary(), free_port()) as shell,
        pytest.MonkeyPatch.context() as m,
    ):
        m.setattr("page_shell.DEADLINE_S", 0.5)
        for page in (wrong, fails):
            with pytest.raises(AssertionError):
                shell.follow(page)


@pytest.mark.parametrize(
    ("expected", "said", "fits"),
    [
        ("hello ann\n", "note\nhello ann\n", True),
        ("hello ann\nhello bob\n", "hello bob\nhello ann\n", False),
        ("state  cancelled\n", "state     cancelled\n", True),
        ("…\nin use 2\n", "limit x\nin use   2\n", True),
        ("hello\n", "hello ann\n", False),
    ],
)
def test_expected_lines_match_in_order_with_free_spaces_and_ellipses(
    expected: str, said: str, fits: bool
) -> None:
    assert matches(expected, said) is fits
