//! The names, bodies and answers that the rows share.

use tenure::core::job::{Backoff, JobState, Labels, Need, OnConflict, Retry, Unique, Until};
use tenure::core::lease::{Ending, LimitVerdict, ResourceVerdict, SettleItem, Verdict, Worker};
use tenure::core::names::{Group, RequestId, Tag, UniqueKey, WorkerId};
use tenure::core::requests::*;
use tenure::core::settings::{NewResource, Rate};
use tenure::core::trace::TraceParent;
use tenure::{
    JobId, JobRef, Json, Later, LimitName, Moment, NewJob, PoolName, QueueName, ResourceId, Span,
    When,
};

pub const JOB: &str = r#"{"id":"j1","queue":"q","kind":"","state":"ready","payload":{"n": 1.50},
  "priority":0,"group":null,"needs":[{"limit":"scrapy","weight":1,"cost":1}],"attempt":0,"lost":0,
  "run_at":"2026-12-01T09:55:00.000000Z","created_at":"2026-12-01T09:55:00.000000Z",
  "started_at":null,"finished_at":null,"expires_at":null,"result":null,"error":null,"errors":[],
  "progress":{"half":[true]},"unique":null,"labels":{},"lease":null,"cancel_requested":false,
  "retry":{"max_attempts":20,"max_lost":3,"backoff":{"kind":"fixed","base":"1s","jitter":true}},
  "timeout":null,"retain":null,"new":1}"#;
pub const RESULT: &str = r#"{"id":"j1","state":"succeeded","result":1.50,"error":null,
  "finished_at":"2026-12-01T09:55:00.000000Z","attempt":1,"progress":null,"new":1}"#;
pub const QUEUE: &str = r#"{"name":"q","paused":false,"paused_until":null,"needs":[],"retry":null,
  "timeout":"5m","retain":null,"max_waiting":null,"shares":{"tenant-7":3},
  "counts":{"ready":1,"blocked":0,"scheduled":0,"dependent":0,"running":0},
  "oldest_ready_at":null,"workers":0,"new":1}"#;
pub const LIMIT: &str = r#"{"name":"site:a","template":"site:*","concurrency":1,
  "rate":{"count":10,"per":"1s","burst":1},"gap":null,"quarantine":"5s","in_use":0,"resting":0,"external":0,"waiting":0,
  "over_limit":0,"paused_until":null,"holders":[],"new":1}"#;
pub const GAUGED: &str = r#"{"name":"site:a","template":null,"concurrency":4,"rate":null,"gap":null,"quarantine":"0s",
  "gauge":{"scrapyd":"http://•••@host","project":null,"every":"2s","lag":"10s","stale":"30s","on_stale":"hold",
    "reading":{"asked_at":"2026-12-01T09:55:00.000000Z","sum":5,"external":2,"failed_at":null,"error":null,"new":1}},
  "in_use":0,"resting":0,"external":2,"waiting":0,"over_limit":0,"paused_until":null,"holders":[],"new":1}"#;
pub const POOL: &str = r#"{"name":"p","quarantine":"0s","cooldown":"0s","rate":null,"max_uses":null,
  "pick":"lru","available":1,"leased":0,"cooling":0,"banned":0,"waiting":0,"new":1}"#;
pub const RESOURCE: &str = r#"{"id":"r1","data":{"password":"•"},"tags":[],"slots":1,
  "state":"available","reason":null,"in_use":0,"until":null,"retiring":false,"holders":[],"uses":0,
  "last_used_at":null,"new":1}"#;
pub const LEASE: &str = r#"{"lease":"l1","fence":7,"holder":"w1",
  "granted_at":"2026-12-01T09:55:00.000000Z","expires_at":"2026-12-01T09:55:30.000000Z",
  "deadline":null,"job":null,"resources":[{"pool":"p","id":"r1","data":{"password":"x"},
  "tags":["cn"]}],"limits":["scrapy"],"new":1}"#;
pub const SUMMARY: &str = r#"{"lease":"l1","fence":7,"holder":"w1",
  "granted_at":"2026-12-01T09:55:00.000000Z","expires_at":"2026-12-01T09:55:30.000000Z",
  "deadline":null,"job":"j1","queue":"q","resources":[],"limits":[],"cancel_requested":false}"#;
pub const WORKER: &str = r#"{"id":"w1","host":"h","pid":1,"version":"1","queues":["q"],"leases":0,
  "last_seen_at":"2026-12-01T09:55:00.000000Z"}"#;

