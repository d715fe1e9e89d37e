//! Schedules: the jobs of each occurrence, and the occurrences themselves.

use tenure_core::job::JobState;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::schedule::{CatchUp, Overlap};
use tenure_core::settings::QueueSettings;
use tenure_core::time::Moment;

use crate::bench::Bench;
use crate::calls::schedules::*;
use crate::words::*;

pub(crate) async fn a_schedule_makes_one_job_at_each_of_its_moments(b: &mut Bench) {
    let put = b.put("news", every(s(60)).overlap(Overlap::Allow)).await;
    let first = put.next_at.expect("a moment");
    for n in 0..3 {
        let moment = first.plus(s(60 * n));
        b.leap_to(moment.minus(ms(1))).await;
        b.no_job(&job_at("news", moment)).await;
        b.leap_to(moment).await;
        let job = b.is(&job_at("news", moment), JobState::Ready).await;
        assert_eq!((job.run_at, job.created_at), (moment, moment));
    }
    let view = b.schedule("news").await;
    assert_eq!((view.fired, view.skipped, view.missed, view.unfinished), (3, 0, 0, 3));
    assert_eq!(view.last.expect("a moment fired").at, first.plus(s(120)));
}

pub(crate) async fn the_job_of_a_moment_has_an_id_made_of_both(b: &mut Bench) {
    let start = b.now().plus(s(10));
    let put = b.put("news", every_from(s(60), start)).await;
    let moment = put.next_at.expect("a moment");
    b.leap_to(moment).await;
    let id = job_at("news", moment);
    assert!(id.starts_with("news@20") && id.ends_with('Z') && id.len() == 25, "{id}");
    let made_by = b.job(&id).await.schedule.expect("it says which schedule made it");
    assert_eq!((made_by.id, made_by.at), (schedule("news"), Some(moment)));
}

pub(crate) async fn what_a_moment_makes_is_as_it_was_set(b: &mut Bench) {
    b.set_limit("l", cap(5)).await;
    let set = every(s(60)).making(|job| {
        job.kind = "visit".to_owned();
        job.payload = Some(json("{\"source\":42}"));
        job.priority = 7;
        job.group = Some(group("cn"));
        job.needs = Some(vec![need("l")]);
        job.timeout = Some(s(5));
        job.retain = Some(s(6));
        job.labels.insert("k".to_owned(), "v".to_owned());
    });
    let put = b.put("news", set.clone()).await;
    assert_eq!(put.settings, set);
    let moment = put.next_at.expect("a moment");
    b.leap_to(moment).await;
    let job = b.job(&job_at("news", moment)).await;
    assert_eq!((job.kind.as_str(), job.priority, job.group), ("visit", 7, Some(group("cn"))));
    assert_eq!((job.needs, job.timeout, job.retain), (vec![need("l")], Some(s(5)), Some(s(6))));
    assert_eq!(value(&job.payload.expect("a payload")), value(&json("{\"source\":42}")));
    assert_eq!(job.labels.get("k").map(String::as_str), Some("v"));
}

pub(crate) async fn a_moment_whose_id_is_taken_stores_nothing(b: &mut Bench) {
    let put = b.put("news", every(s(60))).await;
    let moment = put.next_at.expect("a moment");
    let id = job_at("news", moment);
    b.push(job("other").id(&id)).await;
    b.leap_to(moment).await;
    assert_eq!(b.job(&id).await.queue, queue("other"));
    assert_eq!(b.counted("news").await, (1, 0, 0), "it counts as fired");
    b.none("q").await;
    b.take_job("other", &id).await;
    b.none("other").await;
}

pub(crate) async fn five_moments_are_shown_and_they_are_those_that_fire(b: &mut Bench) {
    for (id, set) in [
        ("interval", every(s(90)).overlap(Overlap::Allow)),
        ("cron", cron("*/7 * * * *", "Europe/Berlin").overlap(Overlap::Allow)),
    ] {
        let next = b.put(id, set).await.next.expect("the next moments");
        assert_eq!(next.len(), 5, "{id}");
        assert!(next[0] > b.now(), "{id}");
        for (n, moment) in next.iter().enumerate() {
            b.leap_to(*moment).await;
            b.job(&job_at(id, *moment)).await;
            assert_eq!(b.counted(id).await.0, n as u64 + 1, "{id}");
        }
        b.ok(DeleteSchedule { schedule: schedule(id) }).await;
    }
}

