"""Schedules and flows."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone

import pytest

from tenure import Tenure, errors
from test_jobs import end


def test_a_schedule_shows_its_next_moments(t: Tenure) -> None:
    made = t.schedules.set("news", cron="0 9 * * 1-5", zone="Europe/Berlin", job={"queue": "news"})
    assert len(made.next) == 5 and made.next[0] == made.next_at
    assert [each.id for each in t.schedules.list()] == ["news"]


def test_an_interval_may_be_a_timedelta(t: Tenure) -> None:
    made = t.schedules.set("poll", every=timedelta(minutes=15), job={"queue": "poll"})
    assert made.every == "15m"
    assert t.schedules.change("poll", every=60).every == "1m"


def test_durations_of_its_job_are_text_seconds_or_timedeltas(m: Tenure) -> None:
    hour = timedelta(hours=1)
    job = {"queue": "q", "retain": hour, "timeout": 90, "expires_in": hour, "retry": 3}
    written = {"retain": "1h", "timeout": "1m30s", "expires_in": "1h"}
    m.schedules.sync("set", [{"id": "b", "every": "1h", "job": job}])
    for made in (
        m.schedules.set("a", every="1h", job=job),
        m.schedules.change("a", job=job),
        m.schedules.get("b"),
    ):
        assert {name: made.job[name] for name in written} == written
        assert made.job["retry"]["max_attempts"] == 3
    assert job["retain"] == hour


def test_a_job_of_a_schedule_has_no_misspelt_field(m: Tenure) -> None:
    with pytest.raises(errors.UnknownField):
        m.schedules.set("a", every="1h", job={"queue": "q", "retian": "1h"})


def test_a_wrong_expression_and_a_wrong_zone_are_told_apart(m: Tenure) -> None:
    with pytest.raises(errors.InvalidField) as refused:
        m.schedules.set("x", cron="every day", job={"queue": "q"})
    assert refused.value.pointer == "/cron"
    with pytest.raises(errors.UnknownZone):
        m.schedules.set("x", cron="0 9 * * *", zone="Berlin", job={"queue": "q"})
    with pytest.raises(errors.NeverFires):
        m.schedules.set("x", cron="0 0 30 2 *", job={"queue": "q"})


def test_run_now_pushes_its_job_and_shows_it_while_it_is_unfinished(t: Tenure) -> None:
    t.schedules.set("news", every="1h", job={"queue": "news", "payload": {"n": 1}})
    job = t.schedules.run_now("news")
    assert (job.queue, job.duplicate) == ("news", False)
    again = t.schedules.run_now("news")
    assert (again.id, again.duplicate) == (job.id, True)


def test_a_schedule_is_paused_resumed_and_deleted(t: Tenure) -> None:
    t.schedules.set("news", every="1h", job={"queue": "news"})
    assert t.schedules.pause("news", for_="1h").paused
    assert not t.schedules.resume("news").paused
    t.schedules.delete("news")
    with pytest.raises(errors.ScheduleNotFound):
        t.schedules.get("news")


def test_a_preview_stores_nothing(t: Tenure) -> None:
    start = datetime(2026, 3, 1, tzinfo=timezone.utc)
    moments = t.schedules.preview(cron="0 12 * * *", from_=start, count=3)
    assert moments == [datetime(2026, 3, day, 12, tzinfo=timezone.utc) for day in (1, 2, 3)]
    assert list(t.schedules.list()) == []


def test_a_set_of_schedules_is_kept_like_a_table(t: Tenure) -> None:
    def each(n: int, every: str = "1h") -> dict[str, object]:
        return {"id": f"s{n}", "every": every, "job": {"queue": "q"}}

    assert t.schedules.sync("table", [each(n) for n in range(4)]).added == 4
    synced = t.schedules.sync("table", [each(0), each(1, "2h"), each(2), each(9)])
    assert (synced.added, synced.updated, synced.unchanged, synced.deleted) == (1, 1, 2, 1)


def test_a_schedule_of_another_owner_refuses_the_set(t: Tenure) -> None:
    t.schedules.sync("mine", [{"id": "a", "every": "1h", "job": {"queue": "q"}}])
    with pytest.raises(errors.OtherOwner) as refused:
        t.schedules.sync("yours", [{"id": "a", "every": "1h", "job": {"queue": "q"}}])
    assert refused.value.index == 0


def test_a_set_of_more_than_a_thousand_schedules_is_synced(m: Tenure) -> None:
    jobs = ({"id": f"s{n}", "every": "1h", "job": {"queue": "q"}} for n in range(1200))
    assert m.schedules.sync("table", jobs).added == 1200


def test_a_flow_is_counted_and_waited_for(t: Tenure) -> None:
    t.push_all([{"queue": "a", "flow": "import"}, {"queue": "b", "flow": "import"}])
    assert t.flows.get("import").counts["unfinished"] == 2
    assert not t.flows.wait("import", "50ms").finished

    def work() -> None:
        end(t, "a")
        end(t, "b")

    ends = threading.Thread(target=work)
    ends.start()
    flow = t.flows.wait("import", 10)
    ends.join()
    assert flow.finished and flow.counts["succeeded"] == 2


def test_a_flow_is_cancelled_and_retried(t: Tenure) -> None:
    t.push_all([{"queue": "a", "flow": "f", "ref": "x"}, {"queue": "b", "after": [{"ref": "x"}]}])
    t.flows.cancel("f")
    assert t.flows.wait("f", 10).counts["cancelled"] == 2
    assert t.flows.retry("f").done == 2
    assert [flow.flow for flow in t.flows.list()] == ["f"]


def test_a_flow_that_is_not_there_is_not_found(t: Tenure) -> None:
    with pytest.raises(errors.FlowNotFound):
        t.flows.get("nobody")


def test_results_of_parents_are_shown_in_full(t: Tenure) -> None:
    first = t.push("a")
    second = t.push("b", after=[first])
    end(t, "a", result={"n": 1})
    assert [each.result for each in t.jobs.parents(second.id, full=True)] == [{"n": 1}]
