//! Jobs go out as they were pushed and come back as `StoredJob::view` shows them.

use serde_json::{Map, Value, json};
use tenure_core::job::{
    Backoff, JobState, JobView, Need, NewJob, OnConflict, PushedJob, Retry, Unique, Until, When,
};
use tenure_core::machine::rows::{Archive, Archived, Class, DataKey};
use tenure_core::machine::{Command, Config, Machine, Rest, Seq, StoredJob};
use tenure_core::names::{
    Group, JobId, LimitName, Namespace, PoolName, QueueName, ResourceId, Tag, UniqueKey,
};
use tenure_core::requests::{Push, PushAnswer, PutLimit, PutPool};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, PoolSettings};
use tenure_core::time::{Moment, Span};

use super::jobs::{PushedReply, Stored};
use super::{Blobs, pushed_jobs};
use crate::encode::{PushArgs, RetryArg, new_jobs, pack};

const NOW: Moment = Moment::from_us(1_800_000_000_000_000);

/// Nothing is finished.
struct Nothing;
impl Archive for Nothing {
    fn by_id(&self, _: &Namespace, _: &JobId) -> Option<Archived> {
        None
    }
    fn by_seq(&self, _: &Namespace, _: Seq) -> Option<Archived> {
        None
    }
    fn over(&self, _: &Namespace, _: Moment, _: usize) -> Vec<Archived> {
        Vec::new()
    }
    fn next_over(&self, _: &Namespace) -> Option<Moment> {
        None
    }
    fn soonest(&self, _: Class, _: usize) -> Vec<(Namespace, Archived)> {
        Vec::new()
    }
}
impl Rest for Nothing {
    fn has_data(&self, _: &DataKey, _: &Json) -> bool {
        false
    }
}

fn limit(name: &str) -> LimitName {
    LimitName::parse(name).unwrap()
}
fn pool(name: &str) -> PoolName {
    PoolName::parse(name).unwrap()
}

/// Jobs that use every field, and none.
fn jobs() -> Vec<NewJob> {
    let plain = || NewJob::new(QueueName::parse("größe").unwrap());
    let span = Span::from_ms;
    let tag = Some(Tag::parse("cn").unwrap());
    let needs = vec![
        Need::Limit { limit: limit("scrapy"), weight: 2, cost: 0 },
        Need::Pool { pool: pool("a"), tag, prefer: None, id: None, count: 3 },
        Need::Pool {
            pool: pool("b"),
            tag: None,
            prefer: Some(ResourceId::parse("r").unwrap()),
            id: None,
            count: 1,
        },
    ];
    let unique = Unique {
        key: UniqueKey::parse("k 1").unwrap(),
        until: Until::Start,
        hold: Some(span(1_500)),
        on_conflict: OnConflict::Replace,
    };
    let retry = |backoff| Some(Retry { max_attempts: 0, max_lost: 7, backoff });
    let all = [
        NewJob { needs: Some(Vec::new()), ..plain() },
        NewJob {
            kind: "fetch".to_owned(),
            payload: Json::parse("{\"a\": [1, \"ü\\n\"]}").unwrap(),
            when: When::In(span(5_000)),
            priority: -100,
            group: Some(Group::parse("g").unwrap()),
            needs: Some(needs),
            unique: Some(unique),
            retry: retry(Backoff::List { delays: vec![span(1), span(2)], jitter: false }),
            timeout: Some(span(250)),
            expires_at: Some(NOW.plus(span(9_000))),
            retain: Some(Span::ZERO),
            labels: [("k".to_owned(), "v".to_owned())].into(),
            ..plain()
        },
        NewJob {
            retry: retry(Backoff::Fixed { base: span(3), jitter: true }),
            unique: Some(Unique {
                key: UniqueKey::parse("k 2").unwrap(),
                until: Until::End,
                hold: None,
                on_conflict: OnConflict::Keep,
            }),
            priority: 100,
            when: When::At(NOW.plus(span(1))),
            ..plain()
        },
    ];
    let mut all = all.to_vec();
    for (n, job) in all.iter_mut().enumerate() {
        job.id = Some(JobId::parse(&format!("job {n}")).unwrap());
    }
    all
}

/// What the state machine shows of them.
fn shown_by_the_machine(jobs: Vec<NewJob>) -> Vec<JobView> {
    let mut machine = Machine::new(Config::default());
    let ns = Namespace::main();
    let mut apply = |request: tenure_core::requests::Request| {
        machine.apply(&ns, Command::Request(request), NOW, &Nothing).unwrap();
    };
    let settings = LimitSettings { concurrency: Some(9), ..LimitSettings::default() };
    apply(PutLimit { limit: limit("scrapy"), settings }.into());
    for name in ["a", "b"] {
        apply(PutPool { pool: pool(name), settings: PoolSettings::default() }.into());
    }
    apply(Push { jobs, answer: PushAnswer::Whole }.into());
    let rows = machine.drain().rows.jobs.into_iter();
    let view = |(seq, row): (Seq, tenure_core::machine::rows::JobChange)| {
        let (_, id, content) = *row.new.unwrap();
        let stored = StoredJob {
            seq,
            id,
            kind: content.kind,
            state: row.state.unwrap(),
            shape: row.shape.unwrap().to_vec(),
            life: row.life.unwrap(),
            payload: Some(content.payload),
            labels: content.labels,
            result: None,
            error: None,
            errors: Vec::new(),
            progress: None,
        };
        stored.view(JobState::Ready).unwrap()
    };
    rows.map(view).collect()
}

