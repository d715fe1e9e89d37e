//! `tenure events`: kept events, and new ones while it follows.

use std::io::{BufRead, BufReader};
use std::process::ChildStdout;

use serde_json::Value;

use crate::with_a_store::folder::Folder;
use crate::with_a_store::server::Server;
use crate::with_a_store::signal;

fn next(lines: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn what_happened_is_shown_one_line_each() {
    let folder = Folder::new();
    assert_eq!(folder.told(&["events"]), (0, String::new(), String::new()));
    folder.run(&["push", "q", "--id", "a"]);
    folder.run(&["work", "q", "--until-empty", "--", "sh", "-c", "echo no >&2; exit 65"]);
    let (code, out, err) = folder.told(&["events", "--queue", "q"]);
    let words: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    let kinds: Vec<&str> = words.iter().map(|words| words[1]).collect();
    assert_eq!((code, kinds), (0, vec!["job.pushed", "job.granted", "job.failed"]), "{out}{err}");
    assert_eq!(words[2][2..], ["q", "a", "attempt", "1:", "no"]);
    let (_, out, _) =
        folder.told(&["--json", "events", "--type", "job.failed", "--type", "flow.*"]);
    let event: Value = serde_json::from_str(out.trim_end()).unwrap();
    assert_eq!((&event["type"], &event["error"]), (&"job.failed".into(), &"no".into()));
    let since = event["id"].as_str().unwrap();
    assert_eq!(folder.told(&["events", "--since", since]).1, "");
    let (code, out, err) = folder.told(&["events", "--queue", "q", "--max", "2"]);
    assert_eq!((code, out.lines().count()), (0, 2), "{out}");
    let next = err.trim().rsplit(' ').next().unwrap();
    assert!(err.starts_with("hint: there may be more: continue with --since "), "{err}");
    let (_, rest, _) = folder.told(&["events", "--queue", "q", "--since", next, "--max", "9"]);
    assert!(rest.lines().count() == 1 && rest.contains("job.failed"), "{rest}");
    let (code, out, err) = folder.told(&["events", "--since", "1-7"]);
    assert_eq!((code, out.lines().count()), (0, 3));
    assert!(err.starts_with("tenure: the store may have lost events after 1-7"), "{err}");
    for wrong in [["events", "--type", "job.exploded"], ["events", "--since", "7"]] {
        let (code, _, err) = folder.told(&wrong);
        assert_eq!(code, 2, "{err}");
    }
}

#[test]
fn events_follow_goes_on_across_a_restart_of_the_server() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0");
    let push = |server: &Server, id: &str| server.done(&folder, &["push", "q", "--id", id]);
    push(&server, "a");
    let mut follows = server
        .command(&folder, &["--json", "events", "--follow", "--since", "first"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follows.stdout.take().unwrap());
    assert_eq!(next(&mut lines)["job"], "a");
    push(&server, "b");
    assert_eq!(next(&mut lines)["job"], "b");
    let at = server.kill();
    let server = Server::start(&folder, &at);
    push(&server, "c");
    assert_eq!(next(&mut lines)["job"], "c");
    signal(&follows, "-TERM");
    follows.wait().unwrap();
    server.kill();
}
