//! A limit with a gauge counts work outside too, and no run of ours falls between the two counts.

use tenure_core::gauge::{Gauge, OnStale};
use tenure_core::job::JobState;
use tenure_core::lease::{ExtendItem, Later, ReasonKind};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::LimitSettings;
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::calls::gauges::*;
use crate::words::*;

/// Jobs `j0`, `j1`, … of the queue `q` that need `l`.
async fn waiting_jobs(b: &Bench, count: usize) {
    let jobs = (0..count).map(|n| job("q").id(&format!("j{n}")).needs([need("l")]));
    b.push_all(jobs.collect()).await;
}

pub(crate) async fn work_outside_takes_permits_as_soon_as_it_is_read(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 3, counting()).await;
    waiting_jobs(b, 4).await;
    b.none("q").await;
    reader.read(b, sum(2)).await;
    let view = b.limit("l").await;
    assert_eq!((view.in_use, view.external, view.over_limit), (0, 2, 0));
    let read = reading_of(&view);
    assert_eq!((read.asked_at, read.sum, read.external), (Some(b.now()), Some(2), Some(2)));
    assert_eq!((read.failed_at, read.error), (None, None));
    b.take_job("q", "j0").await;
    b.none("q").await;
    let reason = b.waits_for("j1", ReasonKind::External).await;
    assert_eq!((reason.in_use, reason.capacity), (Some(1), Some(3)));
    // Earlier grants stay: the limit is over its cap, and grants nothing.
    b.pass(s(2)).await;
    reader.read(b, sum(5)).await;
    assert_eq!(b.limit("l").await.over_limit, 3);
    b.pass(s(2)).await;
    reader.read(b, sum(0)).await;
    b.take_job("q", "j1").await;
    b.take_job("q", "j2").await;
    b.none("q").await;
}

pub(crate) async fn a_start_that_the_gauge_does_not_show_yet_is_not_counted_twice_for_longer_than_lag(
    b: &mut Bench,
) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 4, counting()).await;
    waiting_jobs(b, 4).await;
    b.none("q").await;
    reader.read(b, sum(0)).await;
    let ask = || b.ask("q").ttl(s(60));
    b.granted(ask()).await;
    b.granted(ask()).await;
    // One of the two is shown by now, and nothing says whose run it is.
    b.pass(s(2)).await;
    reader.read(b, sum(1)).await;
    assert_eq!(b.external("l").await, 1);
    b.granted(ask()).await;
    b.none("q").await;
    // The first two were granted longer than `lag` ago, the third was not.
    b.pass_reading(&mut reader, s(10), &sum(3)).await;
    assert_eq!(b.external("l").await, 1);
    b.pass_reading(&mut reader, s(4), &sum(3)).await;
    assert_eq!(b.external("l").await, 0);
    b.granted(ask()).await;
}

pub(crate) async fn a_run_that_ended_before_its_lease_did_never_lets_one_more_in(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 1, counting()).await;
    waiting_jobs(b, 2).await;
    b.none("q").await;
    reader.read(b, sum(0)).await;
    let lease = b.granted(b.ask("q").ttl(s(60))).await;
    // Its run has ended, its worker has not noticed, and another began outside.
    b.pass_reading(&mut reader, s(12), &sum(1)).await;
    assert_eq!(b.external("l").await, 0, "seen as ours");
    b.settle(succeeded(&lease)).await;
    let view = b.limit("l").await;
    assert_eq!((view.in_use, view.resting), (1, 1));
    b.none("q").await;
    b.pass(ms(300)).await;
    reader.read(b, sum(1)).await;
    let view = b.limit("l").await;
    assert_eq!((view.in_use, view.external), (0, 1));
    b.none("q").await;
    b.pass(s(2)).await;
    reader.read(b, sum(0)).await;
    b.take_job("q", "j1").await;
}

