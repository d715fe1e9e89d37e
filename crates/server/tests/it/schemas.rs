//! Answers agree with `/openapi.json`: every field that it requires is there, and no field is there that it does not
//! name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::description::Description;
use crate::wire::{Answer, Server};
use serde_json::{Value, json};
use tenure_server::{Tokens, Trail, TrailOptions, TrailPlace};
use tenure_testkit::TempDir;

/// The examples of the description.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/examples.json");

/// Calls a server. Each accepted body and each answer is checked against the document.
struct Checked {
    server: Server,
    /// Method and path, as the document has them, of each call whose answer was checked.
    seen: BTreeSet<String>,
    faults: Vec<String>,
    /// By the name of an operation: the first body that was accepted, and the first answer of each status.
    examples: BTreeMap<String, BTreeMap<String, Value>>,
    /// Has the trail.
    _folder: TempDir,
}

impl Checked {
    fn start() -> Self {
        let (seen, faults, examples) = <_>::default();
        let folder = TempDir::new();
        let trail = Trail::open(TrailOptions {
            place: TrailPlace::Folder(folder.path().to_owned()),
            is_required: false,
            most_bytes: 1 << 30,
            server: "127.0.0.1:7171".to_owned(),
        });
        let server = Server::with_trail(Tokens::default(), trail);
        Self { server, seen, faults, examples, _folder: folder }
    }

    fn call(&mut self, method: &str, path: &str, body: Value) -> Value {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        // It checks the answer, as all calls of these tests do.
        let answer: Answer = self.server.call(method, path, &text);
        let description = Description::of_this_build();
        let route = description.route(method, path).unwrap();
        assert!(answer.status < 300, "{method} {path} {}: {}", answer.status, answer.text());
        let told = if answer.body.is_empty() { Value::Null } else { answer.json() };
        let operation = &description.document()["paths"][route][method.to_lowercase()];
        let name = operation["operationId"].as_str().unwrap();
        let mut example = |part: &str, value: &Value| {
            // The description is no example of itself.
            if !value.is_null() && route != "/openapi.json" {
                let parts = self.examples.entry(name.to_owned()).or_default();
                parts.entry(part.to_owned()).or_insert_with(|| value.clone());
            }
        };
        example(&answer.status.to_string(), &told);
        if operation["requestBody"].is_object() {
            example("body", &body);
        }
        if !body.is_null() {
            self.faults.extend(description.faults_of_body(method, path, &body));
        }
        self.seen.insert(format!("{} {route}", method.to_lowercase()));
        told
    }

    fn get(&mut self, path: &str) -> Value {
        self.call("GET", path, Value::Null)
    }

    fn post(&mut self, path: &str, body: Value) -> Value {
        self.call("POST", path, body)
    }

    fn lease(&mut self, body: Value) -> String {
        let leased = self.post("/v1/leases", body);
        leased["leases"][0]["lease"].as_str().unwrap_or_else(|| panic!("{leased}")).to_owned()
    }
}

#[test]
fn answers_have_what_the_document_requires_and_nothing_else() {
    let mut on = Checked::start();
    settings(&mut on);
    jobs(&mut on);
    leases(&mut on);
    flows(&mut on);
    schedules(&mut on);
    the_rest(&mut on);
    removals(&mut on);
    assert!(on.faults.is_empty(), "{}", on.faults.join("\n"));
    let routes = Description::of_this_build().routes();
    let unseen: Vec<&String> = routes.iter().filter(|one| !on.seen.contains(*one)).collect();
    // Only a server that counts, and one whose store makes backups, have these.
    assert_eq!(unseen, ["get /metrics", "get /v1/backup"], "each operation is called here");
    if std::env::var("TENURE_WRITE_DOCS").is_ok_and(|value| value == "1") {
        let lines = on.examples.iter().map(|(name, of)| format!("{name:?}: {}", json!(of)));
        fs::write(EXAMPLES, format!("{{\n{}\n}}\n", lines.collect::<Vec<_>>().join(",\n")))
            .unwrap();
    }
}

