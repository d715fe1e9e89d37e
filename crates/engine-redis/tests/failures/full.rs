//! Redis has reached its `maxmemory`: what needs room is refused, what makes room works.

use tenure_core::job::JobState;
use tenure_core::refusal::Code;
use tenure_core::requests::{CancelJob, Settle};
use tenure_core::time::Span;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_redis_refuses_what_needs_room_and_does_what_makes_room() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &["--maxmemory-policy", "noeviction"]);
    let engine = open(&server.url());
    for id in ["z", "a", "b", "c", "d"] {
        push(&engine, job("q", id)).await;
    }
    let asking = take(&engine, asks("q", "asking", Span::from_s(30))).await.expect("a job");
    let held = take(&engine, asks("q", "holder", Span::from_s(30))).await.expect("a job");
    let dies = take(&engine, asks("q", "dies", Span::from_s(1))).await.expect("a job");
    server.must(&["CONFIG", "SET", "maxmemory", "1"]);
    let no = answered(&engine, pushes(job("q", "e"))).await.expect_err("there is no room");
    assert_eq!(no.code(), Some(Code::StoreFull), "{no}");
    let no = answered(&engine, asks("q", "w", Span::from_s(5))).await.expect_err("nor for this");
    assert_eq!(no.code(), Some(Code::StoreFull), "{no}");
    // A settle that asks for more is done; only what it asks for is refused.
    let lease = Some(Box::new(asks("q", "w", Span::from_s(5))));
    let both = ok(&engine, Settle { lease, ..settles(&asking) }).await;
    assert!(both.settled[0].ok);
    let no = both.lease.expect("a lease call was made").expect_err("nor here");
    assert_eq!((no.code, no.pointer.as_deref()), (Code::StoreFull, Some("/lease")));
    assert!(lives(&engine, &held).await, "extend");
    assert!(settle(&engine, &held).await.ok, "settle");
    let cancel = CancelJob { job: tenure_core::names::JobRef::parse("c").expect("an id") };
    assert_eq!(ok(&engine, cancel).await.state, JobState::Cancelled);
    // Time goes on: who died is found out.
    let id = dies.job.expect("it has a job").id;
    eventually("it is reaped", async || see(&engine, id.as_str()).await.state != JobState::Running)
        .await;
    is_whole(&engine).await;
    server.must(&["CONFIG", "SET", "maxmemory", "0"]);
    push(&engine, job("q", "e")).await;
    assert!(take(&engine, asks("q", "w", Span::from_s(5))).await.is_some());
    is_whole(&engine).await;
}
