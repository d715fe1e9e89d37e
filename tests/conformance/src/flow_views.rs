//! Views of jobs that wait for others: explained, their parents and children in pages, found by their flow.

use tenure_core::bounds::{LIST_MAX, PAGE_BYTES_MAX, PAYLOAD_BYTES_MAX};
use tenure_core::flow::{OnParentFailure, ParentState, ParentView};
use tenure_core::job::{JobState, JobView};
use tenure_core::lease::{Ending, Reason, ReasonKind};
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::calls::flows::*;
use crate::calls::schedules::every;
use crate::words::*;

/// Most parents that are named when a job is explained.
const NAMED: usize = 20;

/// The parents for which the job waits, as it is explained.
async fn waits_for_parents(b: &Bench, id: &str) -> Vec<Reason> {
    let explained = b.explain(id).await;
    assert_eq!(explained.state, JobState::Dependent);
    assert!(!explained.summary.is_empty());
    let reasons = explained.reasons.into_iter();
    reasons.filter(|reason| reason.kind == ReasonKind::WaitingOn).collect()
}

pub(crate) async fn a_dependent_job_is_explained_by_its_parents(b: &mut Bench) {
    b.push_all(jobs("p", "a", 25)).await;
    b.push(job("m").id("m").in_flow("f")).await;
    let ids: Vec<String> = (0..25).map(|n| format!("a{n}")).collect();
    b.push(job("q").id("c").after(&ids)).await;
    b.push(job("q").id("few").after(["a24"]).after_flow("f").after(["none"]).or_gone()).await;
    let reasons = waits_for_parents(b, "c").await;
    assert_eq!(reasons.len(), NAMED);
    for reason in &reasons {
        assert_eq!((reason.in_use, reason.capacity), (Some(0), Some(25)));
        assert!(reason.name.as_ref().is_some_and(|name| ids.contains(name)), "{reason:?}");
        assert!(!reason.detail.is_empty());
    }
    let leases = b.take_all("p", 24).await;
    b.ok(Settle::of(leases.iter().map(succeeded).collect())).await;
    let reasons = waits_for_parents(b, "c").await;
    assert_eq!(reasons.len(), 1, "those that are done are not named");
    assert_eq!(reasons[0].name.as_deref(), Some("a24"));
    assert_eq!((reasons[0].in_use, reasons[0].capacity), (Some(24), Some(25)));
    let mut reasons = waits_for_parents(b, "few").await;
    reasons.sort_by(|one, other| one.name.cmp(&other.name));
    let names: Vec<_> = reasons.iter().map(|reason| reason.name.as_deref()).collect();
    assert_eq!(names, [Some("a24"), Some("flow:f")]);
    assert_eq!((reasons[1].in_use, reasons[1].capacity), (Some(1), Some(3)));
    b.ends("p", "a24", succeeded).await;
    let kinds: Vec<_> = b.explain("c").await.reasons.into_iter().map(|one| one.kind).collect();
    assert!(!kinds.contains(&ReasonKind::WaitingOn), "it waits for nobody any more");
}

