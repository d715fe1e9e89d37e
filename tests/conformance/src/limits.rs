//! Caps: permits in use, weights, changes at run time, work outside.

use tenure_core::job::JobState;
use tenure_core::lease::ReasonKind;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::LimitSettings;

use crate::bench::Bench;
use crate::words::*;

fn patch(name: &str) -> PatchLimit {
    PatchLimit {
        limit: limit(name),
        concurrency: Patch::Keep,
        rate: Patch::Keep,
        gap: Patch::Keep,
        quarantine: Patch::Keep,
        gauge: Patch::Keep,
    }
}
fn needing_l(count: usize) -> Vec<tenure_core::job::NewJob> {
    (0..count).map(|n| job("q").id(&format!("j{n}")).needs([need("l")])).collect()
}

pub(crate) async fn never_more_than_the_cap_are_held(b: &mut Bench) {
    b.set_limit("l", cap(3)).await;
    b.push_all(needing_l(10)).await;
    let mut held = b.take_all("q", 10).await;
    for left in (0..7).rev() {
        assert_eq!(held.len(), 3);
        b.in_use("l", 3).await;
        b.none("q").await;
        b.denied([need("l")]).await;
        b.settle(succeeded(&held.remove(0))).await;
        b.in_use("l", 2).await;
        held.extend(b.take_all("q", 10).await);
        assert_eq!(b.queue("q").await.counts.blocked, left);
    }
}

pub(crate) async fn weights_are_added_up(b: &mut Bench) {
    b.set_limit("l", cap(5)).await;
    let three = b.hold([weighing("l", 3)]).await;
    b.denied([weighing("l", 3)]).await;
    b.hold([weighing("l", 2)]).await;
    b.denied([need("l")]).await;
    b.in_use("l", 5).await;
    b.settle(released(&three)).await;
    b.in_use("l", 2).await;
    b.hold([weighing("l", 3)]).await;
}

pub(crate) async fn a_lowered_cap_evicts_nobody_and_drains(b: &mut Bench) {
    b.set_limit("l", cap(3)).await;
    b.push_all(needing_l(5)).await;
    let held = b.take_all("q", 5).await;
    let view = b.set_limit("l", cap(1)).await.view;
    assert_eq!((view.in_use, view.over_limit), (3, 2));
    for lease in &held {
        b.lives(lease).await;
    }
    b.settle(succeeded(&held[0])).await;
    b.none("q").await;
    let view = b.limit("l").await;
    assert_eq!((view.in_use, view.over_limit), (2, 1));
    b.settle(succeeded(&held[1])).await;
    b.none("q").await;
    assert_eq!(b.limit("l").await.over_limit, 0);
    b.settle(succeeded(&held[2])).await;
    b.take_job("q", "j3").await;
    b.none("q").await;
}

pub(crate) async fn a_raised_cap_wakes_as_many_as_fit(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push_all(needing_l(5)).await;
    b.take("q").await;
    b.none("q").await;
    let one = b.waiting(b.ask("q").wait(s(30))).await;
    let two = b.waiting(b.ask("q").wait(s(30))).await;
    b.ok(PatchLimit { concurrency: Patch::Set(3), ..patch("l") }).await;
    let mut ids = [one.lease().await, two.lease().await].map(|lease| job_of(&lease).to_owned());
    ids.sort();
    assert_eq!(ids, ["j1", "j2"]);
    b.none("q").await;
}

pub(crate) async fn a_closed_limit_makes_jobs_wait(b: &mut Bench) {
    b.set_limit("l", cap(0)).await;
    b.push_all(needing_l(2)).await;
    b.none("q").await;
    b.is("j0", JobState::Blocked).await;
    let kinds: Vec<_> = b.explain("j0").await.reasons.iter().map(|why| why.kind.clone()).collect();
    assert!(!kinds.contains(&ReasonKind::NeverFits), "closed for now is not never: {kinds:?}");
    let waiting = b.waiting(b.ask("q").wait(s(30))).await;
    b.set_limit("l", cap(1)).await;
    assert_eq!(job_of(&waiting.lease().await), "j0");
}

