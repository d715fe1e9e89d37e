//! The contract's mirror: what is sent for every operation, and that its answer is understood.
#![allow(clippy::unwrap_used)]

mod read_back;
mod scripted;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use scripted::{Scripted, Then};
use serde_json::Value;
use tenure::core::job::{Backoff, JobState, Labels, OnConflict, Retry, Unique, Until};
use tenure::core::lease::{
    Ending, ExtendItem, LimitVerdict, ResourceVerdict, SettleItem, Verdict, Worker,
};
use tenure::core::names::{Group, RequestId, Tag, UniqueKey, WorkerId};
use tenure::core::requests::*;
use tenure::core::settings::{LimitSettings, NewResource, Pick, PoolSettings, QueueSettings, Rate};
use tenure::{
    Engine, JobId, JobRef, Json, Later, LimitName, Moment, Namespace, Need, NewJob, PoolName,
    QueueName, ResourceId, Span, When,
};

const JOB: &str = r#"{"id":"j1","queue":"q","kind":"","state":"ready","payload":{"n": 1.50},
  "priority":0,"group":null,"needs":[{"limit":"scrapy","weight":1,"cost":1}],"attempt":0,"lost":0,
  "run_at":"2026-12-01T09:55:00.000000Z","created_at":"2026-12-01T09:55:00.000000Z",
  "started_at":null,"finished_at":null,"expires_at":null,"result":null,"error":null,"errors":[],
  "progress":{"half":[true]},"unique":null,"labels":{},"lease":null,"cancel_requested":false,
  "retry":{"max_attempts":20,"max_lost":3,"backoff":{"kind":"fixed","base":"1s","jitter":true}},
  "timeout":null,"retain":null,"new":1}"#;
const QUEUE: &str = r#"{"name":"q","paused":false,"paused_until":null,"needs":[],"retry":null,
  "timeout":"5m","retain":null,"max_waiting":null,"shares":{"tenant-7":3},
  "counts":{"ready":1,"blocked":0,"scheduled":0,"dependent":0,"running":0},
  "oldest_ready_at":null,"workers":0,"new":1}"#;
const LIMIT: &str = r#"{"name":"site:a","template":"site:*","concurrency":1,
  "rate":{"count":10,"per":"1s","burst":1},"gap":null,"in_use":0,"external":0,"waiting":0,
  "over_limit":0,"paused_until":null,"holders":[],"new":1}"#;
const POOL: &str = r#"{"name":"p","quarantine":"0s","cooldown":"0s","rate":null,"max_uses":null,
  "pick":"lru","available":1,"leased":0,"cooling":0,"banned":0,"waiting":0,"new":1}"#;
const RESOURCE: &str = r#"{"id":"r1","data":{"password":"•"},"tags":[],"slots":1,
  "state":"available","reason":null,"in_use":0,"until":null,"retiring":false,"holders":[],"uses":0,
  "last_used_at":null,"new":1}"#;
const LEASE: &str = r#"{"lease":"l1","fence":7,"holder":"w1",
  "granted_at":"2026-12-01T09:55:00.000000Z","expires_at":"2026-12-01T09:55:30.000000Z",
  "deadline":null,"job":null,"resources":[{"pool":"p","id":"r1","data":{"password":"x"},
  "tags":["cn"]}],"limits":["scrapy"],"new":1}"#;
const SUMMARY: &str = r#"{"lease":"l1","fence":7,"holder":"w1",
  "granted_at":"2026-12-01T09:55:00.000000Z","expires_at":"2026-12-01T09:55:30.000000Z",
  "deadline":null,"job":"j1","queue":"q","resources":[],"limits":[],"cancel_requested":false}"#;
const WORKER: &str = r#"{"id":"w1","host":"h","pid":1,"version":"1","queues":["q"],"leases":0,
  "last_seen_at":"2026-12-01T09:55:00.000000Z"}"#;