pub(crate) async fn the_parents_of_a_job_are_shown_in_their_order(b: &mut Bench) {
    b.push_all(jobs("p", "a", 3)).await;
    b.push(job("m").id("m").in_flow("f")).await;
    b.push(
        job("z")
            .id("c")
            .after(["a2", "gone"])
            .or_gone()
            .after(["a0"])
            .after_flow("f")
            .after(["a1"])
            .run_anyway(),
    )
    .await;
    b.ends("p", "a0", failed_for_good).await;
    b.cancel("a1").await;
    let ended = b.now();
    let expected = [
        ("a2", "ready"),
        ("gone", "gone"),
        ("a0", "failed"),
        ("flow:f", "flow"),
        ("a1", "cancelled"),
    ];
    assert_eq!(b.parents("c").await, expected.map(|(name, state)| (name.to_owned(), state)));
    let list =
        |max, cursor| ListParents { job: job_ref("c"), full: false, page: Page { max, cursor } };
    let all = b.ok(list(10, None)).await;
    assert_eq!(all.next, None);
    let ParentView::Job(failed) = &all.items[2] else { panic!("{all:?}") };
    assert_eq!((failed.error.as_deref(), failed.finished_at), (Some("it broke"), Some(ended)));
    let ParentView::Job(gone) = &all.items[1] else { panic!("{all:?}") };
    assert!(matches!(gone.state, ParentState::Gone(_)));
    assert_eq!((&gone.error, gone.finished_at, &gone.result), (&None, None, &None));
    let ParentView::Flow { counts, .. } = &all.items[3] else { panic!("{all:?}") };
    assert_eq!(counts.unfinished, 1);
    // In pages, which changes in between do not disturb.
    let first = b.ok(list(2, None)).await;
    assert_eq!(first.items, all.items[..2]);
    b.ends("p", "a2", succeeded).await;
    let second = b.ok(list(2, first.next)).await;
    assert_eq!(second.items, all.items[2..4]);
    let last = b.ok(list(2, second.next)).await;
    assert_eq!((&last.items[..], last.next), (&all.items[4..], None));
    b.cancel("c").await;
    assert_eq!(b.parents("c").await.len(), 5, "also of a finished job");
}

pub(crate) async fn waiting_kin_is_shown_as_it_stands(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    let closed = |id: &str| job("p").id(id).needs([need("closed")]);
    b.push_all(vec![closed("a"), job("r").id("b").delay(s(60))]).await;
    b.none("p").await;
    b.push(job("q").id("c").after(["a", "b"])).await;
    b.push(job("q").id("d").after(["c"])).await;
    let shown = |all: &[(&str, &'static str)]| -> Vec<(String, &'static str)> {
        all.iter().map(|(id, state)| ((*id).to_owned(), *state)).collect()
    };
    assert_eq!(b.parents("c").await, shown(&[("a", "blocked"), ("b", "scheduled")]));
    assert_eq!(b.parents("d").await, shown(&[("c", "dependent")]));
    // The children of a job that has ended, as well.
    b.push_all(vec![job("r").id("e"), closed("f").after(["e"]), job("w").id("g").after(["e"])])
        .await;
    b.ends("r", "e", succeeded).await;
    b.none("p").await;
    let states = [("f".to_owned(), JobState::Blocked), ("g".to_owned(), JobState::Ready)];
    assert_eq!(b.children("e").await, states);
}

pub(crate) async fn a_page_of_parents_ends_when_it_has_bytes_enough(b: &mut Bench) {
    let all = 2 * PAGE_BYTES_MAX / PAYLOAD_BYTES_MAX;
    b.push_all(jobs("p", "p", all)).await;
    let text = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2));
    for lease in b.take_all("p", all).await {
        let result = Some(json(&text));
        b.settle(ending(&lease, Ending::Succeeded { result })).await;
    }
    let ids: Vec<String> = (0..all).map(|n| format!("p{n}")).collect();
    b.push(job("q").id("c").after(&ids)).await;
    let mut page = Page { max: LIST_MAX, cursor: None };
    let (mut seen, mut pages) = (Vec::new(), 0);
    loop {
        let list = ListParents { job: job_ref("c"), full: true, page: page.clone() };
        let listed = b.ok(list).await;
        let bytes: usize = listed.items.iter().map(ParentView::bytes).sum();
        assert!((1..=PAGE_BYTES_MAX).contains(&bytes), "{bytes} bytes in a page");
        seen.extend(listed.items.iter().map(|parent| named_parent(parent).0));
        pages += 1;
        let Some(next) = listed.next else { break };
        page.cursor = Some(next);
    }
    assert_eq!((seen, pages), (ids, 3), "nothing twice, nothing left out");
    assert_eq!(b.parents("c").await.len(), all, "without results they go on one page");
}

