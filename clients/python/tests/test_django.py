"""`tenure.django`: the project of its page, as a whole, and what it does when things go wrong."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import free_port
from tenure import Tenure
from tenure.testing import Server

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "django.md"

MANAGE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
#: Settings that every project has, beside those of the page.
SETTINGS = """
import os
SECRET_KEY = "of-a-test"
USE_TZ = True
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
TENURE["URL"] = os.environ.get("URL_OF_TEST", TENURE["URL"])
"""
BEGIN = """
import django
django.setup()
from django.db import transaction
from django.test import Client
from shop import jobs
from shop.models import Outgoing, Report
from tenure.django import push_on_commit
"""


class Project:
    """The project of the page, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        """Write its files and its database."""
        folder = self.folder
        for name, code in re.findall(
            r"```python\n# (\S+\.py).*?\n(.*?)```", PAGE.read_text(), re.S
        ):
            (folder / name).parent.mkdir(exist_ok=True)
            with (folder / name).open("a") as file:
                file.write(code)
        (folder / "shop" / "__init__.py").touch()
        (folder / "manage.py").write_text(MANAGE)
        with (folder / "settings.py").open("a") as file:
            file.write(SETTINGS)
        self.manage("migrate", "--run-syncdb", "--verbosity", "0")

    def manage(self, *arguments: str, url: str = "", code: int = 0) -> str:
        return self._run([sys.executable, "manage.py", *arguments], url, code)

    def run(self, program: str, url: str) -> str:
        return self._run([sys.executable, "-c", BEGIN + program], url, 0)

    def _run(self, command: list[str], url: str, code: int) -> str:
        env = {k: v for k, v in os.environ.items() if not k.startswith("TENURE_")}
        env["DJANGO_SETTINGS_MODULE"] = "settings"
        if os.environ.get("TENURE_BIN"):
            env["TENURE_BIN"] = os.environ["TENURE_BIN"]
        if url:
            env["URL_OF_TEST"] = url
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("project"))
    project.make()
    return project


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    """A copy of the project and of its database, which is empty."""
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path)


@pytest.fixture
def url(tenure_server: Server) -> str:
    """The server, with nothing in the namespace of the page's project."""
    with Tenure(tenure_server.url, namespace="shop") as client:
        for schedule in client.schedules.list():
            client.schedules.delete(schedule.id)
        for queue in ("reports", "outbox"):
            client.jobs.delete_many(queue=queue)
    return tenure_server.url


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the page's tests take Python 3.11")
def test_the_tests_of_the_page_pass(project: Project) -> None:
    assert "Ran 2 tests" in project.manage("test", "shop")


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_the_command_runs_jobs_whose_results_are_beside_the_models(
    project: Project, url: str, kind: str
) -> None:
    project.run('assert Client().get("/order/2030-12").status_code == 202', url)
    project.run('assert Client().get("/show/1").json() == {"state": "ready"}', url)
    log = project.manage("tenure_worker", "shop.jobs:app", "--until-empty", "--kind", kind, url=url)
    shown = 'assert Client().get("/show/1").json() == {"text": "report of 2030-12"}'
    project.run(shown, url)
    assert "report of" not in log


def test_a_hostile_text_is_one_line_of_the_command_s_log(project: Project, url: str) -> None:
    with (project.folder / "shop" / "jobs.py").open("a") as file:
        file.write(
            '@app.job("reports")\ndef forge() -> None:\n    raise ValueError("a\\x1b[2J\\nb")\n'
        )
    project.run('jobs.forge.options(retry={"max_attempts": 1}).push()', url)
    log = project.manage("tenure_worker", "shop.jobs:app", "--until-empty", url=url)
    assert re.search(r": ValueError: a\\x1b\[2J\\nb\\n  \S*jobs.py:\d+ in forge.*$", log, re.M), log


def test_a_run_that_lost_its_lease_overwrites_nothing(project: Project, url: str) -> None:
    program = """
from types import SimpleNamespace
import tenure
report = Report.objects.create(month="2030-12", fence=7, text="newer")
try:
    jobs.render(SimpleNamespace(fence=6), report.pk)
except tenure.Final:
    assert Report.objects.get().text == "newer"
    print("refused")
"""
    assert "refused" in project.run(program, url)


