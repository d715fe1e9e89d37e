//! Everything that was answered survives a crash.

use std::collections::BTreeMap;

use tenure_core::job::{JobState, OnConflict, Unique, Until};
use tenure_core::lease::Later;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::{PoolSettings, QueueSettings, ResourceState};

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn jobs_survive_in_every_state(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    b.push(job("block").id("blocked").needs([need("closed")])).await;
    b.none("block").await;
    b.push(job("q").id("scheduled").delay(s(10)).payload("[1]").label("k", "v")).await;
    b.push_all(jobs("q", "j", 5)).await;
    let leases = b.take_all("q", 4).await;
    b.settle(succeeded(&leases[0])).await;
    b.settle(failed_for_good(&leases[1])).await;
    b.settle(failed_until(&leases[2], s(60))).await;
    b.cancel("j4").await;
    let ids = ["scheduled", "j0", "j1", "j2", "j3", "j4"];
    let mut before = vec![];
    for id in ids {
        before.push(b.job(id).await);
    }
    if !b.reopen().await {
        return;
    }
    for (id, before) in ids.into_iter().zip(before) {
        assert_eq!(b.job(id).await, before);
    }
    let blocked = b.job("blocked").await.state;
    assert!([JobState::Blocked, JobState::Ready].contains(&blocked), "{blocked}");
    b.none("block").await;
    b.is("blocked", JobState::Blocked).await;
    b.pass(s(11)).await;
    b.take_job("q", "scheduled").await;
    b.none("q").await;
}

pub(crate) async fn leases_live_on_with_a_fresh_ttl(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.set_pool("p", plain_pool(), vec![thing("a"), thing("b")]).await;
    b.push(job("q").id("a").needs([need("l"), any_of("p")])).await;
    let lease = b.granted(b.ask("q").by("me").ttl(s(10))).await;
    let lock = b.granted(b.ask_needs([need("lock:x")]).ttl(s(10))).await;
    b.pass(s(8)).await;
    if !b.reopen().await {
        return;
    }
    b.in_use("l", 1).await;
    b.in_use("lock:x", 1).await;
    assert_eq!(b.pool("p").await.available, 1);
    b.pass(s(8)).await;
    b.is("a", JobState::Running).await;
    b.denied([need("lock:x")]).await;
    b.lives(&lease).await;
    b.settle(succeeded(&lease)).await;
    b.settle(released(&lock)).await;
    b.in_use("l", 0).await;
    assert_eq!(b.pool("p").await.available, 2);
}

pub(crate) async fn a_holder_that_died_meanwhile_is_found_out(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(20, 1, fixed(s(1))))).await;
    let lease = b.granted(b.ask("q").ttl(s(10))).await;
    if !b.reopen().await {
        return;
    }
    b.pass(s(13)).await;
    b.is_lost(&lease).await;
    let view = b.is("a", JobState::Failed).await;
    assert_eq!(view.error.as_deref(), Some("poison"));
}

pub(crate) async fn fences_rise_across_a_crash(b: &mut Bench) {
    let before = b.hold([need("lock:x")]).await;
    if !b.reopen().await {
        return;
    }
    let after = b.hold([need("lock:y")]).await;
    assert!(after.fence > before.fence);
}

