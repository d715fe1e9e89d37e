//! Jobs that are spiders of a scrapyd: the calls to it, and the ends of the jobs.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tenure_testkit::tenure::Process;

use crate::over_http::ours::{Tenure, until};
use crate::over_http::scrapyd::FakeScrapyd;

pub fn job(id: &str) -> Value {
    let retry = json!({"max_attempts":3,"backoff":{"kind":"fixed","base":"100ms"}});
    let payload = json!({"project":"news","spider":"front"});
    json!({"id":id,"queue":"q","payload":payload,"retry":retry})
}

pub fn worker(tenure: &Tenure, scrapyd: &FakeScrapyd, more: &[&str]) -> Process {
    worker_with_ttl(tenure, scrapyd, "1s", more)
}

pub fn worker_with_ttl(
    tenure: &Tenure,
    scrapyd: &FakeScrapyd,
    ttl: &str,
    more: &[&str],
) -> Process {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("address");
    std::fs::write(&file, scrapyd.url()).unwrap();
    let address = format!("@{}", file.display());
    let arguments = ["--scrapyd", &address, "--poll-every", "100ms", "--ttl", ttl, "-c", "2"];
    let worker = tenure.worker(&[&arguments, more].concat());
    // It has read its file once it asks for work.
    until("the worker is there", || {
        let workers = tenure.look("/v1/workers").1;
        let pid = worker.id();
        workers["items"].as_array().unwrap().iter().any(|one| one["pid"] == pid)
    });
    worker
}

/// A server of Tenure, a scrapyd, and a worker between them.
pub fn at_work() -> (Tenure, FakeScrapyd, Process) {
    let (tenure, scrapyd) = (Tenure::start(), FakeScrapyd::start());
    let worker = worker(&tenure, &scrapyd, &[]);
    (tenure, scrapyd, worker)
}

/// Nothing that is secret was said.
pub fn is_discreet(tenure: &Tenure, workers: &[&Process]) {
    let all: String = workers.iter().map(|worker| worker.said()).chain([tenure.said()]).collect();
    for secret in ["geheim", "bWU6Z2VoZWlt"] {
        assert!(!all.contains(secret), "{all}");
    }
}

#[test]
fn a_spider_has_the_id_of_its_job_and_its_log_gives_the_result() {
    let (tenure, scrapyd, worker) = at_work();
    let mut pushed = job("visit-42");
    pushed["payload"]["args"] = json!({"page":7});
    pushed["payload"]["settings"] = json!({"DOWNLOAD_DELAY":2});
    pushed["payload"]["version"] = json!("r7");
    tenure.push(&pushed);
    until("it runs", || scrapyd.runs("visit-42"));
    until("its progress says so", || {
        tenure.job("visit-42")["progress"]["scrapyd"]["stage"] == "running"
    });
    scrapyd.look().finish("visit-42", "finished");
    let done = tenure.once("visit-42", "succeeded");
    let result = json!({"finish_reason":"finished","items":12,"stats":{"item_scraped_count":12}});
    assert_eq!(done["result"], result);
    {
        let inside = scrapyd.look();
        let form = json!({"project":"news","spider":"front","jobid":"visit-42","_version":"r7",
            "setting":"DOWNLOAD_DELAY=2","page":"7"});
        assert_eq!(json!(inside.schedules), json!([form]));
        let at = |name: &str| inside.calls.iter().position(|call| call.contains(name)).unwrap();
        assert!(at("listjobs") < at("schedule"), "it is looked for first");
    }
    is_discreet(&tenure, &[&worker]);
}

#[test]
fn a_retried_spider_keeps_its_id_and_ignores_older_logs() {
    let (tenure, scrapyd, _worker) = at_work();
    tenure.push(&job("a"));
    until("it runs", || scrapyd.runs("a"));
    scrapyd.look().finish("a", "closespider_errorcount");
    until("it runs again", || scrapyd.starts("a") == 2 && scrapyd.runs("a"));
    // It dies without a line in its log: the end of the first run still stands there.
    scrapyd.look().dies("a");
    until("it runs a third time", || scrapyd.starts("a") == 3 && scrapyd.runs("a"));
    scrapyd.look().finish("a", "finished");
    let done = tenure.once("a", "succeeded");
    assert_eq!(done["attempt"], 3);
    let error = |n: usize| done["errors"][n]["error"].as_str().unwrap();
    assert_eq!(error(0), "the spider closed with finish_reason \"closespider_errorcount\"");
    assert!(error(1).starts_with("the spider ended, but its log does not say how"), "{}", error(1));
    assert_eq!(scrapyd.look().twice, Vec::<String>::new());
}

