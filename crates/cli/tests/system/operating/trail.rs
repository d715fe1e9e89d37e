//! The trail of a server that is started as operators start it: it survives a kill, and its files are checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tenure_testkit::tenure::{asked, done, fails, once, until};

use crate::operating::{SOON, Server, serving, start, tenure, told};

/// Rounds of a server that is killed, and changes of each.
const ROUNDS: usize = 4;
const CHANGES: usize = 150;

pub fn serve(home: &Path, more: &[&str]) -> Server {
    let store = format!("file:{}", home.join("data").display());
    start(serving(home, &[&["--store", &store], more].concat()))
}

/// The status of a change, unless the server is gone.
pub fn set_limit(at: &str, name: &str) -> Option<u16> {
    let body = json!({"concurrency": 1});
    asked(at, SOON, &format!("PUT /v1/limits/{name}"), &body).ok().map(|(status, _)| status)
}

/// All lines in the files of a trail.
pub fn lines(folder: &Path) -> Vec<Value> {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let text: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The ways in which `tenure` ends.
pub fn ends(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    told(&mut tenure(home, arguments))
}

#[test]
fn a_killed_server_loses_no_line_of_a_change_that_it_answered() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("data/trail");
    let answered = Mutex::new(BTreeSet::new());
    for round in 0..ROUNDS {
        let server = serve(home.path(), &[]);
        let count = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for caller in 0..3 {
                let (server, count, answered) = (&server, &count, &answered);
                scope.spawn(move || {
                    for n in 0.. {
                        let name = format!("l-{round}-{caller}-{n}");
                        match set_limit(&server.at, &name) {
                            Some(201) => {
                                answered.lock().unwrap().insert(format!("limit:{name}"));
                                count.fetch_add(1, Ordering::Relaxed);
                            }
                            Some(other) => panic!("{name}: {other}"),
                            None => return,
                        }
                    }
                });
            }
            until(SOON, "changes", || count.load(Ordering::Relaxed) >= CHANGES);
            server.signal(Signal::SIGKILL);
        });
        done(&mut tenure(home.path(), &["trail", "verify", folder.to_str().unwrap()]));
    }
    // The next start goes on behind the last line.
    let (code, log) = serve(home.path(), &[]).stop();
    assert_eq!(code, Some(0), "{log}");
    let verify = ["--json", "trail", "verify", folder.to_str().unwrap()];
    let out = done(&mut tenure(home.path(), &verify));
    let verified: Value = serde_json::from_str(&out).unwrap();
    let lines = lines(&folder);
    assert_eq!(verified["lines"], lines.len());
    let of = |op: &str| lines.iter().filter(|line| line["op"] == op).collect::<Vec<_>>();
    let told: BTreeSet<String> = of("put_limit")
        .into_iter()
        .filter(|line| line["status"] == 200)
        .map(|line| line["targets"][0].as_str().unwrap().to_owned())
        .collect();
    let answered = answered.into_inner().unwrap();
    let missing: Vec<_> = answered.difference(&told).collect();
    assert!(answered.len() >= ROUNDS * CHANGES && missing.is_empty(), "{missing:?}");
    assert_eq!(of("server_started").len(), ROUNDS + 1);
    assert_eq!(of("server_stopped").len(), 1);
}

#[test]
fn a_changed_line_is_found_by_the_command() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("data/trail");
    let shown = folder.to_str().unwrap();
    let server = serve(home.path(), &[]);
    for n in 0..3 {
        assert_eq!(set_limit(&server.at, &format!("l{n}")), Some(201));
    }
    let (code, log) = server.stop();
    assert_eq!(code, Some(0));
    // The log has the hash of the last line: nobody can cut lines off the end unseen.
    let anchor = log.rsplit("\"hash\":\"").next().unwrap().split('"').next().unwrap();
    assert_eq!(ends(home.path(), &["trail", "verify", shown, "--anchor", anchor]).0, 0, "{log}");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.into_iter().find(|file| file.extension().is_some()).unwrap();
    let whole = fs::read_to_string(&file).unwrap();
    let cut: String = whole.lines().take(3).map(|line| format!("{line}\n")).collect();
    fs::write(&file, cut).unwrap();
    assert_eq!(ends(home.path(), &["trail", "verify", shown]).0, 0);
    let verify = ["trail", "verify", shown, "--anchor", anchor];
    fails(1, &mut tenure(home.path(), &verify), "lines are missing at the end");
    fs::write(&file, whole.replacen("limit:l0", "limit:l9", 1)).unwrap();
    let (code, _, why) = ends(home.path(), &["trail", "verify", shown]);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(code == 1 && why.contains(&format!("{name}', line 3: ")), "{why}");
    let (code, out, _) = ends(home.path(), &["--json", "trail", "verify", shown]);
    let broken: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &broken["line"], &broken["file"]), (1, &Value::from(3), &Value::from(name)));
    let (code, _, why) = ends(home.path(), &["trail", "verify", "/no/such/folder"]);
    assert!(code != 0 && why.contains("/no/such/folder"), "{why}");
}

