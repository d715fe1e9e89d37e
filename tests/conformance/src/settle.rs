//! Ending a lease: who may settle, what a settle carries, and when it is refused whole.

use tenure_core::job::{JobState, NewJob, OnConflict};
use tenure_core::lease::{Ending, Later, LeaseView};
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

pub(crate) async fn a_late_settle_changes_nothing(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let late = b.granted(b.ask("q").ttl(s(5))).await;
    b.until_it_ends("a", s(10)).await;
    let before = b.job("a").await;
    b.no_settle(Code::LeaseLost, succeeded(&late)).await;
    assert_eq!(b.job("a").await, before);
    b.pass(s(3)).await;
    let next = b.take_job("q", "a").await;
    b.no_settle(Code::LeaseLost, failed_for_good(&late)).await;
    b.no_settle(Code::LeaseLost, released(&late)).await;
    b.is_lost(&late).await;
    b.is("a", JobState::Running).await;
    b.settle(succeeded(&next)).await;
    b.no_settle(Code::LeaseLost, failed_for_good(&late)).await;
    b.is("a", JobState::Succeeded).await;
}

pub(crate) async fn a_foreign_settle_changes_nothing(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    let mut item = succeeded(&lease);
    item.lease = "no-such-lease".to_owned();
    b.no_settle(Code::LeaseLost, item).await;
    let mut item = succeeded(&lease);
    item.lease.push('x');
    b.no_settle(Code::LeaseLost, item).await;
    b.lives(&lease).await;
}

pub(crate) async fn a_settled_lease_is_lost_to_extends(b: &mut Bench) {
    b.push(job("q")).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    b.is_lost(&lease).await;
    assert!(b.ok(ListLeases::default()).await.items.is_empty());
}

pub(crate) async fn settles_are_answered_in_their_order(b: &mut Bench) {
    b.push_all(jobs("q", "j", 4)).await;
    let leases = b.take_all("q", 4).await;
    b.settle(succeeded(&leases[1])).await;
    let mut stranger = succeeded(&leases[0]);
    stranger.lease = "nobody's".to_owned();
    let settle = vec![
        failed_for_good(&leases[3]),
        stranger,
        failed(&leases[1]),
        succeeded(&leases[0]),
        snoozed(&leases[2], s(5)),
    ];
    let names: Vec<String> = settle.iter().map(|item| item.lease.clone()).collect();
    let settled = b.ok(Settle::of(settle)).await.settled;
    let said: Vec<_> = settled.iter().map(|one| one.lease.clone()).collect();
    assert_eq!(said, names);
    let codes: Vec<_> = settled.iter().map(|one| (one.ok, one.code)).collect();
    let lost = (false, Some(Code::LeaseLost));
    let otherwise = (false, Some(Code::AlreadySettled));
    assert_eq!(codes, [(true, None), lost, otherwise, (true, None), (true, None)]);
    b.is("j3", JobState::Failed).await;
    b.is("j1", JobState::Succeeded).await;
    b.is("j0", JobState::Succeeded).await;
    b.is("j2", JobState::Scheduled).await;
}

pub(crate) async fn an_empty_settle_is_answered_empty(b: &mut Bench) {
    assert!(b.ok(Settle::of(vec![])).await.settled.is_empty());
}

pub(crate) async fn a_lease_without_a_job_takes_succeeded_or_released(b: &mut Bench) {
    for ends in [Ending::Succeeded { result: None }, Ending::Released] {
        let lease = b.hold([need("lock:x")]).await;
        let settled = b.settle(ending(&lease, ends)).await;
        assert_eq!((settled.state, settled.run_at), (None, None), "there is no job");
        b.in_use("lock:x", 0).await;
    }
}

pub(crate) async fn a_lease_without_a_job_can_neither_fail_nor_snooze(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let other = b.take("q").await;
    let lease = b.hold([need("lock:x")]).await;
    for item in [failed(&lease), failed_for_good(&lease), snoozed(&lease, s(5))] {
        let settle = vec![succeeded(&other), item];
        b.refused(Code::InvalidField, Settle::of(settle)).await;
    }
    b.lives(&lease).await;
    b.is("a", JobState::Running).await;
    b.lives(&other).await;
}

pub(crate) async fn a_snooze_until_now_is_refused_and_nothing_is_settled(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let leases = b.take_all("q", 2).await;
    let later = Later::Until(b.now().plus(ms(50)));
    let settle =
        vec![succeeded(&leases[0]), ending(&leases[1], Ending::Snoozed { later, reset: false })];
    let no = b.refused(Code::OutOfBounds, Settle::of(settle)).await;
    assert_eq!(no.index, Some(1), "the item is named");
    b.lives(&leases[0]).await;
    b.lives(&leases[1]).await;
}

