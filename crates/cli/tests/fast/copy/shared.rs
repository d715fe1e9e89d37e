//! A store that servers share: copied from and to by the command, refused while they use it, and paused for them meanwhile.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::TempDir;
use tenure_testkit::redis::{Aof, RedisServer, wanted};
use tenure_testkit::tenure::{Server, fails, once};

use crate::copy::{answer, copy, copy_fails, done, folder, run};
use crate::{client, tenure};

pub const LONG: Duration = Duration::from_secs(60);

pub fn start(store: &str) -> Server {
    Server::start(&mut tenure(&["serve", "--listen", "127.0.0.1:0", "--store", store]), LONG)
}

/// Ends it as an operator would.
pub fn stop(server: Server) {
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}

/// Waits until a command on this server ends with this code, and answers what it said.
pub fn until(server: &Server, code: i32, arguments: &[&str], part: &str) -> String {
    once(LONG, &format!("{arguments:?}"), || {
        let (ended, out, err) = run(&server.url(), arguments);
        let is_so = ended == code && err.contains(part);
        if is_so { Ok(out) } else { Err(format!("{ended} {out}{err}")) }
    })
}

/// A Redis with a password, and the address of a store in it that servers share.
fn redis() -> Option<(RedisServer, String)> {
    let redis = wanted().then(|| RedisServer::start(Aof::Off, &["--requirepass", "geheim"]))?;
    let url = format!("redis://:geheim@127.0.0.1:{}", redis.port());
    Some((redis, url))
}

#[test]
fn a_copy_of_a_shared_store_needs_stopped_servers_and_pauses_it() {
    let Some((_redis, shared)) = redis() else { return };
    let dir = TempDir::new();
    let (first, back) = (folder(&dir, "first"), folder(&dir, "back"));
    done(&first, &["push", "mail", r#"{"to":"ann"}"#, "--id", "j1", "--need", "limit:lock:a"]);
    done(&first, &["pool", "add", "accounts", "13800", "--data", r#"{"password":"topf"}"#]);
    let (code, out, err) = copy(&["--from", &first, "--to", &shared, "--json"]);
    assert_eq!(code, 0, "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let moved = json!({
        "queues": 1, "limits": 0, "pools": 1, "resources": 1, "unfinished": 1, "finished": 0,
        "released": 0, "schedules": 0,
    });
    assert_eq!(
        (&report["moved"], &report["namespaces"]),
        (&moved, &json!(["default"])),
        "{report}"
    );
    assert!(err.contains("is paused") && err.contains("--thaw --force"), "{err}");
    assert!(!format!("{out}{err}").contains("geheim") && !out.contains("topf"), "{out}{err}");
    // What was copied is paused, and says where to go.
    fails(69, &mut client(&first, &["stats"]), "was copied to redis://•••@127.0.0.1");
    // Again: it was done.
    let (code, out, err) = copy(&["--from", &first, "--to", &shared]);
    assert!(code == 0 && out.contains("already"), "{out}{err}");

    let server = start(&shared);
    let job: Value =
        serde_json::from_str(&until(&server, 0, &["--json", "job", "j1"], "")).unwrap();
    assert_eq!(job["payload"], json!({"to": "ann"}));
    let (code, _, err) = copy(&["--from", &shared, "--to", &back]);
    assert_eq!(code, 69, "{err}");
    assert!(err.contains(&server.url()) && err.contains("stop"), "{err}");
    // Nothing was made or paused for it.
    assert!(!dir.join("back").exists());
    done(&server.url(), &["push", "mail", "2"]);
    stop(server);
    let (code, out, err) = copy(&["--from", &shared, "--to", &back]);
    assert!(code == 0 && out.contains("2 unfinished and 0 finished jobs"), "{out}{err}");

    // A server that comes later does not take the store, and says why.
    let server = start(&shared);
    until(&server, 69, &["push", "mail"], "was copied to file:");
    copy_fails(1, &["--thaw", "--from", &shared], "--force");
    // It goes on by itself once the store is thawed.
    let (code, out, err) = copy(&["--thaw", "--force", "--from", &shared]);
    assert!(code == 0 && out.contains("is served again"), "{out}{err}");
    until(&server, 0, &["push", "mail", "3"], "");
    let data = ["sh", "-c", "printf %s \"$TENURE_RESOURCE_PASSWORD\""];
    let held = done(&back, &[&["lease", "--need", "pool:accounts", "--"][..], &data].concat());
    assert_eq!(held, "topf");
}

/// A folder with `jobs` jobs.
fn filled(dir: &TempDir, jobs: usize) -> String {
    let first = folder(dir, "first");
    let lines: String =
        (0..jobs).map(|n| format!("{{\"id\":\"j{n}\",\"payload\":{n}}}\n")).collect();
    let list = dir.join("jobs");
    std::fs::write(&list, lines).unwrap();
    done(&first, &["push", "mail", "--lines", list.to_str().unwrap()]);
    first
}

/// `tenure copy`, which ends by SIGKILL once this is so; `None` if it ends sooner.
fn killed(from: &str, to: &str, is_time: impl Fn(Instant) -> bool) -> Option<()> {
    let mut copy = tenure(&["copy", "--from", from, "--to", to]);
    copy.stdout(Stdio::null()).stderr(Stdio::null());
    let mut copy = copy.spawn().unwrap();
    let begun = Instant::now();
    while !is_time(begun) {
        if let Some(ended) = copy.try_wait().unwrap() {
            assert!(ended.success(), "{from} to {to}: {ended}");
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    copy.kill().unwrap();
    copy.wait().unwrap();
    Some(())
}

#[test]
fn a_server_refuses_a_partial_copy_until_it_is_given_up() {
    let Some((redis, shared)) = redis() else { return };
    let dir = TempDir::new();
    let first = filled(&dir, 5_000);
    let is_marked = |_| redis.must(&["HEXISTS", "{tenure}:store", "copy"]).text() == "1";
    killed(&first, &shared, is_marked).unwrap();
    let server = start(&shared);
    until(&server, 69, &["push", "mail"], "unfinished copy");
    let (code, out, err) = copy(&["--thaw", "--to", &shared]);
    assert!(code == 0 && out.contains("holds no copy now"), "{out}{err}");
    until(&server, 0, &["push", "mail", "2"], "");
    let (code, _, err) = copy(&["--thaw", "--from", &first]);
    assert_eq!(code, 0, "{err}");
    done(&first, &["stats"]);
}

#[test]
fn a_copy_killed_again_and_again_resumes_until_it_is_whole() {
    let Some((_redis, shared)) = redis() else { return };
    const JOBS: usize = 3_000;
    let dir = TempDir::new();
    let (first, back) = (filled(&dir, JOBS), folder(&dir, "back"));
    // An empty store is there, so no copy is killed while a folder is made.
    done(&back, &["stats"]);
    for (from, to) in [(&first, &shared), (&shared, &back)] {
        // Each try lives a little longer than the one before.
        let (mut lives, mut kills) = (Duration::from_millis(5), 0);
        while killed(from, to, |begun| begun.elapsed() > lives).is_some() {
            kills += 1;
            lives += lives / 4 + Duration::from_millis(1);
        }
        assert!(kills > 3, "{kills}");
    }
    assert_eq!(answer(&back, &["queue", "mail"])["counts"]["ready"], json!(JOBS));
    assert_eq!(answer(&back, &["audit"])["ok"], json!(true));
}
