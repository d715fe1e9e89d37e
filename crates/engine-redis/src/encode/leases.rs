//! Arguments of the calls about leases, and of the tick.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tenure_core::decode::last_bytes;
use tenure_core::flow::Kinship;
use tenure_core::lease::{
    Ending, ExtendItem, Later, LimitVerdict, ResourceVerdict, SettleItem, Verdict, Worker,
};
use tenure_core::names::{LimitName, PoolName, QueueName, RequestId};
use tenure_core::requests::{Ask, Extend, Lease, ListLeases};
use tenure_core::secret::Json;
use tenure_core::time::Span;

use super::flows::KinArg;
use super::items::{NeedArg, OrFalse, RetryArg, moment, needs, span};
use super::jobs::{NewJobArg, SpecArg, Specs};
use crate::alphabet::{outcome, verdict};
use crate::lease_id::{Claim, Head, Held, unsigned_head};

/// The highest number that the server's numbers hold exactly.
const EXACT_MAX: u64 = 1 << 53;
/// A lease that is none: nobody was ever granted it.
const NO_LEASE: (u64, u64) = (0, 0);

/// The fence and the row number of a lease; of one that never was for a text that is no lease's id,
/// so that the answer says that it is lost.
fn named(head: Option<Head>) -> (u64, u64) {
    head.map_or(NO_LEASE, |head| (head.fence, head.seq))
}

/// What this process knows of the namespace, in case the store has forgotten it: `[this store forgets
/// nothing, the name of the namespace's key, the longest ttl lately, the epoch of its store, how long ago it
/// was last heard of]`.
#[derive(Clone, Debug)]
pub(crate) struct Knows {
    pub never: bool,
    pub kid: Option<String>,
    /// In µs.
    pub ttl: u64,
    pub epoch: Option<Arc<str>>,
    /// In µs.
    pub age: u64,
}

impl Serialize for Knows {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let (kid, epoch) = (OrFalse(self.kid.as_deref()), OrFalse(self.epoch.as_deref()));
        (self.never, kid, self.ttl, epoch, self.age).serialize(s)
    }
}

/// Of `key`: one that is taken if the namespace has none.
#[derive(Serialize)]
pub(crate) struct KeyArgs<'a> {
    pub key: &'a str,
    pub kid: &'a str,
    pub kn: &'a Knows,
}

/// What a lease is by its own id: `[ttl, timeout, holder, digest of its job's id, limits, resources]`.
struct ClaimArg<'a>(&'a Claim);

impl Serialize for ClaimArg<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Claim { holder, job, held: Held(ttl, timeout, limits, resources), .. } = self.0;
        let (holder, job) = (OrFalse(holder.as_deref()), OrFalse(job.as_deref()));
        (ttl, timeout, holder, job, limits, resources).serialize(s)
    }
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
    /// How many parcels this process has read.
    pub read: u64,
    /// The call was made before, under the same name.
    pub again: bool,
    /// How many leases it was granted before: it goes on with those that are left.
    pub had: usize,
    /// The bytes of those, as the reply told them.
    pub bytes: u64,
    pub knows: &'a Knows,
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
    rq: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a RequestId>,
    taker: &'a str,
    proc: &'a str,
    read: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    adds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// None in a call that says it for another part too.
    #[serde(skip_serializing_if = "Option::is_none")]
    kn: Option<&'a Knows>,
}

/// The request id of a call. One for jobs that has none is told again by its own name: what it is granted while it
/// waits is remembered under that.
fn request<'a>(lease: &'a Lease, taker: &'a str) -> Option<&'a str> {
    let waits_for_jobs = matches!(lease.ask, Ask::Jobs { .. }) && lease.wait > Span::ZERO;
    let named = lease.request_id.as_ref().map(RequestId::as_str);
    named.or(waits_for_jobs.then_some(taker))
}

impl<'a> LeaseArgs<'a> {
    pub(crate) fn of(lease: &'a Lease, wait: &Wait<'a>) -> Self {
        let (queues, max, asked) = match &lease.ask {
            Ask::Jobs { queues, max } => {
                (Some(queues.as_slice()), Some(max.saturating_sub(wait.had)), None)
            }
            Ask::Needs(asked) => (None, None, Some(needs(asked))),
        };
        LeaseArgs {
            queues,
            max,
            needs: asked,
            wait: wait.left,
            ttl: span(lease.ttl),
            worker: WorkerArg::of(&lease.worker),
            rq: request(lease, wait.taker),
            place: lease.place.as_ref(),
            taker: wait.taker,
            proc: wait.proc,
            read: wait.read,
            again: wait.again,
            adds: wait.had > 0,
            bytes: (wait.had > 0).then_some(wait.bytes),
            kn: Some(wait.knows),
        }
    }
}