pub(crate) async fn a_run_whose_holder_died_is_counted_until_it_is_over(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    let both =
        [("count", counting(), sum(0), sum(1)), ("ids", listing(), ids([]), ids(["ids-dead"]))];
    for (name, gauge, nothing, one) in both {
        b.set_gauge(name, 1, gauge).await;
        b.push(job(name).id(&format!("{name}-dead")).needs([need(name)])).await;
        b.none(name).await;
        reader.read(b, nothing.clone()).await;
        b.granted(b.ask(name).by("me").ttl(s(3))).await;
        // Its worker dies before the run is shown, and its job is cancelled: the run holds no job's permit.
        b.pass_reading(&mut reader, s(6), &nothing).await;
        b.cancel(&format!("{name}-dead")).await;
        b.push(job(name).id(&format!("{name}-next")).needs([need(name)])).await;
        b.none(name).await;
        b.pass_reading(&mut reader, s(3), &nothing).await;
        let view = b.limit(name).await;
        assert_eq!(
            (view.in_use, view.resting, view.external),
            (1, 1, 0),
            "until {name} can show it"
        );
        b.pass_reading(&mut reader, s(5), &one).await;
        let view = b.limit(name).await;
        assert_eq!((view.in_use, view.external), (0, 1), "{name} shows it");
        b.none(name).await;
        b.pass_reading(&mut reader, s(3), &nothing).await;
        let lease = b.take_job(name, &format!("{name}-next")).await;
        b.settle(succeeded(&lease)).await;
        b.set_limit(name, cap(1)).await;
        // It was held for a moment, which is reason enough to read it.
        while reader.try_claim().is_some() {}
    }
}

/// The first `count` jobs of `q` run, and their worker dies silently.
async fn runs_of_a_worker_that_dies(b: &Bench, count: usize) {
    for n in 0..count {
        let lease = b.granted(b.ask("q").by("dead").ttl(s(3))).await;
        assert_eq!(job_of(&lease), format!("j{n}"));
    }
}

pub(crate) async fn a_jobs_own_lost_run_is_its_permit(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 1, listing()).await;
    waiting_jobs(b, 2).await;
    b.none("q").await;
    reader.read(b, ids([])).await;
    runs_of_a_worker_that_dies(b, 1).await;
    b.pass_reading(&mut reader, s(6), &ids(["j0"])).await;
    b.none("q").await;
    b.pass_reading(&mut reader, s(6), &ids(["j0"])).await;
    let view = b.limit("l").await;
    assert_eq!((view.in_use, view.external), (0, 1), "the limit is taken");
    b.is("j0", JobState::Ready).await;
    let lease = b.granted(b.ask("q").ttl(s(60))).await;
    assert_eq!(job_of(&lease), "j0", "its run goes on, and nobody else's begins");
    b.none("q").await;
    b.waits_for("j1", ReasonKind::Limit).await;
    // Its new holder learns that it must stop.
    b.cancel("j0").await;
    let leases = vec![ExtendItem { lease: id_of(&lease), progress: None }];
    assert_eq!(b.ok(Extend { leases, ttl: None }).await.cancel, [id_of(&lease)]);
    b.settle(failed(&lease)).await;
    b.is("j0", JobState::Cancelled).await;
    b.none("q").await;
    b.pass_reading(&mut reader, s(14), &ids([])).await;
    b.take_job("q", "j1").await;
}

pub(crate) async fn a_run_of_ones_own_is_no_way_past_the_rest_of_a_limit(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 2, listing()).await;
    waiting_jobs(b, 4).await;
    b.none("q").await;
    reader.read(b, ids([])).await;
    runs_of_a_worker_that_dies(b, 2).await;
    // One of the two has ended, and one that was never granted is run by hand.
    b.pass_reading(&mut reader, s(6), &ids(["j1", "j3"])).await;
    b.none("q").await;
    b.pass_reading(&mut reader, s(10), &ids(["j1", "j3"])).await;
    assert_eq!(b.external("l").await, 2);
    b.none("q").await;
    b.waits_for("j0", ReasonKind::External).await;
    // It is ahead of the job that has a run, and comes first.
    b.cancel("j0").await;
    let until = Later::For(s(5));
    b.ok(PauseLimit { limit: limit("l"), until }).await;
    b.none("q").await;
    b.pass_reading(&mut reader, s(6), &ids(["j1", "j3"])).await;
    b.take_job("q", "j1").await;
    b.none("q").await;
    assert_eq!(b.external("l").await, 1, "its lease counts instead of its run");
}

