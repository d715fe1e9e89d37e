//! The place in line is the order of the coming grants: one number in explain, in the limit's line and in the answer to
//! a caller.

use std::collections::BTreeMap;

use tenure_core::lease::ReasonKind;
use tenure_core::settings::QueueSettings;

use crate::bench::Bench;
use crate::words::*;

/// The line of a limit, after a check that every job in it shows the same place.
async fn line_of(b: &Bench, name: &str) -> Vec<String> {
    let line = b.limit(name).await.line;
    let ids: Vec<String> =
        line.iter().filter_map(|one| Some(one.job.as_ref()?.to_string())).collect();
    for (n, id) in ids.iter().enumerate() {
        let why = b.waits_for(id, ReasonKind::Limit).await;
        let place = n as u64 + 1;
        assert_eq!((why.position, why.ahead), (Some(place), Some(place - 1)), "{id} in {ids:?}");
    }
    ids
}

/// Frees the one permit again and again; returns the granted jobs, in order.
async fn granted_one_by_one(
    b: &Bench,
    mut held: tenure_core::lease::LeaseView,
    queues: &[&str],
) -> Vec<String> {
    let mut order = vec![];
    for queue in queues {
        b.settle(succeeded(&held)).await;
        held = b.take(queue).await;
        order.push(job_of(&held).to_owned());
    }
    order
}

async fn push_group(b: &Bench, queue: &str, group: &str, count: usize) {
    let one = |n| job(queue).id(&format!("{group}{n}")).group(group).needs([need("l")]);
    b.push_all((0..count).map(one).collect()).await;
}

pub(crate) async fn groups_stand_in_a_line_by_their_turns(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let held = b.hold([need("l")]).await;
    push_group(b, "q", "alice", 4).await;
    push_group(b, "q", "bob", 1).await;
    b.none("q").await;
    let line = line_of(b, "l").await;
    assert_eq!(line, ["alice0", "bob0", "alice1", "alice2", "alice3"]);
    assert_eq!(granted_one_by_one(b, held, &["q"; 5]).await, line);
}

pub(crate) async fn shares_decide_the_places(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let shares = BTreeMap::from([(group("a"), 3)]);
    b.set_queue("q", QueueSettings { shares, ..QueueSettings::default() }).await;
    let held = b.hold([need("l")]).await;
    push_group(b, "q", "a", 6).await;
    push_group(b, "q", "b", 3).await;
    b.none("q").await;
    let line = line_of(b, "l").await;
    // Three of four turns, from the time at which both have had one.
    assert_eq!(line[..6], ["a0", "b0", "a1", "a2", "a3", "b1"]);
    assert_eq!(granted_one_by_one(b, held, &["q"; 9]).await, line);
}

pub(crate) async fn priorities_go_before_groups_in_a_line(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let held = b.hold([need("l")]).await;
    push_group(b, "q", "low", 2).await;
    let high = |n| job("q").id(&format!("h{n}")).priority(5).needs([need("l")]);
    b.push_all((0..2).map(high).collect()).await;
    b.none("q").await;
    let line = line_of(b, "l").await;
    assert_eq!(line, ["h0", "h1", "low0", "low1"]);
    assert_eq!(granted_one_by_one(b, held, &["q"; 4]).await, line);
}

pub(crate) async fn queues_of_one_line_take_turns_by_name(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let held = b.hold([need("l")]).await;
    for name in ["zoo", "ant"] {
        push_group(b, name, name, 3).await;
        b.none(name).await;
    }
    let line = line_of(b, "l").await;
    assert_eq!(line, ["ant0", "zoo0", "ant1", "zoo1", "ant2", "zoo2"]);
    let asked = ["ant", "zoo", "ant", "zoo", "ant", "zoo"];
    assert_eq!(granted_one_by_one(b, held, &asked).await, line);
}

pub(crate) async fn a_ready_job_is_behind_those_that_are_granted_first(b: &mut Bench) {
    for (name, count) in [("a", 4), ("b", 2)] {
        let one = |n| job("q").id(&format!("{name}{n}")).group(name);
        b.push_all((0..count).map(one).collect()).await;
    }
    b.push(job("q").id("first").priority(1)).await;
    let order = ["first", "a0", "b0", "a1", "b1", "a2", "a3"];
    for (ahead, id) in order.iter().enumerate().skip(1) {
        let why = b.waits_for(id, ReasonKind::Behind).await;
        assert_eq!((why.ahead, why.position), (Some(ahead as u64), Some(ahead as u64 + 1)), "{id}");
    }
    for id in order {
        b.take_job("q", id).await;
    }
}

pub(crate) async fn a_group_that_had_turns_stands_behind_one_that_had_none(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    push_group(b, "q", "a", 4).await;
    let held = b.take("q").await;
    b.none("q").await;
    push_group(b, "q", "b", 2).await;
    b.none("q").await;
    let line = line_of(b, "l").await;
    assert_eq!(line, ["b0", "a1", "b1", "a2", "a3"]);
    assert_eq!(granted_one_by_one(b, held, &["q"; 5]).await, line);
}

pub(crate) async fn a_caller_is_told_its_own_place(b: &mut Bench) {
    b.granted(b.ask_needs([need("lock:x")]).ttl(hours(1))).await;
    let mut line = vec![];
    for place in 1..=3u64 {
        let call = b.ask_needs([need("lock:x")]).ttl(hours(1)).wait(s(20 * place));
        line.push(b.waiting_at("lock:x", place, call).await);
    }
    let fourth = b.denied([need("lock:x")]).await;
    assert_eq!(fourth.reasons[0].position, Some(4), "it stood behind three");
    b.pass(s(21)).await;
    let first = line.remove(0).answer().await;
    assert_eq!(first.reasons[0].position, Some(1), "the first in line gave up");
    b.pass(s(20)).await;
    let second = line.remove(0).answer().await;
    assert_eq!(second.reasons[0].position, Some(1), "then the next was the first");
}
