//! Every refusal and every bad input, by raw bytes: status, code, pointer and hint, and no change
//! to the store.

use crate::wire::Server;
use tenure_core::bounds::{ITEMS_MAX, PAYLOAD_BYTES_MAX};
use tenure_core::refusal::Code;
use tenure_server::Config;

/// The state of the store before the rows are sent.
fn furnished(server: Server) -> Server {
    server.put("/v1/limits/scrapy", r#"{"concurrency": 2}"#).good();
    server.put("/v1/limits/api", r#"{"rate": {"count": 10, "per": "1s"}}"#).good();
    server.put("/v1/queues/full", r#"{"max_waiting": 0}"#).good();
    server
        .put(
            "/v1/pools/accounts/resources",
            r#"[{"id":"a","data":{"p":"s3cret"}},{"id":"b"},{"id":"c"}]"#,
        )
        .good();
    let schedule = r#"{"cron": "@yearly", "owner": "cms", "job": {"queue": "q"}}"#;
    server.put("/v1/schedules/news", schedule).good();
    server.post("/v1/jobs", r#"{"id": "waits", "queue": "q", "unique": {"key": "k"}}"#).good();
    server
        .post(
            "/v1/jobs",
            r#"{"id": "runs", "queue": "r", "needs": [{"pool": "accounts", "id": "a"}]}"#,
        )
        .good();
    let leased = server.post("/v1/leases", r#"{"queues": ["r"], "ttl": "1h"}"#).good();
    assert_eq!(leased["leases"][0]["job"]["id"], "runs");
    server
}

/// `METHOD path`, body, status, code, pointer.
type Row = (&'static str, String, u16, &'static str, Option<&'static str>);

fn row(
    line: &'static str,
    body: impl Into<String>,
    status: u16,
    code: &'static str,
    pointer: impl Into<Option<&'static str>>,
) -> Row {
    (line, body.into(), status, code, pointer.into())
}

fn not_json() -> Vec<Row> {
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let payload = |payload: String| format!(r#"{{"payload": {payload}}}"#);
    let bad = |body: String| row("POST /v1/jobs", body, 400, "bad_json", None);
    vec![
        bad("{".into()),
        bad("nonsense".into()),
        bad("{'a': 1}".into()),
        bad("{} {}".into()),
        bad("{}x".into()),
        bad(r#"{"queue": "a", "queue": "a"}"#.into()),
        bad(r#"{"payload": {"a": 1, "\u0061": 2}}"#.into()),
        bad("{\"a\": \"\u{1}\"}".into()),
        bad(payload("01".into())),
        bad(payload("NaN".into())),
        bad(deep(65)),
        bad(payload(deep(64))),
        bad("[".repeat(1_000_000)),
    ]
}

fn bodies() -> Vec<Row> {
    let long = format!(r#"{{"payload": "{}"}}"#, "x".repeat(PAYLOAD_BYTES_MAX));
    let many = format!("[{}]", vec!["{}"; ITEMS_MAX + 1].join(","));
    let name = "x".repeat(129);
    let post = "POST /v1/jobs";
    let field = "invalid_field";
    let bounds = "out_of_bounds";
    vec![
        row(post, "", 422, field, ""),
        row(post, " ", 422, field, ""),
        row(post, "7", 422, field, ""),
        row(post, "null", 422, field, ""),
        row(post, "[]", 422, bounds, ""),
        row(post, "[1]", 422, field, "/0"),
        row(post, many, 422, bounds, ""),
        row(post, long, 422, bounds, "/payload"),
        row(post, r#"{"nothing": 1}"#, 422, "unknown_field", "/nothing"),
        row(post, r#"{"state": "ready"}"#, 422, "unknown_field", "/state"),
        row(post, r#"[{}, {"a/b~c": 1}]"#, 422, "unknown_field", "/1/a~1b~0c"),
        row(post, r#"{"queue": 7}"#, 422, field, "/queue"),
        row(post, r#"{"queue": ""}"#, 422, field, "/queue"),
        row(post, r#"{"queue": "a\u0007b"}"#, 422, field, "/queue"),
        row(post, r#"{"queue": "a/b"}"#, 422, field, "/queue"),
        row(post, r#"{"queue": " a"}"#, 422, field, "/queue"),
        row(post, format!(r#"{{"queue": "{name}"}}"#), 422, bounds, "/queue"),
        row(post, r#"{"id": "key:x"}"#, 422, field, "/id"),
        row(post, r#"{"id": ""}"#, 422, field, "/id"),
        row(post, r#"{"priority": 101}"#, 422, bounds, "/priority"),
        row(post, r#"{"priority": "1"}"#, 422, field, "/priority"),
        row(post, r#"{"priority": 1.5}"#, 422, field, "/priority"),
        row(post, r#"{"delay": "-5s"}"#, 422, field, "/delay"),
        row(post, r#"{"delay": 5}"#, 422, field, "/delay"),
        row(post, r#"{"delay": "5"}"#, 422, field, "/delay"),
        row(post, r#"{"delay": "4000d"}"#, 422, bounds, "/delay"),
        row(post, r#"{"run_at": "2026-12-01T09:55:00"}"#, 422, field, "/run_at"),
        row(post, r#"{"run_at": 1796119000}"#, 422, field, "/run_at"),
        row(post, r#"{"run_at": "tomorrow"}"#, 422, field, "/run_at"),
        row(
            post,
            r#"{"delay": "1s", "run_at": "2026-12-01T09:55:00Z"}"#,
            422,
            "conflicting_fields",
            "/run_at",
        ),
        row(post, r#"{"needs": [{"limit": "nope"}]}"#, 422, "unknown_limit", "/needs/0/limit"),
        row(post, r#"{"needs": [{"pool": "nope"}]}"#, 422, "unknown_pool", "/needs/0/pool"),
        row(
            post,
            r#"{"needs": [{"pool": "accounts", "id": "nope"}]}"#,
            422,
            "unknown_resource",
            "/needs/0/id",
        ),
        row(
            post,
            r#"[{}, {"needs": [{"limit": "scrapy", "weight": 3}]}]"#,
            422,
            "never_fits",
            "/1/needs/0/weight",
        ),
        row(
            post,
            r#"{"needs": [{"limit": "api", "cost": 2}]}"#,
            422,
            "never_fits",
            "/needs/0/cost",
        ),
        row(
            post,
            r#"{"needs": [{"limit": "scrapy"}, {"limit": "scrapy"}]}"#,
            422,
            "duplicate_need",
            "/needs/1",
        ),
        row(
            post,
            r#"{"unique": {"key": "k", "on_conflict": "reject"}}"#,
            409,
            "unique_conflict",
            "/unique/key",
        ),
        row(post, r#"{"queue": "full"}"#, 429, "queue_full", None),
    ]
}

fn calls() -> Vec<Row> {
    let field = "invalid_field";
    let bounds = "out_of_bounds";
    let lease = "POST /v1/leases";
    let settle = "POST /v1/leases/settle";
    vec![
        row(lease, "{}", 422, field, "/queues"),
        row(lease, r#"{"queues": []}"#, 422, bounds, "/queues"),
        row(lease, r#"{"queues": ["q"], "needs": []}"#, 422, "conflicting_fields", "/needs"),
        row(
            lease,
            r#"{"needs": [{"limit": "lock:x"}], "max": 2}"#,
            422,
            "conflicting_fields",
            "/max",
        ),
        row(lease, r#"{"queues": ["q"], "max": 0}"#, 422, bounds, "/max"),
        row(lease, r#"{"queues": ["q"], "max": 1001}"#, 422, bounds, "/max"),
        row(lease, r#"{"queues": ["q"], "wait": "61s"}"#, 422, bounds, "/wait"),
        row(lease, r#"{"queues": ["q"], "ttl": "500ms"}"#, 422, bounds, "/ttl"),
        row(lease, r#"{"queues": ["q"], "ttl": "2h"}"#, 422, bounds, "/ttl"),
        row(lease, r#"{"queues": ["q"], "ttl": "0s"}"#, 422, field, "/ttl"),
        row(lease, r#"{"needs": [{"limit": "lock:x"}], "ttl": "0s"}"#, 422, field, "/ttl"),
        row(lease, r#"{"needs": [{"limit": "nope"}]}"#, 422, "unknown_limit", "/needs/0/limit"),
        row("POST /v1/leases/extend", "{}", 422, field, "/leases"),
        row("POST /v1/leases/extend", r#"{"leases": [7]}"#, 422, field, "/leases/0"),
        row(settle, "{}", 422, field, "/settle"),
        row(settle, r#"{"settle": [{"lease": "x"}]}"#, 422, field, "/settle/0/outcome"),
        row(
            settle,
            r#"{"settle": [{"lease": "x", "outcome": "succeeded"}, {"lease": "x", "outcome": "maybe"}]}"#,
            422,
            field,
            "/settle/1/outcome",
        ),
        row(
            settle,
            r#"{"settle": [{"lease": "x", "outcome": "snoozed", "for": "1s", "until": "2027-01-01T00:00:00Z"}]}"#,
            422,
            "conflicting_fields",
            "/settle/0/until",
        ),
        row(settle, r#"{"settle": [], "lease": []}"#, 422, field, "/lease"),
        row(
            settle,
            r#"{"settle": [], "lease": {"queues": ["q"]}}"#,
            422,
            field,
            "/lease/request_id",
        ),
        row(settle, r#"{"settle": [], "lease": {"request_id": "r"}}"#, 422, field, "/lease/queues"),
        row(
            settle,
            r#"{"settle": [], "lease": {"queues": ["q"], "request_id": "r", "wait": "61s"}}"#,
            422,
            bounds,
            "/lease/wait",
        ),
        row("PUT /v1/limits/empty", "{}", 422, field, ""),
        row("PUT /v1/limits/gap", r#"{"gap": "1s"}"#, 422, field, "/concurrency"),
        row("PUT /v1/limits/gap", r#"{"quarantine": "1s"}"#, 422, field, "/concurrency"),
        row(
            "PUT /v1/limits/gauge",
            r#"{"concurrency": 1, "gauge": {"url": "http://h", "count": ["n"]}}"#,
            422,
            field,
            "/gauge/count/0",
        ),
        row(
            "PUT /v1/limits/site:*",
            r#"{"concurrency":1,"gauge":{"scrapyd":"http://h"}}"#,
            422,
            field,
            "/gauge",
        ),
        row("PUT /v1/limits/Bad", r#"{"concurrency": 1}"#, 422, field, "/path/name"),
        row("PUT /v1/limits/a%2Fb", r#"{"concurrency": 1}"#, 422, field, "/path/name"),
        row("PUT /v1/limits/x", r#"{"concurrency": -1}"#, 422, bounds, "/concurrency"),
        row("DELETE /v1/limits/lock:*", "", 409, "in_use", None),
        row("DELETE /v1/limits/nope", "", 404, "limit_not_found", None),
        row("GET /v1/limits/nope", "", 404, "limit_not_found", None),
        row("GET /v1/queues/nope", "", 404, "queue_not_found", None),
        row("PUT /v1/queues/a%FF", "{}", 422, field, "/path/name"),
        row("PUT /v1/queues/a%zz", "{}", 422, field, "/path/name"),
        row("DELETE /v1/queues/q", "", 409, "not_empty", None),
        row("POST /v1/queues/q/pause", r#"{"for": 5}"#, 422, field, "/for"),
        row("POST /v1/queues/q/resume", r#"{"for": "5s"}"#, 422, "unknown_field", "/for"),
        row("GET /v1/pools/nope", "", 404, "pool_not_found", None),
        row("DELETE /v1/pools/accounts", "", 409, "in_use", None),
        row("PUT /v1/pools/accounts/resources", "[]", 422, "empty_set", ""),
        row("PUT /v1/pools/accounts/resources", r#"[{"id": "a"}]"#, 422, "retires_most", ""),
        row("PUT /v1/pools/accounts/resources", "{}", 422, field, ""),
        row("PUT /v1/pools/accounts/resources?force=1", "[]", 422, field, "/query/force"),
        row("POST /v1/pools/accounts/resources", r#"{"data": 1}"#, 422, field, "/id"),
        row("GET /v1/pools/accounts/resources/nope", "", 404, "resource_not_found", None),
        row("POST /v1/pools/accounts/resources/a/cool", "{}", 422, field, "/for"),
        row("GET /v1/jobs/nope", "", 404, "job_not_found", None),
        row("GET /v1/jobs/key:nope", "", 404, "job_not_found", None),
        row("DELETE /v1/jobs/nope", "", 404, "job_not_found", None),
        row("DELETE /v1/jobs/runs", "", 409, "wrong_state", None),
        row("PATCH /v1/jobs/runs", r#"{"priority": 1}"#, 409, "wrong_state", None),
        row("POST /v1/jobs/waits/retry", "", 409, "wrong_state", None),
        row("POST /v1/jobs/cancel", r#"{"state": "nope"}"#, 422, field, "/state"),
        row("GET /v1/jobs/nope/result?wait=5s", "", 404, "job_not_found", None),
        row("GET /v1/jobs/waits/result?wait=61s", "", 422, bounds, "/query/wait"),
        row("GET /v1/jobs/waits/result?wait=5", "", 422, field, "/query/wait"),
        row("GET /v1/jobs/waits/result?full=true", "", 422, "unknown_field", "/query/full"),
        row("POST /v1/jobs/cancel", "{}", 422, field, ""),
        row("POST /v1/jobs/retry", r#"{"max": 5}"#, 422, field, ""),
        row("POST /v1/jobs/delete", r#"{"max": 5, "cursor": "7"}"#, 422, field, ""),
        row("POST /v1/jobs/delete", r#"{"queue": "q", "cursor": "x"}"#, 422, field, "/cursor"),
        row("POST /v1/jobs/delete", r#"{"finished_before": 7}"#, 422, field, "/finished_before"),
        row("GET /v1/jobs?finished_after=now", "", 422, field, "/query/finished_after"),
        row("GET /v1/failures?finished_after=now", "", 422, field, "/query/finished_after"),
        row("GET /v1/failures?cursor=7", "", 422, "unknown_field", "/query/cursor"),
        row("GET /v1/events?since=7", "", 422, field, "/query/since"),
        row("GET /v1/events?type=job.exploded", "", 422, field, "/query/type"),
        row("GET /v1/events?cursor=7", "", 422, "unknown_field", "/query/cursor"),
        row("GET /v1/jobs?max=0", "", 422, bounds, "/query/max"),
        row("GET /v1/jobs?max=1001", "", 422, bounds, "/query/max"),
        row("GET /v1/jobs?max=x", "", 422, field, "/query/max"),
        row("GET /v1/jobs?state=ready,nope", "", 422, field, "/query/state"),
        row("GET /v1/jobs?cursor=nonsense", "", 422, field, "/query/cursor"),
        row("GET /v1/jobs?nope=1", "", 422, "unknown_field", "/query/nope"),
        row("GET /v1/jobs?max=1&max=2", "", 422, field, "/query/max"),
        row("GET /v1/jobs/waits?full=true", "", 422, "unknown_field", "/query/full"),
        row("POST /v1/jobs?queue=q", "{}", 422, "unknown_field", "/query/queue"),
        row("GET /version?x=1", "", 422, "unknown_field", "/query/x"),
        row("DELETE /v1/leases/nope", "", 404, "lease_not_found", None),
    ]
}

fn schedules() -> Vec<Row> {
    let field = "invalid_field";
    let job = r#"{"every": "1h", "job": {"queue": "q", "unique": {"key": "k"}}}"#;
    let theirs = r#"[{"id": "news", "every": "1h", "job": {"queue": "q"}}]"#;
    vec![
        row("GET /v1/schedules/nope", "", 404, "schedule_not_found", None),
        row("PATCH /v1/schedules/nope", "{}", 404, "schedule_not_found", None),
        row("POST /v1/schedules/nope/run-now", "", 404, "schedule_not_found", None),
        row("PUT /v1/schedules/a", r#"{"every": "1h"}"#, 422, field, "/job"),
        row("PUT /v1/schedules/a", job, 422, "unknown_field", "/job/unique"),
        row("PUT /v1/schedules?owner=other", theirs, 409, "other_owner", "/0/id"),
        row("PUT /v1/schedules?owner=cms", "[]", 422, "empty_set", ""),
    ]
}

/// Timings, which no engine sees.
fn timings() -> Vec<Row> {
    let field = "invalid_field";
    let preview = |body: &'static str, code, pointer: &'static str| {
        row("POST /v1/schedules/preview", body, 422, code, pointer)
    };
    vec![
        preview("", field, ""),
        preview("{}", field, "/cron"),
        preview(r#"{"cron": "* * * *"}"#, field, "/cron"),
        preview(r#"{"cron": "0 0 9 * * 1 2027"}"#, field, "/cron"),
        preview(r#"{"cron": "5/15 * * * *"}"#, field, "/cron"),
        preview(r#"{"cron": "0 9 * * mon"}"#, field, "/cron"),
        preview(r#"{"cron": "0 0 30 2 *"}"#, "never_fires", "/cron"),
        preview(
            r#"{"cron": "@daily", "ends_at": "2020-01-01T00:00:00Z"}"#,
            "never_fires",
            "/ends_at",
        ),
        preview(r#"{"cron": "@daily", "zone": ""}"#, "unknown_zone", "/zone"),
        preview(r#"{"cron": "@daily", "zone": "CEST"}"#, "unknown_zone", "/zone"),
        preview(r#"{"cron": "@daily", "zone": "europe/berlin"}"#, "unknown_zone", "/zone"),
        preview(r#"{"cron": "@daily", "every": "1h"}"#, "conflicting_fields", "/every"),
        preview(r#"{"every": "1h", "id": "a", "zone": "UTC"}"#, "conflicting_fields", "/zone"),
        preview(r#"{"every": "1h"}"#, field, "/id"),
        preview(r#"{"every": "1500ms", "id": "a"}"#, field, "/every"),
        preview(r#"{"every": "500ms", "id": "a"}"#, "out_of_bounds", "/every"),
        preview(r#"{"cron": "@daily", "count": 101}"#, "out_of_bounds", "/count"),
        preview(r#"{"cron": "@daily", "jitter": "1m"}"#, "unknown_field", "/jitter"),
        row(
            "POST /v1/schedules/preview?max=5",
            r#"{"cron": "@daily"}"#,
            422,
            "unknown_field",
            "/query/max",
        ),
    ]
}

fn routes() -> Vec<Row> {
    let none = |line| row(line, "", 404, "route_not_found", None);
    let method = |line| row(line, "", 405, "method_not_allowed", None);
    vec![
        none("GET /"),
        none("GET /v1"),
        none("GET /v1/jobs/"),
        none("GET /v2/jobs"),
        none("GET /v1/schedules/news/moments"),
        none("GET /v1/jobs/x/results"),
        none("GET /v1/jobs/waits/explain/more"),
        none("GET /metrics"),
        none("GET /V1/jobs"),
        none("GET //v1/jobs"),
        method("PUT /v1/jobs"),
        method("POST /v1/jobs/waits"),
        method("GET /v1/jobs/waits/cancel"),
        method("POST /healthz"),
        method("OPTIONS /v1/jobs"),
        method("TRACE /v1/jobs"),
        method("FROB /v1/jobs"),
    ]
}

#[test]
fn what_is_refused_says_why_and_changes_nothing() {
    all_refused(&furnished(Server::start()));
}

#[test]
fn a_server_that_passes_calls_on_refuses_the_same() {
    all_refused(&furnished(Server::forwarding_server(None, Config::default())));
}

fn all_refused(server: &Server) {
    let before = server.state();
    let mut seen = std::collections::BTreeSet::new();
    let mut wrong = Vec::new();
    for (line, body, status, code, pointer) in
        [not_json(), bodies(), calls(), schedules(), timings(), routes()].into_iter().flatten()
    {
        let (method, path) = line.split_once(' ').unwrap();
        let answer = server.call(method, path, &body);
        let shown: String = body.chars().take(80).collect();
        // All faults of a row are reported at once.
        let got = answer.json();
        let is = (answer.status, got["code"].as_str(), got["pointer"].as_str());
        if is != (status, Some(code), pointer) {
            wrong.push(format!("{line} {shown}: {is:?}, due is {status} {code} {pointer:?}"));
            continue;
        }
        let problem = answer.refused(status, code, pointer);
        assert!(!answer.text().contains("s3cret"), "{line}");
        if status == 405 {
            assert!(answer.header("allow").is_some_and(|allow| !allow.is_empty()), "{line}");
        }
        if let Some(index) = problem["index"].as_u64() {
            assert!(pointer.is_some_and(|p| p.contains(&format!("/{index}"))), "{line} {problem}");
        }
        assert_eq!(server.state(), before, "{line} {shown}");
        seen.insert(code);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let answer = server.post("/v1/jobs", r#"{"unique": {"key": "k", "on_conflict": "reject"}}"#);
    assert_eq!(answer.json()["job"], "waits");
    let elsewhere = [
        // In `gate.rs`.
        "unauthorized",
        "forbidden_origin",
        "request_timeout",
        "too_large",
        "unsupported_media_type",
        // In `scopes.rs`.
        "forbidden",
        // In `trail.rs`.
        "trail_unwritable",
        // In `budget.rs`.
        "bad_request",
        "head_too_large",
        "overloaded",
        // In the other tests of this crate.
        "draining",
        "stale_sync",
        "lease_lost",
        "already_settled",
        "line_full",
        // In the histories of the machine, and in `cli/tests/serve`.
        "namespaces_full",
        // For a store or an engine that fails.
        "store_full",
        "store_unavailable",
        "outcome_unknown",
        "internal",
        // In `forward.rs`.
        "not_owner",
        // In `flows.rs`.
        "cycle",
        "unknown_parent",
        "flow_not_found",
    ];
    for code in Code::ALL.iter().map(|code| code.as_str()) {
        assert!(seen.contains(code) != elsewhere.contains(&code), "{code} has no row");
    }
}

#[test]
fn allow_names_the_methods_that_are_there() {
    let server = Server::start();
    for (path, allow) in [
        ("/v1/jobs", "POST, GET, HEAD"),
        ("/v1/jobs/x", "GET, HEAD, PATCH, DELETE"),
        ("/v1/jobs/cancel", "POST, GET, HEAD, PATCH, DELETE"),
        ("/healthz", "GET, HEAD"),
    ] {
        assert_eq!(server.call("PUT", path, "").header("allow"), Some(allow), "{path}");
    }
}
