//! Cancelling a whole flow, and waiting for one.

use tenure_core::flow::FlowState;
use tenure_core::job::JobState;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

pub(crate) async fn a_cancelled_flow_calls_off_what_waits_and_asks_what_runs_to_stop(
    b: &mut Bench,
) {
    b.set_limit("closed", cap(0)).await;
    let of = |queue: &str, id: &str| job(queue).id(id).in_flow("f");
    b.push(of("q", "done")).await;
    b.ends("q", "done", succeeded).await;
    b.push(of("b", "blocked").needs([need("closed")])).await;
    b.none("b").await;
    b.push_all(vec![
        of("q", "runs"),
        of("q", "ready"),
        of("q", "scheduled").delay(s(60)),
        of("q", "dependent").after(["runs"]),
        of("q", "run").after(["ready"]).run_anyway(),
        job("q").id("beside"),
    ])
    .await;
    b.push(job("w").id("waits").after_flow("f").run_anyway()).await;
    let lease = b.take_job("q", "runs").await;
    let view = b.cancel_flow("f").await;
    assert_eq!((counts_of(&view), view.cancelling), ([1, 1, 0, 5], false));
    for id in ["blocked", "ready", "scheduled", "dependent", "run"] {
        let view = b.is(id, JobState::Cancelled).await;
        assert_eq!((view.error, view.finished_at), (None, Some(b.now())), "{id}");
    }
    assert!(b.is("runs", JobState::Running).await.cancel_requested);
    assert_eq!(b.extend(&lease).await.cancel, [id_of(&lease)]);
    b.is("beside", JobState::Ready).await;
    b.is("waits", JobState::Dependent).await;
    // Its follow-ups into its own flow are cancelled too; one into another flow is not.
    let item = released(&lease)
        .pushing(job("q").id("next"))
        .pushing(job("q").id("child").after(["next"]).run_anyway())
        .pushing(job("other").id("other").in_flow("g"));
    let settled = b.settle(item).await;
    assert_eq!(settled.state, Some(JobState::Cancelled));
    let states: Vec<_> = settled
        .pushed
        .iter()
        .map(|one| (one.job.state, flow_of(&one.job).map(str::to_owned)))
        .collect();
    let off = (JobState::Cancelled, Some("f".to_owned()));
    assert_eq!(states, [off.clone(), off, (JobState::Ready, Some("g".to_owned()))]);
    assert_eq!(b.job("next").await.error, None, "as one that is cancelled by hand");
    assert_eq!(b.members("f").await, [0, 1, 0, 8]);
    b.ends("w", "waits", succeeded).await;
    // After that the name can be used again.
    assert_eq!(b.push(of("q", "new")).await.job.state, JobState::Ready);
    assert_eq!(b.members("f").await, [1, 1, 0, 8]);
}

pub(crate) async fn a_cancel_of_a_finished_flow_changes_nothing(b: &mut Bench) {
    b.push(job("q").id("a").in_flow("f")).await;
    b.ends("q", "a", succeeded).await;
    let before = b.flow("f").await;
    assert_eq!(b.cancel_flow("f").await, before);
    b.push(job("q").id("b").in_flow("f")).await;
    b.is("b", JobState::Ready).await;
    b.cancel_flow("f").await;
    assert_eq!(b.cancel_flow("f").await.state, FlowState::Finished);
    assert_eq!(b.members("f").await, [0, 1, 0, 1]);
}

pub(crate) async fn a_member_that_was_asked_to_stop_may_still_succeed(b: &mut Bench) {
    b.push(job("q").id("a").in_flow("f")).await;
    let lease = b.take("q").await;
    b.cancel_flow("f").await;
    // Others may push into the flow; the member that was asked to stop may not.
    b.push(job("q").id("b").in_flow("f")).await;
    b.is("b", JobState::Ready).await;
    let settled = b.settle(succeeded(&lease).pushing(job("q").id("c"))).await;
    assert_eq!(settled.state, Some(JobState::Succeeded));
    b.is("c", JobState::Cancelled).await;
    assert_eq!(b.members("f").await, [1, 1, 0, 1]);
}

pub(crate) async fn a_large_flow_is_called_off_in_portions(b: &mut Bench) {
    const ALL: usize = 1_000;
    let of = |n: usize| {
        let job = job("q").id(&format!("j{n}")).in_flow("f");
        // Every tenth waits for the one before.
        if n % 10 == 9 { job.after([format!("j{}", n - 1)]).run_anyway() } else { job }
    };
    b.ok(briefly((0..ALL).map(of).collect())).await;
    b.push(job("w").id("w").after_flow("f").run_anyway()).await;
    let runs = b.take_all("q", 3).await;
    let view = b.cancel_flow("f").await;
    assert!(view.cancelling && view.counts.unfinished > 3, "{view:?}");
    b.told().await;
    let view = b.flow("f").await;
    assert_eq!((counts_of(&view), view.cancelling), ([3, 0, 0, ALL as u64 - 3], false));
    assert_eq!(b.push(job("q").id("late").in_flow("f")).await.job.state, JobState::Ready);
    b.ends("q", "late", succeeded).await;
    for lease in &runs {
        b.settle(released(lease)).await;
    }
    b.take_job("w", "w").await;
}

