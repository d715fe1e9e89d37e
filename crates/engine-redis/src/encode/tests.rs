//! What goes out, as the library reads it. Everything is read through JSON, which knows no raw bytes:
//! the server's MessagePack does not either.

use serde::Serialize;
use serde_json::{Value, json};
use tenure_core::flow::Kinship;
use tenure_core::job::{NewJob, Retry, When};
use tenure_core::lease::{
    Ending, ExtendItem, Later, LimitVerdict, ResourceVerdict, SettleItem, Verdict, Worker,
};
use tenure_core::names::{
    FlowName, Group, JobId, JobRef, LimitName, PoolName, QueueName, Ref, RequestId, ResourceId,
    WorkerId,
};
use tenure_core::requests::{
    Extend, GetJob, Lease, Patch, PatchJob, PatchLimit, PatchQueue, RetryJob,
};
use tenure_core::secret::Json;
use tenure_core::settings::Rate;
use tenure_core::time::{Moment, Span};

use super::*;
use crate::lease_id::{Claim, Head, Held};

const KNOWS: Knows = Knows { never: false, kid: None, ttl: 0, epoch: None, age: 0 };

fn head(fence: u64, seq: u64) -> Option<Head> {
    Some(Head { fence, seq, ttl: 1 })
}

fn sent(args: &impl Serialize) -> Value {
    rmp_serde::from_slice(&pack(args).unwrap()).unwrap()
}

fn said(request: &impl OneCall) -> Value {
    rmp_serde::from_slice(&request.args().unwrap()).unwrap()
}

#[test]
fn a_result_is_asked_for_by_a_name_and_then_by_a_row() {
    let (job, key) = (JobRef::parse("a").unwrap(), JobRef::parse("key:k").unwrap());
    let b = crate::bucket::bucket("a");
    assert_eq!(sent(&ResultArgs::of(&job)), json!({"id": "a", "b": b}));
    assert_eq!(sent(&ResultArgs::of(&key)), json!({"key": "k"}));
    assert_eq!(
        sent(&ResultArgs::of_row("a", b, 7).waiting("p", 5)),
        json!({"id": "a", "b": b, "seq": 7, "proc": "p", "wait": 5})
    );
}

#[test]
fn a_patch_names_what_it_changes_and_false_is_the_default() {
    let job = JobRef::parse("a").unwrap();
    let patch = PatchJob {
        priority: Patch::Reset,
        group: Patch::Set(Group::parse("g").unwrap()),
        when: Patch::Set(When::In(Span::from_ms(5))),
        ..PatchJob::new(job.clone())
    };
    let b = crate::bucket::bucket("a");
    assert_eq!(
        sent(&PatchJobArgs::of(&patch, None)),
        json!({"id": "a", "b": b, "pr": false, "g": "g", "dl": 5_000})
    );
    let now = PatchJob { when: Patch::Reset, ..PatchJob::new(job) };
    let body = NewBody { was: "w".to_owned(), body: "n".to_owned(), bytes: 7 };
    assert_eq!(
        sent(&PatchJobArgs::of(&now, Some(&body))),
        json!({"id": "a", "b": b, "now": true, "body": "n", "was": "w", "n": 7})
    );
    let limit = PatchLimit {
        limit: LimitName::parse("l").unwrap(),
        concurrency: Patch::Keep,
        rate: Patch::Set(Rate { count: 3, per: Span::from_s(1), burst: 2 }),
        gap: Patch::Reset,
        quarantine: Patch::Keep,
        gauge: Patch::Keep,
    };
    assert_eq!(said(&limit), json!({"name": "l", "rate": [3, 1_000_000, 2], "gap": false}));
    let queue = PatchQueue {
        queue: QueueName::parse("q").unwrap(),
        needs: Patch::Set(Vec::new()),
        retry: Patch::Keep,
        timeout: Patch::Reset,
        retain: Patch::Keep,
        max_waiting: Patch::Keep,
        lost_delay: Patch::Keep,
        shares: Patch::Set([(Group::parse("g").unwrap(), 3)].into()),
    };
    assert_eq!(
        said(&queue),
        json!({"name": "q", "needs": [], "timeout": false, "shares": {"g": 3}})
    );
}

#[test]
fn a_job_is_named_by_id_or_key() {
    let key = JobRef::parse("key:k").unwrap();
    assert_eq!(said(&GetJob { job: key.clone() }), json!({"key": "k"}));
    let finished_at = Some(Moment::from_us(5));
    assert_eq!(said(&RetryJob { job: key, finished_at }), json!({"key": "k", "finished_at": 5}));
}