pub(crate) async fn an_interval_with_a_start_has_its_moments_from_there(b: &mut Bench) {
    let start = b.now().plus(s(3_600));
    let put = b.put("news", every_from(s(60), start)).await;
    let first = tenure_core::moments::round_up(start);
    let expected: Vec<Moment> = (0..5).map(|n| first.plus(s(60 * n))).collect();
    assert_eq!(put.next, Some(expected));
}

pub(crate) async fn an_interval_without_a_start_has_a_phase_of_its_own(b: &mut Bench) {
    let first = b.put("news", every(hours(1))).await.next_at.expect("a moment");
    let other = b.put("other", every(hours(1))).await.next_at.expect("a moment");
    assert_ne!(first, other);
    b.ok(DeleteSchedule { schedule: schedule("news") }).await;
    assert_eq!(b.put("news", every(hours(1))).await.next_at, Some(first));
}

pub(crate) async fn a_start_of_a_minute_ago_fires_at_once_and_an_older_one_does_not(b: &mut Bench) {
    for (id, ago, fires) in [("now", 0, true), ("lately", 60, true), ("long ago", 61, false)] {
        b.leap_to(tenure_core::moments::round_up(b.now())).await;
        let start = b.now().minus(s(ago));
        b.put(id, every_from(hours(24), start)).await;
        b.leap(ms(1)).await;
        let fired = b.schedule(id).await.fired;
        assert_eq!(fired, u64::from(fires), "{id}");
        if fires {
            b.job(&job_at(id, start)).await;
        }
    }
}

pub(crate) async fn no_moment_lies_before_the_start_or_after_the_end(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(100)));
    let put = b.put("news", every_from(s(60), start).until(start.plus(s(120)))).await;
    let moments = vec![start, start.plus(s(60)), start.plus(s(120))];
    assert_eq!(put.next, Some(moments), "that of the start and that of the end are among them");
    let mut set = cron("* * * * *", "UTC");
    (set.timing.starts_at, set.timing.ends_at) = (Some(start), Some(start.plus(s(119))));
    let next = b.put("cron", set).await.next.expect("moments");
    assert!(next.iter().all(|at| *at >= start && *at <= start.plus(s(119))), "{next:?}");
    assert!((1..=2).contains(&next.len()), "{next:?}");
}

pub(crate) async fn a_schedule_past_its_end_is_shown_as_ended_and_stays(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(5)));
    let set = every_from(s(60), start).until(start);
    assert!(!b.put("news", set.clone()).await.ended);
    // Later than a start that would still fire at once.
    b.leap_to(start.plus(s(61))).await;
    let view = b.schedule("news").await;
    assert!(view.ended, "{view:?}");
    assert_eq!((view.next_at, view.next, view.fired), (None, Some(Vec::new()), 1));
    // The same settings again are never refused; another timing without an occurrence is.
    assert!(b.put("news", set.clone()).await.ended);
    let other = every_from(s(30), start).until(start);
    b.no_put(Code::NeverFires, "news", other).await;
    b.no_put(Code::NeverFires, "new", set).await;
}

pub(crate) async fn jitter_moves_the_job_and_not_its_id(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(60)));
    // Far more than the distance to the next occurrence.
    let set = every_from(s(10), start).jitter(hours(1)).overlap(Overlap::Allow);
    b.put("news", set.catch_up(CatchUp::All)).await;
    b.leap_to(start.plus(s(50))).await;
    let mut late = Vec::new();
    for n in 0..5 {
        let moment = start.plus(s(10 * n));
        let job = b.job(&job_at("news", moment)).await;
        assert!(job.run_at >= moment && job.run_at < moment.plus(s(10)), "{job:?}");
        late.push(job.run_at.since(moment));
    }
    assert!(late.iter().any(|span| *span > ms(0)) && late[0] != late[1], "{late:?}");
}

pub(crate) async fn the_job_of_a_moment_takes_the_defaults_of_that_moment(b: &mut Bench) {
    let moment = b.put("news", every(s(60))).await.next_at.expect("a moment");
    b.set_queue("q", QueueSettings { timeout: Some(s(9)), ..QueueSettings::default() }).await;
    b.leap_to(moment).await;
    assert_eq!(b.job(&job_at("news", moment)).await.timeout, Some(s(9)));
}