/// What went out, as the library sees it. Raw bytes would not be read: it must not be any.
fn sent(jobs: &[NewJob]) -> Map<String, Value> {
    let default = Retry::default();
    let args = PushArgs { jobs: new_jobs(jobs), dr: RetryArg(&default), whole: true };
    let bytes = pack(&args).unwrap();
    let Ok(Value::Object(sent)) = rmp_serde::from_slice(&bytes) else { panic!("a map goes out") };
    sent
}

/// Stores what was sent as the library does, and shows it as the library does.
fn stored(seq: usize, new: &Value, default: &Value) -> Value {
    let at = match (&new["at"], &new["dl"]) {
        (Value::Number(at), _) => at.as_u64().unwrap(),
        (_, Value::Number(delay)) => NOW.us() + delay.as_u64().unwrap(),
        _ => NOW.us(),
    };
    let or = |field: &str, other: Value| match &new[field] {
        Value::Null => other,
        value => value.clone(),
    };
    let shape = json!({
        "qn": new["q"], "pr": or("pr", json!(0)), "g": or("g", json!(false)),
        "needs": or("needs", json!([])), "retry": or("retry", default.clone()),
        "timeout": or("timeout", json!(false)), "retain": or("retain", json!(false)),
    });
    json!({
        "seq": seq, "id": new["id"], "state": if at > NOW.us() { "s" } else { "w" },
        "shape": shape, "body": seq, "created_at": NOW.us(), "run_at": at,
        "expires_at": or("ex", json!(false)), "ended": 0, "lost": 0, "cancel": false,
        "unique": or("u", json!(false)), "arrival": 1,
    })
}

#[test]
fn a_pushed_job_is_shown_as_every_engine_shows_it() {
    let sent = sent(&jobs());
    let new = sent["jobs"].as_array().unwrap();
    let bodies: Vec<&str> = new.iter().map(|job| job["body"].as_str().unwrap()).collect();
    let reply: Vec<Value> = new
        .iter()
        .enumerate()
        .map(|(n, job)| {
            let job = stored(n + 1, job, &sent["dr"]);
            json!({"seq": n + 1, "id": job["id"], "job": job, "unasked": true})
        })
        .collect();
    let bytes = rmp_serde::to_vec_named(&reply).unwrap();
    let reply: Vec<PushedReply> = rmp_serde::from_slice(&bytes).unwrap();
    let shown = pushed_jobs(reply, &Blobs::of(&bodies), true).unwrap();
    let expected = shown_by_the_machine(jobs()).into_iter().map(|job| PushedJob {
        job,
        duplicate: false,
        replaced: false,
        workers: Some(0),
    });
    assert_eq!(shown, expected.collect::<Vec<_>>());
}

#[test]
fn a_job_that_ran_is_shown_with_its_errors_and_its_lease() {
    let sent = sent(&jobs());
    let new = &sent["jobs"][0];
    let mut row = stored(1, new, &sent["dr"]);
    let errors = rmp_serde::to_vec(&[(1, NOW.us(), "no", "f"), (1, NOW.us() + 1, "gone", "l")]);
    let blobs = Blobs(vec![
        new["body"].as_str().unwrap().as_bytes().to_vec(),
        b"{\"ok\":1}".to_vec(),
        b"0.5".to_vec(),
        errors.unwrap(),
    ]);
    for (field, value) in [
        ("state", json!("r")),
        ("result", json!(2)),
        ("progress", json!(3)),
        ("errors", json!(4)),
        ("error", json!("gone")),
        ("ended", json!(1)),
        ("lost", json!(1)),
        ("cancel", json!(true)),
        ("lease", json!([255, 16])),
    ] {
        row[field] = value;
    }
    let read = |row: &Value| -> Stored {
        rmp_serde::from_slice(&rmp_serde::to_vec_named(row).unwrap()).unwrap()
    };
    let job = read(&row).view(&blobs, true).unwrap();
    assert_eq!((job.attempt, job.lost, job.cancel_requested), (2, 1, true));
    assert_eq!(job.lease.as_deref(), Some("ff-10"));
    assert_eq!(job.result.as_ref().map(Json::text), Some("{\"ok\":1}"));
    assert_eq!(job.progress.as_ref().map(Json::text), Some("0.5"));
    let outcomes: Vec<&str> = job.errors.iter().map(|error| error.outcome.as_str()).collect();
    assert_eq!(outcomes, ["failed", "lost"]);
    let slim = read(&row).view(&blobs, false).unwrap();
    assert!(slim.payload.is_none() && slim.result.is_none());
    row["body"] = json!(9);
    assert!(read(&row).view(&blobs, true).is_err(), "a part that is not there");
}