#[test]
fn files_that_are_read_again_and_calls_are_listed_by_the_command() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("token");
    let token = "a token of thirty-two characters.";
    fs::write(&path, token).unwrap();
    let server = serve(home.path(), &["--token-file", path.to_str().unwrap()]);
    let run = |arguments: &[&str]| {
        let mut command = tenure(home.path(), arguments);
        command.env("TENURE_URL", server.url()).env("TENURE_TOKEN", token);
        told(&mut command)
    };
    assert_eq!(run(&["limit", "set", "site", "--concurrency", "5"]).0, 0);
    assert_eq!(run(&["--namespace", "web", "queue", "pause", "mail"]).0, 0);
    assert_eq!(run(&["check"]).0, 0, "another name of audit");
    server.signal(Signal::SIGHUP);
    server.line("only the new tokens are valid now");
    fs::write(&path, "").unwrap();
    server.signal(Signal::SIGHUP);
    server.line("the previous ones stay");
    let list = once(SOON, "two lines", || {
        let (code, list, why) = run(&["--json", "trail", "--since", "1h", "--op", "tokens_*"]);
        assert_eq!(code, 0, "{why}");
        let list: Value = serde_json::from_str(&list).unwrap();
        let has_both = list["items"].as_array().unwrap().len() >= 2;
        if has_both { Ok(list) } else { Err(list.to_string()) }
    });
    let codes: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|line| &line["code"]).collect();
    assert_eq!(codes, [&Value::from("unusable"), &Value::Null]);
    let (code, shown, why) = run(&["trail"]);
    assert_eq!(code, 0, "{why}");
    for part in
        ["put_limit", "limit:site", "concurrency=5", "token-1", "pause_queue", "server_started"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let (_, shown, _) = run(&["--namespace", "web", "trail"]);
    assert!(shown.contains("pause_queue") && !shown.contains("put_limit"), "{shown}");
    assert_eq!(run(&["trail", "--since", "9"]).0, 2);
    let mut command = tenure(home.path(), &["trail"]);
    command.env("TENURE_URL", server.url());
    assert_eq!(told(&mut command).0, 77, "it needs a token");
}

#[test]
fn a_trail_may_go_to_stderr_or_nowhere() {
    let home = tempfile::tempdir().unwrap();
    let server = start(serving(home.path(), &["--store", "memory:", "--trail", "-"]));
    assert_eq!(set_limit(&server.at, "site"), Some(201));
    let line: Value = serde_json::from_str(&server.line("\"op\":\"put_limit\"")).unwrap();
    assert_eq!((&line["seq"], &line["targets"][0]), (&Value::from(1), &Value::from("limit:site")));
    drop(server);
    let required = ["--store", "memory:", "--trail-required"];
    fails(2, &mut serving(home.path(), &required), "--trail DIR");
    let server = serve(home.path(), &["--trail-bytes", "0"]);
    assert_eq!(set_limit(&server.at, "site"), Some(201));
    assert!(!home.path().join("data/trail").exists());
}

#[test]
fn the_first_set_of_a_limit_that_is_only_in_use_leaves_one_line() {
    let home = tempfile::tempdir().unwrap();
    let server = serve(home.path(), &[]);
    assert_eq!(set_limit(&server.at, "held"), Some(201));
    let held = server.exchange("POST /v1/leases", r#"{"needs":[{"limit":"held"}],"ttl":"1h"}"#);
    assert!(held.contains("\"fence\""), "{held}");
    assert!(server.exchange("DELETE /v1/limits/held", "").starts_with("HTTP/1.1 204 "));
    let url = server.url();
    let set = ["--url", &url, "limit", "set", "held", "--concurrency", "2"];
    done(&mut tenure(home.path(), &set));
    assert_eq!(server.stop().0, Some(0));
    let all = lines(&home.path().join("data/trail"));
    let about = all.iter().filter(|line| line["targets"][0] == "limit:held");
    let about: Vec<_> = about.map(|line| (line["op"].as_str(), line["status"].as_u64())).collect();
    let done = |op| (Some(op), Some(200));
    assert_eq!(about, ["put_limit", "delete_limit", "put_limit"].map(done));
}
