//! One resource: its data is secret, its state is set by hand, it is removed when it is free.

use tenure_core::job::JobState;
use tenure_core::lease::Later;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::ResourceState;

use crate::bench::Bench;
use crate::words::*;

fn cool(id: &str, span: tenure_core::time::Span) -> CoolResource {
    CoolResource { pool: pool("p"), resource: resource(id), until: Later::For(span) }
}
fn ban(id: &str) -> BanResource {
    BanResource { pool: pool("p"), resource: resource(id), reason: Some("captcha".to_owned()) }
}
fn restore(id: &str) -> RestoreResource {
    RestoreResource { pool: pool("p"), resource: resource(id) }
}
fn delete(id: &str) -> DeleteResource {
    DeleteResource { pool: pool("p"), resource: resource(id) }
}

pub(crate) async fn secrets_are_in_a_lease_and_nowhere_else(b: &mut Bench) {
    let data = r#"{"user":"u-secret","password":"p-secret"}"#;
    let added = AddResources { pool: pool("p"), resources: vec![thing("a").data(data)] };
    b.ok(PutPool { pool: pool("p"), settings: plain_pool() }).await;
    let hidden = serde_json::json!({"user": "•", "password": "•"});
    assert_eq!(value(&b.ok(added).await[0].data), hidden);
    b.push(job("q").id("x").needs([any_of("p")])).await;
    let lease = b.take("q").await;
    assert_eq!(lease.resources[0].data, json(data));
    assert_eq!(value(&b.thing("p", "a").await.data), hidden);
    let list = ListResources { pool: pool("p"), page: Page::default() };
    assert_eq!(value(&b.ok(list).await.items[0].data), hidden);
    let said = PatchResource {
        pool: pool("p"),
        resource: resource("a"),
        data: Patch::Keep,
        tags: Patch::Set(vec![tag("t")]),
        slots: Patch::Keep,
    };
    let shown = [
        serde_json::to_string(&b.ok(said).await).expect("a view is JSON"),
        serde_json::to_string(&b.ok(ban("a")).await).expect("a view is JSON"),
        serde_json::to_string(&b.ok(restore("a")).await).expect("a view is JSON"),
        serde_json::to_string(&b.job("x").await).expect("a view is JSON"),
        serde_json::to_string(&b.ok(ListLeases::default()).await).expect("a list is JSON"),
        serde_json::to_string(&b.thing("p", "a").await).expect("a view is JSON"),
    ];
    assert!(shown.iter().all(|text| !text.contains("-secret")), "no secret is shown");
}

pub(crate) async fn a_resource_shows_its_use(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a").tags(["t"]).slots(2)]).await;
    let view = b.thing("p", "a").await;
    assert_eq!(
        (view.state, view.in_use, view.uses, view.slots),
        (ResourceState::Available, 0, 0, 2)
    );
    assert_eq!((view.last_used_at, view.until, view.retiring), (None, None, false));
    assert_eq!(view.tags, [tag("t")]);
    b.push(job("q").id("x").needs([any_of("p")])).await;
    let lease = b.granted(b.ask("q").by("me")).await;
    let view = b.thing("p", "a").await;
    assert_eq!((view.in_use, view.uses, view.last_used_at), (1, 1, Some(b.now())));
    let holder = &view.holders[0];
    assert_eq!((holder.lease.clone(), holder.holder.as_str()), (id_of(&lease), "me"));
    assert_eq!((holder.job.clone(), holder.since), (Some(job_id("x")), b.now()));
    b.settle(succeeded(&lease)).await;
    let view = b.thing("p", "a").await;
    assert_eq!((view.in_use, view.uses, view.holders.len()), (0, 1, 0));
}

pub(crate) async fn a_banned_resource_is_not_handed_out(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    let held = b.hold([any_of("p")]).await;
    let view = b.ok(ban("a")).await;
    assert_eq!((view.state, view.reason.as_deref()), (ResourceState::Banned, Some("captcha")));
    b.lives(&held).await;
    b.settle(released(&held)).await;
    b.denied([any_of("p")]).await;
    b.leap(hours(100)).await;
    b.denied([any_of("p")]).await;
    let waiting = b.ask_needs([any_of("p")]).wait(s(60));
    let waiting = b.waiting(waiting).await;
    let view = b.ok(restore("a")).await;
    assert_eq!((view.state, view.reason), (ResourceState::Available, None));
    waiting.lease().await;
}

