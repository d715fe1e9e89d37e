//! Schedules after an outage, and while their own jobs are unfinished.

use tenure_core::job::JobState;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::schedule::{CatchUp, Overlap, ScheduleSettings};
use tenure_core::time::{Moment, Span};

use crate::bench::Bench;
use crate::calls::schedules::*;
use crate::words::*;

/// A schedule of each kind that fires every minute, and its first occurrence.
async fn each_minute(
    b: &Bench,
    change: impl Fn(ScheduleSettings) -> ScheduleSettings,
) -> [(&'static str, Moment); 2] {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    let interval = b.put("interval", change(every_from(s(60), start))).await;
    let cron = b.put("cron", change(cron("* * * * *", "UTC"))).await;
    [("interval", interval.next_at.expect("a moment")), ("cron", cron.next_at.expect("a moment"))]
}

pub(crate) async fn after_an_outage_last_fires_once_the_newest(b: &mut Bench) {
    let all = each_minute(b, |set| set.overlap(Overlap::Allow)).await;
    b.leap(hours(1)).await;
    for (id, first) in all {
        let (fired, skipped, missed) = b.counted(id).await;
        assert_eq!((fired, skipped), (1, 0), "{id}");
        let due = b.now().since(first).us() / s(60).us() + 1;
        assert_eq!(missed, due - 1, "{id}");
        let newest = first.plus(Span::from_us((due - 1) * s(60).us()));
        b.job(&job_at(id, newest)).await;
    }
}

pub(crate) async fn after_an_outage_all_fires_each_up_to_its_bound(b: &mut Bench) {
    let set =
        |set: ScheduleSettings| set.overlap(Overlap::Allow).catch_up(CatchUp::All).catch_up_max(10);
    let all = each_minute(b, set).await;
    b.leap(hours(1)).await;
    for (id, first) in all {
        let due = b.now().since(first).us() / s(60).us() + 1;
        assert_eq!(b.counted(id).await, (10, 0, due - 10), "{id}");
        for n in due - 10..due {
            b.job(&job_at(id, first.plus(Span::from_us(n * s(60).us())))).await;
        }
    }
}

pub(crate) async fn after_an_outage_none_fires_nothing_but_a_moment_of_the_last_minute(
    b: &mut Bench,
) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    for (id, period) in [("old", 3_600), ("new", 60)] {
        b.put(id, every_from(s(period), start).catch_up(CatchUp::None)).await;
    }
    b.leap_to(start.plus(s(3_600 + 90))).await;
    assert_eq!(b.counted("old").await, (0, 0, 2));
    let (fired, _, missed) = b.counted("new").await;
    assert_eq!((fired, missed), (1, 61));
}

pub(crate) async fn skip_skips_while_a_job_of_it_is_unfinished(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    b.put("news", every_from(s(60), start)).await;
    b.leap_to(start).await;
    let lease = b.take_job("q", &job_at("news", start)).await;
    b.leap_to(start.plus(s(20))).await;
    b.settle(snoozed(&lease, s(50))).await;
    b.leap_to(start.plus(s(60))).await;
    assert_eq!(b.counted("news").await, (1, 1, 0), "it is snoozed");
    b.leap_to(start.plus(s(70))).await;
    let lease = b.take_job("q", &job_at("news", start)).await;
    b.settle(failed_until(&lease, s(60))).await;
    b.leap_to(start.plus(s(120))).await;
    assert_eq!(b.counted("news").await, (1, 2, 0), "it retries");
    b.leap_to(start.plus(s(130))).await;
    let lease = b.take_job("q", &job_at("news", start)).await;
    b.settle(succeeded(&lease)).await;
    let view = b.schedule("news").await;
    assert_eq!(view.unfinished, 0);
    let ended = view.last_ended.expect("a job that ended");
    assert_eq!((ended.job.as_str(), ended.state), (&*job_at("news", start), JobState::Succeeded));
    assert_eq!(view.last_succeeded_at, Some(b.now()));
    b.leap_to(start.plus(s(180))).await;
    assert_eq!(b.counted("news").await, (2, 2, 0));
}

pub(crate) async fn queue_fires_as_soon_as_the_job_before_has_ended(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    b.put("news", every_from(s(60), start).overlap(Overlap::Queue)).await;
    b.leap_to(start).await;
    let lease = b.take_job("q", &job_at("news", start)).await;
    b.leap_to(start.plus(s(185))).await;
    let view = b.schedule("news").await;
    assert_eq!((view.fired, view.skipped, view.unfinished), (1, 0, 1));
    b.settle(succeeded(&lease)).await;
    b.leap(ms(1)).await;
    // If several occurrences wait behind a job, only the newest fires.
    b.job(&job_at("news", start.plus(s(180)))).await;
    assert_eq!(b.counted("news").await, (2, 0, 2));
}

pub(crate) async fn with_all_each_that_waits_fires_one_after_the_other(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    let set = every_from(s(60), start).overlap(Overlap::Queue).catch_up(CatchUp::All);
    b.put("news", set).await;
    b.leap_to(start.plus(s(185))).await;
    for n in 0..4 {
        let id = job_at("news", start.plus(s(60 * n)));
        assert_eq!(b.counted("news").await.0, n + 1);
        let lease = b.take_job("q", &id).await;
        b.settle(succeeded(&lease)).await;
        b.leap(ms(1)).await;
    }
    assert_eq!(b.counted("news").await, (4, 0, 0));
}

pub(crate) async fn run_now_makes_a_job_beside_the_plan(b: &mut Bench) {
    let put = b.put("news", every(hours(1))).await;
    let one = b.run_schedule("news", "r1").await;
    assert!(!one.duplicate, "{one:?}");
    assert_eq!((one.job.state, one.job.run_at), (JobState::Ready, b.now()));
    let made_by = one.job.schedule.expect("it says which schedule made it");
    assert_eq!((made_by.id, made_by.at), (schedule("news"), None));
    let view = b.schedule("news").await;
    assert_eq!((view.next_at, view.fired, view.unfinished), (put.next_at, 0, 1));
    assert!(b.run_schedule("news", "r1").await.duplicate, "the same call again");
}

pub(crate) async fn run_now_answers_an_unfinished_job_and_makes_it_ready(b: &mut Bench) {
    b.put("news", every(hours(1))).await;
    b.run_schedule("news", "r1").await;
    let lease = b.take_job("q", "r1").await;
    b.settle(snoozed(&lease, s(600))).await;
    let again = b.run_schedule("news", "r2").await;
    assert!(again.duplicate);
    assert_eq!((again.job.id.as_str(), again.job.state), ("r1", JobState::Ready));
    b.no_job("r2").await;
    b.put("news", every(hours(1)).overlap(Overlap::Allow)).await;
    assert!(!b.run_schedule("news", "r3").await.duplicate);
    b.take_job("q", "r1").await;
    let lease = b.take_job("q", "r3").await;
    b.settle(succeeded(&lease)).await;
    b.put("news", every(hours(1))).await;
    let run = RunScheduleNow { schedule: schedule("news"), id: Some(job_id("r4")) };
    let no = b.refused(Code::WrongState, run).await;
    assert_eq!(no.job.as_deref(), Some("r3"), "the last has ended, an older one has not");
}

pub(crate) async fn run_now_works_while_it_is_paused(b: &mut Bench) {
    b.put("news", every(s(60))).await;
    b.ok(PauseSchedule { schedule: schedule("news"), until: None }).await;
    b.run_schedule("news", "r1").await;
    b.leap(s(300)).await;
    assert_eq!(b.counted("news").await, (0, 0, 0));
    b.is("r1", JobState::Ready).await;
}