#[test]
fn each_operation_has_an_example_that_fits() {
    let description = Description::of_this_build();
    let kept: Value = serde_json::from_slice(&fs::read(EXAMPLES).unwrap()).unwrap();
    let mut found = 0;
    for (path, methods) in description.document()["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let of_operation = &kept[operation["operationId"].as_str().unwrap()];
            let answers = operation["responses"].as_object().unwrap().iter();
            let parts = answers.map(|(status, answer)| (status.as_str(), answer));
            let (mut answered, at) = (0, format!("{method} {path}"));
            for (part, of) in parts.chain([("body", &operation["requestBody"])]) {
                let content = &of["content"]["application/json"];
                answered += usize::from(part != "body" && content.get("example").is_some());
                assert_eq!(content["example"], of_operation[part], "{at} {part}");
                if let Some(example) = content.get("example") {
                    let faults = description.faults(&content["schema"], example, &at);
                    assert_eq!(faults, Vec::<String>::new());
                    found += 1;
                } else {
                    assert!(part != "body" || content.is_null(), "{at} has no example of its body");
                }
            }
            let is_json = operation["responses"].to_string().contains("application/json");
            assert!(
                !is_json || answered > 0 || path == "/openapi.json",
                "{at} has no example of an answer"
            );
        }
    }
    assert!(found > 90, "only {found} examples");
}

