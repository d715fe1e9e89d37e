//! Tokens with scopes, over HTTP: the calls that each may make, what it sees, and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::access::{GivenGrants, Grants, Scope};
use tenure_core::requests::OPERATIONS;
use tenure_core::secret::Secret;
use tenure_core::time::Moment;
use tenure_server::{Config, ListedToken, Tokens, token_hash};

use crate::wire::{Answer, Conn, Server, until};

pub const ROOT: &str = "root-token-of-more-than-32-characters-0";
/// A removed token must have lost everything within this.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// A token `tnr_NAME_x` with these grants.
pub fn listed(name: &str, change: impl FnOnce(&mut GivenGrants)) -> ListedToken {
    let mut given = GivenGrants {
        name: name.to_owned(),
        scopes: vec![name.to_owned()],
        namespaces: vec!["*".to_owned()],
        ..GivenGrants::default()
    };
    change(&mut given);
    let sha256 = token_hash(token(name).as_bytes());
    ListedToken { grants: Grants::read(&given).unwrap(), sha256 }
}

pub fn token(name: &str) -> String {
    format!("tnr_{name}_x")
}

pub fn tokens(listed: Vec<ListedToken>) -> Tokens {
    let tokens = Tokens::locking("seed");
    tokens.replace(vec![Secret::new(ROOT)]);
    tokens.replace_listed(listed);
    tokens
}

fn server(listed: Vec<ListedToken>) -> Server {
    Server::with_tokens(tokens(listed), Config::default())
}

fn headers(server: &Server, token: &str, more: &str) -> String {
    let at = server.at;
    format!(
        "Host: {at}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n{more}"
    )
}

pub fn call(server: &Server, token: &str, method: &str, path: &str, body: &str) -> Answer {
    let headers = headers(server, token, "");
    server.connect().ask_with(method, path, &headers, body.as_bytes())
}

fn in_namespace(server: &Server, token: &str, namespace: &str, path: &str) -> Answer {
    let headers = headers(server, token, &format!("Tenure-Namespace: {namespace}\r\n"));
    server.connect().ask_with("GET", path, &headers, b"")
}

/// A token for each scope, named after it.
fn one_for_each() -> Vec<ListedToken> {
    Scope::ALL.iter().map(|scope| listed(scope.as_str(), |_| {})).collect()
}

#[test]
fn each_route_of_an_operation_asks_for_its_scope_before_the_body_is_read() {
    let server = server(one_for_each());
    for spec in OPERATIONS {
        let path = spec.path.replace("{pool}", "n").replace("{id}", "n").replace("{name}", "n");
        let path = path.replace("{flow}", "n");
        for scope in Scope::ALL {
            let may = *scope == spec.scope || (spec.scope, *scope) == (Scope::View, Scope::Read);
            // A body that no reader takes: a permitted call gets as far as that, or further.
            let body = if spec.method.as_str() == "GET" { "" } else { "not json" };
            let answer = call(&server, &token(scope.as_str()), spec.method.as_str(), &path, body);
            let place = format!("{} with {scope}: {}", spec.name, answer.text());
            assert_eq!(answer.status != 403, may, "{place}");
            if !may {
                let no = answer.refused(403, "forbidden", None);
                let detail = format!(
                    "the token \"{scope}\" lacks the scope \"{}\" for {}; it has {scope}",
                    spec.scope, spec.name
                );
                assert_eq!(no["detail"], detail);
            }
        }
    }
}

