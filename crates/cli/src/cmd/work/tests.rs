//! `work` with jobs, signals and stores that answer badly, on a scripted engine.

use super::*;
use crate::args::leases::BondArgs;
use crate::output::clock;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::time::Instant;
use tenure_core::lease::{Ending, Extended, LeaseView, Leased};
use tenure_core::names::Namespace;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Listed, Reply, Request};
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tenure_testkit::fake::{self, Fake, Says};

/// Grants these, one lease call each; then nothing, and the queues are empty.
fn grants(leases: Vec<LeaseView>) -> Arc<Fake> {
    let mut leases = VecDeque::from(leases);
    Fake::new(move |request, _| match request {
        Request::Lease(_) => {
            let leases = leases.pop_front().into_iter().collect();
            Says::Now(Ok(Reply::Lease(Leased { leases, ..Leased::default() })))
        }
        other => fake::well(other),
    })
}

/// A work to be set up and run.
struct Work {
    client: Client,
    plan: WorkPlan,
    cmd: Cmd,
}

impl Work {
    async fn run(self, next_signal: impl AsyncFnMut() -> Signal) -> Result<(), Failure> {
        work(&self.client, self.plan, self.cmd, next_signal).await
    }
}

fn shell(engine: &Arc<Fake>, script: &str) -> Work {
    let command = ["sh", "-c", script].map(OsString::from).to_vec();
    work_of(engine, command, Span::from_s(30))
}

fn work_of(engine: &Arc<Fake>, command: Vec<OsString>, ttl: Span) -> Work {
    let plan = WorkPlan {
        queues: vec![QueueName::parse("q").unwrap()],
        concurrency: 2,
        strict: false,
        until_empty: true,
        max_jobs: None,
        drain_timeout: Duration::from_secs(25),
        exit_when_away: None,
        ttl,
        next_in: None,
        url: "http://127.0.0.1:7171".to_owned(),
        lines: JobLines::Quiet,
    };
    let client = Client::new(engine.clone(), Namespace::main());
    let cmd = Cmd::new(client.clone(), command, BondArgs::default(), ttl);
    Work { client, plan, cmd }
}

async fn never() -> Signal {
    std::future::pending().await
}

fn endings(engine: &Fake) -> Vec<Ending> {
    engine.settled().into_iter().map(|item| item.ending).collect()
}