pub(crate) async fn a_job_whose_need_is_gone_by_the_moment_waits(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let set = every(s(60)).making(|job| job.needs = Some(vec![need("l")]));
    let moment = b.put("news", set.clone()).await.next_at.expect("a moment");
    b.ok(DeleteLimit { limit: limit("l") }).await;
    b.leap_to(moment).await;
    b.none("q").await;
    b.waits_for(&job_at("news", moment), tenure_core::lease::ReasonKind::NeverFits).await;
    let no = b.no_put(Code::UnknownLimit, "other", set).await;
    assert_eq!(no.pointer.as_deref(), Some("/job/needs/0/limit"));
}

pub(crate) async fn a_job_that_does_not_run_within_its_expires_in_is_cancelled(b: &mut Bench) {
    let set = every(s(600)).making(|job| job.expires_in = Some(s(30)));
    let moment = b.put("news", set).await.next_at.expect("a moment");
    b.leap_to(moment).await;
    let job = b.job(&job_at("news", moment)).await;
    assert_eq!(job.expires_at, Some(moment.plus(s(30))));
    b.leap(s(30)).await;
    b.is(&job_at("news", moment), JobState::Cancelled).await;
    // An occurrence whose time is over when it is decided is missed.
    b.leap_to(moment.plus(s(600 + 31))).await;
    assert_eq!(b.counted("news").await, (1, 0, 1));
}

pub(crate) async fn a_full_queue_skips_the_moment_and_counts_it(b: &mut Bench) {
    b.set_queue("q", QueueSettings { max_waiting: Some(1), ..QueueSettings::default() }).await;
    b.push(job("q").id("first")).await;
    let moment = b.put("news", every(s(60))).await.next_at.expect("a moment");
    b.leap_to(moment).await;
    assert_eq!(b.counted("news").await, (0, 1, 0));
    assert_eq!(b.queue("q").await.skipped, 1);
    b.no_job(&job_at("news", moment)).await;
    let run = RunScheduleNow { schedule: schedule("news"), id: Some(job_id("r")) };
    b.refused(Code::QueueFull, run).await;
}

pub(crate) async fn more_is_due_than_one_fire_decides(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(10)));
    for n in 0..150 {
        b.put(&format!("s{n}"), every_from(s(60), start)).await;
    }
    b.leap_to(start).await;
    for n in 0..150 {
        assert_eq!(b.schedule(&format!("s{n}")).await.fired, 1, "s{n}");
    }
}

pub(crate) async fn schedules_are_listed_by_their_ids(b: &mut Bench) {
    for id in ["b", "a", "c"] {
        b.put(id, every(s(60)).of(if id == "c" { "other" } else { "mine" })).await;
    }
    let list = |owner_name: Option<&str>, max: usize, cursor: Option<String>| ListSchedules {
        owner: owner_name.map(owner),
        full: false,
        page: Page { max, cursor },
    };
    let ids = |listed: &Listed<tenure_core::schedule::ScheduleView>| -> Vec<String> {
        listed.items.iter().map(|one| one.id.to_string()).collect()
    };
    let page = b.ok(list(None, 2, None)).await;
    assert_eq!(ids(&page), ["a", "b"]);
    assert!(page.items.iter().all(|one| one.next.is_none() && one.next_at.is_some()));
    assert!(page.items.iter().all(|one| one.settings.job.payload.is_none()));
    let rest = b.ok(list(None, 2, page.next)).await;
    assert_eq!((ids(&rest), rest.next), (vec!["c".to_owned()], None));
    assert_eq!(ids(&b.ok(list(Some("mine"), 10, None)).await), ["a", "b"]);
    let full = b.ok(ListSchedules { full: true, ..list(None, 1, None) }).await;
    assert!(full.items[0].settings.job.payload.is_some());
}

pub(crate) async fn what_is_not_a_timing_is_refused_with_its_place(b: &mut Bench) {
    for (set, code, pointer) in [
        (cron("0 9 * * 1-5", "Europe/Nowhere"), Code::UnknownZone, "/zone"),
        (cron("0 0 30 2 *", "UTC"), Code::NeverFires, "/cron"),
        (cron("0 0 0 0 0 0 0", "UTC"), Code::InvalidField, "/cron"),
        (cron("5/15 * * * *", "UTC"), Code::InvalidField, "/cron"),
    ] {
        let no = b.no_put(code, "news", set).await;
        assert_eq!(no.pointer.as_deref(), Some(pointer));
    }
    b.refused(Code::ScheduleNotFound, GetSchedule { schedule: schedule("news") }).await;
}