#[test]
fn a_backup_is_described_and_refused_with_all_that_it_needs() {
    let of = |name: &str, scopes: &[&str], namespace: &str| {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        let namespaces = vec![namespace.to_owned()];
        listed(name, |of| (of.scopes, of.namespaces) = (scopes, namespaces))
    };
    let all = ["read", "work", "admin"];
    let server = server(vec![
        of("all", &all, "*"),
        of("admin", &all[2..], "*"),
        of("no-admin", &all[..2], "*"),
        of("web", &all, "web"),
        of("viewer", &["view"], "web-*"),
    ]);
    for (name, lacks) in [
        (
            "admin",
            r#"lacks the scopes "read" and "work" for backup; it has admin, and may use "*""#,
        ),
        (
            "no-admin",
            r#"lacks the scope "admin" for backup; it has read and work, and may use "*""#,
        ),
        (
            "web",
            r#"lacks all namespaces ("*") for backup; it has read, work and admin, and may use "web""#,
        ),
        (
            "viewer",
            r#"lacks the scopes "read", "work" and "admin" and all namespaces ("*") for backup; it has view, and may use "web-*""#,
        ),
    ] {
        let no =
            call(&server, &token(name), "GET", "/v1/backup", "").refused(403, "forbidden", None);
        assert_eq!(no["detail"], format!("the token \"{name}\" {lacks}"));
    }
    // This server makes no backups, and says so to those who may have one.
    assert_eq!(call(&server, &token("all"), "GET", "/v1/backup", "").status, 404);
    let document = call(&server, ROOT, "GET", "/openapi.json", "").good();
    let backup = &document["paths"]["/v1/backup"]["get"];
    assert_eq!((&backup["x-scope"], &backup["x-namespaces"]), (&json!(all), &json!("*")));
}

#[test]
fn a_namespace_that_is_not_named_is_closed() {
    let reader = listed("reader", |of| {
        of.scopes = vec!["read".to_owned()];
        of.namespaces = vec!["web".to_owned(), "team-*".to_owned()];
    });
    let server = server(vec![reader]);
    for (namespace, may) in [
        ("web", true),
        ("team-1", true),
        ("team-", true),
        ("team", false),
        ("default", false),
        ("webs", false),
    ] {
        let answer = in_namespace(&server, &token("reader"), namespace, "/v1/stats");
        assert_eq!(answer.status == 200, may, "{namespace}: {}", answer.text());
        assert_eq!(answer.status == 403, !may, "{namespace}");
        assert_eq!(in_namespace(&server, ROOT, namespace, "/v1/stats").status, 200);
    }
    assert_eq!(call(&server, &token("reader"), "GET", "/v1/stats", "").status, 403, "the default");
}

#[test]
fn a_caller_is_told_who_it_is() {
    let full = listed("full", |of| {
        of.scopes = vec!["push".to_owned(), "work".to_owned()];
        of.namespaces = vec!["web".to_owned()];
        of.queues = Some(vec!["q*".to_owned()]);
        of.needs = Some(vec!["pool:p".to_owned(), "limit:site:*".to_owned()]);
        of.expires = Some("2200-01-01T00:00:00Z".parse().unwrap());
    });
    let server = server(vec![full]);
    let me = call(&server, &token("full"), "GET", "/v1/me", "").good();
    assert_eq!(
        me,
        json!({
            "name": "full", "scopes": ["push", "work"], "namespaces": ["web"], "queues": ["q*"],
            "needs": ["limit:site:*", "pool:p"], "expires": "2200-01-01T00:00:00.000000Z",
            "calls": null, "in_flight": null,
        })
    );
    let me = call(&server, ROOT, "GET", "/v1/me", "").good();
    assert_eq!((&me["name"], &me["queues"]), (&json!("token-1"), &Value::Null));
    assert_eq!(me["scopes"].as_array().unwrap().len(), Scope::ALL.len());
    call(&server, "tnr_full_y", "GET", "/v1/me", "").refused(401, "unauthorized", None);
    assert_eq!(Server::start().get("/v1/me").good()["name"], "anyone");
}

const SECRET: &str = "s3cret-content";

