//! Tokens with scopes at servers that share a store: the first server checks what it can, the leader the rest, and
//! neither believes a name that does not come from a server.

use serde_json::json;
use tenure_server::{Config, ListedToken, Tokens};

use crate::scopes::{ROOT, call, data_of, fill_pools, listed, token, tokens};
use crate::wire::{Answer, Server};

/// The secret of the servers in these tests.
const MARK: &str = "of-the-servers";

fn crawler() -> ListedToken {
    listed("crawler", |of| {
        of.scopes = vec!["push".to_owned(), "work".to_owned()];
        of.queues = Some(vec!["q".to_owned()]);
        of.needs = Some(vec!["pool:open".to_owned()]);
    })
}

fn two(first: Tokens, leader: Tokens) -> Server {
    Server::two(first, leader, Config::default())
}

fn post(server: &Server, name: &str, path: &str, body: serde_json::Value) -> Answer {
    call(server, &token(name), "POST", path, &body.to_string())
}

#[test]
fn the_leader_decides_about_queues_needs_and_contents() {
    let all = || vec![crawler(), listed("view", |_| {})];
    let server = two(tokens(all()), tokens(all()));
    fill_pools(&server);
    // By the first server alone: it does not read the body.
    post(&server, "view", "/v1/jobs", json!("not even a job")).refused(403, "forbidden", None);
    post(&server, "crawler", "/v1/jobs", json!({"queue": "mail"})).refused(
        403,
        "forbidden",
        Some("/queue"),
    );
    let leased = post(&server, "crawler", "/v1/leases", json!({"queues": ["q"]})).good();
    let data = (data_of(&leased, "open"), data_of(&leased, "closed"));
    assert_eq!(data, (&json!({"in": "open"}), &json!("•••")), "{leased}");
    let pushed = json!({"id": "s", "queue": "q", "payload": "s3cret"});
    post(&server, "crawler", "/v1/jobs", pushed).good();
    let seen = call(&server, &token("view"), "GET", "/v1/jobs/s", "").good();
    assert_eq!(seen["payload"], "•••");
    assert_eq!(call(&server, ROOT, "GET", "/v1/jobs/s", "").good()["payload"], "s3cret");
    let me = call(&server, &token("crawler"), "GET", "/v1/me", "").good();
    assert_eq!(me["name"], "crawler");
}

#[test]
fn a_token_that_the_leader_does_not_know_may_do_nothing() {
    let server = two(tokens(vec![crawler(), listed("view", |_| {})]), tokens(vec![crawler()]));
    let no = call(&server, &token("view"), "GET", "/v1/stats", "").refused(403, "forbidden", None);
    assert_eq!(no["detail"], "the server that leads the store knows no token \"view\"");
    assert!(no["hint"].as_str().unwrap().contains("the same --tokens file"), "{no}");
    post(&server, "crawler", "/v1/jobs", json!({"queue": "q"})).good();
    // The leader's grants count, too.
    let narrower = listed("crawler", |of| of.scopes = vec!["view".to_owned()]);
    server.leader().tokens.replace_listed(vec![narrower]);
    post(&server, "crawler", "/v1/jobs", json!({"queue": "q"})).refused(403, "forbidden", None);
}

#[test]
fn a_name_is_believed_from_servers_alone() {
    let all = || vec![crawler(), listed("view", |_| {})];
    let server = two(tokens(all()), tokens(all()));
    let asks = |server: &Server, headers: &str| {
        let headers = format!("Host: {}\r\n{headers}", server.at);
        server.connect().ask_with("DELETE", "/v1/queues/nothing", &headers, b"")
    };
    let view = token("view");
    for server in [&server, server.leader()] {
        for name in ["token-1", "anyone", "crawler", "", "token-1\r\nTenure-Caller: token-2"] {
            let forged = format!("Authorization: Bearer {view}\r\nTenure-Caller: {name}\r\n");
            asks(server, &forged).refused(403, "forbidden", None);
            // A mark without the secret of the servers, and one with a token in its place.
            for shown in [view.as_str(), "wrong"] {
                let forged = format!(
                    "Authorization: Bearer {shown}\r\nTenure-Caller: {name}\r\n\
                     Tenure-From-Server: 00000000000000000000000000000001\r\n"
                );
                asks(server, &forged).refused(401, "unauthorized", None);
            }
        }
    }
    let marked = |name: &str| {
        let name =
            if name.is_empty() { name.to_owned() } else { format!("Tenure-Caller: {name}\r\n") };
        let server = server.leader();
        asks(
            server,
            &format!(
                "Authorization: Bearer {MARK}\r\n{name}\
                 Tenure-From-Server: 00000000000000000000000000000002\r\n"
            ),
        )
    };
    // A release without scopes sends no name: its callers have all rights.
    for whole in ["", "token-1", "token-7", "anyone"] {
        marked(whole).refused(404, "queue_not_found", None);
    }
    for other in ["view", "crawler", "nobody", "token-", "token-x", "token-metrics", "a, token-1"] {
        marked(other).refused(403, "forbidden", None);
    }
    marked("token-1\r\nTenure-Caller: token-1").refused(403, "forbidden", None);
}
