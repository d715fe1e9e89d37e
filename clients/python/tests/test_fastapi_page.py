"""The application of the page "FastAPI", run by uvicorn and by the page's own test."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from conftest import browser_here, free_port, until
from tenure import Tenure
from test_jobs import report, settle, take

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "fastapi.md"


@pytest.fixture
def folder_of_page(tmp_path: Path) -> Path:
    blocks = r"```(?:python|html)\n(?:# |<!-- )(\S+\.(?:py|html))(?: -->)?\n(.*?)```"
    for name, code in re.findall(blocks, PAGE.read_text(), re.S):
        (tmp_path / name).write_text(code)
    return tmp_path


@pytest.fixture
def application(tenure: Tenure, folder_of_page: Path) -> Iterator[str]:
    """The application under uvicorn, in the namespace of the test."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "main:api", "--port", str(port)]
    with (folder_of_page / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder_of_page, stdout=log, stderr=log)
    try:

        def listens() -> bool:
            assert process.poll() is None, (folder_of_page / "log").read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        until(listens, 30)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def browser() -> Iterator[Browser]:
    program = browser_here()
    if program is None:
        pytest.skip("there is no Chromium here, or it is left out")
    # As root, which CI is, Chromium starts without its sandbox only. Nothing of the world outside
    # is asked for.
    options = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()


def test_the_test_of_the_page_passes(folder_of_page: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(command, cwd=folder_of_page, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_a_request_waits_for_the_end_of_its_job(
    application: str, tenure: Tenure, folder_of_page: Path
) -> None:
    job = httpx.post(f"{application}/reports", json={"month": "2030-12"}).json()["job"]
    answers: list[httpx.Response] = []

    def ask() -> None:
        url = f"{application}/reports/{job}"
        answers.append(httpx.get(url, params={"wait": 25}, timeout=60))

    thread = threading.Thread(target=ask)
    thread.start()
    assert httpx.get(f"{application}/reports/{job}").status_code == 202
    worker = subprocess.Popen(
        [sys.executable, "-m", "tenure", "worker", "jobs:app"],
        cwd=folder_of_page,
        stderr=subprocess.DEVNULL,
        env=os.environ,
    )
    try:
        thread.join(60)
    finally:
        worker.kill()
        worker.wait()
    assert answers[0].json() == {"state": "succeeded", "report": "report of 2030-12"}


def test_failures_and_wrong_requests_have_their_status(application: str, tenure: Tenure) -> None:
    tenure.push("reports", id="nothing", kind="no-such-kind")
    tenure.jobs.cancel("nothing")
    statuses = [
        httpx.get(f"{application}/reports/nothing").status_code,
        httpx.get(f"{application}/reports/nobody").status_code,
        httpx.get(f"{application}/reports/nobody", params={"wait": 26}).status_code,
        httpx.post(f"{application}/reports", json={"year": 2030}).status_code,
    ]
    assert statuses == [500, 404, 422, 422]


def test_a_server_that_is_away_is_told_as_503(folder_of_page: Path) -> None:
    program = """
from fastapi.testclient import TestClient
import main
from tenure import AsyncTenure
main.AsyncTenure = lambda retry_for: AsyncTenure(retry_for=0.1)
with TestClient(main.api) as http:
    answer = http.post("/reports", json={"month": "2030-12"})
    print(answer.status_code, answer.headers["Retry-After"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder_of_page,
        env={**os.environ, "TENURE_URL": f"http://127.0.0.1:{free_port()}"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "503 5\n", done.stderr


def test_a_browser_shows_the_progress_of_a_report_and_its_end(
    application: str, tenure: Tenure, browser: Browser
) -> None:
    page = browser.new_page()
    page.goto(application)
    page.get_by_role("button").click()
    output = page.get_by_role("status")
    # The run is by hand, so that each report is seen before the next one.
    lease = take(tenure, "reports")
    for pages in (1, 2):
        report(tenure, lease, {"pages": pages})
        expect(output).to_have_text(f"{pages} pages", timeout=20_000)
    assert settle(tenure, lease, "succeeded")["ok"]
    expect(output).to_have_text("succeeded", timeout=20_000)


def test_progress_of_a_report_that_is_not_there_is_404(application: str, tenure: Tenure) -> None:
    assert httpx.get(f"{application}/reports/nobody/progress").status_code == 404
