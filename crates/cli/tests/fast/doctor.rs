//! `tenure doctor` on real servers: its findings, good and bad, and how it ends.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisSentinel, RedisServer};
use tenure_testkit::tenure::{Server, fails, once, told, until};

use crate::{client, tenure};

/// Nothing here takes longer.
const LONG: Duration = Duration::from_secs(60);
const WELL: [&str; 2] = ["--maxmemory", "100mb"];

/// The exit code, stdout and stderr.
fn run(arguments: &[&str]) -> (i32, String, String) {
    told(&mut tenure(arguments))
}

/// The exit code and the one document.
fn doctor(url: &str) -> (i32, Value) {
    let (code, out, err) = run(&["--json", "doctor", url]);
    (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")))
}

/// The levels of a check, one for each primary.
fn levels<'a>(report: &'a Value, check: &str) -> Vec<&'a str> {
    let all = report["findings"].as_array().unwrap().iter();
    all.filter(|one| one["check"] == check).map(|one| one["level"].as_str().unwrap()).collect()
}

#[test]
fn a_well_configured_redis_with_two_servers_passes() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Always, &WELL);
    // Before a server has made a store, the Redis is examined all the same.
    let (code, out, err) = run(&["doctor", &redis.url()]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("ok     persistence  appendfsync always"), "{out}");
    assert!(out.contains("look   store        there is no store here"), "{out}");
    assert_eq!(redis.ask(&["DBSIZE"]).unwrap(), ":0\r\n", "it leaves nothing behind");
    let _servers = [start(&redis.url(), None), start(&redis.url(), None)];
    let report = once(LONG, "two servers", || {
        let (code, report) = doctor(&redis.url());
        let are_both = levels(&report, "server").len() == 2 && code == 0;
        if are_both { Ok(report) } else { Err(report.to_string()) }
    });
    assert_eq!((&report["ok"], &report["store"]), (&true.into(), &redis.url().into()));
    assert_eq!((levels(&report, "owner"), levels(&report, "server")), (vec!["ok"], vec!["ok"; 2]));
    assert!(found(&report, "owner").contains("leads the store, at epoch "), "{report}");
}

#[test]
fn what_is_wrong_is_exit_1_and_says_what_to_change() {
    needs_redis!();
    let server = RedisServer::start(Aof::Off, &["--maxmemory-policy", "allkeys-lru"]);
    let (code, out, err) = run(&["doctor", &server.url()]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("wrong  eviction     allkeys-lru"), "{out}");
    assert!(out.contains("-> CONFIG SET maxmemory-policy noeviction"), "{out}");
    assert!(err.starts_with("tenure: 2 things are wrong with this store\nhint: "), "{err}");
    let (code, report) = doctor(&server.url());
    assert_eq!((code, &report["ok"]), (1, &false.into()));
    for (check, level) in [("eviction", "wrong"), ("persistence", "wrong"), ("memory", "look")] {
        assert_eq!(levels(&report, check), [level], "{check}");
    }
}

#[test]
fn what_is_worth_a_look_passes() {
    needs_redis!();
    let server = RedisServer::start(Aof::Everysec, &WELL);
    let (code, out, _) = run(&["doctor", &server.url()]);
    assert_eq!(code, 0, "{out}");
    assert!(out.ends_with("nothing is wrong; see the checks marked `look`\n"), "{out}");
}

#[test]
fn a_replica_that_can_be_promoted_is_noted() {
    needs_redis!();
    let redis = RedisSentinel::start_with(Aof::Always);
    let (code, report) = doctor(&redis.url());
    assert_eq!((code, levels(&report, "replicas")), (0, vec!["look"]), "{report}");
    let (code, report) = doctor(&redis.replica().url());
    assert_eq!((code, levels(&report, "role")), (1, vec!["wrong"]), "{report}");
}

#[test]
fn the_exit_code_tells_no_answer_from_a_bad_password_or_address() {
    for (url, code) in [
        ("http://127.0.0.1:1", 69),
        ("ftp://host", 2),
        ("memory:", 2),
        ("redis://", 2),
        ("redis://127.0.0.1:1", 69),
        ("file:/no/such/folder", 1),
    ] {
        let (ended, out, err) = run(&["doctor", url]);
        assert_eq!((ended, out.as_str()), (code, ""), "{url}: {err}");
        assert!(err.starts_with("tenure: "), "{err}");
    }
    needs_redis!();
    let server = RedisServer::start(Aof::Off, &["--requirepass", "s3cret"]);
    for login in ["", ":wr0ng@"] {
        let url = format!("redis://{login}127.0.0.1:{}", server.port());
        let (ended, _, err) = run(&["doctor", &url]);
        assert_eq!(ended, 77, "{err}");
        assert!(!err.contains("wr0ng"), "{err}");
    }
}

