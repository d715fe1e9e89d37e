//! The built command on a folder of its own: a command finds what the one before stored, and CMD is run, stopped and
//! reported.

mod away;
mod completions;
mod events;
mod files;
mod flows;
mod folder;
mod holding;
mod local_time;
mod push;
mod schedules;
mod server;
mod status;
mod token;
mod words;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use folder::Folder;
use tenure_testkit::tenure::{read, told};

fn signal(child: &std::process::Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[test]
fn a_job_is_pushed_run_and_shown() {
    let folder = Folder::new();
    let (code, out, err) = folder.told(&["push", "mail", "{\"to\":\"ann\"}", "--id", "j1"]);
    assert_eq!((code, out.as_str()), (0, "j1\n"));
    assert!(err.contains("nobody has asked for queue 'mail' in the last minute"), "{err}");
    assert_eq!(folder.json(&["push", "mail", "1", "--id", "j1"])["duplicate"], true);
    let script = "cat; echo \" $TENURE_JOB_ID $TENURE_QUEUE $TENURE_ATTEMPT\"; \
                  echo '{\"n\":1}' > $TENURE_RESULT_FILE";
    let (code, out, _) = folder.told(&["work", "mail", "--until-empty", "--", "sh", "-c", script]);
    assert_eq!((code, out.as_str()), (0, "{\"to\":\"ann\"} j1 mail 1\n"));
    let job = folder.json(&["job", "j1"]);
    assert_eq!((&job["state"], &job["result"]["n"]), (&"succeeded".into(), &1.into()));
    assert_eq!(folder.json(&["audit"])["ok"], true);
}

#[test]
fn the_result_of_a_job_is_printed_and_its_end_is_the_exit_code() {
    let folder = Folder::new();
    let (code, out, err) = folder.told(&["push", "q", "1", "--id", "a", "--wait=200ms"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("waiting for job 'a'"), "{err}");
    assert!(err.contains("job 'a' is not finished after 200ms: it is ready"), "{err}");
    assert!(err.contains("tenure result a --wait D"), "{err}");
    folder.run(&["push", "q", "2", "--id", "b"]);
    folder.run(&["push", "q", "3", "--id", "c"]);
    folder.run(&["cancel", "c"]);
    let (code, out, err) = folder.told(&["result", "a"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("job 'a' is not finished: it is ready"), "{err}");
    let script = "test $TENURE_JOB_ID = a || exit 65; echo '{\"n\": 1.50}' > $TENURE_RESULT_FILE";
    folder.run(&["work", "q", "--until-empty", "--", "sh", "-c", script]);
    // A push that meets the job prints its result too.
    for arguments in [
        &["result", "a"][..],
        &["result", "a", "--wait", "5s"],
        &["push", "q", "1", "--id", "a", "--wait"],
        &["push", "q", "--id", "a", "--wait", "5s"],
    ] {
        let (code, out, _) = folder.told(arguments);
        assert_eq!((code, out.as_str()), (0, "{\"n\": 1.50}\n"), "{arguments:?}");
    }
    let view = folder.json(&["result", "a"]);
    assert_eq!((&view["state"], &view["id"]), (&"succeeded".into(), &"a".into()));
    for (id, said) in [("b", "job 'b' failed: "), ("c", "job 'c' was cancelled")] {
        let (code, out, err) = folder.told(&["result", id]);
        assert_eq!((code, out.as_str()), (1, ""));
        assert!(err.contains(said), "{err}");
        folder.fails(1, &["push", "q", "--id", id, "--wait"], said);
    }
    // Programs learn how it ended, whatever the exit code.
    assert_eq!(folder.json(&["result", "c"])["state"], "cancelled");
    folder.fails(1, &["result", "none"], "there is no job");
}

#[test]
fn the_exit_code_of_cmd_is_the_end_of_its_job() {
    for (script, state, error) in [
        ("exit 75", "scheduled", None),
        ("echo no such page >&2; exit 65", "failed", Some("no such page")),
        ("exit 3", "scheduled", Some("exit 3")),
        ("kill -9 $$", "scheduled", Some("signal 9")),
        ("echo '{\"outcome\":\"released\"}' > $TENURE_OUTCOME_FILE; exit 1", "ready", None),
    ] {
        let folder = Folder::new();
        folder.run(&["push", "q", "--id", "j"]);
        folder.done(&["work", "q", "--max-jobs", "1", "--", "sh", "-c", script]);
        let job = folder.json(&["job", "j"]);
        assert_eq!(job["state"], state, "{script}");
        assert_eq!(job["error"].as_str(), error, "{script}");
    }
}

#[test]
fn a_cmd_that_cannot_be_run_gives_the_job_back() {
    let folder = Folder::new();
    folder.run(&["push", "q", "--id", "j"]);
    for (program, code) in [("/no/such/program", 127), ("/", 126)] {
        let (got, _, err) = folder.told(&["work", "q", "--", program]);
        assert_eq!(got, code, "{err}");
        let job = folder.json(&["job", "j"]);
        assert_eq!(job["attempt"], 0);
        assert!(job["lease"].is_null());
    }
}

#[test]
fn lines_are_stored_but_for_the_bad_ones() {
    let folder = Folder::new();
    let lines = "{\"id\":\"a\"}\n{\"id\":\"b\",\"queue\":\"other\"}\n{bad\n\
                 {\"id\":\"d\",\"needs\":[{\"pool\":\"none\"}]}\n\n{\"id\":\"e\"}\n";
    let mut child =
        folder.command(&["push", "q", "--lines", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let (code, out, err) = read(child.wait_with_output().unwrap());
    assert_eq!((code, out.as_str()), (1, "a\nb\ne\n"), "{err}");
    assert!(err.contains("line 3: ") && err.contains("line 4: "), "{err}");
    assert_eq!(folder.json(&["job", "b"])["queue"], "other");
    assert_eq!(folder.json(&["job", "e"])["queue"], "q");
}

#[test]
fn settings_are_patched_and_shown() {
    let folder = Folder::new();
    folder.run(&["limit", "set", "api", "--rate", "10/1s", "--burst", "5", "--concurrency", "3"]);
    let limit = folder.json(&["limit", "set", "api", "--burst", "7", "--concurrency", "none"]);
    assert_eq!(limit["rate"], serde_json::json!({"count": 10, "per": "1s", "burst": 7}));
    assert!(limit["concurrency"].is_null());
    let queue = folder.json(&["queue", "set", "q", "--needs", "limit:api", "--shares", "a=3"]);
    assert_eq!((&queue["needs"][0]["limit"], &queue["shares"]["a"]), (&"api".into(), &3.into()));
    assert_eq!(folder.json(&["queue", "pause", "q"])["paused"], true);
    assert_eq!(folder.json(&["queue", "resume", "q"])["paused"], false);
    let (code, _, err) = folder.told(&["limit", "set", "new", "--gap", "1s"]);
    assert_eq!(code, 1, "{err}");
    assert_eq!(folder.told(&["limit", "delete", "api"]).0, 0);
    assert_eq!(folder.told(&["limit", "delete", "api"]).0, 1);
}

#[test]
fn a_pool_is_synced_and_its_data_reaches_cmd_and_nobody_else() {
    let folder = Folder::new();
    let rows = "id,user,pass-word,tags\na,ann,geheim1,cn;de\nb,bob,geheim2,cn\n";
    std::fs::write(folder.0.path().join("accounts.csv"), rows).unwrap();
    let synced = folder.json(&["pool", "sync", "accounts", "accounts.csv"]);
    assert_eq!(synced["added"], 2);
    for arguments in [
        &["pool", "accounts"][..],
        &["pool", "resources", "accounts"],
        &["--json", "pool", "resources", "accounts"],
        &["leases"],
    ] {
        let (_, out, err) = folder.told(arguments);
        assert!(!(out + &err).contains("geheim"), "{arguments:?}");
    }
    let script = "echo $TENURE_RESOURCE_ID $TENURE_RESOURCE_USER $TENURE_RESOURCE_PASS_WORD";
    let need = ["lease", "--need", "pool:accounts#de", "--", "sh", "-c", script];
    assert_eq!(folder.told(&need).1, "a ann geheim1\n");
    std::fs::write(folder.0.path().join("none.json"), "[]").unwrap();
    folder.fails(1, &["pool", "sync", "accounts", "none.json"], "--force");
}

#[test]
fn an_id_made_by_the_command_line_has_the_form_of_a_server_id() {
    let folder = Folder::new();
    let (code, id, _) = folder.told(&["push", "q", "1"]);
    let letters = id.trim_end().strip_prefix("job_").unwrap();
    assert_eq!((code, letters.len()), (0, 26));
    assert!(letters.bytes().all(|c| b"0123456789abcdefghjkmnpqrstvwxyz".contains(&c)), "{id}");
}

#[test]
fn a_folder_that_another_has_open_is_69() {
    let folder = Folder::new();
    let mut child =
        folder.command(&["lock", "x", "--", "sh", "-c", "echo up; exec sleep 60"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    folder.fails(69, &["stats"], "store\"");
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(folder.json(&["leases"])["items"], serde_json::json!([]));
}

#[test]
fn work_that_is_told_to_end_lets_its_job_finish() {
    let folder = Folder::new();
    folder.run(&["push", "q", "--id", "j"]);
    let script = "echo up; while [ ! -e go ]; do sleep 0.01; done";
    let mut child = folder.command(&["work", "q", "--", "sh", "-c", script]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    signal(&child, "-TERM");
    std::fs::write(folder.0.path().join("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(folder.json(&["job", "j"])["state"], "succeeded");
}

#[test]
fn a_second_signal_gives_the_job_back_at_once() {
    let folder = Folder::new();
    folder.run(&["push", "q", "--id", "j"]);
    let mut child =
        folder.command(&["work", "q", "--", "sh", "-c", "echo up; exec sleep 60"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let begun = Instant::now();
    signal(&child, "-TERM");
    // Two signals at once are one; the first was received when its message is written.
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    told.find(|line| line.as_ref().unwrap().contains("no more jobs")).unwrap().unwrap();
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(begun.elapsed() < Duration::from_secs(20));
    let job = folder.json(&["job", "j"]);
    assert_eq!((&job["state"], &job["attempt"]), (&"ready".into(), &0.into()));
}

#[test]
fn cmd_gets_no_store_credentials_without_pass_credentials() {
    let folder = Folder::new();
    let script = "echo ${TENURE_URL:+url}${TENURE_TOKEN:+token}${TENURE_STORE:+store}";
    let told = |arguments: &[&str]| {
        let mut command = folder.command(arguments);
        command.env("TENURE_TOKEN", "geheim").env("TENURE_STORE", "redis://:geheim@host");
        told(&mut command).1
    };
    for (option, want) in [(&[][..], "\n"), (&["--pass-credentials"][..], "urltokenstore\n")] {
        let cmd = [option, &["--", "sh", "-c", script]].concat();
        assert_eq!(told(&[&["lock", "x"][..], &cmd].concat()), want);
        assert_eq!(told(&[&["lease", "--need", "limit:lock:x"][..], &cmd].concat()), want);
        folder.run(&["push", "q"]);
        assert_eq!(told(&[&["work", "q", "--max-jobs", "1"][..], &cmd].concat()), want);
    }
}

#[test]
fn failures_are_counted_retried_and_deleted() {
    let folder = Folder::new();
    for (id, error) in [("a", "http 502"), ("b", "http 503"), ("c", "refused")] {
        folder.run(&["push", "crawl", "--kind", "fetch", "--id", id]);
        let script = format!("echo {error} >&2; exit 65");
        folder.done(&["work", "crawl", "--until-empty", "--", "sh", "-c", &script]);
    }
    folder.run(&["push", "mail", "--id", "waits", "--delay", "1h"]);
    let (code, out, err) = folder.told(&["failures", "--queue", "crawl"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((code, lines.len(), err.as_str()), (0, 3, ""), "{out}");
    assert_eq!(lines[0].split_whitespace().next(), Some("COUNT"));
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!((&words[..3], words.last()), (&["2", "http", "#"][..], Some(&"b")), "{out}");
    assert!(folder.told(&["failures"]).1.contains("QUEUE"));
    let found = folder.json(&["failures", "--max", "1"]);
    assert_eq!((&found["items"][0]["count"], &found["partial"]), (&2.into(), &false.into()));
    let list = folder.json(&["jobs", "--error", "http 50"]);
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    let ended = list["items"][0]["finished_at"].as_str().unwrap();
    let (code, out, _) =
        folder.told(&["retry", "--error", "http", "--finished-after", ended, "--queue", "crawl"]);
    assert_eq!((code, out.as_str()), (0, "1 made ready again\n"));
    let done = folder.json(&["delete", "--state", "failed", "--finished-before", ended]);
    assert_eq!(done, serde_json::json!({"done": 1, "more": false, "next": null}));
    let (code, out, _) = folder.told(&["delete", "--queue", "mail"]);
    assert_eq!((code, out.as_str()), (0, "1 deleted\n"));
    let (code, out, err) = folder.told(&["delete", "c", "nobody", "b"]);
    assert_eq!((code, out.as_str()), (1, "c was deleted\nb was deleted\n"), "{err}");
    assert!(err.contains("'nobody'"), "{err}");
    assert_eq!(folder.json(&["jobs"])["items"], serde_json::json!([]));
    assert_eq!(folder.told(&["failures"]).1, "no failed jobs\n");
}

#[test]
fn more_than_one_call_changes_is_changed_by_one_command() {
    let folder = Folder::new();
    let lines: String = (0..2_300).map(|n| format!("{n}\n")).collect();
    let file = folder.0.path().join("lines");
    std::fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(folder.told(&["push", "q", "--payloads", "--lines", file]).0, 0);
    let (code, out, _) = folder.told(&["cancel", "--queue", "q", "--max", "1200"]);
    assert_eq!((code, out.as_str()), (0, "1,200 cancelled\n"));
    let (code, out, _) = folder.told(&["delete", "--queue", "q"]);
    assert_eq!((code, out.as_str()), (0, "2,300 deleted\n"));
}

#[test]
fn a_bounded_key_is_pushed_and_shown() {
    let folder = Folder::new();
    let key = ["--unique", "k", "--until", "start", "--on-conflict", "replace", "--within", "90s"];
    let push =
        |delay: &str| folder.json(&[&["push", "q", "1", "--delay", delay], &key[..]].concat());
    let first = push("1h");
    assert_eq!(first["unique"]["within"], "1m30s");
    let second = push("1h");
    assert_eq!((&second["id"], &second["replaced"]), (&first["id"], &true.into()));
    assert!(second["run_at"].as_str() < first["run_at"].as_str(), "{second}");
}
