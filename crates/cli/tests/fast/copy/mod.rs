//! `tenure copy`: a folder to a Redis and back, by the command alone.

pub mod shared;

use serde_json::Value;
use tenure_testkit::redis::{Aof, RedisServer};
use tenure_testkit::tenure::{fails, told};
use tenure_testkit::{TempDir, needs_redis};

use crate::{client, tenure};

use shared::{start, stop, until};

/// The exit code, stdout and stderr.
pub fn run(url: &str, arguments: &[&str]) -> (i32, String, String) {
    told(&mut client(url, arguments))
}

/// stdout of a command that must end well.
#[track_caller]
pub fn done(url: &str, arguments: &[&str]) -> String {
    tenure_testkit::tenure::done(&mut client(url, arguments))
}

pub fn answer(url: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&done(url, &[&["--json"], arguments].concat())).unwrap()
}

/// `tenure copy …`: the exit code, stdout and stderr.
fn copy(arguments: &[&str]) -> (i32, String, String) {
    told(tenure(&["copy"]).args(arguments))
}

/// `tenure copy …`, which must end with this exit code, and say this on stderr.
#[track_caller]
fn copy_fails(code: i32, arguments: &[&str], part: &str) {
    fails(code, tenure(&["copy"]).args(arguments), part);
}

pub fn folder(dir: &TempDir, name: &str) -> String {
    format!("file:{}", dir.join(name).display())
}

#[test]
fn a_used_target_is_refused_and_a_paused_source_can_be_thawed() {
    needs_redis!();
    let (dir, server) = (TempDir::new(), RedisServer::start(Aof::Off, &[]));
    let (first, redis) = (folder(&dir, "first"), server.url());
    done(&first, &["push", "mail", "1"]);
    let used = start(&redis);
    until(&used, 0, &["push", "mail", "2"], "");
    stop(used);
    copy_fails(1, &["--from", &first, "--to", &redis], "not empty");
    done(&first, &["push", "mail", "3"]);

    let third = folder(&dir, "third");
    assert_eq!(copy(&["--from", &first, "--to", &third]).0, 0);
    copy_fails(1, &["--thaw", "--from", &first], "--force");
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
        (&["--from", "http://127.0.0.1:1", "--to", &other], 2, "this is a server, not a store"),
        (&["--from", &other, "--to", "memory:"], 2, "in memory ends with"),
        (&["--from", &other, "--to", &other], 2, "the same store"),
        (&["--thaw"], 2, "needs a store"),
        (&["--thaw", "--from", &none, "--to", &other], 2, "one store"),
        (&["--force", "--from", &none], 2, "--thaw"),
        (&["--from", &none, "--to", &other], 69, "there is no store"),
        (&["--thaw", "--from", &none], 69, "there is no store"),
        (&["--thaw", "--to", &other], 69, "there is no store"),
    ] {
        copy_fails(code, arguments, part);
    }
    assert!(!dir.join("other").exists(), "nothing was made for it");
}