#[test]
fn a_reused_id_does_not_find_an_earlier_run() {
    let (tenure, scrapyd, _worker) = at_work();
    for day in 1..=2 {
        tenure.push(&job("a"));
        until("it runs", || scrapyd.starts("a") == day && scrapyd.runs("a"));
        scrapyd.look().finish("a", "finished");
        tenure.once("a", "succeeded");
        tenure.ask("DELETE /v1/jobs/a", &json!({}));
    }
}

#[test]
fn a_refused_or_malformed_spider_fails_with_a_sentence() {
    let (tenure, scrapyd, worker) = at_work();
    let mut unknown = job("unknown");
    unknown["payload"]["spider"] = json!("nobody");
    let mut misspelt = job("misspelt");
    misspelt["payload"]["arg"] = json!("geheim");
    for (job, attempts, error) in [
        (unknown, 3, "the spider was not started: schedule.json: spider 'nobody' not found"),
        (
            misspelt,
            1,
            "the payload has an unknown field; it takes project, spider, args, settings and version",
        ),
    ] {
        tenure.push(&job);
        let failed = tenure.once(job["id"].as_str().unwrap(), "failed");
        assert_eq!((&failed["attempt"], &failed["error"]), (&json!(attempts), &json!(error)));
    }
    assert_eq!(scrapyd.look().schedules.len(), 0);
    is_discreet(&tenure, &[&worker]);
}

#[test]
fn a_cancelled_job_cancels_its_spider_and_can_be_run_again() {
    let (tenure, scrapyd, _worker) = at_work();
    tenure.push(&job("a"));
    until("it runs", || scrapyd.runs("a"));
    tenure.ask("POST /v1/jobs/a/cancel", &json!({}));
    tenure.once("a", "cancelled");
    assert!(!scrapyd.runs("a"));
    assert_eq!(scrapyd.calls("cancel.json"), 1);
    // By hand once more: it is another run.
    tenure.ask("POST /v1/jobs/a/retry", &json!({}));
    until("it runs again", || scrapyd.starts("a") == 2 && scrapyd.runs("a"));
    scrapyd.look().finish("a", "finished");
    tenure.once("a", "succeeded");
}

#[test]
fn a_run_whose_time_is_over_is_ended_before_the_next_one_starts() {
    let (tenure, scrapyd, _worker) = at_work();
    scrapyd.look().cancel_reason = None;
    let mut slow = job("a");
    slow["timeout"] = json!("2s");
    tenure.push(&slow);
    until("it runs", || scrapyd.runs("a"));
    until("it is in its second attempt", || {
        let job = tenure.job("a");
        job["attempt"] == 2 && job["state"] == "running"
    });
    let asked = scrapyd.calls("cancel.json");
    until("the leftover is cancelled", || scrapyd.calls("cancel.json") > asked);
    assert_eq!(scrapyd.starts("a"), 1, "not beside what still runs");
    scrapyd.look().cancel_reason = Some("shutdown");
    until("it runs again", || scrapyd.starts("a") >= 2 && scrapyd.runs("a"));
    scrapyd.look().finish("a", "finished");
    tenure.once("a", "succeeded");
    assert_eq!(scrapyd.look().twice, Vec::<String>::new());
}

#[test]
fn a_draining_worker_leaves_its_spider_to_the_next_one() {
    let (tenure, scrapyd) = (Tenure::start(), FakeScrapyd::start());
    let mut first = worker(&tenure, &scrapyd, &["--drain-timeout", "100ms"]);
    tenure.push(&job("a"));
    until("it runs", || scrapyd.runs("a"));
    first.signal(Signal::SIGTERM);
    assert!(first.end().success());
    until("it says so", || first.said().contains("its spider goes on, and is found again"));
    assert!(scrapyd.runs("a"));
    let _second = worker(&tenure, &scrapyd, &[]);
    tenure.once("a", "running");
    scrapyd.look().finish("a", "finished");
    assert_eq!(tenure.once("a", "succeeded")["attempt"], 1);
    assert_eq!((scrapyd.starts("a"), scrapyd.calls("cancel.json")), (1, 0));
}
