//! The content of `/metrics`, its readers, and its addresses.

use std::collections::{HashMap, HashSet};
use std::fs::Permissions;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::serve::{SOON, Server, ask, ask_at, ended, start, start_with, tenure};

/// Reads the text strictly: each sample as `name{labels}` with its value, below the type of its family.
fn metrics(text: &str) -> HashMap<String, f64> {
    let (mut samples, mut families) = (HashMap::new(), HashSet::new());
    let (mut family, mut kind) = ("", "");
    for line in text.lines() {
        if let Some(told) = line.strip_prefix("# HELP ") {
            let (name, help) = told.split_once(' ').unwrap();
            assert!(families.insert(name), "{name} stands in two places");
            assert!(help.ends_with(')'), "{help}");
            family = name;
        } else if let Some(told) = line.strip_prefix("# TYPE ") {
            let (name, is) = told.split_once(' ').unwrap();
            assert_eq!(name, family);
            kind = is;
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
            assert!(labels.ends_with('}'), "{line}");
            let rest =
                name.strip_prefix(family).unwrap_or_else(|| panic!("{line} is below {family}"));
            match kind {
                "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&rest), "{line}"),
                "counter" => assert!(name.ends_with("_total") && rest.is_empty(), "{line}"),
                "gauge" => assert!(rest.is_empty(), "{line}"),
                kind => panic!("{kind}: {line}"),
            }
            let value = value.parse().unwrap();
            assert!(samples.insert(sample.to_owned(), value).is_none(), "{line} stands twice");
        }
    }
    samples
}

