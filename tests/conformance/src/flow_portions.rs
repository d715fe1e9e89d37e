//! Many jobs that wait for one, and one that waits for many: they are notified and let go in portions, each once.

use std::collections::HashSet;

use tenure_core::bounds::{AFTER_SHOWN, TOLD_AT_ONCE};
use tenure_core::flow::FlowState;
use tenure_core::job::{JobState, NewJob, OnConflict, Unique};
use tenure_core::lease::{LeaseView, ReasonKind, SettleItem};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_engine_api::CallError;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

/// A number of children that takes many portions to notify.
const CHILDREN: usize = 4_000;
/// An engine notifies by itself, so a caller may come too late to see it under way: the sentence tries again with
/// another parent. An engine that notifies all of them in the step of the end is never seen.
const TRIES: usize = 25;

/// Jobs `{name}0`, `{name}1`, … that all wait for the parent, in the queue `q`.
async fn push_children(
    b: &Bench,
    parent: &str,
    name: &str,
    count: usize,
    with: fn(NewJob) -> NewJob,
) {
    for from in (0..count).step_by(1_000) {
        let child = |n: usize| with(job("q").id(&format!("{name}{n}")).after([parent]));
        b.ok(briefly((from..count.min(from + 1_000)).map(child).collect())).await;
    }
}

/// Ends a new parent of [`CHILDREN`] children, `c{n}-0` and on, and returns while they may still be notified.
async fn telling(
    b: &Bench,
    n: usize,
    with: fn(NewJob) -> NewJob,
    end: fn(&LeaseView) -> SettleItem,
) {
    b.push(job("p").id(&format!("p{n}"))).await;
    push_children(b, &format!("p{n}"), &format!("c{n}-"), CHILDREN, with).await;
    b.ends("p", &format!("p{n}"), end).await;
}

pub(crate) async fn a_parent_with_ten_thousand_children_tells_each_once(b: &mut Bench) {
    const ALL: usize = 10_000;
    b.push(job("p").id("a")).await;
    push_children(b, "a", "c", ALL, |job| job).await;
    assert_eq!(b.queue("q").await.counts.dependent, ALL as u64);
    b.ends("p", "a", succeeded).await;
    b.told().await;
    let counts = b.queue("q").await.counts;
    assert_eq!((counts.ready, counts.dependent), (ALL as u64, 0));
    let mut seen = Vec::new();
    for _ in 0..ALL / 1_000 {
        seen.extend(b.take_all("q", 1_000).await.iter().map(|lease| job_of(lease).to_owned()));
    }
    let pushed: Vec<String> = (0..ALL).map(|n| format!("c{n}")).collect();
    assert_eq!(seen, pushed, "in the order in which they were pushed, each once");
    b.none("q").await;
}

pub(crate) async fn at_least_a_portion_starts_in_the_step_of_the_end_and_the_rest_in_order(
    b: &mut Bench,
) {
    const ALL: usize = 600;
    b.push(job("p").id("a")).await;
    push_children(b, "a", "c", ALL, |job| job).await;
    let parent = b.take("p").await;
    let lease = Some(Box::new(b.ask("q").max(1_000).request("r")));
    let answer = b.ok(Settle { settle: vec![succeeded(&parent)], lease }).await;
    let first = answer.lease.expect("a lease call was made").expect("it is not refused").leases;
    // The settle notifies a portion, and so does each call of the store that the lease call after it becomes.
    assert!(first.len() >= TOLD_AT_ONCE, "{}", first.len());
    b.told().await;
    let rest = b.take_all("q", 1_000).await;
    let ids: Vec<&str> = jobs_of(&first).into_iter().chain(jobs_of(&rest)).collect();
    let pushed: Vec<String> = (0..ALL).map(|n| format!("c{n}")).collect();
    assert_eq!(ids, pushed, "by their rows");
}

pub(crate) async fn a_failed_parent_cancels_all_its_children_in_portions(b: &mut Bench) {
    const ALL: usize = 1_000;
    b.push(job("p").id("a")).await;
    push_children(b, "a", "c", ALL, |job| job).await;
    // Each of them has a child of its own, which is cancelled in its turn.
    let of = |n: usize| job("q").id(&format!("g{n}")).after([format!("c{n}")]);
    b.ok(briefly((0..ALL).map(of).collect())).await;
    b.ends("p", "a", failed_for_good).await;
    b.told().await;
    let stats = b.ok(GetStats).await;
    assert_eq!(stats.jobs.get(&JobState::Cancelled), Some(&(2 * ALL as u64)));
    assert_eq!(stats.jobs.get(&JobState::Dependent).copied().unwrap_or_default(), 0);
    b.none("q").await;
    let view = b.retried("a").await;
    assert_eq!(view.cancelled_children, Some(ALL as u64), "its own children alone");
}