pub(crate) async fn what_is_pushed_into_a_flow_while_it_is_called_off_is_cancelled(b: &mut Bench) {
    const ALL: usize = 4_000;
    for round in 0..5 {
        let name = format!("f{round}");
        for part in 0..ALL / 1_000 {
            let of = |n: usize| job("q").id(&format!("{name}-{part}-{n}")).in_flow(&name);
            b.ok(briefly((0..1_000).map(of).collect())).await;
        }
        b.cancel_flow(&name).await;
        let pushed = b.push(job("late").id(&name).in_flow(&name)).await.job;
        let child = b.push(job("late").after([&name])).await.job;
        b.told().await;
        assert_eq!(b.queue("q").await.counts.ready, 0, "all are cancelled");
        // The engine goes on by itself: the push may come too late to meet the cancel.
        if pushed.state == JobState::Cancelled {
            assert_eq!((pushed.error, child.state), (None, JobState::Cancelled));
            assert_eq!(b.members(&name).await, [0, 0, 0, ALL as u64 + 2]);
            return;
        }
        assert_eq!(pushed.state, JobState::Ready);
        b.cancel(&name).await;
    }
    panic!("no flow was seen while it was being cancelled");
}

pub(crate) async fn who_waits_for_a_flow_gets_it_when_it_is_finished(b: &mut Bench) {
    b.push_all(vec![job("q").id("a").in_flow("f").retain(s(0)), job("q").id("b").in_flow("f")])
        .await;
    let waiting = b.awaits_flow("f", s(60)).await;
    b.ends("q", "a", succeeded).await;
    let lease = b.take("q").await;
    b.settle(failed_until(&lease, s(5)).pushing(job("q").id("c").retain(s(0)))).await;
    b.pass(s(6)).await;
    assert!(!waiting.is_answered());
    b.ok(DeleteJob { job: job_ref("b") }).await;
    assert!(!waiting.is_answered());
    // Its last member is forgotten at its end, and the waiting caller sees how it ended.
    b.ends("q", "c", succeeded).await;
    let view = *waiting.answer().await;
    assert_eq!((view.flow, view.state), (flow("f"), FlowState::Finished));
    assert_eq!((view.counts.unfinished, view.counts.succeeded), (0, 2));
    b.result_waiters(0).await;
    b.told().await;
    b.no_flow("f").await;
}

pub(crate) async fn a_wait_for_a_flow_that_is_over_shows_it_as_it_is(b: &mut Bench) {
    b.push(job("q").id("a").in_flow("f")).await;
    let waiting = b.awaits_flow("f", s(10)).await;
    b.pass(ms(9_900)).await;
    assert!(!waiting.is_answered());
    b.pass(ms(200)).await;
    let view = *waiting.answer().await;
    assert_eq!((view.state, counts_of(&view)), (FlowState::Open, [1, 0, 0, 0]));
    b.result_waiters(0).await;
    b.ends("q", "a", succeeded).await;
    let view = *b.ok(GetFlow { flow: flow("f"), wait: s(60) }).await;
    assert_eq!(view.state, FlowState::Finished, "a finished flow is shown at once");
}

/// The wait is over, the parent's run times out and the flow ends, all at one move of the clock.
pub(crate) async fn a_wait_for_a_flow_that_is_over_sees_what_ended_by_then(b: &mut Bench) {
    let once = retry(1, 3, fixed(s(1)));
    let parent = job("q").id("parent").timeout(ms(500)).retry(once);
    b.push_all(vec![parent, job("q").id("child").after(["parent"]).in_flow("f")]).await;
    let flow = b.awaits_flow("f", ms(300)).await;
    let child = b.awaits("child", ms(300)).await;
    b.take("q").await;
    b.pass(ms(600)).await;
    let view = *flow.answer().await;
    assert_eq!((view.state, counts_of(&view)), (FlowState::Finished, [0, 0, 0, 1]));
    assert_eq!(child.answer().await.state, JobState::Cancelled);
    b.result_waiters(0).await;
}

pub(crate) async fn a_cancelled_flow_answers_those_who_wait_for_it(b: &mut Bench) {
    b.push_all(jobs("q", "j", 600).into_iter().map(|job| job.in_flow("f")).collect()).await;
    let waiting = b.awaits_flow("f", s(60)).await;
    let gone = b.awaits_flow("f", s(60)).await;
    gone.hang_up().await;
    b.result_waiters(1).await;
    b.cancel_flow("f").await;
    b.told().await;
    assert_eq!(counts_of(&*waiting.answer().await), [0, 0, 0, 600]);
}

pub(crate) async fn a_draining_engine_answers_those_who_wait_for_a_flow(b: &mut Bench) {
    b.push(job("q").id("a").in_flow("f")).await;
    let waiting = b.awaits_flow("f", s(60)).await;
    b.engine().drain();
    assert_eq!(waiting.answer().await.state, FlowState::Open);
    let view = *b.ok(GetFlow { flow: flow("f"), wait: s(60) }).await;
    assert_eq!(view.state, FlowState::Open);
}
