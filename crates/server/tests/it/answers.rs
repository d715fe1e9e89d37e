//! Good answers: statuses, shapes, lines.

use crate::wire::{Answer, Server};
use serde_json::{Value, json};
use tenure_core::bounds::LINE_BYTES_MAX;
use tenure_core::time::Moment;
use tenure_engine_api::{Clock, SystemClock};

#[test]
fn a_push_is_answered_in_the_shape_it_came() {
    let server = Server::start();
    let one = server.post("/v1/jobs", r#"{"id": "a", "payload": {"n": 1.50}}"#);
    assert_eq!((one.status, one.header("content-type")), (201, Some("application/json")));
    let job = one.json();
    assert_eq!(
        (&job["duplicate"], &job["workers"], &job["state"]),
        (&json!(false), &json!(0), &json!("ready"))
    );
    assert!(one.text().contains(r#""payload":{"n": 1.50}"#), "{}", one.text());
    let again = server.post("/v1/jobs", r#"{"id": "a"}"#);
    assert_eq!((again.status, &again.json()["duplicate"]), (200, &json!(true)));
    let many = server.post("/v1/jobs", r#"[{"id": "b"}, {"id": "a"}, {"id": "b"}]"#);
    assert_eq!(many.status, 200);
    let flags: Vec<Value> =
        many.json().as_array().unwrap().iter().map(|job| job["duplicate"].clone()).collect();
    assert_eq!(flags, [json!(false), json!(true), json!(true)]);
    let array_of_one = server.post("/v1/jobs", r#"[{"id": "c"}]"#);
    assert_eq!((array_of_one.status, array_of_one.json().as_array().map(Vec::len)), (200, Some(1)));
}

#[test]
fn prefer_return_minimal_is_answered_with_ids() {
    let server = Server::start();
    let head = "Host: localhost\r\nContent-Type: application/json\r\n";
    let push = |body: &str, prefer: &str| {
        let headers = format!("{head}{prefer}");
        server.connect().ask_with("POST", "/v1/jobs", &headers, body.as_bytes())
    };
    let one = push(r#"{"id": "a"}"#, "Prefer: return=minimal\r\n");
    assert_eq!(
        (one.status, one.json()),
        (201, json!({"id": "a", "duplicate": false, "workers": 0}))
    );
    assert_eq!(one.header("preference-applied"), Some("return=minimal"));
    for prefer in [
        "Prefer: return=minimal\r\n",
        "Prefer: respond-async, return=minimal\r\n",
        "Prefer: wait=5\r\nPrefer: return=minimal\r\n",
    ] {
        let many = push(r#"[{"id": "a"}]"#, prefer);
        assert_eq!(many.json(), json!([{"id": "a", "duplicate": true, "workers": 0}]), "{prefer}");
    }
}

#[test]
fn a_preview_answers_the_moments_of_a_timing_and_stores_nothing() {
    let server = Server::start();
    let before = server.state();
    let preview = |body: Value| server.post("/v1/schedules/preview", &body.to_string()).good();
    // On the last day of October the hour from two to three comes twice.
    let berlin = json!({
        "cron": "0 2,14 * * *", "zone": "Europe/Berlin", "from": "2027-10-30T22:00:00Z", "count": 3,
    });
    let expected = [
        "2027-10-31T00:00:00.000000Z",
        "2027-10-31T01:00:00.000000Z",
        "2027-10-31T13:00:00.000000Z",
    ];
    assert_eq!(preview(berlin), json!({"next": expected}));
    let end = json!({"cron": "@yearly", "from": "2026-12-01T00:00:00Z", "ends_at": "2028-01-01T00:00:00Z"});
    let expected = ["2027-01-01T00:00:00.000000Z", "2028-01-01T00:00:00.000000Z"];
    assert_eq!(preview(end), json!({"next": expected}), "fewer than five");
    let interval =
        json!({"id": "news-42", "every": "15m", "from": "2026-12-01T08:00:00Z", "count": 2});
    let expected = ["2026-12-01T08:08:46.000000Z", "2026-12-01T08:23:46.000000Z"];
    assert_eq!(preview(interval), json!({"next": expected}), "the phase of the id");
    // Without `from` the moments after now follow.
    let hundred = preview(json!({"cron": "* * * * * *", "count": 100}));
    assert_eq!(hundred["next"].as_array().map(Vec::len), Some(100));
    let first: Moment = hundred["next"][0].as_str().unwrap().parse().unwrap();
    let now = SystemClock.now();
    assert!(first.since(now).us().max(now.since(first).us()) < 60_000_000, "{first} at {now}");
    assert_eq!(server.state(), before);
}

#[test]
fn what_is_put_anew_is_created_and_what_is_deleted_is_gone() {
    let server = Server::start();
    for (path, body) in [
        ("/v1/queues/gr%C3%B6%C3%9Fe%20b", r#"{"timeout": "90s"}"#),
        ("/v1/limits/site:%2A", r#"{"concurrency": 2}"#),
        ("/v1/limits/site:example.com", r#"{"rate": {"count": 1, "per": "1500ms"}}"#),
        ("/v1/pools/p", r#"{"quarantine": "24h"}"#),
    ] {
        assert_eq!(server.put(path, body).status, 201, "{path}");
        assert_eq!(server.put(path, body).status, 200, "{path}");
        let view = server.get(path).good();
        assert_eq!(server.call("PATCH", path, "{}").good(), view, "{path}");
        let deleted = server.call("DELETE", path, "");
        assert_eq!((deleted.status, deleted.body.len()), (204, 0), "{path}");
        assert_eq!(server.call("DELETE", path, "").status, 404, "{path}");
    }
    server.put("/v1/queues/a", r#"{"timeout": "90s"}"#).good();
    assert_eq!(server.get("/v1/queues/a").good()["timeout"], "1m30s");
    server.put("/v1/limits/r", r#"{"rate": {"count": 1, "per": "1500ms"}}"#).good();
    let rate = &server.get("/v1/limits/r").good()["rate"];
    assert_eq!(*rate, json!({"count": 1, "per": "1s500ms", "burst": 1}));
    let names: Vec<Value> = server.get("/v1/limits").good()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| limit["name"].clone())
        .collect();
    assert!(names.contains(&json!("r")), "{names:?}");
}

#[test]
fn a_job_goes_through_its_life_over_http() {
    let server = Server::start();
    server.put("/v1/pools/p/resources", r#"[{"id": "a/b", "data": {"password": "x"}}]"#).good();
    let job = r#"{"id": "j", "queue": "q", "needs": [{"pool": "p"}, {"limit": "lock:x"}], "unique": {"key": "k/1"}}"#;
    assert_eq!(server.post("/v1/jobs", job).status, 201);
    let leased =
        server.post("/v1/leases", r#"{"queues": ["q"], "worker": "w", "wait": "5s"}"#).good();
    let lease = leased["leases"][0]["lease"].as_str().unwrap().to_owned();
    assert_eq!(leased["leases"][0]["resources"][0]["data"]["password"], "x");
    let shown = server.get("/v1/pools/p/resources/a%2Fb").good();
    assert_eq!((&shown["data"]["password"], &shown["in_use"]), (&json!("•"), &json!(1)));
    let explained = server.get("/v1/jobs/key:k%2F1/explain").good();
    assert_eq!(explained["lease"]["lease"], lease);
    let extended =
        server.post("/v1/leases/extend", &json!({"leases": [lease, "gone"]}).to_string()).good();
    assert_eq!(extended["lost"], json!(["gone"]));
    let settle = json!({"settle": [{"lease": lease, "outcome": "succeeded", "result": [1]}]});
    for _ in 0..2 {
        let settled = server.post("/v1/leases/settle", &settle.to_string()).good();
        assert_eq!(settled["settled"][0]["state"], "succeeded");
    }
    assert_eq!(server.get("/v1/jobs/j").good()["result"], json!([1]));
    assert_eq!(server.post("/v1/jobs/j/retry", "{}").status, 409);
    assert_eq!(server.get("/v1/workers").good()["items"][0]["id"], "w");
    assert_eq!(server.get("/v1/stats").good()["jobs"]["succeeded"], 1);
    assert_eq!(server.get("/v1/leases").good()["items"], json!([]));
    assert_eq!(server.call("DELETE", "/v1/jobs/j", "").status, 204);
}

#[test]
fn a_settle_that_asks_is_answered_with_both() {
    let server = Server::start();
    let jobs = r#"[{"id": "a", "queue": "q"}, {"id": "b", "queue": "q"}]"#;
    server.post("/v1/jobs", jobs).good();
    let leased = server.post("/v1/leases", r#"{"queues": ["q"]}"#).good();
    let mut lease = leased["leases"][0]["lease"].clone();
    let both = |lease: &Value, call: Value| {
        let settle = json!([{"lease": lease, "outcome": "succeeded"}]);
        let body = json!({"settle": settle, "lease": call}).to_string();
        let answer = server.post("/v1/leases/settle", &body).good();
        assert_eq!(answer["settled"][0]["state"], "succeeded", "{answer}");
        answer
    };
    let call = json!({"queues": ["q"], "request_id": "r1", "wait": "10s"});
    let answer = both(&lease, call.clone());
    assert_eq!(answer["leases"][0]["job"]["id"], "b");
    assert_eq!((answer.get("next_at"), answer.get("refused")), (Some(&Value::Null), None));
    assert_eq!(both(&lease, call), answer, "the same again");
    lease = answer["leases"][0]["lease"].clone();
    // A refusal that only the engine can make stands beside the settles.
    let call = json!({"needs": [{"limit": "nope"}], "request_id": "r2", "wait": "10s"});
    let answer = both(&lease, call);
    assert_eq!(answer["leases"], json!([]));
    let no = &answer["refused"];
    assert_eq!((&no["code"], &no["status"]), (&json!("unknown_limit"), &json!(422)), "{answer}");
    assert_eq!(no["pointer"], "/lease/needs/0/limit");
    let answer = both(&lease, json!({"needs": [{"limit": "lock:x"}], "request_id": "r3"}));
    assert_eq!(answer["leases"][0]["limits"], json!(["lock:x"]));
    let answer = both(&lease, json!({"needs": [{"limit": "lock:x"}], "request_id": "r4"}));
    assert_eq!(answer["reasons"][0]["kind"], "limit");
}

#[test]
fn a_token_of_a_rate_is_no_lease() {
    let server = Server::start();
    server.put("/v1/limits/api", r#"{"rate": {"count": 1, "per": "1h"}}"#).good();
    let ask = r#"{"needs": [{"limit": "api"}], "ttl": "0s"}"#;
    let leased = server.post("/v1/leases", ask).good();
    let token = leased["leases"][0].as_object().unwrap();
    let fields: Vec<&str> = token.keys().map(String::as_str).collect();
    assert_eq!(fields, ["fence", "lease", "limits"]);
    assert_eq!((&token["lease"], &token["limits"]), (&Value::Null, &json!(["api"])));
    let none = server.post("/v1/leases", ask).good();
    assert_eq!((&none["leases"], &none["reasons"][0]["kind"]), (&json!([]), &json!("rate")));
}

fn lines(server: &Server, method: &str, path: &str, body: &[u8]) -> Answer {
    let headers = "Host: localhost\r\nContent-Type: application/x-ndjson\r\n";
    server.connect().ask_with(method, path, headers, body)
}

#[test]
fn a_bad_line_does_not_stop_the_others() {
    let server = Server::start();
    server.put("/v1/queues/full", r#"{"max_waiting": 1}"#).good();
    let long = format!(r#"{{"payload": "{}"}}"#, "x".repeat(LINE_BYTES_MAX));
    let body = [
        r#"{"id": "a"}"#,
        "",
        "nonsense",
        r#"{"id": "b", "needs": [{"limit": "nope"}]}"#,
        r#"{"id": "c", "priority": 101}"#,
        &long,
        r#"{"id": "a"}"#,
        r#"{"id": "d", "queue": "full"}"#,
        r#"{"id": "e", "queue": "full"}"#,
        r#"{"id": "f", "unique": {"key": "k"}}"#,
        r#"{"id": "g", "unique": {"key": "k", "on_conflict": "reject"}}"#,
        "[]",
        r#"{"id": "h"}"#,
    ]
    .join("\n");
    let answer = lines(&server, "POST", "/v1/jobs", body.as_bytes());
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
    let said: Vec<(u64, String)> = answer
        .lines()
        .iter()
        .map(|line| {
            let word = |field: &str| line[field].as_str().map(str::to_owned);
            let word = word("code").or(word("id")).unwrap();
            let word = if line["duplicate"] == true { format!("{word} again") } else { word };
            let place = line["pointer"].as_str().map_or(String::new(), |at| format!(" {at}"));
            (line["line"].as_u64().unwrap(), word + &place)
        })
        .collect();
    let want = [
        (1, "a"),
        (3, "bad_json"),
        (4, "unknown_limit /needs/0/limit"),
        (5, "out_of_bounds /priority"),
        (6, "too_large"),
        (7, "a again"),
        (8, "d"),
        (9, "queue_full"),
        (10, "f"),
        (11, "unique_conflict /unique/key"),
        (12, "invalid_field "),
        (13, "h"),
    ];
    let want: Vec<(u64, String)> = want.iter().map(|(n, word)| (*n, (*word).to_owned())).collect();
    assert_eq!(said, want);
    for id in ["a", "d", "f", "h"] {
        assert_eq!(server.get(&format!("/v1/jobs/{id}")).status, 200, "{id}");
    }
    assert_eq!(server.get("/v1/stats").good()["jobs"]["ready"], 4);
    let empty = lines(&server, "POST", "/v1/jobs", b"");
    assert_eq!((empty.status, empty.body.len()), (200, 0));
}

#[test]
fn lines_are_answered_as_they_come() {
    let server = Server::start();
    let mut conn = server.connect();
    conn.send(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(conn.head().0, 200);
    for id in ["a", "b"] {
        let line = format!("{{\"id\": \"{id}\"}}\n");
        conn.send(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes());
        let answer = String::from_utf8(conn.chunk().unwrap()).unwrap();
        assert!(answer.contains(&format!(r#""id":"{id}""#)), "{answer}");
        assert_eq!(server.get(&format!("/v1/jobs/{id}")).status, 200, "what is answered is stored");
    }
    conn.send(b"0\r\n\r\n");
    assert_eq!(conn.chunk(), None);
    assert_eq!(conn.call("GET", "/healthz", "").status, 200, "the connection goes on");
}

#[test]
fn a_client_may_send_all_lines_before_reading() {
    let server = Server::start();
    let mut body = Vec::new();
    let jobs = 60_000;
    for n in 0..jobs {
        body.extend_from_slice(
            format!("{{\"id\": \"job-{n}\", \"payload\": \"{n:0100}\"}}\n").as_bytes(),
        );
    }
    let answer = lines(&server, "POST", "/v1/jobs", &body);
    assert_eq!(answer.text().lines().count(), jobs);
    assert!(answer.text().lines().all(|line| line.contains(r#""duplicate":false"#)));
    assert_eq!(server.get("/v1/stats").good()["jobs"]["ready"], jobs);
}

#[test]
fn a_set_may_come_in_lines() {
    let server = Server::start();
    let sync = |body: &str, query: &str| {
        lines(&server, "PUT", &format!("/v1/pools/p/resources{query}"), body.as_bytes())
    };
    let synced = sync(
        "{\"id\": \"a\"}\n\n{\"id\": \"b\", \"tags\": [\"x\"]}\n{\"id\": \"c\"}",
        "?version=5",
    );
    assert_eq!((synced.status, &synced.json()["added"]), (200, &json!(3)));
    sync("{\"id\": \"a\"}\n{\"id\": \"b\"}\n{\"id\": \"c\"}", "?version=4").refused(
        409,
        "stale_sync",
        Some("/query/version"),
    );
    let bad = sync("{\"id\": \"a\"}\n{\"id\": 7}\n", "").refused(422, "invalid_field", Some("/id"));
    assert_eq!(bad["line"], 2);
    sync("", "").refused(422, "empty_set", Some(""));
    let ids: Vec<Value> = server.get("/v1/pools/p/resources").good()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["id"].clone())
        .collect();
    assert_eq!(ids, [json!("a"), json!("b"), json!("c")]);
    let one = server.post("/v1/pools/p/resources", r#"{"id": "d"}"#);
    assert_eq!((one.status, &one.json()["id"]), (200, &json!("d")));
    let many = server.post("/v1/pools/p/resources", r#"[{"id": "e"}]"#);
    assert_eq!((many.status, &many.json()[0]["id"]), (200, &json!("e")));
}

#[test]
fn a_refused_schedule_of_a_set_in_lines_is_named_by_its_line() {
    let server = Server::start();
    let job = r#""every": "1h", "job": {"queue": "q"}"#;
    server.put("/v1/schedules/theirs", &format!(r#"{{{job}, "owner": "other"}}"#)).good();
    let body = format!("{{\"id\": \"a\", {job}}}\n\n{{\"id\": \"theirs\", {job}}}\n");
    let no = lines(&server, "PUT", "/v1/schedules?owner=mine", body.as_bytes());
    let no = no.refused(409, "other_owner", Some("/id"));
    assert_eq!((&no["line"], &no["index"]), (&json!(3), &Value::Null));
}

#[test]
fn the_server_says_what_it_is() {
    let server = Server::start();
    assert_eq!(server.get("/healthz").good(), json!({"status": "ok"}));
    let said = "the server answers calls";
    let ready = json!({"status": "ok", "store": "embedded", "draining": false, "detail": said});
    assert_eq!(server.get("/readyz").good(), ready);
    let version = server.get("/version").good();
    assert_eq!((&version["contract"], version["commit"].is_string()), (&json!(1), true));
    let document = server.get("/openapi.json").good();
    assert_eq!(document["paths"]["/v1/jobs"]["post"]["operationId"], "push");
    // Every route of the document exists.
    for (path, methods) in document["paths"].as_object().unwrap() {
        // Only a server that counts, and one whose store makes backups, have these; their tests are
        // crates/cli/tests/system/serve/metrics.rs and backups.rs here.
        if path == "/metrics" || path == "/v1/backup" {
            continue;
        }
        for method in methods.as_object().unwrap().keys() {
            let path = ["{name}", "{id}", "{flow}"]
                .iter()
                .fold(path.clone(), |path, name| path.replace(name, "x"));
            let answer = server.call(&method.to_uppercase(), &path, "");
            let code =
                serde_json::from_slice::<Value>(&answer.body).unwrap_or_default()["code"].clone();
            assert!(code != "route_not_found" && answer.status != 405, "{method} {path}");
        }
    }
}

#[test]
fn requests_of_one_connection_are_answered_in_order() {
    let server = Server::start();
    let mut conn = server.connect();
    for n in 0..20 {
        conn.ask("POST", "/v1/jobs", &format!(r#"{{"id": "j{n}"}}"#));
    }
    for n in 0..20 {
        assert_eq!(conn.answer().good()["id"], format!("j{n}"));
    }
}
