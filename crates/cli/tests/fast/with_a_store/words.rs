//! The output: the same document as the answer of the call, and nothing that a terminal obeys.

use serde_json::Value;
use tenure_testkit::tenure::told;

use crate::with_a_store::folder::Folder;
use crate::with_a_store::server::Server;

/// A control character that begins a sequence, a character that turns text around, and one that ends a line.
const UNSEEN: [char; 3] = ['\u{9b}', '\u{202e}', '\u{2028}'];

#[test]
fn nothing_that_is_written_steers_a_terminal() {
    let folder = Folder::new();
    // Ids and labels hold no control characters; payloads and labels' values may.
    let payload = "\"a\u{9b}2J\u{202e}b\u{2028}\"";
    let (id, queue) = ("a\u{202e}b", "q\u{202e}q");
    let pushed = folder.done(&["push", queue, payload, "--id", id, "--label", "by=\u{202e}x"]);
    assert_eq!(pushed, "a\\u202eb\n");
    folder.run(&["pool", "set", "p\u{202e}"]);
    folder.run(&["limit", "set", "lock:\u{202e}", "--concurrency", "1"]);
    let every = ["--every", "1h", "--queue", queue, payload];
    folder.run(&[&["schedule", "set", "s\u{202e}"], &every[..]].concat());
    for arguments in [
        &["job", id][..],
        &["jobs", "--full"],
        &["explain", id],
        &["events"],
        &["queue"],
        &["queue", queue],
        &["limit"],
        &["pool"],
        &["schedule"],
        &["schedule", "s\u{202e}"],
        &["stats"],
        &["cancel", id],
        &["push", queue, payload, "--id", id],
        &["job", "none\u{202e}"],
        &["failures"],
    ] {
        for json in [false, true] {
            let more: &[&str] = if json { &["--json"] } else { &[] };
            let (_, out, err) = folder.told(&[more, arguments].concat());
            let seen = format!("{out}{err}");
            assert!(!seen.contains(UNSEEN), "{arguments:?} {json}: {seen:?}");
            if json && arguments[0] == "job" && arguments[1] == id {
                let job: Value = serde_json::from_str(&out).unwrap();
                assert_eq!(job["payload"].to_string(), payload, "the same document");
            }
        }
    }
}

#[test]
fn json_is_exactly_the_answer_of_the_call_with_its_nulls() {
    let folder = Folder::new();
    for arguments in [
        &["queue", "set", "q", "--max-waiting", "100"][..],
        &["limit", "set", "l", "--concurrency", "2"],
        &["limit", "set", "site:*", "--rate", "10/1s"],
        &["pool", "set", "p"],
        &["pool", "add", "p", "r"],
        &["schedule", "set", "s", "--every", "1h", "--queue", "q"],
        &["push", "q", "1", "--id", "a", "--flow", "f", "--need", "limit:l"],
        &["push", "q", "1", "--id", "b", "--after", "a"],
        &["push", "q", "1", "--id", "c", "--delay", "1h", "--unique", "k"],
    ] {
        folder.done(arguments);
    }
    let server = Server::start(&folder, "127.0.0.1:0");
    for (arguments, paths) in [
        (&["job", "a"][..], &["/v1/jobs/a"][..]),
        (&["job", "key:k"], &["/v1/jobs/key:k"]),
        (&["jobs"], &["/v1/jobs"]),
        (&["jobs", "--full"], &["/v1/jobs?full=true"]),
        (&["explain", "b"], &["/v1/jobs/b/explain"]),
        (&["parents", "b"], &["/v1/jobs/b/parents"]),
        (&["children", "a"], &["/v1/jobs/a/children"]),
        (&["flow", "f"], &["/v1/flows/f"]),
        (&["flow"], &["/v1/flows"]),
        (&["queue", "q"], &["/v1/queues/q"]),
        (&["queue"], &["/v1/queues"]),
        (&["limit", "l"], &["/v1/limits/l"]),
        (&["limit"], &["/v1/limits"]),
        (&["pool"], &["/v1/pools"]),
        (&["pool", "p"], &["/v1/pools/p", "/v1/pools/p/resources"]),
        (&["pool", "resources", "p"], &["/v1/pools/p/resources"]),
        (&["schedule", "s"], &["/v1/schedules/s"]),
        (&["schedule"], &["/v1/schedules"]),
        (&["leases"], &["/v1/leases"]),
        (&["workers"], &["/v1/workers"]),
        (&["failures"], &["/v1/failures"]),
        (&["audit"], &["/v1/audit"]),
        (&["result", "a"], &["/v1/jobs/a/result"]),
        (&["job", "nobody"], &["/v1/jobs/nobody"]),
    ] {
        let mut command = server.command(&folder, &[&["--json"], arguments].concat());
        let (_, out, err) = told(&mut command);
        let answer: Value =
            serde_json::from_str(&out).unwrap_or_else(|_| panic!("{arguments:?}: {err}"));
        let mut calls: Vec<Value> = paths.iter().map(|path| server.get(path)).collect();
        let want = if calls.len() == 1 { calls.remove(0) } else { Value::Array(calls) };
        assert_eq!(answer, want, "{arguments:?}");
    }
    server.kill();
}