pub(crate) async fn follow_ups_are_stored_with_the_settle(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    let item =
        succeeded(&lease).pushing(job("next").id("b")).pushing(job("next").id("c").delay(s(5)));
    let settled = b.settle(item).await;
    let said: Vec<_> = settled.pushed.iter().map(|pushed| pushed.job.id.as_str()).collect();
    assert_eq!(said, ["b", "c"]);
    assert!(settled.pushed.iter().all(|pushed| pushed.job.payload.is_none()), "without payload");
    b.take_job("next", "b").await;
    b.is("c", JobState::Scheduled).await;
}

pub(crate) async fn follow_ups_of_a_lost_lease_are_not_stored(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let late = b.granted(b.ask("q").ttl(s(5))).await;
    b.until_it_ends("a", s(10)).await;
    b.no_settle(Code::LeaseLost, succeeded(&late).pushing(job("next").id("b"))).await;
    b.no_job("b").await;
}

pub(crate) async fn follow_ups_of_a_settle_that_was_made_otherwise_are_not_stored(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    b.no_settle(Code::AlreadySettled, failed(&lease).pushing(job("next").id("b"))).await;
    b.no_job("b").await;
}

pub(crate) async fn a_follow_up_that_is_refused_refuses_the_settle(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    let bad = job("next").id("bad").needs([need("nowhere")]);
    let settle = vec![succeeded(&lease).pushing(job("next").id("b")).pushing(bad)];
    b.refused(Code::UnknownLimit, Settle::of(settle)).await;
    b.no_job("b").await;
    b.is("a", JobState::Running).await;
    b.settle(succeeded(&lease)).await;
}

pub(crate) async fn a_settle_with_a_follow_up_frees_the_key_first(b: &mut Bench) {
    let chain =
        |id: &str| job("q").id(id).unique(unique("chain", tenure_core::job::OnConflict::Keep));
    b.push(chain("a")).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease).pushing(job("q").id("b"))).await;
    let next = b.push(chain("c")).await;
    assert!(!next.duplicate, "the key was free when its job was finished");
}

/// Items take effect in their order: a push meets a key that a later item frees, and takes one that an earlier item freed.
pub(crate) async fn a_follow_up_meets_the_keys_that_are_held_at_its_turn(b: &mut Bench) {
    let keyed = |id: &str| job("q").id(id).unique(unique("k", OnConflict::Keep));
    let pushes = |lease: &LeaseView, id: &str| succeeded(lease).pushing(keyed(id));
    for (n, push_first) in [true, false].into_iter().enumerate() {
        let (holder, next) = (format!("holder{n}"), format!("next{n}"));
        b.push(job("q").id(&format!("other{n}"))).await;
        let other = b.take("q").await;
        b.push(keyed(&holder)).await;
        let held = b.take("q").await;
        let mut items = vec![succeeded(&held), pushes(&other, &next)];
        if push_first {
            items.reverse();
        }
        let settled = b.ok(Settle::of(items)).await.settled;
        let pushed = settled.iter().flat_map(|one| one.pushed.iter()).next().expect("it pushed");
        let met = if push_first { &holder } else { &next };
        assert_eq!((pushed.job.id.as_str(), pushed.duplicate), (met.as_str(), push_first));
        if !push_first {
            b.take_job("q", &next).await;
        }
    }
}

pub(crate) async fn a_follow_up_may_take_the_id_of_a_job_that_goes_with_its_end(b: &mut Bench) {
    let own = |n: u32| {
        let key = unique("own", tenure_core::job::OnConflict::Keep);
        job("q").id("a").payload(&n.to_string()).retain(s(0)).unique(key)
    };
    b.push(own(0)).await;
    for n in 1..=3 {
        let lease = b.take_job("q", "a").await;
        let item = match n {
            1 => succeeded(&lease),
            2 => failed_for_good(&lease),
            _ => {
                b.cancel("a").await;
                snoozed(&lease, s(5))
            }
        };
        let item = item.pushing(job("next").id(&format!("b{n}"))).pushing(own(n));
        let settled = b.settle(item.clone()).await;
        let pushed: Vec<_> =
            settled.pushed.iter().map(|one| (one.job.id.as_str(), one.duplicate)).collect();
        assert_eq!(pushed, [(format!("b{n}").as_str(), false), ("a", false)]);
        let view = b.is("a", JobState::Ready).await;
        assert_eq!((view.payload, view.attempt), (Some(json(&n.to_string())), 0));
        b.no_settle(Code::LeaseLost, item).await;
    }
    assert_eq!(b.queue("q").await.counts.ready, 1);
    assert!(b.ok(Audit::default()).await.ok);
}

