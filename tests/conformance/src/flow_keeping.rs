//! The cost of jobs that wait: room in their queue, a key, their parents' rows and results.

use tenure_core::job::{JobState, OnConflict, When};
use tenure_core::lease::Ending;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::secret::Json;
use tenure_core::settings::QueueSettings;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::words::*;

pub(crate) async fn a_parent_is_kept_while_a_child_that_names_it_is_unfinished(b: &mut Bench) {
    b.push(job("p").id("a").retain(s(0))).await;
    b.push(job("p").id("b").retain(s(10))).await;
    b.push(job("q").id("c").after(["a", "b"]).retain(s(0))).await;
    b.push(job("r").id("d").after(["c"])).await;
    b.ends("p", "a", succeeded).await;
    b.pass(s(60)).await;
    b.is("a", JobState::Succeeded).await;
    b.ends("p", "b", succeeded).await;
    b.pass(s(5)).await;
    let lease = b.granted(b.ask("q").ttl(hours(1))).await;
    b.pass(s(60)).await;
    for id in ["a", "b"] {
        b.is(id, JobState::Succeeded).await;
    }
    b.settle(snoozed(&lease, s(1))).await;
    b.pass(s(2)).await;
    b.is("a", JobState::Succeeded).await;
    b.ends("q", "c", succeeded).await;
    b.told().await;
    for id in ["a", "b"] {
        b.no_job(id).await;
    }
    b.is("c", JobState::Succeeded).await;
    assert_eq!(b.parents("c").await, [("a".to_owned(), "gone"), ("b".to_owned(), "gone")]);
    b.ends("r", "d", succeeded).await;
    b.told().await;
    b.no_job("c").await;
}

pub(crate) async fn a_parent_that_was_kept_goes_when_its_own_time_is_over(b: &mut Bench) {
    b.push(job("p").id("a").retain(s(10))).await;
    b.push(job("q").id("c").after(["a"])).await;
    b.push(job("q").id("x").after(["a"])).await;
    b.ends("p", "a", succeeded).await;
    b.pass(s(4)).await;
    b.ends("q", "c", succeeded).await;
    b.cancel("x").await;
    b.pass(s(5)).await;
    b.is("a", JobState::Succeeded).await;
    b.pass(s(2)).await;
    b.no_job("a").await;
    b.is("c", JobState::Succeeded).await;
}

pub(crate) async fn a_parent_that_ended_beside_others_is_kept_and_goes_when_they_go(b: &mut Bench) {
    for many in [3, 12] {
        let jobs = (0..many).map(|n| job("p").id(&format!("{many}-{n}")).retain(s(60)));
        b.push_all(jobs.collect()).await;
        let leases = b.take_all("p", many).await;
        b.ok(Settle::of(leases.iter().map(succeeded).collect())).await;
        // Two are named as parents after they have ended; one of them is let go at once.
        let [first, second, third] = [0, 1, 2].map(|n| format!("{many}-{n}"));
        b.push(job("q").id("x").after([first.as_str()]).retain(s(0))).await;
        b.push(job("r").id("y").after([second.as_str()]).retain(s(0))).await;
        b.ends("q", "x", succeeded).await;
        b.told().await;
        let audit = b.ok(Audit::default()).await;
        assert!(audit.ok, "{:?}", audit.faults);
        b.pass(s(61)).await;
        b.no_job(&first).await;
        b.no_job(&third).await;
        b.is(&second, JobState::Succeeded).await;
        b.ends("r", "y", succeeded).await;
        b.told().await;
        b.no_job(&second).await;
    }
}

pub(crate) async fn a_child_lets_its_parents_go_however_it_ends(b: &mut Bench) {
    let ends = ["failed", "cancelled", "expired", "deleted", "parent"];
    for id in ends {
        b.push(job(id).id(id).retain(s(0))).await;
        b.push(job("bad").id(&format!("{id}-bad"))).await;
        let child = job("q").id(&format!("{id}-c")).after([id, &format!("{id}-bad")]);
        let child = if id == "expired" { child.expires(b.now().plus(s(5))) } else { child };
        b.push(child).await;
    }
    for id in ends {
        b.ends(id, id, succeeded).await;
    }
    b.told().await;
    for id in ends {
        b.is(id, JobState::Succeeded).await;
    }
    let bad = b.take_all("bad", 9).await;
    b.settle(succeeded(&bad[0])).await;
    b.ends("q", "failed-c", failed_for_good).await;
    b.cancel("cancelled-c").await;
    b.ok(DeleteJob { job: job_ref("deleted-c") }).await;
    b.settle(failed_for_good(&bad[4])).await;
    b.is("parent-c", JobState::Cancelled).await;
    b.pass(s(6)).await;
    b.is("expired-c", JobState::Cancelled).await;
    for id in ends {
        b.no_job(id).await;
    }
}

