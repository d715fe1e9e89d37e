//! Fair shares between groups, counted at the grant.

use std::collections::BTreeMap;

use tenure_core::settings::QueueSettings;

use crate::bench::Bench;
use crate::words::*;

async fn shares(b: &Bench, shares: &[(&str, u32)]) {
    let shares: BTreeMap<_, _> = shares.iter().map(|(name, n)| (group(name), *n)).collect();
    b.set_queue("q", QueueSettings { shares, ..QueueSettings::default() }).await;
}
async fn fill(b: &Bench, name: &str, count: usize) {
    let jobs = (0..count).map(|n| job("q").id(&format!("{name}{n}")).group(name));
    b.push_all(jobs.collect()).await;
}
/// Takes `count` jobs one by one; returns how many were of the group.
async fn turns_of(b: &Bench, name: &str, count: usize) -> usize {
    let mut turns = 0;
    for _ in 0..count {
        let lease = b.take("q").await;
        turns += usize::from(lease.job.expect("a job").group == Some(group(name)));
    }
    turns
}

pub(crate) async fn groups_share_turns_however_many_jobs_each_has(b: &mut Bench) {
    fill(b, "many", 100).await;
    fill(b, "few", 10).await;
    assert!((9..=10).contains(&turns_of(b, "few", 20).await));
}

pub(crate) async fn in_every_few_turns_each_group_has_its_own(b: &mut Bench) {
    for name in ["a", "b", "c"] {
        fill(b, name, 20).await;
    }
    for _ in 0..10 {
        let mut turns = vec![];
        for _ in 0..3 {
            turns.push(b.take("q").await.job.expect("a job").group);
        }
        turns.sort();
        assert_eq!(turns, ["a", "b", "c"].map(|name| Some(group(name))));
    }
}

pub(crate) async fn shares_weigh_the_turns(b: &mut Bench) {
    shares(b, &[("a", 3)]).await;
    fill(b, "a", 60).await;
    fill(b, "b", 60).await;
    let turns = turns_of(b, "a", 40).await;
    assert!((29..=31).contains(&turns), "three of four: {turns}");
}

pub(crate) async fn shares_are_read_at_the_grant(b: &mut Bench) {
    fill(b, "a", 60).await;
    fill(b, "b", 60).await;
    let turns = turns_of(b, "a", 20).await;
    assert!((9..=11).contains(&turns), "{turns}");
    shares(b, &[("a", 4)]).await;
    let turns = turns_of(b, "a", 40).await;
    assert!((31..=33).contains(&turns), "a change holds at once: {turns}");
}

pub(crate) async fn jobs_without_a_group_are_one_group(b: &mut Bench) {
    b.push_all(jobs("q", "none", 60)).await;
    fill(b, "a", 60).await;
    let turns = turns_of(b, "a", 20).await;
    assert!((9..=11).contains(&turns), "{turns}");
}

pub(crate) async fn within_a_group_arrival_decides(b: &mut Bench) {
    fill(b, "a", 5).await;
    fill(b, "b", 5).await;
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for _ in 0..10 {
        let view = b.take("q").await.job.expect("a job");
        let group = view.group.expect("a group").to_string();
        seen.entry(group).or_default().push(view.id.to_string());
    }
    for name in ["a", "b"] {
        let expected: Vec<String> = (0..5).map(|n| format!("{name}{n}")).collect();
        assert_eq!(seen[name], expected);
    }
}

pub(crate) async fn priority_goes_before_shares(b: &mut Bench) {
    shares(b, &[("low", 1_000)]).await;
    fill(b, "low", 10).await;
    let jobs = (0..10).map(|n| job("q").id(&format!("h{n}")).group("high").priority(1));
    b.push_all(jobs.collect()).await;
    assert_eq!(turns_of(b, "high", 10).await, 10);
}