pub(crate) async fn who_is_not_told_yet_is_dependent_and_explain_says_why(b: &mut Bench) {
    for n in 0..TRIES {
        let last = format!("c{n}-{}", CHILDREN - 1);
        b.push(job("p").id(&format!("p{n}"))).await;
        push_children(b, &format!("p{n}"), &format!("c{n}-"), CHILDREN, |job| job).await;
        let before = b.waits_for(&last, ReasonKind::WaitingOn).await;
        b.ends("p", &format!("p{n}"), succeeded).await;
        let explained = b.explain(&last).await;
        b.told().await;
        b.is(&last, JobState::Ready).await;
        if explained.state == JobState::Dependent {
            let waits = |kind: &ReasonKind| *kind == ReasonKind::WaitingOn;
            let mut reasons = explained.reasons.iter().filter(|reason| waits(&reason.kind));
            let reason = reasons.next().expect("it waits to be told");
            assert_eq!(reason.name.as_deref(), Some(format!("p{n}").as_str()));
            assert_eq!((reason.in_use, reason.capacity), (Some(0), Some(1)));
            assert_ne!(reason.detail, before.detail, "it says that its parent has ended");
            return;
        }
    }
    panic!("nobody was seen that was not told yet");
}

pub(crate) async fn a_parent_that_has_not_told_all_is_not_retried(b: &mut Bench) {
    let again = |n: usize| RetryJob { job: job_ref(&format!("p{n}")), finished_at: None };
    for n in 0..TRIES {
        telling(b, n, FlowWords::run_anyway, failed_for_good).await;
        let answer = b.call_in(&b.namespace, again(n)).await;
        let dependent = b.queue("q").await.counts.dependent;
        b.told().await;
        assert_eq!(b.queue("q").await.counts.dependent, 0, "each was told");
        match answer {
            Err(CallError::Refused(no)) => {
                assert_eq!(no.code, Code::WrongState, "{no}");
                assert_eq!(b.retried(&format!("p{n}")).await.state, JobState::Ready);
                return;
            }
            Err(CallError::Fault(fault)) => panic!("{fault}"),
            // It lives again: the next round begins without it.
            Ok(_) => {
                assert_eq!(dependent, 0, "it was retried while some were not told");
                b.ends("p", &format!("p{n}"), succeeded).await;
            }
        }
    }
    panic!("no parent was seen that had not told all");
}

pub(crate) async fn a_bulk_retry_passes_over_a_parent_that_is_telling(b: &mut Bench) {
    let filter = || JobFilter { queue: Some(queue("p")), ..JobFilter::default() };
    for n in 0..TRIES {
        telling(b, n, FlowWords::run_anyway, failed_for_good).await;
        let first = b.ok(RetryJobs { filter: filter(), max: 100, cursor: None }).await;
        b.told().await;
        if first.done == 0 {
            assert!(first.more && first.next.is_some(), "{first:?}");
            let second = b.ok(RetryJobs { filter: filter(), max: 100, cursor: None }).await;
            assert_eq!(second.done, 1);
            b.is(&format!("p{n}"), JobState::Ready).await;
            return;
        }
        b.ends("p", &format!("p{n}"), succeeded).await;
    }
    panic!("no parent was seen that had not told all");
}

pub(crate) async fn a_holder_that_is_replaced_keeps_those_waiting_that_it_has_not_told(
    b: &mut Bench,
) {
    let keyed = |id: &str, payload: &str| {
        let unique = Unique { hold: Some(s(600)), ..unique("k", OnConflict::Replace) };
        job("p").id(id).payload(payload).unique(unique)
    };
    b.push_all(vec![keyed("a", "1"), job("w").id("w")]).await;
    push_children(b, "a", "c", 600, |job| job).await;
    let (a, w) = (b.take("p").await, b.take("w").await);
    // A parent reports its end when the call is over, and by then it lives again.
    let settle = vec![succeeded(&a), succeeded(&w).pushing(keyed("x", "2"))];
    let settled = b.ok(Settle::of(settle)).await.settled;
    let pushed = &settled[1].pushed[0];
    assert_eq!((pushed.job.id.as_str(), pushed.replaced), ("a", true), "{pushed:?}");
    b.told().await;
    assert_eq!(b.queue("q").await.counts.dependent, 600);
    assert_eq!(waits_of(&b.is("c0", JobState::Dependent).await), (1, 1));
    b.ends("p", "a", succeeded).await;
    b.told().await;
    assert_eq!(b.queue("q").await.counts.ready, 600);
    assert_eq!(b.take_all("q", 1_000).await.len(), 600);
}