pub(crate) async fn all_whose_worker_died_go_on_with_their_runs(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 3, listing()).await;
    waiting_jobs(b, 4).await;
    b.none("q").await;
    reader.read(b, ids([])).await;
    runs_of_a_worker_that_dies(b, 3).await;
    let listed = || ids(["j0", "j1", "j2"]);
    b.pass_reading(&mut reader, s(6), &listed()).await;
    b.none("q").await;
    b.pass_reading(&mut reader, s(6), &listed()).await;
    for id in ["j0", "j1", "j2"] {
        assert_eq!(job_of(&b.granted(b.ask("q").by(id).ttl(s(60))).await), id);
    }
    b.none("q").await;
    for _ in 0..2 {
        let view = b.limit("l").await;
        assert_eq!((view.in_use, view.external, view.over_limit), (3, 0, 0));
        b.pass_reading(&mut reader, s(3), &listed()).await;
    }
}

pub(crate) async fn a_lost_run_waits_while_its_limit_is_over_its_cap_or_closed(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 2, listing()).await;
    waiting_jobs(b, 2).await;
    b.none("q").await;
    reader.read(b, ids([])).await;
    runs_of_a_worker_that_dies(b, 2).await;
    b.set_gauge("l", 1, listing()).await;
    b.pass_reading(&mut reader, s(6), &ids(["j0", "j1"])).await;
    b.none("q").await;
    b.pass_reading(&mut reader, s(6), &ids(["j0", "j1"])).await;
    // Either may have ended since, and then a new run would be one too many.
    b.none("q").await;
    b.waits_for("j0", ReasonKind::External).await;
    b.set_gauge("l", 0, listing()).await;
    b.pass_reading(&mut reader, s(3), &ids(["j0"])).await;
    b.none("q").await;
    b.set_gauge("l", 1, listing()).await;
    b.take_job("q", "j0").await;
    b.none("q").await;
}

pub(crate) async fn a_freed_permit_comes_back_with_the_next_reading_which_is_asked_at_once(
    b: &mut Bench,
) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 1, Gauge { every: hours(1), stale: hours(3), ..counting() }).await;
    waiting_jobs(b, 3).await;
    b.none("q").await;
    reader.read(b, sum(0)).await;
    let first = b.granted(b.ask("q").ttl(s(60))).await;
    b.none("q").await;
    b.pass(s(5)).await;
    reader.no_claim();
    b.settle(succeeded(&first)).await;
    b.none("q").await;
    let reason = b.waits_for("j1", ReasonKind::Gap).await;
    assert_eq!(reason.earliest, None, "whenever it is read");
    b.pass(ms(1)).await;
    reader.read(b, sum(0)).await;
    let second = b.take_job("q", "j1").await;
    // At most five a second.
    b.settle(succeeded(&second)).await;
    b.none("q").await;
    b.pass(ms(198)).await;
    reader.no_claim();
    b.pass(ms(2)).await;
    reader.read(b, sum(0)).await;
    let third = b.take_job("q", "j2").await;
    // No caller is in line: the reading can wait.
    b.pass(s(1)).await;
    b.settle(succeeded(&third)).await;
    b.pass(s(10)).await;
    reader.no_claim();
}

