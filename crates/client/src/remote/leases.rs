//! Calls about leases over HTTP.

use serde::Serialize;
use tenure_core::bounds::ERROR_BYTES_MAX;
use tenure_core::job::Need;
use tenure_core::lease::{Ending, ExtendItem, ResourceVerdict, SettleItem, Verdict, Worker};
use tenure_core::names::{LimitName, PoolName, QueueName, RequestId, ResourceId};
use tenure_core::requests::{Ask, Extend, ForceLease, Lease, ListLeases, Settle};
use tenure_core::secret::Json;
use tenure_core::time::Span;

use super::ask::{Body, OverHttp, Query, Unsendable, json};
use super::body::Wait;
use super::jobs::JobBody;

impl OverHttp for ForceLease {}

impl OverHttp for Lease {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&LeaseCall::from(self))
    }
}

impl OverHttp for Extend {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&ExtendCall::from(self))
    }
}

impl OverHttp for Settle {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&SettleCall {
            settle: self.settle.iter().map(SettleOne::from).collect(),
            lease: self.lease.as_deref().map(LeaseCall::from),
        })
    }
}

impl OverHttp for ListLeases {
    fn query(&self, query: &mut Query) {
        query.with("queue", self.queue.as_ref().map(|name| name.as_str()));
        query.with("limit", self.limit.as_ref().map(|name| name.as_str()));
        query.with("pool", self.pool.as_ref().map(|name| name.as_str()));
        query.with("worker", self.worker.as_deref());
        query.page(&self.page);
    }
}

#[derive(Serialize)]
struct LeaseCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<&'a [QueueName]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<&'a [Need]>,
    wait: Span,
    ttl: Span,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<WorkerBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a RequestId>,
}

#[derive(Serialize)]
struct WorkerBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
}

impl<'a> From<&'a Lease> for LeaseCall<'a> {
    fn from(lease: &'a Lease) -> Self {
        let (queues, max, needs) = match &lease.ask {
            Ask::Jobs { queues, max } => (Some(queues.as_slice()), Some(*max), None),
            Ask::Needs(needs) => (None, None, Some(needs.as_slice())),
        };
        let worker = &lease.worker;
        LeaseCall {
            queues,
            max,
            needs,
            wait: lease.wait,
            ttl: lease.ttl,
            worker: (*worker != Worker::default()).then(|| WorkerBody {
                id: worker.id.as_ref().map(|id| id.as_str()),
                host: worker.host.as_deref(),
                pid: worker.pid,
                version: worker.version.as_deref(),
            }),
            request_id: lease.request_id.as_ref(),
            place: lease.place.as_ref(),
        }
    }
}

#[derive(Serialize)]
struct ExtendCall<'a> {
    leases: Vec<ExtendOne<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<Span>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ExtendOne<'a> {
    Id(&'a str),
    Reports { lease: &'a str, progress: &'a Json },
}

impl<'a> From<&'a Extend> for ExtendCall<'a> {
    fn from(extend: &'a Extend) -> Self {
        let one = |item: &'a ExtendItem| match &item.progress {
            None => ExtendOne::Id(&item.lease),
            Some(progress) => ExtendOne::Reports { lease: &item.lease, progress },
        };
        ExtendCall { leases: extend.leases.iter().map(one).collect(), ttl: extend.ttl }
    }
}

#[derive(Serialize)]
struct SettleCall<'a> {
    settle: Vec<SettleOne<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<LeaseCall<'a>>,
}

/// One lease to settle.
#[derive(Serialize, Default)]
struct SettleOne<'a> {
    lease: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_in: Option<Span>,
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not")]
    last: bool,
    #[serde(flatten)]
    later: Wait,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reset: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_in: Option<Span>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<VerdictBody<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<LimitBody<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    push: Vec<JobBody<'a>>,
}

#[derive(Serialize)]
struct VerdictBody<'a> {
    pool: &'a PoolName,
    id: &'a ResourceId,
    verdict: &'static str,
    #[serde(flatten)]
    later: Wait,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct LimitBody<'a> {
    limit: &'a LimitName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spent: Option<u32>,
}

impl<'a> From<&'a SettleItem> for SettleOne<'a> {
    fn from(item: &'a SettleItem) -> Self {
        let mut one = SettleOne {
            lease: &item.lease,
            outcome: item.ending.outcome().as_str(),
            progress: item.progress.as_ref(),
            next_in: item.next_in,
            push: item.push.iter().map(JobBody::from).collect(),
            ..SettleOne::default()
        };
        match &item.ending {
            Ending::Succeeded { result } => one.result = result.as_ref(),
            Ending::Failed { error, retry_in, last } => {
                one.error = Some(tail(error));
                one.retry_in = *retry_in;
                one.last = *last;
            }
            Ending::Snoozed { later, reset } => {
                one.later = Wait::from(*later);
                one.reset = *reset;
            }
            Ending::Released => {}
        }
        one.resources = item.resources.iter().map(VerdictBody::from).collect();
        one.limits = item
            .limits
            .iter()
            .map(|said| LimitBody { limit: &said.limit, pause: said.pause, spent: said.spent })
            .collect();
        one
    }
}

impl<'a> From<&'a ResourceVerdict> for VerdictBody<'a> {
    fn from(said: &'a ResourceVerdict) -> Self {
        let (verdict, later, reason) = match &said.verdict {
            Verdict::Ok => ("ok", None, None),
            Verdict::Cool(later) => ("cool", Some(*later), None),
            Verdict::Ban { reason } => ("ban", None, reason.as_deref()),
        };
        VerdictBody { pool: &said.pool, id: &said.id, verdict, later: later.into(), reason }
    }
}

/// The end of an error text, cut as the server would cut it: the rest need not be sent.
fn tail(error: &str) -> &str {
    let mut at = error.len().saturating_sub(ERROR_BYTES_MAX);
    while !error.is_char_boundary(at) {
        at += 1;
    }
    &error[at..]
}
