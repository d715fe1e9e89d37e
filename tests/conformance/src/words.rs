//! Short words for the things of a sentence: jobs, needs, settings, leases.
//!
//! An invalid name is a mistake in the sentence, so it panics.

use tenure_core::bounds::TTL_US_DEFAULT;
use tenure_core::job::{Backoff, Need, NewJob, OnConflict, Retry, Unique, Until, When};
use tenure_core::lease::{Ending, Later, LeaseView, SettleItem, Verdict};
use tenure_core::lease::{LimitVerdict, ResourceVerdict, Worker};
use tenure_core::names::{
    Group, JobId, JobRef, LimitName, PoolName, QueueName, RequestId, ResourceId, Tag, UniqueKey,
    WorkerId,
};
use tenure_core::requests::{Ask, Lease};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, NewResource, PoolSettings, Rate};
use tenure_core::time::{Moment, Span};

macro_rules! parsed {
    ($($short:ident $type:ident)*) => {$(
        #[track_caller]
        pub(crate) fn $short(text: &str) -> $type {
            $type::parse(text).unwrap_or_else(|no| panic!("{text:?} is not well formed: {no}"))
        }
    )*};
}
parsed! {
    queue QueueName   limit LimitName   pool PoolName   resource ResourceId   tag Tag   group Group
    key UniqueKey   job_id JobId   job_ref JobRef   request RequestId   worker WorkerId
}

pub(crate) fn s(seconds: u64) -> Span {
    Span::from_s(seconds)
}
pub(crate) fn ms(milliseconds: u64) -> Span {
    Span::from_ms(milliseconds)
}
pub(crate) fn hours(hours: u64) -> Span {
    s(hours * 3_600)
}
pub(crate) fn json(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|| panic!("{text:?} is not JSON"))
}
/// The parsed value, so that white space and the order of keys do not matter.
pub(crate) fn value(json: &Json) -> serde_json::Value {
    serde_json::from_str(json.text()).expect("an engine answers JSON")
}

pub(crate) fn job(name: &str) -> NewJob {
    NewJob::new(queue(name))
}
/// Jobs `{name}0`, `{name}1`, … in one queue.
pub(crate) fn jobs(in_queue: &str, name: &str, count: usize) -> Vec<NewJob> {
    (0..count).map(|n| job(in_queue).id(&format!("{name}{n}"))).collect()
}

/// Builder methods for a job.
pub(crate) trait JobWords: Sized {
    fn id(self, id: &str) -> Self;
    fn kind(self, kind: &str) -> Self;
    fn payload(self, text: &str) -> Self;
    fn at(self, at: Moment) -> Self;
    fn delay(self, span: Span) -> Self;
    fn priority(self, priority: i8) -> Self;
    fn group(self, name: &str) -> Self;
    fn needs<const N: usize>(self, needs: [Need; N]) -> Self;
    fn unique(self, unique: Unique) -> Self;
    fn retry(self, retry: Retry) -> Self;
    fn timeout(self, span: Span) -> Self;
    fn expires(self, at: Moment) -> Self;
    fn retain(self, span: Span) -> Self;
    fn label(self, key: &str, value: &str) -> Self;
}
impl JobWords for NewJob {
    fn id(self, id: &str) -> Self {
        NewJob { id: Some(job_id(id)), ..self }
    }
    fn kind(self, kind: &str) -> Self {
        NewJob { kind: kind.to_owned(), ..self }
    }
    fn payload(self, text: &str) -> Self {
        NewJob { payload: json(text), ..self }
    }
    fn at(self, at: Moment) -> Self {
        NewJob { when: When::At(at), ..self }
    }
    fn delay(self, span: Span) -> Self {
        NewJob { when: When::In(span), ..self }
    }
    fn priority(self, priority: i8) -> Self {
        NewJob { priority, ..self }
    }
    fn group(self, name: &str) -> Self {
        NewJob { group: Some(group(name)), ..self }
    }
    fn needs<const N: usize>(self, needs: [Need; N]) -> Self {
        NewJob { needs: Some(needs.to_vec()), ..self }
    }
    fn unique(self, unique: Unique) -> Self {
        NewJob { unique: Some(unique), ..self }
    }
    fn retry(self, retry: Retry) -> Self {
        NewJob { retry: Some(retry), ..self }
    }
    fn timeout(self, span: Span) -> Self {
        NewJob { timeout: Some(span), ..self }
    }
    fn expires(self, at: Moment) -> Self {
        NewJob { expires_at: Some(at), ..self }
    }
    fn retain(self, span: Span) -> Self {
        NewJob { retain: Some(span), ..self }
    }
    fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }
}

