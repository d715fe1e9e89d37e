//! Pools: the choice of a resource, its rests, and when it is used up.

use std::collections::BTreeSet;

use tenure_core::job::JobState;
use tenure_core::lease::ReasonKind;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::{PoolSettings, Rate, ResourceState};

use crate::bench::Bench;
use crate::words::*;

fn three() -> Vec<tenure_core::settings::NewResource> {
    vec![thing("a"), thing("b"), thing("c")]
}
fn put(settings: PoolSettings) -> PutPool {
    PutPool { pool: pool("p"), settings }
}

pub(crate) async fn a_resource_has_one_holder_per_slot(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a").slots(2), thing("b")]).await;
    let mut held = vec![];
    for _ in 0..3 {
        held.push(b.hold([any_of("p")]).await);
    }
    b.denied([any_of("p")]).await;
    let mut ids: Vec<&str> = held.iter().map(resource_of).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a", "a", "b"]);
    assert_eq!(b.thing("p", "a").await.in_use, 2);
    b.settle(released(&held[0])).await;
    b.hold([any_of("p")]).await;
    b.denied([any_of("p")]).await;
}

pub(crate) async fn the_least_recently_used_is_next(b: &mut Bench) {
    b.set_pool("p", plain_pool(), three()).await;
    let mut first_round = vec![];
    for round in 0..3 {
        for turn in 0..3 {
            let lease = b.hold([any_of("p")]).await;
            let id = resource_of(&lease).to_owned();
            b.settle(released(&lease)).await;
            match round {
                0 => first_round.push(id),
                _ => assert_eq!(id, first_round[turn], "round {round}"),
            }
        }
    }
    assert_eq!(first_round.iter().collect::<BTreeSet<_>>().len(), 3, "each has its turn");
}

pub(crate) async fn a_random_pick_is_a_free_one(b: &mut Bench) {
    let settings = PoolSettings { pick: tenure_core::settings::Pick::Random, ..plain_pool() };
    b.set_pool("p", settings, three()).await;
    let mut ids = BTreeSet::new();
    for _ in 0..3 {
        ids.insert(resource_of(&b.hold([any_of("p")]).await).to_owned());
    }
    assert_eq!(ids.len(), 3);
    b.denied([any_of("p")]).await;
}

pub(crate) async fn the_preferred_one_is_taken_if_it_is_free(b: &mut Bench) {
    b.set_pool("p", plain_pool(), three()).await;
    for _ in 0..3 {
        let lease = b.hold([preferring("p", "b")]).await;
        assert_eq!(resource_of(&lease), "b");
        b.settle(released(&lease)).await;
    }
    b.hold([only("p", "b")]).await;
    let lease = b.hold([preferring("p", "b")]).await;
    assert_ne!(resource_of(&lease), "b", "else another");
}

pub(crate) async fn a_named_one_is_waited_for(b: &mut Bench) {
    b.set_pool("p", plain_pool(), three()).await;
    let held = b.hold([only("p", "b")]).await;
    assert_eq!(resource_of(&held), "b");
    b.push(job("q").id("x").needs([only("p", "b")])).await;
    b.none("q").await;
    b.is("x", JobState::Blocked).await;
    let waiting = b.waiting(b.ask("q").wait(s(30))).await;
    b.settle(released(&held)).await;
    assert_eq!(resource_of(&waiting.lease().await), "b");
}

pub(crate) async fn a_tag_narrows_the_choice(b: &mut Bench) {
    let things = vec![thing("a").tags(["cn", "fast"]), thing("b").tags(["us"]), thing("c")];
    b.set_pool("p", plain_pool(), things).await;
    let held = b.hold([tagged("p", "cn")]).await;
    assert_eq!(resource_of(&held), "a");
    b.denied([tagged("p", "cn")]).await;
    b.denied([tagged("p", "fast")]).await;
    assert_eq!(resource_of(&b.hold([tagged("p", "us")]).await), "b");
    b.settle(released(&held)).await;
    assert_eq!(resource_of(&b.hold([tagged("p", "fast")]).await), "a");
}

