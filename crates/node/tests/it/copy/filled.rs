//! A store with a bit of everything, made through its engine as clients would, by a seed.

use std::sync::Arc;

use tenure_core::job::{Backoff, JobState, Need, NewJob, OnConflict, Retry, Unique, Until, When};
use tenure_core::lease::{
    Ending, Later, LeaseView, LimitVerdict, ResourceVerdict, SettleItem, Verdict, Worker,
};
use tenure_core::names::*;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, NewResource, PoolSettings, QueueSettings};
use tenure_core::time::Span;
use tenure_core::trace::TraceParent;
use tenure_engine_api::{Engine, EngineExt};

use crate::copy::world::KEYS;

/// Numbers that a seed makes.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

pub fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap()
}
pub fn limit(name: &str) -> LimitName {
    LimitName::parse(name).unwrap()
}
pub fn pool(name: &str) -> PoolName {
    PoolName::parse(name).unwrap()
}
fn needs(text: &str) -> Vec<Need> {
    serde_json::from_str(text).unwrap()
}

pub const QUEUES: [&str; 3] = ["q0", "q1", "größe 2"];
const HOUR: Span = Span::from_s(3_600);

/// What a job may need. All of it stays free of a clock's work within a test.
const NEEDS: [&str; 7] = [
    r#"[]"#,
    r#"[]"#,
    r#"[{"limit":"a"}]"#,
    r#"[{"limit":"site:x","weight":1},{"limit":"a","weight":2}]"#,
    r#"[{"pool":"p","tag":"t1"}]"#,
    r#"[{"pool":"p","id":"r2"}]"#,
    r#"[{"limit":"lock:one"},{"pool":"p","count":2}]"#,
];

