//! No payload, no data of a resource, no token and no password is in the log of a server, at any level.

use tenure_testkit::tenure::done;

use crate::logged_in;
use crate::operating::{serving, start, tenure};

/// Stands in everything that must not be seen.
const MARK: &str = "geheim7f3a";

#[test]
fn nothing_secret_is_logged_even_at_trace() {
    for format in ["text", "json"] {
        let home = tempfile::tempdir().unwrap();
        let token = format!("{MARK}-token-{}", "x".repeat(32));
        let store = format!("file:{}/store", home.path().display());
        let options = ["--store", &store, "--log-level", "trace", "--log-format", format];
        let mut command = serving(home.path(), &options);
        command.env("TENURE_TOKEN", &token);
        let server = start(command);
        let url = server.url();
        let run = |arguments: &[&str]| {
            let mut command = tenure(home.path(), arguments);
            command.env("TENURE_URL", &url).env("TENURE_TOKEN", &token);
            done(&mut command);
        };
        let secret = format!("{{\"password\":\"{MARK}\"}}");
        let gauge = format!("http://user:{MARK}@127.0.0.1:1/{MARK}?key={MARK}");
        let result =
            format!("echo {MARK} > $TENURE_RESULT_FILE; echo {MARK} > $TENURE_PROGRESS_FILE");
        let label = format!("kind={MARK}");
        run(&["pool", "add", "accounts", "139", "--data", &secret]);
        let gauge = ["--gauge", &gauge, "--gauge-count", "/n", "--gauge-every", "1s"];
        run(&[&["limit", "set", "site", "--concurrency", "9"], &gauge[..]].concat());
        let more = ["--id", "seen", "--need", "pool:accounts", "--label", &label];
        run(&[&["push", "mail", &secret], &more[..]].concat());
        run(&["work", "mail", "--max-jobs", "1", "--", "sh", "-c", &result]);
        run(&["push", "mail", &secret, "--id", "fails"]);
        let says = format!("echo {MARK} >&2; exit 65");
        run(&["work", "mail", "--max-jobs", "1", "--", "sh", "-c", &says]);
        run(&["push", "gauged", "--need", "limit:site"]);
        // Wrong requests are not shown either: a body, a query, a header, a path that is no route.
        let bearer = format!("WITH Authorization: Bearer {token}");
        server.exchange(
            &format!("POST /v1/jobs {bearer}"),
            &format!("{{\"queue\":\"mail\",\"{MARK}\":1}}"),
        );
        server.exchange(&format!("GET /v1/jobs?label={MARK}:{MARK}&{MARK}=1 {bearer}"), "");
        server.exchange(&format!("GET /v1/{MARK} {bearer}"), "");
        server.exchange(&format!("GET /v1/stats WITH Authorization: Bearer {MARK}"), "");
        let ask = r#"{"queues":["gauged"],"max":1,"ttl":"30s","worker":"w","request_id":"g"}"#;
        server.exchange(&format!("POST /v1/leases {bearer}"), ask);
        server.line("a gauge cannot be read");
        let (code, log) = server.stop();
        assert_eq!(code, Some(0));
        // The lines are there, and say which job it was.
        assert!(
            log.contains("seen") && log.contains("request") && log.contains("job.succeeded"),
            "{log}"
        );
        let shown: Vec<&str> = log.lines().filter(|line| line.contains(MARK)).collect();
        assert!(shown.is_empty(), "{format}: {shown:#?}");
    }
}

/// Every page that a link leads to, the metrics and the log, for a visitor with the token.
#[test]
fn pages_metrics_and_logs_show_no_payload_resource_or_token() {
    let home = tempfile::tempdir().unwrap();
    let token = format!("{MARK}-token-{}", "x".repeat(32));
    let store = format!("file:{}/store", home.path().display());
    let mut command = serving(home.path(), &["--store", &store, "--log-level", "debug"]);
    command.env("TENURE_TOKEN", &token);
    let server = start(command);
    let bearer = format!("WITH Authorization: Bearer {token}");
    let secret = format!("{{\"password\":\"{MARK}\"}}");
    for (path, body) in [
        ("/v1/pools/accounts/resources", format!("[{{\"id\":\"139\",\"data\":{secret}}}]")),
        (
            "/v1/jobs",
            format!(
                "{{\"id\":\"one\",\"queue\":\"mail\",\"payload\":{secret},\"needs\":[{{\"pool\":\"accounts\"}}]}}"
            ),
        ),
        (
            "/v1/leases",
            "{\"queues\":[\"mail\"],\"worker\":{\"id\":\"w\"},\"ttl\":\"10m\"}".to_owned(),
        ),
        (
            "/v1/jobs",
            format!(
                "{{\"id\":\"two\",\"queue\":\"mail\",\"payload\":{secret},\"flow\":\"f\",\"needs\":[{{\"pool\":\"accounts\"}}]}}"
            ),
        ),
    ] {
        let method = if path.ends_with("resources") { "PUT" } else { "POST" };
        let told = server.exchange(&format!("{method} {path} {bearer}"), &body);
        assert!(told.starts_with("HTTP/1.1 2"), "{path}: {told}");
    }
    let scheduled =
        format!("{{\"every\":\"1h\",\"job\":{{\"queue\":\"mail\",\"payload\":{secret}}}}}");
    let told = server.exchange(&format!("PUT /v1/schedules/s {bearer}"), &scheduled);
    assert!(told.starts_with("HTTP/1.1 2"), "{told}");
    let cookie = logged_in(&server, &token);
    let (mut to_see, mut seen) = (vec!["/".to_owned()], std::collections::BTreeSet::new());
    while let Some(path) = to_see.pop() {
        if !seen.insert(path.clone()) || seen.len() > 400 {
            continue;
        }
        let page = server.get(&format!("{path} WITH Cookie: {cookie}"));
        assert!(
            page.starts_with("HTTP/1.1 200") || page.starts_with("HTTP/1.1 303"),
            "{path}: {page}"
        );
        assert!(!page.contains(MARK), "{path}: {page}");
        for link in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let link = link.replace("&amp;", "&");
            // The payload is shown where the visitor asks for it.
            let asks = link.contains("/edit") || link.contains("show=content");
            if link.starts_with('/') && !asks {
                to_see.push(link);
            }
        }
    }
    for path in
        ["/pools/accounts", "/jobs/one", "/flows/f", "/schedules/s", "/workers", "/jobs/one/cancel"]
    {
        assert!(seen.contains(path), "no link leads to {path}: {seen:?}");
    }
    let metrics = server.exchange(&format!("GET /metrics {bearer}"), "");
    assert!(metrics.contains("tenure_jobs") && !metrics.contains(MARK), "{metrics}");
    let (_, log) = server.stop();
    assert!(log.contains("request") && !log.contains(MARK), "{log}");
}