fn list(item: &str) -> String {
    format!(r#"{{"items":[{item}],"next":null,"new":1}}"#)
}

fn queue() -> QueueName {
    QueueName::parse("größe b").unwrap()
}
const QUEUE_PATH: &str = "/v1/queues/gr%C3%B6%C3%9Fe%20b";
fn limit() -> LimitName {
    LimitName::parse("site:a.b").unwrap()
}
fn pool() -> PoolName {
    PoolName::parse("p").unwrap()
}
fn resource() -> ResourceId {
    ResourceId::parse("a/b?c#d%,e").unwrap()
}
const RESOURCE_PATH: &str = "/v1/pools/p/resources/a%2Fb%3Fc%23d%25%2Ce";
fn id() -> JobRef {
    JobRef::Id(JobId::parse("j1").unwrap())
}
fn key() -> JobRef {
    JobRef::Key(UniqueKey::parse("meeting/42").unwrap())
}
fn at() -> Moment {
    "2026-12-01T17:55:00+08:00".parse().unwrap()
}
fn filter() -> JobFilter {
    JobFilter {
        queue: Some(queue()),
        states: vec![JobState::Ready, JobState::Blocked],
        kind: Some("fetch page".to_owned()),
        label: Some(("k".to_owned(), "a&b=c".to_owned())),
    }
}
fn page() -> Page {
    Page { max: 7, cursor: Some("a+b/=".to_owned()) }
}
fn needs() -> Vec<Need> {
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
const NEEDS: &str =
    r#"[{"limit":"site:a.b","weight":2,"cost":0},{"pool":"p","tag":"cn","count":1}]"#;
fn rate() -> Rate {
    Rate { count: 10, per: Span::from_s(1), burst: 2 }
}
fn new_resource() -> NewResource {
    let tags = vec![Tag::parse("cn").unwrap()];
    NewResource { id: resource(), data: Json::parse(r#"{"n": 1.50}"#).unwrap(), tags, slots: 2 }
}
const NEW_RESOURCE: &str = r#"{"id":"a/b?c#d%,e","data":{"n": 1.50},"tags":["cn"],"slots":2}"#;

fn whole_job() -> NewJob {
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
    });
    job.retry = Some(Retry {
        max_attempts: 0,
        max_lost: 3,
        backoff: Backoff::List { delays: vec![Span::from_s(1)], jitter: false },
    });
    job.timeout = Some(Span::from_s(300));
    job.expires_at = Some(at());
    job.retain = Some(Span::ZERO);
    job.labels = Labels::from([("k".to_owned(), "v".to_owned())]);
    job
}
const WHOLE_JOB: &str = r#"{"id":"j1","queue":"größe b","kind":"fetch","payload":{"n": 1.50},
  "delay":"1m30s500ms","priority":-5,"group":"tenant/7","needs":NEEDS,
  "unique":{"key":"k","until":"start","for":"1h","on_conflict":"replace"},
  "retry":{"max_attempts":0,"max_lost":3,"backoff":{"kind":"list","delays":["1s"],"jitter":false}},
  "timeout":"5m","expires_at":"2026-12-01T09:55:00.000000Z","retain":"0s","labels":{"k":"v"}}"#;

fn plain_job(when: When) -> NewJob {
    let mut job = NewJob::new(QueueName::parse("q").unwrap());
    job.when = when;
    job
}

fn item(lease: &str, ending: Ending) -> SettleItem {
    let lease = lease.to_owned();
    SettleItem { lease, ending, resources: vec![], limits: vec![], push: vec![] }
}

fn settles() -> Vec<SettleItem> {
    let verdict = |verdict| ResourceVerdict { pool: pool(), id: resource(), verdict };
    let mut first = item("l1", Ending::Succeeded { result: Some(Json::of(&[1])) });
    first.resources = vec![
        verdict(Verdict::Ok),
        verdict(Verdict::Cool(Later::For(Span::from_s(600)))),
        verdict(Verdict::Cool(Later::Until(at()))),
        verdict(Verdict::Ban { reason: Some("captcha".to_owned()) }),
        verdict(Verdict::Ban { reason: None }),
    ];
    let said = |pause, spent| LimitVerdict { limit: limit(), pause, spent };
    first.limits = vec![said(Some(Later::For(Span::from_s(30))), None), said(None, Some(812))];
    first.push = vec![plain_job(When::Now)];
    let failed = |retry_in, last| Ending::Failed { error: "e".to_owned(), retry_in, last };
    let snoozed = |later| Ending::Snoozed { later };
    vec![
        first,
        item("l2", failed(Some(Span::from_s(10)), false)),
        item("l3", failed(None, true)),
        item("l4", snoozed(Later::For(Span::from_s(5)))),
        item("l5", snoozed(Later::Until(at()))),
        item("l6", Ending::Released),
        item("l7", Ending::Succeeded { result: None }),
    ]
}
const SETTLES: &str = r#"{"settle":[
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
  {"lease":"l7","outcome":"succeeded"}]}"#;