pub(crate) async fn several_are_different_ones(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a").slots(5), thing("b"), thing("c")]).await;
    let lease = b.hold([several_of("p", 3)]).await;
    let ids: BTreeSet<_> = lease.resources.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, BTreeSet::from(["a", "b", "c"]));
    b.denied([several_of("p", 2)]).await;
    b.hold([any_of("p")]).await;
    b.settle(released(&lease)).await;
    b.hold([several_of("p", 3)]).await;
}

pub(crate) async fn a_count_above_what_there_is_waits_for_the_pool(b: &mut Bench) {
    b.set_pool("p", plain_pool(), three()).await;
    b.push(job("many").id("many").needs([several_of("p", 4)])).await;
    b.push(job("tag").id("tag").needs([tagged("p", "nobody's")])).await;
    b.none("many").await;
    b.none("tag").await;
    assert_eq!(b.waits_for("many", ReasonKind::Pool).await.capacity, Some(3));
    assert_eq!(b.waits_for("tag", ReasonKind::Pool).await.capacity, Some(0));
    b.hold([several_of("p", 3)]).await;
    let more = vec![thing("d").tags(["nobody's"])];
    b.ok(AddResources { pool: pool("p"), resources: more }).await;
    b.take_job("tag", "tag").await;
}

pub(crate) async fn a_used_resource_cools_down(b: &mut Bench) {
    b.set_pool("p", PoolSettings { cooldown: s(10), ..plain_pool() }, vec![thing("a")]).await;
    b.push_all((0..2).map(|n| job("q").id(&format!("j{n}")).needs([any_of("p")])).collect()).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    let view = b.thing("p", "a").await;
    assert_eq!((view.state, view.until), (ResourceState::Cooling, Some(b.now().plus(s(10)))));
    assert_eq!((b.pool("p").await.available, b.pool("p").await.cooling), (0, 1));
    b.none("q").await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.pass(ms(9_900)).await;
    assert!(!waiting.is_answered());
    b.pass(ms(200)).await;
    let next = waiting.lease().await;
    b.settle(failed(&next)).await;
    assert_eq!(b.thing("p", "a").await.state, ResourceState::Cooling, "after every use");
}

pub(crate) async fn quarantine_is_for_unclean_ends_only(b: &mut Bench) {
    b.set_pool("p", PoolSettings { quarantine: s(30), ..plain_pool() }, vec![thing("a")]).await;
    for ends in ["succeeded", "failed", "snoozed", "released"] {
        b.push(job(ends).needs([any_of("p")])).await;
        let lease = b.take(ends).await;
        b.settle(match ends {
            "succeeded" => succeeded(&lease),
            "failed" => failed(&lease),
            "snoozed" => snoozed(&lease, s(1)),
            _ => released(&lease),
        })
        .await;
        assert_eq!(b.thing("p", "a").await.state, ResourceState::Available, "{ends}");
    }
    b.granted(b.ask_needs([any_of("p")]).ttl(s(5))).await;
    b.pass(s(6)).await;
    assert_eq!(b.thing("p", "a").await.state, ResourceState::Cooling);
    b.pass(s(28)).await;
    b.denied([any_of("p")]).await;
    b.pass(s(3)).await;
    b.hold([any_of("p")]).await;
}

pub(crate) async fn a_resource_that_is_used_up_is_banned(b: &mut Bench) {
    b.set_pool("p", PoolSettings { max_uses: Some(2), ..plain_pool() }, vec![thing("a")]).await;
    for uses in 1..=2 {
        let lease = b.hold([any_of("p")]).await;
        assert_eq!(b.thing("p", "a").await.uses, uses);
        b.settle(released(&lease)).await;
    }
    let view = b.thing("p", "a").await;
    assert_eq!((view.state, view.reason.as_deref()), (ResourceState::Banned, Some("max_uses")));
    b.denied([any_of("p")]).await;
    assert_eq!(b.pool("p").await.banned, 1);
}

pub(crate) async fn each_resource_has_its_own_rate(b: &mut Bench) {
    let rate = Some(Rate { count: 1, per: s(10), burst: 1 });
    b.set_pool("p", PoolSettings { rate, ..plain_pool() }, vec![thing("a"), thing("b")]).await;
    let mut ids = BTreeSet::new();
    for _ in 0..2 {
        let lease = b.hold([any_of("p")]).await;
        ids.insert(resource_of(&lease).to_owned());
        b.settle(released(&lease)).await;
    }
    assert_eq!(ids.len(), 2);
    b.denied([any_of("p")]).await;
    b.push(job("q").id("x").needs([any_of("p")])).await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.pass(ms(9_900)).await;
    assert!(!waiting.is_answered());
    b.pass(ms(200)).await;
    waiting.lease().await;
}

