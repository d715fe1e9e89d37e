//! The built command, without a server: its help, its refusals, and its errors when no server is
//! there. Nothing here needs a network beyond a port that nobody listens on.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;
use tenure_testkit::tenure::{done, read, told};

use crate::client;

/// An address at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    format!("http://127.0.0.1:{port}")
}

fn tenure(arguments: &[&str]) -> Command {
    client(&nobody(), arguments)
}

/// The exit code, stdout and stderr.
fn run(arguments: &[&str]) -> (i32, String, String) {
    told(&mut tenure(arguments))
}

fn stderr(arguments: &[&str]) -> String {
    run(arguments).2
}

fn stdout(arguments: &[&str]) -> String {
    run(arguments).1
}

/// The answer of a command, which is one document.
fn answer(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(arguments)).unwrap()
}

/// Runs a command that must end with this exit code, and say this on stderr.
#[track_caller]
fn fails(code: i32, arguments: &[&str], part: &str) {
    tenure_testkit::tenure::fails(code, &mut tenure(arguments), part);
}

#[test]
fn wrong_usage_is_2_and_says_what_is_right() {
    for (arguments, part) in [
        (&[][..], "Usage"),
        (&["pusch"], "push"),
        (&["push"], "for example: tenure push mail"),
        (&["push", "q", "{"], "PAYLOAD is not JSON"),
        (&["push", "q", "text"], "a text needs its quotes"),
        (&["push", "q", "--", "--at"], "begins like an option"),
        (&["push", "q", "@/no/such/file"], "cannot read '/no/such/file'"),
        (&["push", "a/b", "1"], "contains '/'"),
        (&["push", "q", "1", "--delay", "5"], "500ms"),
        (&["push", "q", "1", "--at", "2026-12-01"], "2026-12-01T09:55:00Z"),
        (&["push", "q", "1", "--at", "2026-12-01T09:55:00Z", "--delay", "5s"], "cannot be used"),
        (&["push", "q", "1", "--priority", "101"], "must be between -100 and 100"),
        (
            &["push", "q", "1", "--at", "9999-12-31T23:59:59Z"],
            "later than the latest moment (2255-06-0",
        ),
        (&["push", "q", "1", "--at", "25:00"], "write a local time as \"2026-12-01 09:55\""),
        (&["push", "q", "1", "--expires-at", "9999d"], "3650d"),
        (&["push", "q", "1", "--retry", "tries=5"], "'tries' is no field of a retry"),
        (&["push", "q", "1", "--retry", "base=5"], "must be a duration"),
        (&["push", "q", "1", "--timeout", "0s"], "more than 0s"),
        (&["push", "q", "1", "--label", "a"], "KEY=VALUE or KEY:VALUE"),
        (&["push", "q", "1", "--unique-for", "1h"], "--unique"),
        (&["push", "q", "--lines", "-", "--expires-at", "1h"], "--payloads"),
        (&["events", "--max", "0"], "must be at least 1"),
        (&["limit", "set", "x", "--concurrency", "-1"], "must be at least 0"),
        (&["pool", "set", "x", "--max-uses", "0"], "must be at least 1"),
        (&["push", "q", "1", "--need", "limit:"], "--need"),
        (&["push", "q", "1", "--until", "start"], "--unique"),
        (&["push", "q", "1", "--lines", "-"], "cannot be used"),
        (&["push", "q", "--lines", "-", "--kind", "k"], "--payloads"),
        (&["push", "--lines", "-", "--payloads"], "QUEUE"),
        (&["push", "--lines", "/no/such/file"], "cannot read"),
        (&["push", "q", "--lines", "-", "--wait"], "cannot be used"),
        (&["push", "--wait", "mail", "1"], "put a bare --wait last"),
        (&["push", "mail", "1", "--wait=5"], "500ms"),
        (&["push", "q", "1", "--after", ""], "1 to 256"),
        (&["push", "q", "1", "--after", "{\"jobs\":1}"], "\"job\""),
        (&["push", "q", "1", "--after", "{"], "--after is not JSON"),
        (
            &["push", "q", "1", "--after", "a", "--unique", "k", "--on-conflict", "replace"],
            "leave out",
        ),
        (&["push", "q", "1", "--on-parent-failure", "run"], "--after"),
        (&["push", "q", "1", "--after", "a", "--on-parent-failure", "stop"], "cancel, run"),
        (&["push", "q", "1", "--flow", ""], "1 to 256"),
        (&["push", "q", "--lines", "-", "--flow", "f"], "--payloads"),
        (&["parents"], "<ID>"),
        (&["children", "key:"], "unique key"),
        (&["flow", "wait"], "<FLOW>"),
        (&["flow", "wait", "f", "5"], "500ms"),
        (&["flow", "retry", "f", "5s"], "unexpected"),
        (&["jobs", "--flow", ""], "1 to 256"),
        (&["cancel", "id", "--flow", "f"], "cannot be used"),
        (&["delete", "id", "--schedule", "s"], "cannot be used"),
        (&["result", "a", "--wait"], "value"),
        (&["result"], "<ID>"),
        (&["cancel"], "needs ids, or a filter"),
        (&["retry"], "needs ids, or a filter"),
        (&["delete"], "needs ids, or a filter"),
        (&["delete", "--max", "5"], "needs ids, or a filter"),
        (&["delete", "id", "--error", "502"], "cannot be used"),
        (&["retry", "--finished-after", "yesterday"], "2026-12-01T09:55:00Z"),
        (&["failures", "--max", "0"], "between 1 and 1,000"),
        (&["failures", "--state", "failed"], "--state"),
        (&["push", "q", "1", "--within", "5m"], "--unique"),
        (&["push", "q", "1", "--unique", "k", "--within", "5"], "500ms"),
        (&["cancel", "id", "--queue", "q"], "cannot be used"),
        (&["jobs", "--state", "done"], "succeeded"),
        (&["reschedule", "id"], "--at"),
        (&["limit", "set", "site:*", "--rate", "10"], "10/1s"),
        (&["limit", "set", "a*"], "limit"),
        (&["limit", "pause", "a"], "<--for <D>|--until <T>>"),
        (&["pool", "sync", "p", "/no/such/file.csv"], "cannot read"),
        (&["work", "q"], "CMD"),
        (&["work", "q", "--ttl", "500ms", "--", "true"], "1s to 1h"),
        (&["work", "q", "--http", "http://a/", "--", "true"], "cannot be used"),
        (&["work", "q", "--http", "http://a/", "--scrapyd", "http://a/"], "cannot be used"),
        (&["work", "q", "--http", "http://a/", "--detach"], "cannot be used"),
        (&["work", "q", "--http", "a"], "--http: the address is no URL"),
        (&["work", "q", "--http", "@/no/such/file"], "cannot read '/no/such/file'"),
        (&["work", "q", "--http", "http://a/", "--request-timeout", "1ms"], "100ms"),
        (&["work", "q", "--secret-file", "f", "--", "true"], "cannot be used"),
        (&["work", "q", "--poll-every", "5s", "--", "true"], "cannot be used"),
        (&["work", "q", "--scrapyd", "http://a/#b"], "--scrapyd: the address has a fragment"),
        (&["schedule", "set", "a", "--queue", "q"], "<--cron <CRON>|--every <D>>"),
        (&["schedule", "set", "a", "--every", "1h"], "--queue"),
        (&["schedule", "set", "a", "--every", "1h", "--queue", "q", "x"], "PAYLOAD is not JSON"),
        (&["schedule", "set", "a", "--every", "1h", "--queue", "q", "--delay", "5s"], "--delay"),
        (&["schedule", "set", "a", "--every", "1h", "--queue", "q", "--overlap", "no"], "skip"),
        (
            &["schedule", "set", "a", "--every", "1h", "--queue", "q", "--catch-up-max", "0"],
            "between 1 and 1,000",
        ),
        (&["schedule", "sync", "o", "/no/such/file.csv"], "cannot read"),
        (&["schedule", "sync", "o"], "<FILE|->"),
        (
            &["schedule", "pause", "a", "--for", "1h", "--until", "2026-12-01T09:55:00Z"],
            "cannot be",
        ),
        (&["schedule", "run-now"], "<ID>"),
        (&["schedule", "a", "--owner", "o"], "cannot be used"),
        (&["schedule", "preview"], "<--cron <CRON>|--every <D>>"),
        (&["schedule", "preview", "--cron", "5/15 * * * *"], "write 5-59/15, or */15"),
        (&["schedule", "preview", "--cron", "0 9 * *"], "five or six fields, not 4"),
        (&["schedule", "preview", "--cron", "0 0 30 2 *"], "no moment within ten years"),
        (
            &["schedule", "preview", "--cron", "@daily", "--zone", "europe/berlin"],
            "\"Europe/Berlin\"",
        ),
        (&["schedule", "preview", "--cron", "@daily", "--every", "1h"], "cannot be used"),
        (&["schedule", "preview", "a", "--every", "1h", "--zone", "UTC"], "cannot be used"),
        (&["schedule", "preview", "--every", "1h"], "needs the ID"),
        (&["schedule", "preview", "a", "--every", "1500ms"], "whole seconds"),
        (&["schedule", "preview", "a", "--every", "1h", "-n", "101"], "between 1 and 100"),
        (&["schedule", "preview", "key:a", "--every", "1h"], "choose another"),
        (&["schedule", "preview", "a", "--every", "1h", "--starts-at", "soon"], "09:55:00Z"),
        (&["lock", "x", "--wait", "1s", "--no-wait", "--", "true"], "cannot be used"),
        (&["lock", "*", "--", "true"], "the name '*'"),
        (&["lock", "x"], "CMD"),
        (&["lease", "--", "true"], "--need"),
        (&["--url", "ftp://host", "stats"], "\"ftp\" is unknown"),
        (&["--namespace", "A", "stats"], "namespace"),
    ] {
        let (code, out, err) = run(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
}

#[test]
fn without_a_server_every_command_is_69_and_says_what_to_do() {
    for arguments in [
        &["push", "q", "1"][..],
        &["push", "q", "1", "--wait"],
        &["push", "q", "1", "--wait=100ms"],
        &["result", "key:a", "--wait", "100ms"],
        &[
            "push",
            "q",
            "--after",
            "a",
            "--after",
            "key:b",
            "--on-parent-failure",
            "run",
            "--flow",
            "f",
        ],
        &["parents", "a", "--full"],
        &["children", "key:a"],
        &["flow"],
        &["flow", "f"],
        &["flow", "cancel", "f"],
        &["flow", "retry", "f"],
        &["flow", "wait", "f", "100ms"],
        &["delete", "--flow", "f"],
        &["jobs", "--flow", "f", "--schedule", "s"],
        &["jobs"],
        &["job", "key:a"],
        &["explain", "a"],
        &["cancel", "a"],
        &["cancel", "--queue", "q"],
        &["retry", "a", "b"],
        &["delete", "a"],
        &["delete", "--error", "502", "--finished-before", "2026-12-01T09:55:00Z"],
        &["failures", "--queue", "q", "--kind", "k"],
        &["run-now", "a"],
        &["reschedule", "a", "--delay", "5s"],
        &["queue"],
        &["queue", "set", "q", "--needs", "limit:a", "--shares", "a=2", "--timeout", "none"],
        &["limit", "set", "a", "--burst", "2"],
        &["limit", "observe", "a", "3", "--for", "60s"],
        &["pool", "p"],
        &["pool", "ban", "p", "a", "b", "--reason", "captcha"],
        &["schedule"],
        &["schedule", "--owner", "sources"],
        &["schedule", "news-42"],
        &["schedule", "set", "news-42", "--cron", "0 9 * * 1-5", "--queue", "news", "{}"],
        &["schedule", "pause", "news-42", "--for", "2h"],
        &["schedule", "resume", "news-42"],
        &["schedule", "run-now", "news-42", "--id", "by-hand"],
        &["schedule", "delete", "news-42"],
        &["leases"],
        &["leases", "force", "x"],
        &["workers"],
        &["stats"],
        &["status"],
        &["--json", "status"],
        &["--json", "audit"],
        &["audit", "--deep"],
        &["lock", "x", "--", "true"],
        &["lock", "x", "-n", "3", "--", "true"],
        &["lease", "--need", "limit:a", "--", "true"],
        &["work", "q", "--until-empty", "--", "true"],
        &["work", "q", "--until-empty", "--http", "http://127.0.0.1:1/"],
        &["work", "q", "--until-empty", "--scrapyd", "http://127.0.0.1:1/"],
    ] {
        is_69_and_says_what_to_do(arguments);
    }
}

#[test]
#[ignore = "long: it waits for a minute"]
fn a_wait_without_an_end_is_69_without_a_server() {
    is_69_and_says_what_to_do(&["flow", "wait", "f"]);
}

fn is_69_and_says_what_to_do(arguments: &[&str]) {
    let (code, out, err) = run(arguments);
    assert_eq!((code, out.as_str()), (69, ""), "{arguments:?}: {err}");
    assert!(err.starts_with("tenure: ") && err.contains("\nhint: "), "{err}");
}

#[test]
fn a_preview_shows_moments_without_a_server() {
    let berlin =
        ["schedule", "preview", "--cron", "0 9 * * *", "--zone", "Europe/Berlin", "-n", "3"];
    let text = done(&mut tenure(&berlin));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for line in &lines {
        assert!(line.contains(" 09:00:00 +0"), "nine by the wall clock: {line}");
    }
    assert!(lines[0].contains("   in ") && !lines[1].contains(" in "), "{text}");

    let json = answer(&[&["--json"][..], &berlin].concat());
    let next = json["next"].as_array().unwrap();
    assert_eq!((next.len(), json.as_object().unwrap().len()), (3, 1), "{json}");
    assert!(next[0].as_str().unwrap().ends_with(":00:00.000000Z"), "{json}");

    let phase = answer(&["--json", "schedule", "preview", "news-42", "--every", "15m"]);
    assert!(phase["next"][0].as_str().unwrap().ends_with(":46.000000Z"), "{phase}");
    for start in ["now", "2026-12-01T08:00:00Z"] {
        done(&mut tenure(&["schedule", "preview", "--every", "1d", "--starts-at", start]));
    }
    let (code, problem, _) = run(&["--json", "schedule", "preview", "--cron", "0 24 * * *"]);
    assert_eq!(code, 2);
    let problem: Value = serde_json::from_str(&problem).unwrap();
    assert_eq!((&problem["code"], &problem["pointer"]), (&"invalid_field".into(), &"/cron".into()));
}

#[test]
fn a_name_that_is_also_a_verb_can_be_shown() {
    // It asks the server: so it was not taken for `set` without a name.
    assert_eq!(run(&["queue", "--", "set"]).0, 69);
    assert_eq!(run(&["flow", "--", "wait"]).0, 69);
    assert_eq!(run(&["queue", "set"]).0, 2);
    assert_eq!(run(&["schedule", "--", "set"]).0, 69);
}

#[test]
fn bad_lines_are_reported_by_number_before_anything_is_sent() {
    let mut child =
        tenure(&["push", "q", "--lines", "-", "--json"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{\n\n{\"x\":1}\n").unwrap();
    let (code, out, said) = read(child.wait_with_output().unwrap());
    assert_eq!(code, 1);
    assert!(said.contains("tenure: line 1: ") && said.contains("tenure: line 3: "), "{said}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    let of = |at: usize| (answer[at]["line"].as_u64(), answer[at]["code"].as_str());
    assert_eq!(of(0), (Some(1), Some("bad_json")));
    assert_eq!(of(1), (Some(3), Some("unknown_field")));
}

#[test]
fn version_and_completions_need_no_server() {
    let (code, out, err) = run(&["version"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("tenure "));
    assert_eq!(answer(&["--json", "version"])["contract"], 1);
    for shell in ["bash", "zsh", "fish"] {
        assert!(!done(&mut tenure(&["completions", shell])).is_empty(), "{shell}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = run(&["man-pages", folder.path().to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (0, ""));
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    for (name, part) in [
        ("tenure.1", "tenure\\-serve(1)"),
        ("tenure-serve.1", "drain\\-timeout"),
        ("tenure-limit-set.1", "concurrency"),
        ("tenure-work.1", ".SH OPTIONS"),
    ] {
        assert!(page(name).contains(part), "{name}: {}", page(name));
    }
    let nowhere = folder.path().join("gone");
    fails(74, &["man-pages", nowhere.to_str().unwrap()], "hint: name an existing folder");
}

/// The names that stand at the begin of the lines of a help.
fn listed(help: &str) -> Vec<&str> {
    let lines = help.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    lines.filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn every_command_has_help_and_the_token_is_no_option() {
    let help = stdout(&["help", "--all"]);
    assert!(help.contains("Exit codes") && help.contains("TENURE_TOKEN"));
    assert!(!help.contains("--token"));
    let commands = [
        "push", "work", "queue", "limit", "pool", "lock", "lease", "leases", "cancel", "delete",
        "failures", "jobs", "job", "explain", "retry", "schedule", "result", "flow", "parents",
        "children", "doctor", "token", "serve", "stats", "status", "top", "events", "error",
    ];
    for command in commands {
        let help = stdout(&[command, "--help"]);
        assert!(help.contains("Example"), "{command}: {help}");
        assert_eq!(stdout(&["help", command]), help);
    }
}

#[test]
fn tenure_alone_shows_a_dozen_commands_in_groups() {
    let (with, _, text) = run(&[]);
    let (without, _, same) = told(tenure(&[]).env_remove("TENURE_URL"));
    assert_eq!((with, without), (2, 2));
    assert_eq!(text, same);
    assert_eq!(text, stdout(&["help"]));
    assert_eq!(text, stdout(&["--help"]));
    for part in ["Run:", "Jobs:", "Limits and pools:", "Look:", "tenure help --all"] {
        assert!(text.contains(part), "{text}");
    }
    let commands = listed(&text).into_iter().filter(|name| *name != "tenure").count();
    assert_eq!(commands, 12, "{text}");
    assert_eq!(stderr(&["store"]), stdout(&["store", "--help"]));
}

#[test]
fn no_process_that_tenure_starts_for_itself_is_ever_listed() {
    let mut said = vec![stdout(&["help", "--all"]), stderr(&[])];
    for wrong in ["demo-worke", "crash-clien", "child-proces", "cmd-guar", "nothing-like-it"] {
        said.push(stderr(&[wrong]).replace(&format!("'{wrong}'"), ""));
    }
    for shell in ["bash", "zsh", "fish"] {
        said.push(stdout(&["completions", shell]));
    }
    for internal in ["demo-worker", "child-process", "cmd-guard"] {
        for text in &said {
            assert!(!text.contains(internal) && !text.contains(&internal.replace('-', "_")));
        }
    }
}

#[test]
fn top_without_a_terminal_says_what_to_use() {
    fails(2, &["top"], "`tenure top` needs a terminal");
    fails(2, &["top"], "`tenure status`");
    for every in ["0s", "999ms", "2h"] {
        fails(2, &["top", "--every", every], "use 1s to 1h");
    }
}

#[test]
fn a_tip_is_given_where_it_is_near() {
    for (said, tip) in [
        ("metrics", None),
        ("zzz", None),
        ("pusch", Some("push")),
        ("jbos", Some("jobs")),
        ("shedule", Some("schedule")),
    ] {
        let text = stderr(&[said]);
        assert_eq!(text.contains("similar"), tip.is_some(), "{said}: {text}");
        assert!(tip.is_none_or(|tip| text.contains(&format!("'{tip}'"))), "{said}: {text}");
        assert!(text.contains("`tenure help --all` lists all commands"), "{text}");
    }
    for words in [&["bench"][..], &["bench", "crash", "--rounds", "1"], &["help", "bench"]] {
        fails(2, words, "--package tenure-lab -- bench`");
    }
    let text = stderr(&["push", "q", "--priorty", "1"]);
    assert!(text.contains("'--priority'"), "{text}");
    let text = stderr(&["help", "limt"]);
    assert!(text.contains("did you mean 'limit'?"), "{text}");
}

#[test]
fn a_command_without_dashes_is_answered_with_the_right_line() {
    for (wrong, right) in [
        (&["lock", "x", "echo", "hi"][..], "tenure lock x -- echo hi"),
        (
            &["lease", "--need", "limit:a", "echo", "a b"],
            "tenure lease --need limit:a -- echo 'a b'",
        ),
        (&["work", "mail", "./send-mail"], "tenure work mail -- ./send-mail"),
        (&["--url", "http://:geheim@h", "lock", "x", "true"], "tenure lock x -- true"),
    ] {
        let (code, _, text) = run(wrong);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(right) && !text.contains("geheim"), "{text}");
    }
    // Nothing is missing but the command itself.
    let text = stderr(&["lock", "x"]);
    assert!(text.contains("for example: tenure lock deploy -- ./deploy.sh"), "{text}");
}

#[test]
fn the_usage_of_an_error_is_that_of_the_help() {
    for (wrong, command) in [
        (&["push"][..], &["push"][..]),
        (&["--json", "push", "--nope"], &["push"]),
        (&["limit", "set"], &["limit", "set"]),
        (&["result"], &["result"]),
        (&["work", "--nope"], &["work"]),
        (&["jobs", "--max", "0", "--nope"], &["jobs"]),
    ] {
        let usage = |text: &str| {
            let lines = text.lines().skip_while(|line| !line.starts_with("Usage: "));
            lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let mut failed = tenure(wrong);
        failed.env("TENURE_TOKEN", "t").env("TENURE_NAMESPACE", "n");
        let help = usage(&stdout(&[command, &["--help"]].concat()));
        assert!(!help.is_empty());
        assert_eq!(usage(&told(&mut failed).2), help, "{wrong:?}");
    }
}

#[test]
fn options_of_every_command_stand_in_one_place() {
    for command in ["push", "jobs", "version", "stats", "limit"] {
        let help = stdout(&[command, "--help"]);
        for option in ["--namespace <", "--url <", "--accept-loss"] {
            assert!(!help.contains(option), "{command}: {help}");
        }
        assert!(help.trim_end().ends_with("tenure help --all"), "{help}");
    }
    let all = stdout(&["help", "--all"]);
    for option in ["--namespace <", "--url <", "--json", "--accept-loss"] {
        assert!(all.contains(option), "{all}");
    }
    assert!(stdout(&["serve", "--help"]).contains("--accept-loss"));
    for means_nothing in [&["version"][..], &["stats"], &["demo"], &["help"]] {
        fails(2, &[&["--accept-loss"], means_nothing].concat(), "--accept-loss is for a folder");
    }
}

#[test]
fn the_page_of_an_error_is_printed() {
    let page = stdout(&["error", "queue_full"]);
    assert!(page.starts_with("queue_full\n") && page.contains("What to do"), "{page}");
    assert_eq!(stdout(&["error", "urn:tenure:error:queue-full"]), page);
    assert!(stdout(&["error"]).contains("queue_full"));
    fails(1, &["error", "queue_ful"], "did you mean 'queue_full'?");
    assert!(!stderr(&["error", "zzz"]).contains("did you mean"));
}

#[test]
fn a_closed_stdout_is_not_a_failure() {
    let mut child = tenure(&["completions", "bash"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_address_with_a_password_is_never_shown() {
    let (code, _, err) = told(tenure(&["stats"]).env("TENURE_URL", "http://me:geheim@host"));
    assert_eq!(code, 2);
    let (_, help, _) = told(tenure(&["help", "--all"]).env("TENURE_URL", "redis://:geheim@host"));
    let said = err + &help;
    assert!(!said.contains("geheim"), "{said}");
}