/// A setting that a patch does not name keeps its value, so null is the only word for its default.
#[test]
fn a_patch_resets_each_field_by_null() {
    let (server, description) = (Server::start(), Description::of_this_build());
    let limit = r#"{"concurrency": 1, "rate": {"count": 5, "per": "1s"}}"#;
    let job = r#"{"queue": "q", "id": "j", "delay": "1h"}"#;
    let schedule = r#"{"every": "1h", "job": {"queue": "q"}}"#;
    for (path, schema, (method, made, body)) in [
        ("/v1/queues/q", "QueuePatch", ("PUT", "/v1/queues/q", "{}")),
        ("/v1/limits/l", "LimitPatch", ("PUT", "/v1/limits/l", limit)),
        ("/v1/pools/p", "PoolPatch", ("PUT", "/v1/pools/p", "{}")),
        (
            "/v1/pools/p/resources/r",
            "ResourcePatch",
            ("POST", "/v1/pools/p/resources", r#"{"id": "r"}"#),
        ),
        ("/v1/jobs/j", "JobPatch", ("POST", "/v1/jobs", job)),
        ("/v1/schedules/s", "SchedulePatch", ("PUT", "/v1/schedules/s", schedule)),
    ] {
        let pointer = format!("/components/schemas/{schema}/properties");
        for name in description.document().pointer(&pointer).unwrap().as_object().unwrap().keys() {
            server.call(method, made, body).good();
            let patch = json!({name: null});
            let fits = description.faults_of_body("PATCH", path, &patch).is_empty();
            let answer = server.call("PATCH", path, &patch.to_string());
            // A timing needs one of these two, so that neither can be reset alone.
            let is_needed = ["cron", "every"].contains(&name.as_str());
            assert!(
                is_needed || fits == (answer.status == 200),
                "{path} {patch}: {}",
                answer.text()
            );
            assert!(fits || (schema, name.as_str()) == ("SchedulePatch", "job"), "{path} {patch}");
        }
    }
}

fn settings(on: &mut Checked) {
    on.call("PUT", "/v1/limits/api", json!({"rate": {"count": 5, "per": "1s"}}));
    on.call(
        "PUT",
        "/v1/limits/site:*",
        json!({"concurrency": 2, "rate": {"count": 5, "per": "1s"}, "gap": "1ms"}),
    );
    let retry = json!({"max_attempts": 3, "backoff": {"kind": "fixed", "base": "1s"}});
    let queue = json!({"needs": [{"limit": "site:a"}], "retry": retry, "timeout": "1m", "retain": "1h", "shares": {"g": 2}});
    on.call("PUT", "/v1/queues/q", queue);
    on.call("PATCH", "/v1/queues/q", json!({"max_waiting": 100, "needs": []}));
    on.post("/v1/queues/q/pause", json!({"for": "1m"}));
    on.post("/v1/queues/q/resume", json!({}));
    on.call("PUT", "/v1/limits/cap", json!({"concurrency": 1}));
    on.call("PATCH", "/v1/limits/cap", json!({"quarantine": "1s"}));
    on.call(
        "PUT",
        "/v1/limits/read",
        json!({"concurrency": 1, "gauge": {"url": "http://127.0.0.1:1/n", "count": ["/n"]}}),
    );
    on.call(
        "PUT",
        "/v1/limits/spiders",
        json!({"concurrency": 1, "gauge": {"scrapyd": "http://127.0.0.1:1"}}),
    );
    on.post("/v1/limits/cap/observe", json!({"external": 1, "for": "1m"}));
    on.get("/v1/limits/cap");
    on.post("/v1/limits/cap/observe", json!({"external": 0}));
    on.post("/v1/limits/cap/pause", json!({"for": "1s"}));
    on.post("/v1/limits/cap/resume", json!({}));
    on.call(
        "PUT",
        "/v1/pools/accounts",
        json!({"quarantine": "1s", "rate": {"count": 9, "per": "1s", "burst": 9}}),
    );
    on.call("PATCH", "/v1/pools/accounts", json!({"max_uses": 50}));
    on.call(
        "PUT",
        "/v1/pools/accounts/resources",
        json!([{"id": "a", "data": {"pw": "x"}, "tags": ["cn"]}, {"id": "b"}]),
    );
    on.post("/v1/pools/accounts/resources", json!({"id": "c", "slots": 2}));
    on.post("/v1/pools/accounts/resources", json!([{"id": "d"}, {"id": "e"}]));
    on.call("PATCH", "/v1/pools/accounts/resources/b", json!({"tags": ["de"]}));
    on.post("/v1/pools/accounts/resources/b/cool", json!({"for": "1m"}));
    on.post("/v1/pools/accounts/resources/c/ban", json!({"reason": "captcha"}));
    on.get("/v1/pools/accounts/resources/c");
    on.post("/v1/pools/accounts/resources/c/restore", json!({}));
    on.get("/v1/pools/accounts/resources");
    on.get("/v1/pools/accounts");
    on.get("/v1/pools");
}

fn jobs(on: &mut Checked) {
    let whole = json!({
        "id": "whole", "queue": "q", "kind": "k", "payload": {"n": 1}, "delay": "1h", "priority": 3, "group": "g",
        "needs": [{"limit": "cap", "weight": 1}, {"pool": "accounts", "tag": "cn", "count": 1}],
        "unique": {"key": "u", "until": "start", "for": "1m", "on_conflict": "replace", "within": "2h"},
        "retry": {"max_attempts": 5, "backoff": {"kind": "list", "delays": ["1s", "2s"]}}, "timeout": "5m", "retain": "24h",
        "labels": {"a": "b"}, "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    on.post("/v1/jobs", whole.clone());
    on.post("/v1/jobs", whole);
    on.post("/v1/jobs", json!([{"queue": "q", "id": "one"}, {"queue": "q", "id": "two", "after": ["one"], "ref": "r"}]));
    on.get("/v1/jobs/whole");
    // With as few fields as possible: a field that the answer then leaves out is not required.
    on.post("/v1/jobs", json!({"queue": "q", "id": "least", "unique": {"key": "least"}}));
    on.get("/v1/jobs/least");
    on.get("/v1/jobs?full=true");
    on.get("/v1/jobs");
    on.call("PATCH", "/v1/jobs/whole", json!({"priority": 5, "labels": null}));
    for id in ["whole", "one", "two"] {
        on.get(&format!("/v1/jobs/{id}/explain"));
    }
    on.get("/v1/jobs/two/parents?full=true");
    on.get("/v1/jobs/one/children");
    on.post("/v1/jobs/whole/run-now", json!({}));
    on.post("/v1/jobs/whole/cancel", json!({}));
    on.post("/v1/jobs/whole/retry", json!({}));
    on.post("/v1/jobs/cancel", json!({"queue": "q", "state": "ready,dependent,blocked"}));
    on.post("/v1/jobs/retry", json!({"queue": "q", "state": "cancelled", "max": 1}));
    on.post("/v1/jobs/delete", json!({"queue": "q", "state": "cancelled"}));
    on.post("/v1/jobs/cancel", json!({"queue": "q"}));
}

fn leases(on: &mut Checked) {
    let jobs: Vec<Value> = (0..6).map(|n| json!({"id": format!("w{n}"), "queue": "w", "needs": [{"limit": "site:a"}, {"pool": "accounts"}]})).collect();
    let free: Vec<Value> =
        (6..9).map(|n| json!({"id": format!("w{n}"), "queue": "v", "needs": []})).collect();
    on.post("/v1/jobs", json!(jobs));
    on.post("/v1/jobs", json!(free));
    let worker = json!({"id": "ann", "host": "h", "pid": 1, "version": "1"});
    let first =
        on.lease(json!({"queues": ["w"], "worker": worker, "request_id": "r1", "ttl": "1m"}));
    on.get("/v1/jobs/w0");
    on.get("/v1/jobs/w0/explain");
    on.get("/v1/leases");
    on.get("/v1/limits/site:a");
    on.get("/v1/pools/accounts/resources");
    on.get("/v1/workers");
    on.post(
        "/v1/leases/extend",
        json!({"leases": [{"lease": first, "progress": {"done": 1}}, "no-such"]}),
    );
    let settle = json!({"settle": [
        {"lease": first, "outcome": "succeeded", "result": 1, "push": [{"queue": "w2", "needs": []}],
         "resources": [{"pool": "accounts", "id": "a", "verdict": "cool", "for": "1s"}], "limits": [{"limit": "site:a", "pause": "1ms", "spent": 1}]},
        {"lease": "no-such", "outcome": "released"},
    ]});
    on.post("/v1/leases/settle", settle);
    on.get("/v1/jobs/w0/result");
    let failed = on.lease(json!({"queues": ["v"], "worker": "bob", "request_id": "r2"}));
    on.post(
        "/v1/leases/settle",
        json!({"settle": [{"lease": failed, "outcome": "failed", "error": "no 7", "final": true}]}),
    );
    on.get("/v1/jobs/w6/result");
    on.get("/v1/failures");
    let snoozed = on.lease(json!({"queues": ["v"]}));
    let both = json!({"settle": [{"lease": snoozed, "outcome": "snoozed", "for": "1h"}], "lease": {"queues": ["v"], "request_id": "r3"}});
    let again = on.post("/v1/leases/settle", both);
    let released = again["leases"][0]["lease"].clone();
    on.post("/v1/leases/settle", json!({"settle": [{"lease": released, "outcome": "released"}]}));
    let lock = on.lease(json!({"needs": [{"limit": "lock:x"}]}));
    on.post("/v1/leases", json!({"needs": [{"limit": "lock:x"}]}));
    on.post("/v1/leases", json!({"needs": [{"limit": "api", "cost": 1}], "ttl": "0s"}));
    on.get("/v1/limits");
    // An event tells which need a blocked job lacks.
    on.call("PUT", "/v1/limits/closed", json!({"concurrency": 0}));
    on.post("/v1/jobs", json!({"queue": "shut", "needs": [{"limit": "closed"}]}));
    on.post("/v1/leases", json!({"queues": ["shut"]}));
    on.call("DELETE", &format!("/v1/leases/{lock}"), Value::Null);
}

fn flows(on: &mut Checked) {
    on.post("/v1/jobs", json!([
        {"id": "fa", "queue": "f", "flow": "night", "ref": "a"},
        {"id": "fb", "queue": "f", "flow": "night", "after": [{"ref": "a"}], "on_parent_failure": "run"},
        {"id": "fc", "queue": "f", "after": [{"flow": "night"}, {"job": "gone", "gone": "done"}]},
    ]));
    on.get("/v1/jobs/fc/parents");
    on.get("/v1/jobs/fb/parents");
    on.get("/v1/jobs/fa/children");
    on.get("/v1/jobs/fc");
    on.get("/v1/flows");
    on.get("/v1/flows/night");
    on.post("/v1/flows/night/cancel", json!({}));
}

fn schedules(on: &mut Checked) {
    let job = json!({"queue": "s", "payload": 1, "needs": [{"limit": "cap"}], "retry": {"max_attempts": 2}, "labels": {"a": "b"}});
    on.call(
        "PUT",
        "/v1/schedules/hourly",
        json!({"every": "1h", "job": job, "overlap": "queue", "catch_up": "all"}),
    );
    on.call("PATCH", "/v1/schedules/hourly", json!({"jitter": "1s"}));
    on.call("PUT", "/v1/schedules?owner=app", json!([{"id": "mine", "cron": "0 3 * * *", "zone": "Europe/Berlin", "job": {"queue": "s"}}]));
    on.post("/v1/schedules/hourly/run-now", json!({}));
    on.get("/v1/schedules/hourly");
    on.get("/v1/schedules");
    on.post("/v1/schedules/hourly/pause", json!({"for": "1m"}));
    on.post("/v1/schedules/hourly/resume", json!({}));
    on.post("/v1/schedules/preview", json!({"cron": "0 3 * * *", "count": 2}));
}

fn the_rest(on: &mut Checked) {
    on.get("/v1/events?since=first&max=2");
    on.get("/v1/events?since=first&max=1000");
    on.get("/v1/stats");
    on.get("/v1/audit");
    on.get("/v1/queues");
    on.get("/v1/queues/q");
    on.get("/healthz");
    on.get("/readyz");
    on.get("/version");
    on.get("/v1/me");
    on.get("/v1/trail?max=3&op=patch_*");
    on.get("/v1/trail?max=1000");
    on.get("/openapi.json");
}

fn removals(on: &mut Checked) {
    for path in [
        "schedules/hourly",
        "pools/accounts/resources/e",
        "limits/read",
        "limits/spiders",
        "jobs/w6",
    ] {
        on.call("DELETE", &format!("/v1/{path}"), Value::Null);
    }
    on.call("PUT", "/v1/pools/gone", json!({}));
    on.call("DELETE", "/v1/pools/gone", Value::Null);
    on.call("PUT", "/v1/queues/gone", json!({}));
    on.call("DELETE", "/v1/queues/gone", Value::Null);
}