/// Of `drop_wait`.
#[derive(Serialize)]
pub(crate) struct DropWaitArgs<'a> {
    taker: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rq: Option<&'a str>,
}

impl<'a> DropWaitArgs<'a> {
    pub(crate) fn of(lease: &'a Lease, taker: &'a str) -> Self {
        DropWaitArgs { taker, rq: request(lease, taker) }
    }
}

/// A lease call whose caller is gone: its own name, and the request id under which it is granted something.
#[derive(Serialize)]
pub(crate) struct LeftCall(String, OrFalse<String>);

impl LeftCall {
    pub(crate) fn of(lease: &Lease, taker: &str) -> Self {
        LeftCall(taker.to_owned(), OrFalse(request(lease, taker).map(str::to_owned)))
    }
}

/// A call for a result that waits no more: for the end of what, its process, and the number of its registration.
#[derive(Serialize)]
pub(crate) struct LeftAwait(pub String, pub String, pub u64);

/// The arguments of `leave`, for one call of it.
#[derive(Serialize)]
pub(crate) struct LeaveArgs {
    pub calls: Vec<LeftCall>,
    pub awaits: Vec<LeftAwait>,
}

/// Of `look_awaited`: names of what is waited for.
#[derive(Serialize)]
pub(crate) struct AwaitedArgs<'a> {
    pub names: &'a [String],
}

/// What a holder reports; JSON's `null` is no report.
fn report(progress: Option<&Json>) -> Option<&str> {
    progress.filter(|progress| !progress.is_null()).map(Json::text)
}

/// A lease, what its holder reports, and what it claims if the store knows nothing of it.
struct Kept<'a>((u64, u64), &'a ExtendItem, Option<ClaimArg<'a>>);

impl Serialize for Kept<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Kept((fence, seq), item, claim) = self;
        match (report(item.progress.as_ref()), claim) {
            (None, None) => (fence, seq).serialize(s),
            (Some(progress), None) => (fence, seq, progress).serialize(s),
            (progress, Some(claim)) => (fence, seq, OrFalse(progress), claim).serialize(s),
        }
    }
}

/// Of `extend`.
#[derive(Serialize)]
pub(crate) struct ExtendArgs<'a> {
    leases: Vec<Kept<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
    kn: &'a Knows,
}

impl<'a> ExtendArgs<'a> {
    pub(crate) fn of(extend: &'a Extend, heads: &[Option<Head>], kn: &'a Knows) -> Self {
        let leases = extend.leases.iter().zip(heads);
        let leases = leases.map(|(item, head)| Kept(named(*head), item, None)).collect();
        ExtendArgs { leases, ttl: extend.ttl.map(span), kn }
    }

    /// The same for some of them, by their places, with what they claim.
    pub(crate) fn claiming(extend: &'a Extend, all: &'a [(usize, Claim)], kn: &'a Knows) -> Self {
        let kept = |(at, claim): &'a (usize, Claim)| {
            let item = extend.leases.get(*at)?;
            Some(Kept(named(Some(claim.head)), item, Some(ClaimArg(claim))))
        };
        ExtendArgs { leases: all.iter().filter_map(kept).collect(), ttl: extend.ttl.map(span), kn }
    }
}

/// `[pool, id, verdict, for, until, reason]`.
struct ResourceSaid<'a>(&'a ResourceVerdict);

impl Serialize for ResourceSaid<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let (word, lasts, until, reason) = match &self.0.verdict {
            Verdict::Ok => (verdict::fine, None, None, None),
            Verdict::Cool(Later::For(lasts)) => (verdict::cool, Some(span(*lasts)), None, None),
            Verdict::Cool(Later::Until(at)) => (verdict::cool, None, Some(moment(*at)), None),
            Verdict::Ban { reason } => (verdict::ban, None, None, reason.as_deref()),
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
pub(crate) struct SettleArg<'a> {
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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reset: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_in: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<ResourceSaid<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<LimitSaid<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    push: Vec<NewJobArg<'a>>,
    /// Who of these waits for whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    kin: Option<KinArg<'a>>,
    /// What it claims if the store knows nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    c: Option<ClaimArg<'a>>,
}

