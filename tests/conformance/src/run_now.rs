//! Making a scheduled job ready before its moment.

use tenure_core::job::JobState;
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

fn now(id: &str) -> RunJobNow {
    RunJobNow { job: job_ref(id) }
}

pub(crate) async fn a_scheduled_job_is_made_ready(b: &mut Bench) {
    b.push(job("q").id("delayed").delay(hours(1))).await;
    assert_eq!(b.ok(now("delayed")).await.state, JobState::Ready);
    let lease = b.take_job("q", "delayed").await;
    b.settle(failed_until(&lease, hours(1))).await;
    assert_eq!(b.ok(now("delayed")).await.state, JobState::Ready);
    let lease = b.take_job("q", "delayed").await;
    assert_eq!(lease.job.as_ref().map(|job| job.attempt), Some(2));
    b.settle(succeeded(&lease)).await;
    b.leap(hours(2)).await;
    b.none("q").await;
}

pub(crate) async fn a_job_that_needs_no_push_is_left_alone(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    b.push(job("run").id("running")).await;
    b.take("run").await;
    b.push(job("block").id("blocked").needs([need("closed")])).await;
    b.none("block").await;
    b.push(job("q").id("ready")).await;
    let table = [
        ("running", JobState::Running),
        ("blocked", JobState::Blocked),
        ("ready", JobState::Ready),
    ];
    for (id, state) in table {
        assert_eq!(b.ok(now(id)).await.state, state, "{id}");
    }
}

pub(crate) async fn a_finished_job_is_not_run_now(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    let leases = b.take_all("q", 2).await;
    b.settle(succeeded(&leases[0])).await;
    b.settle(failed_for_good(&leases[1])).await;
    b.cancel("j2").await;
    for id in ["j0", "j1", "j2"] {
        b.refused(Code::WrongState, now(id)).await;
    }
    b.refused(Code::JobNotFound, now("nobody")).await;
}

pub(crate) async fn run_now_wakes_a_waiting_worker(b: &mut Bench) {
    b.push(job("q").id("a").delay(hours(1))).await;
    let waiting = b.waiting(b.ask("q").wait(s(30))).await;
    b.ok(now("a")).await;
    assert_eq!(job_of(&waiting.lease().await), "a");
}
