//! The rest of a permit after an end that its holder did not settle.

use tenure_core::job::JobState;
use tenure_core::lease::{LeaseView, ReasonKind};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::LimitSettings;
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::words::*;

/// A job in a queue of this name that needs this weight of the limit, granted.
async fn running(b: &Bench, name: &str, limit: &str, weight: u32) -> LeaseView {
    let said = job(name).id(name).needs([weighing(limit, weight)]).timeout(s(60));
    b.push(said).await;
    b.granted(b.ask(name).by("me").ttl(s(10))).await
}

/// Ends a lease in another way than its holder would.
async fn ends(b: &Bench, how: &str, name: &str, lease: &LeaseView) {
    match how {
        "lost" => drop(b.until_it_ends(name, s(15)).await),
        "force" => b.ok(ForceLease { lease: id_of(lease) }).await,
        "undone" => {
            b.undo(lease);
            b.eventually("it is undone", async || b.job(name).await.state != JobState::Running)
                .await;
        }
        "undelivered" => {
            b.pass(s(6)).await;
            b.not_granted(b.ask("nothing").by("me")).await;
            b.until_it_ends(name, s(15)).await;
        }
        _ => {
            for _ in 0..7 {
                b.extend(lease).await;
                b.pass(s(9)).await;
            }
            assert_ne!(b.job(name).await.lease, lease.lease, "the run was too long");
        }
    }
}

pub(crate) async fn a_permit_rests_after_every_end_that_is_no_settle(b: &mut Bench) {
    for how in ["lost", "timeout", "force", "undone", "undelivered"] {
        let name = format!("lock:{how}");
        b.set_limit(&name, cap_and_quarantine(2, s(30))).await;
        let lease = running(b, how, &name, 2).await;
        ends(b, how, how, &lease).await;
        let view = b.limit(&name).await;
        assert_eq!((view.in_use, view.resting), (2, 2), "after {how}, with its weight");
        assert!(view.holders.is_empty(), "after {how}");
        b.denied([need(&name)]).await;
        b.pass(s(31)).await;
        let view = b.limit(&name).await;
        assert_eq!((view.in_use, view.resting), (0, 0), "after {how}");
        b.hold([need(&name)]).await;
    }
}

pub(crate) async fn a_permit_that_was_settled_rests_no_quarantine(b: &mut Bench) {
    b.set_limit("l", cap_and_quarantine(1, s(60))).await;
    for outcome in ["succeeded", "failed", "snoozed", "released"] {
        let lease = running(b, outcome, "l", 1).await;
        let item = match outcome {
            "succeeded" => succeeded(&lease),
            "failed" => failed_for_good(&lease),
            "snoozed" => snoozed(&lease, hours(1)),
            _ => released(&lease),
        };
        b.settle(item).await;
        b.in_use("l", 0).await;
    }
    let held = b.hold([need("l")]).await;
    b.settle(released(&held)).await;
    b.in_use("l", 0).await;
}

pub(crate) async fn of_gap_and_quarantine_the_later_end_counts(b: &mut Bench) {
    for (gap, quarantine, clean, unclean) in [(5, 20, 5, 20), (20, 5, 20, 20)] {
        let both = LimitSettings { gap: Some(s(gap)), ..cap_and_quarantine(1, s(quarantine)) };
        b.set_limit("l", both).await;
        for (by_force, rest) in [(false, clean), (true, unclean)] {
            let lease = b.hold([need("l")]).await;
            if by_force {
                b.ok(ForceLease { lease: id_of(&lease) }).await;
            } else {
                b.settle(released(&lease)).await;
            }
            b.pass(s(rest - 1)).await;
            b.denied([need("l")]).await;
            b.pass(s(2)).await;
            b.in_use("l", 0).await;
        }
    }
}

pub(crate) async fn who_waits_for_a_resting_permit_is_told_and_served(b: &mut Bench) {
    b.set_limit("l", cap_and_quarantine(1, s(20))).await;
    let lease = running(b, "dead", "l", 1).await;
    b.push(job("q").id("a").needs([need("l")])).await;
    b.none("q").await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.ok(ForceLease { lease: id_of(&lease) }).await;
    let reason = b.waits_for("a", ReasonKind::Gap).await;
    assert_eq!(reason.earliest, Some(b.now().plus(s(20))));
    b.pass(s(19)).await;
    assert!(!waiting.is_answered());
    b.pass(s(2)).await;
    assert_eq!(job_of(&waiting.lease().await), "a");
}