#[test]
fn metrics_are_bounded_and_their_token_opens_nothing_else() {
    const OWN: &str = "own-token-of-the-server-0123456789";
    const READS: &str = "token-of-a-prometheus-0123456789abc";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("metrics-token");
    std::fs::write(&file, READS).unwrap();
    // The warning about a file that others may read comes before the line that says where it listens.
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let more = ["--metrics-token-file", file.to_str().unwrap()];
    let server = start_with("memory:", &more, Some(OWN));
    for (token, path, status) in [
        (OWN, "/metrics", "200"),
        (READS, "/metrics", "200"),
        (READS, "/v1/stats", "401"),
        (READS, "/version", "401"),
        ("nobody", "/metrics", "401"),
    ] {
        assert_eq!(ask(&server, &format!("GET {path}"), token, "").0, status, "{token} {path}");
    }
    let job = |n| format!(r#"{{"queue":"q{n:04}","payload":"a-secret-payload"}}"#);
    let jobs: Vec<String> = (0..1000).map(job).collect();
    let (status, _) = ask(&server, "POST /v1/jobs", OWN, &format!("[{}]", jobs.join(",")));
    assert_eq!(status, "200");
    let mut leases = Vec::new();
    for first in (0..320).step_by(32) {
        let queues: Vec<String> = (first..first + 32).map(|n| format!("\"q{n:04}\"")).collect();
        let call = format!(r#"{{"queues":[{}],"max":32}}"#, queues.join(","));
        let (status, said) = ask(&server, "POST /v1/leases", OWN, &call);
        assert_eq!(status, "200", "{said}");
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let granted = said["leases"].as_array().unwrap().iter();
        leases.extend(granted.map(|lease| lease["lease"].as_str().unwrap().to_owned()));
    }
    assert_eq!(leases.len(), 320);
    let ends: Vec<String> = leases[..300]
        .iter()
        .map(|lease| format!(r#"{{"lease":"{lease}","outcome":"succeeded"}}"#))
        .collect();
    let call = format!(r#"{{"settle":[{}]}}"#, ends.join(","));
    let (status, said) = ask(&server, "POST /v1/leases/settle", OWN, &call);
    assert_eq!(status, "200", "{said}");
    let until = Instant::now() + Duration::from_secs(30);
    let found = std::iter::repeat_with(|| ask(&server, "GET /metrics", READS, "").1)
        .map(|text| (metrics(&text), text))
        .take_while(|_| Instant::now() < until)
        // The state of the store may be a second old.
        .find(|(found, _)| found.get("tenure_leases{namespace=\"default\"}") == Some(&20.0));
    let (found, text) = found.unwrap();
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    for secret in ["a-secret-payload", OWN, READS, leases[0].as_str()] {
        assert!(!text.contains(secret), "{secret}");
    }
    let sum = |name: &str, label: &str| {
        let all = found
            .iter()
            .filter(|(sample, _)| sample.split('{').next() == Some(name) && sample.contains(label));
        all.map(|(_, value)| value).fold((0, 0.0), |(n, sum), value| (n + 1, sum + value))
    };
    assert_eq!(sum("tenure_jobs", "state=\"ready\"").1, 680.0);
    assert_eq!(sum("tenure_jobs_total", "outcome=\"succeeded\""), (201, 300.0));
    assert_eq!(sum("tenure_wait_seconds_count", "queue"), (201, 320.0));
    assert_eq!(sum("tenure_run_seconds_count", "queue").1, 300.0);
    assert_eq!(sum("tenure_oldest_ready_seconds", "queue").0, 201);
    assert_eq!(found["tenure_http_requests_total{route=\"lease\",status=\"2xx\"}"], 10.0);
    assert_eq!(found["tenure_store_up"], 1.0);
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn a_metrics_token_must_be_long_and_needs_a_server_token() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("short");
    std::fs::write(&file, "short").unwrap();
    let path = file.to_str().unwrap();
    let by_file = ["--metrics-token-file", path];
    let by_both = ["--metrics-token-file", path, "--metrics-listen", "127.0.0.1:0"];
    for (args, token, variable, why) in [
        (&by_file[..], None, None, "the server has no token"),
        (&by_file[..], Some("own"), None, "is too short"),
        (&[][..], None, Some("short"), "the server has no token"),
        (&by_both[..], None, None, "is too short"),
        (&["--metrics-listen", "0.0.0.0:0"][..], None, None, "--metrics-listen: there is no token"),
        (&["--metrics-listen", "nowhere"][..], None, None, "--metrics-listen: 'nowhere'"),
    ] {
        let args = [&["serve", "--listen", "127.0.0.1:0", "--store", "memory:"][..], args].concat();
        let mut command = tenure(&args, token);
        command.envs(variable.map(|token| ("TENURE_METRICS_TOKEN", token)));
        let (code, log) = ended(command);
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains(why), "{log}");
    }
}

#[test]
fn tokens_for_the_metrics_change_one_by_one_while_it_serves() {
    const OWN: &str = "own-token-of-the-server-0123456789";
    let [old, new] = ["old", "new"].map(|word| format!("{word}-token-of-a-prometheus-0123456789"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("metrics-tokens");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write(&old);
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let more = ["--metrics-token-file", file.to_str().unwrap()];
    let server = start_with("memory:", &more, Some(OWN));
    let taken = |server: &Server| {
        [&old, &new, "short"].map(|token| ask(server, "GET /metrics", token, "").0 == "200")
    };
    assert_eq!(taken(&server), [true, false, false]);
    let texts = [
        (format!("{old}\n{new}\n"), "are valid now", [true, true, false]),
        (format!("{new}\nshort\n"), "is too short", [true, true, false]),
        (format!("{new}\n"), "are valid now", [false, true, false]),
    ];
    for (n, (text, said, valid)) in (1..).zip(texts) {
        write(&text);
        server.signal(Signal::SIGHUP);
        let line = server.nth_line("the new tokens", n);
        assert!(line.contains(said) && !line.contains("prometheus-0"), "{line}");
        assert_eq!(taken(&server), valid);
    }
}

#[test]
fn metrics_may_have_a_port_and_a_token_of_their_own() {
    const READS: &str = "token-of-a-prometheus-0123456789abc";
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--no-dashboard"];
    let args = [&args[..], &["--metrics-listen", "127.0.0.1:0"]].concat();
    let mut command = tenure(&args, None);
    let server = Server::start(command.env("TENURE_METRICS_TOKEN", READS), SOON);
    let line = server.line("a port of their own");
    assert!(!line.contains(READS), "{line}");
    let (_, port) = line.split_once("127.0.0.1:").unwrap();
    let port = port.split(|c: char| !c.is_ascii_digit()).next().unwrap();
    let port = format!("127.0.0.1:{port}");
    // Silent connections take none of its 32 connections away from a scrape.
    let _silent: Vec<_> = (0..40).map(|_| TcpStream::connect(&port).unwrap()).collect();
    for (at, path, token, status) in [
        (&port, "/metrics", READS, "200"),
        (&port, "/metrics", "", "401"),
        (&port, "/metrics", "another", "401"),
        (&port, "/v1/stats", READS, "404"),
        (&port, "/healthz", READS, "404"),
        (&port, "/", READS, "404"),
        // The server has no token, and is on loopback.
        (&server.at, "/metrics", "", "200"),
        (&server.at, "/v1/stats", "", "200"),
    ] {
        let (found, said) = ask_at(at, &format!("GET {path}"), token, "");
        assert_eq!(found, status, "{at} {path} {said}");
    }
    assert_eq!(server.stop().0, Some(0));
}

/// Pushes a job to `crawl`, and leases it; the id of the lease.
fn leased(server: &Server, ttl: &str) -> String {
    let call = format!(r#"{{"queues":["crawl"],"ttl":"{ttl}"}}"#);
    let (status, said) = ask(server, "POST /v1/leases", "", &call);
    assert_eq!(status, "200", "{said}");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    said["leases"][0]["lease"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
}

fn push(server: &Server, body: &str) {
    let (status, answer) = ask(server, "POST /v1/jobs", "", body);
    assert!(matches!(status.as_str(), "200" | "201"), "{answer}");
}

#[test]
fn a_lost_run_and_a_repeated_push_are_counted_once() {
    let server = start_with("memory:", &["--test-clock"], None);
    push(&server, r#"{"id":"one","queue":"crawl"}"#);
    push(
        &server,
        r#"[{"id":"one","queue":"crawl"},{"id":"two","queue":"mail"},{"id":"two","queue":"mail"}]"#,
    );
    let first = leased(&server, "10s");
    for span in ["11s", "5s"] {
        let call = format!(r#"{{"advance":"{span}"}}"#);
        assert_eq!(ask(&server, "POST /v1/test/clock", "", &call).0, "200");
    }
    let again = leased(&server, "10s");
    let ends = [&first, &again].map(|lease| {
        format!(r#"{{"lease":"{lease}","outcome":"succeeded","push":[{{"queue":"mail"}}]}}"#)
    });
    let call = format!(r#"{{"settle":[{}]}}"#, ends.join(","));
    assert_eq!(ask(&server, "POST /v1/leases/settle", "", &call).0, "200");
    // A report that its settle overtook: the answer says that the lease is over, and no holder was too late.
    let call = format!(r#"{{"leases":[{{"lease":"{again}","progress":1}}]}}"#);
    let (status, body) = ask(&server, "POST /v1/leases/extend", "", &call);
    assert!(status == "200" && body.contains(&format!(r#""lost":["{again}"]"#)), "{body}");
    let found = metrics(&ask(&server, "GET /metrics", "", "").1);
    for (sample, value) in [
        (r#"tenure_jobs_pushed_total{namespace="default",queue="crawl"}"#, 1.0),
        (r#"tenure_jobs_pushed_total{namespace="default",queue="mail"}"#, 2.0),
        (r#"tenure_jobs_total{namespace="default",queue="crawl",outcome="lost"}"#, 1.0),
        (r#"tenure_jobs_total{namespace="default",queue="crawl",outcome="succeeded"}"#, 1.0),
        ("tenure_leases_lost_total", 1.0),
    ] {
        assert_eq!(found.get(sample), Some(&value), "{sample}");
    }
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn metrics_say_what_the_store_takes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = format!("file:{}", dir.path().join("data").display());
    let redis = wanted().then(|| RedisServer::start(Aof::Off, &[]));
    let stores = [Some(folder), redis.as_ref().map(RedisServer::url)];
    for store in stores.into_iter().flatten() {
        let server = start(&store, None);
        push(&server, r#"{"queue":"crawl"}"#);
        leased(&server, "10s");
        let found = metrics(&ask(&server, "GET /metrics", "", "").1);
        for sample in [
            "tenure_store_commit_seconds_count",
            "tenure_store_sync_seconds_count",
            "tenure_store_open_seconds",
        ] {
            assert!(
                found.get(sample).is_some_and(|value| *value > 0.0),
                "{store} {sample} {found:?}"
            );
        }
        let is_redis = store.starts_with("redis");
        let recovers = found.contains_key("tenure_store_recovering_seconds");
        assert_eq!(recovers, is_redis, "{store}");
        assert_eq!(server.stop().0, Some(0));
    }
}
