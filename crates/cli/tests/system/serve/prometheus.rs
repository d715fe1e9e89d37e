//! A real Prometheus on the metrics of servers under load: its samples, the alerts, and the queries of the board.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::redis::{Aof, RedisServer, free_port, wanted};
use tenure_testkit::tenure::once;
use tenure_testkit::wants;

use crate::serve::{SOON, Server, ask, tenure};

/// How long something that is sure to come may take; a machine that builds beside the tests is slow.
const WAIT_MAX: Duration = Duration::from_secs(60);
const READS: &str = "token-of-a-prometheus-0123456789abc";
const ALERTS: &str = include_str!("../../../../../packaging/prometheus/alerts.yml");
const BOARD: &str = include_str!("../../../../../packaging/grafana/tenure.json");
const OWN: &str = "own-token-of-the-server-0123456789";
/// The rules wait for minutes; here they wait for moments. The subject of a query stays as it is.
const SOONER: [(&str, &str); 6] = [
    ("for: 1m", "for: 0s"),
    ("for: 5m", "for: 0s"),
    ("for: 10m", "for: 0s"),
    ("for: 15m", "for: 0s"),
    ("[10m]", "[5m]"),
    ("> 600", "> 1"),
];
/// Alerts that need fewer events here.
const FEWER: [(&str, &str); 2] = [("> 100\n", "> 1\n"), (") > 10", ") > 0")];
/// All that can be brought about in a moment; a schedule that no server decides about cannot.
const FIRED: [&str; 5] = [
    "TenureOldestReady",
    "TenureQueueWithoutWorker",
    "TenureFailures",
    "TenureLimitFull",
    "TenureLeasesLost",
];
const JOBS: usize = 200;

/// A Prometheus of this test's own; it ends with it.
struct Prometheus {
    child: Child,
    port: u16,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    fn start(dir: &Path, servers: &[&str]) -> Self {
        let mut rules = ALERTS.to_owned();
        for (usual, here) in SOONER.iter().chain(&FEWER) {
            assert!(rules.contains(usual), "alerts.yml has no {usual:?}");
            rules = rules.replace(usual, here);
        }
        fs::write(dir.join("alerts.yml"), rules).unwrap();
        fs::write(dir.join("token"), READS).unwrap();
        let targets = servers.iter().map(|at| format!("\"{at}\"")).collect::<Vec<_>>().join(", ");
        let config = format!(
            "global: {{scrape_interval: 300ms, scrape_timeout: 300ms, evaluation_interval: 300ms}}\n\
             rule_files: [alerts.yml]\n\
             scrape_configs:\n  - job_name: tenure\n    authorization: {{credentials_file: token}}\n    \
             static_configs: [{{targets: [{targets}]}}]\n"
        );
        fs::write(dir.join("prometheus.yml"), config).unwrap();
        let port = free_port();
        let log = fs::File::create(dir.join("log")).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", dir.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", dir.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("there is no Prometheus: install it, or set TENURE_WITHOUT=prometheus");
        Prometheus { child, port }
    }

    /// The answer of its API; `None` until it is there.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        // By the older version of HTTP the body is not cut into chunks.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    /// The samples of a query: their labels and their values. A query that is wrong fails the test.
    fn query(&self, query: &str) -> Vec<(Value, f64)> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let Some(said) = self.get(&format!("/api/v1/query?query={encoded}")) else {
            return Vec::new();
        };
        let found = said["data"]["result"].as_array().unwrap_or_else(|| panic!("{query}: {said}"));
        let sample = |found: &Value| {
            let value = found["value"][1].as_str().unwrap().parse().unwrap();
            (found["metric"].clone(), value)
        };
        found.iter().map(sample).collect()
    }

    /// Queries until the one number it answers is this.
    fn until(&self, query: &str, wanted: f64) {
        self.until_well(query, |found| matches!(found, [(_, value)] if *value == wanted));
    }

    fn until_well(&self, query: &str, well: impl Fn(&[(Value, f64)]) -> bool) {
        once(WAIT_MAX, query, || {
            let found = self.query(query);
            if well(&found) { Ok(()) } else { Err(format!("it stays {found:?}")) }
        });
    }

    fn firing(&self) -> HashSet<String> {
        let named = |alert: &Value| alert["labels"]["alertname"].as_str().unwrap().to_owned();
        let said = self.get("/api/v1/alerts").unwrap_or_default();
        let alerts = said["data"]["alerts"].as_array().cloned().unwrap_or_default();
        alerts.iter().filter(|alert| alert["state"] == "firing").map(named).collect()
    }

    fn until_firing(&self, wanted: &[&str]) {
        once(WAIT_MAX, "alerts", || {
            let firing = self.firing();
            let all = wanted.iter().all(|name| firing.contains(*name));
            if all { Ok(()) } else { Err(format!("of {wanted:?} only {firing:?} fire")) }
        });
    }
}

