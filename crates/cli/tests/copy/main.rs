//! `tenure copy`: a folder to a Redis and back, by the command alone.

// A test that cannot even start the command is to fail loudly.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tenure_testkit::TempDir;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

fn tenure(url: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for name in ["TENURE_STORE", "TENURE_NAMESPACE", "TENURE_TOKEN", "TENURE_URL"] {
        command.env_remove(name);
    }
    if let Some(url) = url {
        command.env("TENURE_URL", url);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The exit code, stdout and stderr.
fn ended(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn run(url: &str, arguments: &[&str]) -> (i32, String, String) {
    ended(tenure(Some(url)).args(arguments))
}

/// stdout of a command that must end well.
fn done(url: &str, arguments: &[&str]) -> String {
    let (code, out, err) = run(url, arguments);
    assert_eq!(code, 0, "{arguments:?}: {out}{err}");
    out
}

fn answer(url: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&done(url, &[&["--json"], arguments].concat())).unwrap()
}

/// `tenure copy …`: the exit code, stdout and stderr.
fn copy(arguments: &[&str]) -> (i32, String, String) {
    ended(tenure(None).arg("copy").args(arguments))
}

fn folder(dir: &TempDir, name: &str) -> String {
    format!("file:{}", dir.join(name).display())
}

#[test]
fn a_store_goes_to_redis_and_back_and_says_so() {
    if !wanted() {
        return;
    }
    let (dir, server) =
        (TempDir::new(), RedisServer::start(Aof::Off, &["--requirepass", "geheim"]));
    let (first, back) = (folder(&dir, "first"), folder(&dir, "back"));
    let redis = format!("redis://:geheim@127.0.0.1:{}", server.port());
    done(&first, &["push", "mail", r#"{"to":"ann"}"#, "--id", "j1", "--need", "limit:lock:a"]);
    done(&first, &["pool", "add", "accounts", "13800", "--data", r#"{"password":"topf"}"#]);

    let (code, out, err) = copy(&["--from", &first, "--to", &redis, "--json"]);
    assert_eq!(code, 0, "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let moved = json!({
        "queues": 1, "limits": 0, "pools": 1, "resources": 1, "unfinished": 1, "finished": 0,
        "released": 0, "schedules": 0,
    });
    assert_eq!(report["moved"], moved, "{report}");
    assert_eq!(report["namespaces"], json!(["default"]));
    assert!(err.contains("is paused") && err.contains("--thaw --force"), "{err}");
    assert!(!format!("{out}{err}").contains("geheim") && !out.contains("topf"), "{out}{err}");

    // What was copied is paused, and says where to go.
    let (code, _, err) = run(&first, &["stats"]);
    assert_eq!(code, 69, "{err}");
    assert!(err.contains("was copied to redis://•••@127.0.0.1"), "{err}");
    // What it became works.
    assert_eq!(answer(&redis, &["job", "j1"])["payload"], json!({"to": "ann"}));
    assert_eq!(answer(&redis, &["audit"])["ok"], json!(true));

    let (code, out, err) = copy(&["--from", &redis, "--to", &back]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("1 unfinished and 0 finished jobs"), "{out}");
    let (code, _, err) = run(&redis, &["push", "mail"]);
    assert_eq!(code, 69, "{err}");
    assert!(err.contains("tenure copy --thaw"), "{err}");
    let data = ["sh", "-c", "printf %s \"$TENURE_RESOURCE_PASSWORD\""];
    let held = done(&back, &[&["lease", "--need", "pool:accounts", "--"][..], &data].concat());
    assert_eq!(held, "topf");
}

#[test]
fn what_must_not_be_copied_is_refused_and_what_is_paused_is_thawed() {
    if !wanted() {
        return;
    }
    let (dir, server) = (TempDir::new(), RedisServer::start(Aof::Off, &[]));
    let (first, redis) = (folder(&dir, "first"), server.url());
    done(&first, &["push", "mail", "1"]);
    done(&redis, &["push", "mail", "2"]);
    let (code, _, err) = copy(&["--from", &first, "--to", &redis]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("not empty"), "{err}");
    done(&first, &["push", "mail", "3"]);

    let third = folder(&dir, "third");
    assert_eq!(copy(&["--from", &first, "--to", &third]).0, 0);
    let (code, _, err) = copy(&["--thaw", "--from", &first]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("--force"), "{err}");
    let (code, out, err) = copy(&["--thaw", "--force", "--from", &first]);
    assert_eq!((code, out.contains("is served again")), (0, true), "{err}");
    done(&first, &["stats"]);
    // A whole copy is nothing to give up.
    assert_eq!(copy(&["--thaw", "--to", &third]).0, 1);
    done(&third, &["stats"]);
}

#[test]
fn what_is_wrongly_said_is_usage_and_what_is_not_there_is_said() {
    let dir = TempDir::new();
    let (none, other) = (folder(&dir, "none"), folder(&dir, "other"));
    for (arguments, code, part) in [
        (&["--from", &none][..], 2, "needs --from and --to"),
        (&["--from", "http://127.0.0.1:1", "--to", &other], 2, "a server is no store"),
        (&["--from", &other, "--to", "memory:"], 2, "in memory is gone"),
        (&["--from", &other, "--to", &other], 2, "the same store"),
        (&["--thaw"], 2, "of what"),
        (&["--thaw", "--from", &none, "--to", &other], 2, "one store"),
        (&["--force", "--from", &none], 2, "--thaw"),
        (&["--from", &none, "--to", &other], 69, "there is no store"),
        (&["--thaw", "--from", &none], 69, "there is no store"),
        (&["--thaw", "--to", &other], 69, "there is no store"),
    ] {
        let (ended, _, err) = copy(arguments);
        assert_eq!(ended, code, "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
    assert!(!dir.join("other").exists(), "nothing was made for it");
}
