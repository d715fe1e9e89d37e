//! Schedules that are changed, paused, deleted and moved, and clocks that step back.

use tenure_core::job::JobState;
use tenure_core::lease::{Later, SettleItem};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::schedule::{CatchUp, Overlap};
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::calls::schedules::*;
use crate::words::*;

fn pause(id: &str, until: Option<Later>) -> PauseSchedule {
    PauseSchedule { schedule: schedule(id), until }
}

pub(crate) async fn a_schedule_that_is_deleted_leaves_its_job_alone(b: &mut Bench) {
    let moment = b.put("news", every(s(60))).await.next_at.expect("a moment");
    b.leap_to(moment).await;
    let lease = b.take_job("q", &job_at("news", moment)).await;
    b.ok(DeleteSchedule { schedule: schedule("news") }).await;
    b.refused(Code::ScheduleNotFound, GetSchedule { schedule: schedule("news") }).await;
    b.leap(s(20)).await;
    b.settle(succeeded(&lease)).await;
    b.is(&job_at("news", moment), JobState::Succeeded).await;
}

pub(crate) async fn a_schedule_that_is_made_again_counts_its_old_job(b: &mut Bench) {
    let start = b.put("news", every(s(60))).await.next_at.expect("a moment");
    b.leap_to(start).await;
    b.ok(DeleteSchedule { schedule: schedule("news") }).await;
    let view = b.put("news", every(s(60))).await;
    assert_eq!((view.unfinished, view.fired), (1, 0));
    b.leap_to(start.plus(s(60))).await;
    assert_eq!(b.counted("news").await, (0, 1, 0));
}

pub(crate) async fn what_falls_into_a_pause_is_never_made_up(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    let set = every_from(s(60), start).catch_up(CatchUp::All).overlap(Overlap::Allow);
    b.put("news", set.clone()).await;
    let view = b.ok(pause("news", None)).await;
    assert!(view.paused && view.paused_until.is_none());
    assert_eq!((view.next_at, view.next.as_deref()), (None, Some(&[][..])));
    b.leap_to(start.plus(s(150))).await;
    let view = b.ok(ResumeSchedule { schedule: schedule("news") }).await;
    assert!(!view.paused);
    assert_eq!(view.next_at, Some(start.plus(s(180))));
    b.ok(ResumeSchedule { schedule: schedule("news") }).await;
    b.leap_to(start.plus(s(180))).await;
    assert_eq!(b.counted("news").await, (1, 0, 0));
    // With an end it goes on by itself, at the first occurrence after it.
    let view = b.ok(pause("news", Some(Later::For(s(100))))).await;
    assert_eq!(view.paused_until, Some(b.now().plus(s(100))));
    assert_eq!(view.next_at, Some(start.plus(s(300))));
    b.leap_to(start.plus(s(300))).await;
    assert_eq!(b.counted("news").await, (2, 0, 0));
    b.job(&job_at("news", start.plus(s(300)))).await;
}

pub(crate) async fn a_pause_holds_for_cron_too(b: &mut Bench) {
    let first = b.put("news", cron("* * * * *", "UTC")).await.next_at.expect("a moment");
    b.ok(pause("news", Some(Later::Until(first.plus(s(90)))))).await;
    b.leap_to(first.plus(s(119))).await;
    assert_eq!(b.counted("news").await, (0, 0, 0));
    b.leap_to(first.plus(s(120))).await;
    assert_eq!(b.counted("news").await, (1, 0, 0));
    b.job(&job_at("news", first.plus(s(120)))).await;
}

pub(crate) async fn a_change_of_the_timing_drops_what_was_due(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    let set = every_from(s(60), start).overlap(Overlap::Queue).catch_up(CatchUp::All);
    b.put("news", set.clone()).await;
    b.leap_to(start.plus(s(200))).await;
    assert_eq!(b.schedule("news").await.fired, 1, "the others wait for its job");
    let changed = every_from(s(50), start).overlap(Overlap::Queue).catch_up(CatchUp::All);
    let view = b.put("news", changed).await;
    assert_eq!(view.changed_at, b.now());
    let lease = b.take_job("q", &job_at("news", start)).await;
    b.settle(succeeded(&lease)).await;
    b.leap(ms(1)).await;
    assert_eq!(b.counted("news").await, (1, 0, 0));
}

pub(crate) async fn a_change_of_the_job_alone_moves_no_moment(b: &mut Bench) {
    let put = b.put("news", cron("*/5 * * * *", "UTC")).await;
    b.leap(s(1)).await;
    let set = cron("*/5 * * * *", "UTC").making(|job| job.kind = "other".to_owned());
    let view = b.put("news", set.clone()).await;
    assert_eq!((view.next, view.changed_at), (put.next.clone(), put.changed_at));
    assert_eq!(view.settings, set);
    let moment = put.next_at.expect("a moment");
    b.leap_to(moment).await;
    assert_eq!(b.job(&job_at("news", moment)).await.kind, "other");
}

pub(crate) async fn a_patch_changes_what_it_names_of_a_schedule(b: &mut Bench) {
    let none = PatchSchedule::new(schedule("news"));
    b.refused(Code::ScheduleNotFound, none.clone()).await;
    let put = b.put("news", cron("*/5 * * * *", "Europe/Berlin").of("mine")).await;
    let patch = PatchSchedule { overlap: Patch::Set(Overlap::Allow), ..none.clone() };
    let view = b.ok(patch).await.view;
    assert_eq!(view.settings.overlap, Overlap::Allow);
    assert_eq!((view.next.clone(), view.settings.timing), (put.next, put.settings.timing));
    let patch = PatchSchedule { every: Patch::Set(s(60)), ..none.clone() };
    let timing = b.ok(patch).await.view.settings.timing;
    assert_eq!((timing.every, timing.cron, timing.zone), (Some(s(60)), None, None));
    let patch = PatchSchedule { zone: Patch::Set("UTC".to_owned()), ..none.clone() };
    let no = b.refused(Code::ConflictingFields, patch).await;
    assert_eq!(no.pointer.as_deref(), Some("/zone"));
    let patch = PatchSchedule { cron: Patch::Set("0 0 30 2 *".to_owned()), ..none.clone() };
    b.refused(Code::NeverFires, patch).await;
    let patch = PatchSchedule { job: Patch::Reset, ..none };
    assert_eq!(b.refused(Code::InvalidField, patch).await.pointer.as_deref(), Some("/job"));
}

