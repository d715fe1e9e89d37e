//! Values that a program makes without a body: each value beyond its bound is refused as a server refuses it.

use super::Bounded;
use crate::decode;
use crate::flow::{After, Parent};
use crate::job::{Backoff, Need, NewJob, OnConflict, Retry, Unique, Until, When};
use crate::lease::{Ending, Later, SettleItem};
use crate::names::{JobRef, LimitName, PoolName, QueueName, ResourceId, UniqueKey};
use crate::refusal::Code::{self, *};
use crate::refusal::Refusal;
use crate::requests::{
    CancelJobs, GetResult, JobFilter, Lease, Meant, ObserveLimit, Push, PushAnswer, PutPool,
    PutQueue, PutSchedule, Settle, SyncResources,
};
use crate::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduledJob, TimingSpec};
use crate::secret::Json;
use crate::settings::{NewResource, PoolSettings, QueueSettings, Rate};
use crate::time::{Moment, Span};

const FOREVER: Span = Span::from_us(u64::MAX);

fn job() -> NewJob {
    NewJob::new(QueueName::parse("q").unwrap())
}

fn text(bytes: usize) -> Json {
    Json::from("x".repeat(bytes).as_str())
}

fn limit(name: &str, weight: u32) -> Need {
    Need::Limit { limit: LimitName::parse(name).unwrap(), weight, cost: 1 }
}

fn no(request: &impl Bounded) -> Refusal {
    request.within_bounds().expect_err("it is beyond its bounds")
}

#[test]
fn a_job_beyond_its_bounds_is_refused_with_code_and_pointer() {
    let key: UniqueKey = "k".parse().unwrap();
    let unique = |hold| Unique {
        key: key.clone(),
        until: Until::End,
        hold,
        on_conflict: OnConflict::Replace,
        within: None,
    };
    let parent = After { parent: Parent::Job(JobRef::parse("a").unwrap()), gone_is_done: false };
    let delays = Backoff::List { delays: Vec::new(), jitter: false };
    let labels = |key: &str, value: usize| [(key.to_owned(), "v".repeat(value))].into();
    let rows: Vec<(NewJob, Code, &str)> = vec![
        (NewJob { kind: "x".repeat(129), ..job() }, OutOfBounds, "/kind"),
        (NewJob { kind: "a\nb".to_owned(), ..job() }, InvalidField, "/kind"),
        (NewJob { payload: text(256 * 1024), ..job() }, OutOfBounds, "/payload"),
        (NewJob { when: When::In(FOREVER), ..job() }, OutOfBounds, "/delay"),
        (NewJob { when: When::At(Moment::MAX), ..job() }, OutOfBounds, "/run_at"),
        (NewJob { priority: 101, ..job() }, OutOfBounds, "/priority"),
        (NewJob { needs: Some(vec![limit("a", 0)]), ..job() }, OutOfBounds, "/needs/0/weight"),
        (NewJob { needs: Some(vec![limit("a:*", 1)]), ..job() }, InvalidField, "/needs/0/limit"),
        (NewJob { needs: Some(vec![limit("a", 1); 2]), ..job() }, DuplicateNeed, "/needs/1"),
        (NewJob { unique: Some(unique(Some(FOREVER))), ..job() }, OutOfBounds, "/unique/for"),
        (
            NewJob { unique: Some(unique(None)), after: vec![parent], ..job() },
            ConflictingFields,
            "/after",
        ),
        (
            NewJob { retry: Some(Retry { backoff: delays, ..Retry::default() }), ..job() },
            OutOfBounds,
            "/retry/backoff/delays",
        ),
        (NewJob { timeout: Some(Span::ZERO), ..job() }, OutOfBounds, "/timeout"),
        (NewJob { expires_at: Some(Moment::MAX), ..job() }, OutOfBounds, "/expires_at"),
        (NewJob { retain: Some(FOREVER), ..job() }, OutOfBounds, "/retain"),
        (NewJob { labels: labels("", 1), ..job() }, OutOfBounds, "/labels/"),
        (NewJob { labels: labels("k", 257), ..job() }, OutOfBounds, "/labels/k"),
    ];
    for (wrong, code, pointer) in rows {
        let push = Push { jobs: vec![job(), wrong.clone()], answer: PushAnswer::Ids };
        let said = no(&push);
        assert_eq!((said.code, said.pointer.as_deref()), (code, Some(pointer)), "{said}");
        assert_eq!(said.index, Some(1), "{said}");
        // The same in a settle that pushes it.
        let done = Ending::Succeeded { result: None };
        let item = SettleItem { push: vec![wrong], ..SettleItem::new("l".to_owned(), done) };
        let said = no(&Settle::of(vec![item]));
        let below = format!("/settle/0/push/0{pointer}");
        assert_eq!((said.code, said.pointer), (code, Some(below)));
    }
    assert_eq!(no(&Push { jobs: Vec::new(), answer: PushAnswer::Ids }).code, OutOfBounds);
    let at_the_bound = NewJob { when: When::At(Moment::LAST), priority: -100, ..job() };
    let push = Push { jobs: vec![at_the_bound], answer: PushAnswer::Ids };
    assert_eq!(push.within_bounds(), Ok(()));
}

