//! One setting for a whole family: templates, and limits of their own.

use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn each_member_has_its_own_permits(b: &mut Bench) {
    b.set_limit("site:*", cap(2)).await;
    b.hold([need("site:a")]).await;
    b.hold([need("site:a")]).await;
    b.denied([need("site:a")]).await;
    b.hold([weighing("site:b", 2)]).await;
    b.in_use("site:a", 2).await;
    b.in_use("site:b", 2).await;
}

pub(crate) async fn a_member_answers_the_settings_of_its_template(b: &mut Bench) {
    b.set_limit("site:*", cap_and_gap(2, s(5))).await;
    let view = b.limit("site:a").await;
    assert_eq!((view.name, view.template), (limit("site:a"), Some(limit("site:*"))));
    assert_eq!((view.settings, view.in_use), (cap_and_gap(2, s(5)), 0));
}

pub(crate) async fn a_limit_of_its_own_replaces_its_template_whole(b: &mut Bench) {
    b.set_limit("site:*", cap_and_gap(1, s(60))).await;
    b.set_limit("site:a", cap(2)).await;
    let view = b.limit("site:a").await;
    assert_eq!((view.template, view.settings), (None, cap(2)), "the gap is not inherited");
    let one = b.hold([need("site:a")]).await;
    b.hold([need("site:a")]).await;
    b.settle(released(&one)).await;
    b.hold([need("site:a")]).await;
    b.hold([need("site:b")]).await;
    b.denied([need("site:b")]).await;
}

pub(crate) async fn a_changed_template_is_for_those_who_wait(b: &mut Bench) {
    b.set_limit("site:*", cap(1)).await;
    for site in ["a", "b", "c"] {
        let name = format!("site:{site}");
        b.hold([need(&name)]).await;
        b.push(job("q").id(site).needs([need(&name)])).await;
    }
    b.none("q").await;
    let waiting = b.waiting(b.ask("q").max(5).wait(s(30))).await;
    b.set_limit("site:*", cap(2)).await;
    let mut taken = waiting.answer().await.leases;
    while taken.len() < 3 {
        let rest = b.ask("q").max(5).wait(s(30));
        taken.extend(b.waiting(rest).await.answer().await.leases);
    }
    let mut ids = jobs_of(&taken);
    ids.sort_unstable();
    assert_eq!(ids, ["a", "b", "c"]);
    b.denied([need("site:a")]).await;
}

pub(crate) async fn what_a_member_holds_outlives_changes_of_its_setting(b: &mut Bench) {
    b.set_limit("site:*", cap(2)).await;
    b.hold([need("site:a")]).await;
    b.set_limit("site:a", cap(2)).await;
    b.in_use("site:a", 1).await;
    b.hold([need("site:a")]).await;
    b.denied([need("site:a")]).await;
    b.ok(DeleteLimit { limit: limit("site:a") }).await;
    let view = b.limit("site:a").await;
    assert_eq!((view.template, view.in_use), (Some(limit("site:*")), 2));
    b.denied([need("site:a")]).await;
}

pub(crate) async fn without_a_template_a_member_is_unknown(b: &mut Bench) {
    b.set_limit("site:*", cap(1)).await;
    b.push(job("q").id("a").needs([need("site:a")])).await;
    b.ok(DeleteLimit { limit: limit("site:*") }).await;
    b.none("q").await;
    b.no_push(Code::UnknownLimit, job("q").needs([need("site:a")])).await;
    b.refused(Code::LimitNotFound, GetLimit { limit: limit("site:a") }).await;
    b.set_limit("site:*", cap(1)).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn the_list_shows_what_is_set_and_what_is_in_use(b: &mut Bench) {
    b.set_limit("site:*", cap(1)).await;
    b.set_limit("alone", cap(1)).await;
    let held = b.hold([need("site:a")]).await;
    let names = async || -> Vec<String> {
        let listed = b.ok(ListLimits::default()).await.items;
        listed.iter().map(|one| one.name.to_string()).filter(|one| one != "lock:*").collect()
    };
    assert_eq!(names().await, ["alone", "site:*", "site:a"]);
    b.settle(released(&held)).await;
    assert_eq!(names().await, ["alone", "site:*"]);
}

pub(crate) async fn a_rate_of_a_template_is_each_members(b: &mut Bench) {
    b.set_limit("site:*", rate(1, s(10), 1)).await;
    b.hold([need("site:a")]).await;
    b.denied([need("site:a")]).await;
    b.hold([need("site:b")]).await;
    b.pass(s(11)).await;
    b.hold([need("site:a")]).await;
}