/// Settles a lease and sets the next occurrence of the schedule.
async fn settle_next(
    b: &Bench,
    item: SettleItem,
    next_in: Span,
) -> tenure_core::lease::SettledLease {
    let item = SettleItem { next_in: Some(next_in), ..item };
    let mut settled = b.ok(Settle::of(vec![item])).await.settled;
    let one = settled.remove(0);
    assert!(one.ok, "{one:?}");
    one
}

pub(crate) async fn next_in_moves_the_next_moment_once(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    for (id, set) in [("interval", every_from(s(60), start)), ("cron", cron("* * * * *", "UTC"))] {
        let moment = b.put(id, set).await.next_at.expect("a moment");
        b.leap_to(moment).await;
        let lease = b.take_job("q", &job_at(id, moment)).await;
        let item = succeeded(&lease);
        let settled = settle_next(b, item.clone(), s(600)).await;
        let moved = tenure_core::moments::round_up(b.now().plus(s(600)));
        assert_eq!(settled.next_at, Some(Some(moved)), "{id}");
        b.leap(s(1)).await;
        // A repeat moves nothing, and is answered with the moment of the first.
        assert_eq!(settle_next(b, item, s(600)).await.next_at, Some(Some(moved)), "{id}");
        let view = b.schedule(id).await;
        assert_eq!((view.next_at, view.moved), (Some(moved), true), "{id}");
        // An interval goes on from the moved moment, cron as it is written.
        let after = match id {
            "interval" => moved.plus(s(60)),
            _ => tenure_core::time::Moment::from_us((moved.us() / 60_000_000 + 1) * 60_000_000),
        };
        assert_eq!(view.next.expect("moments")[1], after, "{id}");
        b.leap_to(moved).await;
        b.job(&job_at(id, moved)).await;
        let view = b.schedule(id).await;
        assert_eq!((view.next_at, view.moved, view.fired), (Some(after), false, 2), "{id}");
        b.ok(DeleteSchedule { schedule: schedule(id) }).await;
        b.cancel(&job_at(id, moved)).await;
    }
}

pub(crate) async fn the_word_of_a_job_from_before_a_change_means_nothing(b: &mut Bench) {
    let moment = b.put("news", every(s(60))).await.next_at.expect("a moment");
    b.leap_to(moment).await;
    let lease = b.take_job("q", &job_at("news", moment)).await;
    let changed = b.put("news", every(s(90))).await;
    let settled = settle_next(b, succeeded(&lease), s(600)).await;
    assert_eq!(settled.next_at, None);
    assert_eq!(b.schedule("news").await.next_at, changed.next_at);
    // Nor does the settle of a job without a schedule.
    b.push(job("q").id("plain")).await;
    let lease = b.take_job("q", "plain").await;
    assert_eq!(settle_next(b, succeeded(&lease), s(600)).await.next_at, None);
}

pub(crate) async fn next_in_beyond_the_end_ends_the_schedule(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    b.put("news", every_from(s(60), start).until(start.plus(s(600)))).await;
    b.leap_to(start).await;
    let lease = b.take_job("q", &job_at("news", start)).await;
    assert_eq!(settle_next(b, succeeded(&lease), s(601)).await.next_at, Some(None));
    let view = b.schedule("news").await;
    assert_eq!((view.ended, view.next_at), (true, None));
}

pub(crate) async fn a_clock_that_is_set_back_fires_no_moment_twice(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(60)));
    b.put("news", every_from(s(60), start).overlap(Overlap::Allow)).await;
    b.leap_to(start.plus(s(60))).await;
    let fired = b.counted("news").await.0;
    if !b.back(s(100)).await {
        return;
    }
    b.leap_to(start.plus(s(61))).await;
    let view = b.schedule("news").await;
    assert_eq!(view.unfinished, fired, "the same ids: nothing is stored twice");
    b.leap_to(start.plus(s(121))).await;
    assert_eq!(b.schedule("news").await.unfinished, fired + 1);
}

pub(crate) async fn a_schedule_survives_a_crash(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    b.put("interval", every_from(s(60), start)).await;
    let cron = b.put("cron", cron("*/2 * * * *", "Europe/Berlin").of("mine")).await;
    b.ok(pause("cron", Some(Later::For(hours(2))))).await;
    b.leap_to(start).await;
    b.leap_to(start.plus(s(60))).await;
    let before = (b.schedule("interval").await, b.schedule("cron").await);
    assert_eq!((before.0.fired, before.0.skipped, before.0.unfinished), (1, 1, 1));
    if !b.reopen().await {
        return;
    }
    let after = (b.schedule("interval").await, b.schedule("cron").await);
    assert_eq!((&after.0, &after.1), (&before.0, &before.1));
    assert_eq!(after.1.settings, cron.settings);
    let lease = b.take_job("q", &job_at("interval", start)).await;
    b.settle(succeeded(&lease)).await;
    b.leap_to(start.plus(s(120))).await;
    assert_eq!(b.counted("interval").await, (2, 1, 0));
}