pub(crate) fn unique(name: &str, on_conflict: OnConflict) -> Unique {
    Unique { key: key(name), until: Until::End, hold: None, on_conflict, within: None }
}
pub(crate) fn fixed(base: Span) -> Backoff {
    Backoff::Fixed { base, jitter: false }
}
pub(crate) fn retry(max_attempts: u32, max_lost: u32, backoff: Backoff) -> Retry {
    Retry { max_attempts, max_lost, backoff, ..Retry::default() }
}

pub(crate) fn need(name: &str) -> Need {
    Need::Limit { limit: limit(name), weight: 1, cost: 1 }
}
pub(crate) fn weighing(name: &str, weight: u32) -> Need {
    Need::Limit { limit: limit(name), weight, cost: 1 }
}
pub(crate) fn costing(name: &str, cost: u32) -> Need {
    Need::Limit { limit: limit(name), weight: 1, cost }
}
pub(crate) fn any_of(name: &str) -> Need {
    Need::Pool { pool: pool(name), tag: None, prefer: None, id: None, count: 1 }
}
pub(crate) fn several_of(name: &str, count: u32) -> Need {
    Need::Pool { pool: pool(name), tag: None, prefer: None, id: None, count }
}
pub(crate) fn tagged(name: &str, word: &str) -> Need {
    Need::Pool { pool: pool(name), tag: Some(tag(word)), prefer: None, id: None, count: 1 }
}
pub(crate) fn only(name: &str, id: &str) -> Need {
    Need::Pool { pool: pool(name), tag: None, prefer: None, id: Some(resource(id)), count: 1 }
}
pub(crate) fn preferring(name: &str, id: &str) -> Need {
    Need::Pool { pool: pool(name), tag: None, prefer: Some(resource(id)), id: None, count: 1 }
}

pub(crate) fn cap(concurrency: u32) -> LimitSettings {
    LimitSettings { concurrency: Some(concurrency), ..LimitSettings::default() }
}
pub(crate) fn cap_and_gap(concurrency: u32, gap: Span) -> LimitSettings {
    LimitSettings { gap: Some(gap), ..cap(concurrency) }
}
pub(crate) fn cap_and_quarantine(concurrency: u32, quarantine: Span) -> LimitSettings {
    LimitSettings { quarantine, ..cap(concurrency) }
}
pub(crate) fn rate(count: u32, per: Span, burst: u32) -> LimitSettings {
    LimitSettings { rate: Some(Rate { count, per, burst }), ..LimitSettings::default() }
}
pub(crate) fn plain_pool() -> PoolSettings {
    PoolSettings::default()
}

pub(crate) fn thing(id: &str) -> NewResource {
    NewResource { id: resource(id), data: json("{}"), tags: vec![], slots: 1 }
}
/// Builder methods for a resource.
pub(crate) trait ThingWords: Sized {
    fn tags<const N: usize>(self, tags: [&str; N]) -> Self;
    fn slots(self, slots: u32) -> Self;
    fn data(self, text: &str) -> Self;
}
impl ThingWords for NewResource {
    fn tags<const N: usize>(self, tags: [&str; N]) -> Self {
        NewResource { tags: tags.into_iter().map(tag).collect(), ..self }
    }
    fn slots(self, slots: u32) -> Self {
        NewResource { slots, ..self }
    }
    fn data(self, text: &str) -> Self {
        NewResource { data: json(text), ..self }
    }
}

