//! Messages of `work`, `lock` and `lease`, and the ends of the leases that their CMD held.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::with_a_store::folder::Folder;

#[test]
fn cmds_code_is_passed_on_by_a_lock() {
    let folder = Folder::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -15 $$", 143)] {
        assert_eq!(folder.told(&["lock", "x", "--", "sh", "-c", script]).0, code, "{script}");
    }
    assert_eq!(folder.told(&["lock", "x", "--", "/no/such/program"]).0, 127);
    folder.run(&["limit", "set", "lock:shut", "--concurrency", "0"]);
    assert_eq!(folder.told(&["lock", "shut", "--no-wait", "-E", "9", "--", "true"]).0, 9);
    assert_eq!(folder.told(&["lock", "shut", "--wait", "20ms", "--", "true"]).0, 1);
    let (code, _, err) = folder.told(&["lock", "wide", "-n", "3", "--", "true"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (code, _, err) = folder.told(&["lock", "wide", "-n", "2", "--", "true"]);
    assert!(code == 0 && err.contains("is set to 3 holders"), "{err}");
}

#[test]
fn a_lock_that_is_not_got_says_why_in_one_sentence() {
    let folder = Folder::new();
    folder.run(&["limit", "set", "lock:shut", "--concurrency", "0"]);
    for (arguments, within, hint) in [
        (&["--no-wait"][..], "", "--wait D waits for it"),
        (&["--wait", "20ms"], " within 20ms", "try a longer --wait"),
    ] {
        let (code, _, err) = folder.told(&[&["lock", "shut"], arguments, &["--", "true"]].concat());
        let why = "the limit \"lock:shut\" is closed: its concurrency is 0";
        let said = format!("tenure: could not get lock \"shut\"{within}: {why}\nhint: {hint}\n");
        assert_eq!((code, err), (1, said));
    }
}

#[test]
fn a_waiting_lock_says_its_reason_once_unless_it_is_quiet() {
    let folder = Folder::new();
    folder.run(&["limit", "set", "lock:shut", "--concurrency", "0"]);
    let said = "tenure: waiting: the limit \"lock:shut\" is closed: its concurrency is 0\n";
    for (option, told) in [(&[][..], 1), (&["-q"], 0)] {
        let begun = Instant::now();
        let arguments = [&["lock", "shut", "--wait", "2500ms"], option, &["--", "true"]].concat();
        let (code, _, err) = folder.told(&arguments);
        assert_eq!((code, err.matches(said).count()), (1, told), "{err}");
        assert!(begun.elapsed() >= Duration::from_millis(2_500));
    }
}

#[test]
fn work_says_of_each_job_that_it_started_and_how_it_ended() {
    let folder = Folder::new();
    for (id, payload) in [("a", "\"geheim\""), ("b", "\"geheim\""), ("c", "\"geheim\"")] {
        folder.run(&["push", "q", payload, "--id", id]);
    }
    let script = "case $TENURE_JOB_ID in a) ;; b) exit 65 ;; c) exit 75 ;; esac";
    let work = |option: &[&str]| {
        let max = ["work", "q", "--strict", "-c", "1", "--max-jobs", "1"];
        let (code, out, err) = folder.told(&[option, &max, &["--", "sh", "-c", script]].concat());
        assert_eq!((code, out.as_str()), (0, ""), "{err}");
        assert!(!err.contains("geheim"), "{err}");
        err
    };
    let said = work(&[]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "tenure: job 'a' of queue 'q' started");
    assert!(lines[1].starts_with("tenure: job 'a' succeeded after "), "{said}");
    assert_eq!(lines.len(), 2, "{said}");
    let said = work(&["--json"]);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [started, ended] = <[Value; 2]>::try_from(lines).unwrap();
    assert_eq!((&started["event"], &started["job"]), (&"job_started".into(), &"b".into()));
    assert_eq!((&ended["event"], &ended["job"]), (&"job_ended".into(), &"b".into()));
    assert_eq!(ended["outcome"], "failed");
    assert!(ended["took"].is_string() && ended["at"].is_string(), "{ended}");
    folder.run(&["push", "q", "1", "--id", "d"]);
    let script = "exit 0";
    let quiet = ["work", "q", "--max-jobs", "1", "-q", "--", "sh", "-c", script];
    assert_eq!(folder.told(&quiet), (0, String::new(), String::new()));
}

#[test]
fn a_crash_of_cmd_cools_its_resource_unless_a_verdict_bans_it() {
    let folder = Folder::new();
    folder.run(&["pool", "set", "p", "--quarantine", "1h"]);
    let item =
        r#"{"outcome":"failed","error":"x","resources":[{"pool":"p","id":"ID","verdict":"ban"}]}"#;
    for (id, script, code, state) in [
        ("fine", "exit 3", 3, "available"),
        ("killed", "kill -9 $$", 137, "cooling"),
        ("crashed", "sh -c 'kill -SEGV $$'; exit $?", 139, "cooling"),
        ("banned", "echo \"$ITEM\" > $TENURE_VERDICT_FILE", 0, "banned"),
        ("both", "echo \"$ITEM\" > $TENURE_VERDICT_FILE; kill -9 $$", 137, "banned"),
        ("strange", "echo ban > $TENURE_VERDICT_FILE", 1, "cooling"),
        ("foreign", "echo \"$FOREIGN\" > $TENURE_VERDICT_FILE", 1, "cooling"),
    ] {
        folder.run(&["pool", "add", "p", id]);
        let need = format!("pool:p,id={id}");
        let mut command = folder.command(&["lease", "--need", &need, "--", "sh", "-c", script]);
        command.env("ITEM", item.replace("ID", id)).env("FOREIGN", item.replace("ID", "other"));
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{id}: {err}");
        let listed = folder.json(&["pool", "resources", "p"]);
        let items = listed["items"].as_array().unwrap();
        let seen = items.iter().find(|item| item["id"] == id).unwrap();
        assert_eq!(seen["state"], state, "{id}: {err}");
        assert_eq!(err.contains("cannot be used"), code == 1, "{id}: {err}");
    }
}
