"""Where things are: this repository, the command, Python and Node with their packages."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


class CannotRun(Exception):
    """Something that the example needs is missing; the text says what, and what to do."""


def tenure() -> str:
    """The `tenure` command.

    `TENURE_BIN`, this repository's build, the one on the PATH, or a build that is made now.
    """
    named = os.environ.get("TENURE_BIN")
    if named:
        if not os.access(named, os.X_OK):
            raise CannotRun(f"TENURE_BIN is {named!r}, which is no program; correct it or unset it")
        return named
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = target / "release" / "tenure"
    if built.exists():
        return str(built)
    found = shutil.which("tenure")
    if found:
        return found
    if not shutil.which("cargo"):
        raise CannotRun(
            "there is no 'tenure' here; install Rust (https://rustup.rs), and it is built by itself"
        )
    print("building tenure (the first time takes some minutes)", flush=True)
    built_now = subprocess.run(["cargo", "build", "--release", "--bin", "tenure"], cwd=ROOT)
    if built_now.returncode != 0:
        raise CannotRun("cargo could not build tenure (see above)")
    return str(built)


def python(example: Path) -> str:
    """The interpreter of an environment with what `requirements.txt` of this example lists.

    It lies in the example's own folder, as `.venv`, and is made when it is missing or the list has
    changed.
    """
    wanted = example / "requirements.txt"
    if not wanted.exists():
        return sys.executable
    venv = example / ".venv"
    mark = venv / "installed"
    digest = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()
    interpreter = venv / "bin" / "python"
    if mark.exists() and mark.read_text() == digest:
        return str(interpreter)
    print(f"installing what {wanted.relative_to(ROOT)} lists", flush=True)
    shutil.rmtree(venv, ignore_errors=True)
    # uv takes a tenth of the time, where it is; pip also knows indexes and certificates of its own
    # settings.
    by_uv = shutil.which("uv") is not None
    makers = [["uv", "venv", "--quiet", "--seed", "--python", sys.executable]] if by_uv else []
    makers.append([sys.executable, "-m", "venv", "--clear"])
    if all(subprocess.run([*maker, str(venv)]).returncode != 0 for maker in makers):
        raise CannotRun(
            "Python could not make a virtual environment; install it: apt-get install python3-venv"
        )
    pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    uv = ["uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", str(interpreter)]
    installers = [uv, pip] if by_uv else [pip]
    # Paths in the list are relative to the example.
    if all(
        subprocess.run([*installer, "-r", "requirements.txt"], cwd=example).returncode != 0
        for installer in installers
    ):
        raise CannotRun(
            f"pip could not install {wanted.relative_to(ROOT)} (see above); it takes the network"
        )
    mark.write_text(digest)
    return str(interpreter)


@functools.cache
def node() -> str:
    """Node, for the programs in TypeScript, which are compiled into `built`.

    Their packages are those of `package.json`, with the package of this repository. All of it is
    made when it is missing or its sources have changed.
    """
    found = shutil.which("node")
    asked = [found, "-p", "process.versions.node"]
    version = subprocess.run(asked, capture_output=True, text=True).stdout.strip() if found else "0"
    if not shutil.which("npm") or [int(part) for part in version.split(".")] < [20, 19]:
        raise CannotRun("--node needs Node 20.19 or newer with npm; install it: https://nodejs.org")
    client = ROOT / "clients" / "typescript"
    packages = [*(client / "src").rglob("*.ts"), client / "package-lock.json"]
    packages += [EXAMPLES / "package.json", EXAMPLES / "package-lock.json"]
    # As tsconfig.json has them.
    programs = [*EXAMPLES.glob("*/*.ts"), *EXAMPLES.glob("*/service/*.ts")]
    build = ["run", "build"]
    install = [(client, ["ci"]), (client, build), (EXAMPLES, ["ci"])]
    _make(EXAMPLES / "node_modules", packages, version, install)
    programs += [*packages, EXAMPLES / "tsconfig.json"]
    _make(EXAMPLES / "built", programs, version, [(EXAMPLES, build)])
    return str(found)


def _make(
    folder: Path, sources: list[Path], version: str, steps: list[tuple[Path, list[str]]]
) -> None:
    """Run commands of npm, unless the folder was made of these sources before."""
    digest = hashlib.sha256(version.encode())
    for source in sorted(sources):
        digest.update(source.read_bytes())
    mark = folder / "made"
    if mark.exists() and mark.read_text() == digest.hexdigest():
        return
    for where, words in steps:
        print(f"npm {' '.join(words)} in {where.relative_to(ROOT)}", flush=True)
        command = ["npm", *words, "--silent", "--no-audit", "--no-fund"]
        if subprocess.run(command, cwd=where, stdin=subprocess.DEVNULL).returncode != 0:
            raise CannotRun("npm failed (see above); it takes the network")
    mark.write_text(digest.hexdigest())


def free_port() -> int:
    """A port of 127.0.0.1 on which nothing listens at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