/// Builder methods for a lease call.
pub(crate) trait LeaseWords: Sized {
    fn max(self, max: usize) -> Self;
    fn ttl(self, span: Span) -> Self;
    fn wait(self, span: Span) -> Self;
    fn by(self, id: &str) -> Self;
    fn request(self, id: &str) -> Self;
    fn place(self, id: &str) -> Self;
}
impl LeaseWords for Lease {
    fn max(self, most: usize) -> Self {
        let ask = match self.ask {
            Ask::Jobs { queues, .. } => Ask::Jobs { queues, max: most },
            needs @ Ask::Needs(_) => needs,
        };
        Lease { ask, ..self }
    }
    fn ttl(self, span: Span) -> Self {
        Lease { ttl: span, ..self }
    }
    fn wait(self, span: Span) -> Self {
        Lease { wait: span, ..self }
    }
    fn by(self, id: &str) -> Self {
        Lease { worker: named(id), ..self }
    }
    fn request(self, id: &str) -> Self {
        Lease { request_id: Some(request(id)), ..self }
    }
    fn place(self, id: &str) -> Self {
        Lease { place: Some(request(id)), ..self }
    }
}
pub(crate) fn named(id: &str) -> Worker {
    Worker { id: Some(worker(id)), ..Worker::default() }
}
pub(crate) const DEFAULT_TTL: Span = Span::from_us(TTL_US_DEFAULT);

#[track_caller]
pub(crate) fn id_of(lease: &LeaseView) -> String {
    lease.lease.clone().expect("a lease that is held has an id")
}
/// The id of the lease's job.
#[track_caller]
pub(crate) fn job_of(lease: &LeaseView) -> &str {
    lease.job.as_ref().expect("a lease of a queue has a job").id.as_str()
}
/// The ids of the leases' jobs, in order.
pub(crate) fn jobs_of(leases: &[LeaseView]) -> Vec<&str> {
    leases.iter().map(job_of).collect()
}
/// The one resource that the lease holds.
#[track_caller]
pub(crate) fn resource_of(lease: &LeaseView) -> &str {
    assert_eq!(lease.resources.len(), 1, "one resource is held");
    lease.resources[0].id.as_str()
}

pub(crate) fn ending(lease: &LeaseView, ending: Ending) -> SettleItem {
    SettleItem::new(id_of(lease), ending)
}
pub(crate) fn succeeded(lease: &LeaseView) -> SettleItem {
    ending(lease, Ending::Succeeded { result: None })
}
pub(crate) fn failed(lease: &LeaseView) -> SettleItem {
    failing(lease, None, false)
}
pub(crate) fn failed_for_good(lease: &LeaseView) -> SettleItem {
    failing(lease, None, true)
}
pub(crate) fn failed_until(lease: &LeaseView, retry_in: Span) -> SettleItem {
    failing(lease, Some(retry_in), false)
}
fn failing(lease: &LeaseView, retry_in: Option<Span>, last: bool) -> SettleItem {
    ending(lease, Ending::Failed { error: "it broke".to_owned(), retry_in, last })
}
pub(crate) fn snoozed(lease: &LeaseView, span: Span) -> SettleItem {
    ending(lease, Ending::Snoozed { later: Later::For(span), reset: false })
}
pub(crate) fn snoozed_anew(lease: &LeaseView, span: Span) -> SettleItem {
    ending(lease, Ending::Snoozed { later: Later::For(span), reset: true })
}
pub(crate) fn released(lease: &LeaseView) -> SettleItem {
    ending(lease, Ending::Released)
}

/// Builder methods for a settle, beside its outcome.
pub(crate) trait SettleWords: Sized {
    fn verdict(self, of: &str, id: &str, verdict: Verdict) -> Self;
    fn spent(self, name: &str, spent: u32) -> Self;
    fn pausing(self, name: &str, pause: Span) -> Self;
    fn pushing(self, job: NewJob) -> Self;
    fn reporting(self, text: &str) -> Self;
}
impl SettleWords for SettleItem {
    fn verdict(mut self, of: &str, id: &str, verdict: Verdict) -> Self {
        self.resources.push(ResourceVerdict { pool: pool(of), id: resource(id), verdict });
        self
    }
    fn spent(mut self, name: &str, spent: u32) -> Self {
        let verdict = LimitVerdict { limit: limit(name), pause: None, spent: Some(spent) };
        self.limits.push(verdict);
        self
    }
    fn pausing(mut self, name: &str, pause: Span) -> Self {
        let verdict = LimitVerdict { limit: limit(name), pause: Some(pause), spent: None };
        self.limits.push(verdict);
        self
    }
    fn pushing(mut self, job: NewJob) -> Self {
        self.push.push(job);
        self
    }
    fn reporting(self, text: &str) -> Self {
        SettleItem { progress: Some(json(text)), ..self }
    }
}
