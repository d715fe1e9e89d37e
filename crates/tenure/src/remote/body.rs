//! The JSON body of every request that has one, field by field as CONTRACT.md fixes it.
//!
//! What is at its default is left out where the contract says that absent means the same; nothing
//! is checked here, the other side does that.

use serde::Serialize;
use tenure_core::bounds::ERROR_BYTES_MAX;
use tenure_core::job::{Labels, Need, NewJob, Retry, Unique, When};
use tenure_core::lease::{Ending, ExtendItem, Later, SettleItem, Verdict, Worker};
use tenure_core::names::{
    Group, JobId, LimitName, PoolName, QueueName, RequestId, ResourceId, Tag,
};
use tenure_core::requests::{Ask, Extend, JobFilter, Lease};
use tenure_core::secret::Json;
use tenure_core::settings::NewResource;
use tenure_core::time::{Moment, Span};

/// A job, as it is pushed.
#[derive(Serialize)]
pub struct Job<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a JobId>,
    queue: &'a QueueName,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Json::is_null")]
    payload: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Span>,
    #[serde(skip_serializing_if = "is_zero")]
    priority: i8,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<&'a [Need]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique: Option<&'a Unique>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<&'a Retry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retain: Option<Span>,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    labels: &'a Labels,
}

fn is_zero(n: &i8) -> bool {
    *n == 0
}

impl<'a> From<&'a NewJob> for Job<'a> {
    fn from(job: &'a NewJob) -> Self {
        let (run_at, delay) = match job.when {
            When::Now => (None, None),
            When::At(at) => (Some(at), None),
            When::In(span) => (None, Some(span)),
        };
        Job {
            id: job.id.as_ref(),
            queue: &job.queue,
            kind: &job.kind,
            payload: &job.payload,
            run_at,
            delay,
            priority: job.priority,
            group: job.group.as_ref(),
            needs: job.needs.as_deref(),
            unique: job.unique.as_ref(),
            retry: job.retry.as_ref(),
            timeout: job.timeout,
            expires_at: job.expires_at,
            retain: job.retain,
            labels: &job.labels,
        }
    }
}

/// A moment or a span, under the names of the contract.
#[derive(Serialize, Default)]
pub struct Wait {
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    span: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Moment>,
}

impl From<Later> for Wait {
    fn from(later: Later) -> Self {
        match later {
            Later::For(span) => Wait { span: Some(span), until: None },
            Later::Until(at) => Wait { span: None, until: Some(at) },
        }
    }
}
impl From<Option<Later>> for Wait {
    fn from(later: Option<Later>) -> Self {
        later.map(Wait::from).unwrap_or_default()
    }
}

/// A lease call.
#[derive(Serialize)]
pub struct LeaseCall<'a> {
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

/// An extend call.
#[derive(Serialize)]
pub struct ExtendCall<'a> {
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

/// A settle call.
#[derive(Serialize)]
pub struct SettleCall<'a> {
    settle: Vec<SettleOne<'a>>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<VerdictBody<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<LimitBody<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    push: Vec<Job<'a>>,
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

impl<'a> From<&'a [SettleItem]> for SettleCall<'a> {
    fn from(items: &'a [SettleItem]) -> Self {
        SettleCall { settle: items.iter().map(SettleOne::from).collect() }
    }
}

impl<'a> From<&'a SettleItem> for SettleOne<'a> {
    fn from(item: &'a SettleItem) -> Self {
        let mut one = SettleOne {
            lease: &item.lease,
            outcome: item.ending.outcome().as_str(),
            push: item.push.iter().map(Job::from).collect(),
            ..SettleOne::default()
        };
        match &item.ending {
            Ending::Succeeded { result } => one.result = result.as_ref(),
            Ending::Failed { error, retry_in, last } => {
                one.error = Some(tail(error));
                one.retry_in = *retry_in;
                one.last = *last;
            }
            Ending::Snoozed { later } => one.later = Wait::from(*later),
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

impl<'a> From<&'a tenure_core::lease::ResourceVerdict> for VerdictBody<'a> {
    fn from(said: &'a tenure_core::lease::ResourceVerdict) -> Self {
        let (verdict, later, reason) = match &said.verdict {
            Verdict::Ok => ("ok", None, None),
            Verdict::Cool(later) => ("cool", Some(*later), None),
            Verdict::Ban { reason } => ("ban", None, reason.as_deref()),
        };
        VerdictBody { pool: &said.pool, id: &said.id, verdict, later: later.into(), reason }
    }
}

/// The end of an error text, as the other side would cut it: no need to send what it drops.
fn tail(error: &str) -> &str {
    let mut at = error.len().saturating_sub(ERROR_BYTES_MAX);
    while !error.is_char_boundary(at) {
        at += 1;
    }
    &error[at..]
}

/// A call on many jobs: the filter in the forms of the query.
#[derive(Serialize)]
pub struct ManyCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a QueueName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    max: usize,
}

impl<'a> ManyCall<'a> {
    /// At most `max` of those that the filter means.
    pub fn new(filter: &'a JobFilter, max: usize) -> Self {
        ManyCall {
            queue: filter.queue.as_ref(),
            state: states(filter),
            kind: filter.kind.as_deref(),
            label: filter.label.as_ref().map(|(key, value)| format!("{key}:{value}")),
            max,
        }
    }
}

/// `ready,blocked`; `None` for any.
pub fn states(filter: &JobFilter) -> Option<String> {
    let words: Vec<&str> = filter.states.iter().map(|state| state.as_str()).collect();
    (!words.is_empty()).then(|| words.join(","))
}

/// A resource, as a set brings it.
#[derive(Serialize)]
pub struct Resource<'a> {
    id: &'a ResourceId,
    #[serde(skip_serializing_if = "Json::is_null")]
    data: &'a Json,
    tags: &'a [Tag],
    slots: u32,
}

impl<'a> From<&'a NewResource> for Resource<'a> {
    fn from(one: &'a NewResource) -> Self {
        Resource { id: &one.id, data: &one.data, tags: &one.tags, slots: one.slots }
    }
}

/// `{"finished_at"}`.
#[derive(Serialize)]
pub struct RetryOne {
    /// Only if it is still that end.
    pub finished_at: Moment,
}

/// `{"external","for"}`.
#[derive(Serialize)]
pub struct Observed {
    /// Permits taken by work outside.
    pub external: u32,
    /// For so long.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub hold: Option<Span>,
}

/// `{"reason"}`.
#[derive(Serialize)]
pub struct Ban<'a> {
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}