pub(crate) async fn an_idle_group_gains_no_credit(b: &mut Bench) {
    b.push(job("q").id("first").group("b")).await;
    fill(b, "a", 100).await;
    let turns = turns_of(b, "a", 41).await;
    assert_eq!(turns, 40, "the other had one job");
    fill(b, "b", 50).await;
    let turns = turns_of(b, "b", 20).await;
    assert!((9..=11).contains(&turns), "its turns are not saved up: {turns}");
}

pub(crate) async fn a_group_that_ran_alone_owes_nothing(b: &mut Bench) {
    for id in ["a0", "a1", "a2"] {
        b.push(job("q").id(id).group("a")).await;
        b.settle(succeeded(&b.take("q").await)).await;
    }
    // No job waited in between, so none was overtaken: arrival decides.
    b.push(job("q").id("a3").group("a")).await;
    b.push(job("q").id("b0").group("b")).await;
    b.take_job("q", "a3").await;
    b.take_job("q", "b0").await;
}

pub(crate) async fn a_group_owes_nothing_after_a_batch_that_emptied_its_queue(b: &mut Bench) {
    b.push_all(vec![job("q").id("a0").group("a"), job("q").id("b0").group("b")]).await;
    b.push(job("q").id("a1").group("a")).await;
    let leases = b.take_all("q", 3).await;
    // Their runs go on; it is waiting that makes a turn count.
    b.push(job("q").id("a2").group("a")).await;
    b.push(job("q").id("b1").group("b")).await;
    b.take_job("q", "a2").await;
    b.take_job("q", "b1").await;
    for lease in &leases {
        b.settle(succeeded(lease)).await;
    }
}

pub(crate) async fn a_group_that_waits_at_a_need_keeps_the_turns_of_others(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let lock = b.hold([need("l")]).await;
    b.push(job("q").id("c0").group("c").needs([need("l")])).await;
    b.none("q").await;
    b.push(job("q").id("a0").group("a")).await;
    b.settle(succeeded(&b.take("q").await)).await;
    // One waits, though at a need: the turn of the first group counts.
    b.push(job("q").id("a1").group("a")).await;
    b.push(job("q").id("b0").group("b")).await;
    b.take_job("q", "b0").await;
    b.take_job("q", "a1").await;
    b.settle(released(&lock)).await;
}

pub(crate) async fn waiting_on_a_taken_need_earns_no_credit(b: &mut Bench) {
    b.set_limit("l", cap(50)).await;
    let taken = b.hold([weighing("l", 50)]).await;
    let jobs = (0..50).map(|n| job("q").id(&format!("b{n}")).group("b").needs([need("l")]));
    b.push_all(jobs.collect()).await;
    fill(b, "a", 100).await;
    assert_eq!(turns_of(b, "a", 40).await, 40, "the other is blocked");
    b.settle(released(&taken)).await;
    let turns = turns_of(b, "b", 20).await;
    assert!((9..=11).contains(&turns), "{turns}");
}

pub(crate) async fn groups_take_turns_in_the_line_of_a_need(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    for name in ["a", "b"] {
        let jobs =
            (0..20).map(|n| job("q").id(&format!("{name}{n}")).group(name).needs([need("l")]));
        b.push_all(jobs.collect()).await;
    }
    let mut turns = 0;
    for _ in 0..20 {
        let lease = b.take("q").await;
        turns += usize::from(lease.job.as_ref().expect("a job").group == Some(group("a")));
        b.none("q").await;
        b.settle(succeeded(&lease)).await;
    }
    assert!((9..=11).contains(&turns), "{turns}");
}

pub(crate) async fn a_batch_shares_like_single_calls(b: &mut Bench) {
    fill(b, "a", 50).await;
    fill(b, "b", 50).await;
    let taken = b.take_all("q", 20).await;
    let of_a = taken.iter().filter(|lease| job_of(lease).starts_with('a')).count();
    assert!((9..=11).contains(&of_a), "{of_a}");
}
