//! Lists: a page is asked for until it is full, since one call of the library does bounded work.
//!
//! Jobs are found by queue, state and end on the server; by kind, label and error here, since no rule and no index
//! knows these. A list looks at no more than 10,000 jobs.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_core::bounds::{LIST_MAX, LIST_SCAN_MAX, PAGE_BYTES_FULL};
use tenure_core::job::{JobState, JobView};
use tenure_core::lease::LeaseSummary;
use tenure_core::requests::{
    Audit, Audited, GetStats, JobFilter, ListJobs, ListLeases, ListLimits, ListPools, ListQueues,
    ListResources, ListWorkers, Listed, Operation, Page, Stats, WorkerView,
};
use tenure_core::settings::{LimitView, PoolView, QueueView, ResourceView};
use tenure_engine::CallError;

use crate::alphabet::state;
use crate::answer::Answerable;
use crate::call::{Caller, malformed};
use crate::decode::{
    Answered, AuditReply, Blobs, FromWire, LeasesReply, ListedJobs, Malformed, PageReply,
    StatsReply, Stored,
};
use crate::encode::{EndsArgs, ListJobsArgs, ListLeasesArgs, OriginArgs, Packed, PageArgs, pack};
use crate::function::Function;

const LIST_JOBS: Function = Function::of::<ListJobs>();
const GET_STATS: Function = Function::of::<GetStats>();

/// Faults that an audit shows.
const FAULTS_SHOWN: usize = 100;
/// Faults of one look that are compared with those of the next.
const FAULTS_COMPARED: usize = 10_000;
/// Looks that must find a fault again.
const LOOKS_MORE: usize = 2;
/// Calls for one page beyond which it is answered as it is.
pub(crate) const CALLS_MAX: usize = 1_000;

/// A page of what is listed by name.
pub(crate) async fn page<O, T>(
    caller: &Caller,
    (pool, page): (Option<&str>, Page),
) -> Result<Listed<T>, CallError>
where
    O: Operation<Reply = Listed<T>>,
    T: FromWire,
{
    let args = |after: Option<&str>, max: usize| pack(&PageArgs { pool, max, after });
    pages(caller, Function::of::<O>(), page, args, T::read).await
}

pub(crate) async fn pages<R, T>(
    caller: &Caller,
    function: Function,
    page: Page,
    args: impl Fn(Option<&str>, usize) -> Packed,
    view: impl Fn(R, &Blobs) -> Result<T, Malformed>,
) -> Result<Listed<T>, CallError>
where
    R: DeserializeOwned,
{
    let mut after = page.cursor;
    let mut items = Vec::new();
    for _ in 0..CALLS_MAX {
        let packed = args(after.as_deref(), page.max - items.len());
        let Answered { reply, blobs, .. } = caller.ask::<PageReply<R>>(function, packed).await?;
        for item in reply.items {
            items.push(view(item, &blobs).map_err(malformed(function))?);
        }
        after = reply.next.0;
        if after.is_none() || items.len() >= page.max {
            break;
        }
    }
    Ok(Listed { items, next: after, partial: false })
}

impl Answerable for ListQueues {
    async fn answer(self, caller: Caller) -> Result<Listed<QueueView>, CallError> {
        page::<Self, _>(&caller, (None, self.page)).await
    }
}

impl Answerable for ListLimits {
    async fn answer(self, caller: Caller) -> Result<Listed<LimitView>, CallError> {
        page::<Self, _>(&caller, (None, self.page)).await
    }
}

impl Answerable for ListPools {
    async fn answer(self, caller: Caller) -> Result<Listed<PoolView>, CallError> {
        page::<Self, _>(&caller, (None, self.page)).await
    }
}

impl Answerable for ListResources {
    async fn answer(self, caller: Caller) -> Result<Listed<ResourceView>, CallError> {
        let mut listed = page::<Self, _>(&caller, (Some(self.pool.as_str()), self.page)).await?;
        listed.cut_by_data();
        Ok(listed)
    }
}

impl Answerable for ListWorkers {
    async fn answer(self, caller: Caller) -> Result<Listed<WorkerView>, CallError> {
        page::<Self, _>(&caller, (None, self.page)).await
    }
}