fn resource(pool: &str, id: &str, n: u32) -> NewResource {
    NewResource {
        id: ResourceId::parse(id).unwrap(),
        data: Json::parse(&format!(r#"{{"password":"geheim-{pool}-{id}"}}"#)).unwrap(),
        tags: vec![Tag::parse(&format!("t{}", n % 3)).unwrap()],
        slots: 1 + n % 2,
    }
}

async fn settings(engine: &Arc<dyn Engine>, ns: &Namespace) {
    for (name, text) in [
        ("a", r#"{"concurrency":2}"#),
        ("site:*", r#"{"concurrency":1,"gap":"1h"}"#),
        ("site:own", r#"{"concurrency":3,"rate":{"count":1,"per":"1h","burst":5}}"#),
        ("closed", r#"{"concurrency":0}"#),
        ("rate", r#"{"rate":{"count":10,"per":"1h","burst":4}}"#),
    ] {
        let settings: LimitSettings = serde_json::from_str(text).unwrap();
        engine.run(ns, PutLimit { limit: limit(name), settings, gauge: None }).await.unwrap();
    }
    let long = Later::For(HOUR);
    engine.run(ns, PauseLimit { limit: limit("site:own"), until: long }).await.unwrap();
    let seen = ObserveLimit { limit: limit("site:seen"), external: 2, hold: Some(HOUR) };
    engine.run(ns, seen).await.unwrap();
    let seen = ObserveLimit { limit: limit("closed"), external: 1, hold: None };
    engine.run(ns, seen).await.unwrap();
    for (name, text) in [
        ("p", r#"{"quarantine":"1h","max_uses":9}"#),
        ("paced", r#"{"rate":{"count":1,"per":"1h","burst":2}}"#),
        ("empty", r#"{"cooldown":"5s","pick":"random"}"#),
    ] {
        let settings: PoolSettings = serde_json::from_str(text).unwrap();
        engine.run(ns, PutPool { pool: pool(name), settings }).await.unwrap();
    }
    for name in ["p", "paced"] {
        let resources = (0..8).map(|n| resource(name, &format!("r{n}"), n));
        let add = AddResources { pool: pool(name), resources: resources.collect() };
        engine.run(ns, add).await.unwrap();
    }
    let of = |id: &str| (pool("p"), ResourceId::parse(id).unwrap());
    let ((p, r6), (_, r7)) = (of("r6"), of("r7"));
    let ban = BanResource { pool: p.clone(), resource: r6, reason: Some("captcha".to_owned()) };
    engine.run(ns, ban).await.unwrap();
    let cool = CoolResource { pool: p, resource: r7, until: Later::For(HOUR) };
    engine.run(ns, cool).await.unwrap();
    let text = r#"{"needs":[{"limit":"rate"}],"timeout":"10m","retain":"2d","max_waiting":500,"lost_delay":"3s",
                   "shares":{"g0":3},"show_payload":false,"retry":{"max_attempts":4,"max_lost":2,
                   "backoff":{"kind":"list","delays":["1h","2h"],"jitter":true}}}"#;
    let settings: QueueSettings = serde_json::from_str(text).unwrap();
    engine.run(ns, PutQueue { queue: queue("q1"), settings }).await.unwrap();
    let pause = |name: &str, until| PauseQueue { queue: queue(name), until };
    engine.run(ns, pause("paused", None)).await.unwrap();
    engine.run(ns, pause("paused till", Some(Later::For(HOUR)))).await.unwrap();
}

fn job(dice: &mut Dice, n: u64) -> NewJob {
    let mut job = NewJob::new(queue(QUEUES[dice.below(3) as usize]));
    if dice.one_in(2) {
        job.id = Some(JobId::parse(&format!("job {n}")).unwrap());
    }
    job.kind = ["", "fetch", "größe"][dice.below(3) as usize].to_owned();
    job.payload =
        Json::parse(&format!(r#"{{"n":{n},"text":"zeile\n{}"}}"#, "x".repeat(n as usize))).unwrap();
    job.priority = dice.below(3) as i8 - 1;
    job.group = [None, None, Group::parse("g0").ok(), Group::parse("g/1").ok()]
        [dice.below(4) as usize]
        .clone();
    if !dice.one_in(4) {
        job.needs = Some(needs(NEEDS[dice.below(7) as usize]));
    }
    if dice.one_in(6) {
        job.when = When::In(HOUR);
    }
    if dice.one_in(6) {
        job.unique = Some(Unique {
            key: UniqueKey::parse(KEYS[dice.below(3) as usize]).unwrap(),
            until: if dice.one_in(2) { Until::Start } else { Until::End },
            hold: dice.one_in(2).then_some(HOUR),
            on_conflict: if dice.one_in(2) { OnConflict::Replace } else { OnConflict::Keep },
            within: dice.one_in(2).then_some(HOUR),
        });
    }
    if dice.one_in(8) {
        let backoff = Backoff::Fixed { base: HOUR, jitter: false };
        job.retry = Some(Retry { max_attempts: 2, max_lost: 0, max_snoozes: None, backoff });
    }
    if dice.one_in(8) {
        job.labels.insert("tenant".to_owned(), format!("t {n}"));
    }
    if dice.one_in(8) {
        let trace = format!("00-0af7651916cd43dd8448eb211c80319c-{:016x}-01", n + 1);
        job.traceparent = TraceParent::parse(&trace).ok();
    }
    if dice.one_in(8) {
        job.retain = Some(Span::from_s(7_200));
    }
    if dice.one_in(8) {
        let far = tenure_core::time::Moment::from_us(4_000_000_000_000_000);
        job.expires_at = Some(far);
    }
    job
}

fn ending(dice: &mut Dice) -> Ending {
    match dice.below(6) {
        0 | 1 => {
            Ending::Succeeded { result: dice.one_in(2).then(|| Json::from(dice.below(99) as i64)) }
        }
        2 => Ending::Failed { error: "http 500".to_owned(), retry_in: Some(HOUR), last: false },
        3 => Ending::Failed { error: "kaputt".to_owned(), retry_in: None, last: true },
        4 => Ending::Snoozed { later: Later::For(HOUR), reset: false },
        _ => Ending::Released,
    }
}

fn settling(dice: &mut Dice, lease: &LeaseView) -> SettleItem {
    let ending = ending(dice);
    let mut verdict = || match dice.below(8) {
        0 => Verdict::Cool(Later::For(HOUR)),
        1 => Verdict::Ban { reason: Some("blocked".to_owned()) },
        _ => Verdict::Ok,
    };
    let resources = lease.resources.iter().map(|held| ResourceVerdict {
        pool: held.pool.clone(),
        id: held.id.clone(),
        verdict: verdict(),
    });
    let resources = resources.collect();
    let limits = lease.limits.iter().filter(|name| name.as_str() == "rate");
    let limits =
        limits.map(|name| LimitVerdict { limit: name.clone(), pause: None, spent: Some(2) });
    SettleItem {
        resources,
        limits: limits.collect(),
        ..SettleItem::new(lease.lease.clone().unwrap(), ending)
    }
}

pub fn worker(name: &str) -> Worker {
    Worker { id: WorkerId::parse(name).ok(), ..Worker::default() }
}

pub async fn lease_jobs(
    engine: &Arc<dyn Engine>,
    ns: &Namespace,
    name: &str,
    max: usize,
) -> Vec<LeaseView> {
    let lease = Lease { worker: worker("w"), ..Lease::jobs(vec![queue(name)], max) };
    engine.run(ns, lease).await.unwrap().leases
}

/// Fills a namespace; no lease lives at the end.
pub async fn fill(engine: &Arc<dyn Engine>, ns: &Namespace, seed: u64, jobs: u64) {
    let mut dice = Dice::new(seed);
    settings(engine, ns).await;
    let mut n = 0;
    while n < jobs {
        let mut some = (0..1 + dice.below(9)).map(|at| job(&mut dice, n + at)).collect::<Vec<_>>();
        // One key in one call, in two queues, is another matter.
        some.iter_mut().skip(1).for_each(|job| job.unique = None);
        n += some.len() as u64;
        let answer = if dice.one_in(2) { PushAnswer::Whole } else { PushAnswer::Ids };
        // A key that a job of another queue holds is none to replace.
        let pushed = engine.run(ns, Push { jobs: some, answer }).await;
        assert!(pushed.is_ok() || pushed.is_err_and(|no| no.code() == Some(Code::UniqueConflict)));
        let name = QUEUES[dice.below(3) as usize];
        let max = 1 + dice.below(4) as usize;
        let leases = lease_jobs(engine, ns, name, max).await;
        let settle = leases.iter().map(|lease| settling(&mut dice, lease)).collect::<Vec<_>>();
        if !settle.is_empty() {
            engine.run(ns, Settle::of(settle)).await.unwrap();
        }
    }
    change(engine, ns, &mut dice).await;
    use_up(engine, ns).await;
    let fresh = (0..4).map(|at| resource("p", &format!("new{at}"), 1));
    let add = AddResources { pool: pool("p"), resources: fresh.collect() };
    engine.run(ns, add).await.unwrap();
    // These nobody has asked for yet.
    for at in n..n + jobs / 3 {
        let push = Push { jobs: vec![job(&mut dice, at)], answer: PushAnswer::Ids };
        drop(engine.run(ns, push).await);
    }
    nothing_is_due_soon(engine, ns).await;
}

/// Who is released twice in a row waits a second: returns when that is over, so that nothing changes by
/// itself while a test looks.
async fn nothing_is_due_soon(engine: &Arc<dyn Engine>, ns: &Namespace) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let soon =
            tenure_engine_api::Clock::now(&tenure_engine_api::SystemClock).plus(Span::from_s(600));
        let jobs = crate::copy::world::jobs(engine, ns).await;
        if !jobs.iter().any(|job| job.state == JobState::Scheduled && job.run_at < soon) {
            return;
        }
        assert!(std::time::Instant::now() < end, "something stays due");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Jobs that are called off, tried again, moved; progress; a lease without a job.
async fn change(engine: &Arc<dyn Engine>, ns: &Namespace, dice: &mut Dice) {
    for view in crate::copy::world::jobs(engine, ns).await {
        let job = JobRef::Id(view.id.clone());
        match dice.below(20) {
            0 => drop(engine.run(ns, CancelJob { job }).await),
            1 => drop(engine.run(ns, RetryJob { job, finished_at: None }).await),
            2 => drop(engine.run(ns, RunJobNow { job }).await),
            3 => drop(engine.run(ns, DeleteJob { job }).await),
            4 => {
                let priority = Patch::Set(1);
                let patch = PatchJob { priority, ..PatchJob::new(job) };
                drop(engine.run(ns, patch).await);
            }
            _ => {}
        }
    }
    for lease in lease_jobs(engine, ns, QUEUES[0], 2).await {
        let id = lease.lease.clone().unwrap();
        let progress = Some(Json::from("halb"));
        let item = tenure_core::lease::ExtendItem { lease: id.clone(), progress };
        engine.run(ns, Extend { leases: vec![item], ttl: None }).await.unwrap();
        let ending = Ending::Snoozed { later: Later::For(HOUR), reset: false };
        give_back(engine, ns, id, ending).await;
    }
    let hold = Lease { worker: worker("w"), ..Lease::needs(needs(r#"[{"limit":"site:gap"}]"#)) };
    for lease in engine.run(ns, hold).await.unwrap().leases {
        give_back(engine, ns, lease.lease.unwrap(), Ending::Released).await;
    }
}

pub async fn give_back(engine: &Arc<dyn Engine>, ns: &Namespace, lease: String, ending: Ending) {
    let settle = vec![SettleItem::new(lease, ending)];
    engine.run(ns, Settle::of(settle)).await.unwrap();
}

/// A queue that was deleted and has a finished job; a key whose job is gone.
async fn use_up(engine: &Arc<dyn Engine>, ns: &Namespace) {
    let mut gone = NewJob::new(queue("deleted"));
    gone.id = JobId::parse("of a deleted queue").ok();
    let mut key = NewJob::new(queue("gone"));
    key.retain = Some(Span::ZERO);
    key.unique = Some(Unique {
        key: UniqueKey::parse("gone").unwrap(),
        until: Until::End,
        hold: Some(HOUR),
        on_conflict: OnConflict::Keep,
        within: None,
    });
    let push = Push { jobs: vec![gone, key], answer: PushAnswer::Ids };
    engine.run(ns, push).await.unwrap();
    for name in ["deleted", "gone"] {
        for lease in lease_jobs(engine, ns, name, 1).await {
            let ending = Ending::Succeeded { result: None };
            give_back(engine, ns, lease.lease.unwrap(), ending).await;
        }
    }
    engine.run(ns, DeleteQueue { queue: queue("deleted") }).await.unwrap();
    // The next tick forgets it, and not its key.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let of_gone = || ListJobs {
        filter: JobFilter { queue: Some(queue("gone")), ..JobFilter::default() },
        ..ListJobs::default()
    };
    while !engine.run(ns, of_gone()).await.unwrap().items.is_empty() {
        assert!(std::time::Instant::now() < end, "it was to be forgotten");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
