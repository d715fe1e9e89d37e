//! Files of people, as spreadsheets, editors and shells write them; and a file that is refused changes nothing.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;
use tenure_testkit::tenure::read;

use crate::with_a_store::folder::Folder;

const MARK: &str = "\u{feff}";

/// Runs the command with this stdin.
fn fed(folder: &Folder, arguments: &[&str], stdin: &[u8]) -> (i32, String, String) {
    let mut command = folder.command(arguments);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A command that refuses the first bytes may be gone before the last.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    read(child.wait_with_output().unwrap())
}

fn written(folder: &Folder, name: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(folder.0.path().join(name), bytes).unwrap();
}

/// Ten rows below a header; the third has lost its closing quote.
fn lost_quote(header: &str, cells: &str) -> (String, String) {
    let row = |n: usize, note: &str| format!("a{n},{cells},{note}\n");
    let rows = |third: &str| {
        let all = (1..=10).map(|n| row(n, if n == 3 { third } else { "fine" }));
        format!("id,{header},note\n{}", all.collect::<String>())
    };
    (rows("\"said: ok\""), rows("\"said: ok"))
}

#[test]
fn a_quote_that_is_never_closed_changes_no_set() {
    for (kind, owner, header, cells) in
        [("pool", "accounts", "pass", "geheim"), ("schedule", "sources", "every", "1h")]
    {
        let folder = Folder::new();
        let (whole, lost) = lost_quote(header, cells);
        written(&folder, "set.csv", whole);
        let sync = [kind, "sync", owner, "set.csv"];
        assert_eq!(folder.json(&sync)["added"], 10, "{kind}");
        written(&folder, "set.csv", &lost);
        let (code, out, err) = folder.told(&sync);
        assert_eq!((code, out.as_str()), (2, ""), "{kind}: {err}");
        let want = "line 4, column 3 ('note'): the quote that opens here is never closed";
        assert!(err.contains(want), "{kind}: {err}");
        written(&folder, "set.csv", lost.replace("a9,", "a9\",").replace("a4,", "a4\","));
        folder.fails(2, &sync, "--multiline");
        written(&folder, "set.csv", lost.replace("\"said: ok", "fine,too,many"));
        folder.fails(2, &sync, "line 4: it has 5 columns, and the header has 3");
        let list: &[&str] = match kind {
            "pool" => &["pool", "resources", owner],
            _ => &["schedule", "--owner", owner],
        };
        let items = folder.json(list)["items"].clone();
        let items = items.as_array().unwrap();
        let kept = items.iter().filter(|item| item["retiring"] != Value::Bool(true)).count();
        assert_eq!(kept, 10, "{kind}: {items:?}");
    }
}

#[test]
fn cells_of_several_lines_are_taken_if_they_are_meant() {
    let folder = Folder::new();
    written(&folder, "p.csv", "id,note\na,\"one\ntwo\"\nb,x\n");
    assert_eq!(folder.told(&["pool", "sync", "p", "p.csv"]).0, 2);
    assert_eq!(folder.json(&["pool", "sync", "p", "p.csv", "--multiline"])["added"], 2);
    written(&folder, "s.csv", "id,every,note\na,1h,\"one\ntwo\"\n");
    assert_eq!(folder.told(&["schedule", "sync", "o", "s.csv"]).0, 2);
    assert_eq!(folder.json(&["schedule", "sync", "o", "s.csv", "--multiline"])["added"], 1);
}

/// Each command that reads a file or stdin, and its input.
const READERS: [(&[&str], &str); 14] = [
    (&["push", "q", "@FILE"], "{\"n\":1}\n"),
    (&["push", "q", "-"], "{\"n\":1}\n"),
    (&["push", "--lines", "FILE"], "{\"queue\":\"q\"}\n{\"queue\":\"q\"}\n"),
    (&["push", "--lines", "-"], "{\"queue\":\"q\"}"),
    (&["push", "q", "--payloads", "--lines", "FILE"], "1\n2\n"),
    (&["pool", "add", "accounts", "a", "--data", "@FILE"], "{\"pass\":1}"),
    (&["pool", "add", "accounts", "a", "--data", "-"], "{\"pass\":1}"),
    (&["pool", "sync", "accounts", "FILE", "--format", "csv"], "id,pass\na,1\n"),
    (&["pool", "sync", "accounts", "FILE", "--format", "ndjson"], "{\"id\":\"a\"}\n"),
    (&["pool", "sync", "accounts", "-"], "[{\"id\":\"a\"}]"),
    (&["schedule", "sync", "o", "FILE", "--format", "csv"], "id,every\na,1h\n"),
    (&["schedule", "sync", "o", "-"], "{\"id\":\"a\",\"every\":\"1h\",\"job\":{}}\n"),
    (&["schedule", "set", "s", "--every", "1h", "--queue", "q", "@FILE"], "{\"n\":1}"),
    (
        &["limit", "set", "l", "--concurrency", "1", "--gauge-count", "/n", "--gauge", "@FILE"],
        "http://h/",
    ),
];

#[test]
fn a_byte_order_mark_is_taken_wherever_a_file_is_read() {
    let folder = Folder::new();
    assert_eq!(folder.told(&["pool", "set", "accounts", "--cooldown", "0s"]).0, 0);
    for (arguments, text) in READERS {
        let marked = format!("{MARK}{text}");
        written(&folder, "f", &marked);
        let arguments: Vec<String> = arguments.iter().map(|a| a.replace("FILE", "f")).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (code, _, err) = fed(&folder, &arguments, marked.as_bytes());
        assert_eq!(code, 0, "{arguments:?}: {err}");

        let wide: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
        written(&folder, "f", &wide);
        let (code, out, err) = fed(&folder, &arguments, &wide);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(
            err.contains("is UTF-16, not UTF-8\nhint: save it as UTF-8"),
            "{arguments:?}: {err}"
        );
    }
}