/// A store in which every content has the secret in it.
fn with_contents(listed: Vec<ListedToken>) -> Server {
    let server = server(listed);
    let root = |method: &str, path: &str, body: Value| {
        call(&server, ROOT, method, path, &body.to_string()).good()
    };
    root("PUT", "/v1/pools/p", json!({}));
    root("POST", "/v1/pools/p/resources", json!({"id": "r", "data": {SECRET: SECRET}}));
    root("POST", "/v1/pools/p/resources/r/ban", json!({"reason": SECRET}));
    root("POST", "/v1/pools/p/resources/r/restore", json!({}));
    root("POST", "/v1/pools/p/resources", json!({"id": "r2", "data": SECRET}));
    root("POST", "/v1/pools/p/resources/r2/ban", json!({"reason": SECRET}));
    let job = |id: &str, more: Value| {
        let mut job = json!({"id": id, "queue": "q", "payload": {"text": SECRET}});
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        root("POST", "/v1/jobs", job);
        let leased = root("POST", "/v1/leases", json!({"queues": ["q"]}));
        leased["leases"][0]["lease"].as_str().unwrap().to_owned()
    };
    let done = job("done", json!({"flow": "f"}));
    let progress = json!({"at": SECRET});
    root("POST", "/v1/leases/extend", json!({"leases": [{"lease": done, "progress": progress}]}));
    let item = json!({"lease": done, "outcome": "succeeded", "result": {"text": SECRET}});
    root("POST", "/v1/leases/settle", json!({"settle": [item]}));
    let failed = job("failed", json!({"retry": {"max_attempts": 1}}));
    let item = json!({"lease": failed, "outcome": "failed", "error": SECRET});
    root("POST", "/v1/leases/settle", json!({"settle": [item]}));
    root(
        "POST",
        "/v1/jobs",
        json!({
            "id": "child", "queue": "q", "after": ["failed", "done"], "on_parent_failure": "run",
            "delay": "1h", "payload": SECRET,
        }),
    );
    root(
        "PUT",
        "/v1/schedules/s",
        json!({"every": "1h", "job": {"queue": "q", "payload": SECRET}}),
    );
    server
}

/// What the caller may get, of all routes and with the queries that show more.
const LOOKS: [&str; 24] = [
    "/v1/jobs?full=true",
    "/v1/jobs/done",
    "/v1/jobs/failed",
    "/v1/jobs/child",
    "/v1/jobs/done/result",
    "/v1/jobs/failed/result?wait=1s",
    "/v1/jobs/child/parents?full=true",
    "/v1/jobs/done/children",
    "/v1/jobs/child/explain",
    "/v1/leases",
    "/v1/queues",
    "/v1/queues/q",
    "/v1/limits",
    "/v1/pools",
    "/v1/pools/p/resources",
    "/v1/pools/p/resources/r2",
    "/v1/flows/f",
    "/v1/failures",
    "/v1/schedules?full=true",
    "/v1/schedules/s",
    "/v1/workers",
    "/v1/stats",
    "/v1/events?since=first&max=1000",
    "/v1/audit",
];

#[test]
fn contents_are_seen_by_read_and_by_nobody_else() {
    let operate_and_view =
        listed("operator", |of| of.scopes = vec!["view".to_owned(), "operate".to_owned()]);
    let mut all = one_for_each();
    all.push(operate_and_view);
    let server = with_contents(all);
    let looks = |name: &str| {
        let is_seen = |path: &&&str| {
            let answer = call(&server, &token(name), "GET", path, "");
            let is_seen = answer.text().contains(SECRET);
            assert!(!is_seen || answer.status == 200);
            is_seen
        };
        LOOKS.iter().filter(is_seen).collect::<Vec<_>>()
    };
    let seen = looks("read");
    assert!(seen.len() >= 9, "the crawl must meet contents: {seen:?}");
    for scope in Scope::ALL.iter().filter(|scope| !matches!(scope, Scope::Read | Scope::Work)) {
        let seen = looks(scope.as_str());
        assert!(seen.is_empty(), "{scope} sees contents at {seen:?}");
    }
    assert!(looks("operator").is_empty());
    let seen = looks("work");
    assert_eq!(seen, [&"/v1/jobs/child/parents?full=true"], "the results of a job's parents");
    let view = call(&server, &token("view"), "GET", "/v1/jobs/failed", "").good();
    assert_eq!((&view["payload"], &view["error"]), (&json!("•••"), &json!("•••")));
    assert_eq!(view["state"], "failed");
    // A filter would answer guesses at the text of errors.
    let path = format!("/v1/jobs?error={SECRET}");
    let no = call(&server, &token("view"), "GET", &path, "");
    no.refused(403, "forbidden", Some("/query/error"));
    // So would a wait for another progress than the one with this hash.
    let no = call(&server, &token("view"), "GET", "/v1/jobs/done/result?seen=0123456789abcdef", "");
    assert_eq!(no.status, 403, "{}", no.text());
    let view = call(&server, &token("view"), "GET", "/v1/jobs/done/result", "").good();
    assert_eq!((&view["progress"], &view["progress_id"]), (&json!("•••"), &Value::Null));
    let deep = |name: &str| call(&server, &token(name), "GET", "/v1/audit?deep=true", "").status;
    assert_eq!((deep("view"), deep("operator")), (403, 200));
    let body = json!({"error": SECRET}).to_string();
    let no = call(&server, &token("operator"), "POST", "/v1/jobs/cancel", &body);
    no.refused(403, "forbidden", Some("/error"));
}