fn start(store: &str, token: Option<&str>) -> Server {
    let mut command = tenure(&["serve", "--listen", "127.0.0.1:0", "--store", store]);
    Server::start(with(token, &mut command), LONG)
}

fn with<'c>(token: Option<&str>, command: &'c mut Command) -> &'c mut Command {
    command.envs(token.map(|token| ("TENURE_TOKEN", token)))
}

/// The exit code, stdout and stderr of a command on a server.
fn on(server: &Server, arguments: &[&str], token: Option<&str>) -> (i32, String, String) {
    let mut command = client(&server.url(), arguments);
    told(with(token, &mut command).env("COLUMNS", "100"))
}

fn examined(server: &Server, token: Option<&str>) -> (i32, Value) {
    let (code, out, err) = on(server, &["--json", "doctor"], token);
    (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")))
}

fn found<'a>(report: &'a Value, check: &str) -> &'a str {
    let all = report["findings"].as_array().unwrap();
    let one = all.iter().find(|one| one["check"] == check);
    one.unwrap_or_else(|| panic!("{check} is not in {report}"))["found"].as_str().unwrap()
}

/// The checks about the work in a store.
const CHECKS: [&str; 7] =
    ["workers", "oldest", "queues", "limits", "pools", "schedules", "failures"];

#[test]
fn doctor_without_an_address_examines_the_server_and_its_queues() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("file:{}", folder.path().display());
    let server = start(&store, None);
    let (code, out, err) = on(&server, &["doctor"], None);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for check in CHECKS.into_iter().chain(["version", "clock", "token", "ready", "store", "audit"])
    {
        assert!(out.contains(&format!("  {check} ")), "{check}: {out}");
    }
    let (code, report) = examined(&server, None);
    assert_eq!((code, &report["ok"], &report["store"]), (0, &true.into(), &server.url().into()));
    assert!(found(&report, "version").contains("contract 1"), "{report}");
    for check in CHECKS.into_iter().chain(["version", "clock", "token", "ready", "store", "audit"])
    {
        assert_eq!(levels(&report, check), ["ok"], "{report}");
    }
    // Its folder is on this machine.
    if cfg!(target_os = "linux") {
        assert!(found(&report, "sync").contains(" ms"), "{report}");
        assert!(found(&report, "room").contains(" free on its disk"), "{report}");
        let (code, folder) = doctor(&store);
        assert_eq!(code, 0, "{folder}");
        let pid = server.id().to_string();
        assert!(found(&folder, "open").contains(&format!("process {pid} (tenure)")), "{folder}");
    }
    on(&server, &["push", "mail", "1"], None);
    on(&server, &["push", "mail", "1"], None);
    let (code, report) = examined(&server, None);
    assert_eq!((code, levels(&report, "workers")), (0, vec!["look"]), "{report}");
    let said = found(&report, "workers");
    assert!(
        said.starts_with("queue 'mail' has no worker: 2 wait, the oldest ready for "),
        "{said}"
    );
    let (_, out, _) = on(&server, &["doctor"], None);
    assert!(out.contains("-> start a worker: tenure work mail -- CMD"), "{out}");
}

#[test]
fn a_token_that_is_not_the_servers_is_wrong() {
    let right = "a token of thirty-two characters.";
    let server = start("memory:", Some(right));
    for (token, code, level) in
        [(None, 1, "wrong"), (Some("another"), 1, "wrong"), (Some(right), 0, "ok")]
    {
        let (ended, report) = examined(&server, token);
        assert_eq!((ended, levels(&report, "token")), (code, vec![level]), "{report}");
        assert!(!report.to_string().contains(right), "{report}");
    }
}

#[test]
fn a_server_whose_store_is_away_is_not_told_to_be_started() {
    needs_redis!();
    let mut redis = RedisServer::start(Aof::Always, &WELL);
    let server = start(&redis.url(), None);
    let is_well = || on(&server, &["stats"], None).0 == 0;
    until(LONG, "the server to reach its Redis", is_well);
    redis.kill();
    // Nobody knows if a call that was made before the server knew has happened.
    until(LONG, "the server to find out", || !is_well());
    let (code, _, err) = on(&server, &["push", "mail", "1"], None);
    assert_eq!(code, 69, "{err}");
    assert!(!err.contains("is it running?"), "{err}");
    assert!(err.contains("answers, but the store cannot be reached"), "{err}");
    assert!(err.contains("but its store does not answer"), "{err}");
    let (code, report) = examined(&server, None);
    assert_eq!(code, 1, "{report}");
    assert!(!report["ok"].as_bool().unwrap(), "{report}");
    // No server at all is another matter.
    let url = server.url();
    drop(server);
    fails(69, &mut tenure(&["--url", &url, "stats"]), "`tenure serve` starts a server");
}