pub(crate) async fn a_weight_that_never_fits_any_more_leaves_the_line(b: &mut Bench) {
    b.set_limit("l", cap(5)).await;
    let holder = b.hold([weighing("l", 5)]).await;
    b.push(job("q").id("heavy").needs([weighing("l", 4)])).await;
    b.push(job("q").id("light").needs([need("l")])).await;
    b.none("q").await;
    b.set_limit("l", cap(3)).await;
    b.settle(released(&holder)).await;
    b.take_job("q", "light").await;
    b.none("q").await;
    b.is("heavy", JobState::Blocked).await;
    b.waits_for("heavy", ReasonKind::NeverFits).await;
    b.no_push(Code::NeverFits, job("q").needs([weighing("l", 4)])).await;
    b.set_limit("l", cap(5)).await;
    b.take_job("q", "heavy").await;
}

pub(crate) async fn jobs_of_a_deleted_limit_wait_until_it_is_there_again(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push_all(needing_l(3)).await;
    let lease = b.take("q").await;
    b.ok(DeleteLimit { limit: limit("l") }).await;
    b.lives(&lease).await;
    b.none("q").await;
    b.waits_for("j1", ReasonKind::NeverFits).await;
    b.no_push(Code::UnknownLimit, job("q").needs([need("l")])).await;
    b.push(job("q").id("free")).await;
    b.take_job("q", "free").await;
    b.settle(succeeded(&lease)).await;
    b.none("q").await;
    b.set_limit("l", cap(1)).await;
    b.take_job("q", "j1").await;
    b.none("q").await;
}

