//! `tenure status`: ten lines that say whether all is well, and what to do where it is not.
//!
//! It only asks, and its exit code is the answer: 0, or 1 if something needs somebody. A finding that is only worth knowing is shown.

use std::collections::BTreeMap;

use serde::Serialize;
use tenure::Client;
use tenure::remote::Callee;
use tenure::url::StoreUrl;
use tenure_console::standing::NamespaceReplies;
use tenure_core::attention::{Finding, is_empty, is_full, never_watched};
use tenure_core::count::{counted, grouped, rough};
use tenure_core::job::JobState;
use tenure_core::names::{LimitName, Namespace, PoolName};
use tenure_core::requests::{ScheduleStats, StoreStats};
use tenure_core::settings::{LimitView, PoolView};

use crate::cmd::doctor::server::{Presented, presented};
use crate::exit::{Failure, NO};
use crate::output::clock::sentence;
use crate::output::page::Page;
use crate::output::prose::wrapped;
use crate::output::{Output, size, width};

/// Limits and pools that are named in a line; there may be more.
const NAMED: usize = 3;
/// Findings that are shown to people; there may be more.
const SHOWN: usize = 20;
/// The longest name of a line, and the gap behind it.
const MARGIN: usize = "namespace".len() + 2;

/// The document of `--json`.
#[derive(Serialize)]
pub struct StatusReport {
    ok: bool,
    /// The address, without a password.
    address: String,
    /// `null` if the store is asked without a server.
    server: Option<Presented>,
    namespace: Namespace,
    jobs: BTreeMap<JobState, u64>,
    /// Seconds for which the oldest ready job has waited.
    oldest_ready_s: Option<u64>,
    workers: u64,
    leases: u64,
    limits: u64,
    full_limits: Vec<FullLimit>,
    pools: u64,
    empty_pools: Vec<EmptyPool>,
    schedules: ScheduleStats,
    /// Moments that were missed since the schedules exist.
    missed: u64,
    failed_in_the_last_hour: u64,
    store: StoreStats,
    attention: Vec<Finding>,
    /// Lists that have more than the 1,000 things that were looked at.
    looked_at_a_part_of: Vec<&'static str>,
}

/// A limit without a free permit.
#[derive(Serialize)]
struct FullLimit {
    limit: LimitName,
    in_use: u64,
    concurrency: u32,
    waiting: u64,
}

/// A pool without a free resource.
#[derive(Serialize)]
struct EmptyPool {
    pool: PoolName,
    leased: u64,
    cooling: u64,
    banned: u64,
    waiting: u64,
}

/// Prints the state of a namespace.
pub async fn run(client: &Client, out: Output, address: &str) -> Result<(), Failure> {
    let address: StoreUrl = address.parse().map_err(|why| Failure::usage(format!("{why}")))?;
    let server = match Callee::of(&address) {
        Some(callee) => presented(&callee).await?,
        None => None,
    };
    let standing = NamespaceReplies::ask(client).await?;
    let report = report(address.to_string(), server, client.namespace().clone(), standing);
    out.answer(&report, |report| text(report, width::of_prose()))?;
    if report.ok {
        return Ok(());
    }
    let not_ready = report.server.as_ref().is_some_and(|server| !server.ready);
    let count = needs_somebody(&report.attention).count() as u64 + u64::from(not_ready);
    Err(Failure::new(NO, counted(count, "thing needs attention", "things need attention")))
}

fn report(
    address: String,
    server: Option<Presented>,
    namespace: Namespace,
    standing: NamespaceReplies,
) -> StatusReport {
    let attention = standing.findings(&never_watched);
    let looked_at_a_part_of = standing.cut();
    let NamespaceReplies { now, stats, limits, pools, schedules, workers, failures, .. } = standing;
    let mut full_limits: Vec<_> = limits.items.iter().filter_map(full).collect();
    full_limits.sort_by_key(|limit| std::cmp::Reverse(limit.waiting));
    let mut empty_pools: Vec<_> = pools.items.iter().filter_map(empty).collect();
    empty_pools.sort_by_key(|pool| std::cmp::Reverse(pool.waiting));
    StatusReport {
        ok: needs_somebody(&attention).next().is_none()
            && server.as_ref().is_none_or(|server| server.ready),
        address,
        server,
        namespace,
        jobs: stats.jobs,
        oldest_ready_s: stats.oldest_ready_at.map(|at| now.since(at).us() / 1_000_000),
        workers: workers.items.len() as u64,
        leases: stats.leases,
        limits: limits.items.len() as u64,
        full_limits,
        pools: pools.items.len() as u64,
        empty_pools,
        schedules: stats.schedules,
        missed: schedules.items.iter().map(|schedule| schedule.missed).sum(),
        failed_in_the_last_hour: failures.items.iter().map(|group| group.count).sum(),
        store: stats.store,
        attention,
        looked_at_a_part_of,
    }
}

/// The findings that need somebody to act.
fn needs_somebody(all: &[Finding]) -> impl Iterator<Item = &Finding> {
    all.iter().filter(|one| one.severity.needs_somebody())
}

fn full(limit: &LimitView) -> Option<FullLimit> {
    let concurrency = limit.settings.concurrency?;
    is_full(limit).then(|| FullLimit {
        limit: limit.name.clone(),
        in_use: limit.in_use + limit.external,
        concurrency,
        waiting: limit.waiting,
    })
}