fn jobs_call() -> Lease {
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

fn needs_call() -> Lease {
    let mut lease = Lease::needs(vec![needs().remove(0)]);
    lease.ttl = Span::ZERO;
    lease.request_id = Some(RequestId::parse("r2").unwrap());
    lease.place = Some(RequestId::parse("r1").unwrap());
    lease
}

/// A case: the request, `METHOD path`, the body (empty: none), status and body of the answer, and
/// whether the reply is right.
type Row = (Request, String, String, u16, String, fn(&Reply) -> bool);

macro_rules! row {
    ($request:expr, $line:expr, $body:expr, $status:expr, $answer:expr, $right:pat $(if $guard:expr)?) => {
        (
            Request::from($request),
            String::from($line),
            String::from($body),
            $status,
            String::from($answer),
            |reply| matches!(reply, $right $(if $guard)?),
        )
    };
}

fn jobs() -> Vec<Row> {
    use Reply as R;
    let push = |jobs, answer| Push { jobs, answer };
    let mut patch = PatchJob::new(id());
    patch.when = Patch::Set(When::At(at()));
    patch.priority = Patch::Reset;
    patch.payload = Patch::Set(Json::parse(r#"{"n": 1.50}"#).unwrap());
    patch.needs = Patch::Set(vec![]);
    patch.group = Patch::Set(Group::parse("g").unwrap());
    patch.labels = Patch::Set(Labels::new());
    patch.timeout = Patch::Set(Span::from_s(1));
    patch.expires_at = Patch::Reset;
    let when = |when| {
        let mut patch = PatchJob::new(key());
        patch.when = when;
        patch
    };
    let pushed = format!(
        "[{},{}]",
        JOB.replace(r#""new":1"#, r#""duplicate":true,"replaced":true"#),
        JOB.replace(r#""new":1"#, r#""duplicate":false,"workers":0"#)
    );
    vec![
        row!(
            push(vec![whole_job(), plain_job(When::At(at()))], PushAnswer::Whole),
            "POST /v1/jobs",
            format!(
                r#"[{},{{"queue":"q","run_at":"2026-12-01T09:55:00.000000Z"}}]"#,
                WHOLE_JOB.replace("NEEDS", NEEDS)
            ),
            200,
            pushed.clone(),
            R::Push(Pushed::Whole(jobs)) if jobs[0].replaced
                && jobs[0].job.payload.as_ref().is_some_and(|json| json.text() == r#"{"n": 1.50}"#)
                && jobs[1].workers == Some(0)
        ),
        row!(
            push(vec![plain_job(When::Now)], PushAnswer::Ids),
            "POST /v1/jobs",
            r#"[{"queue":"q"}]"#,
            200,
            pushed,
            R::Push(Pushed::Ids(ids)) if ids[0].duplicate && ids[1].workers == Some(0)
        ),
        row!(
            push(vec![plain_job(When::Now)], PushAnswer::Ids),
            "POST /v1/jobs",
            r#"[{"queue":"q"}]"#,
            201,
            r#"{"id":"j1","duplicate":false}"#,
            R::Push(Pushed::Ids(ids)) if ids.len() == 1
        ),
        row!(GetJob { job: id() }, "GET /v1/jobs/j1", "", 200, JOB, R::GetJob(_)),
        row!(GetJob { job: key() }, "GET /v1/jobs/key:meeting%2F42", "", 200, JOB, R::GetJob(_)),
        row!(
            ListJobs { filter: filter(), page: page(), full: true },
            "GET /v1/jobs?queue=gr%C3%B6%C3%9Fe%20b&state=ready%2Cblocked&kind=fetch%20page\
             &label=k:a%26b%3Dc&max=7&cursor=a%2Bb%2F%3D&full=true",
            "",
            200,
            list(JOB).replace(r#""next":null"#, r#""next":"c","partial":true"#),
            R::ListJobs(jobs) if jobs.partial && jobs.next.as_deref() == Some("c")
        ),
        row!(ListJobs::default(), "GET /v1/jobs?max=100", "", 200, list(JOB), R::ListJobs(_)),
        row!(
            patch,
            "PATCH /v1/jobs/j1",
            r#"{"run_at":"2026-12-01T09:55:00.000000Z","priority":null,"payload":{"n": 1.50},
                "needs":[],"group":"g","labels":{},"timeout":"1s","expires_at":null}"#,
            200,
            JOB,
            R::PatchJob(_)
        ),
        row!(
            when(Patch::Set(When::In(Span::from_s(5)))),
            "PATCH /v1/jobs/key:meeting%2F42",
            r#"{"delay":"5s"}"#,
            200,
            JOB,
            R::PatchJob(_)
        ),
        row!(
            when(Patch::Reset),
            "PATCH /v1/jobs/key:meeting%2F42",
            r#"{"run_at":null}"#,
            200,
            JOB,
            R::PatchJob(_)
        ),
        row!(DeleteJob { job: id() }, "DELETE /v1/jobs/j1", "", 204, "", R::DeleteJob(())),
        row!(CancelJob { job: id() }, "POST /v1/jobs/j1/cancel", "", 200, JOB, R::CancelJob(_)),
        row!(
            RetryJob { job: id(), finished_at: None },
            "POST /v1/jobs/j1/retry",
            "",
            200,
            JOB,
            R::RetryJob(_)
        ),
        row!(
            RetryJob { job: id(), finished_at: Some(at()) },
            "POST /v1/jobs/j1/retry",
            r#"{"finished_at":"2026-12-01T09:55:00.000000Z"}"#,
            200,
            JOB,
            R::RetryJob(_)
        ),
        row!(RunJobNow { job: id() }, "POST /v1/jobs/j1/run-now", "", 200, JOB, R::RunJobNow(_)),
        row!(
            CancelJobs { filter: filter(), max: 1000 },
            "POST /v1/jobs/cancel",
            r#"{"queue":"größe b","state":"ready,blocked","kind":"fetch page","label":"k:a&b=c",
                "max":1000}"#,
            200,
            r#"{"done":3,"more":true}"#,
            R::CancelJobs(DoneMany { done: 3, more: true })
        ),
        row!(
            RetryJobs { filter: JobFilter::default(), max: 10 },
            "POST /v1/jobs/retry",
            r#"{"max":10}"#,
            200,
            r#"{"done":0,"more":false}"#,
            R::RetryJobs(_)
        ),
        row!(
            ExplainJob { job: id() },
            "GET /v1/jobs/j1/explain",
            "",
            200,
            r#"{"id":"j1","state":"blocked","summary":"s","reasons":[{"kind":"limit",
                "name":"scrapy","in_use":1,"capacity":1,"holders":[{"lease":"l1","holder":"w1",
                "job":"j0","since":"2026-12-01T09:55:00.000000Z"}],"position":1,"ahead":null,
                "earliest":null,"detail":"d"}],"new":1}"#,
            R::ExplainJob(why) if why.reasons[0].holders.len() == 1
        ),
    ]
}

fn leases() -> Vec<Row> {
    use Reply as R;
    let extend = |item: &str, progress| ExtendItem { lease: item.to_owned(), progress };
    vec![
        row!(
            jobs_call(),
            "POST /v1/leases",
            r#"{"queues":["größe b","b"],"max":3,"wait":"5s","ttl":"30s",
                "worker":{"id":"w1","host":"h","pid":42},"request_id":"r1"}"#,
            200,
            format!(r#"{{"leases":[{}]}}"#, LEASE.replace(r#""job":null"#, &format!(r#""job":{JOB}"#))),
            R::Lease(leased) if leased.leases[0].job.is_some()
                && leased.leases[0].resources[0].data.text() == r#"{"password":"x"}"#
        ),
        row!(
            needs_call(),
            "POST /v1/leases",
            r#"{"needs":[{"limit":"site:a.b","weight":2,"cost":0}],"wait":"0s","ttl":"0s",
                "request_id":"r2","place":"r1"}"#,
            200,
            r#"{"leases":[{"lease":null,"fence":9,"limits":["llm:tokens"]}]}"#,
            R::Lease(leased) if leased.leases[0].lease.is_none() && leased.leases[0].fence == 9
        ),
        row!(
            Lease::needs(needs()),
            "POST /v1/leases",
            format!(r#"{{"needs":{NEEDS},"wait":"0s","ttl":"30s"}}"#),
            200,
            r#"{"leases":[],"next_at":"2026-12-01T09:55:00.000000Z","reasons":[]}"#,
            R::Lease(leased) if leased.next_at.is_some()
        ),
        row!(
            Extend {
                leases: vec![extend("l1", None), extend("l2", Some(Json::of(&[1])))],
                ttl: Some(Span::from_s(60)),
            },
            "POST /v1/leases/extend",
            r#"{"leases":["l1",{"lease":"l2","progress":[1]}],"ttl":"1m"}"#,
            200,
            r#"{"extended":[{"lease":"l1","expires_at":"2026-12-01T09:55:00.000000Z"}],
                "lost":["l2"],"cancel":["l1"],"new":1}"#,
            R::Extend(extended) if extended.lost == ["l2"] && extended.cancel == ["l1"]
        ),
        row!(
            Extend { leases: vec![], ttl: None },
            "POST /v1/leases/extend",
            r#"{"leases":[]}"#,
            200,
            r#"{"extended":[],"lost":[],"cancel":[]}"#,
            R::Extend(_)
        ),
        row!(
            Settle { settle: settles() },
            "POST /v1/leases/settle",
            SETTLES,
            200,
            format!(
                r#"{{"settled":[{{"lease":"l1","ok":true,"state":"succeeded","run_at":null,
                    "pushed":[{}]}},{{"lease":"l2","ok":false,"code":"already_settled"}}]}}"#,
                JOB.replace(r#""new":1"#, r#""duplicate":false"#)
            ),
            R::Settle(settled) if settled.settled[0].pushed[0].job.id.as_str() == "j1"
                && settled.settled[1].code == Some(tenure::Code::AlreadySettled)
        ),
        row!(
            ListLeases {
                queue: Some(queue()),
                limit: Some(limit()),
                pool: Some(pool()),
                worker: Some("w 1".to_owned()),
                page: page(),
            },
            "GET /v1/leases?queue=gr%C3%B6%C3%9Fe%20b&limit=site:a.b&pool=p&worker=w%201&max=7\
             &cursor=a%2Bb%2F%3D",
            "",
            200,
            list(SUMMARY),
            R::ListLeases(leases) if leases.items.len() == 1
        ),
        row!(
            ForceLease { lease: "l/1".to_owned() },
            "DELETE /v1/leases/l%2F1",
            "",
            204,
            "",
            R::ForceLease(())
        ),
        row!(
            ListWorkers { page: page() },
            "GET /v1/workers?max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(WORKER),
            R::ListWorkers(_)
        ),
        row!(
            GetStats,
            "GET /v1/stats",
            "",
            200,
            r#"{"jobs":{"ready":1},"queues":{"q":{"ready":1}},"leases":0,"oldest_ready_at":null,
                "store":{"kind":"embedded","bytes":1}}"#,
            R::GetStats(stats) if stats.jobs[&JobState::Ready] == 1
        ),
        row!(
            RunAudit,
            "GET /v1/audit",
            "",
            200,
            r#"{"ok":false,"checked":1,"faults":["f"]}"#,
            R::RunAudit(audit) if audit.faults == ["f"]
        ),
    ]
}

