"""A worker whose server is away says so, and says when it is back."""

from __future__ import annotations

import logging
import re
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Optional

import pytest

from conftest import Server, Workers, until
from tenure.worker.reach import Reach

NOW = 1000.0
ADDRESS = "http://10.0.0.1:7171"


def test_a_short_outage_is_no_line() -> None:
    reach = Reach(ADDRESS)
    reach.lost(NOW, "refused")
    assert reach.look(NOW + 0.4) is None
    reach.answered(NOW + 0.45)
    assert reach.look(NOW + 100) is None


def test_an_outage_is_logged_at_once_every_minute_and_at_its_end() -> None:
    reach = Reach(ADDRESS)
    reach.lost(NOW, "connection refused")
    assert reach.look(NOW + 0.6) == (
        logging.WARNING,
        f"cannot reach {ADDRESS}: connection refused; trying again",
    )
    reach.lost(NOW + 30, "no answer in time")
    assert reach.look(NOW + 60) is None
    assert reach.look(NOW + 61) == (
        logging.WARNING,
        f"cannot reach {ADDRESS} for 61 s: no answer in time; trying again",
    )
    assert reach.look(NOW + 120) is None
    reach.answered(NOW + 125)
    assert reach.look(NOW + 125) == (logging.INFO, f"reached {ADDRESS} again after 125 s")
    assert reach.look(NOW + 500) is None


def test_a_server_that_cannot_serve_is_an_outage_too() -> None:
    reach = Reach(ADDRESS)
    reach.refused(NOW, "the store {0} is away")
    assert reach.look(NOW + 0.6) == (
        logging.WARNING,
        f"{ADDRESS} cannot serve: the store {{0}} is away; trying again",
    )


def test_an_unanswered_call_is_an_outage_before_it_is_given_up() -> None:
    reach = Reach(ADDRESS)
    call = reach.begin(NOW, wait=5.0)
    assert reach.look(NOW + 5.9) is None
    assert reach.look(NOW + 6.6) == (
        logging.WARNING,
        f"cannot reach {ADDRESS}: it does not answer; trying again",
    )
    reach.end(call)
    reach.answered(NOW + 9)
    assert reach.look(NOW + 9) == (logging.INFO, f"reached {ADDRESS} again after 4.0 s")


def test_a_call_that_waits_at_the_server_is_no_outage() -> None:
    reach = Reach(ADDRESS)
    reach.end(reach.begin(NOW, wait=5.0))
    reach.answered(NOW + 5)
    assert reach.look(NOW + 60) is None


def moment(log: str, word: str) -> Optional[datetime]:
    """When a line with a word was logged."""
    found = re.search(rf"^(\S+ \S+) \w+ [^\n]*{word}", log, re.MULTILINE)
    return found and datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f")


def test_a_worker_reports_a_lost_server_in_two_seconds_and_its_return(
    folder: Path, namespace: str
) -> None:
    server = Server("memory:", folder)
    workers = Workers(server.url, namespace, folder)
    try:
        workers.start()
        said = until(lambda: moment(workers.log(), "cannot reach"), 20)
        began = moment(workers.log(), "takes jobs")
        assert began is not None and (said - began).total_seconds() < 2
        assert f"WARNING cannot reach {server.url}: connection refused" in workers.log()
        server.start()
        workers.says(f"INFO reached {server.url} again after ")
        assert workers.log().count("cannot reach") == 1
    finally:
        workers.kill_all()
        server.kill()


@pytest.mark.parametrize("busy", [False, True])
def test_a_worker_reports_a_hanging_server_both_idle_and_busy(
    folder: Path, namespace: str, busy: bool
) -> None:
    from tenure import Tenure

    server = Server("memory:", folder).start()
    workers = Workers(server.url, namespace, folder)
    try:
        with Tenure(server.url, namespace=namespace) as client:
            if busy:
                client.push("work", kind="run_on")
            workers.start("--ttl", "6s", "--concurrency", "1")
            until((lambda: workers.notes("begin")) if busy else lambda: list(client.workers()), 20)
        server.pause()
        workers.says(f"WARNING cannot reach {server.url}: it does not answer")
        server.go_on()
        workers.says(f"INFO reached {server.url} again after ")
    finally:
        server.go_on()
        workers.kill_all()
        server.kill()


def test_check_needs_the_scope_of_a_worker_alone(folder: Path, namespace: str) -> None:
    tokens = {scope: f"{scope}-{'t' * 40}" for scope in ("work", "view")}
    (folder / "tokens.toml").write_text(
        "".join(
            f'[[token]]\nname = "{scope}"\nscopes = ["{scope}"]\nnamespaces = ["*"]\n'
            f'sha256 = "{sha256(token.encode()).hexdigest()}"\n'
            for scope, token in tokens.items()
        )
    )
    server = Server("memory:", folder, None, "--tokens", str(folder / "tokens.toml")).start()
    try:
        for scope, code in [("work", 0), ("view", 77)]:
            workers = Workers(server.url, namespace + scope, folder, token=tokens[scope])
            assert workers.start("--check").wait(20) == code, workers.log()
    finally:
        server.kill()


def test_check_says_what_a_worker_would_find(folder: Path, namespace: str) -> None:
    server = Server("memory:", folder, "t" * 40)
    workers = Workers(server.url, namespace, folder)
    try:
        assert workers.start("--check").wait(20) == 69
        assert f"{server.url}: connection refused" in workers.log()
        server.start()
        assert workers.start("--check").wait(20) == 77
        assert workers.start("--check", "--queue", "nope").wait(20) == 2
        assert 'this app has no handler for queue "nope"' in workers.log()
        right = Workers(server.url, namespace + "r", folder, token="t" * 40)
        assert right.start("--check").wait(20) == 0
        assert f"handlers:app would take jobs of work, other from {server.url}" in right.log()
    finally:
        workers.kill_all()
        server.kill()
