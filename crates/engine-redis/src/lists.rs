//! Lists: a page is asked for until it is full, since one call of the library does bounded work.
//!
//! Jobs are found by queue and state on the server; by kind and label here, since no rule and no index
//! knows these. A list looks at no more than 10,000 jobs, calls on many go on until they have enough.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_core::bounds::{ITEMS_MAX, LIST_MAX, LIST_SCAN_MAX, PAGE_BYTES_FULL};
use tenure_core::job::{JobState, JobView};
use tenure_core::lease::LeaseSummary;
use tenure_core::requests::{
    Audit, Audited, BulkChange, CancelJobs, DoneMany, GetStats, JobFilter, ListJobs, ListLeases,
    ListLimits, ListPools, ListQueues, ListResources, ListWorkers, Listed, Operation, Page,
    RetryJobs, Stats, WorkerView,
};
use tenure_core::settings::{LimitView, PoolView, QueueView, ResourceView};
use tenure_engine::CallError;

use crate::alphabet::state;
use crate::answer::Answerable;
use crate::call::{Caller, malformed};
use crate::decode::{
    Answered, AuditReply, Blobs, Count, FromWire, LeasesReply, ListedJobs, Malformed, PageReply,
    StatsReply, Stored,
};
use crate::encode::{ListJobsArgs, ListLeasesArgs, ManyArgs, Packed, PageArgs, pack};
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
const CALLS_MAX: usize = 1_000;

/// A page of what is listed by name.
async fn page<O, T>(
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

async fn pages<R, T>(
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

/// What one look at jobs found.
struct Looked {
    /// Those that match, newest first.
    found: Vec<Stored>,
    blobs: Blobs,
    /// Where it goes on, if there are older ones.
    next: Option<u64>,
    /// How many were looked at.
    scanned: usize,
}

/// Looks at jobs below `before`, newest first, until `max` match or `scan` were looked at.
async fn look(
    caller: &Caller,
    filter: &JobFilter,
    before: Option<u64>,
    (max, scan): (usize, usize),
) -> Result<Looked, CallError> {
    let by_content = filter.kind.is_some() || filter.label.is_some();
    // Few may match by their content, so that as many are looked at as one call gives.
    let asked = if by_content { scan.min(LIST_MAX) } else { max };
    let args = ListJobsArgs {
        queue: filter.queue.as_ref().map(|queue| queue.as_str()),
        states: filter.states.iter().map(|state| state::letter(*state)).collect(),
        before,
        max: asked,
        scan: scan.min(LIST_MAX),
    };
    let Answered { reply, blobs, .. } = caller.ask::<ListedJobs>(LIST_JOBS, pack(&args)).await?;
    let ListedJobs { jobs, next, scanned, tail } = reply;
    let mut looked =
        Looked { found: Vec::new(), blobs, next: next.0, scanned: scanned.max(jobs.len()) };
    let all = jobs.len();
    for (at, job) in jobs.into_iter().enumerate() {
        if looked.found.len() == max {
            // It stopped inside of what came: this one is there, so there is a next page.
            looked.next = looked.found.last().map(|last| last.0);
            looked.scanned = at;
            return Ok(looked);
        }
        let label = filter.label.as_ref();
        let meant = job.is_meant(&looked.blobs, filter.kind.as_deref(), label);
        // What cannot be read has no kind and no label that could be meant.
        if meant.unwrap_or(false) {
            let last = at + 1 == all;
            looked.found.push(job);
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
        let mut looked = look(caller, &list.filter, before, bounds).await?;
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

/// So many jobs are cancelled or retried by one step of the store: each may be the last of its queue, its lane
/// and its limits, and takes up to 80 us then.
const CHANGED_AT_ONCE: usize = 250;

impl Answerable for CancelJobs {
    async fn answer(self, caller: Caller) -> Result<DoneMany, CallError> {
        many(&caller, BulkChange::Cancel, self.filter, self.max).await
    }
}

impl Answerable for RetryJobs {
    async fn answer(self, caller: Caller) -> Result<DoneMany, CallError> {
        many(&caller, BulkChange::Retry, self.filter, self.max).await
    }
}

/// Cancels or retries up to `max` jobs that match.
async fn many(
    caller: &Caller,
    change: BulkChange,
    mut filter: JobFilter,
    max: usize,
) -> Result<DoneMany, CallError> {
    change.narrow(&mut filter);
    let function = match change {
        BulkChange::Cancel => Function::of::<CancelJobs>(),
        BulkChange::Retry => Function::of::<RetryJobs>(),
    };
    let mut done = 0u64;
    let mut before = None;
    while !filter.states.is_empty() {
        let wanted = max.saturating_sub(done as usize).min(ITEMS_MAX);
        let looked = look(caller, &filter, before, (wanted, LIST_SCAN_MAX)).await?;
        let seqs: Vec<u64> = looked.found.iter().map(|job| job.0).collect();
        for seqs in seqs.chunks(CHANGED_AT_ONCE) {
            done += caller.reply::<Count>(function, &ManyArgs { seqs }).await?;
        }
        let Some(last) = looked.next.filter(|_| looked.scanned > 0) else { break };
        if done >= max as u64 {
            return Ok(DoneMany { done, more: true });
        }
        before = Some(last);
    }
    Ok(DoneMany { done, more: false })
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