fn queues() -> Vec<Row> {
    use Reply as R;
    let settings = QueueSettings {
        needs: needs(),
        retry: None,
        timeout: Some(Span::from_s(300)),
        retain: None,
        max_waiting: Some(9),
        shares: BTreeMap::from([(Group::parse("tenant-7").unwrap(), 3)]),
    };
    let path = |tail: &str| format!("{QUEUE_PATH}{tail}");
    vec![
        row!(
            ListQueues { page: page() },
            "GET /v1/queues?max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(QUEUE),
            R::ListQueues(_)
        ),
        row!(
            GetQueue { queue: queue() },
            format!("GET {}", path("")),
            "",
            200,
            QUEUE,
            R::GetQueue(view) if view.settings.timeout == Some(Span::from_s(300))
        ),
        row!(
            PutQueue { queue: queue(), settings },
            format!("PUT {}", path("")),
            format!(
                r#"{{"needs":{NEEDS},"retry":null,"timeout":"5m","retain":null,"max_waiting":9,
                    "shares":{{"tenant-7":3}}}}"#
            ),
            201,
            QUEUE,
            R::PutQueue(Put { created: true, .. })
        ),
        row!(
            PatchQueue {
                queue: queue(),
                needs: Patch::Reset,
                retry: Patch::Set(Retry::default()),
                timeout: Patch::Keep,
                retain: Patch::Set(Span::ZERO),
                max_waiting: Patch::Set(1),
                shares: Patch::Set(BTreeMap::new()),
            },
            format!("PATCH {}", path("")),
            r#"{"needs":null,"retry":{"max_attempts":20,"max_lost":3,"backoff":
                {"kind":"exponential","base":"1s","max":"1h","jitter":true}},"retain":"0s",
                "max_waiting":1,"shares":{}}"#,
            200,
            QUEUE,
            R::PatchQueue(Put { created: false, .. })
        ),
        row!(
            DeleteQueue { queue: queue() },
            format!("DELETE {}", path("")),
            "",
            204,
            "",
            R::DeleteQueue(())
        ),
        row!(
            PauseQueue { queue: queue(), until: None },
            format!("POST {}", path("/pause")),
            "{}",
            200,
            QUEUE,
            R::PauseQueue(_)
        ),
        row!(
            PauseQueue { queue: queue(), until: Some(Later::For(Span::from_s(5))) },
            format!("POST {}", path("/pause")),
            r#"{"for":"5s"}"#,
            200,
            QUEUE,
            R::PauseQueue(_)
        ),
        row!(
            ResumeQueue { queue: queue() },
            format!("POST {}", path("/resume")),
            "",
            200,
            QUEUE,
            R::ResumeQueue(_)
        ),
    ]
}

