//! The trace of a job, from the push to the holder.

use tenure_core::job::{JobState, NewJob, OnConflict};
use tenure_core::requests::*;
use tenure_core::trace::TraceParent;

use crate::bench::Bench;
use crate::patch::patch;
use crate::words::*;

fn trace(span: u8) -> TraceParent {
    let text = format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b71692033{span:02x}-01");
    TraceParent::parse(&text).expect("it is well formed")
}

fn traced(id: &str, span: u8) -> NewJob {
    NewJob { traceparent: Some(trace(span)), ..job("q").id(id).payload("1") }
}

pub(crate) async fn the_holder_is_told_the_trace_of_the_push(b: &mut Bench) {
    b.push(traced("a", 1)).await;
    b.push(job("q").id("b")).await;
    assert_eq!(b.job("a").await.traceparent, Some(trace(1)));
    for expected in [Some(trace(1)), None] {
        let lease = b.take("q").await;
        let job = lease.job.as_ref().expect("a job");
        assert_eq!(job.traceparent, expected);
        // A run after the first gets it as well.
        b.settle(snoozed(&lease, s(5))).await;
        b.is(job.id.as_str(), JobState::Scheduled).await;
    }
    b.pass(s(6)).await;
    assert_eq!(b.take("q").await.job.expect("a job").traceparent, Some(trace(1)));
}

pub(crate) async fn jobs_of_a_large_push_keep_their_traces(b: &mut Bench) {
    let named = |n: u8| traced(&format!("j{n:02}"), n);
    b.push_all((1..=20).map(named).collect()).await;
    let leases = b.ok(b.ask("q").max(20)).await.leases;
    assert_eq!(leases.len(), 20);
    for (n, lease) in (1..).zip(leases) {
        assert_eq!(lease.job.expect("a job").traceparent, Some(trace(n)));
    }
}

pub(crate) async fn a_patch_keeps_the_trace_and_a_replacement_brings_its_own(b: &mut Bench) {
    let keyed = |id: &str, span: u8| traced(id, span).unique(unique("k", OnConflict::Replace));
    b.push(keyed("a", 1).delay(s(60))).await;
    let labels = Patch::Set([("k".to_owned(), "v".to_owned())].into());
    b.ok(PatchJob { payload: Patch::Set(json("2")), labels, ..patch("a") }).await;
    let view = b.job("a").await;
    assert_eq!((view.traceparent, view.payload), (Some(trace(1)), Some(json("2"))));
    b.push(keyed("b", 2).delay(s(60))).await;
    assert_eq!(b.job("a").await.traceparent, Some(trace(2)));
    let untraced = NewJob { traceparent: None, ..keyed("c", 3) };
    b.push(untraced).await;
    assert_eq!(b.job("a").await.traceparent, None);
}

pub(crate) async fn a_trace_survives_a_crash(b: &mut Bench) {
    b.push(traced("a", 1)).await;
    if !b.reopen().await {
        return;
    }
    assert_eq!(b.take("q").await.job.expect("a job").traceparent, Some(trace(1)));
}
