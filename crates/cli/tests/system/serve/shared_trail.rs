//! The trails of two servers that share a store in Redis: a change has one line, at the server that ran it, with the
//! caller whom the other server knows.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;
use tenure_server::token_hash;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use super::shared::owner_by;
use super::{Server, end, start_with};
use crate::{OWN_FORM, logged_in};

fn token(name: &str) -> String {
    format!("tnr_{name}_of-more-than-thirty-two-characters")
}

/// A file with a token for each of these names and scopes.
fn tokens(path: &Path, all: &[(&str, &[&str])]) {
    let one = |(name, scopes): &(&str, &[&str])| {
        let hash: String =
            token_hash(token(name).as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "[[token]]\nname = \"{name}\"\nsha256 = \"{hash}\"\nscopes = {scopes:?}\nnamespaces = [\"*\"]\n"
        )
    };
    fs::write(path, all.iter().map(one).collect::<String>()).unwrap();
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

/// Calls the API with the token of this name.
fn api(server: &Server, name: &str, call: &str, body: &str) -> String {
    server.exchange(&format!("{call} WITH Authorization: Bearer {}", token(name)), body)
}

/// Sends a form in a session of the token of this name.
fn form(server: &Server, name: &str, path: &str, fields: &str) -> String {
    let cookie = logged_in(server, &token(name));
    server.exchange(&format!("POST {path} WITH {OWN_FORM}\r\nCookie: {cookie}"), fields)
}

/// The place of the server that leads the store, once the other one knows it.
fn leader(servers: &[Server]) -> usize {
    owner_by(servers, |server| api(server, "ann", "GET /readyz", ""))
}

/// The lines about a limit in a trail: caller, way, status, and the new concurrency.
fn about_site(folder: &Path) -> Vec<(String, String, u64, u64)> {
    let (code, why) = end(&["trail", "verify", folder.to_str().unwrap()], None);
    assert_eq!(code, Some(0), "{why}");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some());
    let text: String = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let about = lines.filter(|line| line["targets"][0] == "limit:site");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |line: Value| {
        let new = line["changed"]["concurrency"]["new"].as_u64().unwrap_or_default();
        let status = line["status"].as_u64().unwrap_or_default();
        (word(&line["caller"]), word(&line["via"]), status, new)
    };
    about.map(one).collect()
}

/// The callers of the changes of limits, in the order of their events.
fn in_events(server: &Server) -> Vec<String> {
    let answer = api(server, "ann", "GET /v1/events?since=first&type=limit.changed", "");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let read: Value = serde_json::from_str(body).unwrap_or_else(|why| panic!("{why}: {answer}"));
    let items = read["items"].as_array().unwrap();
    items.iter().map(|event| event["by"].as_str().unwrap_or("nobody").to_owned()).collect()
}

fn line(caller: &str, via: &str, new: u64) -> (String, String, u64, u64) {
    (caller.to_owned(), via.to_owned(), 200, new)
}

#[test]
fn a_change_has_one_line_whichever_server_is_asked() {
    let Some(redis) = wanted().then(|| RedisServer::start(Aof::Off, &[])) else { return };
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("tokens.toml");
    let all: &[&str] = &["view", "admin", "operate"];
    tokens(&file, &[("ann", all), ("bob", all), ("eve", &["view"])]);
    let start = |name: &str| {
        let trail = home.path().join(name);
        let (trail, file) = (trail.to_str().unwrap(), file.to_str().unwrap());
        start_with(&redis.url(), &["--trail", trail, "--tokens", file], None)
    };
    let mut servers = vec![start("0"), start("1")];
    let leads = leader(&servers);
    let [of_leader, of_other] = [leads, 1 - leads].map(|place| home.path().join(place.to_string()));
    let other = &servers[1 - leads];
    let set = |server: &Server, name: &str, n: u64| {
        let answer = form(server, name, "/limits/site/set", &format!("concurrency={n}"));
        status(&answer).to_owned()
    };
    assert_eq!(set(other, "ann", 3), "303");
    assert_eq!(set(&servers[leads], "bob", 4), "303");
    let patch = r#"{"concurrency": 5}"#;
    assert_eq!(status(&api(other, "bob", "PATCH /v1/limits/site", patch)), "200");
    assert_eq!(set(other, "eve", 6), "403");
    let led = [line("ann", "server", 3), line("bob", "page", 4), line("bob", "server", 5)];
    assert_eq!(about_site(&of_leader), led);
    assert!(about_site(&of_other).is_empty(), "the leader has the lines");
    for server in &servers {
        assert_eq!(in_events(server), ["ann", "bob", "bob"], "each server has the events");
    }
    // The page of the leader shows them, with the hash of the last line in its totals.
    let stats = api(other, "ann", "GET /v1/stats", "");
    assert!(stats.contains("\"hash\":"), "{stats}");

    let killed = servers.remove(leads);
    killed.signal(Signal::SIGKILL);
    killed.ended();
    // On a busy machine a form might not wait for as long as nobody leads.
    leader(&servers);
    assert_eq!(set(&servers[0], "ann", 7), "303");
    assert_eq!(about_site(&of_leader), led, "no line is lost, and the chain is whole");
    assert_eq!(about_site(&of_other), [line("ann", "page", 7)]);
    assert_eq!(in_events(&servers[0]), ["ann", "bob", "bob", "ann"]);
}
