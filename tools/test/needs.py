"""Programs of others that tests need: found, or installed without a password or a service."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import processes
from cargo import TARGET
from report import Report

#: Each tool lies in a folder named after a hash of what it is, and a link by its name leads there.
TOOLS = TARGET / "tools"
#: Their versions are fixed: what a test finds must not depend on the day.
SCRAPYD, AXE, UV = "scrapyd==1.6.0", "axe-core@4.14.1", "uv==0.13.9"
#: Any of them does; the first one is smaller than the others, and computes less.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Need:
    """A program that some tests need, under the name that --without takes."""

    name: str
    #: Says what is missing, and how to get it.
    advice: str
    is_here: Callable[[], bool]
    #: Installs it; whether that went well.
    install: Callable[[], bool]


def needs(without: Set[str]) -> list[Need]:
    """List what a run needs, less what only these parts of it use."""
    found = [
        Need(
            "redis",
            "there is no Redis here; install redis-tools (apt-get install redis-tools) or put a"
            " redis-server of version 7 or later on the PATH",
            lambda: _any_program("redis-server", "valkey-server", "redis-check-rdb"),
            # redis-server would start a service. redis-tools has the server, as a checker.
            lambda: _debian("redis-tools"),
        ),
        Need(
            "prometheus",
            "there is no Prometheus here; put prometheus and promtool on the PATH (apt-get download"
            " prometheus, and dpkg -x of it, starts no service)",
            lambda: _any_program("prometheus") and _any_program("promtool"),
            _prometheus,
        ),
        Need(
            "scrapyd",
            "scrapyd could not be installed from PyPI; it needs Python's venv (apt-get install"
            " python3-venv) and the network",
            lambda: (TOOLS / "scrapyd" / "bin" / "scrapyd").exists(),
            lambda: _venv(SCRAPYD),
        ),
        Need(
            "browser",
            "there is no Chromium here; install it (apt-get install chromium)",
            lambda: _any_program(*BROWSERS),
            # A third of the size, and fewer processes.
            lambda: _debian(BROWSERS[0]) or _debian("chromium"),
        ),
        Need(
            "axe-core",
            "axe-core could not be installed from npm; it needs npm (apt-get install npm) and the"
            " network",
            lambda: (TOOLS / "axe-core/node_modules/axe-core/axe.min.js").exists(),
            _axe_core,
        ),
        Need(
            "node",
            "there is no Node 18 or newer here; install nodejs (apt-get install nodejs) or put node"
            " on the PATH",
            _node_is_here,
            lambda: _debian("nodejs"),
        ),
        Need(
            "typescript",
            "the TypeScript package needs Node 20.19 or newer with npm, which are not here; install"
            " them (https://nodejs.org)",
            lambda: _node_is_here(20, 19) and _any_program("npm"),
            lambda: False,
        ),
    ]
    users = {
        "scrapyd": "long",
        "axe-core": "browser",
        "node": "python",
        "typescript": "typescript",
    }
    unused = {name for name, user in users.items() if user in without}
    return [need for need in found if need.name not in unused]


def make_sure(report: Report, wanted: Sequence[Need], without: Sequence[str]) -> list[str]:
    """Install what is missing. Answers the names of what could not be installed."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    _link("scrapyd", SCRAPYD)
    _link("axe-core", AXE)
    missing = []
    for need in wanted:
        if need.name in without or need.is_here() or processes.stopping.is_set():
            continue
        step = f"install {need.name}"
        report.begin(step)
        if need.install() and need.is_here():
            report.end(step)
        elif not processes.stopping.is_set():
            rest = f"or run ./test --without {need.name}. All the rest is run now"
            report.end(step, f"{need.advice}, {rest}")
            missing.append(need.name)
    return missing


def use_tools() -> None:
    """Have tests and installs find Prometheus and uv in `target/tools`, if there are no others."""
    unpacked = [str(TOOLS / "prometheus/usr/bin"), str(_folder(UV) / "bin")]
    os.environ["PATH"] += os.pathsep + os.pathsep.join(unpacked)


def install_uv() -> None:
    """Install uv, by which all other packages of Python are installed faster than by pip.

    Nothing needs it: where it is not, pip installs.
    """
    if not shutil.which("uv"):
        _venv(UV)


def _any_program(*names: str) -> bool:
    return any(map(shutil.which, names))


def _node_is_here(major: int = 18, minor: int = 0) -> bool:
    check = (
        "const [major, minor] = process.versions.node.split('.').map(Number);"
        f"process.exit(major > {major} || (major === {major} && minor >= {minor}) ? 0 : 1)"
    )
    found = filter(None, map(shutil.which, ("node", "nodejs")))
    return any(
        subprocess.run([node, "-e", check], stderr=subprocess.DEVNULL).returncode == 0
        for node in found
    )


def _run(*words: str, cwd: Path = TARGET) -> bool:
    """Run a command; shows what it said if it fails."""
    code, output = processes.output(words, cwd)
    if code != 0:
        print(output, file=sys.stderr)
    return code == 0


def _apt_get(*words: str) -> bool:
    as_root = ["env", "DEBIAN_FRONTEND=noninteractive"]
    if os.geteuid() != 0:
        sudo = shutil.which("sudo")
        if not sudo or subprocess.run([sudo, "-n", "true"], stderr=subprocess.DEVNULL).returncode:
            return False
        as_root = [sudo, "-n", *as_root]
    return bool(shutil.which("apt-get")) and _run(*as_root, "apt-get", "-q", *words)


def _debian(package: str) -> bool:
    # A mirror that is gone does not matter if the others have it.
    _apt_get("update")
    return _apt_get("install", "-y", "--no-install-recommends", package)


def _folder(wanted: str) -> Path:
    """Name the folder of a tool: another one for each version of it and of Python."""
    return TOOLS / hashlib.sha256(f"{wanted} {sys.version}".encode()).hexdigest()[:16]


def _link(name: str, wanted: str) -> None:
    link = TOOLS / name
    if not link.is_symlink() or os.readlink(link) != _folder(wanted).name:
        link.unlink(missing_ok=True)
        link.symlink_to(_folder(wanted).name)


def _venv(wanted: str) -> bool:
    venv = _folder(wanted)
    pip = [str(venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
    uv = ["uv", "pip", "install", "--quiet", "--compile-bytecode"]
    uv += ["--python", str(venv / "bin/python")]
    by_uv = _any_program("uv")
    made = by_uv and _run("uv", "venv", "--quiet", "--seed", "--python", sys.executable, str(venv))
    if not made and not _run(sys.executable, "-m", "venv", "--clear", str(venv)):
        return False
    return (by_uv and _run(*uv, wanted)) or _run(*pip, wanted)


def _axe_core() -> bool:
    options = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts"]
    return _run("npm", "install", "--prefix", str(_folder(AXE)), *options, AXE)


def _prometheus() -> bool:
    # Debian's package starts a service when it is installed, so its programs are only unpacked.
    folder = TOOLS / "prometheus"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if not shutil.which("dpkg"):
        return False
    _apt_get("update")
    # Everybody may download.
    download = ["apt-get", "-q", "download", "prometheus"]
    if not shutil.which("apt-get") or not _run(*download, cwd=folder):
        return False
    packed = next(folder.glob("prometheus_*.deb"))
    unpacked = _run("dpkg", "-x", str(packed), str(folder))
    packed.unlink()
    return unpacked