fn empty(pool: &PoolView) -> Option<EmptyPool> {
    let PoolView { leased, cooling, banned, waiting, .. } = *pool;
    let name = || pool.name.clone();
    is_empty(pool).then(|| EmptyPool { pool: name(), leased, cooling, banned, waiting })
}

fn text(report: &StatusReport, width: usize) -> String {
    let mut page = Page::default();
    let mut line = |name: &str, text: String| {
        page.field(name, wrapped(&text, width - MARGIN, ""));
    };
    let server = report.server.as_ref().map(|server| format!(", {}", said(server)));
    line("address", format!("{}{}", report.address, server.unwrap_or_default()));
    line("namespace", report.namespace.to_string());
    line("jobs", jobs(&report.jobs));
    line(
        "oldest",
        match report.oldest_ready_s {
            Some(s) => {
                let span = rough(tenure_core::time::Span::from_s(s));
                format!("a job has been ready for {span}")
            }
            None => "no job is ready".to_owned(),
        },
    );
    let leases = counted(report.leases, "lease", "leases");
    line("workers", format!("{} asked within the last minute, {leases}", report.workers));
    let each = |limit: &FullLimit| {
        let FullLimit { limit, in_use, concurrency, waiting } = limit;
        format!("{limit} ({in_use} of {concurrency}, {} waiting)", grouped(*waiting))
    };
    line("limits", of_all(report.limits, "full", &report.full_limits, each));
    let each = |one: &EmptyPool| {
        let EmptyPool { pool, leased, cooling, banned, waiting } = one;
        let parts = [(*leased, "in use"), (*cooling, "cooling"), (*banned, "banned")];
        let parts = parts.into_iter().chain([(*waiting, "waiting")]).filter(|(n, _)| *n > 0);
        let parts: Vec<_> = parts.map(|(n, what)| format!("{} {what}", grouped(n))).collect();
        match parts.as_slice() {
            [] => pool.to_string(),
            parts => format!("{pool} ({})", parts.join(", ")),
        }
    };
    line("pools", of_all(report.pools, "with nothing free", &report.empty_pools, each));
    let ScheduleStats { count, paused, due, .. } = report.schedules;
    line("schedules", format!("{count}, {paused} paused, {due} due, {} missed", report.missed));
    let failed = grouped(report.failed_in_the_last_hour);
    line("failures", format!("{failed} in the last hour"));
    line("store", format!("{}, {}", report.store.kind, size(report.store.bytes)));
    let mut text = page.render() + "\n" + &attention(report, width);
    if !report.looked_at_a_part_of.is_empty() {
        let lists = report.looked_at_a_part_of.join(", ");
        let note = format!("only the first of these were read: {lists}");
        text.push_str(&(wrapped(&note, width, "") + "\n"));
    }
    text
}

fn said(server: &Presented) -> String {
    let Presented { version, ready, detail } = server;
    if *ready {
        format!("version {version}, ready")
    } else {
        format!("version {version}, not ready: {detail}")
    }
}

fn jobs(jobs: &BTreeMap<JobState, u64>) -> String {
    let some = jobs.iter().filter(|(_, n)| **n > 0);
    let parts: Vec<_> =
        some.map(|(state, n)| format!("{} {}", grouped(*n), state.as_str())).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

/// How many of all are as `what` says, and the first of them.
fn of_all<T>(all: u64, what: &str, some: &[T], each: impl Fn(&T) -> String) -> String {
    if some.is_empty() {
        return format!("{all}, none {what}");
    }
    let mut named: Vec<_> = some.iter().take(NAMED).map(each).collect();
    if some.len() > NAMED {
        named.push(format!("and {} more", some.len() - NAMED));
    }
    format!("{} of {all} {what}: {}", some.len(), named.join(", "))
}

/// The findings, each with its remedy.
fn attention(report: &StatusReport, width: usize) -> String {
    let mut text = String::new();
    let mut say = |severity: &str, what: &str, fix: &str| {
        let margin = "stuck  ".len();
        let hang = " ".repeat(margin);
        let (what, fix) = (sentence(what), format!("-> {fix}"));
        text.push_str(&format!("{severity:<5}  {}\n", wrapped(&what, width - margin, &hang)));
        let fix = wrapped(&fix, width - margin, &format!("{hang}   "));
        text.push_str(&format!("{hang}{fix}\n"));
    };
    if let Some(server) = report.server.as_ref().filter(|server| !server.ready) {
        say("stuck", &format!("the server is not ready: {}", server.detail), "see `tenure doctor`");
    }
    for one in report.attention.iter().take(SHOWN) {
        say(one.severity.as_str(), &one.sentence, &one.fix);
    }
    if let more @ 1.. = report.attention.len().saturating_sub(SHOWN) {
        text.push_str(&format!("and {more} more: --json has all\n"));
    }
    if report.ok {
        text.push_str("all is well\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_full_is_counted_and_the_first_are_named() {
        let each = |n: &u8| format!("l{n}");
        for (some, said) in [
            (vec![], "9, none full"),
            (vec![1], "1 of 9 full: l1"),
            (vec![1, 2, 3], "3 of 9 full: l1, l2, l3"),
            (vec![1, 2, 3, 4, 5], "5 of 9 full: l1, l2, l3, and 2 more"),
        ] {
            assert_eq!(of_all(9, "full", &some, each), said);
        }
    }
}
