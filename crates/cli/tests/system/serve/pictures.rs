//! The pictures of the dashboard go on over a restart of the server, by the events that its store keeps.

use std::time::Duration;

use serde_json::Value;
use tenure_testkit::tenure::once;

use crate::serve::{Server, ask, end, start, start_with};

/// Longest wait until a picture shows data that is read in the background.
const LONG: Duration = Duration::from_secs(30);

/// How many runs of the last hour the overview shows.
fn runs(server: &Server) -> Option<u64> {
    let page = server.get("/");
    let (_, rest) = page.split_once("<span class=\"label\">Runs</span><span class=\"big\">")?;
    rest.split_once('<')?.0.parse().ok()
}

/// Waits until the overview shows this many runs.
fn until(server: &Server, wanted: u64) {
    once(LONG, &format!("{wanted} runs"), || match runs(server) {
        Some(shown) if shown == wanted => Ok(()),
        shown => Err(format!("{shown:?}: {}", server.get("/"))),
    });
}

fn call(server: &Server, path: &str, body: &str) -> Value {
    let (status, answer) = ask(server, &format!("POST {path}"), "", body);
    assert_eq!(status, "200", "{answer}");
    serde_json::from_str(&answer).unwrap()
}

/// Pushes jobs and takes leases on them.
fn leases(server: &Server, jobs: usize) -> Vec<String> {
    let url = server.url();
    for n in 0..jobs {
        let at = server.at.rsplit(':').next().unwrap();
        let pushed = end(&["--url", &url, "push", "crawl", "--id", &format!("job-{at}-{n}")], None);
        assert_eq!(pushed.0, Some(0), "{}", pushed.1);
    }
    let said = call(server, "/v1/leases", &format!(r#"{{"queues":["crawl"],"max":{jobs}}}"#));
    let all = said["leases"].as_array().unwrap();
    all.iter().map(|lease| lease["lease"].as_str().unwrap().to_owned()).collect()
}

fn succeed(server: &Server, leases: &[String]) {
    let ends: Vec<_> =
        leases.iter().map(|id| serde_json::json!({"lease": id, "outcome": "succeeded"})).collect();
    call(server, "/v1/leases/settle", &serde_json::json!({ "settle": ends }).to_string());
}

#[test]
fn the_chart_of_a_queue_survives_a_restart_and_counts_runs_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("file:{}", dir.path().join("data").display());
    let server = start(&store, None);
    let open = leases(&server, 5);
    assert_eq!(open.len(), 5);
    succeed(&server, &open[..3]);
    until(&server, 3);
    assert_eq!(server.stop().0, Some(0));

    let server = start(&store, None);
    until(&server, 3);
    let page = server.get("/queues/crawl");
    // A bar, what was pushed, two lines of waits and two of run times.
    assert!(page.contains("class=\"good\""), "{page}");
    for class in ["trace came", "trace second", "trace"] {
        let lines = page.matches(&format!("polyline class=\"{class}\"")).count();
        assert!(lines >= if class == "trace came" { 1 } else { 2 }, "{class}: {page}");
    }
    // A run that began before the restart, and one that began after.
    succeed(&server, &open[3..4]);
    succeed(&server, &leases(&server, 1));
    until(&server, 5);
    assert_eq!(server.stop().0, Some(0));

    let server = start(&store, None);
    until(&server, 5);
    assert_eq!(server.stop().0, Some(0));
    // A server does not end because its store keeps no events.
    let server = start_with(&store, &["--events-bytes", "0"], None);
    until(&server, 0);
    assert!(server.get("/queues/crawl").contains("Run time"));
}
