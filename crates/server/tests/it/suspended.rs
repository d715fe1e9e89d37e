//! The system stops a worker process for longer than its ttl, and then continues it: by then its job belongs to another
//! worker, and it neither settles nor touches the job.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::wire::{Server, until};
use serde_json::{Value, json};
use tenure::{Client, Job, Span};

/// The server's URL for the worker process. Without it `worker_process` does nothing.
const URL: &str = "SUSPENDED_TEST_URL";

/// The shortest possible ttl.
const TTL: Span = Span::from_s(1);

/// The worker process, killed when the test ends in any way.
struct WorkerProcess(Child);

impl WorkerProcess {
    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The worker process: this test binary, started again for this test alone.
#[test]
#[ignore = "the process that the other test starts"]
fn worker_process() {
    let Ok(url) = std::env::var(URL) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(&url).await.unwrap();
        let worker = client.worker(["q"]).ttl(TTL).max_jobs(1);
        let worker = worker.stop_grace(Duration::from_secs(60)).observe(|event| {
            println!("event {event:?}");
        });
        let worked = worker.run(|job: Job| async move {
            println!("begun");
            let stop = job.stopped().await;
            println!("told {stop:?}");
            // The result of a run that was just done.
            Ok::<_, String>(())
        });
        worked.await.unwrap();
    });
}

#[test]
fn a_worker_stopped_for_two_ttls_cannot_affect_the_next_holder() {
    let server = Server::start();
    server.post("/v1/jobs", &json!({"id": "a", "queue": "q"}).to_string()).good();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "suspended::worker_process", "--ignored", "--nocapture"])
        .env(URL, format!("http://{}", server.at))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let worker = WorkerProcess(child);
    assert!(lines.any(|line| line == "begun"), "its handler begins");
    worker.signal("-STOP");
    let stopped = Instant::now();
    let mut lease = Value::Null;
    until("another worker has the job", || {
        let ask = json!({"queues": ["q"], "wait": "1s", "ttl": "1h", "worker": "other"});
        lease = server.post("/v1/leases", &ask.to_string()).good()["leases"][0].clone();
        lease.is_object()
    });
    let before = server.get("/v1/jobs/a").good();
    assert_eq!((&before["state"], &before["lost"]), (&json!("running"), &json!(1)));
    until("two ttls have passed", || stopped.elapsed() >= 2 * TTL.std());
    worker.signal("-CONT");
    let said: Vec<String> = lines.collect();
    assert!(said.iter().any(|line| line == "told Lost"), "{said:?}");
    assert!(
        !said.iter().any(|line| line.contains("Settled { job") && !line.contains("Not")),
        "{said:?}"
    );
    // Nothing has changed: state, attempt, the lease and its end.
    assert_eq!(server.get("/v1/jobs/a").good(), before);
    let settle =
        json!({"settle": [{"lease": lease["lease"], "outcome": "succeeded", "result": 7}]});
    let settled = server.post("/v1/leases/settle", &settle.to_string()).good();
    assert_eq!(settled["settled"][0]["ok"], true, "{settled}");
    let done = server.get("/v1/jobs/a").good();
    assert_eq!((&done["state"], &done["result"]), (&json!("succeeded"), &json!(7)));
}