fn limits() -> Vec<Row> {
    use Reply as R;
    let all = LimitName::parse("site:*").unwrap();
    vec![
        row!(
            ListLimits::default(),
            "GET /v1/limits?max=100",
            "",
            200,
            list(LIMIT),
            R::ListLimits(_)
        ),
        row!(
            GetLimit { limit: all.clone() },
            "GET /v1/limits/site:*",
            "",
            200,
            LIMIT,
            R::GetLimit(view) if view.settings.rate.is_some()
        ),
        row!(
            PutLimit {
                limit: all,
                settings: LimitSettings { concurrency: Some(0), rate: Some(rate()), gap: None },
            },
            "PUT /v1/limits/site:*",
            r#"{"concurrency":0,"rate":{"count":10,"per":"1s","burst":2},"gap":null}"#,
            200,
            LIMIT,
            R::PutLimit(Put { created: false, .. })
        ),
        row!(
            PatchLimit {
                limit: limit(),
                concurrency: Patch::Set(2),
                rate: Patch::Reset,
                gap: Patch::Set(Span::from_ms(1_500)),
            },
            "PATCH /v1/limits/site:a.b",
            r#"{"concurrency":2,"rate":null,"gap":"1s500ms"}"#,
            201,
            LIMIT,
            R::PatchLimit(Put { created: true, .. })
        ),
        row!(
            DeleteLimit { limit: limit() },
            "DELETE /v1/limits/site:a.b",
            "",
            204,
            "",
            R::DeleteLimit(())
        ),
        row!(
            PauseLimit { limit: limit(), until: Some(Later::Until(at())) },
            "POST /v1/limits/site:a.b/pause",
            r#"{"until":"2026-12-01T09:55:00.000000Z"}"#,
            200,
            LIMIT,
            R::PauseLimit(_)
        ),
        row!(
            ResumeLimit { limit: limit() },
            "POST /v1/limits/site:a.b/resume",
            "",
            200,
            LIMIT,
            R::ResumeLimit(_)
        ),
        row!(
            ObserveLimit { limit: limit(), external: 3, hold: Some(Span::from_s(60)) },
            "POST /v1/limits/site:a.b/observe",
            r#"{"external":3,"for":"1m"}"#,
            200,
            LIMIT,
            R::ObserveLimit(_)
        ),
        row!(
            ObserveLimit { limit: limit(), external: 0, hold: None },
            "POST /v1/limits/site:a.b/observe",
            r#"{"external":0}"#,
            200,
            LIMIT,
            R::ObserveLimit(_)
        ),
    ]
}