pub(crate) async fn the_children_of_a_job_are_listed_as_they_were_pushed(b: &mut Bench) {
    b.push_all(vec![job("p").id("a"), job("p").id("other")]).await;
    for id in ["z", "b", "m"] {
        b.push(job("q").id(id).after(["a"])).await;
    }
    b.push(job("q").id("run").after(["a", "other"]).run_anyway().retain(s(1))).await;
    b.push(job("q").id("stranger").after(["other"])).await;
    b.push(job("q").id("grandchild").after(["z"])).await;
    let state = |ids: [(&str, JobState); 4]| ids.map(|(id, state)| (id.to_owned(), state)).to_vec();
    let dependent = JobState::Dependent;
    let all = state([("z", dependent), ("b", dependent), ("m", dependent), ("run", dependent)]);
    assert_eq!(b.children("a").await, all);
    let list = |max, cursor| ListChildren { job: job_ref("a"), page: Page { max, cursor } };
    let first = b.ok(list(3, None)).await;
    let said: Vec<_> = first.items.iter().map(|one| one.on_parent_failure).collect();
    assert_eq!(said, [OnParentFailure::Cancel; 3]);
    b.cancel("b").await;
    b.retried("b").await;
    let rest = b.ok(list(3, first.next)).await;
    assert_eq!((rest.items.len(), rest.next), (1, None), "each once");
    assert_eq!(
        (rest.items[0].id.as_str(), rest.items[0].on_parent_failure),
        ("run", OnParentFailure::Run)
    );
    b.ends("p", "a", succeeded).await;
    let ready = JobState::Ready;
    assert_eq!(
        b.children("a").await,
        state([("z", ready), ("b", ready), ("m", ready), ("run", dependent)]),
        "told or not"
    );
    // A job whose row is gone is not among them.
    b.cancel("run").await;
    b.pass(s(2)).await;
    assert_eq!(b.children("a").await.len(), 3);
    let pages = async |max| {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = b.ok(list(max, cursor)).await;
            assert!(page.items.len() <= max);
            seen.extend(page.items.iter().map(|one| one.id.to_string()));
            cursor = page.next;
            if cursor.is_none() {
                return seen;
            }
        }
    };
    assert_eq!(pages(1).await, ["z", "b", "m"]);
    assert_eq!(pages(2).await, ["z", "b", "m"]);
}

pub(crate) async fn jobs_are_found_by_their_flow_and_their_schedule(b: &mut Bench) {
    b.push_all((0..7).map(|n| job("q").id(&format!("j{n}")).in_flow("f")).collect()).await;
    b.push_all(vec![job("q").id("other").in_flow("g"), job("r").id("plain")]).await;
    b.push(job("r").id("child").after(["j0"])).await;
    let moment = b.put("news", every(s(60))).await.next_at.expect("a moment");
    b.leap_to(moment).await;
    let found = async |filter: JobFilter, max| {
        let (mut seen, mut cursor): (Vec<String>, _) = (Vec::new(), None);
        loop {
            let page = Page { max, cursor };
            let listed = b.ok(ListJobs { filter: filter.clone(), page, full: false }).await;
            seen.extend(listed.items.iter().map(|job: &JobView| job.id.to_string()));
            cursor = listed.next;
            if cursor.is_none() {
                return seen;
            }
        }
    };
    let of_flow = |name: &str| JobFilter { flow: Some(flow(name)), ..JobFilter::default() };
    let newest_first = ["child", "j6", "j5", "j4", "j3", "j2", "j1", "j0"];
    assert_eq!(found(of_flow("f"), 3).await, newest_first);
    assert_eq!(found(of_flow("g"), 3).await, ["other"]);
    assert!(found(of_flow("nobody"), 3).await.is_empty());
    b.ends("q", "j0", succeeded).await;
    let states = vec![JobState::Ready];
    assert_eq!(found(JobFilter { states, ..of_flow("f") }, 100).await.len(), 7);
    let in_r = JobFilter { queue: Some(queue("r")), ..of_flow("f") };
    assert_eq!(found(in_r, 100).await, ["child"]);
    let news = crate::calls::schedules::schedule("news");
    let made = JobFilter { schedule: Some(news), ..JobFilter::default() };
    assert_eq!(found(made.clone(), 100).await, [crate::calls::schedules::job_at("news", moment)]);
    assert!(found(JobFilter { flow: Some(flow("f")), ..made }, 100).await.is_empty());
}
