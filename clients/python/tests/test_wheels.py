"""The two wheels: built by the script, installed from file, and used without this repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import tenure
from conftest import free_port, tenure_binary, until

PACKAGE = Path(__file__).resolve().parents[1]
CARGO = PACKAGE.parents[1] / "Cargo.toml"

PUSH_AND_WORK = """
import tenure
app = tenure.App()
@app.job("mail")
def send(to: str) -> str:
    return f"sent to {to}"
job = send.push(to="ann")
app.run(until_empty=True)
print(job.wait("10s").get())
"""


def run(*command: str, cwd: Path, **env: str) -> str:
    """Run a program outside of the repository, with nothing of the tests' own environment."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("TENURE_", "PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        command, cwd=cwd, env={**kept, **env}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build both, of the binary that the other tests use."""
    folder = tmp_path_factory.mktemp("wheels")
    binary = folder / "tenure"
    shutil.copy(tenure_binary(), binary)
    if shutil.which("strip"):
        # As in a release; all that stays is packed.
        subprocess.run(["strip", str(binary)], check=True)
    out = folder / "out"
    script = str(PACKAGE / "wheels")
    run(script, "--binary", str(binary), "--out", str(out), cwd=folder, PYTHON=sys.executable)
    return {path.name.split("-")[0]: path for path in out.iterdir()}


@pytest.fixture(scope="module")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Install them from file into an environment of their own, without a registry."""
    folder = tmp_path_factory.mktemp("installed")
    # The pip of the tests installs there: to make another one takes longer than all the rest.
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"), cwd=folder)
    found = wheels["tenure"].parent
    programs = folder / "venv" / "bin"
    run(
        sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet",
        "--no-index", "--find-links", str(found), "tenure[server]",
        cwd=folder, PIP_FIND_LINKS=str(found),
    )  # fmt: skip
    yield programs
    shutil.rmtree(folder)


def test_the_server_of_the_wheel_serves_the_client_of_the_wheel(
    installed: Path, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    command = [str(installed / "tenure"), "serve", "--store", "memory:", "--listen", url[7:]]
    server = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        until(lambda: _answers(installed, url, tmp_path), 20)
        python = str(installed / "python")
        assert run(python, "-c", PUSH_AND_WORK, cwd=tmp_path, TENURE_URL=url) == "sent to ann\n"
    finally:
        server.kill()
        server.wait()


def _answers(installed: Path, url: str, cwd: Path) -> bool:
    stats = subprocess.run(
        [str(installed / "tenure"), "stats"], cwd=cwd, env={"TENURE_URL": url}, capture_output=True
    )
    return stats.returncode == 0


def test_the_command_tenure_is_the_server_and_both_have_one_version(
    installed: Path, wheels: dict[str, Path], tmp_path: Path
) -> None:
    told = run(str(installed / "tenure"), "version", cwd=tmp_path)
    version = re.findall(r'(?m)^version = "(.*)"', CARGO.read_text())[0]
    assert version in told
    assert tenure.__version__ == version
    assert [path.name.split("-")[1] for path in wheels.values()] == [version, version]
    with zipfile.ZipFile(wheels["tenure"]) as pure:
        texts = [pure.read(name) for name in pure.namelist() if name.endswith("entry_points.txt")]
        assert not [name for name in pure.namelist() if ".data/" in name]
    assert not [text for text in texts if b"scripts" in text]


def test_the_wheels_say_where_they_can_be_installed(wheels: dict[str, Path]) -> None:
    assert wheels["tenure"].name.endswith("-py3-none-any.whl")
    tag = wheels["tenure_server"].stem.split("-", 2)[2]
    assert tag.startswith("py3-none-")
    assert not tag.endswith("-any")
    if sys.platform == "linux":
        # A wheel for "linux" alone is refused by registries; the binary needs glibc and no more.
        assert re.fullmatch(r"py3-none-manylinux_2_\d+_\w+", tag)


def test_the_wheels_have_types_and_licences(wheels: dict[str, Path]) -> None:
    for path in wheels.values():
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
        assert sum(name.split("/")[-1].startswith("LICENSE-") for name in names) == 2
    with zipfile.ZipFile(wheels["tenure"]) as pure:
        assert "tenure/py.typed" in pure.namelist()


@pytest.mark.parametrize("arguments", [["--binary"], ["--what"], ["--binary", "/nowhere/tenure"]])
def test_the_script_refuses_what_it_cannot_do(arguments: list[str]) -> None:
    env = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run([str(PACKAGE / "wheels"), *arguments], env=env, capture_output=True)
    assert done.returncode == (1 if "/nowhere/tenure" in arguments else 2)
    assert b"wheels: " in done.stderr