impl<'a> SettleArg<'a> {
    fn of(
        (item, kinship): (&'a SettleItem, Option<&'a Kinship>),
        (f, s): (u64, u64),
        specs: &mut Specs<'a>,
    ) -> Self {
        let mut arg = SettleArg {
            f,
            s,
            progress: report(item.progress.as_ref()),
            next_in: item.next_in.map(span),
            resources: item.resources.iter().map(ResourceSaid).collect(),
            limits: item.limits.iter().map(LimitSaid).collect(),
            push: specs.jobs(&item.push),
            kin: kinship.and_then(KinArg::of),
            ..SettleArg::default()
        };
        match &item.ending {
            Ending::Succeeded { result } => {
                arg.o = outcome::succeeded;
                arg.result = result.as_ref().map(|result| result.text());
            }
            Ending::Failed { error, retry_in, last } => {
                arg.o = outcome::failed;
                arg.error = Some(last_bytes(error));
                arg.retry_in = retry_in.map(span);
                arg.last = *last;
            }
            Ending::Snoozed { later, reset } => {
                arg.reset = *reset;
                arg.o = outcome::snoozed;
                match later {
                    Later::For(lasts) => arg.snooze = Some(span(*lasts)),
                    Later::Until(at) => arg.until = Some(moment(*at)),
                }
            }
            Ending::Released => arg.o = outcome::released,
        }
        arg
    }
}

/// Of `settle`.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum SettleArgs<'a> {
    /// All simply succeeded: fences and row numbers, and how many have one of each after the other; and the
    /// results of those that have one, by their place from 1 on.
    Plain {
        runs: Vec<u64>,
        /// The runs are in the order of their fences, and none has a part of another.
        ordered: bool,
        /// Where each of them stands in the call, if that is elsewhere ([`places`]): those that other jobs wait for tell
        /// their ends in that order.
        #[serde(skip_serializing_if = "Option::is_none")]
        places: Option<String>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        results: BTreeMap<usize, &'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        kn: Option<&'a Knows>,
    },
    /// Anything. `claims`: items claim what they are.
    Items {
        shapes: Vec<SpecArg<'a>>,
        items: Vec<SettleArg<'a>>,
        dr: RetryArg<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        claims: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        kn: Option<&'a Knows>,
    },
}

/// The result of what simply succeeded; `None` for what ends in any other way, or says more.
fn plain_result(item: &SettleItem) -> Option<Option<&str>> {
    let says_more = report(item.progress.as_ref()).is_some()
        || item.next_in.is_some()
        || !(item.resources.is_empty() && item.limits.is_empty() && item.push.is_empty());
    match &item.ending {
        Ending::Succeeded { result } if !says_more => {
            Some(result.as_ref().map(|result| result.text()))
        }
        _ => None,
    }
}

/// A place is two characters, so that the library need not look at them before it knows that it needs them.
const PLACE_DIGIT: usize = 64;

/// Where each stands in the call, as two characters from `'0'` on; none if all stand as they are sent.
fn places(order: &[usize]) -> Option<String> {
    if order.is_sorted() {
        return None;
    }
    let digit = |n: usize| char::from(b'0' + u8::try_from(n).unwrap_or(PLACE_DIGIT as u8 - 1));
    Some(order.iter().flat_map(|at| [digit(at / PLACE_DIGIT), digit(at % PLACE_DIGIT)]).collect())
}

/// `[fence, row number, how many, …]`: of those with one fence and one row number after the other.
fn runs(names: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
    let mut runs: Vec<u64> = Vec::new();
    for (fence, seq) in names {
        if let [.., first, from, many] = runs.as_mut_slice()
            && *from > 0
            && (*first + *many, *from + *many) == (fence, seq)
        {
            *many += 1;
        } else {
            runs.extend([fence, seq, 1]);
        }
    }
    runs
}

