"""Schedules by decorators: what they write, and the set that a worker or the command syncs."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

from conftest import Server, Workers, free_port, until
from tenure import App, Tenure, errors
from tenure.scheduled import sync_until_done
from tenure.tasks import Unusable


@dataclass
class Report:
    month: str
    copies: int = 1


@pytest.fixture
def app(memory_server: Server, namespace: str) -> App:
    return App(memory_server.url, namespace=namespace, owner="shop")


def has(client: Tenure, wanted: list[str]) -> bool:
    return ids(client) == wanted


def ids(client: Tenure) -> list[str]:
    return sorted(each.id for each in client.schedules.list())


def test_a_decorator_is_a_schedule_above_and_below_the_handler(app: App, m: Tenure) -> None:
    @app.schedule("0 9 * * 1-5", zone="Europe/Berlin", payload={"month": "may"})
    @app.job("reports", timeout="5m", delay="1h", unique="report", expires_at="2h", priority=3)
    def render(month: str) -> None: ...

    @app.job("reports")
    @app.schedule(every="15m", id="poll", payload=Report("may"), overlap="queue", jitter="1m")
    @app.schedule(every="1h", id="count", payload={"month": "june"})
    async def poll(report: Report) -> None: ...

    assert app.sync_schedules().added == 3
    made = m.schedules.get("shop.render")
    assert (made.owner, made.cron, made.zone) == ("shop", "0 9 * * 1-5", "Europe/Berlin")
    assert {key: value for key, value in made.job.items() if value not in (None, {}, [])} == {
        "queue": "reports", "kind": "render", "payload": {"month": "may"}, "priority": 3,
        "timeout": "5m", "expires_in": "2h",
    }  # fmt: skip
    other = m.schedules.get("poll")
    assert (other.every, other.overlap, other.raw["jitter"]) == ("15m", "queue", "1m")
    assert other.job["payload"] == {"month": "may", "copies": 1}
    assert m.schedules.get("count").job["payload"] == {"month": "june", "copies": 1}
    m.schedules.run_now("poll")
    ran = app.sync_schedules()
    assert (ran.unchanged, ran.added, ran.updated, ran.deleted) == (3, 0, 0, 0)


def test_a_removed_decorator_deletes_only_the_schedule_of_its_owner(
    memory_server: Server, m: Tenure, namespace: str
) -> None:
    def build(owner: str, *words: str) -> App:
        app = App(memory_server.url, namespace=namespace, owner=owner)
        for word in words:

            def handler() -> None: ...

            app.schedule(every="1h")(app.job("q", kind=word)(handler))
        return app

    build("shop", "a", "b", "c").sync_schedules()
    build("bank", "a").sync_schedules()
    assert build("shop", "a", "b").sync_schedules().deleted == 1
    assert ids(m) == ["bank.a", "shop.a", "shop.b"]
    with pytest.raises(errors.EmptySet):
        build("shop").sync_schedules()
    assert build("shop").sync_schedules(force=True).deleted == 2
    assert ids(m) == ["bank.a"]


def no_handler(app: App) -> None:
    @app.schedule(every="1h")
    def handler() -> None: ...


def same_id(app: App) -> None:
    @app.schedule(every="2h")
    @app.schedule(every="1h")
    @app.job("q")
    def handler() -> None: ...


def one_end(app: App) -> None:
    @app.schedule(every="1h")
    @app.job("q", expires_at="2030-01-01T00:00:00Z")
    def handler() -> None: ...


def wrong_payload(app: App) -> None:
    @app.schedule(every="1h", payload={"moth": "may"})
    @app.job("q")
    def handler(month: str) -> None: ...


def no_time(app: App) -> None:
    app.schedule()


def two_times(app: App) -> None:
    app.schedule("0 9 * * *", every="1h")


def another_app(app: App) -> None:
    @app.schedule(every="1h")
    @App(owner="other").job("q")
    def handler() -> None: ...


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (no_handler, "handler has @app.schedule and no @app.job"),
        (same_id, 'two schedules have the id "shop.handler"; give one another'),
        (one_end, "give expires_at as a duration"),
        (wrong_payload, "the schedule of handler: handler() takes (month): missing a required"),
        (no_time, "say when"),
        (two_times, "say when"),
        (another_app, "is a handler of another app"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_decorator_that_means_nothing_is_refused(app: App, build: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        build(app)
        assert app.schedules
    assert says in str(refused.value)


def test_the_owner_is_the_module_that_makes_the_app() -> None:
    assert App().owner == __name__
    found: dict[str, Any] = {"__name__": "__main__"}
    exec("import tenure\napp = tenure.App()", found)
    with pytest.raises(Unusable, match=r'App\(owner="shop"\)'):
        assert found["app"].owner


SHOP = """
import tenure
app = tenure.App()

@app.schedule("0 9 * * *", zone="Asia/Shanghai")
@app.job("reports")
def render(): return "ready"