pub(crate) async fn a_fan_in_of_five_thousand_starts_once_after_the_last(b: &mut Bench) {
    const ALL: usize = 5_000;
    let ids: Vec<String> = (0..ALL).map(|n| format!("p{n}")).collect();
    for part in ids.chunks(1_000) {
        let parent = |id: &String| job("p").id(id).retain(s(0));
        b.ok(briefly(part.iter().map(parent).collect())).await;
    }
    let view = b.push(job("q").id("c").after(&ids)).await.job;
    assert_eq!(waits_of(&view), (ALL as u32, ALL as u32));
    assert_eq!(after_of(&view), ids[..AFTER_SHOWN], "the first of them");
    for _ in 0..ALL / 1_000 - 1 {
        let leases = b.take_all("p", 1_000).await;
        b.ok(Settle::of(leases.iter().map(succeeded).collect())).await;
    }
    let mut leases = b.take_all("p", 1_000).await;
    let last = leases.pop().expect("the last of them");
    b.ok(Settle::of(leases.iter().map(succeeded).collect())).await;
    b.told().await;
    assert_eq!(waits_of(&b.is("c", JobState::Dependent).await), (ALL as u32, 1));
    b.none("q").await;
    b.settle(succeeded(&last)).await;
    let lease = b.take_job("q", "c").await;
    b.none("q").await;
    let succeeded_now = async || b.ok(GetStats).await.jobs.get(&JobState::Succeeded).copied();
    b.told().await;
    assert_eq!(succeeded_now().await, Some(ALL as u64), "they are kept as long as it is there");
    b.settle(succeeded(&lease)).await;
    b.told().await;
    assert_eq!(succeeded_now().await, Some(1), "all are let go");
}

pub(crate) async fn a_flow_of_ten_thousand_jobs_ends_and_each_ran_after_its_parents(b: &mut Bench) {
    const LAYERS: usize = 100;
    const WIDE: usize = 100;
    let id = |layer: usize, n: usize| format!("{layer}/{n}");
    // Another mixture in each layer; for some jobs both are the same parent.
    let parents = |layer: usize, n: usize| match layer {
        0 => vec![],
        _ => vec![id(layer - 1, (n * 7 + layer) % WIDE), id(layer - 1, (n * 3 + 1) % WIDE)],
    };
    for layers in (0..LAYERS).collect::<Vec<_>>().chunks(1_000 / WIDE) {
        let places = layers.iter().flat_map(|layer| (0..WIDE).map(|n| (*layer, n)));
        let of = |(layer, n): (usize, usize)| job("q").id(&id(layer, n)).after(parents(layer, n));
        // The last comes first: an array has no order.
        let jobs = places.map(|place| of(place).in_flow("big")).rev();
        b.ok(briefly(jobs.collect())).await;
    }
    let mut done = HashSet::new();
    loop {
        let mut leases = b.take_all("q", 150).await;
        if leases.is_empty() {
            b.told().await;
            leases = b.take_all("q", 150).await;
        }
        if leases.is_empty() {
            break;
        }
        for own in jobs_of(&leases) {
            let (layer, n) = own.split_once('/').expect("a place");
            let (layer, n) = (layer.parse().expect("a layer"), n.parse().expect("a number"));
            assert!(parents(layer, n).iter().all(|parent| done.contains(parent)), "{own}");
        }
        b.ok(Settle::of(leases.iter().map(succeeded).collect())).await;
        let ended = jobs_of(&leases).into_iter().map(str::to_owned);
        let before = done.len();
        done.extend(ended);
        assert_eq!(done.len(), before + leases.len(), "each runs once");
    }
    assert_eq!(done.len(), LAYERS * WIDE);
    let view = b.flow("big").await;
    assert_eq!((view.state, counts_of(&view)), (FlowState::Finished, [0, 10_000, 0, 0]));
}

pub(crate) async fn parents_that_end_together_tell_in_the_order_of_their_ends(b: &mut Bench) {
    b.push_all(jobs("p", "p", 4)).await;
    for n in [3, 1, 0, 2] {
        push_children(b, &format!("p{n}"), &format!("c{n}-"), 200, |job| job).await;
    }
    let leases = b.take_all("p", 4).await;
    let ended = [2, 0, 3, 1];
    b.ok(Settle::of(ended.iter().map(|n| succeeded(&leases[*n])).collect())).await;
    b.told().await;
    let taken = b.take_all("q", 1_000).await;
    let expected = ended.iter().flat_map(|n| (0..200).map(move |c| format!("c{n}-{c}")));
    assert_eq!(jobs_of(&taken), expected.collect::<Vec<_>>());
}