pub(crate) async fn nothing_is_granted_on_a_limit_whose_gauge_was_just_set_before_it_was_read_once(
    b: &mut Bench,
) {
    let Some(mut reader) = b.reader() else { return };
    assert!(b.set_gauge("l", 4, counting()).await.gauge.expect("a gauge").reading.is_none());
    waiting_jobs(b, 2).await;
    b.none("q").await;
    b.waits_for("j0", ReasonKind::External).await;
    // `keep` has nothing to keep: a misspelt address must not open the limit unnoticed.
    b.pass_reading(&mut reader, s(60), &unreadable()).await;
    b.none("q").await;
    let read = reading_of(&b.limit("l").await);
    assert_eq!((read.asked_at, read.sum, read.external), (None, None, None));
    assert_eq!(read.error.as_deref(), Some("http status 503"));
    b.pass_reading(&mut reader, s(2), &sum(0)).await;
    b.take_job("q", "j0").await;
    // Another address, so the readings of the old one are forgotten.
    let put = b.set_gauge("l", 4, counting_at("http://other/load")).await;
    assert!(put.gauge.expect("a gauge").reading.is_none());
    b.none("q").await;
    reader.read(b, sum(1)).await;
    b.take_job("q", "j1").await;
}

pub(crate) async fn nothing_is_granted_after_an_idle_hour_before_the_gauge_was_read(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 2, counting()).await;
    waiting_jobs(b, 1).await;
    b.none("q").await;
    reader.read(b, sum(0)).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    b.pass(s(10)).await;
    b.leap(hours(1)).await;
    // No job needed it, so it was not read.
    reader.no_claim();
    b.push(job("q").id("late").needs([need("l")])).await;
    b.none("q").await;
    reader.read(b, sum(2)).await;
    b.none("q").await;
    b.pass(s(2)).await;
    reader.read(b, sum(1)).await;
    b.take_job("q", "late").await;
}

pub(crate) async fn an_answer_to_an_old_claim_is_dropped_and_no_claim_is_made_while_one_is_open(
    b: &mut Bench,
) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 2, counting()).await;
    waiting_jobs(b, 1).await;
    b.none("q").await;
    let old = reader.claim().await;
    b.pass(ms(4_900)).await;
    reader.no_claim();
    b.pass(ms(200)).await;
    let new = reader.claim().await;
    assert!(new.number > old.number && new.asked_at > old.asked_at);
    b.read(&old, sum(0)).await;
    b.none("q").await;
    let read = reading_of(&b.limit("l").await);
    assert_eq!(read.asked_at, None);
    assert!(read.error.is_some_and(|why| why.contains("5 s")), "the first attempt failed");
    b.read(&new, sum(1)).await;
    // A claim is answered only once.
    b.read(&new, sum(2)).await;
    assert_eq!(b.external("l").await, 1);
    // A change of the gauge ends its claim.
    b.pass(s(2)).await;
    let open = reader.claim().await;
    b.set_gauge("l", 2, counting_at("http://other/load")).await;
    b.read(&open, sum(0)).await;
    assert!(b.limit("l").await.gauge.expect("a gauge").reading.is_none());
    b.none("q").await;
    reader.read(b, sum(1)).await;
    b.take_job("q", "j0").await;
}

pub(crate) async fn an_observation_of_a_limit_with_a_gauge_is_refused(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    let seen = || ObserveLimit { limit: limit("l"), external: 2, hold: None };
    b.set_limit("l", cap(2)).await;
    b.ok(seen()).await;
    // An observation counts no longer once the limit has a gauge.
    assert_eq!(b.set_gauge("l", 2, counting()).await.external, 0);
    b.refused(Code::WrongState, seen()).await;
    waiting_jobs(b, 1).await;
    b.none("q").await;
    reader.read(b, sum(1)).await;
    assert_eq!(b.external("l").await, 1);
    // Without the gauge it can be observed again.
    assert_eq!(b.set_limit("l", cap(2)).await.view.external, 0);
    assert_eq!(b.ok(seen()).await.external, 2);
}

pub(crate) async fn taking_the_gauge_away_ends_all_rests(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 1, counting()).await;
    waiting_jobs(b, 2).await;
    b.none("q").await;
    reader.read(b, sum(0)).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    b.none("q").await;
    b.in_use("l", 1).await;
    let patch = PatchLimit {
        limit: limit("l"),
        concurrency: Patch::Keep,
        rate: Patch::Keep,
        gap: Patch::Keep,
        quarantine: Patch::Keep,
        gauge: Patch::Reset,
    };
    let view = b.ok(patch).await.view;
    assert_eq!((view.gauge.is_none(), view.in_use, view.resting), (true, 0, 0));
    b.take_job("q", "j1").await;
}

