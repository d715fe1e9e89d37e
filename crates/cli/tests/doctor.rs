//! `tenure doctor` on real servers: what is well, what is wrong, and how it ends.

// A test that cannot even start the command is to fail loudly.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

use serde_json::Value;
use tenure_testkit::redis::{Aof, RedisCluster, RedisSentinel, RedisServer, wanted};

const WELL: [&str; 2] = ["--maxmemory", "100mb"];

/// The exit code, stdout and stderr.
fn tenure(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for name in ["TENURE_URL", "TENURE_NAMESPACE", "TENURE_TOKEN"] {
        command.env_remove(name);
    }
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The exit code and the one document.
fn doctor(url: &str) -> (i32, Value) {
    let (code, out, err) = tenure(&["--json", "doctor", url]);
    (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")))
}

/// The levels of a check, one for each primary.
fn levels<'a>(report: &'a Value, check: &str) -> Vec<&'a str> {
    let all = report["findings"].as_array().unwrap().iter();
    all.filter(|one| one["check"] == check).map(|one| one["level"].as_str().unwrap()).collect()
}

#[test]
fn a_server_that_is_set_up_well_passes() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Always, &WELL);
    let (code, out, err) = tenure(&["doctor", &server.url()]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("ok     persistence  appendfsync always"), "{out}");
    assert!(out.ends_with("all is well\n"), "{out}");
    let (code, report) = doctor(&server.url());
    assert_eq!((code, &report["ok"]), (0, &true.into()));
    assert_eq!(report["store"], server.url());
    for finding in report["findings"].as_array().unwrap() {
        assert_eq!(finding["level"], "ok", "{finding}");
    }
    // It left nothing behind.
    assert_eq!(server.ask(&["FUNCTION", "LIST"]).unwrap(), "*0\r\n");
    assert_eq!(server.ask(&["DBSIZE"]).unwrap(), ":0\r\n");
}

#[test]
fn what_is_wrong_is_exit_1_and_says_what_to_change() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &["--maxmemory-policy", "allkeys-lru"]);
    let (code, out, err) = tenure(&["doctor", &server.url()]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("WRONG  eviction     allkeys-lru"), "{out}");
    assert!(out.contains("-> CONFIG SET maxmemory-policy noeviction"), "{out}");
    assert!(err.starts_with("tenure: 2 things are wrong with this Redis\nhint: "), "{err}");
    let (code, report) = doctor(&server.url());
    assert_eq!((code, &report["ok"]), (1, &false.into()));
    for (check, level) in [("eviction", "wrong"), ("persistence", "wrong"), ("memory", "note")] {
        assert_eq!(levels(&report, check), [level], "{check}");
    }
}

#[test]
fn notes_alone_pass() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Everysec, &WELL);
    let (code, out, _) = tenure(&["doctor", &server.url()]);
    assert_eq!(code, 0, "{out}");
    assert!(out.ends_with("all is well; the notes say what each choice costs\n"), "{out}");
}

#[test]
fn what_a_user_may_not_ask_is_said_and_functions_that_may_not_be_loaded_are_wrong() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Always, &WELL);
    let rights = ["+@all", "-config", "-function"];
    server.must(&[&["ACL", "SETUSER", "app", "on", ">s3cret", "~*", "&*"], &rights[..]].concat());
    let url = format!("redis://app:s3cret@127.0.0.1:{}", server.port());
    let (code, report) = doctor(&url);
    assert_eq!(code, 1);
    assert_eq!(levels(&report, "persistence"), ["note"]);
    assert_eq!(levels(&report, "functions"), ["wrong"]);
    assert!(!report.to_string().contains("s3cret"), "{report}");

    // The operator loads the library; then the user needs no such right.
    let (_, library, _) = tenure(&["redis", "print-library"]);
    server.must(&["FUNCTION", "LOAD", &library]);
    let (code, report) = doctor(&url);
    assert_eq!((code, levels(&report, "functions")), (0, vec!["ok"]), "{report}");
}

#[test]
fn the_printed_library_is_named_and_digested_for_programs() {
    let (code, text, _) = tenure(&["redis", "print-library"]);
    assert_eq!(code, 0);
    let (_, out, _) = tenure(&["--json", "redis", "print-library"]);
    let printed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(printed["text"], text);
    let head = format!("#!lua name={}\n", printed["name"].as_str().unwrap());
    assert!(text.starts_with(&head), "{head}");
    assert!(text.contains(printed["fingerprint"].as_str().unwrap()));
}

