//! Arguments of the calls about leases, and of the tick.

use serde::Serialize;
use tenure_core::bounds::ERROR_BYTES_MAX;
use tenure_core::lease::{
    Ending, ExtendItem, Later, LimitVerdict, ResourceVerdict, SettleItem, Verdict, Worker,
};
use tenure_core::machine::parse_lease_id;
use tenure_core::names::{LimitName, PoolName, QueueName, RequestId};
use tenure_core::requests::{Ask, Extend, Lease, ListLeases};

use super::items::{NeedArg, OrFalse, RetryArg, moment, needs, span};
use super::jobs::{NewJobArg, SpecArg, Specs};

/// A lease that is none: nobody was ever granted it.
const NO_LEASE: (u64, u64) = (0, 0);

/// The fence and the row number of a lease; of one that never was for a text that is no lease's id,
/// so that the answer says that it is lost.
fn parsed(lease: &str) -> (u64, u64) {
    let exact = |(fence, seq): (u64, u64)| fence < super::FOREVER_US && seq < super::FOREVER_US;
    parse_lease_id(lease).filter(|parts| exact(*parts)).unwrap_or(NO_LEASE)
}

#[derive(Serialize)]
struct WorkerArg<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
}

impl<'a> WorkerArg<'a> {
    fn of(worker: &'a Worker) -> Self {
        WorkerArg {
            id: worker.id.as_ref().map(|id| id.as_str()),
            host: worker.host.as_deref(),
            pid: worker.pid,
            version: worker.version.as_deref(),
        }
    }
}

/// Which call of a wait this is.
pub(crate) struct Wait<'a> {
    /// How long it waits from now on, in µs.
    pub left: u64,
    /// The name of the waiting call.
    pub taker: &'a str,
    /// This process.
    pub proc: &'a str,
    /// The call was made before, under the same name.
    pub again: bool,
    /// This store forgets nothing.
    pub never: bool,
}

/// Of `lease`.
#[derive(Serialize)]
pub(crate) struct LeaseArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<&'a [QueueName]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Vec<NeedArg<'a>>>,
    wait: u64,
    ttl: u64,
    worker: WorkerArg<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rq: Option<&'a RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a RequestId>,
    taker: &'a str,
    proc: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
    /// This store forgets nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    never: bool,
}

impl<'a> LeaseArgs<'a> {
    pub(crate) fn of(lease: &'a Lease, wait: &Wait<'a>) -> Self {
        let (queues, max, asked) = match &lease.ask {
            Ask::Jobs { queues, max } => (Some(queues.as_slice()), Some(*max), None),
            Ask::Needs(asked) => (None, None, Some(needs(asked))),
        };
        LeaseArgs {
            queues,
            max,
            needs: asked,
            wait: wait.left,
            ttl: span(lease.ttl),
            worker: WorkerArg::of(&lease.worker),
            rq: lease.request_id.as_ref(),
            place: lease.place.as_ref(),
            taker: wait.taker,
            proc: wait.proc,
            again: wait.again,
            never: wait.never,
        }
    }
}

/// Of `drop_wait`.
#[derive(Serialize)]
pub(crate) struct DropWaitArgs<'a> {
    pub taker: &'a str,
}

/// A lease, and what its holder reports.
struct Kept<'a>(&'a ExtendItem);

impl Serialize for Kept<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let (fence, seq) = parsed(&self.0.lease);
        match &self.0.progress {
            Some(progress) => (fence, seq, progress.text()).serialize(s),
            None => (fence, seq).serialize(s),
        }
    }
}

/// Of `extend`.
#[derive(Serialize)]
pub(crate) struct ExtendArgs<'a> {
    leases: Vec<Kept<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
}

impl<'a> ExtendArgs<'a> {
    pub(crate) fn of(extend: &'a Extend) -> Self {
        let leases = extend.leases.iter().map(Kept).collect();
        ExtendArgs { leases, ttl: extend.ttl.map(span) }
    }
}

/// `[pool, id, verdict, for, until, reason]`.
struct ResourceSaid<'a>(&'a ResourceVerdict);

