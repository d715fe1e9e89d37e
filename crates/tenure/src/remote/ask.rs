//! From a request to HTTP: the method, path, query and body of every operation, as CONTRACT.md
//! fixes them.
//!
//! It sends nothing and checks nothing but the size of a body, so that a refusal of an oversized
//! one costs no transfer.

use bytes::Bytes;
use hyper::Method;
use serde::Serialize;
use tenure_core::bounds::BODY_BYTES_MAX;
use tenure_core::percent::encoded;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{JobFilter, Meant, Page, PushAnswer, Request};
use tenure_core::sentences::ServerRefusal;
use tenure_core::settings::NewResource;
use tenure_engine::Fault;

use super::{body, change};

/// A request as HTTP carries it.
#[derive(Debug)]
pub struct Ask {
    /// The method.
    pub method: Method,
    /// Path and query, percent-encoded.
    pub path: String,
    /// The body, unless there is none.
    pub body: Option<Body>,
    /// Of what is made the ids are enough: `Prefer: return=minimal`.
    pub minimal: bool,
}

/// A body with its media type.
#[derive(Debug)]
pub struct Body {
    /// The text. May hold secrets and payloads: never shown.
    pub bytes: Bytes,
    /// `application/json` or `application/x-ndjson`.
    pub media: &'static str,
}

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

/// Why there is nothing to send.
#[derive(Debug)]
pub enum Unsendable {
    /// The other side would refuse it.
    Refused(Refusal),
    /// It cannot be written as JSON.
    Broken(Fault),
}

struct Path(String, char);

impl Path {
    fn of(segments: &[&str]) -> Self {
        let mut path = String::from("/v1");
        for segment in segments {
            path += &format!("/{}", encoded(segment));
        }
        Path(path, '?')
    }
    fn with(mut self, name: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.0 += &format!("{}{name}={}", self.1, encoded(value));
            self.1 = '&';
        }
        self
    }
    fn page(self, page: &Page) -> Self {
        self.with("max", Some(&page.max.to_string())).with("cursor", page.cursor.as_deref())
    }
    fn filter(self, filter: &JobFilter) -> Self {
        let label = filter.label.as_ref().map(|(key, value)| format!("{key}:{value}"));
        self.with("queue", filter.queue.as_ref().map(|queue| queue.as_str()))
            .with("state", body::states(filter).as_deref())
            .with("kind", filter.kind.as_deref())
            .with("label", label.as_deref())
    }
    fn ask(self, method: Method, body: Option<Body>) -> Ask {
        Ask { method, path: self.0, body, minimal: false }
    }
}

fn json(value: &impl Serialize) -> Result<Option<Body>, Unsendable> {
    let bytes = serde_json::to_vec(value).map_err(|why| {
        Unsendable::Broken(Fault::Broken(format!("a request cannot be written as JSON: {why}")))
    })?;
    if bytes.len() > BODY_BYTES_MAX {
        let no = ServerRefusal::RequestTooLarge { bytes: bytes.len(), most: BODY_BYTES_MAX };
        return Err(Unsendable::Refused(no.into()));
    }
    Ok(Some(Body { bytes: Bytes::from(bytes), media: JSON }))
}

/// A whole set: an array while it fits into a body, a line for each beyond that.
fn set(resources: &[NewResource]) -> Result<Option<Body>, Unsendable> {
    let rows: Vec<body::Resource<'_>> = resources.iter().map(body::Resource::from).collect();
    match json(&rows) {
        Err(Unsendable::Refused(_)) => {}
        done => return done,
    }
    let mut lines = Vec::new();
    for row in &rows {
        serde_json::to_writer(&mut lines, row).map_err(|why| {
            Unsendable::Broken(Fault::Broken(format!("a resource cannot be written: {why}")))
        })?;
        lines.push(b'\n');
    }
    Ok(Some(Body { bytes: Bytes::from(lines), media: NDJSON }))
}

