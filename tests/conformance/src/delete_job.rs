//! Cancelling and deleting a job.

use tenure_core::job::{JobState, OnConflict};
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn a_deleted_job_is_forgotten(b: &mut Bench) {
    b.push(job("q").id("a").unique(unique("k", OnConflict::Keep))).await;
    b.push(job("q").id("b").delay(s(5))).await;
    b.ok(DeleteJob { job: job_ref("key:k") }).await;
    b.ok(DeleteJob { job: job_ref("b") }).await;
    b.no_job("a").await;
    b.no_job("key:k").await;
    b.pass(s(6)).await;
    b.none("q").await;
    assert!(!b.push(job("q").id("a").unique(unique("k", OnConflict::Keep))).await.duplicate);
}

pub(crate) async fn a_finished_job_can_be_deleted(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    b.ok(DeleteJob { job: job_ref("a") }).await;
    b.no_job("a").await;
}

pub(crate) async fn a_running_job_cannot_be_deleted(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    b.refused(Code::WrongState, DeleteJob { job: job_ref("a") }).await;
    assert!(!b.is("a", JobState::Running).await.cancel_requested, "a refused call changed nothing");
    b.settle(succeeded(&lease)).await;
}

pub(crate) async fn a_deleted_job_passes_its_turn_on(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    b.hold([need("l")]).await;
    b.push(job("q").id("heavy").needs([weighing("l", 2)])).await;
    b.push(job("q").id("light").needs([need("l")])).await;
    b.none("q").await;
    b.ok(DeleteJob { job: job_ref("heavy") }).await;
    b.take_job("q", "light").await;
}