pub(crate) async fn of_a_gap_and_a_reading_the_later_ends_the_rest(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    let settings = LimitSettings { gap: Some(s(10)), ..cap(1) };
    let gauge = Some(Box::new(counting()));
    b.ok(PutLimit { limit: limit("l"), settings, gauge }).await;
    waiting_jobs(b, 3).await;
    b.none("q").await;
    reader.read(b, sum(0)).await;
    let first = b.take("q").await;
    b.settle(succeeded(&first)).await;
    b.none("q").await;
    // It is read, and the gap goes on.
    b.pass_reading(&mut reader, s(9), &sum(0)).await;
    b.none("q").await;
    let reason = b.waits_for("j1", ReasonKind::Gap).await;
    assert!(reason.earliest.is_some(), "the end of the gap is known");
    b.pass_reading(&mut reader, s(2), &sum(0)).await;
    let second = b.granted(b.ask("q").ttl(s(60))).await;
    // The gap is over, and it is not read.
    b.settle(succeeded(&second)).await;
    b.none("q").await;
    b.pass_reading(&mut reader, s(12), &unreadable()).await;
    b.none("q").await;
    b.pass_reading(&mut reader, s(2), &sum(0)).await;
    b.take_job("q", "j2").await;
}

pub(crate) async fn of_ids_each_run_counts_that_no_live_lease_explains(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 5, listing()).await;
    waiting_jobs(b, 2).await;
    b.none("q").await;
    reader.read(b, ids(["theirs", "theirs", "j1"])).await;
    let view = b.limit("l").await;
    assert_eq!(reading_of(&view).sum, Some(3));
    assert_eq!(view.external, 3, "a job that only waits has no run of ours");
    let lease = b.granted(b.ask("q").ttl(s(60))).await;
    assert_eq!(job_of(&lease), "j0");
    // A start is known by its id at once, and a second run under one id is not ours.
    b.pass(s(2)).await;
    reader.read(b, ids(["j0", "j0", "theirs"])).await;
    assert_eq!(b.external("l").await, 2);
    // An answer of another kind is a failed reading.
    b.pass(s(2)).await;
    reader.read(b, sum(0)).await;
    let view = b.limit("l").await;
    assert_eq!(view.external, 2);
    assert!(reading_of(&view).failed_at.is_some());
}

pub(crate) async fn beside_the_next_run_of_its_job_a_dead_holders_run_counts(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 2, Gauge { lag: s(5), ..listing() }).await;
    waiting_jobs(b, 1).await;
    b.none("q").await;
    reader.read(b, ids([])).await;
    b.granted(b.ask("q").by("me").ttl(s(3))).await;
    b.pass_reading(&mut reader, s(8), &ids(["j0"])).await;
    let lease = b.granted(b.ask("q").ttl(s(60))).await;
    assert_eq!(job_of(&lease), "j0");
    // The listed run is the dead one's until the new one must be shown as well.
    b.pass_reading(&mut reader, s(3), &ids(["j0"])).await;
    assert_eq!(b.external("l").await, 1);
    b.pass_reading(&mut reader, s(5), &ids(["j0", "j0"])).await;
    assert_eq!(b.external("l").await, 1);
    b.pass_reading(&mut reader, s(3), &ids(["j0"])).await;
    assert_eq!(b.external("l").await, 0);
}

pub(crate) async fn a_password_in_a_gauges_address_is_nowhere_shown(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    let gauge = counting_at("http://me:geheim@host/load?token=geheim");
    let put = b.set_gauge("l", 1, gauge.clone()).await;
    waiting_jobs(b, 1).await;
    b.none("q").await;
    let claim = reader.claim().await;
    assert_eq!(*claim.gauge, gauge, "the reader is told it whole");
    b.read(&claim, unreadable()).await;
    let observed = ObserveLimit { limit: limit("l"), external: 1, hold: None };
    let shown = [
        serde_json::to_string(&put).expect("JSON"),
        serde_json::to_string(&b.limit("l").await).expect("JSON"),
        serde_json::to_string(&b.ok(ListLimits::default()).await).expect("JSON"),
        serde_json::to_string(&b.explain("j0").await).expect("JSON"),
        format!("{:?} {put:?} {claim:?} {gauge:?}", b.refused(Code::WrongState, observed).await),
    ];
    for text in &shown {
        assert!(!text.contains("geheim"), "{text}");
    }
    assert!(shown[0].contains("http://•••@host/load"), "{}", shown[0]);
}

