"""The middleware of the page: what Sentry and OpenTelemetry get of pushes and runs."""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sentry_sdk
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tenure import Tenure
from tenure.testing import run_until_idle

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "python-middleware.md"
EXPORTER = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def _provider() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(provider)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module `jobs` of the page, beside its others."""
    names = []
    for name, code in re.findall(r"```python\n# (\S+)\.py\n(.*?)```", PAGE.read_text(), re.S):
        (tmp_path / f"{name}.py").write_text(code)
        names.append(name)
    assert names == ["jobs", "reporting", "tracing", "timing"]
    monkeypatch.syspath_prepend(tmp_path)
    EXPORTER.clear()
    yield importlib.import_module("jobs")
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def reported() -> Iterator[list[Any]]:
    events: list[Any] = []

    def keep(event: Any, hint: Any) -> None:
        events.append(event)

    sentry_sdk.init(dsn="http://key@127.0.0.1:9/1", before_send=keep, default_integrations=False)
    yield events
    sentry_sdk.init()


@pytest.mark.parametrize("kind", ["threads", "asyncio", "testing"])
def test_the_run_is_a_child_of_its_push(
    module: Any, tenure: Tenure, reported: list[Any], kind: str
) -> None:
    job = module.handle.push(7)
    run_until_idle(module.app) if kind == "testing" else module.app.run(kind=kind, until_empty=True)
    assert job.get(5) == "order 7 is handled"
    pushed, ran = EXPORTER.get_finished_spans()
    assert (pushed.name, ran.name) == ("push orders", "run orders")
    assert pushed.context is not None and ran.parent is not None and ran.attributes is not None
    assert ran.parent.span_id == pushed.context.span_id
    assert ran.attributes["messaging.message.id"] == job.id
    assert ran.status.is_ok or ran.status.is_unset
    assert reported == []


def test_an_error_is_reported_with_its_job(
    module: Any, tenure: Tenure, reported: list[Any]
) -> None:
    job = module.handle.push(-1)
    run_until_idle(module.app, raises=False)
    assert tenure.jobs.get(job.id).state == "failed"
    (event,) = reported
    assert event["exception"]["values"][0]["type"] == "ValueError"
    assert event["tags"] == {"queue": "orders", "kind": "handle"}
    assert event["contexts"]["job"] == {"id": job.id, "attempt": 1}
    status = EXPORTER.get_finished_spans()[-1].status
    assert (status.status_code, status.description) == (trace.StatusCode.ERROR, "ValueError")


def test_an_outcome_that_the_handler_chose_is_no_error(
    module: Any, tenure: Tenure, reported: list[Any]
) -> None:
    from tenure import Snooze

    def wait() -> None:
        raise Snooze("1h")

    module.app.job("orders")(wait).push()
    run_until_idle(module.app)
    assert reported == []
    assert EXPORTER.get_finished_spans()[-1].status.is_unset


def test_a_run_s_time_is_logged(
    module: Any, tenure: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    module.app.middleware(importlib.import_module("timing").Timing())
    module.handle.push(1)
    with caplog.at_level(logging.INFO):
        run_until_idle(module.app)
    assert re.search(r"handle took 0\.\d{3} s", caplog.text)