#[test]
fn a_slot_that_moves_is_wrong_until_it_has_moved() {
    if !wanted() {
        return;
    }
    let cluster = RedisCluster::start_with(2, Aof::Always);
    let (code, report) = doctor(&cluster.url());
    assert_eq!(levels(&report, "slots"), ["ok", "ok"], "{report}");
    assert_eq!((code, levels(&report, "role")), (0, vec!["ok", "ok"]));
    let half = cluster.begin_move(0, 0, 1);
    let (code, report) = doctor(&cluster.url());
    assert_eq!((code, levels(&report, "slots")), (1, vec!["wrong", "wrong"]), "{report}");
    cluster.finish_move(half);
    let (code, report) = doctor(&cluster.url());
    assert_eq!((code, levels(&report, "slots")), (0, vec!["ok", "ok"]), "{report}");
    // The address of one node alone is not that of the cluster.
    let (code, report) = doctor(&cluster.server(0).url());
    assert_eq!((code, levels(&report, "role")), (1, vec!["wrong"]), "{report}");
}

#[test]
fn a_replica_that_can_be_promoted_is_noted() {
    if !wanted() {
        return;
    }
    let redis = RedisSentinel::start_with(Aof::Always);
    let (code, report) = doctor(&redis.url());
    assert_eq!((code, levels(&report, "replicas")), (0, vec!["note"]), "{report}");
    let (code, report) = doctor(&redis.replica().url());
    assert_eq!((code, levels(&report, "role")), (1, vec!["wrong"]), "{report}");
}

#[test]
fn who_does_not_answer_is_69_a_wrong_password_77_and_no_redis_2() {
    for (url, code) in [("http://127.0.0.1:7171", 2), ("redis://", 2), ("redis://127.0.0.1:1", 69)]
    {
        let (ended, out, err) = tenure(&["doctor", url]);
        assert_eq!((ended, out.as_str()), (code, ""), "{url}: {err}");
        assert!(err.starts_with("tenure: "), "{err}");
    }
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &["--requirepass", "s3cret"]);
    for login in ["", ":wr0ng@"] {
        let url = format!("redis://{login}127.0.0.1:{}", server.port());
        let (ended, _, err) = tenure(&["doctor", &url]);
        assert_eq!(ended, 77, "{err}");
        assert!(!err.contains("wr0ng"), "{err}");
    }
}

#[test]
fn in_a_cluster_the_commands_of_a_cluster_are_what_to_permit() {
    if !wanted() {
        return;
    }
    let cluster = RedisCluster::start_with(2, Aof::Always);
    let each = |rules: &[&str]| {
        (0..2).for_each(|node| {
            cluster.server(node).must(&[&["ACL", "SETUSER", "u"], rules].concat());
        });
    };
    each(&["on", ">pw", "~*", "&*", "+@all", "-spublish", "-ssubscribe"]);
    let url = format!("redis-cluster://u:pw@127.0.0.1:{}", cluster.server(0).port());
    let (code, report) = doctor(&url);
    // Either node is asked to publish, and the one that has the namespace is listened to.
    assert_eq!((code, levels(&report, "publish")), (1, vec!["wrong", "wrong"]), "{report}");
    assert_eq!(levels(&report, "subscribe"), ["wrong"], "{report}");
    let fixes = report.to_string();
    assert!(fixes.contains("+spublish '&tenure:*'"), "{report}");
    assert!(fixes.contains("+ssubscribe +sunsubscribe +ping"), "{report}");
    // What nobody needs in a cluster may be denied.
    each(&["+spublish", "+ssubscribe", "-publish", "-subscribe"]);
    let (code, report) = doctor(&url);
    assert_eq!(code, 0, "{report}");
}

#[test]
fn a_user_who_may_not_publish_or_listen_is_told_what_to_permit() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Always, &WELL);
    let rules = ["ACL", "SETUSER", "u", "on", ">pw", "~*", "+@all", "resetchannels"];
    server.must(&rules);
    let (code, report) = doctor(&format!("redis://u:pw@127.0.0.1:{}", server.port()));
    assert_eq!(code, 1, "{report}");
    for check in ["publish", "subscribe"] {
        assert_eq!(levels(&report, check), ["wrong"], "{check}");
    }
    let all = report["findings"].as_array().unwrap();
    let publish = all.iter().find(|one| one["check"] == "publish").unwrap();
    assert!(publish["found"].as_str().unwrap().contains("\"tenure:{default}t:\""), "{publish}");
    assert_eq!(publish["fix"], "ACL SETUSER NAME +publish '&tenure:*'");
    server.must(&["ACL", "SETUSER", "u", "&tenure:*"]);
    let (code, report) = doctor(&format!("redis://u:pw@127.0.0.1:{}", server.port()));
    assert_eq!(code, 0, "{report}");
}