fn pools() -> Vec<Row> {
    use Reply as R;
    let settings = PoolSettings {
        quarantine: Span::from_s(60),
        cooldown: Span::ZERO,
        rate: Some(rate()),
        max_uses: None,
        pick: Pick::Random,
    };
    let sync =
        |resources, meant, version| SyncResources { pool: pool(), resources, meant, version };
    let synced = r#"{"added":1,"updated":2,"unchanged":3,"retired":4,"retiring":5,"new":1}"#;
    let one = |verb: &str| format!("POST {RESOURCE_PATH}{verb}");
    vec![
        row!(ListPools::default(), "GET /v1/pools?max=100", "", 200, list(POOL), R::ListPools(_)),
        row!(GetPool { pool: pool() }, "GET /v1/pools/p", "", 200, POOL, R::GetPool(_)),
        row!(
            PutPool { pool: pool(), settings },
            "PUT /v1/pools/p",
            r#"{"quarantine":"1m","cooldown":"0s","rate":{"count":10,"per":"1s","burst":2},
                "max_uses":null,"pick":"random"}"#,
            201,
            POOL,
            R::PutPool(Put { created: true, .. })
        ),
        row!(
            PatchPool {
                pool: pool(),
                quarantine: Patch::Keep,
                cooldown: Patch::Set(Span::from_s(1)),
                rate: Patch::Reset,
                max_uses: Patch::Set(5),
                pick: Patch::Set(Pick::Lru),
            },
            "PATCH /v1/pools/p",
            r#"{"cooldown":"1s","rate":null,"max_uses":5,"pick":"lru"}"#,
            200,
            POOL,
            R::PatchPool(Put { created: false, .. })
        ),
        row!(DeletePool { pool: pool() }, "DELETE /v1/pools/p", "", 204, "", R::DeletePool(())),
        row!(
            sync(vec![new_resource()], Meant::Ask, None),
            "PUT /v1/pools/p/resources",
            format!("[{NEW_RESOURCE}]"),
            200,
            synced,
            R::SyncResources(synced) if synced.retiring == 5
        ),
        row!(
            sync(vec![], Meant::Yes, Some(7)),
            "PUT /v1/pools/p/resources?force=true&version=7",
            "[]",
            200,
            synced,
            R::SyncResources(_)
        ),
        row!(
            AddResources { pool: pool(), resources: vec![new_resource()] },
            "POST /v1/pools/p/resources",
            format!("[{NEW_RESOURCE}]"),
            200,
            format!("[{RESOURCE}]"),
            R::AddResources(added) if added.len() == 1
        ),
        row!(
            ListResources { pool: pool(), page: page() },
            "GET /v1/pools/p/resources?max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(RESOURCE),
            R::ListResources(_)
        ),
        row!(
            GetResource { pool: pool(), resource: resource() },
            format!("GET {RESOURCE_PATH}"),
            "",
            200,
            RESOURCE,
            R::GetResource(_)
        ),
        row!(
            PatchResource {
                pool: pool(),
                resource: resource(),
                data: Patch::Set(Json::of(&1)),
                tags: Patch::Reset,
                slots: Patch::Keep,
            },
            format!("PATCH {RESOURCE_PATH}"),
            r#"{"data":1,"tags":null}"#,
            200,
            RESOURCE,
            R::PatchResource(_)
        ),
        row!(
            DeleteResource { pool: pool(), resource: resource() },
            format!("DELETE {RESOURCE_PATH}"),
            "",
            204,
            "",
            R::DeleteResource(())
        ),
        row!(
            CoolResource { pool: pool(), resource: resource(), until: Later::For(Span::from_s(5)) },
            one("/cool"),
            r#"{"for":"5s"}"#,
            200,
            RESOURCE,
            R::CoolResource(_)
        ),
        row!(
            BanResource { pool: pool(), resource: resource(), reason: Some("captcha".into()) },
            one("/ban"),
            r#"{"reason":"captcha"}"#,
            200,
            RESOURCE,
            R::BanResource(_)
        ),
        row!(
            BanResource { pool: pool(), resource: resource(), reason: None },
            one("/ban"),
            "{}",
            200,
            RESOURCE,
            R::BanResource(_)
        ),
        row!(
            RestoreResource { pool: pool(), resource: resource() },
            one("/restore"),
            "",
            200,
            RESOURCE,
            R::RestoreResource(_)
        ),
    ]
}

