//! The whole set of a pool, as if from a user's database.

use tenure_core::lease::Verdict;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::{NewResource, PoolSettings, ResourceState, Synced};

use crate::bench::Bench;
use crate::words::*;

fn sync(resources: Vec<NewResource>) -> SyncResources {
    SyncResources { pool: pool("p"), resources, meant: Meant::Ask, version: None }
}
fn things(ids: &[&str]) -> Vec<NewResource> {
    ids.iter().map(|id| thing(id)).collect()
}
async fn ids(b: &Bench) -> Vec<String> {
    let list = ListResources { pool: pool("p"), page: Page::default() };
    b.ok(list).await.items.iter().map(|one| one.id.to_string()).collect()
}

pub(crate) async fn a_sync_makes_the_pool_and_says_what_it_did(b: &mut Bench) {
    let did = b.ok(sync(things(&["a", "b", "c", "d"]))).await;
    assert_eq!(did, Synced { added: 4, ..Synced::default() });
    let held = b.hold([only("p", "d")]).await;
    let next = vec![thing("a"), thing("b").slots(2), thing("e")];
    let did = b.ok(sync(next)).await;
    assert_eq!((did.added, did.updated, did.unchanged), (1, 1, 1));
    assert_eq!((did.retired, did.retiring), (1, 1), "one went, one is held");
    assert_eq!(ids(b).await, ["a", "b", "d", "e"]);
    b.settle(released(&held)).await;
    assert_eq!(ids(b).await, ["a", "b", "e"]);
}