#[test]
fn an_action_answers_without_contents_to_a_caller_that_may_not_read() {
    let server = with_contents(one_for_each());
    let operator = token("operate");
    for (path, body) in [
        ("/v1/jobs/failed/retry", "{}"),
        ("/v1/jobs/failed/cancel", "{}"),
        ("/v1/schedules/s/run-now", "{}"),
        ("/v1/schedules/s/pause", "{}"),
        ("/v1/pools/p/resources/r2/restore", "{}"),
        ("/v1/pools/p/resources/r2/ban", r#"{"reason":"x"}"#),
    ] {
        let answer = call(&server, &operator, "POST", path, body);
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.text());
        assert!(!answer.text().contains(SECRET), "{path}: {}", answer.text());
    }
    // The job is there already, and is another caller's.
    let again = r#"{"id":"done","queue":"q"}"#;
    let answer = call(&server, &token("push"), "POST", "/v1/jobs", again);
    assert_eq!(answer.good()["duplicate"], true);
    assert!(!answer.text().contains(SECRET), "{}", answer.text());
}

fn crawler() -> ListedToken {
    listed("crawler", |of| {
        of.scopes = vec!["push".to_owned(), "work".to_owned()];
        of.queues = Some(vec!["q".to_owned()]);
        of.needs = Some(vec!["pool:open".to_owned()]);
    })
}

/// Two pools, and a job that needs both.
fn with_pools(listed: Vec<ListedToken>) -> Server {
    let server = server(listed);
    fill_pools(&server);
    server
}

pub fn fill_pools(server: &Server) {
    let root = |path: &str, body: Value| call(server, ROOT, "PUT", path, &body.to_string()).good();
    for pool in ["open", "closed"] {
        root(&format!("/v1/pools/{pool}"), json!({}));
        root(&format!("/v1/pools/{pool}/resources"), json!([{"id": "r", "data": {"in": pool}}]));
    }
    let job = json!({"id": "j", "queue": "q", "needs": [{"pool": "open"}, {"pool": "closed"}]});
    call(server, ROOT, "POST", "/v1/jobs", &job.to_string()).good();
}

#[test]
fn a_lease_has_the_data_of_the_pools_of_its_token() {
    let server = with_pools(vec![crawler()]);
    let leased =
        call(&server, &token("crawler"), "POST", "/v1/leases", r#"{"queues":["q"]}"#).good();
    assert_eq!(data_of(&leased, "open"), &json!({"in": "open"}), "{leased}");
    assert_eq!(data_of(&leased, "closed"), "•••", "{leased}");
}

/// The data of the resource of this pool in the first lease.
pub fn data_of<'l>(leased: &'l Value, pool: &str) -> &'l Value {
    let resources = leased["leases"][0]["resources"].as_array().unwrap();
    let found = resources.iter().find(|resource| resource["pool"] == pool);
    &found.unwrap_or_else(|| panic!("{leased}"))["data"]
}

