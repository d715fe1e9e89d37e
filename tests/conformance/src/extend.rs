//! Extending a lease: its life, and the exchange between its holder and the engine.

use tenure_core::job::JobState;
use tenure_core::lease::{ExtendItem, LeaseView};
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

fn items(leases: &[&LeaseView]) -> Vec<ExtendItem> {
    leases.iter().map(|one| ExtendItem { lease: id_of(one), progress: None }).collect()
}

pub(crate) async fn an_extended_lease_lives_a_ttl_from_then(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.granted(b.ask("q").ttl(s(10))).await;
    for _ in 0..5 {
        b.pass(s(8)).await;
        let answer = b.extend(&lease).await;
        assert_eq!(answer.extended[0].lease, id_of(&lease));
        assert_eq!(answer.extended[0].expires_at, b.now().plus(s(10)));
    }
    b.is("a", JobState::Running).await;
    b.settle(succeeded(&lease)).await;
}

pub(crate) async fn an_extend_may_give_another_ttl(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.granted(b.ask("q").ttl(s(10))).await;
    let answer = b.ok(Extend { leases: items(&[&lease]), ttl: Some(s(60)) }).await;
    assert_eq!(answer.extended[0].expires_at, b.now().plus(s(60)));
    b.pass(s(50)).await;
    b.is("a", JobState::Running).await;
}

pub(crate) async fn many_leases_are_extended_in_one_call(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    let leases = b.take_all("q", 3).await;
    b.settle(succeeded(&leases[1])).await;
    let mut all = items(&[&leases[0], &leases[1], &leases[2]]);
    all.push(ExtendItem { lease: "nobody's".to_owned(), progress: None });
    let answer = b.ok(Extend { leases: all, ttl: None }).await;
    let alive: Vec<_> = answer.extended.iter().map(|one| one.lease.clone()).collect();
    assert_eq!(alive, [id_of(&leases[0]), id_of(&leases[2])]);
    let mut lost = answer.lost;
    lost.sort();
    let mut expected = vec![id_of(&leases[1]), "nobody's".to_owned()];
    expected.sort();
    assert_eq!(lost, expected);
    assert!(answer.cancel.is_empty());
}

pub(crate) async fn an_empty_extend_is_answered_empty(b: &mut Bench) {
    let answer = b.ok(Extend { leases: vec![], ttl: None }).await;
    assert!(answer.extended.is_empty() && answer.lost.is_empty() && answer.cancel.is_empty());
}

pub(crate) async fn progress_is_shown_while_the_job_runs(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    let progress = Some(json(r#"{"done":3}"#));
    let leases = vec![ExtendItem { lease: id_of(&lease), progress: progress.clone() }];
    b.ok(Extend { leases, ttl: None }).await;
    assert_eq!(b.job("a").await.progress, progress);
    b.lives(&lease).await;
    assert_eq!(b.job("a").await.progress, progress, "an extend without progress keeps it");
}

pub(crate) async fn a_lease_cannot_be_extended_far_beyond_its_deadline(b: &mut Bench) {
    b.push(job("q").id("a").timeout(s(20))).await;
    let lease = b.granted(b.ask("q").ttl(s(8))).await;
    let deadline = lease.deadline.expect("a deadline");
    for _ in 0..3 {
        b.pass(s(6)).await;
        let until = b.extend(&lease).await.extended[0].expires_at;
        assert_eq!(until, b.now().plus(s(8)).min(deadline.plus(s(2))), "a quarter of the ttl");
    }
}

pub(crate) async fn a_lease_of_needs_is_extended_like_any_other(b: &mut Bench) {
    let lock = b.granted(b.ask_needs([need("lock:x")]).ttl(s(10))).await;
    for _ in 0..3 {
        b.pass(s(8)).await;
        b.lives(&lock).await;
    }
    b.denied([need("lock:x")]).await;
    b.pass(s(12)).await;
    b.is_lost(&lock).await;
    b.hold([need("lock:x")]).await;
}