pub(crate) async fn a_parents_result_is_there_when_its_child_runs(b: &mut Bench) {
    b.push(job("p").id("a").retain(s(0))).await;
    b.push(job("p").id("b").retain(s(0))).await;
    b.push(job("q").id("c").after(["a", "b"]).run_anyway()).await;
    let leases = b.take_all("p", 2).await;
    b.settle(ending(&leases[0], Ending::Succeeded { result: Some(json(r#"{"n":1}"#)) })).await;
    b.settle(failed_for_good(&leases[1])).await;
    b.pass(s(60)).await;
    b.take_job("q", "c").await;
    let list = |full| ListParents { job: job_ref("c"), full, page: Page::default() };
    let parents = b.ok(list(true)).await.items;
    let tenure_core::flow::ParentView::Job(first) = &parents[0] else { panic!("{parents:?}") };
    let tenure_core::flow::ParentView::Job(second) = &parents[1] else { panic!("{parents:?}") };
    assert_eq!((first.id.as_str(), first.state.as_str()), ("a", "succeeded"));
    assert_eq!(first.result.as_ref().map(Json::text), Some(r#"{"n":1}"#));
    assert!(first.finished_at.is_some() && first.error.is_none());
    assert_eq!((second.id.as_str(), second.state.as_str()), ("b", "failed"));
    assert_eq!(second.error.as_deref(), Some("it broke"));
    assert!(second.result.as_ref().is_none_or(Json::is_null), "{second:?}");
    let brief = b.ok(list(false)).await.items;
    let tenure_core::flow::ParentView::Job(first) = &brief[0] else { panic!("{brief:?}") };
    assert_eq!(first.result, None, "results are long, and come when they are asked for");
    let view = *b.ok(GetResult { job: job_ref("a"), wait: s(0), seen: None }).await;
    assert_eq!(view.result.as_ref().map(Json::text), Some(r#"{"n":1}"#));
}

pub(crate) async fn a_job_that_others_wait_for_is_not_deleted(b: &mut Bench) {
    b.push(job("p").id("a")).await;
    b.push_all(vec![job("q").id("c").after(["a"]), job("q").id("d").after(["a"])]).await;
    let delete = |id: &str| DeleteJob { job: job_ref(id) };
    let of_queue = |name: &str| DeleteJobs {
        filter: JobFilter { queue: Some(queue(name)), ..JobFilter::default() },
        max: 100,
        cursor: None,
    };
    let no = b.refused(Code::InUse, delete("a")).await;
    assert_eq!(no.job.as_deref(), Some("c"), "it names one of them");
    assert_eq!(b.ok(of_queue("p")).await, DoneMany::all(0));
    b.ends("p", "a", succeeded).await;
    b.refused(Code::InUse, delete("a")).await;
    b.ends("q", "c", succeeded).await;
    let no = b.refused(Code::InUse, delete("a")).await;
    assert_eq!(no.job.as_deref(), Some("d"), "the other has ended");
    assert_eq!(b.ok(of_queue("p")).await, DoneMany::all(0));
    let lease = b.take_job("q", "d").await;
    b.refused(Code::InUse, delete("a")).await;
    b.settle(failed_for_good(&lease)).await;
    b.ok(delete("a")).await;
    b.no_job("a").await;
    // A child that is deleted waits for nobody, and its parent is free.
    b.push(job("p").id("a2")).await;
    b.push(job("q").id("c2").after(["a2"])).await;
    b.push(job("q").id("g2").after(["c2"])).await;
    let no = b.refused(Code::InUse, delete("c2")).await;
    assert_eq!(no.job.as_deref(), Some("g2"));
    b.ok(delete("g2")).await;
    b.ok(delete("c2")).await;
    b.no_job("c2").await;
    assert_eq!(b.ok(of_queue("p")).await, DoneMany::all(1));
    b.no_job("a2").await;
    assert_eq!(b.queue("q").await.counts.dependent, 0);
}

pub(crate) async fn dependent_jobs_are_counted_and_fill_their_queue(b: &mut Bench) {
    b.set_queue("q", QueueSettings { max_waiting: Some(3), ..QueueSettings::default() }).await;
    b.push_all(jobs("p", "a", 2)).await;
    b.ends("p", "a0", failed_for_good).await;
    let child = |id: &str, of: &str| job("q").id(id).after([of]);
    // A job that is cancelled at its push takes no room.
    b.push_all((0..5).map(|n| child(&format!("off{n}"), "a0")).collect()).await;
    b.push_all(vec![child("c", "a1"), child("d", "a1"), job("q").id("e")]).await;
    let counts = b.queue("q").await.counts;
    assert_eq!((counts.dependent, counts.ready, counts.scheduled), (2, 1, 0));
    let stats = b.ok(GetStats).await;
    assert_eq!(stats.jobs.get(&JobState::Dependent), Some(&2));
    assert_eq!(stats.queues[&queue("q")].get(&JobState::Dependent), Some(&2));
    b.no_push(Code::QueueFull, child("more", "a1")).await;
    b.no_push(Code::QueueFull, job("q").id("more")).await;
    b.push(child("off5", "a0")).await;
    b.cancel("d").await;
    b.push(child("more", "a1")).await;
    b.refused(Code::NotEmpty, DeleteQueue { queue: queue("q") }).await;
    b.ends("p", "a1", succeeded).await;
    let counts = b.queue("q").await.counts;
    assert_eq!((counts.dependent, counts.ready), (0, 3));
    b.no_push(Code::QueueFull, job("q").id("yet more")).await;
}

pub(crate) async fn a_queue_of_dependent_jobs_alone_is_kept(b: &mut Bench) {
    b.push_all(vec![job("p").id("a"), job("q").id("c").after(["a"])]).await;
    b.refused(Code::NotEmpty, DeleteQueue { queue: queue("q") }).await;
    // A queue that nobody needs is forgotten in a day.
    b.leap(hours(26)).await;
    b.leap(hours(26)).await;
    assert_eq!(b.queue("q").await.counts.dependent, 1);
    b.ends("p", "a", succeeded).await;
    b.take_job("q", "c").await;
}

pub(crate) async fn the_oldest_ready_job_is_not_one_that_waits(b: &mut Bench) {
    b.push_all(vec![job("p").id("a"), job("q").id("c").after(["a"])]).await;
    assert_eq!(b.queue("q").await.oldest_ready_at, None);
    b.pass(s(5)).await;
    b.ends("p", "a", succeeded).await;
    assert_eq!(b.queue("q").await.oldest_ready_at, Some(b.now()));
}

pub(crate) async fn a_dependent_job_expires(b: &mut Bench) {
    b.push(job("p").id("a")).await;
    b.push(job("q").id("c").after(["a"]).expires(b.now().plus(s(5)))).await;
    b.push(job("q").id("d").after(["c"])).await;
    b.pass(ms(4_900)).await;
    b.is("c", JobState::Dependent).await;
    b.pass(ms(200)).await;
    assert_eq!(b.is("c", JobState::Cancelled).await.error.as_deref(), Some("expired"));
    assert_eq!(b.is("d", JobState::Cancelled).await.error.as_deref(), Some(PARENT_FAILED));
    b.ends("p", "a", succeeded).await;
    b.told().await;
    b.none("q").await;
}

pub(crate) async fn a_dependent_job_holds_its_key(b: &mut Bench) {
    let keyed = |id: &str| job("q").id(id).unique(unique("k", OnConflict::Keep));
    b.push(job("p").id("a")).await;
    b.push(keyed("c").after(["a"])).await;
    let pushed = b.push(keyed("d")).await;
    assert_eq!((pushed.job.id.as_str(), pushed.duplicate), ("c", true));
    b.ends("p", "a", failed_for_good).await;
    assert!(!b.push(keyed("d")).await.duplicate, "it was cancelled");
}

pub(crate) async fn a_dependent_job_is_not_run_now(b: &mut Bench) {
    b.push_all(vec![job("p").id("a"), job("q").id("c").after(["a"])]).await;
    b.refused(Code::WrongState, RunJobNow { job: job_ref("c") }).await;
    b.is("c", JobState::Dependent).await;
    b.none("q").await;
}

pub(crate) async fn a_dependent_job_is_changed_and_waits_on(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    b.push_all(vec![job("p").id("a"), job("q").id("c").after(["a"])]).await;
    b.push_all(vec![job("q").id("first"), job("q").id("d").after(["a"]).delay(s(60))]).await;
    let mut patch = PatchJob::new(job_ref("c"));
    patch.payload = Patch::Set(json("2"));
    patch.priority = Patch::Set(5);
    patch.needs = Patch::Set(vec![need("l")]);
    let view = *b.ok(patch).await;
    assert_eq!((view.state, waits_of(&view)), (JobState::Dependent, (1, 1)));
    let mut later = PatchJob::new(job_ref("c"));
    later.when = Patch::Set(When::In(s(10)));
    let view = *b.ok(later).await;
    assert_eq!((view.state, view.run_at), (JobState::Dependent, b.now().plus(s(10))));
    let mut now = PatchJob::new(job_ref("d"));
    now.when = Patch::Reset;
    assert_eq!(b.ok(now).await.state, JobState::Dependent);
    b.ends("p", "a", succeeded).await;
    b.is("c", JobState::Scheduled).await;
    b.is("d", JobState::Ready).await;
    b.pass(s(11)).await;
    let lease = b.take_job("q", "c").await;
    assert_eq!(lease.job.expect("a job").payload, Some(json("2")));
    b.in_use("l", 1).await;
}