pub fn list(item: &str) -> String {
    format!(r#"{{"items":[{item}],"next":null,"new":1}}"#)
}

pub fn queue() -> QueueName {
    QueueName::parse("größe b").unwrap()
}
pub const QUEUE_PATH: &str = "/v1/queues/gr%C3%B6%C3%9Fe%20b";
pub fn limit() -> LimitName {
    LimitName::parse("site:a.b").unwrap()
}
pub fn pool() -> PoolName {
    PoolName::parse("p").unwrap()
}
pub fn resource() -> ResourceId {
    ResourceId::parse("a/b?c#d%,e").unwrap()
}
pub const RESOURCE_PATH: &str = "/v1/pools/p/resources/a%2Fb%3Fc%23d%25%2Ce";
pub fn id() -> JobRef {
    JobRef::Id(JobId::parse("j1").unwrap())
}
pub fn key() -> JobRef {
    JobRef::Key(UniqueKey::parse("meeting/42").unwrap())
}
pub fn at() -> Moment {
    "2026-12-01T17:55:00+08:00".parse().unwrap()
}
pub fn filter() -> JobFilter {
    JobFilter {
        queue: Some(queue()),
        states: vec![JobState::Ready, JobState::Blocked],
        kind: Some("fetch page".to_owned()),
        label: Some(("k".to_owned(), "a&b=c".to_owned())),
        error: Some("timed out & gone".to_owned()),
        finished_after: Some(at()),
        finished_before: Some(at()),
        flow: None,
        schedule: None,
    }
}
/// Filters by queue only.
pub fn of_queue() -> JobFilter {
    JobFilter { queue: Some(queue()), ..JobFilter::default() }
}
pub fn page() -> Page {
    Page { max: 7, cursor: Some("a+b/=".to_owned()) }
}
pub fn needs() -> Vec<Need> {
    vec![
        Need::Limit { limit: limit(), weight: 2, cost: 0 },
        Need::Pool {
            pool: pool(),
            tag: Some(Tag::parse("cn").unwrap()),
            prefer: None,
            id: None,
            count: 1,
        },
    ]
}
pub const NEEDS: &str =
    r#"[{"limit":"site:a.b","weight":2,"cost":0},{"pool":"p","tag":"cn","count":1}]"#;
pub fn rate() -> Rate {
    Rate { count: 10, per: Span::from_s(1), burst: 2 }
}
pub fn new_resource() -> NewResource {
    let tags = vec![Tag::parse("cn").unwrap()];
    NewResource { id: resource(), data: Json::parse(r#"{"n": 1.50}"#).unwrap(), tags, slots: 2 }
}
pub const NEW_RESOURCE: &str = r#"{"id":"a/b?c#d%,e","data":{"n": 1.50},"tags":["cn"],"slots":2}"#;

pub fn whole_job() -> NewJob {
    let mut job = NewJob::new(queue());
    job.id = Some(JobId::parse("j1").unwrap());
    job.kind = "fetch".to_owned();
    job.payload = Json::parse(r#"{"n": 1.50}"#).unwrap();
    job.when = When::In(Span::from_ms(90_500));
    job.priority = -5;
    job.group = Some(Group::parse("tenant/7").unwrap());
    job.needs = Some(needs());
    job.unique = Some(Unique {
        key: UniqueKey::parse("k").unwrap(),
        until: Until::Start,
        hold: Some(Span::from_s(3_600)),
        on_conflict: OnConflict::Replace,
        within: None,
    });
    job.retry = Some(Retry {
        max_attempts: 0,
        max_lost: 3,
        max_snoozes: None,
        backoff: Backoff::List { delays: vec![Span::from_s(1)], jitter: false },
    });
    job.timeout = Some(Span::from_s(300));
    job.expires_at = Some(at());
    job.retain = Some(Span::ZERO);
    job.labels = Labels::from([("k".to_owned(), "v".to_owned())]);
    job.traceparent = TraceParent::parse(TRACE).ok();
    job
}
pub const WHOLE_JOB: &str = r#"{"id":"j1","queue":"größe b","kind":"fetch","payload":{"n": 1.50},
  "delay":"1m30s500ms","priority":-5,"group":"tenant/7","needs":NEEDS,
  "unique":{"key":"k","until":"start","for":"1h","on_conflict":"replace"},
  "retry":{"max_attempts":0,"max_lost":3,"backoff":{"kind":"list","delays":["1s"],"jitter":false}},
  "timeout":"5m","expires_at":"2026-12-01T09:55:00.000000Z","retain":"0s","labels":{"k":"v"},
  "traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#;
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

pub fn plain_job(when: When) -> NewJob {
    let mut job = NewJob::new(QueueName::parse("q").unwrap());
    job.when = when;
    job
}

pub fn item(lease: &str, ending: Ending) -> SettleItem {
    let lease = lease.to_owned();
    SettleItem::new(lease, ending)
}

pub fn settles() -> Vec<SettleItem> {
    let verdict = |verdict| ResourceVerdict { pool: pool(), id: resource(), verdict };
    let mut first = item("l1", Ending::Succeeded { result: Some(Json::of(&[1]).unwrap()) });
    first.resources = vec![
        verdict(Verdict::Ok),
        verdict(Verdict::Cool(Later::For(Span::from_s(600)))),
        verdict(Verdict::Cool(Later::Until(at()))),
        verdict(Verdict::Ban { reason: Some("captcha".to_owned()) }),
        verdict(Verdict::Ban { reason: None }),
    ];
    let said = |pause, spent| LimitVerdict { limit: limit(), pause, spent };
    first.limits = vec![said(Some(Span::from_s(30)), None), said(None, Some(812))];
    first.push = vec![plain_job(When::Now)];
    let failed = |retry_in, last| Ending::Failed { error: "e".to_owned(), retry_in, last };
    let snoozed = |later| Ending::Snoozed { later, reset: false };
    let anew = Ending::Snoozed { later: Later::For(Span::from_s(5)), reset: true };
    let reports = |item| SettleItem { progress: Json::parse(r#"{"half":[true]}"#), ..item };
    vec![
        first,
        item("l2", failed(Some(Span::from_s(10)), false)),
        item("l3", failed(None, true)),
        item("l4", snoozed(Later::For(Span::from_s(5)))),
        item("l5", snoozed(Later::Until(at()))),
        item("l6", Ending::Released),
        item("l7", Ending::Succeeded { result: None }),
        item("l8", anew),
        reports(item("l9", Ending::Released)),
    ]
}
pub const SETTLES: &str = r#"{"settle":[
  {"lease":"l1","outcome":"succeeded","result":[1],
   "resources":[{"pool":"p","id":"a/b?c#d%,e","verdict":"ok"},
    {"pool":"p","id":"a/b?c#d%,e","verdict":"cool","for":"10m"},
    {"pool":"p","id":"a/b?c#d%,e","verdict":"cool","until":"2026-12-01T09:55:00.000000Z"},
    {"pool":"p","id":"a/b?c#d%,e","verdict":"ban","reason":"captcha"},
    {"pool":"p","id":"a/b?c#d%,e","verdict":"ban"}],
   "limits":[{"limit":"site:a.b","pause":"30s"},
    {"limit":"site:a.b","spent":812}],
   "push":[{"queue":"q"}]},
  {"lease":"l2","outcome":"failed","error":"e","retry_in":"10s"},
  {"lease":"l3","outcome":"failed","error":"e","final":true},
  {"lease":"l4","outcome":"snoozed","for":"5s"},
  {"lease":"l5","outcome":"snoozed","until":"2026-12-01T09:55:00.000000Z"},
  {"lease":"l6","outcome":"released"},
  {"lease":"l7","outcome":"succeeded"},
  {"lease":"l8","outcome":"snoozed","for":"5s","reset":true},
  {"lease":"l9","outcome":"released","progress":{"half":[true]}}]}"#;

pub fn jobs_call() -> Lease {
    let mut lease = Lease::jobs(vec![queue(), QueueName::parse("b").unwrap()], 3);
    lease.wait = Span::from_s(5);
    lease.worker = Worker {
        id: Some(WorkerId::parse("w1").unwrap()),
        host: Some("h".to_owned()),
        pid: Some(42),
        version: None,
    };
    lease.request_id = Some(RequestId::parse("r1").unwrap());
    lease
}

pub fn needs_call() -> Lease {
    let mut lease = Lease::needs(vec![needs().remove(0)]);
    lease.ttl = Span::ZERO;
    lease.request_id = Some(RequestId::parse("r2").unwrap());
    lease.place = Some(RequestId::parse("r1").unwrap());
    lease
}
