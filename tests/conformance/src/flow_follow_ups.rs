//! Follow-ups of a settle: they may wait for the job that pushes them and for each other, and stay in its flow.

use tenure_core::flow::FlowState;
use tenure_core::job::JobState;
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

pub(crate) async fn a_follow_up_may_wait_for_the_job_that_pushes_it(b: &mut Bench) {
    b.push(job("p").id("a").retain(s(0))).await;
    let lease = b.take("p").await;
    let item = succeeded(&lease)
        .pushing(job("q").id("c").after(["a"]))
        .pushing(job("q").id("d").after(["a", "c"]));
    let next = Some(Box::new(b.ask("q").max(10).request("r")));
    let answer = b.ok(Settle { settle: vec![item], lease: next }).await;
    let pushed = &answer.settled[0].pushed;
    let ids: Vec<_> = pushed.iter().map(|one| one.job.id.as_str()).collect();
    assert_eq!(ids, ["c", "d"]);
    assert_eq!(after_of(&pushed[1].job), ["a", "c"]);
    let leased = answer.lease.expect("a lease call was made").expect("it is not refused");
    assert_eq!(jobs_of(&leased.leases), ["c"], "in the same step");
    b.told().await;
    assert_eq!(b.parents("d").await, [("a".to_owned(), "succeeded"), ("c".to_owned(), "running")]);
    b.settle(succeeded(&leased.leases[0])).await;
    b.ends("q", "d", succeeded).await;
    b.told().await;
    b.no_job("a").await;
}

pub(crate) async fn a_follow_up_waits_for_the_last_attempt_of_its_job(b: &mut Bench) {
    b.push(job("p").id("a").retry(retry(2, 3, fixed(s(1))))).await;
    let lease = b.take("p").await;
    b.settle(failed(&lease).pushing(job("q").id("c").after(["a"]))).await;
    b.is("c", JobState::Dependent).await;
    b.pass(s(2)).await;
    let lease = b.take("p").await;
    let item = failed(&lease)
        .pushing(job("q").id("d").after(["a"]))
        .pushing(job("q").id("e").after(["a"]).run_anyway());
    assert_eq!(b.settle(item).await.state, Some(JobState::Failed));
    for id in ["c", "d"] {
        let view = b.is(id, JobState::Cancelled).await;
        assert_eq!(view.error.as_deref(), Some(PARENT_FAILED), "{id}");
    }
    b.take_job("q", "e").await;
}

pub(crate) async fn follow_ups_may_name_each_other(b: &mut Bench) {
    b.push(job("p").id("a")).await;
    b.push(job("p").id("other")).await;
    let lease = b.take_job("p", "a").await;
    let item = succeeded(&lease)
        .pushing(job("q").id("last").after_item("load").after(["other"]))
        .pushing(job("q").id("load").called("load"));
    let settled = b.settle(item).await;
    assert_eq!(after_of(&settled.pushed[0].job), ["load", "other"]);
    b.ends("q", "load", succeeded).await;
    b.none("q").await;
    b.ends("p", "other", succeeded).await;
    b.take_job("q", "last").await;
}

pub(crate) async fn follow_ups_around_the_end_of_their_job_are_one_call(b: &mut Bench) {
    b.push(job("p").id("a").retain(s(0))).await;
    let lease = b.take("p").await;
    // The id of the settled job is only free after its end; the job that waits for it is pushed then, and is a
    // duplicate of one that was stored before.
    let item = succeeded(&lease)
        .pushing(job("q").id("a"))
        .pushing(job("q").id("b"))
        .pushing(job("q").id("b").after(["a", "b"]));
    let settled = b.settle(item).await;
    let pushed = settled.pushed.iter().map(|one| (one.job.id.as_str(), one.duplicate));
    assert_eq!(pushed.collect::<Vec<_>>(), [("a", false), ("b", false), ("b", true)]);
    let view = b.is("b", JobState::Ready).await;
    assert_eq!(waits_of(&view), (0, 0));
    assert_eq!(jobs_of(&b.take_all("q", 5).await), ["b", "a"]);
}

pub(crate) async fn a_follow_up_with_a_bad_parent_refuses_the_settle(b: &mut Bench) {
    b.push(job("p").id("a").in_flow("f")).await;
    let lease = b.take("p").await;
    let fine = || succeeded(&lease).pushing(job("q").id("fine").called("x").after(["a"]));
    let of = |id: &str| job("q").id(id);
    for (code, place, item) in [
        (Code::UnknownParent, "/push/1/after/0", fine().pushing(of("c").after(["nobody"]))),
        (
            Code::UnknownParent,
            "/push/1/after/1",
            fine().pushing(of("c").after_item("x").after_item("y")),
        ),
        (Code::UnknownParent, "/push/1/after/0", fine().pushing(of("c").after_flow("nobody"))),
        (Code::InvalidField, "/push/1/ref", fine().pushing(of("c").called("x"))),
        (Code::Cycle, "/push/1/after", fine().pushing(of("c").after(["c"]))),
        (Code::Cycle, "/push/1/flow", fine().pushing(of("c").after_flow("f").in_flow("f2"))),
    ] {
        let no = b.refused(code, Settle::of(vec![item])).await;
        assert!(no.pointer.as_deref().is_some_and(|at| at.ends_with(place)), "{place}: {no}");
        for id in ["fine", "c"] {
            b.no_job(id).await;
        }
        b.lives(&lease).await;
    }
    assert_eq!(b.members("f").await, [1, 0, 0, 0]);
    assert!(b.children("a").await.is_empty());
    b.settle(fine()).await;
    b.is("fine", JobState::Ready).await;
}