{more}
"""
MORE = "app.schedule(every='1h')(app.job('reports', kind='{}')(lambda: None))\n"


class Shop:
    """A module with an app, and the commands on it."""

    def __init__(self, folder: Path, url: str, namespace: str) -> None:
        self._folder = folder
        self._env = {**os.environ, "TENURE_URL": url, "TENURE_NAMESPACE": namespace}

    def write(self, *more: str) -> None:
        text = SHOP.format(more="\n".join(MORE.format(word) for word in more))
        (self._folder / "shop.py").write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tenure", *arguments]
        return subprocess.Popen(
            command, cwd=self._folder, env=self._env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=30)
        return process.returncode, out, err


@pytest.fixture
def shop(tmp_path: Path, memory_server: Server, namespace: str) -> Shop:
    return Shop(tmp_path, memory_server.url, namespace)


def test_the_command_syncs_what_the_module_says(shop: Shop, m: Tenure) -> None:
    shop.write("b", "c")
    done = shop.run("schedules", "sync", "shop:app")
    assert done == (0, "schedules of shop: 3 added, 0 changed, 0 deleted, 0 as they were\n", "")
    assert ids(m) == ["shop.b", "shop.c", "shop.render"]
    shop.write()
    code, out, err = shop.run("schedules", "sync", "shop:app")
    assert (code, out) == (1, "") and "[retires_most]" in err
    assert len(ids(m)) == 3
    code, out, _ = shop.run("schedules", "sync", "shop:app", "--force")
    assert (code, out) == (
        0, "schedules of shop: 0 added, 0 changed, 2 deleted, 1 as they were\n",
    )  # fmt: skip


def test_a_worker_syncs_when_it_starts(shop: Shop, m: Tenure) -> None:
    for more, is_there in (((), ["shop.render"]), (("b",), ["shop.b", "shop.render"])):
        shop.write(*more)
        worker = shop.start("worker", "shop:app")
        try:
            until(functools.partial(has, m, is_there), 20)
            job = m.schedules.run_now("shop.render")
            assert m.jobs.wait(job.id, 10).get() == "ready"
        finally:
            worker.send_signal(signal.SIGTERM)
            _, err = worker.communicate(timeout=20)
        assert "schedules of shop: 1 added" in err


def test_a_worker_that_may_not_delete_most_says_how_and_works_on(shop: Shop, m: Tenure) -> None:
    shop.write("b", "c")
    shop.run("schedules", "sync", "shop:app")
    shop.write()
    m.push("reports", kind="render", id="r-1")
    code, _, err = shop.run("worker", "shop:app", "--until-empty")
    assert code == 0 and m.jobs.get("r-1").state == "succeeded"
    assert "the schedules of shop are as they were" in err
    assert "python -m tenure schedules sync MODULE:APP --force" in err


class Pauses(threading.Event):
    """Says of a sync that it waits before another try."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()

    def wait(self, timeout: Optional[float] = None) -> bool:
        self.begun.set()
        return super().wait(0.01)


def test_a_worker_syncs_once_the_server_is_there(folder: Path, namespace: str) -> None:
    server = Server("memory:", folder)
    app = App(server.url, namespace=namespace, owner="shop")

    @app.schedule(every="1h")
    @app.job("reports")
    def render() -> None: ...

    pauses = Pauses()
    given = (app.settings, app.owner, app.schedules, pauses)
    thread = threading.Thread(target=sync_until_done, args=given)
    thread.start()
    try:
        assert pauses.begun.wait(20)
        server.start()
        thread.join(20)
        with Tenure(server.url, namespace=namespace) as client:
            assert ids(client) == ["shop.render"]
    finally:
        pauses.set()
        server.kill()


def test_the_command_says_when_there_is_no_server(shop: Shop, tmp_path: Path) -> None:
    shop.write()
    shop._env["TENURE_URL"] = f"http://127.0.0.1:{free_port()}"
    source = (tmp_path / "shop.py").read_text()
    (tmp_path / "shop.py").write_text(source.replace("App()", "App(retry_for=0.1)"))
    code, out, err = shop.run("schedules", "sync", "shop:app")
    assert (code, out) == (69, "") and len(err.splitlines()) == 1


def test_a_schedule_that_the_server_refuses_is_one_line(shop: Shop, tmp_path: Path) -> None:
    shop.write()
    source = (tmp_path / "shop.py").read_text()
    (tmp_path / "shop.py").write_text(source.replace("0 9 * * *", "every day"))
    code, _, err = shop.run("schedules", "sync", "shop:app")
    assert code == 1 and len(err.splitlines()) == 1


def test_an_app_without_schedules_leaves_those_of_others_alone(
    m: Tenure, memory_workers: Workers
) -> None:
    m.schedules.set("mine", every="1h", job={"queue": "q"}, owner="handlers")
    assert memory_workers.start("--until-empty").wait(30) == 0
    assert ids(m) == ["mine"]