pub(crate) async fn a_quarantine_comes_with_a_template_and_needs_a_concurrency(b: &mut Bench) {
    b.set_limit("site:*", cap_and_quarantine(1, s(20))).await;
    let view = b.limit("site:x").await;
    assert_eq!(view.settings.quarantine, s(20));
    let held = b.hold([need("site:x")]).await;
    b.ok(ForceLease { lease: id_of(&held) }).await;
    b.in_use("site:x", 1).await;
    b.in_use("site:y", 0).await;
    let no = LimitSettings { quarantine: s(1), ..rate(1, s(1), 1) };
    let no = b
        .refused(Code::InvalidField, PutLimit { limit: limit("r"), settings: no, gauge: None })
        .await;
    assert_eq!(no.pointer.as_deref(), Some("/concurrency"));
    assert_eq!(b.limit("lock:x").await.settings.quarantine, Span::ZERO);
}

pub(crate) async fn a_shorter_quarantine_cuts_rests_that_have_begun(b: &mut Bench) {
    b.set_limit("l", cap_and_quarantine(1, hours(1))).await;
    let held = b.hold([need("l")]).await;
    b.ok(ForceLease { lease: id_of(&held) }).await;
    b.push(job("q").id("a").needs([need("l")])).await;
    b.none("q").await;
    b.set_limit("l", cap_and_quarantine(1, s(5))).await;
    let reason = b.waits_for("a", ReasonKind::Gap).await;
    assert_eq!(reason.earliest, Some(b.now().plus(s(5))));
    b.set_limit("l", cap(1)).await;
    b.pass(ms(1)).await;
    b.in_use("l", 0).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn nobody_reserves_what_rests_alone_keep_closed(b: &mut Bench) {
    b.set_limit("l", cap_and_quarantine(2, s(60))).await;
    let dead = b.hold([need("l")]).await;
    b.push(job("q").id("heavy").needs([weighing("l", 2)])).await;
    b.none("q").await;
    b.ok(ForceLease { lease: id_of(&dead) }).await;
    // Longer than the patience, and its workers ask all the while.
    for _ in 0..15 {
        b.pass(s(1)).await;
        b.none("q").await;
    }
    // One of two rests: the heavy job waits for time alone, and keeps nothing from others.
    let light = b.hold([need("l")]).await;
    b.settle(released(&light)).await;
    b.pass(s(46)).await;
    b.take_job("q", "heavy").await;
}

pub(crate) async fn a_quarantine_is_patched_shown_and_taken_away(b: &mut Bench) {
    let patch = |quarantine| PatchLimit {
        limit: limit("l"),
        concurrency: Patch::Keep,
        rate: Patch::Keep,
        gap: Patch::Keep,
        quarantine,
        gauge: Patch::Keep,
    };
    assert_eq!(b.set_limit("l", cap(2)).await.view.settings.quarantine, Span::ZERO);
    let put = b.ok(patch(Patch::Set(hours(1)))).await;
    assert_eq!(put.view.settings, cap_and_quarantine(2, hours(1)));
    for _ in 0..2 {
        let held = b.hold([need("l")]).await;
        b.ok(ForceLease { lease: id_of(&held) }).await;
    }
    let view = b.limit("l").await;
    assert_eq!((view.in_use, view.resting, view.settings.quarantine), (2, 2, hours(1)));
    // Without a concurrency nothing can rest.
    let no = PatchLimit { concurrency: Patch::Reset, ..patch(Patch::Keep) };
    let no = b.refused(Code::InvalidField, no).await;
    assert_eq!(no.pointer.as_deref(), Some("/concurrency"));
    let put = b.ok(patch(Patch::Reset)).await;
    assert_eq!(put.view.settings, cap(2));
    b.pass(ms(1)).await;
    let view = b.limit("l").await;
    assert_eq!((view.in_use, view.resting), (0, 0));
    b.hold([weighing("l", 2)]).await;
}

pub(crate) async fn of_many_that_end_together_those_rest_that_nobody_settled(b: &mut Bench) {
    b.set_limit("site:*", cap_and_quarantine(1, s(60))).await;
    let (site, id) = (|n| format!("site:{n}"), |n| format!("j{n}"));
    let jobs = |from: usize| {
        let one = move |n| job("q").id(&id(from + n)).needs([need(&site(n))]);
        (0..12).map(one).collect::<Vec<_>>()
    };
    b.push_all(jobs(0)).await;
    let leases = b.ok(b.ask("q").max(12).by("me").ttl(s(10))).await.leases;
    assert_eq!(leases.len(), 12);
    b.ok(Settle::of(leases[..6].iter().map(succeeded).collect())).await;
    for n in 6..12 {
        b.until_it_ends(&id(n), s(15)).await;
    }
    for n in 0..12 {
        let view = b.limit(&site(n)).await;
        let rests = if n < 6 { 0 } else { 1 };
        assert_eq!((view.in_use, view.resting), (rests, rests), "{}", site(n));
    }
    b.push_all(jobs(12)).await;
    assert_eq!(b.take_all("q", 24).await.len(), 6);
    b.pass(s(61)).await;
    // The dead ones are first in their lines again.
    assert_eq!(b.take_all("q", 24).await.len(), 6);
}
