//! A service in trouble, and jobs that must stop: by its own count no job runs twice at once, and no job is lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::over_http::ours::{Tenure, until};
use crate::over_http::server::Server;

const JOBS: usize = 60;
const LONG: Duration = Duration::from_secs(120);

/// The counts of the service.
#[derive(Default)]
struct Counts {
    live: BTreeMap<String, usize>,
    /// Jobs with two live runs at once.
    twice: Vec<String>,
    done: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Shop {
    counts: Mutex<Counts>,
    asked: AtomicU64,
    /// It is restarted: what runs is cut off.
    restarts: AtomicBool,
}

impl Shop {
    fn begins(&self, id: &str) {
        let mut counts = self.counts.lock().unwrap();
        let live = counts.live.entry(id.to_owned()).or_default();
        *live += 1;
        if *live > 1 {
            counts.twice.push(id.to_owned());
        }
    }

    fn ends(&self, id: &str, done: bool) {
        let mut counts = self.counts.lock().unwrap();
        *counts.live.get_mut(id).unwrap() -= 1;
        if done {
            *counts.done.entry(id.to_owned()).or_default() += 1;
        }
    }
}

#[test]
fn a_failing_service_loses_no_job_and_runs_none_twice_at_once() {
    let shop = Arc::new(Shop::default());
    let inside = shop.clone();
    let service = Server::start(move |asked, caller| {
        let id = asked.header("tenure-job-id").to_owned();
        let n = inside.asked.fetch_add(1, Ordering::Relaxed);
        inside.begins(&id);
        // Always the same, and never two equal ones in a row.
        let slow = Duration::from_millis(n * 271 % 200);
        let there = caller.stays(slow, || inside.restarts.load(Ordering::Relaxed));
        let restarts = inside.restarts.load(Ordering::Relaxed);
        // In bursts: ten bad answers, ten good ones.
        let well = (n / 10) % 2 == 1;
        inside.ends(&id, there && well && !restarts);
        match (well && !restarts, n % 4) {
            _ if restarts => {}
            (true, _) => caller.answer(200, &[], "{}"),
            (false, 0) => caller.answer(500, &[], "oh no"),
            (false, 1) => caller.write("garbage\r\n\r\n"),
            (false, 2) => caller.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{"),
            // Cut after the request was read.
            (false, _) => {}
        }
    });
    let tenure = Tenure::start();
    let retry = json!({"max_attempts":0,"max_lost":0,"backoff":{"kind":"fixed","base":"100ms"}});
    for n in 0..JOBS {
        tenure.push(&json!({"id":format!("job-{n}"),"queue":"q","retry":retry}));
    }
    let url = format!("http://{}/", service.at());
    let arguments = ["--http", &url, "-c", "4", "--ttl", "2s"];
    let asked = |n| shop.asked.load(Ordering::Relaxed) >= n;
    let (killed, lives) = (tenure.worker(&arguments), tenure.worker(&arguments));
    until("it is asked", || asked(20));
    killed.signal(Signal::SIGKILL);
    until("it is asked more", || asked(40));
    shop.restarts.store(true, Ordering::Relaxed);
    service.down();
    let live = || shop.counts.lock().unwrap().live.values().sum::<usize>();
    until("what ran is cut off", || live() == 0);
    shop.restarts.store(false, Ordering::Relaxed);
    service.up();
    let again = tenure.worker(&arguments);
    until("all jobs have succeeded", || tenure.count("succeeded") == JOBS as u64);
    drop((lives, again));
    let counts = shop.counts.lock().unwrap();
    assert_eq!(counts.twice, Vec::<String>::new());
    assert_eq!(counts.done.len(), JOBS, "each was done, by the service's own count");
}

/// A service that keeps its callers, and counts those that hung up.
fn keeper() -> (Server, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (came, went) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let (comes, goes) = (came.clone(), went.clone());
    let service = Server::start(move |_, caller| {
        comes.fetch_add(1, Ordering::Relaxed);
        if !caller.stays(LONG, || false) {
            goes.fetch_add(1, Ordering::Relaxed);
        }
    });
    (service, came, went)
}

#[test]
fn a_request_is_dropped_when_its_job_is_cancelled_or_taken_away() {
    let (service, came, went) = keeper();
    let tenure = Tenure::start();
    let url = format!("http://{}/", service.at());
    let _worker = tenure.worker(&["--http", &url, "--ttl", "1s"]);
    tenure.push(&json!({"id":"a","queue":"q"}));
    until("it is asked", || came.load(Ordering::Relaxed) == 1);
    tenure.ask("POST /v1/jobs/a/cancel", &json!({}));
    tenure.once("a", "cancelled");
    until("the request is dropped", || went.load(Ordering::Relaxed) == 1);

    tenure.push(&json!({"id":"b","queue":"q","retry":{"max_lost":1}}));
    until("it is asked again", || came.load(Ordering::Relaxed) == 2);
    let lease = tenure.job("b")["lease"].as_str().unwrap().to_owned();
    tenure.ask(&format!("DELETE /v1/leases/{lease}"), &json!({}));
    until("the request is dropped", || went.load(Ordering::Relaxed) == 2);

    tenure.ask("POST /v1/jobs/b/cancel", &json!({}));
    tenure.push(&json!({"id":"c","queue":"q","timeout":"500ms","retry":{"max_attempts":1}}));
    until("the request is dropped at the deadline", || went.load(Ordering::Relaxed) >= 3);
    assert_eq!(tenure.once("c", "failed")["error"], "timeout");
}

#[test]
fn a_draining_worker_finishes_its_requests_or_releases_them() {
    let over = Arc::new(AtomicBool::new(false));
    let (ends, came) = (over.clone(), Arc::<AtomicU64>::default());
    let comes = came.clone();
    let service = Server::start(move |_, caller| {
        comes.fetch_add(1, Ordering::Relaxed);
        if caller.stays(LONG, || ends.load(Ordering::Relaxed)) {
            caller.answer(200, &[], "7");
        }
    });
    let tenure = Tenure::start();
    let url = format!("http://{}/", service.at());
    tenure.push(&json!({"id":"a","queue":"q"}));
    let mut worker = tenure.worker(&["--http", &url]);
    until("it is asked", || came.load(Ordering::Relaxed) == 1);
    worker.signal(Signal::SIGTERM);
    until("it drains", || worker.said().contains("no more jobs are taken, 1 still runs"));
    over.store(true, Ordering::Relaxed);
    assert!(worker.end().success());
    assert_eq!(tenure.job("a")["result"], 7);

    over.store(false, Ordering::Relaxed);
    tenure.push(&json!({"id":"b","queue":"q"}));
    let mut worker = tenure.worker(&["--http", &url, "--drain-timeout", "100ms"]);
    until("it is asked", || came.load(Ordering::Relaxed) == 2);
    worker.signal(Signal::SIGTERM);
    assert!(worker.end().success());
    let job = tenure.job("b");
    assert_eq!((&job["state"], &job["attempt"]), (&json!("ready"), &json!(0)), "{job}");
}