impl Answerable for ListLeases {
    async fn answer(self, caller: Caller) -> Result<Listed<LeaseSummary>, CallError> {
        leases(&caller, self).await
    }
}

/// A page of live leases.
async fn leases(caller: &Caller, list: ListLeases) -> Result<Listed<LeaseSummary>, CallError> {
    let args = |after: Option<&str>, max: usize| pack(&ListLeasesArgs::of(&list, after, max));
    // A cursor that is no fence is one of another list: it begins anew.
    let cursor = list.page.cursor.clone().filter(|cursor| cursor.parse::<u64>().is_ok());
    let page = Page { max: list.page.max, cursor };
    pages(caller, Function::of::<ListLeases>(), page, args, LeasesReply::view).await
}

/// As what a look shows a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookAs {
    /// Whole, to be shown.
    Whole,
    /// As far as a filter needs it, with what tells whether that changes.
    Bare,
}

/// Which way jobs are looked at, and the row behind which a look goes on.
#[derive(Clone, Copy)]
pub(crate) enum From {
    /// Newest first.
    Below(Option<u64>),
    /// Oldest first; of a flow alone.
    Above(Option<u64>),
}

impl From {
    /// The same way, behind another row.
    pub(crate) fn behind(self, row: u64) -> Self {
        match self {
            From::Below(_) => From::Below(Some(row)),
            From::Above(_) => From::Above(Some(row)),
        }
    }

    /// The row behind which a look that begins with this one goes on.
    pub(crate) fn in_front_of(self, row: u64) -> u64 {
        match self {
            From::Below(_) => row.saturating_add(1),
            From::Above(_) => row.saturating_sub(1),
        }
    }
}

/// What one look at jobs found.
pub(crate) struct Looked {
    /// Those that match, in the order in which they were looked at.
    pub found: Vec<Stored>,
    /// What tells whether the content of each changes; of bare ones only.
    pub seen: Vec<String>,
    blobs: Blobs,
    /// The row behind which it goes on, if there are more.
    pub next: Option<u64>,
    /// How many were looked at.
    pub scanned: usize,
}

/// Looks at jobs until `max` match or `scan` were looked at.
pub(crate) async fn look(
    caller: &Caller,
    filter: &JobFilter,
    look_as: LookAs,
    from: From,
    (max, scan): (usize, usize),
) -> Result<Looked, CallError> {
    // Few may match by their content, so that as many are looked at as one call gives.
    let asked = if filter.asks_for_content() { scan.min(LIST_MAX) } else { max };
    let (oldest, row) = match from {
        From::Below(row) => (false, row),
        From::Above(row) => (true, row),
    };
    let args = ListJobsArgs {
        queue: filter.queue.as_ref().map(|queue| queue.as_str()),
        states: filter.states.iter().map(|state| state::letter(*state)).collect(),
        failed: filter.error.is_some(),
        ends: EndsArgs::new(filter.finished_after, filter.finished_before),
        origin: OriginArgs::of(filter),
        oldest,
        from: row,
        max: asked,
        scan: scan.min(LIST_MAX),
        seen: look_as == LookAs::Bare,
    };
    let Answered { reply, blobs, .. } = caller.ask::<ListedJobs>(LIST_JOBS, pack(&args)).await?;
    let ListedJobs { jobs, next, scanned, tail, seen } = reply;
    let scanned = scanned.max(jobs.len());
    let mut looked = Looked { found: Vec::new(), seen: Vec::new(), blobs, next: next.0, scanned };
    let all = jobs.len();
    let mut seen = seen.into_iter();
    for (at, job) in jobs.into_iter().enumerate() {
        let its = seen.next();
        if looked.found.len() == max {
            // It stopped inside of what came: this one is there, so there is a next page.
            looked.next = looked.found.last().map(|last| last.0);
            looked.scanned = at;
            return Ok(looked);
        }
        // What cannot be read has no kind, no label and no error that could be meant.
        if job.is_meant(&looked.blobs, filter).unwrap_or(false) {
            let last = at + 1 == all;
            looked.found.push(job);
            looked.seen.extend(its);
            if last && looked.found.len() == max && tail {
                // Older ones were looked at that do not match: they are the next page's.
                looked.next = looked.found.last().map(|last| last.0);
            }
        }
    }
    Ok(looked)
}