def test_a_job_is_pushed_if_its_transaction_commits(project: Project, url: str) -> None:
    program = """
class Stop(Exception): pass
try:
    with transaction.atomic():
        push_on_commit(jobs.render, 1)
        raise Stop
except Stop:
    pass
with transaction.atomic():
    id = push_on_commit(jobs.render.options(id="r-2", delay="1h"), 2)
    assert not list(jobs.app.client.jobs.list())
assert id == "r-2"
push_on_commit(jobs.render, 3)
found = [job.payload for job in jobs.app.client.jobs.list(full=True)]
assert found == [{"report": 3}, {"report": 2}], found
assert jobs.app.client.jobs.get("r-2").state == "scheduled"
"""
    project.run(program, url)


def test_wrong_arguments_are_refused_before_the_commit(project: Project, url: str) -> None:
    program = """
for wrong in ({"repot": 1}, {"report": object()}):
    try:
        with transaction.atomic():
            Report.objects.create(month="2030-12")
            push_on_commit(jobs.render, **wrong)
    except TypeError:
        print("refused")
assert not Report.objects.exists()
"""
    assert project.run(program, url).count("refused") == 2


def test_failed_pushes_after_commit_are_logged_and_outbox_jobs_kept(
    project: Project, url: str
) -> None:
    program = """
jobs.app._retry_for = 0.1
with transaction.atomic():
    Report.objects.create(month="2030-11")
    id = push_on_commit(jobs.render, 1)
    push_on_commit(jobs.render.options(id="r\\x1b[2J\\nERROR forged"), 1)
    sure = jobs.push_surely(jobs.render.spec(1))
assert Report.objects.count() == Outgoing.objects.count() == 1
print("lost", id)
print("kept", sure)
"""
    told = project.run(program, f"http://127.0.0.1:{free_port()}")
    lost, kept = re.findall(r"^(?:lost|kept) (\S+)$", told, re.M)
    assert f'job {lost} of queue "reports" could not be pushed after the commit' in told
    assert f"job {kept} is not pushed yet" in told
    assert r'job r\x1b[2J\nERROR forged of queue "reports" could not be pushed' in told
    # The server is back.
    program = """
jobs.deliver_each_minute()
jobs.app.client.schedules.run_now("outbox")
"""
    project.run(program, url)
    for _ in range(2):
        project.manage("tenure_worker", "shop.jobs:app", "--until-empty", url=url)
    project.run("assert Report.objects.get().text\nassert not Outgoing.objects.exists()", url)
    with Tenure(url, namespace="shop") as client:
        assert client.jobs.get(kept).state == "succeeded"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["shop.jobs:ap"], 2, 'has no app "ap"'),
        (["shop.nothing:app"], 2, "there is no module"),
        (["shop.no\x1b[2J\nERROR:app"], 2, r'there is no module "shop.no\x1b[2J\nERROR" here'),
        (["shop.jobs:app", "-c", "0"], 1, "--concurrency is at least 1"),
    ],
)
def test_the_command_says_what_is_wrong(
    project: Project, url: str, arguments: list[str], code: int, told: str
) -> None:
    assert told in project.manage("tenure_worker", *arguments, url=url, code=code)


def test_check_says_what_a_worker_would_find(project: Project, url: str) -> None:
    check = "tenure_worker", "shop.jobs:app", "--check"
    told = f"shop.jobs:app would take jobs of reports, outbox from {url}\n"
    assert project.manage(*check, url=url) == told
    nobody = f"http://127.0.0.1:{free_port()}"
    told = project.manage(*check, url=nobody, code=69)
    assert told.startswith(f"CommandError: {nobody}: connection refused"), told
    told = project.manage(*check, "--queue", "nope", url=nobody, code=2)
    assert 'this app has no handler for queue "nope"' in told


def test_a_misspelt_setting_is_refused(project: Project, url: str) -> None:
    with (project.folder / "settings.py").open("a") as file:
        file.write('TENURE["URI"] = "http://127.0.0.1:1"\n')
    told = project.manage("tenure_worker", "shop.jobs:app", url=url, code=1)
    assert 'settings.TENURE has no "URI"; it takes CA, NAMESPACE, TOKEN, URL' in told


def test_connections_are_closed_around_each_run(project: Project, url: str) -> None:
    program = """
import asyncio
from django.db import connection
from tenure.django.management.commands.tenure_worker import with_fresh_connections

def handler():
    Report.objects.count()
    return connection.connection is not None

assert with_fresh_connections(handler)() is True
assert connection.connection is None

async def later():
    return await Report.objects.acount()
assert asyncio.run(with_fresh_connections(later)()) == 0
"""
    project.run(program, url)