#[test]
fn queues_and_needs_bound_pushes_leases_and_follow_ups() {
    let server = with_pools(vec![crawler()]);
    let crawler = token("crawler");
    let post = |path: &str, body: Value| call(&server, &crawler, "POST", path, &body.to_string());
    post("/v1/jobs", json!({"queue": "mail"})).refused(403, "forbidden", Some("/queue"));
    post("/v1/jobs", json!([{"queue": "q"}, {"queue": "mail"}])).refused(
        403,
        "forbidden",
        Some("/1/queue"),
    );
    let needs = json!([{"pool": "closed"}]);
    post("/v1/leases", json!({"needs": needs})).refused(403, "forbidden", Some("/needs/0"));
    post("/v1/leases", json!({"queues": ["q", "mail"]})).refused(
        403,
        "forbidden",
        Some("/queues/1"),
    );
    let leased = post("/v1/leases", json!({"queues": ["q"]})).good();
    let item = json!({"lease": leased["leases"][0]["lease"], "outcome": "succeeded"});
    let mut with_push = item.clone();
    with_push["push"] = json!([{"queue": "mail"}]);
    post("/v1/leases/settle", json!({"settle": [with_push]})).refused(
        403,
        "forbidden",
        Some("/settle/0/push/0/queue"),
    );
    let mut with_pause = item.clone();
    with_pause["limits"] = json!([{"limit": "site:a", "pause": "1h"}]);
    post("/v1/leases/settle", json!({"settle": [with_pause]})).refused(
        403,
        "forbidden",
        Some("/settle/0/limits/0/limit"),
    );
    // The job is done, whatever the next lease call asks for.
    let next = json!({"queues": ["mail"], "request_id": "r"});
    let settled = post("/v1/leases/settle", json!({"settle": [item], "lease": next})).good();
    assert_eq!(settled["settled"][0]["ok"], true, "{settled}");
    assert!(settled.to_string().contains("may not use the queue"), "{settled}");
    // Lines are refused one by one.
    let lines =
        "{\"queue\":\"q\",\"id\":\"a\"}\n{\"queue\":\"mail\"}\n{\"queue\":\"q\",\"id\":\"b\"}\n";
    let at = server.at;
    let head = format!(
        "Host: {at}\r\nAuthorization: Bearer {crawler}\r\nContent-Type: application/x-ndjson\r\n"
    );
    let answer = server.connect().ask_with("POST", "/v1/jobs", &head, lines.as_bytes());
    let codes: Vec<Value> = answer.lines().iter().map(|line| line["code"].clone()).collect();
    assert_eq!(codes, [Value::Null, json!("forbidden"), Value::Null], "{}", answer.text());
    // The id of another's call is no way to its leases.
    call(&server, ROOT, "POST", "/v1/jobs", r#"{"id":"m","queue":"mail"}"#).good();
    let again = |token: &str, queue: &str| {
        let body = json!({"queues": [queue], "request_id": "known"}).to_string();
        call(&server, token, "POST", "/v1/leases", &body).good()["leases"].clone()
    };
    assert_eq!(again(ROOT, "mail").as_array().unwrap().len(), 1);
    assert_eq!(again(&crawler, "q"), json!([]));
    // The queue of a job that is named by its id.
    let parents =
        |job: &str| call(&server, &crawler, "GET", &format!("/v1/jobs/{job}/parents"), "");
    assert_eq!((parents("a").status, parents("m").status), (200, 403));
}

#[test]
fn a_token_has_no_more_calls_than_its_bounds_and_its_heartbeats_go_on() {
    let work = |name: &str, change: fn(&mut GivenGrants)| {
        listed(name, |of| {
            of.scopes = vec!["view".to_owned(), "work".to_owned()];
            change(of);
        })
    };
    let server = server(vec![
        work("often", |of| of.calls = Some("3/1h".to_owned())),
        work("many", |of| of.in_flight = Some(2)),
    ]);
    let stats = |name: &str| call(&server, &token(name), "GET", "/v1/stats", "");
    let extend = |name: &str| {
        call(&server, &token(name), "POST", "/v1/leases/extend", r#"{"leases":["L"]}"#).status
    };
    for _ in 0..3 {
        assert_eq!(stats("often").status, 200);
    }
    let no = stats("often");
    assert!(no.header("retry-after").is_some_and(|wait| wait.parse::<u64>().unwrap() > 1_000));
    let no = no.refused(429, "line_full", None);
    assert_eq!(no["detail"], "the token \"often\" may make 3/1h calls, and has made them");
    assert_eq!(extend("often"), 200);
    // A settle is not counted, and the lease call in it is.
    let settle = json!({
        "settle": [{"lease": "L", "outcome": "succeeded"}],
        "lease": {"queues": ["q"], "request_id": "r"},
    });
    let settle = settle.to_string();
    let settled = call(&server, &token("often"), "POST", "/v1/leases/settle", &settle).good();
    assert_eq!(settled["settled"][0]["code"], "lease_lost", "{settled}");
    assert!(settled.to_string().contains("may make 3/1h calls"), "{settled}");
    // The file is read again, and the bound is not begun anew.
    server.tokens.replace_listed(vec![
        work("often", |of| of.calls = Some("3/1h".to_owned())),
        work("many", |of| of.in_flight = Some(2)),
    ]);
    assert_eq!(stats("often").status, 429);
    let (stream, wait) = (stream(&server, &token("many")), wait(&server, &token("many"), "w"));
    let no = stats("many").refused(429, "line_full", None);
    let says = "has 2 calls, streams and waits under way, and may have no more";
    assert!(no["detail"].as_str().unwrap().contains(says), "{no}");
    assert_eq!(extend("many"), 200);
    drop(stream);
    until("the stream has ended", || stats("many").status == 200);
    drop(wait);
}

/// A stream of events that has begun.
fn stream(server: &Server, token: &str) -> Conn {
    let mut stream = server.connect();
    let headers = headers(server, token, "Accept: text/event-stream\r\n");
    stream.send(format!("GET /v1/events HTTP/1.1\r\n{headers}\r\n").as_bytes());
    assert_eq!(stream.head().0, 200);
    stream.chunk().expect("its start");
    stream
}

/// A lease call that waits.
fn wait(server: &Server, token: &str, worker: &str) -> Conn {
    let mut wait = server.connect();
    let body = json!({"queues": ["q"], "wait": "60s", "worker": worker}).to_string();
    let headers = headers(server, token, &format!("Content-Length: {}\r\n", body.len()));
    wait.send(format!("POST /v1/leases HTTP/1.1\r\n{headers}\r\n{body}").as_bytes());
    until("it waits", || call(server, ROOT, "GET", "/v1/workers", "").text().contains(worker));
    wait
}

#[test]
fn a_token_that_is_removed_or_expires_ends_its_streams_and_waits() {
    let both = |of: &mut GivenGrants| of.scopes = vec!["view".to_owned(), "work".to_owned()];
    let now = Arc::new(AtomicU64::new(1_000));
    let clock = now.clone();
    let tokens = Tokens::by_clock("seed", move || Moment::from_us(clock.load(Ordering::SeqCst)));
    tokens.replace(vec![Secret::new(ROOT)]);
    let stays = listed("stays", both);
    let expires = listed("expires", |of| {
        both(of);
        of.expires = Some(Moment::from_us(2_000));
    });
    tokens.replace_listed(vec![listed("goes", both), stays.clone(), expires.clone()]);
    let server = Server::with_tokens(tokens, Config::default());
    let of = |name: &str| (stream(&server, &token(name)), wait(&server, &token(name), name));
    let (goes, stayed, expired) = (of("goes"), of("stays"), of("expires"));
    let has_ended = |(mut stream, mut wait): (Conn, Conn), name: &str, since: Instant| {
        wait.answer().refused(401, "unauthorized", None);
        while stream.chunk().is_some() {}
        assert!(since.elapsed() < ENDS_WITHIN, "{name}");
        call(&server, &token(name), "GET", "/v1/stats", "").refused(401, "unauthorized", None);
    };
    let removed = Instant::now();
    server.tokens.replace_listed(vec![stays, expires]);
    has_ended(goes, "goes", removed);
    let over = Instant::now();
    now.store(2_000, Ordering::SeqCst);
    has_ended(expired, "expires", over);
    // A clock that is set back makes it valid again: only the clock says when it is over.
    now.store(1_999, Ordering::SeqCst);
    assert_eq!(call(&server, &token("expires"), "GET", "/v1/stats", "").status, 200);
    // The others were not disturbed.
    let (_stream, mut waits) = stayed;
    call(&server, ROOT, "POST", "/v1/jobs", r#"{"id":"j","queue":"q"}"#).good();
    assert_eq!(waits.answer().good()["leases"][0]["job"]["id"], "j");
}

#[test]
fn a_wait_goes_on_under_new_grants_or_is_refused() {
    let work = |queues: Option<Vec<String>>, scope: &str| {
        listed("worker", |of| {
            of.scopes = vec![scope.to_owned()];
            of.queues = queues;
        })
    };
    let server = server(vec![work(None, "work")]);
    let mut waits = wait(&server, &token("worker"), "w1");
    server.tokens.replace_listed(vec![work(Some(vec!["q".to_owned()]), "work")]);
    call(&server, ROOT, "POST", "/v1/jobs", r#"{"id":"j","queue":"q"}"#).good();
    assert_eq!(waits.answer().good()["leases"][0]["job"]["id"], "j");
    let mut waits = wait(&server, &token("worker"), "w2");
    server.tokens.replace_listed(vec![work(Some(vec!["other".to_owned()]), "work")]);
    waits.answer().refused(403, "forbidden", Some("/queues/0"));
    server.tokens.replace_listed(vec![work(None, "work")]);
    let mut waits = wait(&server, &token("worker"), "w3");
    server.tokens.replace_listed(vec![work(None, "view")]);
    waits.answer().refused(403, "forbidden", None);
}

/// A push in lines whose first line is stored, and whose body goes on.
fn lines_go_on(server: &Server, token: &str) -> Conn {
    let mut lines = server.connect();
    let at = server.at;
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    lines.send(head.as_bytes());
    send_line(&mut lines, r#"{"queue":"q","id":"first"}"#);
    assert_eq!(lines.head().0, 200);
    let first = lines.chunk().expect("the answer to the first line");
    assert!(String::from_utf8_lossy(&first).contains("first"), "{first:?}");
    lines
}

fn send_line(lines: &mut Conn, line: &str) {
    lines.send(format!("{:x}\r\n{line}\n\r\n", line.len() + 1).as_bytes());
}

/// What the last line of the answers says, once they have ended.
fn last_line(mut lines: Conn) -> Value {
    let mut last = Vec::new();
    while let Some(more) = lines.chunk() {
        last = more;
    }
    serde_json::from_slice(&last).unwrap_or(Value::Null)
}

/// A request whose body has begun.
fn half_sent(server: &Server, token: &str) -> Conn {
    let mut conn = server.connect();
    let headers = headers(server, token, "Content-Length: 100\r\nExpect: 100-continue\r\n");
    conn.send(format!("POST /v1/jobs HTTP/1.1\r\n{headers}\r\n").as_bytes());
    // The server says that it reads the body, so that it has admitted the caller.
    assert_eq!(conn.head().0, 100);
    conn.send(b"{\"queue\":");
    conn
}

#[test]
fn a_body_ends_with_the_token_of_its_sender() {
    let push = |queues: Option<Vec<String>>| listed("push", |of| of.queues = queues);
    for forwarded in [false, true] {
        let server = match forwarded {
            false => server(vec![push(None)]),
            true => {
                Server::two(tokens(vec![push(None)]), tokens(vec![push(None)]), Config::default())
            }
        };
        let lines = lines_go_on(&server, &token("push"));
        let mut half = half_sent(&server, &token("push"));
        let began = Instant::now();
        server.tokens.replace_listed(vec![push(Some(vec!["other".to_owned()]))]);
        half.answer().refused(403, "forbidden", None);
        let no = last_line(lines);
        assert_eq!((&no["code"], &no["line"]), (&json!("forbidden"), &json!(2)), "{no}");
        assert!(no["detail"].as_str().unwrap().contains("grants of the token \"push\" changed"));
        assert!(began.elapsed() < ENDS_WITHIN);
        server.tokens.replace_listed(vec![push(None)]);
        let lines = lines_go_on(&server, &token("push"));
        let mut half = half_sent(&server, &token("push"));
        let began = Instant::now();
        server.tokens.replace_listed(Vec::new());
        half.answer().refused(401, "unauthorized", None);
        assert_eq!(last_line(lines)["code"], "unauthorized");
        assert!(began.elapsed() < ENDS_WITHIN);
    }
}

#[test]
fn no_call_of_another_token_fails_while_tokens_are_replaced() {
    let keeps = || listed("push", |_| {});
    let server = server(vec![keeps()]);
    let ends = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let calls: Vec<_> = (0..2)
            .map(|_| {
                threads.spawn(|| {
                    let headers = headers(&server, &token("push"), "");
                    let (mut conn, mut calls) = (server.connect(), 0_u32);
                    while !ends.load(Ordering::SeqCst) {
                        let answer =
                            conn.ask_with("POST", "/v1/jobs", &headers, br#"{"queue":"q"}"#);
                        answer.good();
                        calls += 1;
                    }
                    calls
                })
            })
            .collect();
        for n in 0..200 {
            let mut all = vec![keeps()];
            all.extend((0..n % 7).map(|n| {
                listed(&format!("other-{n}"), |of| {
                    of.scopes = vec!["view".to_owned()];
                })
            }));
            all.reverse();
            server.tokens.replace_listed(all);
            std::thread::sleep(Duration::from_millis(1));
        }
        ends.store(true, Ordering::SeqCst);
        let made: u32 = calls.into_iter().map(|calls| calls.join().unwrap()).sum();
        assert!(made > 50, "{made}");
    });
}