#[test]
fn a_lease_call_says_who_asks_and_which_call_it_is() {
    let mut lease = Lease::jobs(vec![QueueName::parse("q").unwrap()], 5);
    lease.worker = Worker { id: Some(WorkerId::parse("w").unwrap()), ..Worker::default() };
    lease.request_id = Some(RequestId::parse("r").unwrap());
    let (kid, epoch) = (Some("k".to_owned()), Some("5-a".into()));
    let knows = Knows { never: true, kid, ttl: 9, epoch, age: 3 };
    let wait = Wait {
        left: 7,
        taker: "p:1",
        proc: "p",
        read: 2,
        again: true,
        had: 0,
        bytes: 0,
        knows: &knows,
    };
    assert_eq!(
        sent(&LeaseArgs::of(&lease, &wait)),
        json!({
            "queues": ["q"], "max": 5, "wait": 7, "ttl": 30_000_000, "worker": {"id": "w"},
            "rq": "r", "taker": "p:1", "proc": "p", "read": 2, "again": true, "kn": [true, "k", 9, "5-a", 3],
        })
    );
    (lease.request_id, lease.wait) = (None, Span::from_s(1));
    let nameless = sent(&LeaseArgs::of(&lease, &wait));
    assert_eq!(
        nameless["rq"], "p:1",
        "what it is granted while it waits is remembered under its own name"
    );
    let need = tenure_core::job::Need::Limit {
        limit: LimitName::parse("lock:a").unwrap(),
        weight: 1,
        cost: 0,
    };
    let wait = Wait { again: false, knows: &KNOWS, ..wait };
    assert_eq!(
        sent(&LeaseArgs::of(&Lease::needs(vec![need]), &wait)),
        json!({
            "needs": [["l", "lock:a", 1, 0]], "wait": 7, "ttl": 30_000_000, "worker": {},
            "taker": "p:1", "proc": "p", "read": 2, "kn": [false, false, 0, false, 0],
        })
    );
}

#[test]
fn leases_go_out_as_numbers_and_what_is_no_lease_as_one_that_never_was() {
    let item = |lease: &str, progress| ExtendItem { lease: lease.to_owned(), progress };
    let extend = Extend {
        leases: vec![item("a", Some(Json::from(1))), item("no lease", None), item("b", None)],
        ttl: None,
    };
    let heads = [head(255, 16), None, head(7, 0)];
    let kn = json!([false, false, 0, false, 0]);
    assert_eq!(
        sent(&ExtendArgs::of(&extend, &heads, &KNOWS)),
        json!({"leases": [[255, 16, "1"], [0, 0], [7, 0]], "kn": kn})
    );
    let claim = |fence, seq, job: Option<&str>| Claim {
        head: Head { fence, seq, ttl: 5 },
        holder: job.map(|_| "w".to_owned()),
        job: job.map(str::to_owned),
        held: Held(5, 6, vec![("l".to_owned(), 1, 0)], vec![("p".to_owned(), "r".to_owned())]),
    };
    let claims = [(0, claim(255, 16, Some("0a"))), (2, claim(7, 0, None))];
    let held = [json!([["l", 1, 0]]), json!([["p", "r"]])];
    assert_eq!(
        sent(&ExtendArgs::claiming(&extend, &claims, &KNOWS)),
        json!({
            "leases": [
                [255, 16, "1", [5, 6, "w", "0a", held[0], held[1]]],
                [7, 0, false, [5, 6, false, false, held[0], held[1]]],
            ],
            "kn": kn,
        })
    );
}

#[test]
fn a_settle_says_how_it_ends_and_what_its_holder_says() {
    let item = |ending| SettleItem::new("a".to_owned(), ending);
    let pool = PoolName::parse("p").unwrap();
    let said = |id: &str, verdict| ResourceVerdict {
        pool: pool.clone(),
        id: ResourceId::parse(id).unwrap(),
        verdict,
    };
    let failed = SettleItem {
        resources: vec![
            said("a", Verdict::Ok),
            said("b", Verdict::Cool(Later::For(Span::from_us(5)))),
            said("c", Verdict::Cool(Later::Until(Moment::from_us(6)))),
            said("d", Verdict::Ban { reason: Some("r".to_owned()) }),
        ],
        limits: vec![LimitVerdict {
            limit: LimitName::parse("l").unwrap(),
            pause: None,
            spent: Some(9),
        }],
        ..item(Ending::Failed { error: "e".to_owned(), retry_in: None, last: true })
    };
    let items = [
        item(Ending::Succeeded { result: Some(Json::from("r")) }),
        failed,
        item(Ending::Snoozed { later: Later::For(Span::from_ms(100)), reset: false }),
        item(Ending::Snoozed { later: Later::Until(Moment::from_us(7)), reset: true }),
        SettleItem { progress: Some(Json::null()), ..item(Ending::Released) },
        SettleItem { progress: Some(Json::from(7)), ..item(Ending::Succeeded { result: None }) },
    ];
    let default = tenure_core::job::Retry::default();
    let (args, order) = SettleArgs::of(&items, &[], &[head(1, 2); 6], &default, &KNOWS);
    assert_eq!(order, None);
    let sent = sent(&args);
    assert_eq!(
        sent,
        json!({
            "items": [
                {"f": 1, "s": 2, "o": "S", "result": "\"r\""},
                {"f": 1, "s": 2, "o": "F", "error": "e", "last": true,
                 "resources": [["p", "a", "o", false, false, false],
                               ["p", "b", "c", 5, false, false],
                               ["p", "c", "c", false, 6, false],
                               ["p", "d", "b", false, false, "r"]],
                 "limits": [["l", false, 9]]},
                {"f": 1, "s": 2, "o": "Z", "for": 100_000},
                {"f": 1, "s": 2, "o": "Z", "until": 7, "reset": true},
                {"f": 1, "s": 2, "o": "R"},
                {"f": 1, "s": 2, "o": "S", "progress": "7"},
            ],
            "shapes": [], "dr": [20, 3, "e", 1_000_000, 3_600_000_000u64, true],
            "kn": [false, false, 0, false, 0],
        })
    );
}