impl<'a> SettleArgs<'a> {
    /// And the order in which they are sent, if it is another: the place of each in the call. `kinships`: of what each of
    /// them pushes.
    pub(crate) fn of(
        items: &'a [SettleItem],
        kinships: &'a [Kinship],
        heads: &[Option<Head>],
        default: &'a tenure_core::job::Retry,
        kn: &'a Knows,
    ) -> (Self, Option<Vec<usize>>) {
        let kn = Some(kn);
        let name = |at: usize| named(heads.get(at).copied().flatten());
        let mut plain = Vec::with_capacity(items.len());
        let mut results = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            let Some(result) = plain_result(item) else {
                let mut specs = Specs::default();
                let items = items.iter().enumerate();
                let items = items.map(|(at, item)| {
                    SettleArg::of((item, kinships.get(at)), name(at), &mut specs)
                });
                let (items, dr) = (items.collect(), RetryArg(default));
                let args = SettleArgs::Items { shapes: specs.args(), items, dr, claims: false, kn };
                return (args, None);
            };
            plain.push(name(at));
            if let Some(result) = result {
                results.insert(at + 1, result);
            }
        }
        if !results.is_empty() {
            let runs = plain.iter().flat_map(|(fence, seq)| [*fence, *seq, 1]).collect();
            return (SettleArgs::Plain { runs, ordered: false, places: None, results, kn }, None);
        }
        // What was granted together is settled together, whatever the order in which it ended.
        let mut order: Vec<usize> = (0..plain.len()).collect();
        order.sort_by_key(|at| plain[*at]);
        let runs = runs(order.iter().map(|at| plain[*at]));
        let ordered = runs.iter().skip(1).step_by(3).all(|seq| *seq > 0)
            && order.windows(2).all(|two| plain[two[0]].0 < plain[two[1]].0);
        let places = places(&order);
        (SettleArgs::Plain { runs, ordered, places, results, kn }, Some(order))
    }

    /// The same for some of them, by their places, with what they claim.
    pub(crate) fn claiming(
        items: &'a [SettleItem],
        kinships: &'a [Kinship],
        all: &'a [(usize, Claim)],
        default: &'a tenure_core::job::Retry,
        kn: &'a Knows,
    ) -> Self {
        let mut specs = Specs::default();
        let arg = |(at, claim): &'a (usize, Claim)| {
            let item = (items.get(*at)?, kinships.get(*at));
            let arg = SettleArg::of(item, named(Some(claim.head)), &mut specs);
            Some(SettleArg { c: Some(ClaimArg(claim)), ..arg })
        };
        let items = all.iter().filter_map(arg).collect();
        let (shapes, dr) = (specs.args(), RetryArg(default));
        SettleArgs::Items { shapes, items, dr, claims: true, kn: Some(kn) }
    }
}

/// Of `settle_and_lease`.
#[derive(Serialize)]
pub(crate) struct SettleAndLeaseArgs<'a> {
    settle: SettleArgs<'a>,
    lease: LeaseArgs<'a>,
    kn: &'a Knows,
}

impl<'a> SettleAndLeaseArgs<'a> {
    pub(crate) fn of(
        mut settle: SettleArgs<'a>,
        mut lease: LeaseArgs<'a>,
        knows: &'a Knows,
    ) -> Self {
        match &mut settle {
            SettleArgs::Plain { kn, .. } | SettleArgs::Items { kn, .. } => *kn = None,
        }
        lease.kn = None;
        SettleAndLeaseArgs { settle, lease, kn: knows }
    }
}

/// Of `undo`.
#[derive(Serialize)]
pub(crate) struct UndoArgs {
    pub leases: Vec<(u64, u64)>,
}

impl UndoArgs {
    /// Of those of these texts that have the form of ids: what is undone was granted here a moment ago.
    pub(crate) fn of(leases: &[String]) -> Self {
        let name = |id: &String| Some(named(Some(unsigned_head(id)?)));
        UndoArgs { leases: leases.iter().filter_map(name).collect() }
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
    pub(crate) fn of(lease: &'a str, head: Option<Head>) -> Self {
        let (f, s) = named(head);
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
    /// By which names this process reads gauges.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub readers: &'a [String],
    /// How many parcels this process has read.
    pub read: u64,
    pub kn: &'a Knows,
    /// `(since, sure)`, as `lua/machine/sight.lua` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sight: Option<(u64, u64)>,
    /// By which zone data this process plans.
    pub zones: &'static str,
}

/// What an operator says of a namespace, as every call carries it: `[patience in µs, bytes of finished jobs,
/// whether this process says it for the first time, bytes of events]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpaceArg {
    pub patience: Option<Span>,
    pub retain_bytes: Option<u64>,
    pub events_bytes: Option<u64>,
    /// Stays true until a call that carried it was answered that it counted.
    pub first: bool,
}

impl Serialize for SpaceArg {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let exact = |bytes: Option<u64>| OrFalse(bytes.map(|bytes| bytes.min(EXACT_MAX)));
        let patience = OrFalse(self.patience.map(Span::us));
        (patience, exact(self.retain_bytes), self.first, exact(self.events_bytes)).serialize(s)
    }
}