#[tokio::test]
async fn each_job_is_run_and_its_end_is_settled() {
    let engine = grants(vec![fake::job_lease("a", "{\"n\":1}"), fake::job_lease("b", "2")]);
    let script = "cat > $TENURE_RESULT_FILE";
    shell(&engine, script).run(never).await.unwrap();
    let mut results: Vec<String> = endings(&engine)
        .into_iter()
        .map(|ending| match ending {
            Ending::Succeeded { result } => result.unwrap().text().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    results.sort();
    assert_eq!(results, ["2", "{\"n\":1}"]);
}

#[tokio::test]
async fn a_failing_cmd_fails_its_job_with_the_end_of_its_stderr() {
    let engine = grants(vec![fake::job_lease("a", "1")]);
    shell(&engine, "echo http 500 >&2; exit 7").run(never).await.unwrap();
    let error = Ending::Failed { error: "http 500".into(), retry_in: None, last: false };
    assert_eq!(endings(&engine), [error]);
}

#[tokio::test]
async fn a_cmd_that_is_not_there_gives_the_job_back_and_ends_the_work() {
    let engine = grants(vec![fake::job_lease("a", "1"), fake::job_lease("b", "1")]);
    let command = vec![OsString::from("no-such-program-at-all")];
    let work = work_of(&engine, command, Span::from_s(30));
    assert_eq!(work.run(never).await.unwrap_err().code, 127);
    assert!(endings(&engine).iter().all(|ending| *ending == Ending::Released));
}

/// A job with one parent, which this script shows.
fn with_a_parent(script: fn(&Request) -> Option<Says>) -> Arc<Fake> {
    let mut lease = fake::job_lease("a", "1");
    lease.job.as_mut().unwrap().parents = 1;
    let mut leases = VecDeque::from([lease]);
    Fake::new(move |request, _| match (script(request), request) {
        (Some(says), _) => says,
        (None, Request::Lease(_)) => {
            let leases = leases.pop_front().into_iter().collect();
            Says::Now(Ok(Reply::Lease(Leased { leases, ..Leased::default() })))
        }
        (None, other) => fake::well(other),
    })
}

#[tokio::test]
async fn cmd_finds_the_parents_of_its_job() {
    let engine = with_a_parent(|request| {
        let Request::ListParents(_) = request else { return None };
        let parent =
            r#"{"id":"p","state":"succeeded","error":null,"finished_at":null,"result":[1]}"#;
        let items = vec![serde_json::from_str(parent).unwrap()];
        Some(Says::Now(Ok(Reply::ListParents(Listed { items, next: None, partial: false }))))
    });
    let script = "cat $TENURE_PARENTS_FILE > $TENURE_RESULT_FILE";
    shell(&engine, script).run(never).await.unwrap();
    let parent = r#"{"id":"p","state":"succeeded","result":[1],"error":null}"#;
    assert_eq!(endings(&engine), [Ending::Succeeded { result: Json::parse(parent) }]);
}

#[tokio::test]
async fn a_job_with_unreadable_parents_is_released_and_work_goes_on() {
    let engine = with_a_parent(|request| match request {
        Request::ListParents(_) => Some(fake::unavailable()),
        _ => None,
    });
    shell(&engine, "true").run(never).await.unwrap();
    assert_eq!(endings(&engine), [Ending::Released]);
}

#[tokio::test]
async fn max_jobs_ends_it() {
    let all = ["a", "b", "c"].map(|id| fake::job_lease(id, "1")).to_vec();
    let engine = grants(all);
    let mut work = shell(&engine, "true");
    (work.plan.max_jobs, work.plan.until_empty) = (Some(2), false);
    work.run(never).await.unwrap();
    assert_eq!(endings(&engine).len(), 2);
}

/// Until CMD has made this file.
async fn made(path: &std::path::Path) {
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_signal_lets_jobs_finish_and_a_second_one_gives_them_back() {
    for (signals, script, code, ending) in [
        (1, "touch F; sleep 0.2", None, Ending::Succeeded { result: None }),
        (2, "touch F; sleep 60", Some(143), Ending::Released),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("up");
        let script = script.replace('F', file.to_str().unwrap());
        let engine = grants(vec![fake::job_lease("a", "1")]);
        let mut work = shell(&engine, &script);
        work.plan.until_empty = false;
        let mut left = signals;
        let next = async || {
            if left == 0 {
                return never().await;
            }
            made(&file).await;
            left -= 1;
            Signal::SIGTERM
        };
        let ended = work.run(next).await;
        assert_eq!(ended.err().map(|failure| failure.code), code);
        assert_eq!(endings(&engine), [ending]);
    }
}

#[tokio::test]
async fn when_the_drain_timeout_is_over_what_runs_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("up");
    let engine = grants(vec![fake::job_lease("a", "1")]);
    let mut work = shell(&engine, &format!("touch {}; sleep 60", file.display()));
    work.plan.drain_timeout = Duration::from_millis(50);
    let mut told = false;
    let next = async || {
        if std::mem::replace(&mut told, true) {
            return never().await;
        }
        made(&file).await;
        Signal::SIGTERM
    };
    work.run(next).await.unwrap();
    assert_eq!(endings(&engine), [Ending::Released]);
}

/// Answers the heartbeats of one job with this.
fn beating(answer: fn(&str) -> Extended) -> Arc<Fake> {
    let inner = grants(vec![fake::job_lease("a", "1")]);
    Fake::new(move |request, _| match request {
        Request::Extend(extend) => Says::Now(Ok(Reply::Extend(answer(&extend.leases[0].lease)))),
        Request::Settle(settle) => Says::Now(Ok(fake::settled(settle))),
        other => inner.says(other),
    })
}

fn command(script: &str) -> Vec<OsString> {
    ["sh", "-c", script].map(OsString::from).to_vec()
}

#[tokio::test]
async fn a_lost_lease_stops_cmd_and_settles_nothing() {
    let engine = beating(|lease| Extended { lost: vec![lease.into()], ..Extended::default() });
    let begun = Instant::now();
    let work = work_of(&engine, command("sleep 60"), Span::from_s(1));
    work.run(never).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(engine.settled(), []);
}

#[tokio::test]
async fn a_cancelled_job_is_stopped_and_how_it_ended_counts() {
    let engine = beating(|lease| Extended {
        extended: vec![tenure_core::lease::ExtendedLease {
            lease: lease.into(),
            expires_at: clock::now().plus(Span::from_s(1)),
        }],
        cancel: vec![lease.into()],
        ..Extended::default()
    });
    let script = "trap 'echo stopped > $TENURE_RESULT_FILE; exit 0' TERM; sleep 60 & wait";
    let work = work_of(&engine, command(script), Span::from_s(1));
    work.run(never).await.unwrap();
    let result = Json::parse("\"stopped\"");
    assert_eq!(endings(&engine), [Ending::Succeeded { result }]);
}

#[tokio::test]
async fn a_refused_outcome_is_a_failure_that_says_so() {
    let inner = grants(vec![fake::job_lease("a", "1")]);
    let mut first = true;
    let engine = Fake::new(move |request, _| match request {
        Request::Settle(_) if std::mem::take(&mut first) => {
            let no = Refusal::heard(Code::UnknownPool, "no pool 'x'", "make it");
            Says::Now(Err(no.into()))
        }
        Request::Settle(settle) => Says::Now(Ok(fake::settled(settle))),
        other => inner.says(other),
    });
    shell(&engine, "true").run(never).await.unwrap();
    let error = "the outcome was refused: no pool 'x'; make it".to_owned();
    let failed = Ending::Failed { error, retry_in: None, last: false };
    assert_eq!(endings(&engine), [Ending::Succeeded { result: None }, failed]);
}

#[tokio::test]
async fn a_store_that_is_away_for_as_long_as_is_allowed_is_69() {
    let engine = Fake::new(|_, _| {
        let fault = tenure_engine_api::Fault::Unavailable("127.0.0.1:7171: refused".into());
        Says::Now(Err(fault.into()))
    });
    let mut work = shell(&engine, "true");
    work.plan.exit_when_away = Some(Span::from_ms(100));
    let begun = Instant::now();
    let failure = work.run(never).await.unwrap_err();
    assert_eq!(failure.code, 69);
    let sentence = failure.sentence.unwrap();
    assert!(sentence.contains("did not answer for 100ms (--exit-when-away)"), "{sentence}");
    assert!(begun.elapsed() >= Duration::from_millis(100));
}

#[test]
fn what_still_runs_is_told_for_one_and_for_many() {
    assert_eq!(still_running(1), "no more jobs are taken, 1 still runs");
    assert_eq!(still_running(2), "no more jobs are taken, 2 still run");
}