fn served(store: &str) -> Server {
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", store];
    Server::start(tenure(&args, Some(OWN)).env("TENURE_METRICS_TOKEN", READS), SOON)
}

/// A call that is answered well; its body.
fn call(server: &Server, call: &str, body: &str) -> Value {
    let (status, answer) = ask(server, call, OWN, body);
    assert!(matches!(status.as_str(), "200" | "201"), "{call}: {status} {answer}");
    serde_json::from_str(&answer).unwrap()
}

/// Leases jobs of a queue, and says their leases.
fn leases(server: &Server, queue: &str, ttl: &str) -> Vec<String> {
    let request = format!(r#"{{"queues":["{queue}"],"max":1000,"ttl":"{ttl}"}}"#);
    let said = call(server, "POST /v1/leases", &request);
    let leases = said["leases"].as_array().unwrap().iter();
    leases.map(|lease| lease["lease"].as_str().unwrap().to_owned()).collect()
}

/// Everything that a board shows and that alerts look for, at once.
fn work(server: &Server) {
    let jobs = vec![r#"{"queue":"mail"}"#; JOBS].join(",");
    call(server, "POST /v1/jobs", &format!("[{jobs}]"));
    let ends: Vec<String> = leases(server, "mail", "30s")
        .iter()
        .enumerate()
        .map(|(n, lease)| match n % 2 {
            0 => format!(r#"{{"lease":"{lease}","outcome":"succeeded"}}"#),
            _ => format!(r#"{{"lease":"{lease}","outcome":"failed","final":true,"error":"x"}}"#),
        })
        .collect();
    assert_eq!(ends.len(), JOBS);
    call(server, "POST /v1/leases/settle", &format!(r#"{{"settle":[{}]}}"#, ends.join(",")));
    // Nobody ever asks for these.
    call(server, "POST /v1/jobs", r#"[{"queue":"crawl"},{"queue":"crawl"}]"#);
    // A limit with a line.
    call(server, "PUT /v1/limits/narrow", r#"{"concurrency":1}"#);
    let needs = r#"{"queue":"site","needs":[{"limit":"narrow"}]}"#;
    call(server, "POST /v1/jobs", &format!("[{}]", [needs; 4].join(",")));
    leases(server, "site", "1h");
    // A pool.
    call(server, "PUT /v1/pools/accounts", "{}");
    call(server, "POST /v1/pools/accounts/resources", r#"[{"id":"a"},{"id":"b"}]"#);
    // A holder that dies.
    call(server, "POST /v1/jobs", r#"{"queue":"dies"}"#);
    leases(server, "dies", "1s");
}

/// Holders that come too late: how many. A job that was lost before may be granted again.
fn late(server: &Server) -> usize {
    call(server, "POST /v1/jobs", r#"{"queue":"late"}"#);
    let leases = leases(server, "late", "30s");
    for lease in &leases {
        assert_eq!(ask(server, &format!("DELETE /v1/leases/{lease}"), OWN, "").0, "204");
        let said = call(server, "POST /v1/leases/extend", &format!(r#"{{"leases":["{lease}"]}}"#));
        assert_eq!(said["lost"].as_array().unwrap().len(), 1, "{said}");
    }
    leases.len()
}

#[test]
fn the_alert_rules_are_valid_and_fire_only_in_trouble() {
    if !wants("prometheus") {
        return;
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/prometheus");
    for words in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]] {
        let ran = Command::new("promtool").args(words).current_dir(folder).output();
        let ran = ran
            .expect("there is no promtool: install prometheus, or set TENURE_WITHOUT=prometheus");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{words:?}: {said} {}", String::from_utf8_lossy(&ran.stdout));
    }
}

#[test]
fn a_prometheus_gathers_what_was_done_and_its_alerts_fire() {
    if !wants("prometheus") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let redis = wanted().then(|| RedisServer::start(Aof::Off, &[]));
    let mut stores = vec![format!("file:{}", dir.path().join("store").display())];
    stores.extend(redis.as_ref().map(RedisServer::url));
    let servers: Vec<Server> = stores.iter().map(|store| served(store)).collect();
    let at: Vec<&str> = servers.iter().map(|server| server.at.as_str()).collect();
    let prometheus = Prometheus::start(dir.path(), &at);
    // A rate takes two samples, so the counters must be there before they move.
    servers.iter().for_each(work);
    prometheus.until("sum(up)", servers.len() as f64);
    let lost: usize = servers.iter().map(late).sum();
    prometheus.until("sum(tenure_leases_lost_total)", lost as f64);
    servers.iter().for_each(work);
    let lost = lost + servers.iter().map(late).sum::<usize>();

    // The counts of the servers add up.
    let rounds = (2 * servers.len()) as f64;
    let half = JOBS as f64 / 2.0 * rounds;
    for (query, sum) in [
        (r#"sum(tenure_jobs_total{queue="mail",outcome="succeeded"})"#, half),
        (r#"sum(tenure_jobs_total{queue="mail",outcome="failed"})"#, half),
        (r#"sum(tenure_jobs_pushed_total{queue="mail"})"#, 2.0 * half),
        (r#"sum(tenure_wait_seconds_count{queue="mail"})"#, 2.0 * half),
        (r#"sum(tenure_run_seconds_count{queue="mail"})"#, 2.0 * half),
        (r#"sum(tenure_http_requests_total{route="settle",status="2xx"})"#, rounds),
        ("sum(tenure_leases_lost_total)", lost as f64),
        (r#"max(tenure_jobs{queue="crawl",state="ready"})"#, 4.0),
        ("max(tenure_limit_waiting)", 7.0),
    ] {
        prometheus.until(query, sum);
    }
    let running = call(&servers[0], "GET /v1/stats", "");
    let leases = running["leases"].as_f64().unwrap();
    assert!(leases >= 1.0, "{running}");

    prometheus.until_firing(&FIRED);
    assert!(!prometheus.firing().contains("TenureStoreNotWell"));
    assert!(!prometheus.firing().contains("TenureSchedulesLate"));

    for (title, query) in queries_of_the_board() {
        // A quantile of what rested meanwhile is no number.
        let well = |found: &[(Value, f64)]| found.iter().any(|(_, value)| value.is_finite());
        prometheus.until_well(&format!("{query} # {title}"), well);
    }

    for server in servers {
        assert_eq!(server.stop().0, Some(0));
    }
    prometheus.until_firing(&["TenureStoreNotWell"]);
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(!log.contains(READS), "{log}");
}

/// With their panels' titles, for all namespaces.
fn queries_of_the_board() -> Vec<(String, String)> {
    let board: Value = serde_json::from_str(BOARD).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let queries = panels.flat_map(|panel| {
        let targets = panel["targets"].as_array().unwrap().iter();
        targets.map(|target| {
            let query = target["expr"].as_str().unwrap();
            let query = query.replace("$namespace", ".*");
            (panel["title"].as_str().unwrap().to_owned(), query)
        })
    });
    let all: HashMap<String, String> = queries.map(|(title, query)| (query, title)).collect();
    assert!(all.len() >= 15, "{all:?}");
    all.into_iter().map(|(query, title)| (title, query)).collect()
}
