//! Handlers of tasks: their arguments, how their return values end a job, and jobs without a handler.
#![cfg(feature = "testing")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::core::job::JobState;
use tenure::core::lease::Verdict;
use tenure::core::requests::{AddResources, GetResource};
use tenure::core::settings::NewResource;
use tenure::tasks::{FromRun, Handlers, State, Task, TaskError, UnknownKind};
use tenure::testing::Sandbox;
use tenure::{Event, Job, JobRef, JobView, Json, Need, NewJob, SettleOutcome, Span};

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Welcome {
    to: String,
}

impl Task for Welcome {
    const KIND: &'static str = "mail.welcome";
    const QUEUE: &'static str = "mail";
}

#[derive(Serialize, Deserialize)]
struct Sum {
    of: Vec<u64>,
}

impl Task for Sum {
    const KIND: &'static str = "sum";
    const QUEUE: &'static str = "numbers";
}

fn to(name: &str) -> Welcome {
    Welcome { to: name.to_owned() }
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn job(sandbox: &Sandbox, id: &str) -> JobView {
    sandbox.client().get_job(JobRef::parse(id).unwrap()).await.unwrap()
}

fn result(job: &JobView) -> &str {
    job.result.as_ref().map_or("none", |result| result.text())
}

/// Runs one job with a handler of [`Welcome`]; returns its state after that.
async fn ended(handlers: Handlers) -> JobView {
    let sandbox = Sandbox::new().unwrap();
    sandbox.client().push_task(&to("ann")).unwrap().id("j").await.unwrap();
    assert_eq!(sandbox.run_until_idle(&handlers).await.unwrap().jobs, 1);
    job(&sandbox, "j").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_with_its_kind_into_its_own_or_the_named_queue() {
    let sandbox = Sandbox::new().unwrap();
    let client = sandbox.client();
    client.push_task(&to("ann")).unwrap().await.unwrap();
    client.push("urgent").task(&to("bob")).unwrap().priority(7).await.unwrap();
    assert_eq!(sandbox.tasks::<Welcome>().await.unwrap(), [to("ann")]);
    let urgent = &sandbox.pushed("urgent").await.unwrap()[0];
    assert_eq!((urgent.kind.as_str(), urgent.priority), ("mail.welcome", 7));
    assert_eq!(urgent.payload.as_ref().unwrap().text(), r#"{"to":"bob"}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_has_its_handler_and_all_share_a_state() {
    #[derive(Clone, Default)]
    struct App {
        sent: Arc<AtomicUsize>,
    }

    /// An argument that is made from the state of the app.
    struct Number(usize);

    impl FromRun<App> for Number {
        type Failure = Infallible;
        fn from_run(_: &Job, app: &App) -> Result<Self, Infallible> {
            Ok(Number(app.sent.fetch_add(1, Ordering::Relaxed)))
        }
    }

    async fn welcome(mail: Welcome, job: Job, Number(n): Number) -> Result<String, TaskError> {
        Ok(format!("{} {} {n} {}", mail.to, job.attempt(), job.fence() == job.lease().fence))
    }
    async fn sum(sum: Sum) -> Result<u64, TaskError> {
        Ok(sum.of.iter().sum())
    }

    let sandbox = Sandbox::new().unwrap();
    let client = sandbox.client();
    client.push_task(&to("ann")).unwrap().id("ann").await.unwrap();
    client.push_task(&Sum { of: vec![1, 2, 3] }).unwrap().id("sum").await.unwrap();
    let app = App::default();
    let seen = |_: Welcome, State(app): State<App>| async move {
        Ok::<_, TaskError>(app.sent.load(Ordering::Relaxed))
    };
    let handlers = Handlers::with_state(app.clone()).on(welcome).on(sum);
    assert_eq!(sandbox.run_until_idle(&handlers).await.unwrap().jobs, 2);
    assert_eq!(result(&job(&sandbox, "ann").await), r#""ann 1 0 true""#);
    assert_eq!(result(&job(&sandbox, "sum").await), "6");
    client.push_task(&to("bob")).unwrap().id("bob").await.unwrap();
    sandbox.run_until_idle(&Handlers::with_state(app).on(seen)).await.unwrap();
    assert_eq!(result(&job(&sandbox, "bob").await), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ordinary_error_is_an_attempt_that_is_repeated_by_policy() {
    async fn read(_: Welcome) -> Result<(), TaskError> {
        let _: u32 = "seven".parse()?;
        Ok(())
    }
    let sandbox = Sandbox::new().unwrap();
    sandbox.client().push_task(&to("ann")).unwrap().id("j").await.unwrap();
    let handlers = Handlers::new().on(read);
    sandbox.run_until_idle(&handlers).await.unwrap();
    let failed = job(&sandbox, "j").await;
    assert_eq!((failed.state, failed.attempt), (JobState::Scheduled, 1));
    assert_eq!(failed.errors[0].error, "invalid digit found in string");
    sandbox.advance(s(5)).await.unwrap();
    sandbox.run_until_idle(&handlers).await.unwrap();
    assert_eq!(job(&sandbox, "j").await.attempt, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_may_end_its_run_in_every_other_way() {
    let on = |error: fn() -> TaskError| {
        let handler = move |_: Welcome| async move { Err::<(), _>(error()) };
        ended(Handlers::new().on(handler))
    };
    let failed = on(|| TaskError::for_good("no such user")).await;
    assert_eq!((failed.state, failed.error.as_deref()), (JobState::Failed, Some("no such user")));
    let retried = on(|| TaskError::retry_in("busy", s(3_600))).await;
    assert_eq!(retried.run_at.since(retried.created_at), Span::from_s(3_600));
    let snoozed = on(|| TaskError::snooze(s(60))).await;
    assert_eq!((snoozed.state, snoozed.attempt), (JobState::Scheduled, 0));
    let succeeded = ended(Handlers::new().on(|_: Welcome| async {
        let outcome = SettleOutcome::snoozed(Span::from_s(9));
        Ok::<_, TaskError>(outcome)
    }));
    assert_eq!(succeeded.await.state, JobState::Scheduled);
    let panicked: fn(Welcome) -> std::future::Ready<Result<(), TaskError>> =
        |_| panic!("out of luck");
    let panicked = ended(Handlers::new().on(panicked)).await;
    assert_eq!(panicked.errors[0].error, "the handler panicked: out of luck");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_of_another_form_fails_the_job_for_good_and_says_so() {
    let sandbox = Sandbox::new().unwrap();
    let pushing = sandbox.client().push("mail").kind(Welcome::KIND).id("j");
    pushing.payload(&7).unwrap().await.unwrap();
    let handlers = Handlers::new().on(|_: Welcome| async { Ok::<_, TaskError>(()) });
    sandbox.run_until_idle(&handlers).await.unwrap();
    let failed = job(&sandbox, "j").await;
    assert_eq!(failed.state, JobState::Failed);
    let error = failed.error.unwrap();
    assert!(error.starts_with(r#"the payload is no "mail.welcome": "#), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_an_unknown_kind_is_chosen() {
    let run = async |handlers: Handlers| {
        let sandbox = Sandbox::new().unwrap();
        sandbox.client().push("mail").kind("mail.new").id("j").await.unwrap();
        let handlers = handlers.on(|_: Welcome| async { Ok::<_, TaskError>(()) });
        sandbox.run_until_idle(&handlers).await.unwrap();
        job(&sandbox, "j").await
    };
    let failed = run(Handlers::new()).await;
    assert_eq!(failed.state, JobState::Scheduled);
    assert!(failed.errors[0].error.contains(r#"no handler for kind "mail.new""#));
    let failed = run(Handlers::new().unknown_kinds(UnknownKind::FailForGood)).await;
    assert_eq!(failed.state, JobState::Failed);
    let snoozed = run(Handlers::new().unknown_kinds(UnknownKind::Snooze(s(60)))).await;
    assert_eq!((snoozed.state, snoozed.attempt), (JobState::Scheduled, 0));
    let handled = run(Handlers::new()
        .otherwise(|job: Job| async move { Ok::<_, TaskError>(job.kind().to_owned()) }));
    assert_eq!(result(&handled.await), r#""mail.new""#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_blocks_runs_on_a_thread_of_its_own() {
    fn sum(sum: Sum, job: Job) -> Result<u64, TaskError> {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        // It may still call the engine.
        let here = tokio::runtime::Handle::current();
        assert_eq!((name.as_str(), here.block_on(job.parents())?.len()), ("tenure-handler", 0));
        if sum.of.is_empty() {
            panic!("nothing to add");
        }
        Ok(sum.of.iter().sum())
    }
    let sandbox = Sandbox::new().unwrap();
    let push = |of: Vec<u64>, id: &str| sandbox.client().push_task(&Sum { of }).unwrap().id(id);
    push(vec![1, 2, 3], "six").await.unwrap();
    push(vec![], "none").await.unwrap();
    sandbox.run_until_idle(&Handlers::new().on_blocking(sum)).await.unwrap();
    assert_eq!(result(&job(&sandbox, "six").await), "6");
    let none = job(&sandbox, "none").await;
    assert_eq!(none.errors[0].error, "the handler panicked: nothing to add");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_over_only_when_its_thread_is() {
    let sandbox = Sandbox::new().unwrap();
    let client = sandbox.client();
    client.push_task(&to("ann")).unwrap().id("j").await.unwrap();
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let (end, may_end) = std::sync::mpsc::channel::<()>();
    let may_end = Arc::new(std::sync::Mutex::new(may_end));
    let handlers = Handlers::new().on_blocking(move |_: Welcome, job: Job| {
        begun.send(job.clone()).unwrap();
        may_end.lock().unwrap().recv_timeout(s(60))?;
        Ok::<_, TaskError>(job.stop().is_some())
    });
    // A heartbeat says that it must stop.
    let worker = client.worker(handlers.queues().unwrap()).ttl(tenure_testkit::KEPT_TTL);
    let stopper = worker.stopper();
    let working = tokio::spawn(worker.run_tasks(handlers));
    let running = has_begun.recv().await.unwrap();
    client.cancel_job(JobRef::parse("j").unwrap()).await.unwrap();
    running.stopped().await;
    // It must stop, and its lease stays its own until it has.
    assert_eq!(job(&sandbox, "j").await.state, JobState::Running);
    end.send(()).unwrap();
    let done = client.wait_for_result(JobRef::parse("j").unwrap(), Some(s(60))).await.unwrap();
    // A success stands, although the job was cancelled.
    assert_eq!(done.state, JobState::Succeeded);
    assert_eq!(done.result.unwrap().text(), "true");
    stopper.drain();
    working.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn layers_of_tower_wrap_the_handlers_before_them() {
    let slow = |_: Welcome| std::future::pending::<Result<(), TaskError>>();
    let quick = |_: Sum| async { Ok::<_, TaskError>(1) };
    let layer = tower::timeout::TimeoutLayer::new(Duration::from_millis(20));
    let late = ended(Handlers::new().on(slow).layer(layer.clone())).await;
    assert_eq!(
        (late.state, late.errors[0].error.as_str()),
        (JobState::Scheduled, "request timed out")
    );

    let sandbox = Sandbox::new().unwrap();
    sandbox.client().push_task(&Sum { of: vec![] }).unwrap().id("j").await.unwrap();
    let limit = tower::limit::ConcurrencyLimitLayer::new(1);
    let handlers = Handlers::new().on(slow).layer(layer).on(quick).layer(limit);
    sandbox.run_until_idle(&handlers).await.unwrap();
    assert_eq!(result(&job(&sandbox, "j").await), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_said_on_the_way_go_with_whatever_the_outcome_is() {
    async fn banned(_: Welcome, job: Job) -> Result<(), TaskError> {
        let pool = "accounts".parse()?;
        let account = job.resource(&pool).ok_or("no account")?;
        job.verdict(account, Verdict::Ban { reason: Some("blocked".to_owned()) });
        Err("the account is blocked")?
    }
    let sandbox = Sandbox::new().unwrap();
    let client = sandbox.client();
    let (pool, id) = ("accounts".parse().unwrap(), "a".parse().unwrap());
    let account = NewResource { id, data: Json::null(), tags: Vec::new(), slots: 1 };
    client.run(AddResources { pool, resources: vec![account] }).await.unwrap();
    client.push_task(&to("ann")).unwrap().need(Need::pool("accounts")).id("j").await.unwrap();
    sandbox.run_until_idle(&Handlers::new().on(banned)).await.unwrap();
    let failed = job(&sandbox, "j").await;
    assert_eq!(failed.errors[0].error, "the account is blocked");
    let (pool, resource) = ("accounts".parse().unwrap(), "a".parse().unwrap());
    let account = client.run(GetResource { pool, resource }).await.unwrap();
    assert_eq!(account.reason.as_deref(), Some("blocked"), "{account:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_finds_the_results_of_its_parents() {
    async fn sum(sum: Sum, job: Job) -> Result<u64, TaskError> {
        let mut total: u64 = sum.of.iter().sum();
        for parent in job.parents().await? {
            if let tenure::ParentView::Job(parent) = parent {
                total += serde_json::from_str::<u64>(parent.result.ok_or("no result")?.text())?;
            }
        }
        Ok(total)
    }
    let sandbox = Sandbox::new().unwrap();
    let push = |of: Vec<u64>, id: &str| sandbox.client().push_task(&Sum { of }).unwrap().id(id);
    push(vec![1, 2], "a").await.unwrap();
    push(vec![3], "b").await.unwrap();
    push(vec![4], "child").after("a").after("b").await.unwrap();
    sandbox.run_until_idle(&Handlers::new().on(sum)).await.unwrap();
    assert_eq!(result(&job(&sandbox, "child").await), "10");
}

#[test]
#[should_panic(expected = "two handlers for kind \"sum\"")]
fn a_kind_has_one_handler() {
    let one = |_: Sum| async { Ok::<_, TaskError>(()) };
    let _ = Handlers::new().on(one).on(one);
}

#[derive(Serialize, Deserialize)]
struct Visit {
    host: String,
}

impl Task for Visit {
    const KIND: &'static str = "visit";
    fn needs(&self) -> Vec<Need> {
        vec![Need::limit(format!("site:{}", self.host))]
    }
}

#[tokio::test]
async fn a_task_makes_its_needs_of_its_values() {
    let sandbox = Sandbox::new().unwrap();
    let client = sandbox.client();
    client.limit("site:*").concurrency(1).set().await.unwrap();
    let visit = |host: &str| Visit { host: host.to_owned() };
    let needs = async |id: &str| serde_json::to_value(job(&sandbox, id).await.needs).unwrap();
    client.push_task(&visit("a")).unwrap().id("pushed").await.unwrap();
    assert_eq!(needs("pushed").await[0]["limit"], "site:a");
    client.schedule("daily").cron("@daily").push_task(&visit("b")).unwrap().set().await.unwrap();
    let made = client.schedule("daily").run_now_as("scheduled").await.unwrap();
    assert_eq!(needs(made.job.id.as_str()).await[0]["limit"], "site:b");
    let follow_up = SettleOutcome::succeeded().then_task(&visit("c")).push.remove(0);
    assert_eq!(serde_json::to_value(follow_up.needs).unwrap()[0]["limit"], "site:c");
    let lost = SettleOutcome::succeeded().then_task(&visit(""));
    assert!(lost.push.is_empty(), "a name that is none is a failed attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_outcomes_that_push_to_a_queue_with_room_for_one_the_second_waits() {
    let sandbox = Sandbox::new().unwrap();
    let client = sandbox.client();
    client.queue("next").max_waiting(1).set().await.unwrap();
    for id in ["a", "b"] {
        client.push("q").id(id).await.unwrap();
    }
    let unsettled = Arc::new(AtomicUsize::new(0));
    let (seen, both) = (unsettled.clone(), Arc::new(tokio::sync::Barrier::new(2)));
    let work = client.worker(["q"]).concurrency(2).max_jobs(2).observe(move |event| {
        let no = matches!(event, Event::NotSettled { .. } | Event::OutcomeRefused { .. });
        seen.fetch_add(usize::from(no), Ordering::SeqCst);
    });
    let work = work.run(move |_| {
        let both = both.clone();
        async move {
            // So that both are settled in one call.
            both.wait().await;
            SettleOutcome::succeeded().then(NewJob::new("next".parse().unwrap()))
        }
    });
    let next = client.worker(["next"]).max_jobs(2).run(|_| async {});
    let worked = tokio::time::timeout(s(20), async { tokio::join!(work, next) }).await;
    let (first, second) = worked.expect("the second outcome was lost");
    assert_eq!((first.unwrap().jobs, second.unwrap().jobs), (2, 2));
    assert_eq!(unsettled.load(Ordering::SeqCst), 0);
    for id in ["a", "b"] {
        let job = job(&sandbox, id).await;
        assert_eq!((job.state, job.attempt), (JobState::Succeeded, 1));
    }
}
