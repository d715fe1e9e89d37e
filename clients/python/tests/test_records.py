"""Records beside the server's description of its answers."""

from __future__ import annotations

import dataclasses
import json
import urllib.request
from typing import Any

import pytest

from conftest import Server
from tenure import Tenure, limit, records
from tenure.durations import read_moment
from tenure.needs import AnyNeed
from test_jobs import take

#: Each record, and the schemas of the answers that it is read from.
SCHEMAS: dict[type[records.Record], list[str]] = {
    records.JobRecord: ["PushedJob"],
    records.Result: ["Result"],
    records.Parent: ["ParentJob", "ParentFlow"],
    records.Child: ["Child"],
    records.Resource: ["LeasedResource"],
    records.LeaseRecord: ["Lease"],
    records.LeaseSummary: ["LeaseSummary"],
    records.Reason: ["Reason"],
    records.Explained: ["Explained"],
    records.Queue: ["Queue"],
    records.Limit: ["Limit"],
    records.Pool: ["Pool"],
    records.PoolResource: ["Resource"],
    records.Synced: ["Synced", "SyncedSchedules"],
    records.Schedule: ["Schedule"],
    records.Flow: ["Flow"],
    records.Failure: ["FailureGroup"],
    records.Worker: ["Worker"],
    records.Stats: ["Stats"],
    records.Audited: ["Audit"],
}
#: A sum of several answers, and one whose further fields are in `raw`.
OTHERS = {records.DoneMany, records.Event}


@pytest.fixture(scope="module")
def schemas(memory_server: Server) -> dict[str, Any]:
    with urllib.request.urlopen(f"{memory_server.url}/openapi.json") as answer:
        found: dict[str, Any] = json.load(answer)["components"]["schemas"]
        return found


def is_moment(schema: dict[str, Any]) -> bool:
    return any(each.get("format") == "date-time" for each in (schema, *schema.get("anyOf", ())))


@pytest.mark.parametrize("record", SCHEMAS, ids=lambda each: each.__name__)
def test_a_record_has_all_fields_of_its_answer(
    schemas: dict[str, Any], record: type[records.Record]
) -> None:
    answer = {}
    for name in SCHEMAS[record]:
        answer.update(schemas[name]["properties"])
    # Type checkers refuse a class with a type variable where a dataclass is wanted.
    its: Any = record
    fields = {
        each.metadata.get("key", each.name): each.metadata.get("read")
        for each in dataclasses.fields(its)
        if each.name != "raw"
    }
    assert fields.keys() == answer.keys()
    moments = {name for name, schema in answer.items() if is_moment(schema)}
    assert {name for name, read in fields.items() if read is read_moment} == moments


def test_each_record_is_compared() -> None:
    assert {*SCHEMAS, *OTHERS} == set(records.Record.__subclasses__())


def test_records_show_what_the_server_says(m: Tenure) -> None:
    m.limits.set("site:*", concurrency=2, quarantine="5s")
    m.pools.sync("accounts", [{"id": "ann", "data": {"pw": "x"}}])
    needs: list[AnyNeed] = [limit("site:a"), "pool:accounts"]
    job = m.push("q", retry=3, retain="2h", timeout="1m", needs=needs)
    assert (job.retain, job.on_parent_failure, job.cancelled_children) == ("2h", "cancel", 0)
    assert job.retry is not None and job.retry["max_attempts"] == 3
    lease = take(m, "q")
    (held,) = m.leases()
    assert (held.lease, [(each.pool, each.id) for each in held.resources]) == (
        lease["lease"],
        [("accounts", "ann")],
    )
    assert held.deadline is not None and held.granted_at is not None
    assert (held.deadline - held.granted_at).total_seconds() == 60
    (holder,) = m.pools.resource("accounts", "ann").holders
    assert (holder["lease"], holder["job"]) == (lease["lease"], job.id)
    shown = m.limits.get("site:a")
    assert (shown.quarantine, shown.resting, shown.gauge) == ("5s", 0, None)
    made = m.schedules.set("s", every="1h", jitter="5m", job={"queue": "r"})
    assert (made.jitter, made.moved, made.catch_up_max, made.last) == ("5m", False, 100, None)
    assert made.created_at is not None and made.created_at == made.changed_at
    m.push("q", flow="f")
    stats = m.stats()
    assert (stats.flows, stats.result_waiters, m.queues.get("q").skipped) == (1, 0, 0)
