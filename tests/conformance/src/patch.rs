//! Changing a job that waits.

use tenure_core::job::{JobState, OnConflict, When};
use tenure_core::refusal::Code;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

pub(crate) fn patch(id: &str) -> PatchJob {
    PatchJob::new(job_ref(id))
}

pub(crate) async fn a_patch_changes_what_it_names(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push(job("q").id("a").payload("1").priority(1).group("g").label("k", "v").kind("x")).await;
    let until = b.now().plus(hours(1));
    let said = PatchJob {
        priority: Patch::Set(7),
        payload: Patch::Set(json("2")),
        needs: Patch::Set(vec![need("l")]),
        timeout: Patch::Set(s(9)),
        expires_at: Patch::Set(until),
        ..patch("a")
    };
    b.ok(said).await;
    let view = b.is("a", JobState::Ready).await;
    assert_eq!((view.priority, view.payload), (7, Some(json("2"))));
    assert_eq!((view.needs, view.timeout), (vec![need("l")], Some(s(9))));
    assert_eq!((view.expires_at, view.kind.as_str()), (Some(until), "x"));
    assert_eq!(view.group, Some(group("g")), "what is not named stays");
    assert_eq!(view.labels.get("k").map(String::as_str), Some("v"));
    let lease = b.take("q").await;
    assert_eq!(lease.limits, [limit("l")]);
    assert_eq!(lease.deadline, Some(b.now().plus(s(9))));
}

pub(crate) async fn null_in_a_patch_is_the_default(b: &mut Bench) {
    let until = b.now().plus(hours(1));
    b.push(job("q").id("a").payload("1").priority(9).group("g").label("k", "v").expires(until))
        .await;
    let said = PatchJob {
        priority: Patch::Reset,
        payload: Patch::Reset,
        group: Patch::Reset,
        labels: Patch::Reset,
        expires_at: Patch::Reset,
        ..patch("a")
    };
    b.ok(said).await;
    let view = b.job("a").await;
    assert_eq!((view.priority, view.group, view.expires_at), (0, None, None));
    assert!(view.labels.is_empty() && view.payload.is_none_or(|payload| payload.is_null()));
}

pub(crate) async fn a_job_is_rescheduled(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let later = PatchJob { when: Patch::Set(When::In(s(60))), ..patch("a") };
    let view = b.ok(later).await;
    assert_eq!((view.state, view.run_at), (JobState::Scheduled, b.now().plus(s(60))));
    b.none("q").await;
    let sooner = PatchJob { when: Patch::Set(When::At(b.now().plus(s(5)))), ..patch("a") };
    assert_eq!(b.ok(sooner).await.run_at, b.now().plus(s(5)));
    b.pass(s(6)).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn a_job_rescheduled_to_now_is_ready(b: &mut Bench) {
    b.push(job("q").id("a").delay(hours(1))).await;
    let now = PatchJob { when: Patch::Set(When::Now), ..patch("a") };
    assert_eq!(b.ok(now).await.state, JobState::Ready);
    b.take_job("q", "a").await;
}

pub(crate) async fn a_new_priority_changes_the_order(b: &mut Bench) {
    b.push_all(jobs("q", "j", 3)).await;
    b.ok(PatchJob { priority: Patch::Set(1), ..patch("j2") }).await;
    b.ok(PatchJob { priority: Patch::Set(-1), ..patch("j0") }).await;
    let taken = b.take_all("q", 3).await;
    assert_eq!(jobs_of(&taken), ["j2", "j1", "j0"]);
}

pub(crate) async fn new_needs_free_a_blocked_job_and_its_line(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    b.hold([need("l")]).await;
    b.push(job("q").id("heavy").needs([weighing("l", 2)])).await;
    b.push(job("q").id("light").needs([need("l")])).await;
    b.none("q").await;
    b.ok(PatchJob { needs: Patch::Set(vec![]), ..patch("heavy") }).await;
    let taken = b.take_all("q", 5).await;
    let mut ids = jobs_of(&taken);
    ids.sort_unstable();
    assert_eq!(ids, ["heavy", "light"], "it goes, and who stood behind it goes");
}

pub(crate) async fn a_patch_is_checked_like_a_push(b: &mut Bench) {
    b.set_limit("two", cap(2)).await;
    b.push(job("q").id("a").priority(1)).await;
    let table = [
        (need("nowhere"), Code::UnknownLimit),
        (any_of("nowhere"), Code::UnknownPool),
        (weighing("two", 3), Code::NeverFits),
    ];
    for (bad, code) in table {
        let said =
            PatchJob { needs: Patch::Set(vec![bad]), priority: Patch::Set(50), ..patch("a") };
        b.refused(code, said).await;
    }
    let view = b.job("a").await;
    assert!(view.needs.is_empty() && view.priority == 1, "a refused call changed nothing");
}

pub(crate) async fn a_job_that_runs_or_is_finished_cannot_be_changed(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let leases = b.take_all("q", 2).await;
    b.settle(succeeded(&leases[0])).await;
    for id in ["j0", "j1"] {
        b.refused(Code::WrongState, PatchJob { priority: Patch::Set(5), ..patch(id) }).await;
        assert_eq!(b.job(id).await.priority, 0);
    }
    b.refused(Code::JobNotFound, patch("nobody")).await;
}

pub(crate) async fn a_job_is_changed_by_its_key(b: &mut Bench) {
    b.push(job("q").id("a").unique(unique("k", OnConflict::Keep))).await;
    let said = PatchJob { priority: Patch::Set(5), ..patch("key:k") };
    assert_eq!(b.ok(said).await.id.as_str(), "a");
    assert_eq!(b.job("a").await.priority, 5);
}
