//! Lists: their order, pages, filters and omissions.

use std::collections::BTreeSet;

use tenure_core::bounds::{LIST_MAX, PAGE_BYTES_MAX, PAYLOAD_BYTES_MAX};
use tenure_core::job::JobState;
use tenure_core::lease::Ending;
use tenure_core::requests::*;

use crate::bench::Bench;
use crate::words::*;

fn ids(listed: &Listed<tenure_core::job::JobView>) -> Vec<&str> {
    listed.items.iter().map(|job| job.id.as_str()).collect()
}

pub(crate) async fn jobs_are_listed_newest_first_in_pages(b: &mut Bench) {
    for n in 0..7 {
        b.push(job("q").id(&format!("j{n}"))).await;
        b.pass(ms(1)).await;
    }
    let mut page = Page { max: 3, cursor: None };
    let mut seen: Vec<String> = vec![];
    let mut sizes = vec![];
    loop {
        let listed = b.ok(ListJobs { page: page.clone(), ..ListJobs::default() }).await;
        seen.extend(ids(&listed).into_iter().map(str::to_owned));
        sizes.push(listed.items.len());
        let Some(next) = listed.next else { break };
        assert!(sizes.len() < 10, "the pages have an end");
        page.cursor = Some(next);
    }
    assert_eq!(seen, ["j6", "j5", "j4", "j3", "j2", "j1", "j0"]);
    assert!(sizes.iter().all(|size| *size <= 3), "{sizes:?}");
}

pub(crate) async fn a_page_is_not_disturbed_by_a_new_job(b: &mut Bench) {
    for n in 0..4 {
        b.push(job("q").id(&format!("j{n}"))).await;
        b.pass(ms(1)).await;
    }
    let page = Page { max: 2, cursor: None };
    let first = b.ok(ListJobs { page, ..ListJobs::default() }).await;
    assert_eq!(ids(&first), ["j3", "j2"]);
    b.push(job("q").id("new")).await;
    let page = Page { max: 10, cursor: first.next };
    let second = b.ok(ListJobs { page, ..ListJobs::default() }).await;
    assert_eq!(ids(&second), ["j1", "j0"], "nothing twice, nothing left out");
}

pub(crate) async fn a_page_ends_when_it_has_bytes_enough(b: &mut Bench) {
    let payload = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2));
    let all = 2 * PAGE_BYTES_MAX / PAYLOAD_BYTES_MAX;
    for n in 0..all {
        b.push(job("q").id(&format!("j{n}")).payload(&payload)).await;
    }
    let mut page = Page { max: LIST_MAX, cursor: None };
    let (mut seen, mut pages) = (BTreeSet::new(), 0);
    loop {
        let list = ListJobs { page: page.clone(), full: true, ..ListJobs::default() };
        let listed = b.ok(list).await;
        let bytes: usize = listed.items.iter().map(tenure_core::job::JobView::bytes).sum();
        assert!((1..=PAGE_BYTES_MAX).contains(&bytes), "{bytes} bytes in a page");
        seen.extend(ids(&listed).into_iter().map(str::to_owned));
        pages += 1;
        let Some(next) = listed.next else { break };
        page.cursor = Some(next);
    }
    assert_eq!((seen.len(), pages), (all, 3), "nothing twice, nothing left out");
    let bare = b.ok(ListJobs { page: Page { max: LIST_MAX, cursor: None }, ..ListJobs::default() });
    assert_eq!(bare.await.items.len(), all, "without payloads they go on one page");
}

pub(crate) async fn jobs_are_filtered(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    b.push(job("a").id("a-ready").kind("x").label("site", "s")).await;
    b.push(job("a").id("a-scheduled").kind("y").delay(s(60)).label("site", "t")).await;
    b.push(job("b").id("b-blocked").kind("x").needs([need("closed")]).label("site", "s")).await;
    b.none("b").await;
    b.push(job("b").id("b-done").kind("y")).await;
    let lease = b.take("b").await;
    b.settle(succeeded(&lease)).await;
    let filter = JobFilter::default;
    let site = |value: &str| Some(("site".to_owned(), value.to_owned()));
    let table: [(JobFilter, &[&str]); 8] = [
        (filter(), &["a-ready", "a-scheduled", "b-blocked", "b-done"]),
        (JobFilter { queue: Some(queue("a")), ..filter() }, &["a-ready", "a-scheduled"]),
        (JobFilter { states: vec![JobState::Succeeded], ..filter() }, &["b-done"]),
        (
            JobFilter { states: vec![JobState::Ready, JobState::Blocked], ..filter() },
            &["a-ready", "b-blocked"],
        ),
        (JobFilter { kind: Some("y".to_owned()), ..filter() }, &["a-scheduled", "b-done"]),
        (JobFilter { label: site("s"), ..filter() }, &["a-ready", "b-blocked"]),
        (JobFilter { queue: Some(queue("b")), label: site("s"), ..filter() }, &["b-blocked"]),
        (JobFilter { kind: Some("nobody's".to_owned()), ..filter() }, &[]),
    ];
    for (filter, expected) in table {
        let listed = b.ok(ListJobs { filter: filter.clone(), ..ListJobs::default() }).await;
        let mut found = ids(&listed);
        found.sort_unstable();
        assert_eq!(found, expected, "{filter:?}");
        assert_eq!(listed.next, None);
    }
}