pub(crate) async fn a_gauge_needs_a_concurrency_and_a_limit_of_its_own(b: &mut Bench) {
    if b.reader().is_none() {
        return;
    }
    let put = |name, settings| PutLimit {
        limit: limit(name),
        settings,
        gauge: Some(Box::new(counting())),
    };
    for refused in
        [put("r", rate(1, s(1), 1)), put("r", LimitSettings::default()), put("site:*", cap(1))]
    {
        let no = b.refused(Code::InvalidField, refused).await;
        assert_eq!(no.pointer.as_deref(), Some("/gauge"), "{no}");
    }
    b.set_limit("site:*", cap(1)).await;
    let view = b.set_gauge("site:x", 2, counting()).await;
    assert!(view.template.is_none() && view.gauge.is_some());
    assert!(b.limit("site:y").await.gauge.is_none());
    b.ok(DeleteLimit { limit: limit("site:x") }).await;
    assert!(b.limit("site:x").await.gauge.is_none());
}

pub(crate) async fn the_same_gauge_again_keeps_what_was_read(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 2, counting()).await;
    waiting_jobs(b, 2).await;
    b.none("q").await;
    reader.read(b, sum(1)).await;
    let view = b.set_gauge("l", 3, counting()).await;
    assert_eq!(view.external, 1);
    b.take_job("q", "j0").await;
    b.take_job("q", "j1").await;
}

pub(crate) async fn nobody_reserves_a_limit_that_waits_for_a_reading(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_limit("other", cap(2)).await;
    b.set_gauge("l", 2, Gauge { on_stale: OnStale::Hold, ..counting() }).await;
    let taken = b.granted(b.ask_needs([need("other")]).ttl(s(60))).await;
    b.push(job("q").id("heavy").needs([need("l"), weighing("other", 2)])).await;
    for _ in 0..15 {
        b.none("q").await;
        b.pass_reading(&mut reader, s(1), &unreadable()).await;
    }
    // Longer than the patience: its other needs are free for others meanwhile.
    b.settle(released(&taken)).await;
    let other = b.hold([need("other")]).await;
    b.settle(released(&other)).await;
    b.pass_reading(&mut reader, s(3), &sum(0)).await;
    b.take_job("q", "heavy").await;
}

pub(crate) async fn rests_and_what_was_read_outlive_a_crash(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 3, counting()).await;
    waiting_jobs(b, 3).await;
    b.none("q").await;
    reader.read(b, sum(1)).await;
    let settled = b.granted(b.ask("q").ttl(s(60))).await;
    b.granted(b.ask("q").by("me").ttl(s(60))).await;
    b.settle(succeeded(&settled)).await;
    let before = b.limit("l").await;
    assert_eq!((before.in_use, before.resting, before.external), (2, 1, 1));
    if !b.reopen().await {
        return;
    }
    let after = b.limit("l").await;
    assert_eq!((after.in_use, after.resting, after.external), (2, 1, 1));
    assert_eq!(
        (after.gauge.clone(), reading_of(&after)),
        (before.gauge.clone(), reading_of(&before))
    );
    b.none("q").await;
    let mut reader = b.reader().expect("it kept gauges before");
    b.pass(s(3)).await;
    reader.read(b, sum(1)).await;
    let view = b.limit("l").await;
    assert_eq!((view.in_use, view.resting, view.external), (1, 0, 1));
    b.take_job("q", "j2").await;
    b.is("j1", JobState::Running).await;
    assert_eq!(Span::ZERO, b.limit("l").await.settings.quarantine);
}