impl Answerable for ListJobs {
    async fn answer(self, caller: Caller) -> Result<Listed<JobView>, CallError> {
        jobs(&caller, self).await
    }
}

/// A page of jobs.
async fn jobs(caller: &Caller, list: ListJobs) -> Result<Listed<JobView>, CallError> {
    let mut before = list.page.row()?;
    let mut left = LIST_SCAN_MAX;
    let mut items = Vec::new();
    let mut bytes = 0;
    loop {
        let bounds = (list.page.max - items.len(), left);
        let from = From::Below(before);
        let mut looked = look(caller, &list.filter, LookAs::Whole, from, bounds).await?;
        let all = looked.found.len();
        for (at, job) in looked.found.into_iter().enumerate() {
            let seq = job.0;
            let view = match job.view(&looked.blobs, list.full) {
                Ok(view) => view,
                // The others are shown all the same.
                Err(Malformed(what)) => {
                    tracing::error!(
                        "job number {seq} is unreadable: {what} is not what was written"
                    );
                    continue;
                }
            };
            bytes += view.bytes();
            items.push(view);
            if bytes >= PAGE_BYTES_FULL {
                // What came behind it is the next page's.
                if at + 1 < all {
                    looked.next = Some(seq);
                }
                break;
            }
        }
        left = left.saturating_sub(looked.scanned);
        let Some(last) = looked.next else {
            return Ok(Listed { items, next: None, partial: false });
        };
        let full = items.len() >= list.page.max || bytes >= PAGE_BYTES_FULL;
        // A look that looked at nothing and has more would never end.
        if full || left == 0 || looked.scanned == 0 {
            return Ok(Listed { items, next: Some(last.to_string()), partial: !full });
        }
        before = Some(last);
    }
}

/// Where something goes on that is done in parts.
#[derive(Serialize)]
struct PartArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a str>,
}

impl Answerable for GetStats {
    async fn answer(self, caller: Caller) -> Result<Stats, CallError> {
        get_stats(&caller).await
    }
}

/// Totals of a namespace.
async fn get_stats(caller: &Caller) -> Result<Stats, CallError> {
    let mut stats = Stats::default();
    stats.store.kind = "redis".to_owned();
    stats.jobs = JobState::ALL.into_iter().map(|state| (state, 0)).collect();
    let mut after: Option<String> = None;
    loop {
        let args = PartArgs { max: Some(LIST_MAX), after: after.as_deref() };
        let mut part = caller.reply::<StatsReply>(GET_STATS, &args).await?;
        let next = part.next.0.take();
        part.add_to(&mut stats).map_err(malformed(GET_STATS))?;
        if next.is_none() || next == after {
            return Ok(stats);
        }
        after = next;
    }
}

impl Answerable for Audit {
    async fn answer(self, caller: Caller) -> Result<Audited, CallError> {
        audit(&caller).await
    }
}

/// Compares what is cached with what is held, part by part.
///
/// Others call between two parts, so what one look finds may be two halves of a change: only what a
/// second look finds as well is wrong.
async fn audit(caller: &Caller) -> Result<Audited, CallError> {
    let mut audit = audit_once(caller).await?;
    for _ in 0..LOOKS_MORE {
        if audit.faults.is_empty() {
            break;
        }
        let again = audit_once(caller).await?;
        audit.faults.retain(|fault| again.faults.contains(fault));
        audit.checked = again.checked;
    }
    audit.faults.truncate(FAULTS_SHOWN);
    audit.ok = audit.faults.is_empty();
    Ok(audit)
}

async fn audit_once(caller: &Caller) -> Result<Audited, CallError> {
    let mut audit = Audited::default();
    let mut after: Option<String> = None;
    loop {
        let args = PartArgs { max: None, after: after.as_deref() };
        let part = caller.reply::<AuditReply>(Function::of::<Audit>(), &args).await?;
        audit.checked += part.checked;
        let room = FAULTS_COMPARED.saturating_sub(audit.faults.len());
        audit.faults.extend(part.faults().take(room));
        if part.next.0.is_none() || part.next.0 == after {
            return Ok(audit);
        }
        after = part.next.0;
    }
}
