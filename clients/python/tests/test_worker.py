"""What handlers get and say, by threads, an event loop and processes."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import Server, Workers, tenure_binary, until
from forked import Program
from tenure import App, JobFilter, Tenure, errors
from tenure._leasing import worker_fields
from tenure.tasks import Unusable
from test_worker_ends import is_gone

KINDS = ["threads", "asyncio", "processes"]


class Running:
    """A worker that runs during a module, and a client beside it."""

    def __init__(self, client: Tenure, workers: Workers, process: Program) -> None:
        self.client = client
        self.workers = workers
        self.process = process

    def run(self, kind: str, payload: Any = None, **options: Any) -> Any:
        """Push a job and wait for its end."""
        return self.client.push("work", payload, kind=kind, **options).wait(15)


def tenure_says(client: Tenure, *arguments: str) -> str:
    """What the command line says of the client's namespace."""
    settings = client._settings
    env = {"TENURE_URL": settings.url, "TENURE_NAMESPACE": settings.namespace or ""}
    command = [tenure_binary(), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module", params=KINDS)
def running(
    request: pytest.FixtureRequest, memory_server: Server, folder: Path
) -> Iterator[Running]:
    # Another file has this fixture, too: its workers are listed for a minute after their end.
    namespace = f"running-{request.param}-{uuid.uuid4().hex[:8]}"
    workers = Workers(memory_server.url, namespace, folder)
    process = workers.start("--kind", request.param, "--concurrency", "2")
    try:
        with Tenure(memory_server.url, namespace=namespace, retry_for=15) as client:
            yield Running(client, workers, process)
    finally:
        workers.kill_all()


def test_a_payload_becomes_arguments_and_the_return_value_the_result(running: Running) -> None:
    assert running.run("add", {"a": 1, "b": 5}).get() == 6
    assert running.run("add", {"a": 1}).get() == 3


def test_a_dataclass_is_read_from_the_payload(running: Running) -> None:
    assert running.run("mail", {"to": "ann"}).get() == "1 to ann"


def test_a_typed_dict_and_a_context_go_together(running: Running) -> None:
    result = running.run("fetch", {"url": "https://example.com/"}).get()
    assert (result["url"], result["attempt"]) == ("https://example.com/", 1)
    assert result["fence"] > 0


def test_a_coroutine_is_run_by_every_kind_of_worker(running: Running) -> None:
    result = running.run("later", {"word": "hello"}, id="l-1")
    assert result.get() == "hello l-1"


@pytest.mark.parametrize("kind", ["log_words", "log_words_later"])
def test_what_a_handler_logs_names_its_job(running: Running, kind: str) -> None:
    job = running.run(kind).get()
    running.workers.says(f"INFO job {job}: seen")


def test_a_filter_names_the_job_for_other_handlers_of_the_log(
    m: Tenure, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = App(m._settings.url, namespace=namespace)
    caplog.handler.addFilter(JobFilter())

    @app.job("work")
    def tell() -> None:
        logging.getLogger("shop").warning("seen")

    job = tell.push()
    logging.getLogger("shop").warning("outside")
    app.run(until_empty=True)
    found = {each.message: each.__dict__["job_id"] for each in caplog.records}
    assert (found["seen"], found["outside"]) == (job.id, "-")


def test_a_plain_dict_takes_any_object(running: Running) -> None:
    assert running.run("anything", {"a": 1, "b": 2}).get() == 2


@pytest.mark.parametrize(
    ("kind", "payload", "error"),
    [
        ("add", {}, "missing a required argument: 'a'"),
        ("add", {"a": "x"}, "payload.a must be int, not str"),
        ("add", {"a": 1, "c": 2}, "unexpected keyword argument 'c'"),
        ("add", [1], "payload must be an object, not list"),
        ("mail", {"copies": 2}, 'does not fit Mail: "to" is missing'),
        ("fetch", {}, 'does not fit Page: "url" is missing'),
    ],
)
def test_a_payload_that_does_not_fit_fails_for_good_and_says_where(
    running: Running, kind: str, payload: Any, error: str
) -> None:
    result = running.run(kind, payload)
    assert result.state == "failed"
    assert error in result.error


def test_an_exception_is_a_failure_that_is_retried(running: Running) -> None:
    backoff = {"max_attempts": 5, "backoff": {"kind": "fixed", "base": "50ms"}}
    job = running.client.push("work", {"times": 2}, kind="fail", retry=backoff)
    assert job.wait(15).get() == "at last"
    shown = running.client.jobs.get(job.id)
    assert [each["error"].partition("\n")[0] for each in shown.errors] == [
        "ValueError: attempt 1",
        "ValueError: attempt 2",
    ]


@pytest.mark.parametrize("handler", ["leave", "leave_later"])
def test_a_handler_that_calls_exit_fails_and_the_worker_goes_on(
    running: Running, handler: str
) -> None:
    result = running.run(handler, retry={"max_attempts": 1})
    assert result.state == "failed" and result.error.startswith("SystemExit: bye\n")
    assert running.run("add", {"a": 1}).get() == 3


def test_the_last_attempt_fails_the_job(running: Running) -> None:
    retry = {"max_attempts": 1}
    result = running.run("fail", {"times": 9}, retry=retry)
    with pytest.raises(errors.JobFailed, match="ValueError: attempt 1"):
        result.get()


def test_final_fails_without_a_retry(running: Running) -> None:
    result = running.run("final")
    assert (result.state, result.error, result.attempt) == ("failed", "no such page", 1)


def test_snooze_runs_again_and_costs_no_attempt(running: Running) -> None:
    running.workers.journal.write_text("")
    assert running.run("snooze").get() == 1
    assert running.workers.notes("snooze") == [["snooze", "1"], ["snooze", "1"]]


@pytest.mark.parametrize(
    ("verdict", "state", "reason"),
    [
        ("ban", "banned", "captcha"),
        ("cool", "cooling", "cooled by its holder"),
        ("quiet", "banned", "old"),
    ],
)
def test_a_verdict_reaches_the_pool(
    running: Running, verdict: str, state: str, reason: str
) -> None:
    running.client.pools.sync("accounts", [{"id": verdict, "data": {"password": "x"}}], force=True)
    options = {"needs": [{"pool": "accounts"}], "retry": {"max_attempts": 1}}
    running.run("judge", {"verdict": verdict}, **options)
    shown = running.client.pools.resource("accounts", verdict)
    assert (shown.state, shown.reason) == (state, reason)


def test_a_handler_gets_the_data_of_its_resource(running: Running) -> None:
    running.client.pools.sync("accounts", [{"id": "d", "data": {"password": "geheim"}}], force=True)
    result = running.run("judge", {"verdict": "ok"}, needs=[{"pool": "accounts"}])
    assert result.get() == "geheim"
    assert "geheim" not in running.workers.log()


def test_a_handler_says_when_its_schedule_is_due_next(running: Running) -> None:
    made = running.client.schedules.set(
        "source", every="1m", job={"queue": "work", "kind": "visit"}
    )
    job = running.client.schedules.run_now("source")
    running.client.jobs.wait(job.id, "30s")
    moved = running.client.schedules.get("source")
    running.client.schedules.delete("source")
    assert made.next_at is not None and moved.next_at is not None
    assert moved.next_at - made.next_at > timedelta(hours=5)


@pytest.mark.parametrize("kind", ["follow", "follow_later"])
def test_a_handler_pushes_a_job_with_its_end(running: Running, kind: str) -> None:
    running.client.limits.set("tokens", rate="10/s")
    result = running.run(kind, needs=["limit:tokens"])
    assert running.client.jobs.wait(result.get(), 15).get() == 42


def test_a_handler_says_when_its_next_attempt_is(running: Running) -> None:
    assert running.run("retry_in").get() == 2


def test_a_snooze_until_a_moment_that_is_over_runs_again_at_once(running: Running) -> None:
    # Written before an outage, say, and settled after it.
    assert running.run("snooze_until", {"moment": "2026-01-01T00:00:00+02:00"}).get() == 1


def test_a_snooze_for_longer_than_the_server_takes_is_a_failure(running: Running) -> None:
    result = running.run("snooze_until", {"moment": "9000-01-01T00:00:00Z"})
    assert result.state == "failed"
    assert "its outcome was refused" in str(result.error)


def test_pause_limit_pauses_it_and_snoozes_the_job(running: Running) -> None:
    running.client.limits.set("site:*", concurrency=1)
    job = running.client.push("work", {"site": "site:x"}, kind="too_many")
    until(lambda: running.client.limits.get("site:x").paused_until)
    shown = until(lambda: (j := running.client.jobs.get(job.id)).state == "scheduled" and j)
    assert shown.attempt == 0


@pytest.mark.parametrize(
    ("how", "error"), [("object", "result: object is not JSON"), ("large", "300002 bytes")]
)
def test_a_result_that_cannot_be_stored_fails_for_good(
    running: Running, how: str, error: str
) -> None:
    result = running.run("unstorable", {"how": how})
    assert result.state == "failed"
    assert error in result.error


def test_a_kind_that_no_handler_takes_fails_and_is_retried(running: Running) -> None:
    job = running.client.push("work", kind="unheard-of")
    shown = until(lambda: (j := running.client.jobs.get(job.id)).state == "scheduled" and j)
    assert "no handler takes the kind" in shown.errors[0]["error"]


def test_a_handler_reads_what_its_parents_made(running: Running) -> None:
    first = running.client.push("work", {"a": 1}, kind="add")
    assert running.run("parents", after=[first]).get() == [3]


def test_a_failed_run_says_where_in_its_error_and_in_one_log_line(running: Running) -> None:
    job = running.run("fail", {"times": 9}, id="broken-1", retry={"max_attempts": 1})
    record = until(lambda: (found := running.client.jobs.get(job.id)).state == "failed" and found)
    what, where, code, *_ = (record.error or "").split("\n")
    assert what == "ValueError: attempt 1" and where.endswith(" in fail")
    assert "handlers.py:" in where and code == '    raise ValueError(f"attempt {ctx.attempt}")'
    line = until(lambda: [x for x in running.workers.log().splitlines() if "broken-1" in x])[0]
    assert "failed in" in line and "ValueError: attempt 1" in line and "handlers.py:" in line


def test_a_line_is_logged_for_each_job_without_its_payload(running: Running) -> None:
    running.run("anything", {"word": "geheim"}, id="logged-1")
    line = until(lambda: [x for x in running.workers.log().splitlines() if "logged-1" in x])[0]
    assert "work anything attempt 1 succeeded in " in line
    assert "geheim" not in running.workers.log()


def test_a_hundred_jobs_are_each_run_once(running: Running) -> None:
    jobs = [
        {"queue": "work", "kind": "add", "payload": {"a": n}, "id": f"h-{n}"} for n in range(100)
    ]
    running.client.push_all(jobs)
    until(lambda: running.client.jobs.get("h-0").finished, 20)
    until(lambda: not running.client.stats().jobs["ready"], 20)
    assert [running.client.jobs.wait(f"h-{n}", 10).get() for n in (0, 50, 99)] == [2, 52, 101]
    assert all(job.attempt == 1 for job in running.client.jobs.list(kind="add", max=100))


def test_the_worker_is_known_by_its_host_and_pid_and_a_random_end(running: Running) -> None:
    found = until(lambda: list(running.client.workers()))
    assert len(found) == 1, found
    worker = found[0]
    assert re.fullmatch(rf"[\w.-]+:{running.process.pid}:[0-9a-hjkmnp-tv-z]{{12}}", worker.id)
    assert (worker.host, worker.pid) == (socket.gethostname(), running.process.pid)
    assert worker.version is not None and worker.version.startswith("python-")
    assert f":{running.process.pid} " in tenure_says(running.client, "workers")


def test_explain_names_the_host_and_pid_of_a_holder(m: Tenure, memory_workers: Workers) -> None:
    worker = memory_workers.start()
    job = m.push("work", kind="report")
    until(lambda: m.jobs.get(job.id).state == "running")
    with m.lock("deploy"):
        waiting = m.push("work", kind="add", payload={"a": 1}, needs=["limit:lock:deploy"])
        until(lambda: f":{os.getpid()} " in tenure_says(m, "explain", waiting.id))
    told = tenure_says(m, "explain", job.id)
    assert re.search(rf"\S:{worker.pid}\b(?!:)", told), told
    memory_workers.go()
    assert job.wait(10).finished


@pytest.mark.parametrize(
    ("host", "shown"),
    [("web-1.example", "web-1.example"), ("a:b c/ü", "abc"), ("ü", "worker"), ("h" * 99, "h" * 64)],
)
def test_a_host_s_name_is_cut_to_what_an_id_takes(
    monkeypatch: pytest.MonkeyPatch, host: str, shown: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    first, second = worker_fields()["id"], worker_fields()["id"]
    assert first.startswith(f"{shown}:{os.getpid()}:") and first != second


def test_progress_is_sent_while_the_handler_runs_and_stays(
    m: Tenure, memory_workers: Workers
) -> None:
    memory_workers.start("--ttl", "1s")
    job = m.push("work", kind="report")
    until(lambda: m.jobs.get(job.id).last_progress == {"page": 7})
    assert m.jobs.get(job.id).state == "running"
    memory_workers.go()
    assert job.wait(10).finished
    assert m.jobs.get(job.id).last_progress == {"page": 7}


def test_progress_that_is_reported_last_goes_with_the_outcome(running: Running) -> None:
    result = running.run("report_last")
    assert (result.state, result.progress) == ("succeeded", {"page": 8})


def test_many_large_results_are_settled_in_calls_below_8_mib(
    proxy: Any, namespace: str, folder: Path, m: Tenure
) -> None:
    workers = Workers(proxy.url, namespace, folder)
    try:
        # While nothing is settled, sixty results come up: twice the bytes of a body.
        proxy.spoil("answer 503 1", "POST", "/v1/leases/settle", times=2)
        m.push_many({"queue": "work", "kind": "large", "id": f"l-{n}"} for n in range(60))
        workers.start("--concurrency", "60")
        assert all(m.jobs.wait(f"l-{n}", 20).state == "succeeded" for n in range(60))
        assert max(len(body) for body in proxy.bodies) < 8 * 1024 * 1024
        assert "Traceback" not in workers.log()
    finally:
        workers.kill_all()


def test_a_worker_with_a_wrong_token_says_so_and_ends(folder: Path, namespace: str) -> None:
    server = Server("memory:", folder, "t" * 40).start()
    workers = Workers(server.url, namespace, folder)
    try:
        worker = workers.start()
        assert worker.wait(20) == 77
        assert "[unauthorized]" in workers.log()
    finally:
        workers.kill_all()
        server.kill()


@pytest.mark.parametrize(
    ("app", "options", "says"),
    [
        ("handlers", [], "write MODULE:APP"),
        ("no_such_module:app", [], 'no module "no_such_module"'),
        ("handlers:nothing", [], 'has no app "nothing"'),
        ("handlers:without_handlers", [], "this app has no handlers; give it some with @app.job"),
        ("handlers:app", ["--queue", "nope"], 'no handler for queue "nope"; it has some for work'),
    ],
)
def test_a_wrong_app_on_the_command_line_is_one_line(
    memory_workers: Workers, app: str, options: list[str], says: str
) -> None:
    assert memory_workers.start(*options, app=app).wait(20) == 2
    (line,) = memory_workers.log().splitlines()
    assert line.startswith("tenure: ") and says in line


def test_until_empty_ends_when_all_jobs_are_done(m: Tenure, memory_workers: Workers) -> None:
    m.push_many({"queue": "work", "kind": "add", "payload": {"a": n}} for n in range(300))
    assert memory_workers.start("--until-empty").wait(30) == 0
    assert m.stats().jobs["succeeded"] == 300


def test_only_the_named_queues_are_worked_on(m: Tenure, memory_workers: Workers) -> None:
    job = m.push("work", {"a": 1}, kind="add")
    assert memory_workers.start("--queue", "other", "--until-empty").wait(30) == 0
    assert m.jobs.get(job.id).state == "ready"


def test_a_changed_file_starts_the_worker_again(
    m: Tenure, memory_workers: Workers, tmp_path: Path
) -> None:
    import os
    import subprocess
    import sys

    source = (
        "import tenure\napp = tenure.App()\n@app.job('work')\ndef word() -> str:\n    return '{}'\n"
    )
    module = tmp_path / "words.py"
    module.write_text(source.format("old"))
    env = {
        **os.environ,
        "TENURE_URL": m._settings.url,
        "TENURE_NAMESPACE": memory_workers.namespace,
    }
    worker = subprocess.Popen(
        [sys.executable, "-m", "tenure", "worker", "words:app", "--reload"],
        cwd=tmp_path, env=env, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert m.push("work", kind="word").wait(15).get() == "old"
        module.write_text(source.format("newer"))
        until(lambda: m.push("work", kind="word").wait(5).result == "newer", 20)
    finally:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0


def test_the_worker_of_a_killed_reloader_ends(m: Tenure, memory_workers: Workers) -> None:
    reloader = memory_workers.start("--reload")
    assert m.push("work", {"a": 1}, kind="add").wait(20).get() == 3
    children = Path(f"/proc/{reloader.pid}/task/{reloader.pid}/children").read_text().split()
    assert len(children) == 1
    reloader.kill()
    reloader.wait()
    try:
        until(lambda: is_gone(int(children[0])))
    finally:
        if not is_gone(int(children[0])):
            os.kill(int(children[0]), signal.SIGKILL)


@pytest.mark.parametrize(
    ("module", "asks"),
    [("gevent.monkey", "is_module_patched"), ("eventlet.patcher", "is_monkey_patched")],
)
def test_a_worker_without_real_threads_is_refused(
    m: Tenure, namespace: str, monkeypatch: pytest.MonkeyPatch, module: str, asks: str
) -> None:
    app = App(m._settings.url, namespace=namespace)
    app.job("work")(is_gone)
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{asks: lambda _: True}))
    with pytest.raises(Unusable, match="has replaced the threads of this process"):
        app.run(until_empty=True)
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{asks: lambda _: False}))
    app.run(until_empty=True)
