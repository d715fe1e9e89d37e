"""Addresses, tokens, the environment, and what is never shown."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Server, free_port
from tenure import AsyncTenure, Tenure, errors, pool
from tenure._settings import Settings

TOKEN = "a-token-of-at-least-32-characters-long"


@pytest.fixture(scope="module")
def closed_server(folder: Path) -> Iterator[Server]:
    server = Server("memory:", folder, TOKEN).start()
    try:
        yield server
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1", 8000),
        ("https://jobs.example.com", "jobs.example.com", 443),
        ("tenure://jobs", "jobs", 7171),
        ("tenure://[::1]:99", "::1", 99),
        ("localhost:7171", "localhost", 7171),
        ("10.0.0.7:80/tenure", "10.0.0.7", 80),
        ("[::1]:7171", "::1", 7171),
        ("redis:6379", "redis", 6379),
    ],
)
def test_an_address_has_these_forms(given: str, host: str, port: int) -> None:
    (address,) = Settings.find(given, None, None).addresses
    assert (address.host, address.port) == (host, port)


@pytest.mark.parametrize(
    "given",
    [
        "redis-sentinel://:geheim@10.0.0.1,10.0.0.2", "file:./data", "memory:", "localhost", "ftp://x",
        "ann:geheim@x:1", "http://ann:geheim@x", "http://x/?token=geheim",
    ],
)  # fmt: skip
def test_a_wrong_address_is_refused_and_not_repeated(given: str) -> None:
    with pytest.raises(ValueError, match="address") as refused:
        Tenure(given)
    assert "geheim" not in str(refused.value)


def test_the_environment_gives_what_the_arguments_do_not(
    monkeypatch: pytest.MonkeyPatch, closed_server: Server
) -> None:
    monkeypatch.setenv("TENURE_URL", closed_server.url)
    monkeypatch.setenv("TENURE_TOKEN", TOKEN)
    monkeypatch.setenv("TENURE_NAMESPACE", "from-env")
    with Tenure() as client:
        client.push("q", id="x")
    with Tenure(namespace="other") as client:
        assert list(client.jobs.list()) == []
    with Tenure() as client:
        assert next(client.jobs.list()).id == "x"


def test_a_wrong_token_is_unauthorized(closed_server: Server) -> None:
    with Tenure(closed_server.url, token="wrong" * 8) as client:
        with pytest.raises(errors.Unauthorized) as refused:
            client.stats()
    assert refused.value.status == 401


def test_namespaces_do_not_see_each_other(m: Tenure, memory_server: Server) -> None:
    m.push("q", id="mine")
    with Tenure(memory_server.url, namespace="another") as other:
        assert [job.id for job in other.jobs.list()] == []


def test_a_bad_namespace_is_refused_by_the_server(memory_server: Server) -> None:
    with Tenure(memory_server.url, namespace="Not Good") as client:
        with pytest.raises(errors.InvalidField) as refused:
            client.stats()
    assert refused.value.pointer == "/header/Tenure-Namespace"


def test_the_token_is_not_shown_by_any_object() -> None:
    client = Tenure("http://127.0.0.1:1", token=TOKEN)
    other = AsyncTenure("http://127.0.0.1:1", token=TOKEN)
    shown = f"{client!r} {other!r} {client._settings!r} {client.jobs!r} {client._transport!r}"
    assert TOKEN not in shown


def test_the_token_is_not_shown_by_errors_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = Tenure(f"http://127.0.0.1:{free_port()}", token=TOKEN, retry_for=0)
    with pytest.raises(errors.Unreachable) as lost:
        # A trace shows this line, so the secret must not stand in it.
        client.push("q", {"password": "".join(["ge", "heim"])})
    told = "".join(traceback.format_exception(lost.type, lost.value, lost.tb)) + caplog.text
    assert TOKEN not in told and "geheim" not in told


def test_payloads_results_and_data_are_not_shown(
    m: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    m.pools.sync("accounts", [{"id": "ann", "data": {"password": "geheim"}}])
    with m.acquire(pool("accounts"), wait="5s") as lease:
        shown = f"{lease!r} {lease.resource!r} {lease.resources}"
    job = m.push("q", {"password": "geheim"})
    shown += f"{job!r} {m.jobs.get(job.id)} {list(m.jobs.list(full=True))}"
    assert "ann" in shown and "geheim" not in shown and "geheim" not in caplog.text


def test_a_server_that_is_not_there_is_unreachable() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with Tenure(url, retry_for=0.2) as client:
        with pytest.raises(errors.Unreachable) as lost:
            client.push("q")
    assert lost.value.status is None and "tenure serve" in str(lost.value)
    assert lost.value.detail == f"{url}: connection refused"


def test_something_else_that_answers_is_no_server() -> None:
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, format: str, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with Tenure(f"http://127.0.0.1:{server.server_address[1]}", retry_for=0) as client:
            with pytest.raises(errors.UnexpectedAnswer, match=client._settings.url):
                client.stats()
    finally:
        server.shutdown()
        server.server_close()


def test_every_code_of_the_server_has_an_exception() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "errors" / "README.md"
    import re

    codes = set(re.findall(r"\| \[`(\w+)`\]", page.read_text()))
    assert len(codes) > 40
    assert codes <= set(errors._BY_CODE)


def test_a_code_that_is_newer_than_the_client_is_a_tenure_error() -> None:
    error = errors.from_problem(409, {"code": "brand_new", "detail": "it is new"})
    assert type(error) is errors.TenureError and error.code == "brand_new"