#[test]
fn a_long_error_keeps_its_end() {
    let max = tenure_core::bounds::ERROR_BYTES_MAX;
    let error = format!("ü{}", "x".repeat(max - 1));
    let item =
        SettleItem::new("a".to_owned(), Ending::Failed { error, retry_in: None, last: false });
    let default = tenure_core::job::Retry::default();
    let sent = sent(&SettleArgs::of(&[item], &[], &[head(1, 2)], &default, &KNOWS).0);
    let error = sent["items"][0]["error"].as_str().unwrap();
    assert_eq!(error, "x".repeat(max - 1));
}

#[test]
fn what_was_granted_together_is_settled_together() {
    let item = || SettleItem::new("a".to_owned(), Ending::Succeeded { result: None });
    let default = tenure_core::job::Retry::default();
    let settle = |heads: &[Option<Head>]| {
        let items: Vec<_> = heads.iter().map(|_| item()).collect();
        let (args, order) = SettleArgs::of(&items, &[], heads, &default, &KNOWS);
        let sent = sent(&args);
        (sent["runs"].clone(), sent["ordered"].clone(), order)
    };
    let heads = [head(9, 4), head(7, 2), head(8, 3), head(11, 5), head(12, 9)];
    let (runs, ordered, order) = settle(&heads);
    assert_eq!((runs, ordered), (json!([7, 2, 3, 11, 5, 1, 12, 9, 1]), json!(true)));
    assert_eq!(order, Some(vec![1, 2, 0, 3, 4]));
    // A lease that is named twice, and what is no lease or has no job.
    assert_eq!(settle(&[head(7, 2), head(7, 2)]).0, json!([7, 2, 1, 7, 2, 1]));
    assert_eq!(settle(&[head(7, 2), head(7, 2)]).1, json!(false));
    assert_eq!(settle(&[None, head(7, 0), head(8, 1)]).0, json!([0, 0, 1, 7, 0, 1, 8, 1, 1]));
    assert_eq!(settle(&[None, head(8, 1)]).1, json!(false));
}

#[test]
fn moments_without_end_are_the_last_number_that_lua_can_hold() {
    let later = super::items::Later::of(Later::Until(Moment::MAX));
    assert_eq!(sent(&later), json!({"until": 9_007_199_254_740_991u64}));
}

#[test]
fn jobs_go_together_if_all_are_alike_and_each_has_an_id_of_its_own() {
    let job = |id: &str| NewJob {
        id: JobId::parse(id).ok(),
        ..NewJob::new(QueueName::parse("q").unwrap())
    };
    let retry = Retry::default();
    let go_together = |jobs: &[NewJob], whole, fresh, together| {
        let kinship = Kinship::of(jobs).unwrap();
        let (args, texts) = PushArgs::of(jobs, &kinship, &retry, whole, fresh, together);
        let blocks = matches!(args, PushArgs::Blocks { .. });
        assert_eq!(blocks, !texts.is_empty());
        blocks
    };
    let (one, other) = (job("a"), job("b"));
    let two = [one.clone(), other.clone()];
    for fresh in [true, false] {
        for whole in [true, false] {
            assert!(go_together(&two, whole, fresh, true), "{whole} {fresh}");
        }
        assert!(!go_together(&two, false, fresh, false), "some were there");
    }
    let late = NewJob { when: When::In(Span::from_ms(5)), ..other.clone() };
    let high = NewJob { priority: 3, ..other.clone() };
    let named = NewJob { reference: Ref::parse("r").ok(), ..other.clone() };
    let of_flow = NewJob { flow: FlowName::parse("f").ok(), ..other.clone() };
    for unlike in [late, high, one.clone(), named, of_flow] {
        assert!(!go_together(&[one.clone(), unlike], false, false, true));
    }
}
