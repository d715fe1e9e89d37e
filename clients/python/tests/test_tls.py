"""Servers of `https://`: whom a client trusts, what it shows, and what it says of a misfit."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Server, free_port
from tenure import App, AsyncTenure, Tenure, errors
from tenure._settings import Settings

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl here")


def openssl(folder: Path, *arguments: str) -> None:
    """Run it in a folder."""
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def signed(folder: Path, name: str, ca: str, names: str) -> None:
    """Write a certificate and its key, signed by an authority that is there."""
    openssl(
        folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr",
    )  # fmt: skip
    (folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
    openssl(
        folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key",
        "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt",
    )  # fmt: skip


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("ca", "other"):
        openssl(
            folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.pem",
        )  # fmt: skip
    signed(folder, "server", "ca", "IP:127.0.0.1")
    signed(folder, "elsewhere", "ca", "DNS:tenure.example")
    signed(folder, "client", "ca", "DNS:client")
    return folder


def served(certificates: Path, name: str, folder: Path, *more: str) -> Server:
    pair = (f"--tls-cert={certificates / name}.crt", f"--tls-key={certificates / name}.key")
    return Server("memory:", folder, None, *pair, *more).start()


@pytest.fixture(scope="module")
def server(certificates: Path, folder: Path) -> Iterator[Server]:
    server = served(certificates, "server", folder)
    try:
        yield server
    finally:
        server.kill()


def https(server: Server) -> str:
    return f"https://127.0.0.1:{server.port}"


def test_a_client_trusts_the_authority_that_it_is_given(
    server: Server, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = str(certificates / "ca.pem")
    with Tenure(https(server), ca=ca) as client:
        assert client.push("mail").queue == "mail"

    async def pushed() -> str:
        client = AsyncTenure(https(server), ca=ca)
        try:
            return (await client.push("mail")).queue
        finally:
            await client.close()

    assert asyncio.run(pushed()) == "mail"
    assert App(https(server), ca=ca).client.push("mail").queue == "mail"
    monkeypatch.setenv("TENURE_CA", ca)
    with Tenure(https(server)) as client:
        assert client.push("mail").queue == "mail"


def why(url: str, **files: Any) -> list[str]:
    """Say why there is no answer, as both clients tell it."""
    with pytest.raises(errors.Unreachable) as blocking:
        Tenure(url, retry_for=0.0, **files).stats()

    async def asked() -> None:
        client = AsyncTenure(url, retry_for=0.0, **files)
        try:
            await client.stats()
        finally:
            await client.close()

    with pytest.raises(errors.Unreachable) as awaited:
        asyncio.run(asked())
    return [str(blocking.value), str(awaited.value)]


def test_what_does_not_fit_is_told_with_what_to_do(
    server: Server, certificates: Path, folder: Path
) -> None:
    ca = str(certificates / "ca.pem")
    for said in why(https(server)):
        assert "of an authority that is not trusted here; name the" in said
    for said in why(https(server), ca=str(certificates / "other.pem")):
        assert "of an authority that is not trusted here" in said
    elsewhere = served(certificates, "elsewhere", folder)
    try:
        for said in why(https(elsewhere), ca=ca):
            assert "is for another name" in said
    finally:
        elsewhere.kill()
    clear = Server("memory:", folder).start()
    try:
        for said in why(https(clear), ca=ca):
            assert "does not speak TLS on this port" in said
    finally:
        clear.kill()


def test_a_server_may_ask_for_the_certificate_of_a_client(certificates: Path, folder: Path) -> None:
    ca = str(certificates / "ca.pem")
    server = served(certificates, "server", folder, f"--tls-client-ca={ca}")
    try:
        own: dict[str, Any] = {name: str(certificates / f"client.{end}") for name, end in _PAIR}
        with Tenure(https(server), ca=ca, **own) as client:
            assert client.push("mail").queue == "mail"
        for said in why(https(server), ca=ca):
            assert "asks callers for a certificate" in said
    finally:
        server.kill()


_PAIR = (("client_cert", "crt"), ("client_key", "key"))


def test_a_wrong_file_is_told_before_anything_is_sent(certificates: Path) -> None:
    url = f"https://127.0.0.1:{free_port()}"
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"ca": "/nowhere/ca.pem"}, "no such file"),
        ({"ca": str(certificates / "ca.key")}, "names a PEM file of certificates"),
        ({"client_key": str(certificates / "client.key")}, "its certificate is not"),
        (
            {
                "client_cert": str(certificates / "client.crt"),
                "client_key": str(certificates / "server.key"),
            },
            "cannot be used with its key",
        ),
    )
    for files, part in cases:
        with pytest.raises(ValueError, match=part):
            Tenure(url, **files)
        assert Settings.find("http://127.0.0.1:1", None, None, **files).tls() is None