#[test]
fn other_requests_beyond_their_bounds_are_refused() {
    let queue = || QueueName::parse("q").unwrap();
    let lease = || Lease::jobs(vec![queue()], 1);
    let settle = |ending| Settle::of(vec![SettleItem::new("l".to_owned(), ending)]);
    let failed = |retry_in, last| Ending::Failed { error: String::new(), retry_in, last };
    let snooze = Later::For(Span::from_ms(99));
    let every = |span| PutSchedule {
        schedule: "s".parse().unwrap(),
        settings: Box::new(ScheduleSettings {
            owner: None,
            timing: TimingSpec { every: span, ..TimingSpec::default() },
            overlap: Overlap::Skip,
            catch_up: CatchUp::Last,
            catch_up_max: 100,
            job: ScheduledJob::new(queue()),
        }),
        plan: None,
    };
    let pool = || PoolName::parse("p").unwrap();
    let rate = Rate { count: 1, per: Span::from_s(86_400), burst: 1_000_000_000 };
    let rated = PoolSettings { rate: Some(rate), ..PoolSettings::default() };
    let shares = [("g".parse().unwrap(), 0)].into();
    let one = |id: &str| NewResource {
        id: ResourceId::parse(id).unwrap(),
        data: Json::null(),
        tags: Vec::new(),
        slots: 1,
    };
    let resources = vec![one("a"), one("b"), one("a")];
    let set = SyncResources { pool: pool(), resources, meant: Meant::Yes, version: None };
    let label = Some(("a".to_owned(), "b:c".to_owned()));
    let filter = JobFilter { label, ..JobFilter::default() };
    let template = LimitName::parse("site:*").unwrap();
    let rows: Vec<(Refusal, Code, &str)> = vec![
        (no(&Lease { wait: Span::from_s(61), ..lease() }), OutOfBounds, "/wait"),
        (no(&Lease { ttl: Span::from_ms(999), ..lease() }), OutOfBounds, "/ttl"),
        (no(&Lease { ttl: Span::ZERO, ..lease() }), InvalidField, "/ttl"),
        (no(&Lease::jobs(vec![queue()], 1_001)), OutOfBounds, "/max"),
        (no(&Lease::jobs(vec![queue(); 33], 1)), OutOfBounds, "/queues"),
        (no(&Lease::needs(Vec::new())), OutOfBounds, "/needs"),
        (no(&settle(failed(Some(FOREVER), false))), OutOfBounds, "/settle/0/retry_in"),
        (no(&settle(failed(Some(Span::ZERO), true))), ConflictingFields, "/settle/0/retry_in"),
        (
            no(&settle(Ending::Snoozed { later: snooze, reset: false })),
            OutOfBounds,
            "/settle/0/for",
        ),
        (
            no(&settle(Ending::Succeeded { result: Some(text(256 * 1024)) })),
            OutOfBounds,
            "/settle/0/result",
        ),
        (no(&every(None)), InvalidField, "/cron"),
        (no(&every(Some(Span::from_ms(1_500)))), InvalidField, "/every"),
        (no(&every(Some(Span::ZERO))), OutOfBounds, "/every"),
        (no(&PutPool { pool: pool(), settings: rated }), OutOfBounds, "/rate/burst"),
        (
            no(&PutQueue {
                queue: queue(),
                settings: QueueSettings { shares, ..QueueSettings::default() },
            }),
            OutOfBounds,
            "/shares/g",
        ),
        (no(&set), InvalidField, "/2/id"),
        (
            no(&SyncResources { version: Some(1 << 60), ..set.clone() }),
            OutOfBounds,
            "/query/version",
        ),
        (no(&Lease { ttl: Span::from_s(7_200), ..lease() }), OutOfBounds, "/ttl"),
        (
            no(&GetResult { job: JobRef::parse("a").unwrap(), wait: FOREVER, seen: None }),
            OutOfBounds,
            "/query/wait",
        ),
        (no(&CancelJobs { filter, max: 1, cursor: None }), InvalidField, "/label"),
        (
            no(&ObserveLimit { limit: template, external: 1, hold: None }),
            InvalidField,
            "/path/name",
        ),
    ];
    for (said, code, pointer) in rows {
        assert_eq!((said.code, said.pointer.as_deref()), (code, Some(pointer)), "{said}");
        assert!(!said.hint.is_empty());
    }
    // An error of any length is accepted, and cut.
    let error = "x".repeat(20_000);
    let long = settle(Ending::Failed { error, retry_in: None, last: false });
    assert_eq!(long.within_bounds(), Ok(()));
    assert_eq!(no(&set).index, Some(2));
    assert!(no(&set).detail.contains("item 0 and item 2"), "{}", no(&set));
}

#[test]
fn a_body_and_a_program_are_refused_in_the_same_words() {
    for (body, job) in [
        (r#"{"timeout":"0s"}"#, NewJob { timeout: Some(Span::ZERO), ..default_job() }),
        (r#"{"priority":101}"#, NewJob { priority: 101, ..default_job() }),
        (
            r#"{"needs":[{"limit":"a","weight":0}]}"#,
            NewJob { needs: Some(vec![limit("a", 0)]), ..default_job() },
        ),
    ] {
        let read = decode::push(body.as_bytes()).expect_err(body);
        let typed = no(&Push { jobs: vec![job], answer: PushAnswer::Ids }).without_item();
        assert_eq!(typed, read, "{body}");
    }
}

fn default_job() -> NewJob {
    NewJob::new(QueueName::parse("default").unwrap())
}
