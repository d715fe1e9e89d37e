"""A page of the documentation, run as a reader would: block after block, in one shell."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
#: A block of Python is the file that the words before it name last.
FILE = re.compile(r"`(\w+\.py)`[^`]*$")
#: Commands that change nothing: a block of these alone is sent again until it says what the page
#: says.
LOOKS = (
    "tenure explain", "tenure job ", "tenure limit site", "tenure pool accounts", "tenure result",
    "curl -sS", "api jobs/", "api 'jobs/",
)  # fmt: skip
DEADLINE_S = 30.0
#: A block may install a package, and then waits for an index and for other tests.
BLOCK_ENDS_S = 180.0


@dataclass
class Block:
    """What stands between two fences."""

    kind: str
    code: str
    #: The name of the file that it is, for Python.
    file: str = ""


def blocks(page: Path, section: str = "") -> list[Block]:
    """All blocks of a page, or of one of its sections."""
    text = page.read_text()
    if section:
        text = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    found = []
    for match in FENCE.finditer(text):
        named = FILE.search(text[: match.start()].rstrip())
        found.append(Block(match[1], match[2], named[1] if named else ""))
    return found


def matches(expected: str, said: str) -> bool:
    """Whether the lines came in this order; `…` stands for anything, others may come between."""
    lines = iter(said.splitlines())
    for line in expected.splitlines():
        if line.strip() == "…":
            continue
        parts = [r"\s+".join(map(re.escape, re.split(" +", part))) for part in line.split("…")]
        pattern = re.compile(".*".join(parts) + r"\s*")
        if not any(pattern.fullmatch(each) for each in lines):
            return False
    return True


class PageShell:
    """A bash that runs blocks one after the other, with a port of its own for the page's 7171."""

    def __init__(self, folder: Path, binary: str, port: int, environment: dict[str, str]) -> None:
        self._folder, self._port, self._number = folder, str(port), 0
        self._out = folder / "out"
        self._out.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        # The page starts its server on the usual port.
        (programs / "tenure").write_text(
            f'#!/bin/sh\nif [ "$1" = serve ]; then shift; set -- serve --listen 127.0.0.1:{port} '
            f'"$@"; fi\nexec {binary} "$@"\n'
        )
        (programs / "tenure").chmod(0o755)
        (folder / "work").mkdir()
        self._bash = subprocess.Popen(
            ["bash", "--norc"], cwd=folder / "work", stdin=subprocess.PIPE, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={
                **environment, "PATH": f"{programs}:{environment['PATH']}",
                "TENURE_URL": f"http://127.0.0.1:{port}",
            },
        )  # fmt: skip

    def write(self, block: Block) -> None:
        """Save a block of Python as its file."""
        (self._folder / "work" / block.file).write_text(block.code.replace("7171", self._port))

    def run(self, code: str) -> tuple[int, Path]:
        """Run a block; its exit code, and where its output is."""
        self._number += 1
        script, said, done = (
            self._out / f"{self._number}.{name}" for name in ("sh", "said", "done")
        )
        script.write_text(code.replace("7171", self._port))
        assert self._bash.stdin is not None
        self._bash.stdin.write(
            f". {script} </dev/null >{said} 2>&1; echo $? >{done}.part; mv {done}.part {done}\n"
        )
        self._bash.stdin.flush()
        deadline = time.monotonic() + BLOCK_ENDS_S
        while not done.exists():
            assert time.monotonic() < deadline, f"it does not end:\n{code}\n{said.read_text()}"
            time.sleep(0.02)
        return int(done.read_text()), said

    def follow(self, page: list[Block]) -> None:
        """Run all blocks of a page, and compare what they say with what the page says."""
        for block, after in zip(page, [*page[1:], Block("", "")]):
            if block.kind == "python":
                self.write(block)
            elif block.kind == "sh":
                self._one(block.code, after.code if after.kind == "text" else "")
                if block.code.lstrip().startswith("tenure serve") or "\ntenure serve" in block.code:
                    self._listens()

    def _listens(self) -> None:
        """Wait until the server of the page listens: a reader does not paste that fast."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", int(self._port))) == 0:
                    return
            assert time.monotonic() < deadline, "the server of the page does not listen"
            time.sleep(0.02)

    def _one(self, code: str, expected: str) -> None:
        only_looks = all(line.startswith(LOOKS) for line in code.splitlines())
        code_of_end, said = self.run(code)
        deadline = time.monotonic() + DEADLINE_S
        while not (code_of_end == 0 and matches(expected, said.read_text())):
            # A command in the background may still be at its first line.
            assert time.monotonic() < deadline and (only_looks or code_of_end == 0), (
                f"exit code {code_of_end} of\n{code}\nsays\n{said.read_text()}\nand not\n{expected}"
            )
            time.sleep(0.1)
            if only_looks:
                code_of_end, said = self.run(code)

    def close(self) -> None:
        """End all that the page has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()


@contextlib.contextmanager
def page_shell(folder: Path, binary: str, port: int) -> Iterator[PageShell]:
    """Give a shell in a folder of its own, and end it."""
    left_out = ("TENURE_URL", "TENURE_TOKEN", "TENURE_NAMESPACE", "TENURE_STORE")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    shell = PageShell(folder, binary, port, environment)
    try:
        yield shell
    finally:
        shell.close()