pub(crate) async fn what_a_call_alone_tells_is_refused_whatever_became_of_the_lease(b: &mut Bench) {
    b.push_all(jobs("p", "a", 3)).await;
    let leases = b.take_all("p", 3).await;
    let [ended, lost, live] = &leases[..] else { panic!("{leases:?}") };
    b.settle(succeeded(ended)).await;
    b.ok(ForceLease { lease: id_of(lost) }).await;
    let of = |id: &str| job("q").id(id);
    for lease in [ended, lost] {
        for (code, place, item) in [
            (
                Code::Cycle,
                "/settle/1/push/0/after",
                succeeded(lease).pushing(of("c").after(["d"])).pushing(of("d").after(["c"])),
            ),
            (
                Code::UnknownParent,
                "/settle/1/push/1/after/0",
                succeeded(lease).pushing(of("c")).pushing(of("d").after_item("x")),
            ),
            (
                Code::InvalidField,
                "/settle/1/push/1/ref",
                succeeded(lease).pushing(of("c").called("x")).pushing(of("d").called("x")),
            ),
        ] {
            let no = b.refused(code, Settle::of(vec![succeeded(live), item])).await;
            assert_eq!((no.index, no.pointer.as_deref()), (Some(1), Some(place)), "{no}");
            b.lives(live).await;
        }
    }
    // For a lost lease, the existence of a parent is not checked.
    let item = succeeded(lost).pushing(of("c").after(["nobody"]));
    let settled = b.ok(Settle::of(vec![succeeded(live), item])).await.settled;
    let codes: Vec<_> = settled.iter().map(|one| (one.ok, one.code)).collect();
    assert_eq!(codes, [(true, None), (false, Some(Code::LeaseLost))]);
    for id in ["c", "d"] {
        b.no_job(id).await;
    }
}

pub(crate) async fn a_follow_up_belongs_to_the_flow_of_the_job_that_pushes_it(b: &mut Bench) {
    b.push_all(vec![job("p").id("a").in_flow("f"), job("x").id("g").in_flow("g")]).await;
    b.push(job("w").id("w").after_flow("f")).await;
    let lease = b.take_job("p", "a").await;
    let item = succeeded(&lease)
        .pushing(job("q").id("own"))
        .pushing(job("q").id("child").after(["a"]))
        .pushing(job("q").id("other").after(["g"]))
        .pushing(job("q").id("stated").in_flow("h"))
        .pushing(job("q").id("plain").after(["own", "g"]));
    let settled = b.settle(item).await;
    let flows: Vec<_> = settled.pushed.iter().map(|one| flow_of(&one.job)).collect();
    assert_eq!(flows, [Some("f"), Some("f"), Some("g"), Some("h"), Some("f")]);
    // It does not look finished in between.
    let view = b.flow("f").await;
    assert_eq!((view.state, view.finished_at), (FlowState::Open, None));
    assert_eq!(counts_of(&view), [3, 1, 0, 0]);
    b.is("w", JobState::Dependent).await;
    b.ends("x", "g", succeeded).await;
    for id in ["own", "stated", "child", "other", "plain"] {
        b.is("w", JobState::Dependent).await;
        b.ends("q", id, succeeded).await;
    }
    b.take_job("w", "w").await;
}

pub(crate) async fn a_flow_that_goes_on_by_follow_ups_is_finished_with_the_last(b: &mut Bench) {
    b.push_all(vec![job("q").id("0").in_flow("f").retain(s(0)), job("w").id("w").after_flow("f")])
        .await;
    for n in 1..=5 {
        let lease = b.take("q").await;
        assert_eq!(job_of(&lease), (n - 1).to_string());
        b.settle(succeeded(&lease).pushing(job("q").id(&n.to_string()).retain(s(0)))).await;
        b.told().await;
        assert_eq!(b.flow("f").await.finished_at, None);
        b.is("w", JobState::Dependent).await;
    }
    b.ends("q", "5", succeeded).await;
    b.take_job("w", "w").await;
}

pub(crate) async fn follow_ups_of_a_job_above_a_flow_belong_to_none(b: &mut Bench) {
    b.push_all(vec![job("p").id("m").in_flow("f"), job("q").id("w").after_flow("f")]).await;
    b.ends("p", "m", succeeded).await;
    let lease = b.take_job("q", "w").await;
    // It waits for the job that pushes it, which is unfinished then and above a flow.
    let bad = succeeded(&lease).pushing(job("r").id("c").after(["w"]).in_flow("g"));
    b.refused(Code::Cycle, Settle::of(vec![bad])).await;
    let item = succeeded(&lease)
        .pushing(job("r").id("c").after(["w"]))
        .pushing(job("r").id("d").in_flow("g"))
        .pushing(job("r").id("e"));
    let settled = b.settle(item).await;
    let flows: Vec<_> = settled.pushed.iter().map(|one| flow_of(&one.job)).collect();
    assert_eq!(flows, [None, Some("g"), None]);
}
