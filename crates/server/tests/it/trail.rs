//! The trail over HTTP: which calls leave lines, what stands in them and what never does, and who may read them.

use std::fs;

use std::sync::Arc;

use serde_json::{Value, json};
use tenure::StoreUrl;
use tenure_core::access::{Grants, Scope};
use tenure_core::requests::OPERATIONS;
use tenure_core::secret::Secret;
use tenure_core::trail::ReadTrail;
use tenure_engine::{Embedded, Location, Options};
use tenure_engine_api::LeaderAddress;
use tenure_server::{
    Config, LeaderReport, Leadership, ListedToken, PeerGroup, ServingLeader, Trail, TrailOptions,
    TrailPlace, follow_leadership, verify_trail,
};
use tenure_testkit::TempDir;
use tokio::sync::watch;

use crate::scopes::{ROOT, call, listed, token, tokens};
use crate::wire::{Answer, Server, until};

/// Stands in everything that no line may contain.
const SECRET: &str = "geheim";

pub fn options(folder: &TempDir, is_required: bool) -> TrailOptions {
    TrailOptions {
        place: TrailPlace::Folder(folder.join("trail")),
        is_required,
        most_bytes: 1 << 30,
        server: "127.0.0.1:7171".to_owned(),
    }
}

pub fn trail(folder: &TempDir) -> Trail {
    Trail::open(options(folder, false))
}

pub fn server(folder: &TempDir, listed: Vec<ListedToken>) -> Server {
    Server::with_trail(tokens(listed), trail(folder))
}

pub fn as_root(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    call(server, ROOT, method, path, &body)
}

/// Lines that the API lists for this query.
pub fn lines(server: &Server, query: &str) -> Vec<Value> {
    let read = call(server, ROOT, "GET", &format!("/v1/trail?max=1000{query}"), "").good();
    read["items"].as_array().unwrap().clone()
}