/// Without the line ends and indentation of this file's literals.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

#[tokio::test]
async fn every_operation_is_sent_and_read_as_the_contract_says() {
    let next: Arc<Mutex<(u16, String)>> = Arc::default();
    let answers = next.clone();
    let mut server = Scripted::start(move |_| {
        let (status, body) = answers.lock().unwrap().clone();
        Then::Answer(status, "content-type: application/json\r\n", body)
    })
    .await;
    let remote = server.remote();
    let mut names = HashSet::new();
    let rows = [jobs(), leases(), queues(), limits(), pools()];
    for (request, line, body, status, answer, right) in rows.into_iter().flatten() {
        names.insert(request.name());
        *next.lock().unwrap() = (status, answer);
        let reply = remote.call(&Namespace::main(), request.clone()).await;
        let seen = server.request().await;
        assert_eq!(seen.line, line);
        if body.is_empty() {
            assert_eq!(seen.body, "", "{line}");
            assert!(!seen.headers.contains_key("content-type"), "{line}");
        } else {
            assert_eq!(json(&seen.body), json(&body), "{line}");
            assert_eq!(seen.headers["content-type"], "application/json", "{line}");
        }
        // What the server's own reader makes of it is the request that was asked.
        if let Some(read) = read_back::read(&request, &seen) {
            assert_eq!(read, Ok(request), "{line}");
        }
        let reply = reply.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(right(&reply), "{line}: {reply:?}");
    }
    assert_eq!(names.len(), 48, "every operation has a row");
}

#[tokio::test]
async fn the_text_of_a_payload_is_sent_as_it_is() {
    let mut server = Scripted::start(|_| scripted::ok(r#"[{"id":"j1","duplicate":false}]"#)).await;
    let push = Push { jobs: vec![whole_job()], answer: PushAnswer::Ids };
    server.remote().call(&Namespace::main(), push.into()).await.unwrap();
    assert!(server.request().await.body.contains(r#""payload":{"n": 1.50}"#));
}

#[tokio::test]
async fn an_address_may_have_a_prefix() {
    let mut server =
        Scripted::start(|_| scripted::ok(r#"{"ok":true,"checked":0,"faults":[]}"#)).await;
    let url = format!("http://127.0.0.1:{}/tenure/", server.port).parse();
    let Ok(tenure::StoreUrl::Server(url)) = url else { unreachable!() };
    let remote = tenure::Remote::open(&url, None).unwrap();
    remote.call(&Namespace::main(), RunAudit.into()).await.unwrap();
    assert_eq!(server.request().await.line, "GET /tenure/v1/audit");
}
