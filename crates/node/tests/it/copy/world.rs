//! What a store knows, as lines that can be compared: all that is shown, less what is no part of a copy
//! (what is blocked stands in no line yet, and who works or waits).

use std::sync::Arc;

use tenure_core::job::{JobState, JobView};
use tenure_core::names::{JobRef, Namespace, UniqueKey};
use tenure_core::requests::*;
use tenure_engine_api::{Engine, EngineExt};

/// Keys that a filled store may have.
pub const KEYS: [&str; 4] = ["k0", "k1", "k2", "gone"];

fn page(cursor: Option<String>) -> Page {
    Page { max: 40, cursor }
}

pub async fn jobs(engine: &Arc<dyn Engine>, ns: &Namespace) -> Vec<JobView> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let list = ListJobs { page: page(cursor), full: true, ..ListJobs::default() };
        let listed = engine.run(ns, list).await.unwrap();
        all.extend(listed.items);
        cursor = listed.next;
        if cursor.is_none() {
            return all;
        }
    }
}

/// All that is there.
pub async fn world(engine: &Arc<dyn Engine>, ns: &Namespace) -> Vec<String> {
    let mut lines = Vec::new();
    for mut job in jobs(engine, ns).await {
        if job.state == JobState::Blocked {
            job.state = JobState::Ready;
        }
        lines.push(format!(
            "{job:?} {:?} {:?}",
            job.payload.as_ref().map(|json| json.text()),
            job.result.as_ref().map(|json| json.text())
        ));
    }
    let queues = engine.run(ns, ListQueues { page: Page { max: 1_000, cursor: None } }).await;
    for mut queue in queues.unwrap().items {
        queue.counts.ready += std::mem::take(&mut queue.counts.blocked);
        queue.workers = 0;
        queue.oldest_ready_at = None;
        lines.push(format!("{queue:?}"));
    }
    let limits = engine.run(ns, ListLimits { page: Page { max: 1_000, cursor: None } }).await;
    for mut limit in limits.unwrap().items {
        limit.waiting = 0;
        // One that is only waited for is listed as long as its line is.
        let idle = limit.in_use == 0 && limit.external == 0 && limit.paused_until.is_none();
        if limit.template.is_none() || !idle {
            lines.push(format!("{limit:?}"));
        }
    }
    let pools = engine.run(ns, ListPools { page: Page { max: 1_000, cursor: None } }).await;
    for mut pool in pools.unwrap().items {
        pool.waiting = 0;
        lines.push(format!("{pool:?}"));
        let list = ListResources { pool: pool.name, page: Page { max: 1_000, cursor: None } };
        for resource in engine.run(ns, list).await.unwrap().items {
            lines.push(format!("{resource:?} {}", resource.data.text()));
        }
    }
    for key in KEYS {
        let job = JobRef::Key(UniqueKey::parse(key).unwrap());
        let held = engine.run(ns, GetJob { job }).await;
        lines.push(format!("key {key}: {:?}", held.map(|job| job.id).map_err(|no| no.code())));
    }
    let mut stats = engine.run(ns, GetStats).await.unwrap();
    stats.store = StoreStats::default();
    // A copy begins a stream of its own.
    stats.events = EventStats::default();
    stats.oldest_ready_at = None;
    let join = |states: &mut std::collections::BTreeMap<JobState, u64>| {
        let blocked = states.remove(&JobState::Blocked).unwrap_or(0);
        *states.entry(JobState::Ready).or_default() += blocked;
        states.retain(|_, n| *n > 0);
    };
    join(&mut stats.jobs);
    stats.queues.values_mut().for_each(join);
    lines.push(format!("{stats:?}"));
    lines
}

/// The audit finds nothing.
pub async fn is_sound(engine: &Arc<dyn Engine>, ns: &Namespace) {
    let audit = engine.run(ns, Audit::default()).await.unwrap();
    assert!(audit.ok, "{:#?}", audit.faults);
}

/// Says where two worlds differ.
pub fn same(one: &[String], other: &[String], what: &str) {
    for line in one {
        assert!(other.contains(line), "{what}: lost\n{line}\nthere is\n{}", near(line, other));
    }
    for line in other {
        assert!(one.contains(line), "{what}: added\n{line}\nthere was\n{}", near(line, one));
    }
    assert_eq!(one.len(), other.len(), "{what}");
}

/// The lines that begin alike.
fn near(line: &str, lines: &[String]) -> String {
    let head: String = line.chars().take(12).collect();
    lines.iter().filter(|line| line.starts_with(&head)).cloned().collect::<Vec<_>>().join("\n")
}