pub(crate) async fn a_queue_whose_own_limit_is_deleted_is_open(b: &mut Bench) {
    b.set_limit("queue:q", cap(0)).await;
    b.push(job("q").id("a")).await;
    b.none("q").await;
    b.is("a", JobState::Blocked).await;
    b.ok(DeleteLimit { limit: limit("queue:q") }).await;
    b.is("a", JobState::Ready).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn what_was_held_counts_when_a_limit_is_back(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    let one = b.hold([need("l")]).await;
    let two = b.hold([need("l")]).await;
    b.ok(DeleteLimit { limit: limit("l") }).await;
    b.set_limit("l", cap(2)).await;
    b.in_use("l", 2).await;
    b.denied([need("l")]).await;
    b.settle(released(&one)).await;
    b.settle(released(&two)).await;
    b.in_use("l", 0).await;
}

pub(crate) async fn a_waiting_call_is_served_when_its_limit_is_made(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push_all(needing_l(1)).await;
    b.ok(DeleteLimit { limit: limit("l") }).await;
    b.none("q").await;
    let waiting = b.waiting(b.ask("q").wait(s(30))).await;
    b.set_limit("l", cap(1)).await;
    assert_eq!(job_of(&waiting.lease().await), "j0");
}

pub(crate) async fn a_limit_shows_who_holds_it(b: &mut Bench) {
    b.set_limit("l", cap(50)).await;
    b.push_all(needing_l(1)).await;
    let lease = b.granted(b.ask("q").by("me")).await;
    let since = b.now();
    b.pass(s(1)).await;
    let lock = b.granted(b.ask_needs([need("l")]).by("you").ttl(hours(1))).await;
    let view = b.limit("l").await;
    assert_eq!(view.in_use, 2);
    let mine = view.holders.iter().find(|one| one.lease == id_of(&lease)).expect("a holder");
    assert_eq!((mine.holder.as_str(), mine.since), ("me", since));
    assert_eq!(mine.job, Some(job_id("j0")));
    let yours = view.holders.iter().find(|one| one.lease == id_of(&lock)).expect("a holder");
    assert_eq!((yours.holder.as_str(), yours.job.clone()), ("you", None));
    for _ in 0..23 {
        b.hold([need("l")]).await;
    }
    let view = b.limit("l").await;
    assert_eq!((view.in_use, view.holders.len()), (25, 20), "at most 20 are shown");
}

pub(crate) async fn a_limit_shows_how_many_stand_in_its_line(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let holder = b.hold([need("l")]).await;
    b.push_all(needing_l(3)).await;
    b.none("q").await;
    let caller = b.ask_needs([need("l")]).wait(s(60));
    let caller = b.waiting_at("l", 4, caller).await;
    assert_eq!(b.limit("l").await.waiting, 4);
    caller.hang_up().await;
    b.eventually("its place is given up", async || {
        b.pass(s(6)).await;
        b.limit("l").await.waiting == 3
    })
    .await;
    b.settle(released(&holder)).await;
    b.take("q").await;
    assert_eq!(b.limit("l").await.in_use, 1);
}

pub(crate) async fn settings_are_put_whole_and_patched_by_name(b: &mut Bench) {
    let both = cap_and_gap(2, s(5));
    let put = b.set_limit("l", both).await;
    assert_eq!((put.created, put.view.settings, put.view.template), (true, both, None));
    let put = b.ok(PatchLimit { concurrency: Patch::Set(3), ..patch("l") }).await;
    assert_eq!((put.created, put.view.settings), (false, cap_and_gap(3, s(5))));
    let put = b.ok(PatchLimit { gap: Patch::Reset, ..patch("l") }).await;
    assert_eq!(put.view.settings, cap(3));
    let with_rate = rate(2, s(1), 4);
    let put =
        b.ok(PatchLimit { rate: Patch::Set(with_rate.rate.expect("a rate")), ..patch("l") }).await;
    assert_eq!(put.view.settings, LimitSettings { concurrency: Some(3), ..with_rate });
    assert_eq!(b.set_limit("l", cap(1)).await.view.settings, cap(1), "absent is the default");
}

pub(crate) async fn a_patch_of_what_is_not_set_is_refused_and_makes_nothing(b: &mut Bench) {
    b.set_limit("site:*", cap(2)).await;
    let change = |name| PatchLimit { concurrency: Patch::Set(1), ..patch(name) };
    b.refused(Code::LimitNotFound, change("new")).await;
    b.refused(Code::LimitNotFound, GetLimit { limit: limit("new") }).await;
    b.no_push(Code::UnknownLimit, job("q").needs([need("new")])).await;
    // For a member the template is set, and a lock without a setting has one from the start.
    b.refused(Code::LimitNotFound, change("site:example.com")).await;
    b.refused(Code::LimitNotFound, change("lock:deploy")).await;
    let view = b.limit("site:example.com").await;
    assert_eq!((view.settings, view.template), (cap(2), Some(limit("site:*"))));
    let put = b.ok(change("lock:*")).await;
    assert_eq!((put.created, put.view.settings), (false, cap(1)));
    // A deleted limit that is still held is not set either.
    b.set_limit("gone", cap(2)).await;
    b.hold([need("gone")]).await;
    b.ok(DeleteLimit { limit: limit("gone") }).await;
    b.refused(Code::LimitNotFound, change("gone")).await;
}

pub(crate) async fn a_patch_that_leaves_nothing_is_refused(b: &mut Bench) {
    b.set_limit("l", cap_and_gap(1, s(5))).await;
    for said in [
        PatchLimit { concurrency: Patch::Reset, ..patch("l") },
        PatchLimit { concurrency: Patch::Reset, gap: Patch::Reset, ..patch("l") },
    ] {
        let no = b.call_in(&b.namespace, said).await.expect_err("a gap needs a concurrency");
        assert_eq!(no.code().map(Code::status), Some(422), "{no}");
    }
    assert_eq!(b.limit("l").await.settings, cap_and_gap(1, s(5)));
}

pub(crate) async fn a_limit_that_is_not_there_is_not_found(b: &mut Bench) {
    let name = || limit("nowhere");
    b.refused(Code::LimitNotFound, GetLimit { limit: name() }).await;
    b.refused(Code::LimitNotFound, GetLimit { limit: limit("nowhere:x") }).await;
    b.refused(Code::LimitNotFound, DeleteLimit { limit: name() }).await;
    let observe = ObserveLimit { limit: name(), external: 1, hold: None };
    b.refused(Code::LimitNotFound, observe).await;
}

pub(crate) async fn work_outside_fills_a_limit(b: &mut Bench) {
    b.set_limit("l", cap(3)).await;
    let observed = ObserveLimit { limit: limit("l"), external: 2, hold: None };
    let view = b.ok(observed.clone()).await;
    assert_eq!((view.in_use, view.external), (0, 2));
    b.push_all(needing_l(3)).await;
    assert_eq!(b.take_all("q", 3).await.len(), 1);
    let view = b.limit("l").await;
    assert_eq!((view.in_use, view.external), (1, 2), "external stands beside in_use");
    b.leap(hours(3)).await;
    assert_eq!(b.limit("l").await.external, 2, "until the next observation");
    let waiting = b.waiting(b.ask("q").wait(s(30))).await;
    b.ok(ObserveLimit { external: 0, ..observed }).await;
    waiting.lease().await;
}

pub(crate) async fn several_are_granted_beside_work_outside(b: &mut Bench) {
    b.set_limit("l", cap(5)).await;
    b.push_all(needing_l(5)).await;
    b.ok(ObserveLimit { limit: limit("l"), external: 2, hold: None }).await;
    assert_eq!(b.take_all("q", 5).await.len(), 3);
    b.in_use("l", 3).await;
}

pub(crate) async fn an_observation_holds_for_so_long(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let observed = ObserveLimit { limit: limit("l"), external: 1, hold: Some(s(30)) };
    b.ok(observed).await;
    b.push_all(needing_l(1)).await;
    b.none("q").await;
    b.waits_for("j0", ReasonKind::External).await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.pass(ms(29_900)).await;
    assert!(!waiting.is_answered());
    b.pass(ms(200)).await;
    assert_eq!(job_of(&waiting.lease().await), "j0");
    assert_eq!(b.limit("l").await.external, 0);
}

pub(crate) async fn work_outside_beyond_the_cap_evicts_nobody(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    let held = b.hold([need("l")]).await;
    b.ok(ObserveLimit { limit: limit("l"), external: 9, hold: None }).await;
    b.lives(&held).await;
    b.denied([need("l")]).await;
    b.settle(released(&held)).await;
    b.denied([need("l")]).await;
    b.ok(ObserveLimit { limit: limit("l"), external: 1, hold: None }).await;
    b.hold([need("l")]).await;
    b.denied([need("l")]).await;
}

pub(crate) async fn a_second_delete_forgets_an_observation(b: &mut Bench) {
    b.set_limit("l", cap(5)).await;
    b.ok(ObserveLimit { limit: limit("l"), external: 3, hold: None }).await;
    b.ok(DeleteLimit { limit: limit("l") }).await;
    assert_eq!(b.limit("l").await.external, 3, "it stays readable");
    b.ok(DeleteLimit { limit: limit("l") }).await;
    b.refused(Code::LimitNotFound, GetLimit { limit: limit("l") }).await;
    b.refused(Code::LimitNotFound, DeleteLimit { limit: limit("l") }).await;
    b.set_limit("l", cap(5)).await;
    assert_eq!(b.limit("l").await.external, 0);
}

pub(crate) async fn an_observation_of_a_deleted_limit_ends_in_a_day(b: &mut Bench) {
    for name in ["gone", "stays"] {
        b.set_limit(name, cap(5)).await;
        b.ok(ObserveLimit { limit: limit(name), external: 3, hold: None }).await;
    }
    b.leap(hours(30)).await;
    b.ok(DeleteLimit { limit: limit("gone") }).await;
    b.leap(hours(23)).await;
    assert_eq!(b.limit("gone").await.external, 3);
    b.leap(hours(2)).await;
    b.refused(Code::LimitNotFound, GetLimit { limit: limit("gone") }).await;
    assert_eq!(b.limit("stays").await.external, 3, "it is set, so what was said of it holds");
}