pub(crate) async fn a_pool_counts_its_resources(b: &mut Bench) {
    let mut things = three();
    things.push(thing("two").slots(2));
    b.set_pool("p", plain_pool(), things).await;
    let ban = BanResource { pool: pool("p"), resource: resource("a"), reason: None };
    b.ok(ban).await;
    let until = tenure_core::lease::Later::For(s(60));
    b.ok(CoolResource { pool: pool("p"), resource: resource("b"), until }).await;
    b.hold([only("p", "two")]).await;
    let view = b.pool("p").await;
    assert_eq!((view.available, view.leased), (2, 1), "available has a free slot");
    assert_eq!((view.cooling, view.banned, view.waiting), (1, 1, 0));
    b.hold([only("p", "two")]).await;
    assert_eq!(b.pool("p").await.available, 1);
    b.push(job("q").needs([only("p", "a")])).await;
    b.none("q").await;
    assert_eq!(b.pool("p").await.waiting, 1);
}

fn patch() -> PatchPool {
    PatchPool {
        pool: pool("p"),
        quarantine: Patch::Set(s(9)),
        cooldown: Patch::Keep,
        rate: Patch::Keep,
        max_uses: Patch::Reset,
        pick: Patch::Keep,
    }
}

pub(crate) async fn a_patch_of_a_pool_that_is_not_there_is_refused_and_makes_nothing(
    b: &mut Bench,
) {
    b.refused(Code::PoolNotFound, patch()).await;
    b.refused(Code::PoolNotFound, GetPool { pool: pool("p") }).await;
}

pub(crate) async fn settings_are_put_whole_and_patched_by_name(b: &mut Bench) {
    let all = PoolSettings { quarantine: s(1), cooldown: s(2), max_uses: Some(3), ..plain_pool() };
    assert!(b.ok(put(all)).await.created);
    let said = patch();
    let patched = PoolSettings { quarantine: s(9), max_uses: None, ..all };
    let answer = b.ok(said).await;
    assert_eq!((answer.created, answer.view.settings), (false, patched));
    let answer = b.ok(put(plain_pool())).await;
    assert_eq!((answer.created, answer.view.settings), (false, plain_pool()));
}

pub(crate) async fn changed_settings_leave_the_resources(b: &mut Bench) {
    b.set_pool("p", plain_pool(), three()).await;
    let held = b.hold([only("p", "a")]).await;
    b.ok(put(PoolSettings { cooldown: s(10), ..plain_pool() })).await;
    b.lives(&held).await;
    b.settle(released(&held)).await;
    assert_eq!(b.thing("p", "b").await.state, ResourceState::Available);
    assert_eq!(b.pool("p").await.settings.cooldown, s(10));
}

pub(crate) async fn a_pool_in_use_is_not_deleted(b: &mut Bench) {
    b.set_pool("p", plain_pool(), three()).await;
    let held = b.hold([any_of("p")]).await;
    b.refused(Code::InUse, DeletePool { pool: pool("p") }).await;
    b.push(job("q").id("x").needs([several_of("p", 3)])).await;
    b.none("q").await;
    b.settle(released(&held)).await;
    b.ok(DeletePool { pool: pool("p") }).await;
    b.refused(Code::PoolNotFound, GetPool { pool: pool("p") }).await;
    b.none("q").await;
    b.waits_for("x", ReasonKind::NeverFits).await;
    b.no_push(Code::UnknownPool, job("q").needs([any_of("p")])).await;
    b.set_pool("p", plain_pool(), three()).await;
    b.take_job("q", "x").await;
}

pub(crate) async fn a_pool_that_is_not_there_is_not_found(b: &mut Bench) {
    b.refused(Code::PoolNotFound, GetPool { pool: pool("p") }).await;
    b.refused(Code::PoolNotFound, DeletePool { pool: pool("p") }).await;
    let list = ListResources { pool: pool("p"), page: Page::default() };
    b.refused(Code::PoolNotFound, list).await;
    b.refused(Code::UnknownPool, b.ask_needs([any_of("p")])).await;
}