pub(crate) async fn the_same_set_again_changes_nothing(b: &mut Bench) {
    let set = || vec![thing("a").data(r#"{"k":1}"#).tags(["x", "y"]), thing("b").slots(3)];
    b.ok(sync(set())).await;
    let did = b.ok(sync(set())).await;
    assert_eq!(did, Synced { unchanged: 2, ..Synced::default() });
}

pub(crate) async fn a_sync_keeps_leases_bans_cooling_and_uses(b: &mut Bench) {
    b.ok(sync(things(&["held", "banned", "cooling", "used"]))).await;
    let held = b.hold([only("p", "held")]).await;
    let used = b.hold([only("p", "used")]).await;
    b.settle(released(&used)).await;
    let reason = Some("captcha".to_owned());
    b.ok(BanResource { pool: pool("p"), resource: resource("banned"), reason }).await;
    let until = tenure_core::lease::Later::For(s(60));
    let cooling =
        b.ok(CoolResource { pool: pool("p"), resource: resource("cooling"), until }).await;
    let again = ["held", "banned", "cooling", "used"].map(|id| thing(id).data("[7]").tags(["t"]));
    assert_eq!(b.ok(sync(again.to_vec())).await.updated, 4);
    b.lives(&held).await;
    assert_eq!(b.thing("p", "held").await.in_use, 1);
    let banned = b.thing("p", "banned").await;
    assert_eq!((banned.state, banned.reason.as_deref()), (ResourceState::Banned, Some("captcha")));
    let still = b.thing("p", "cooling").await;
    assert_eq!((still.state, still.until), (ResourceState::Cooling, cooling.until));
    assert_eq!(b.thing("p", "used").await.uses, 1);
    b.denied([only("p", "banned")]).await;
    b.hold([tagged("p", "t")]).await;
}

fn banned(id: &str) -> BanResource {
    let reason = Some("captcha".to_owned());
    BanResource { pool: pool("p"), resource: resource(id), reason }
}

pub(crate) async fn what_a_sync_drops_and_names_again_is_banned_and_cools_as_before(b: &mut Bench) {
    let all = || things(&["banned", "cooling", "fine", "held", "one", "two"]);
    b.ok(sync(all())).await;
    b.ok(banned("banned")).await;
    let until = tenure_core::lease::Later::For(s(600));
    let cooling =
        b.ok(CoolResource { pool: pool("p"), resource: resource("cooling"), until }).await;
    let held = b.hold([only("p", "held")]).await;
    b.ok(sync(things(&["fine", "one", "two"]))).await;
    // A held resource is dropped when it is free, with its holder's verdict.
    let captcha = Verdict::Ban { reason: Some("captcha".to_owned()) };
    b.settle(released(&held).verdict("p", "held", captcha)).await;
    for id in ["banned", "cooling", "held"] {
        b.no_thing("p", id).await;
    }
    b.reopen().await;
    assert_eq!(b.ok(sync(all())).await.added, 3);
    for id in ["banned", "held"] {
        let view = b.thing("p", id).await;
        assert_eq!((view.state, view.reason.as_deref()), (ResourceState::Banned, Some("captcha")));
    }
    let still = b.thing("p", "cooling").await;
    assert_eq!((still.state, still.until), (ResourceState::Cooling, cooling.until));
    assert_eq!(b.pool("p").await.banned, 2);
    b.denied([only("p", "banned")]).await;
    b.denied([only("p", "cooling")]).await;
    let banned = resource("banned");
    b.ok(RestoreResource { pool: pool("p"), resource: banned }).await;
    b.hold([only("p", "banned")]).await;
    b.leap(s(601)).await;
    b.hold([only("p", "cooling")]).await;
}

pub(crate) async fn a_rest_goes_on_while_a_resource_is_not_there(b: &mut Bench) {
    b.ok(sync(things(&["a", "b", "c"]))).await;
    let until = tenure_core::lease::Later::For(s(60));
    b.ok(CoolResource { pool: pool("p"), resource: resource("a"), until }).await;
    b.ok(sync(things(&["b", "c"]))).await;
    b.leap(s(61)).await;
    b.ok(sync(things(&["a", "b", "c"]))).await;
    let view = b.thing("p", "a").await;
    assert_eq!((view.state, view.until, view.reason), (ResourceState::Available, None, None));
}

pub(crate) async fn a_ban_is_forgotten_with_its_resource_by_hand_with_its_pool_and_in_time(
    b: &mut Bench,
) {
    let state = async |b: &Bench| b.thing("p", "a").await.state;
    let drop = async |b: &Bench| {
        b.ok(sync(things(&["a", "b", "c"]))).await;
        b.ok(banned("a")).await;
        b.ok(sync(things(&["b", "c"]))).await;
    };
    let name_again = async |b: &Bench| {
        b.ok(AddResources { pool: pool("p"), resources: things(&["a"]) }).await;
    };
    drop(b).await;
    name_again(b).await;
    assert_eq!(state(b).await, ResourceState::Banned, "whoever names it again");
    b.ok(DeleteResource { pool: pool("p"), resource: resource("a") }).await;
    name_again(b).await;
    assert_eq!(state(b).await, ResourceState::Available, "it was taken away by hand");
    drop(b).await;
    b.ok(DeletePool { pool: pool("p") }).await;
    b.ok(sync(things(&["a", "b", "c"]))).await;
    assert_eq!(state(b).await, ResourceState::Available, "its pool is another one");
    drop(b).await;
    b.leap(hours(24 * 30 + 1)).await;
    name_again(b).await;
    assert_eq!(state(b).await, ResourceState::Available, "nobody named it for a month");
}

pub(crate) async fn a_sync_keeps_the_settings_of_the_pool(b: &mut Bench) {
    let settings = PoolSettings { cooldown: s(60), ..plain_pool() };
    b.set_pool("p", settings, things(&["a"])).await;
    b.ok(sync(things(&["a", "b"]))).await;
    assert_eq!(b.pool("p").await.settings, settings);
}

pub(crate) async fn new_data_is_for_the_next_lease(b: &mut Bench) {
    b.ok(sync(vec![thing("a").data(r#""old""#)])).await;
    let call = b.ask_needs([any_of("p")]).request("r1");
    let held = b.granted(call).await;
    assert_eq!(held.resources[0].data, json(r#""old""#));
    b.ok(sync(vec![thing("a").data(r#""new""#)])).await;
    b.settle(released(&held)).await;
    assert_eq!(b.hold([any_of("p")]).await.resources[0].data, json(r#""new""#));
}

pub(crate) async fn a_retiring_resource_that_is_named_again_is_available(b: &mut Bench) {
    b.ok(sync(vec![thing("a").slots(2), thing("b"), thing("c")])).await;
    let held = b.hold([only("p", "a")]).await;
    b.ok(sync(things(&["b", "c"]))).await;
    assert!(b.thing("p", "a").await.retiring);
    b.denied([only("p", "a")]).await;
    b.ok(sync(vec![thing("a").slots(2), thing("b"), thing("c")])).await;
    assert!(!b.thing("p", "a").await.retiring);
    let second = b.hold([only("p", "a")]).await;
    b.settle(released(&held)).await;
    b.settle(released(&second)).await;
    b.thing("p", "a").await;
}

pub(crate) async fn an_empty_set_must_be_meant(b: &mut Bench) {
    b.ok(sync(things(&["a", "b"]))).await;
    b.refused(Code::EmptySet, sync(vec![])).await;
    assert_eq!(ids(b).await, ["a", "b"]);
    let did = b.ok(SyncResources { meant: Meant::Yes, ..sync(vec![]) }).await;
    assert_eq!(did, Synced { retired: 2, ..Synced::default() });
    assert!(ids(b).await.is_empty());
}

pub(crate) async fn an_empty_set_makes_no_pool(b: &mut Bench) {
    b.refused(Code::EmptySet, sync(vec![])).await;
    b.refused(Code::PoolNotFound, GetPool { pool: pool("p") }).await;
}

pub(crate) async fn a_set_that_retires_most_must_be_meant(b: &mut Bench) {
    b.ok(sync(things(&["a", "b", "c", "d"]))).await;
    b.refused(Code::RetiresMost, sync(things(&["a"]))).await;
    b.refused(Code::RetiresMost, sync(things(&["a", "x", "y", "z"]))).await;
    assert_eq!(ids(b).await, ["a", "b", "c", "d"], "a refused call changed nothing");
    assert_eq!(b.ok(sync(things(&["a", "b"]))).await.retired, 2, "half is not more than half");
    let did = b.ok(SyncResources { meant: Meant::Yes, ..sync(things(&["z"])) }).await;
    assert_eq!((did.added, did.retired), (1, 2));
}

pub(crate) async fn the_older_of_two_masters_is_refused(b: &mut Bench) {
    let at = |version, ids: &[&str]| SyncResources { version: Some(version), ..sync(things(ids)) };
    b.ok(at(5, &["a", "b"])).await;
    b.refused(Code::StaleSync, at(4, &["a", "b", "old"])).await;
    assert_eq!(ids(b).await, ["a", "b"]);
    b.ok(at(5, &["a", "b", "c"])).await;
    b.ok(at(7, &["a", "b", "c", "d"])).await;
    b.refused(Code::StaleSync, at(6, &["a", "b"])).await;
    assert_eq!(ids(b).await, ["a", "b", "c", "d"]);
}

pub(crate) async fn a_sync_wakes_who_waits_for_a_new_one(b: &mut Bench) {
    b.ok(sync(things(&["a"]))).await;
    b.hold([any_of("p")]).await;
    b.push(job("q").id("x").needs([tagged("p", "new")])).await;
    let waiting = b.waiting(b.ask("q").wait(s(30))).await;
    b.ok(sync(vec![thing("a"), thing("b").tags(["new"])])).await;
    assert_eq!(resource_of(&waiting.lease().await), "b");
}

pub(crate) async fn a_set_of_thousands_is_one_set(b: &mut Bench) {
    let set: Vec<NewResource> = (0..3_000).map(|n| thing(&format!("r{n:04}"))).collect();
    assert_eq!(b.ok(sync(set.clone())).await.added, 3_000);
    assert_eq!(b.pool("p").await.available, 3_000);
    let did = b.ok(sync(set[..2_000].to_vec())).await;
    assert_eq!((did.unchanged, did.retired), (2_000, 1_000));
    assert_eq!(b.pool("p").await.available, 2_000);
}