pub(crate) async fn filtered_pages_leave_nothing_out(b: &mut Bench) {
    let kind = |n: usize| if n.is_multiple_of(3) { "x" } else { "y" };
    let jobs = (0..60).map(|n| job("q").id(&format!("j{n}")).kind(kind(n)));
    b.push_all(jobs.collect()).await;
    let filter = JobFilter { kind: Some("x".to_owned()), ..JobFilter::default() };
    let mut found = BTreeSet::new();
    let mut cursor = None;
    for _ in 0..30 {
        let page = Page { max: 4, cursor };
        let listed = b.ok(ListJobs { filter: filter.clone(), page, full: false }).await;
        for id in ids(&listed) {
            assert!(found.insert(id.to_owned()), "{id} twice");
        }
        cursor = listed.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((found.len(), cursor), (20, None));
}

pub(crate) async fn lists_leave_payload_and_result_out_unless_asked(b: &mut Bench) {
    b.push(job("q").id("a").payload("1")).await;
    let lease = b.take("q").await;
    b.settle(ending(&lease, Ending::Succeeded { result: Some(json("2")) })).await;
    let listed = b.ok(ListJobs::default()).await;
    assert_eq!((&listed.items[0].payload, &listed.items[0].result), (&None, &None));
    let listed = b.ok(ListJobs { full: true, ..ListJobs::default() }).await;
    let full = (&listed.items[0].payload, &listed.items[0].result);
    assert_eq!(full, (&Some(json("1")), &Some(json("2"))));
}

/// Reads a list by pages of two; returns the names in their order.
macro_rules! by_pages {
    ($b:ident, $list:expr, $name:ident) => {{
        let mut names: Vec<String> = vec![];
        let mut page = Page { max: 2, cursor: None };
        for _ in 0..10 {
            let listed = $b.ok($list(page.clone())).await;
            assert!(listed.items.len() <= 2);
            names.extend(listed.items.iter().map(|one| one.$name.to_string()));
            match listed.next {
                Some(next) => page.cursor = Some(next),
                None => break,
            }
        }
        names
    }};
}

pub(crate) async fn everything_else_is_listed_by_name(b: &mut Bench) {
    let names = ["c", "a", "e", "b", "d"];
    let sorted = ["a", "b", "c", "d", "e"];
    for name in names {
        b.push(job(name)).await;
        b.set_limit(name, cap(1)).await;
        b.set_pool(name, plain_pool(), names.map(thing).to_vec()).await;
        b.not_granted(b.ask("empty").by(name)).await;
    }
    let queues: Vec<_> = by_pages!(b, |page| ListQueues { page }, name);
    let queues: Vec<_> = queues.into_iter().filter(|name| name != "empty").collect();
    assert_eq!(queues, sorted);
    let limits: Vec<_> = by_pages!(b, |page| ListLimits { page }, name);
    let limits: Vec<_> = limits.into_iter().filter(|name| name != "lock:*").collect();
    assert_eq!(limits, sorted);
    assert_eq!(by_pages!(b, |page| ListPools { page }, name), sorted);
    let resources = |page| ListResources { pool: pool("a"), page };
    assert_eq!(by_pages!(b, resources, id), sorted);
    assert_eq!(by_pages!(b, |page| ListWorkers { page }, id), sorted);
}

pub(crate) async fn leases_are_filtered(b: &mut Bench) {
    b.set_limit("l", cap(9)).await;
    b.set_pool("p", plain_pool(), vec![thing("a").data(r#"{"pw":"very-secret"}"#)]).await;
    b.push(job("q").id("x").needs([need("l")]).timeout(s(60))).await;
    let of_job = b.granted(b.ask("q").by("one")).await;
    let of_pool = b.granted(b.ask_needs([any_of("p")]).by("two")).await;
    let of_limit = b.granted(b.ask_needs([need("l")]).by("two")).await;
    let [of_job, of_pool, of_limit] = [of_job, of_pool, of_limit].map(|lease| id_of(&lease));
    let list = ListLeases::default;
    let table = [
        (list(), vec![&of_job, &of_pool, &of_limit]),
        (ListLeases { queue: Some(queue("q")), ..list() }, vec![&of_job]),
        (ListLeases { limit: Some(limit("l")), ..list() }, vec![&of_job, &of_limit]),
        (ListLeases { pool: Some(pool("p")), ..list() }, vec![&of_pool]),
        (ListLeases { worker: Some("two".to_owned()), ..list() }, vec![&of_pool, &of_limit]),
        (ListLeases { worker: Some("three".to_owned()), ..list() }, vec![]),
    ];
    for (request, expected) in table {
        let said = format!("{request:?}");
        let listed = b.ok(request).await;
        let found: BTreeSet<&String> = listed.items.iter().map(|one| &one.lease).collect();
        assert_eq!(found, expected.into_iter().collect(), "{said}");
        let text = serde_json::to_string(&listed).expect("a list is JSON");
        assert!(!text.contains("very-secret"));
    }
    let listed = b.ok(ListLeases { queue: Some(queue("q")), ..list() }).await.items.remove(0);
    assert_eq!((listed.holder.as_str(), listed.granted_at), ("one", b.now()));
    assert_eq!((listed.job, listed.queue), (Some(job_id("x")), Some(queue("q"))));
    assert_eq!(listed.deadline, Some(b.now().plus(s(60))));
    assert!(!listed.cancel_requested);
    b.cancel("x").await;
    let listed = b.ok(ListLeases { queue: Some(queue("q")), ..list() }).await.items.remove(0);
    assert!(listed.cancel_requested);
}

pub(crate) async fn workers_are_those_of_the_last_minute(b: &mut Bench) {
    b.push_all(jobs("q", "j", 2)).await;
    let worker = tenure_core::lease::Worker {
        id: Some(worker("me")),
        host: Some("host-1".to_owned()),
        pid: Some(42),
        version: Some("1.2".to_owned()),
    };
    let call = Lease { worker, ..Lease::jobs(vec![queue("q"), queue("r")], 2) };
    assert_eq!(b.ok(call).await.leases.len(), 2);
    b.ok(Lease::jobs(vec![queue("q")], 1)).await;
    let listed = b.ok(ListWorkers::default()).await.items;
    assert_eq!(listed.len(), 1, "one without an id is never heard of");
    let me = &listed[0];
    assert_eq!((me.id.as_str(), me.host.as_deref(), me.pid), ("me", Some("host-1"), Some(42)));
    assert_eq!((me.version.as_deref(), me.leases, me.last_seen_at), (Some("1.2"), 2, b.now()));
    let queues: BTreeSet<_> = me.queues.iter().map(|name| name.as_str()).collect();
    assert_eq!(queues, BTreeSet::from(["q", "r"]));
}

pub(crate) async fn a_worker_is_forgotten_after_a_minute(b: &mut Bench) {
    b.not_granted(b.ask("q").by("me")).await;
    b.pass(s(55)).await;
    assert_eq!(b.ok(ListWorkers::default()).await.items.len(), 1);
    b.pass(s(7)).await;
    assert!(b.ok(ListWorkers::default()).await.items.is_empty());
}

pub(crate) async fn totals_are_right(b: &mut Bench) {
    b.set_limit("closed", cap(0)).await;
    b.push(job("a").id("blocked").needs([need("closed")])).await;
    b.none("a").await;
    b.push_all(jobs("a", "j", 5)).await;
    let leases = b.take_all("a", 4).await;
    b.settle(succeeded(&leases[0])).await;
    b.settle(failed_for_good(&leases[1])).await;
    b.settle(snoozed(&leases[2], s(60))).await;
    b.hold([need("lock:x")]).await;
    let first = b.now();
    b.pass(s(1)).await;
    b.push(job("b").id("late")).await;
    b.cancel("late").await;
    let stats = b.ok(GetStats).await;
    let of = |state| stats.jobs.get(&state).copied().unwrap_or(0);
    for state in JobState::ALL {
        let expected = u64::from(state != JobState::Dependent);
        assert_eq!(of(state), expected, "{state}");
    }
    let in_a = &stats.queues[&queue("a")];
    assert_eq!(in_a.get(&JobState::Ready), Some(&1));
    assert_eq!(in_a.get(&JobState::Cancelled).copied().unwrap_or(0), 0);
    assert_eq!((stats.leases, stats.oldest_ready_at), (2, Some(first)));
    assert!(!stats.store.kind.is_empty());
}