/// All that the files contain. They are verified, too.
pub fn text(folder: &TempDir) -> String {
    let folder = folder.join("trail");
    verify_trail(&folder, None).unwrap().unwrap();
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// A body that the reader of the operation accepts.
fn body(operation: &str) -> Value {
    match operation {
        "cancel_jobs" | "retry_jobs" | "delete_jobs" => json!({"queue": "q"}),
        "put_limit" | "patch_limit" => json!({"concurrency": 1}),
        "pause_limit" | "cool_resource" => json!({"for": "1s"}),
        "observe_limit" => json!({"external": 1}),
        "sync_resources" | "sync_schedules" => json!([]),
        "add_resources" => json!({"id": "r"}),
        "put_schedule" => json!({"every": "1h", "job": {"queue": "q"}}),
        "patch_queue" => json!({"max_waiting": 1}),
        "patch_job" => json!({"priority": 1}),
        "patch_pool" => json!({"max_uses": 1}),
        "patch_resource" => json!({"slots": 1}),
        "patch_schedule" => json!({"every": "1h"}),
        "put_queue" | "put_pool" => json!({}),
        _ => Value::Null,
    }
}

#[test]
fn every_change_leaves_a_line_whatever_its_answer() {
    let folder = TempDir::new();
    let server = server(&folder, Vec::new());
    let mut changes = 0;
    for spec in OPERATIONS {
        let path = spec.path.replace("{id}", "n").replace("{name}", "n").replace("{flow}", "n");
        let query = if spec.name == "sync_schedules" { "?owner=o" } else { "" };
        let (method, path) = (spec.method.as_str(), format!("{path}{query}"));
        let answer = as_root(&server, method, &path, &body(spec.name));
        let found = lines(&server, &format!("&op={}", spec.name));
        if !matches!(spec.scope, Scope::Operate | Scope::Admin) {
            assert!(found.is_empty(), "{} is counted: {found:?}", spec.name);
            continue;
        }
        changes += 1;
        let [line] = &found[..] else { panic!("{}: {found:?}", spec.name) };
        let done = answer.status < 300;
        assert_eq!(line["status"], if done { 200 } else { answer.status }, "{line}");
        assert_eq!(line["code"].is_null(), done, "{line}");
        let at = (&line["caller"], &line["namespace"], &line["via"]);
        assert_eq!(at, (&json!("token-1"), &json!("default"), &json!("api")), "{line}");
        assert_eq!(line["peer"], "127.0.0.1");
        let targets = line["targets"].as_array().map_or(0, Vec::len);
        assert!(targets > 0, "it names nothing: {line}");
    }
    assert!(changes > 30, "only {changes}");
    text(&folder);
}

#[test]
fn a_change_of_settings_has_the_old_and_the_new_value() {
    let folder = TempDir::new();
    let server = server(&folder, Vec::new());
    let limit = "/v1/limits/site";
    as_root(&server, "PUT", limit, &json!({"concurrency": 5, "gap": "1s"})).good();
    as_root(&server, "PATCH", limit, &json!({"concurrency": 8})).good();
    as_root(&server, "PUT", limit, &json!({"concurrency": 8})).good();
    assert_eq!(as_root(&server, "DELETE", limit, &Value::Null).status, 204);
    let changed = |op: &str, at: usize| lines(&server, &format!("&op={op}"))[at]["changed"].clone();
    assert_eq!(changed("put_limit", 1)["concurrency"], json!({"new": 5}));
    assert_eq!(changed("patch_limit", 0), json!({"concurrency": {"old": 5, "new": 8}}));
    assert_eq!(changed("put_limit", 0), json!({"gap": {"old": "1s", "new": null}}));
    assert_eq!(changed("delete_limit", 0)["concurrency"], json!({"old": 8}));
    // A request is found by the id that its caller knows.
    let headers = format!(
        "Host: {}\r\nAuthorization: Bearer {ROOT}\r\nX-Request-Id: deploy-17\r\n",
        server.at
    );
    server.connect().ask_with("POST", "/v1/queues/mail/pause", &headers, b"").good();
    assert_eq!(lines(&server, "&op=pause_queue")[0]["request_id"], "deploy-17");
}

#[test]
fn the_first_settings_of_a_limit_are_shown_as_what_was_set() {
    let folder = TempDir::new();
    let server = server(&folder, Vec::new());
    as_root(&server, "PUT", "/v1/limits/site:*", &json!({"concurrency": 2})).good();
    for (name, concurrency) in [("site:equal", 2), ("site:other", 3)] {
        let body = json!({"concurrency": concurrency});
        as_root(&server, "PUT", &format!("/v1/limits/{name}"), &body).good();
        let line = &lines(&server, &format!("&target=limit:{name}"))[0];
        let new = json!({"concurrency": {"new": concurrency}, "quarantine": {"new": "0s"}});
        assert_eq!(line["changed"], new, "{line}");
    }
    // From then on there are old ones.
    as_root(&server, "PUT", "/v1/limits/site:equal", &json!({"concurrency": 5})).good();
    let line = &lines(&server, "&target=limit:site:equal")[0];
    assert_eq!(line["changed"], json!({"concurrency": {"old": 2, "new": 5}}), "{line}");
}

#[test]
fn no_line_has_a_payload_a_result_an_error_data_or_a_token() {
    let folder = TempDir::new();
    let server = server(&folder, vec![listed("work", |_| {})]);
    let secret = || json!({"password": SECRET});
    let calls = [
        ("POST", "/v1/jobs", json!({"id": "j", "queue": "q", "payload": secret()})),
        ("PATCH", "/v1/jobs/j", json!({"payload": secret(), "priority": 2})),
        ("POST", "/v1/pools/p/resources", json!({"id": "r", "data": secret()})),
        ("PATCH", "/v1/pools/p/resources/r", json!({"data": secret()})),
        ("POST", "/v1/pools/p/resources/r/ban", json!({"reason": SECRET})),
        ("POST", "/v1/pools/p/resources/r/restore", Value::Null),
        ("PUT", "/v1/pools/p/resources", json!([{"id": "r", "data": secret()}])),
        (
            "PUT",
            "/v1/schedules/s",
            json!({"every": "1h", "job": {"queue": "q", "payload": secret()}}),
        ),
        (
            "PUT",
            "/v1/limits/l",
            json!({"concurrency": 9, "gauge": {"url": format!("http://ann:{SECRET}@127.0.0.1:1/"), "count": ["/n"]}}),
        ),
        ("POST", "/v1/jobs/retry", json!({"queue": "q", "error": SECRET})),
    ];
    for (method, path, body) in calls {
        let answer = as_root(&server, method, path, &body);
        assert!(answer.status < 300, "{method} {path}: {}", answer.text());
    }
    let leased = as_root(&server, "POST", "/v1/leases", &json!({"needs": [{"pool": "p"}]})).good();
    let lease = leased["leases"][0]["lease"].as_str().unwrap();
    assert_eq!(leased["leases"][0]["resources"][0]["data"], secret());
    let run = as_root(&server, "POST", "/v1/leases", &json!({"queues": ["q"]})).good();
    let run = run["leases"][0]["lease"].as_str().unwrap();
    let failed =
        json!({"settle": [{"lease": run, "outcome": "failed", "error": SECRET, "final": true}]});
    as_root(&server, "POST", "/v1/leases/settle", &failed).good();
    let ended = as_root(&server, "DELETE", &format!("/v1/leases/{lease}"), &Value::Null);
    assert_eq!(ended.status, 204);
    let wrong = format!("tnr_{SECRET}_{SECRET}");
    call(&server, &wrong, "GET", "/v1/stats", "").refused(401, "unauthorized", None);
    call(&server, ROOT, "GET", &format!("/{SECRET}"), "");
    server.trail.close();
    let text = text(&folder);
    for secret in [SECRET, ROOT, &token("work")] {
        assert!(!text.contains(secret), "{text}");
    }
    // Who got which resource is told.
    let line =
        text.lines().find(|line| line.contains("\"op\":\"lease\"") && line.contains("pool:p/r"));
    let line: Value = serde_json::from_str(line.unwrap()).unwrap();
    let targets = json!(["pool:p/r", format!("lease:{lease}"), "worker:anonymous"]);
    assert_eq!((&line["targets"], &line["caller"]), (&targets, &json!("token-1")));
}

#[test]
fn other_calls_are_counted_by_token_and_operation() {
    let folder = TempDir::new();
    let server = server(&folder, vec![listed("push", |_| {}), listed("view", |_| {})]);
    for _ in 0..3 {
        call(&server, &token("push"), "POST", "/v1/jobs", r#"{"queue": "q"}"#).good();
        call(&server, &token("view"), "GET", "/v1/stats", "").good();
    }
    call(&server, ROOT, "POST", "/v1/leases", r#"{"queues": ["q"]}"#).good();
    assert!(lines(&server, "&op=push").is_empty(), "a minute is not over");
    server.trail.close();
    let count = |op: &str| {
        let found = lines(&server, &format!("&op={op}"));
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0]["caller"].clone(), found[0]["count"].clone())
    };
    assert_eq!(count("push"), (json!("push"), json!(3)));
    assert_eq!(count("get_stats"), (json!("view"), json!(3)));
    assert_eq!(count("lease"), (json!("token-1"), json!(1)));
}

#[test]
fn refusals_leave_a_line_and_then_a_count() {
    let folder = TempDir::new();
    let pusher = listed("pusher", |of| {
        of.scopes = vec!["push".to_owned()];
        of.namespaces = vec!["default".to_owned()];
        of.queues = Some(vec!["mail".to_owned()]);
    });
    let server = server(&folder, vec![pusher]);
    for _ in 0..3 {
        call(&server, "wrong", "GET", "/v1/stats", "").refused(401, "unauthorized", None);
        // By the route, and by the gate, which reads the queue in the body.
        call(&server, &token("pusher"), "PUT", "/v1/queues/q", "{}").refused(
            403,
            "forbidden",
            None,
        );
        let other = call(&server, &token("pusher"), "POST", "/v1/jobs", r#"{"queue": "q"}"#);
        other.refused(403, "forbidden", Some("/queue"));
    }
    let headers = format!(
        "Host: evil.example\r\nAuthorization: Bearer {ROOT}\r\nOrigin: http://other.example\r\n"
    );
    server.connect().ask_with("GET", "/v1/stats", &headers, b"").refused(
        403,
        "forbidden_origin",
        None,
    );
    let shown = |op: &str| {
        let found = lines(&server, &format!("&op={op}"));
        let one =
            |line: &Value| (line["caller"].clone(), line["status"].clone(), line["count"].clone());
        found.iter().map(one).collect::<Vec<_>>()
    };
    let pusher = || json!("pusher");
    assert_eq!(shown("put_queue"), [(pusher(), json!(403), Value::Null)]);
    assert_eq!(shown("push"), [(pusher(), json!(403), Value::Null)]);
    let stats = shown("get_stats");
    assert!(stats.contains(&(Value::Null, json!(401), Value::Null)), "{stats:?}");
    assert_eq!(stats.len(), 2, "the other origin is the second: {stats:?}");
    server.trail.close();
    assert_eq!(
        shown("push"),
        [(pusher(), json!(403), json!(2)), (pusher(), json!(403), Value::Null)]
    );
    assert!(shown("get_stats").contains(&(Value::Null, json!(401), json!(2))));
    text(&folder);
}

#[test]
fn a_refused_line_names_the_thing_in_the_path() {
    let folder = TempDir::new();
    let worker = listed("worker", |of| {
        of.scopes = vec!["work".to_owned(), "view".to_owned()];
        of.queues = Some(vec!["mail".to_owned()]);
    });
    let server = server(&folder, vec![listed("metrics", |_| {}), worker]);
    let targets = |op: &str| lines(&server, &format!("&op={op}"))[0]["targets"].clone();
    // A trail tells 64 kinds of refusals in a minute apart.
    let named: Vec<_> = OPERATIONS.iter().filter(|spec| spec.path.contains('{')).collect();
    assert!((40..60).contains(&named.len()), "{}", named.len());
    for spec in named {
        let path = spec.path.replace("{name}", "n%3Aa").replace("{id}", "i").replace("{flow}", "f");
        call(&server, &token("metrics"), spec.method.as_str(), &path, "").refused(
            403,
            "forbidden",
            None,
        );
        let kind = spec.path.split('/').nth(2).unwrap().trim_end_matches('s');
        let name = match (spec.path.contains("{name}"), spec.path.contains("{id}")) {
            (true, true) => "n:a/i",
            (true, false) => "n:a",
            (false, true) => "i",
            (false, false) => "f",
        };
        assert_eq!(targets(spec.name), json!([format!("{kind}:{name}")]), "{}", spec.name);
    }
    // By the gate, which reads the query, and behind it, where the queue of the job is known.
    let job = json!({"id": "j", "queue": "other"});
    as_root(&server, "POST", "/v1/jobs", &job).good();
    for (op, path) in [
        ("get_result", "/v1/jobs/j/result?seen=0123456789abcdef"),
        ("list_parents", "/v1/jobs/j/parents"),
    ] {
        assert_eq!(call(&server, &token("worker"), "GET", path, "").status, 403, "{op}");
        assert_eq!(targets(op), json!(["job:j"]), "{op}");
    }
    call(&server, "wrong", "GET", "/v1/limits/l", "").refused(401, "unauthorized", None);
    assert_eq!(targets("get_limit"), json!(["limit:l"]));
    call(&server, "wrong", "GET", "/v1/stats", "").refused(401, "unauthorized", None);
    assert_eq!(targets("get_stats"), Value::Null);
}

#[test]
fn a_trail_is_read_by_administrators_of_its_namespaces() {
    let folder = TempDir::new();
    let of_web = listed("web", |of| {
        of.scopes = vec!["admin".to_owned()];
        of.namespaces = vec!["web".to_owned()];
    });
    let server = server(&folder, vec![of_web, listed("read", |_| {})]);
    let in_namespace = |token: &str, namespace: &str, method: &str, path: &str| {
        let headers = format!(
            "Host: {}\r\nAuthorization: Bearer {token}\r\nTenure-Namespace: {namespace}\r\n",
            server.at
        );
        server.connect().ask_with(method, path, &headers, b"")
    };
    for namespace in ["web", "team"] {
        in_namespace(ROOT, namespace, "POST", "/v1/queues/q/pause").good();
    }
    call(&server, &token("read"), "GET", "/v1/trail", "").refused(403, "forbidden", None);
    let own = in_namespace(&token("web"), "web", "GET", "/v1/trail").good();
    let own = own["items"].as_array().unwrap();
    assert_eq!((own.len(), &own[0]["namespace"]), (1, &json!("web")));
    assert_eq!(lines(&server, "&op=pause_queue").len(), 2);
    assert_eq!(lines(&server, "&op=pause_*&namespace=team").len(), 1);
    assert_eq!(lines(&server, "&caller=nobody").len(), 0);
    assert_eq!(lines(&server, "&since=2200-01-01T00:00:00Z").len(), 0);
    let page = call(&server, ROOT, "GET", "/v1/trail?max=1", "").good();
    let next = page["next"].as_str().unwrap();
    let page = call(&server, ROOT, "GET", &format!("/v1/trail?max=1&cursor={next}"), "").good();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    for (name, value, code) in [
        ("cursor", "12", "invalid_field"),
        ("cursor", "../../etc/passwd:3", "invalid_field"),
        ("max", "0", "out_of_bounds"),
        ("since", "yesterday", "invalid_field"),
        ("until", "now", "unknown_field"),
    ] {
        let pointer = format!("/query/{name}");
        call(&server, ROOT, "GET", &format!("/v1/trail?{name}={value}"), "").refused(
            422,
            code,
            Some(&pointer),
        );
    }
    Server::start().get("/v1/trail").refused(409, "wrong_state", None);
}

#[test]
fn a_required_trail_that_cannot_be_written_refuses_changes_alone() {
    let folder = TempDir::new();
    // A file stands where the folder would be.
    fs::write(folder.join("trail"), "").unwrap();
    let server = Server::with_trail(tokens(Vec::new()), Trail::open(options(&folder, true)));
    let limit = |concurrency: u32| {
        as_root(&server, "PUT", "/v1/limits/l", &json!({"concurrency": concurrency}))
    };
    let no = limit(1).refused(503, "trail_unwritable", None);
    assert!(no["hint"].as_str().unwrap().contains("nothing happened"), "{no}");
    as_root(&server, "POST", "/v1/queues/q/pause", &Value::Null).refused(
        503,
        "trail_unwritable",
        None,
    );
    assert_eq!(
        as_root(&server, "GET", "/v1/limits/l", &Value::Null).status,
        404,
        "nothing happened"
    );
    // The work goes on.
    as_root(&server, "POST", "/v1/jobs", &json!({"queue": "q"})).good();
    let leased = as_root(&server, "POST", "/v1/leases", &json!({"queues": ["q"]})).good();
    let lease = leased["leases"][0]["lease"].as_str().unwrap();
    as_root(&server, "POST", "/v1/leases/extend", &json!({"leases": [lease]})).good();
    let settle = json!({"settle": [{"lease": lease, "outcome": "succeeded"}]});
    as_root(&server, "POST", "/v1/leases/settle", &settle).good();
    as_root(&server, "GET", "/v1/stats", &Value::Null).good();
    // Once it can be written, the next change is permitted.
    fs::remove_file(folder.join("trail")).unwrap();
    limit(2).good();
    assert_eq!(lines(&server, "&op=put_limit").len(), 1);
    assert_eq!(lines(&server, "&op=trail_missed").len(), 1);
}

#[test]
fn a_trail_that_is_not_required_refuses_nothing() {
    let folder = TempDir::new();
    fs::write(folder.join("trail"), "").unwrap();
    let server = server(&folder, Vec::new());
    as_root(&server, "PUT", "/v1/limits/l", &json!({"concurrency": 1})).good();
}

#[test]
fn the_leader_writes_who_called_and_each_server_whom_it_refused() {
    let (of_first, of_leader) = (TempDir::new(), TempDir::new());
    let all = || tokens(vec![listed("admin", |_| {}), listed("view", |_| {})]);
    let server = Server::two_recorded(
        (all(), trail(&of_first)),
        (all(), trail(&of_leader)),
        Config::default(),
    );
    call(&server, &token("admin"), "PUT", "/v1/limits/l", r#"{"concurrency": 1}"#).good();
    call(&server, &token("view"), "PUT", "/v1/limits/l", r#"{"concurrency": 9}"#).refused(
        403,
        "forbidden",
        None,
    );
    let own = lines(&server, "&op=put_limit");
    assert_eq!((own.len(), &own[0]["caller"], &own[0]["status"]), (1, &json!("view"), &json!(403)));
    let led = lines(server.leader(), "&op=put_limit");
    assert_eq!(
        (led.len(), &led[0]["caller"], &led[0]["via"]),
        (1, &json!("admin"), &json!("server"))
    );
    assert_eq!(led[0]["peer"], "127.0.0.1");
    text(&of_first);
    text(&of_leader);
}

#[test]
fn a_takeover_and_its_end_leave_lines() {
    let folder = TempDir::new();
    let trail = trail(&folder);
    let Ok(StoreUrl::Server(url)) = "http://other.example:7171".parse() else { panic!("a server") };
    let there = |epoch| ServingLeader::Remote(LeaderAddress { url: url.clone(), epoch });
    let engine = Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap());
    let here = ServingLeader::Local { engine, epoch: 5 };
    let report = |serves| LeaderReport { serves, served_at: None };
    let (tell, standing) = watch::channel(report(there(4)));
    let (secret, trust) = (Secret::new("of-the-servers"), Default::default());
    let peer_group = PeerGroup { server: 1, store: 7, secret, trust };
    let leadership = Leadership::shared("redis", peer_group, standing);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.spawn(follow_leadership(leadership, trail.clone()));
    let told = || {
        let read = trail.read(&ReadTrail::default(), &Grants::all_of_anyone()).unwrap();
        let one = |line: &tenure_core::trail::TrailLine| {
            format!("{} {}", line.op, line.detail.clone().unwrap_or_default())
        };
        // Without the line of the start.
        read.items.iter().rev().skip(1).map(one).collect::<Vec<_>>()
    };
    until("it follows", || told().len() == 1);
    tell.send_replace(report(ServingLeader::None("nobody".to_owned())));
    tell.send_replace(report(here));
    until("it leads", || told().len() == 2);
    tell.send_replace(report(there(6)));
    until("it follows again", || told().len() == 3);
    assert_eq!(told(), ["follows_leader epoch 4", "leads_store epoch 5", "follows_leader epoch 6"]);
}