pub(crate) async fn a_follow_up_under_its_own_id_is_a_duplicate_while_its_job_is_there(
    b: &mut Bench,
) {
    b.push(job("q").id("kept")).await;
    let lease = b.take("q").await;
    let settled = b.settle(succeeded(&lease).pushing(job("q").id("kept"))).await;
    assert!(settled.pushed[0].duplicate, "it is kept");
    b.is("kept", JobState::Succeeded).await;
    b.push(job("q").id("again").retain(s(0)).retry(retry(2, 3, fixed(s(1))))).await;
    let lease = b.take("q").await;
    let settled = b.settle(failed(&lease).pushing(job("q").id("again"))).await;
    assert!(settled.pushed[0].duplicate, "it is tried again");
    assert_eq!(b.is("again", JobState::Scheduled).await.attempt, 1);
    // Another id and the key of a job that goes: it still held the key when the job was pushed.
    let keyed = |id: &str| {
        let key = unique("chain", tenure_core::job::OnConflict::Keep);
        job("keyed").id(id).retain(s(0)).unique(key)
    };
    b.push(keyed("first")).await;
    let lease = b.take("keyed").await;
    let settled = b.settle(succeeded(&lease).pushing(keyed("second"))).await;
    let one = &settled.pushed[0];
    assert_eq!((one.job.id.as_str(), one.duplicate), ("first", true));
    // A tick forgets it.
    b.pass(ms(1)).await;
    b.no_job("first").await;
    b.no_job("second").await;
}

pub(crate) async fn a_follow_up_takes_the_id_of_a_job_that_went_in_the_same_call(b: &mut Bench) {
    b.push_all(vec![job("q").id("a").retain(s(0)), job("q").id("b")]).await;
    let (a, last) = (b.take("q").await, b.take("q").await);
    let settle = vec![succeeded(&a), succeeded(&last).pushing(job("q").id("a").payload("2"))];
    let settled = b.ok(Settle::of(settle)).await.settled;
    assert!(settled.iter().all(|one| one.ok), "{settled:?}");
    assert!(!settled[1].pushed[0].duplicate);
    assert_eq!(b.is("a", JobState::Ready).await.payload, Some(json("2")));
    assert!(b.ok(Audit::default()).await.ok);
}

pub(crate) async fn follow_ups_of_a_job_that_goes_with_its_end_are_stored_or_refused_together(
    b: &mut Bench,
) {
    b.push(job("q").id("a").retain(s(0))).await;
    let lease = b.take("q").await;
    let bad = job("q").id("a").needs([need("nowhere")]);
    let settle = vec![succeeded(&lease).pushing(bad).pushing(job("next").id("b"))];
    let no = b.refused(Code::UnknownLimit, Settle::of(settle)).await;
    assert_eq!(no.pointer.as_deref(), Some("/settle/0/push/0/needs/0/limit"));
    b.no_job("b").await;
    b.is("a", JobState::Running).await;
    b.lives(&lease).await;
}

/// As items of one array do, whether the settled job goes at once or is kept.
pub(crate) async fn follow_ups_of_one_key_are_one_job_also_where_one_takes_the_settled_id(
    b: &mut Bench,
) {
    for (n, on_conflict) in
        [OnConflict::Keep, OnConflict::Reject, OnConflict::Replace].iter().enumerate()
    {
        let (key, a, other) = (format!("k{n}"), format!("a{n}"), format!("b{n}"));
        b.push(job("q").id(&a).retain(s(0))).await;
        let lease = b.take_job("q", &a).await;
        let first = job("q").id(&other).unique(unique(&key, OnConflict::Keep));
        let again = job("elsewhere").id(&a).unique(unique(&key, *on_conflict));
        let settle = succeeded(&lease).pushing(again).pushing(first);
        let pushed = b.ok(Settle::of(vec![settle])).await.settled.remove(0).pushed;
        let told: Vec<_> =
            pushed.iter().map(|one| (one.job.id.as_str(), one.duplicate, one.replaced)).collect();
        assert_eq!(told, [(other.as_str(), true, false), (other.as_str(), false, false)]);
        b.pass(ms(10)).await;
        b.no_job(&a).await;
        b.ends("q", &other, succeeded).await;
        // A child of the one is a child of the other.
        b.push(job("q").id(&a).retain(s(0))).await;
        let lease = b.take_job("q", &a).await;
        let third = format!("c{n}");
        let child = job("q").id("child").after([a.as_str()]);
        let keyed = |job: NewJob| job.unique(unique(&key, *on_conflict));
        let settle = succeeded(&lease).pushing(keyed(job("q").id(&a))).pushing(child);
        b.settle(settle.pushing(keyed(job("q").id(&third)))).await;
        b.is("child", JobState::Dependent).await;
        b.ends("q", &third, succeeded).await;
        b.ends("q", "child", succeeded).await;
        b.ok(DeleteJob { job: job_ref("child") }).await;
    }
    assert!(b.ok(Audit::default()).await.ok);
}

pub(crate) async fn a_settle_wakes_the_first_of_the_line(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let holder = b.hold([need("l")]).await;
    b.push(job("q").id("a").needs([need("l")])).await;
    b.none("q").await;
    let waiting = b.waiting(b.ask("q").wait(s(30))).await;
    assert!(!waiting.is_answered());
    b.settle(released(&holder)).await;
    assert_eq!(job_of(&waiting.lease().await), "a");
}
