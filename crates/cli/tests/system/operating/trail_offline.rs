//! Lines of copies and restores in the trails of the folders that they open without a server.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::tenure::done;

use crate::operating::tenure;
use crate::operating::trail::{ends, lines, serve, set_limit};

/// A line as far as a test knows it: its operation, caller, way, targets, status and code.
fn shown(line: &Value) -> Value {
    json!([line["op"], line["via"], line["server"], line["targets"], line["status"], line["code"]])
}

/// The lines in the trail of a folder, which is verified.
fn verified(home: &Path, store: &str) -> Vec<Value> {
    let trail = home.join(store).join("trail");
    done(&mut tenure(home, &["trail", "verify", trail.to_str().unwrap()]));
    lines(&trail)
}

#[test]
fn a_copy_and_a_restore_leave_lines_in_the_trails_of_their_folders() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let [from, to, restored] =
        ["data", "copied", "restored"].map(|name| format!("file:{}", home.join(name).display()));
    let server = serve(home, &[]);
    assert_eq!(set_limit(&server.at, "site"), Some(201));
    // The folder belongs to a server: refused as ever, and nothing is written.
    let before = lines(&home.join("data/trail")).len();
    let (code, _, why) = ends(home, &["copy", "--from", &from, "--to", &to]);
    assert!(code != 0, "{why}");
    assert_eq!(lines(&home.join("data/trail")).len(), before);
    let backup = home.join("backup");
    let at = server.url();
    done(&mut tenure(home, &["--url", &at, "backup", backup.to_str().unwrap()]));
    assert_eq!(server.stop().0, Some(0));

    let (code, _, why) = ends(home, &["copy", "--from", &from, "--to", &to]);
    assert_eq!(code, 0, "{why}");
    assert!(!why.contains("trail"), "{why}");
    let copied = json!([
        "copy",
        "command",
        "offline",
        [format!("from:{from}"), format!("to:{to}")],
        200,
        null
    ]);
    let of_source = verified(home, "data");
    // The chain goes on behind the lines of the server.
    assert_eq!(of_source[of_source.len() - 2]["op"], "server_stopped");
    assert_eq!(shown(of_source.last().unwrap()), copied);
    assert!(of_source.last().unwrap()["caller"].as_str().is_some_and(|name| !name.is_empty()));
    let of_target = verified(home, "copied");
    assert_eq!((of_target.len(), shown(&of_target[0])), (1, copied));

    let thaw = ["copy", "--thaw", "--force", "--from", &from];
    assert_eq!(ends(home, &thaw).0, 0);
    let thawed = json!(["copy_thaw", "command", "offline", [format!("from:{from}")], 200, null]);
    assert_eq!(shown(verified(home, "data").last().unwrap()), thawed);

    // A restore into a store that is not empty is refused, and was tried.
    let file = backup.to_str().unwrap();
    let targets = |to: &str| json!([format!("from:{file}"), format!("to:{to}")]);
    let (code, _, why) = ends(home, &["restore", file, "--to", &to, "--no-wait"]);
    assert!(code != 0, "{why}");
    let tried = json!(["restore", "command", "offline", targets(&to), null, "failed"]);
    assert_eq!(shown(verified(home, "copied").last().unwrap()), tried);
    // A trail in a folder without a store is no obstacle.
    fs::create_dir_all(home.join("restored/trail")).unwrap();
    done(&mut tenure(home, &["restore", file, "--to", &restored, "--no-wait"]));
    let done = json!(["restore", "command", "offline", targets(&restored), 200, null]);
    assert_eq!(shown(verified(home, "restored").last().unwrap()), done);
    assert_eq!(set_limit(&serve(home, &[]).at, "site"), Some(200), "the source is served again");
}