/// What to send for a request.
pub fn ask(request: &Request) -> Result<Ask, Unsendable> {
    use Request as R;
    let get = Method::GET;
    let post = Method::POST;
    Ok(match request {
        R::Push(push) => {
            // Always an array: one answer to read, and its status says no more than its items.
            let jobs: Vec<body::Job<'_>> = push.jobs.iter().map(body::Job::from).collect();
            let minimal = push.answer == PushAnswer::Ids;
            Ask { minimal, ..Path::of(&["jobs"]).ask(post, json(&jobs)?) }
        }
        R::GetJob(r) => Path::of(&["jobs", &r.job.to_string()]).ask(get, None),
        R::ListJobs(r) => Path::of(&["jobs"])
            .filter(&r.filter)
            .page(&r.page)
            .with("full", r.full.then_some("true"))
            .ask(get, None),
        R::PatchJob(r) => Path::of(&["jobs", &r.job.to_string()])
            .ask(Method::PATCH, json(&change::JobChange::from(r))?),
        R::DeleteJob(r) => Path::of(&["jobs", &r.job.to_string()]).ask(Method::DELETE, None),
        R::CancelJob(r) => Path::of(&["jobs", &r.job.to_string(), "cancel"]).ask(post, None),
        R::RetryJob(r) => {
            let body = match r.finished_at {
                Some(finished_at) => json(&body::RetryOne { finished_at })?,
                None => None,
            };
            Path::of(&["jobs", &r.job.to_string(), "retry"]).ask(post, body)
        }
        R::RunJobNow(r) => Path::of(&["jobs", &r.job.to_string(), "run-now"]).ask(post, None),
        R::CancelJobs(r) => {
            Path::of(&["jobs", "cancel"]).ask(post, json(&body::ManyCall::new(&r.filter, r.max))?)
        }
        R::RetryJobs(r) => {
            Path::of(&["jobs", "retry"]).ask(post, json(&body::ManyCall::new(&r.filter, r.max))?)
        }
        R::ExplainJob(r) => Path::of(&["jobs", &r.job.to_string(), "explain"]).ask(get, None),
        R::Lease(r) => Path::of(&["leases"]).ask(post, json(&body::LeaseCall::from(r))?),
        R::Extend(r) => {
            Path::of(&["leases", "extend"]).ask(post, json(&body::ExtendCall::from(r))?)
        }
        R::Settle(r) => Path::of(&["leases", "settle"])
            .ask(post, json(&body::SettleCall::from(r.settle.as_slice()))?),
        R::ListLeases(r) => Path::of(&["leases"])
            .with("queue", r.queue.as_ref().map(|name| name.as_str()))
            .with("limit", r.limit.as_ref().map(|name| name.as_str()))
            .with("pool", r.pool.as_ref().map(|name| name.as_str()))
            .with("worker", r.worker.as_deref())
            .page(&r.page)
            .ask(get, None),
        R::ForceLease(r) => Path::of(&["leases", &r.lease]).ask(Method::DELETE, None),
        R::ListQueues(r) => Path::of(&["queues"]).page(&r.page).ask(get, None),
        R::GetQueue(r) => Path::of(&["queues", r.queue.as_str()]).ask(get, None),
        R::PutQueue(r) => {
            Path::of(&["queues", r.queue.as_str()]).ask(Method::PUT, json(&r.settings)?)
        }
        R::PatchQueue(r) => Path::of(&["queues", r.queue.as_str()])
            .ask(Method::PATCH, json(&change::QueueChange::from(r))?),
        R::DeleteQueue(r) => Path::of(&["queues", r.queue.as_str()]).ask(Method::DELETE, None),
        R::PauseQueue(r) => Path::of(&["queues", r.queue.as_str(), "pause"])
            .ask(post, json(&body::Wait::from(r.until))?),
        R::ResumeQueue(r) => Path::of(&["queues", r.queue.as_str(), "resume"]).ask(post, None),
        R::ListLimits(r) => Path::of(&["limits"]).page(&r.page).ask(get, None),
        R::GetLimit(r) => Path::of(&["limits", r.limit.as_str()]).ask(get, None),
        R::PutLimit(r) => {
            Path::of(&["limits", r.limit.as_str()]).ask(Method::PUT, json(&r.settings)?)
        }
        R::PatchLimit(r) => Path::of(&["limits", r.limit.as_str()])
            .ask(Method::PATCH, json(&change::LimitChange::from(r))?),
        R::DeleteLimit(r) => Path::of(&["limits", r.limit.as_str()]).ask(Method::DELETE, None),
        R::PauseLimit(r) => Path::of(&["limits", r.limit.as_str(), "pause"])
            .ask(post, json(&body::Wait::from(r.until))?),
        R::ResumeLimit(r) => Path::of(&["limits", r.limit.as_str(), "resume"]).ask(post, None),
        R::ObserveLimit(r) => Path::of(&["limits", r.limit.as_str(), "observe"])
            .ask(post, json(&body::Observed { external: r.external, hold: r.hold })?),
        R::ListPools(r) => Path::of(&["pools"]).page(&r.page).ask(get, None),
        R::GetPool(r) => Path::of(&["pools", r.pool.as_str()]).ask(get, None),
        R::PutPool(r) => Path::of(&["pools", r.pool.as_str()]).ask(Method::PUT, json(&r.settings)?),
        R::PatchPool(r) => Path::of(&["pools", r.pool.as_str()])
            .ask(Method::PATCH, json(&change::PoolChange::from(r))?),
        R::DeletePool(r) => Path::of(&["pools", r.pool.as_str()]).ask(Method::DELETE, None),
        R::SyncResources(r) => Path::of(&["pools", r.pool.as_str(), "resources"])
            .with("force", (r.meant == Meant::Yes).then_some("true"))
            .with("version", r.version.map(|n| n.to_string()).as_deref())
            .ask(Method::PUT, set(&r.resources)?),
        R::AddResources(r) => {
            let rows: Vec<body::Resource<'_>> =
                r.resources.iter().map(body::Resource::from).collect();
            Path::of(&["pools", r.pool.as_str(), "resources"]).ask(post, json(&rows)?)
        }
        R::ListResources(r) => {
            Path::of(&["pools", r.pool.as_str(), "resources"]).page(&r.page).ask(get, None)
        }
        R::GetResource(r) => resource(&r.pool, &r.resource, None).ask(get, None),
        R::PatchResource(r) => resource(&r.pool, &r.resource, None)
            .ask(Method::PATCH, json(&change::ResourceChange::from(r))?),
        R::DeleteResource(r) => resource(&r.pool, &r.resource, None).ask(Method::DELETE, None),
        R::CoolResource(r) => resource(&r.pool, &r.resource, Some("cool"))
            .ask(post, json(&body::Wait::from(r.until))?),
        R::BanResource(r) => resource(&r.pool, &r.resource, Some("ban"))
            .ask(post, json(&body::Ban { reason: r.reason.as_deref() })?),
        R::RestoreResource(r) => resource(&r.pool, &r.resource, Some("restore")).ask(post, None),
        R::ListWorkers(r) => Path::of(&["workers"]).page(&r.page).ask(get, None),
        R::GetStats(_) => Path::of(&["stats"]).ask(get, None),
        R::Audit(r) => Path::of(&["audit"]).with("deep", r.deep.then_some("true")).ask(get, None),
    })
}

fn resource(
    pool: &tenure_core::names::PoolName,
    id: &tenure_core::names::ResourceId,
    verb: Option<&str>,
) -> Path {
    let mut segments = vec!["pools", pool.as_str(), "resources", id.as_str()];
    segments.extend(verb);
    Path::of(&segments)
}