pub(crate) async fn a_cooling_resource_rests_until_its_moment(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    let view = b.ok(cool("a", s(10))).await;
    assert_eq!((view.state, view.until), (ResourceState::Cooling, Some(b.now().plus(s(10)))));
    b.denied([any_of("p")]).await;
    b.pass(ms(9_900)).await;
    b.denied([any_of("p")]).await;
    b.pass(ms(200)).await;
    let held = b.hold([any_of("p")]).await;
    b.settle(released(&held)).await;
    b.ok(cool("a", hours(1))).await;
    assert_eq!(b.ok(restore("a")).await.state, ResourceState::Available);
    b.hold([any_of("p")]).await;
}

pub(crate) async fn restoring_ends_no_lease(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    let held = b.hold([any_of("p")]).await;
    b.ok(restore("a")).await;
    b.lives(&held).await;
    b.denied([any_of("p")]).await;
}

pub(crate) async fn a_resource_is_patched_by_name(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a").data("{\"k\":1}").tags(["x"])]).await;
    b.push_all((0..2).map(|n| job("q").id(&format!("j{n}")).needs([tagged("p", "y")])).collect())
        .await;
    b.none("q").await;
    let said = PatchResource {
        pool: pool("p"),
        resource: resource("a"),
        data: Patch::Keep,
        tags: Patch::Set(vec![tag("y")]),
        slots: Patch::Set(2),
    };
    let view = b.ok(said.clone()).await;
    assert_eq!((view.tags, view.slots), (vec![tag("y")], 2));
    let taken = b.take_all("q", 5).await;
    assert_eq!(jobs_of(&taken), ["j0", "j1"], "a new tag and a new slot wake who waits");
    assert_eq!(value(&taken[0].resources[0].data), serde_json::json!({"k": 1}));
    let nobody = PatchResource { resource: resource("nobody"), ..said };
    b.refused(Code::ResourceNotFound, nobody).await;
}

pub(crate) async fn fewer_slots_evict_nobody(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a").slots(3)]).await;
    let one = b.hold([any_of("p")]).await;
    let two = b.hold([any_of("p")]).await;
    b.ok(AddResources { pool: pool("p"), resources: vec![thing("a").slots(1)] }).await;
    b.lives(&one).await;
    b.lives(&two).await;
    b.settle(released(&one)).await;
    b.denied([any_of("p")]).await;
    b.settle(released(&two)).await;
    b.hold([any_of("p")]).await;
    b.denied([any_of("p")]).await;
}

pub(crate) async fn an_added_resource_wakes_who_waits(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    b.hold([any_of("p")]).await;
    b.push(job("q").id("x").needs([any_of("p")])).await;
    b.none("q").await;
    b.is("x", JobState::Blocked).await;
    let waiting = b.waiting(b.ask("q").wait(s(30))).await;
    b.ok(AddResources { pool: pool("p"), resources: vec![thing("b")] }).await;
    assert_eq!(resource_of(&waiting.lease().await), "b");
}

pub(crate) async fn adding_again_updates_and_keeps_the_state(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a").data("1")]).await;
    b.ok(ban("a")).await;
    let again = vec![thing("a").data("2"), thing("b")];
    let views = b.ok(AddResources { pool: pool("p"), resources: again }).await;
    assert_eq!((views[0].id.as_str(), views[0].state), ("a", ResourceState::Banned));
    assert_eq!((views[1].id.as_str(), views[1].state), ("b", ResourceState::Available));
    b.ok(restore("a")).await;
    assert_eq!(b.hold([only("p", "a")]).await.resources[0].data, json("2"));
}

pub(crate) async fn a_deleted_resource_goes_when_it_is_free(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a").slots(2), thing("b")]).await;
    let held = b.hold([only("p", "a")]).await;
    b.ok(delete("a")).await;
    b.lives(&held).await;
    assert!(b.thing("p", "a").await.retiring);
    b.denied([only("p", "a")]).await;
    b.settle(released(&held)).await;
    b.no_thing("p", "a").await;
    b.ok(delete("b")).await;
    b.no_thing("p", "b").await;
}

pub(crate) async fn a_resource_that_is_not_there_is_not_found(b: &mut Bench) {
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    b.no_thing("p", "x").await;
    b.refused(Code::ResourceNotFound, ban("x")).await;
    b.refused(Code::ResourceNotFound, cool("x", s(1))).await;
    b.refused(Code::ResourceNotFound, restore("x")).await;
    b.refused(Code::ResourceNotFound, delete("x")).await;
}
