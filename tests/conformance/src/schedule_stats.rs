//! Schedules in `stats`: how many exist, are paused, and are due, and since when.

use tenure_core::lease::Later;
use tenure_core::requests::*;
use tenure_core::schedule::{CatchUp, Overlap};
use tenure_core::time::Moment;

use crate::bench::Bench;
use crate::calls::schedules::*;
use crate::words::*;

/// How many schedules exist, are paused, and are due; and since when.
async fn told(b: &Bench) -> (u64, u64, u64, Option<Moment>) {
    let ScheduleStats { count, paused, due, oldest_due_at } = b.ok(GetStats).await.schedules;
    (count, paused, due, oldest_due_at)
}

fn pause(id: &str, until: Option<Later>) -> PauseSchedule {
    PauseSchedule { schedule: schedule(id), until }
}

pub(crate) async fn stats_count_schedules_and_those_that_are_paused_now(b: &mut Bench) {
    assert_eq!(told(b).await, (0, 0, 0, None));
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    b.put("runs", every_from(hours(10), start)).await;
    b.put("by-the-clock", cron("0 0 1 1 *", "UTC")).await;
    b.put("interval", every_from(hours(10), start.plus(hours(5)))).await;
    assert_eq!(told(b).await, (3, 0, 0, None));
    b.ok(pause("by-the-clock", None)).await;
    b.ok(pause("interval", Some(Later::For(hours(1))))).await;
    assert_eq!(told(b).await, (3, 2, 0, None));
    // The last pause counts.
    b.ok(pause("interval", Some(Later::For(hours(2))))).await;
    b.ok(pause("by-the-clock", Some(Later::For(hours(3))))).await;
    b.leap_to(start).await;
    assert_eq!(told(b).await, (3, 2, 0, None));
    // A pause that ends by itself is no step.
    b.leap(hours(2)).await;
    assert_eq!(told(b).await, (3, 1, 0, None));
    b.ok(ResumeSchedule { schedule: schedule("by-the-clock") }).await;
    assert_eq!(told(b).await, (3, 0, 0, None));
    b.ok(pause("by-the-clock", None)).await;
    b.ok(DeleteSchedule { schedule: schedule("by-the-clock") }).await;
    assert_eq!(told(b).await, (2, 0, 0, None));
    // A schedule that is only kept because its job has not ended does not count any more.
    b.ok(DeleteSchedule { schedule: schedule("runs") }).await;
    assert_eq!(told(b).await, (1, 0, 0, None));
    let lease = b.take_job("q", &job_at("runs", start)).await;
    b.settle(succeeded(&lease)).await;
    assert_eq!(told(b).await, (1, 0, 0, None));
}

pub(crate) async fn a_moment_that_waits_for_its_own_job_counts_as_due(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    let queued = |set: tenure_core::schedule::ScheduleSettings| {
        set.overlap(Overlap::Queue).catch_up(CatchUp::All)
    };
    b.put("interval", queued(every_from(s(60), start))).await;
    b.leap_to(start).await;
    assert_eq!(told(b).await, (1, 0, 0, None), "it has fired");
    let first = b.take_job("q", &job_at("interval", start)).await;
    b.leap_to(start.plus(s(185))).await;
    assert_eq!(told(b).await, (1, 0, 1, Some(start.plus(s(60)))));
    let by_clock = b.put("cron", queued(cron("* * * * *", "UTC"))).await;
    let next = by_clock.next_at.expect("a moment");
    b.leap_to(next.plus(s(125))).await;
    assert_eq!(told(b).await, (2, 0, 2, Some(start.plus(s(60)))));
    // Its job ends: the occurrence that waited longest fires, and the next one waits.
    b.settle(succeeded(&first)).await;
    b.leap(ms(1)).await;
    assert_eq!(told(b).await, (2, 0, 2, Some(start.plus(s(120)))));
    // While it is paused, nothing waits any more.
    b.ok(pause("interval", Some(Later::For(hours(1))))).await;
    assert_eq!(told(b).await, (2, 1, 1, Some(next.plus(s(60)))));
    b.ok(DeleteSchedule { schedule: schedule("cron") }).await;
    assert_eq!(told(b).await, (1, 1, 0, None));
}