impl Serialize for ResourceSaid<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let (word, lasts, until, reason) = match &self.0.verdict {
            Verdict::Ok => ("o", None, None, None),
            Verdict::Cool(Later::For(lasts)) => ("c", Some(span(*lasts)), None, None),
            Verdict::Cool(Later::Until(at)) => ("c", None, Some(moment(*at)), None),
            Verdict::Ban { reason } => ("b", None, None, reason.as_deref()),
        };
        let lasts = OrFalse(lasts);
        (&self.0.pool, &self.0.id, word, lasts, OrFalse(until), OrFalse(reason)).serialize(s)
    }
}

/// `[limit, pause, spent]`.
struct LimitSaid<'a>(&'a LimitVerdict);

impl Serialize for LimitSaid<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        (&self.0.limit, OrFalse(self.0.pause.map(span)), OrFalse(self.0.spent)).serialize(s)
    }
}

#[derive(Default, Serialize)]
struct SettleArg<'a> {
    f: u64,
    s: u64,
    o: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_in: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    last: bool,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    snooze: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<ResourceSaid<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<LimitSaid<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    push: Vec<NewJobArg<'a>>,
}

/// The end of a text, since that is where the cause stands.
fn last_bytes(text: &str) -> &str {
    let mut from = text.len().saturating_sub(ERROR_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

impl<'a> SettleArg<'a> {
    fn of(item: &'a SettleItem, specs: &mut Specs<'a>) -> Self {
        let (f, s) = parsed(&item.lease);
        let mut arg = SettleArg {
            f,
            s,
            resources: item.resources.iter().map(ResourceSaid).collect(),
            limits: item.limits.iter().map(LimitSaid).collect(),
            push: specs.jobs(&item.push),
            ..SettleArg::default()
        };
        match &item.ending {
            Ending::Succeeded { result } => {
                arg.o = "S";
                arg.result = result.as_ref().map(|result| result.text());
            }
            Ending::Failed { error, retry_in, last } => {
                arg.o = "F";
                arg.error = Some(last_bytes(error));
                arg.retry_in = retry_in.map(span);
                arg.last = *last;
            }
            Ending::Snoozed { later } => {
                arg.o = "Z";
                match later {
                    Later::For(lasts) => arg.snooze = Some(span(*lasts)),
                    Later::Until(at) => arg.until = Some(moment(*at)),
                }
            }
            Ending::Released => arg.o = "R",
        }
        arg
    }
}

/// Of `settle`.
#[derive(Serialize)]
pub(crate) struct SettleArgs<'a> {
    shapes: Vec<SpecArg<'a>>,
    items: Vec<SettleArg<'a>>,
    dr: RetryArg<'a>,
}

impl<'a> SettleArgs<'a> {
    pub(crate) fn of(items: &'a [SettleItem], default: &'a tenure_core::job::Retry) -> Self {
        let mut specs = Specs::default();
        let items = items.iter().map(|item| SettleArg::of(item, &mut specs)).collect();
        SettleArgs { shapes: specs.args(), items, dr: RetryArg(default) }
    }
}

/// Of `undo`.
#[derive(Serialize)]
pub(crate) struct UndoArgs {
    pub leases: Vec<(u64, u64)>,
}

impl UndoArgs {
    /// Of those of these texts that are ids of leases.
    pub(crate) fn of(leases: &[String]) -> Self {
        UndoArgs { leases: leases.iter().filter_map(|id| parse_lease_id(id)).collect() }
    }
}

/// Of `force`.
#[derive(Serialize)]
pub(crate) struct ForceArgs<'a> {
    f: u64,
    s: u64,
    id: &'a str,
}

impl<'a> ForceArgs<'a> {
    pub(crate) fn of(lease: &'a str) -> Self {
        let (f, s) = parsed(lease);
        ForceArgs { f, s, id: lease }
    }
}

/// Of `list_leases`.
#[derive(Serialize)]
pub(crate) struct ListLeasesArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a QueueName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'a LimitName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'a PoolName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a str>,
    max: usize,
}

impl<'a> ListLeasesArgs<'a> {
    pub(crate) fn of(list: &'a ListLeases, after: Option<&'a str>, max: usize) -> Self {
        ListLeasesArgs {
            queue: list.queue.as_ref(),
            limit: list.limit.as_ref(),
            pool: list.pool.as_ref(),
            worker: list.worker.as_deref(),
            after,
            max,
        }
    }
}

/// Of `tick`.
#[derive(Serialize)]
pub(crate) struct TickArgs<'a> {
    pub proc: &'a str,
    pub waiters: usize,
    /// This store forgets nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never: bool,
}