pub(crate) async fn settings_and_pauses_survive(b: &mut Bench) {
    let settings = QueueSettings {
        timeout: Some(s(5)),
        max_waiting: Some(9),
        lost_delay: Some(s(0)),
        shares: BTreeMap::from([(group("g"), 3)]),
        show_payload: false,
        ..QueueSettings::default()
    };
    b.set_queue("q", settings.clone()).await;
    b.set_queue("r", QueueSettings::default()).await;
    b.ok(PauseQueue { queue: queue("q"), until: None }).await;
    b.ok(PauseQueue { queue: queue("r"), until: Some(Later::For(s(60))) }).await;
    b.set_limit("site:*", cap_and_gap(2, s(3))).await;
    b.set_limit("l", rate(5, s(1), 2)).await;
    b.set_limit("gone", cap(1)).await;
    b.ok(DeleteLimit { limit: limit("gone") }).await;
    let pause = PauseLimit { limit: limit("l"), until: Later::For(s(60)) };
    let paused = b.ok(pause).await.paused_until;
    b.set_limit("e", cap(2)).await;
    b.ok(ObserveLimit { limit: limit("e"), external: 1, hold: None }).await;
    b.push(job("q").id("a")).await;
    if !b.reopen().await {
        return;
    }
    let view = b.queue("q").await;
    assert_eq!((view.settings, view.paused), (settings, true));
    b.none("q").await;
    assert_eq!(b.queue("r").await.paused_until, paused);
    assert_eq!(b.limit("site:x").await.settings, cap_and_gap(2, s(3)));
    let view = b.limit("l").await;
    assert_eq!((view.settings, view.paused_until), (rate(5, s(1), 2), paused));
    b.refused(Code::LimitNotFound, GetLimit { limit: limit("gone") }).await;
    assert_eq!(b.limit("e").await.external, 1);
    b.denied([need("l")]).await;
    b.ok(ResumeQueue { queue: queue("q") }).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn what_was_consumed_and_what_rests_survives(b: &mut Bench) {
    b.set_limit("r", rate(1, s(60), 2)).await;
    b.set_limit("g", cap_and_gap(1, s(60))).await;
    b.hold([costing("r", 2)]).await;
    let resting = b.hold([need("g")]).await;
    b.settle(released(&resting)).await;
    b.set_limit("u", cap_and_quarantine(1, s(60))).await;
    let dead = b.hold([need("u")]).await;
    b.ok(ForceLease { lease: id_of(&dead) }).await;
    if !b.reopen().await {
        return;
    }
    b.denied([need("r")]).await;
    b.denied([need("g")]).await;
    b.in_use("g", 1).await;
    assert_eq!(b.limit("u").await.resting, 1);
    b.denied([need("u")]).await;
    b.pass(s(61)).await;
    b.hold([need("r")]).await;
    b.denied([need("r")]).await;
    b.hold([need("g")]).await;
    b.hold([need("u")]).await;
}

pub(crate) async fn pools_survive_with_their_states(b: &mut Bench) {
    let settings = PoolSettings { cooldown: s(60), max_uses: Some(5), ..plain_pool() };
    let things = vec![
        thing("held").slots(2).tags(["t"]),
        thing("banned"),
        thing("cooling"),
        thing("free").data(r#"{"pw":"x"}"#),
        thing("going"),
    ];
    b.set_pool("p", settings, things).await;
    let sync = SyncResources {
        pool: pool("s"),
        resources: vec![thing("a")],
        meant: Meant::Ask,
        version: Some(5),
    };
    b.ok(sync.clone()).await;
    b.hold([only("p", "held")]).await;
    let going = b.hold([only("p", "going")]).await;
    b.ok(DeleteResource { pool: pool("p"), resource: resource("going") }).await;
    let cooled = b.hold([only("p", "cooling")]).await;
    b.settle(released(&cooled)).await;
    let reason = Some("captcha".to_owned());
    b.ok(BanResource { pool: pool("p"), resource: resource("banned"), reason }).await;
    let ids = ["held", "banned", "cooling", "free", "going"];
    let mut before = vec![];
    for id in ids {
        before.push(b.thing("p", id).await);
    }
    let pool_before = b.pool("p").await;
    if !b.reopen().await {
        return;
    }
    for (id, before) in ids.into_iter().zip(before) {
        assert_eq!(b.thing("p", id).await, before);
    }
    assert_eq!(b.pool("p").await, pool_before);
    let stale = SyncResources { version: Some(4), ..sync };
    b.refused(Code::StaleSync, stale).await;
    assert_eq!(b.hold([only("p", "free")]).await.resources[0].data, json(r#"{"pw":"x"}"#));
    b.settle(released(&going)).await;
    b.no_thing("p", "going").await;
    b.denied([only("p", "banned")]).await;
    b.pass(s(61)).await;
    assert_eq!(b.thing("p", "cooling").await.state, ResourceState::Available);
}

pub(crate) async fn the_least_recently_used_is_still_next(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a"), thing("b"), thing("c")]).await;
    // Neither the order of their names nor the one in which they were added.
    let order = ["b", "c", "a"];
    for id in order {
        let lease = b.hold([only("p", id)]).await;
        b.settle(released(&lease)).await;
    }
    if !b.reopen().await {
        return;
    }
    // Twice: a resource used after the crash is behind those used before it.
    for id in order.into_iter().chain(order) {
        let lease = b.hold([any_of("p")]).await;
        assert_eq!(resource_of(&lease), id);
        b.settle(released(&lease)).await;
    }
}

pub(crate) async fn keys_survive(b: &mut Bench) {
    let keyed = |id: &str| job("q").id(id).unique(unique("k", OnConflict::Reject));
    b.push(keyed("a")).await;
    if !b.reopen().await {
        return;
    }
    let no = b.no_push(Code::UniqueConflict, keyed("b")).await;
    assert_eq!(no.job.as_deref(), Some("a"));
    assert_eq!(b.job("key:k").await.id.as_str(), "a");
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    assert!(!b.push(keyed("b")).await.duplicate);
}

pub(crate) async fn repeats_are_known_after_a_crash(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    let call = b.ask("q").request("r1");
    let first = b.granted(call.clone()).await;
    let second = b.take("q").await;
    let settled = b.settle(failed_until(&second, s(60))).await;
    let lock = b.hold([need("lock:x")]).await;
    b.settle(released(&lock)).await;
    if !b.reopen().await {
        return;
    }
    let again = b.granted(call).await;
    assert_eq!((again.lease, again.fence), (first.lease, first.fence));
    assert_eq!(b.settle(failed_until(&second, s(60))).await, settled);
    b.no_settle(Code::AlreadySettled, succeeded(&second)).await;
    b.settle(released(&lock)).await;
    assert!(b.push(job("q").id("j0")).await.duplicate);
    b.take_job("q", "j2").await;
}

pub(crate) async fn a_push_that_replaced_is_known_after_a_crash(b: &mut Bench) {
    let push = |id: &str| {
        let unique = Unique { until: Until::Start, ..unique("k", OnConflict::Replace) };
        job("q").id(id).unique(unique)
    };
    b.push(push("a")).await;
    assert!(b.push(push("b")).await.replaced);
    b.take_job("q", "a").await;
    if !b.reopen().await {
        return;
    }
    let again = b.push(push("b")).await;
    assert!(again.duplicate && !again.replaced);
    assert_eq!(again.job.id.as_str(), "a");
    b.none("q").await;
    b.pass(s(61)).await;
    assert!(!b.push(push("b")).await.duplicate, "for no longer than without the crash");
}

pub(crate) async fn the_order_of_a_queue_survives(b: &mut Bench) {
    b.push_all(jobs("q", "j", 4)).await;
    b.push(job("q").id("high").priority(5)).await;
    b.take_job("q", "high").await;
    let lease = b.take_job("q", "j0").await;
    b.settle(released(&lease)).await;
    let lease = b.take_job("q", "j0").await;
    b.settle(snoozed(&lease, s(5))).await;
    b.pass(s(6)).await;
    b.push(job("q").id("last")).await;
    if !b.reopen().await {
        return;
    }
    for id in ["j1", "j2", "j3", "j0", "last"] {
        b.take_job("q", id).await;
    }
}

pub(crate) async fn lines_are_served_after_a_crash(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let held = b.hold([need("l")]).await;
    b.push_all((0..3).map(|n| job("q").id(&format!("j{n}")).needs([need("l")])).collect()).await;
    b.none("q").await;
    if !b.reopen().await {
        return;
    }
    b.none("q").await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.settle(released(&held)).await;
    let lease = waiting.lease().await;
    assert_eq!(job_of(&lease), "j0");
    b.none("q").await;
    b.settle(succeeded(&lease)).await;
    b.take_job("q", "j1").await;
}

pub(crate) async fn shares_go_on_after_a_crash(b: &mut Bench) {
    for name in ["a", "b"] {
        let jobs = (0..30).map(|n| job("q").id(&format!("{name}{n}")).group(name));
        b.push_all(jobs.collect()).await;
    }
    let of_a = |leases: &[tenure_core::lease::LeaseView]| {
        leases.iter().filter(|lease| job_of(lease).starts_with('a')).count()
    };
    let before = of_a(&b.take_all("q", 9).await);
    if !b.reopen().await {
        return;
    }
    let after = of_a(&b.take_all("q", 11).await);
    assert!((9..=11).contains(&(before + after)), "{before} and {after} of 20");
}

pub(crate) async fn the_past_of_a_job_survives(b: &mut Bench) {
    b.push(job("q").id("a").retry(retry(3, 3, fixed(s(1))))).await;
    let lease = b.take("q").await;
    b.settle(failed(&lease)).await;
    b.pass(s(2)).await;
    b.granted(b.ask("q").ttl(s(5))).await;
    b.until_it_ends("a", s(10)).await;
    let before = b.job("a").await;
    assert_eq!((before.attempt, before.lost, before.errors.len()), (1, 1, 2));
    if !b.reopen().await {
        return;
    }
    assert_eq!(b.job("a").await, before);
    b.pass(s(3)).await;
    let lease = b.take_job("q", "a").await;
    assert_eq!(lease.job.as_ref().map(|job| job.attempt), Some(2));
}

pub(crate) async fn a_cancel_that_was_asked_for_survives(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    b.cancel("a").await;
    if !b.reopen().await {
        return;
    }
    assert!(b.job("a").await.cancel_requested);
    assert_eq!(b.extend(&lease).await.cancel, [id_of(&lease)]);
    b.settle(released(&lease)).await;
    b.is("a", JobState::Cancelled).await;
}
