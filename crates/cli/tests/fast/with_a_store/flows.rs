//! Jobs that wait for others, and `tenure flow`, on a folder.

use serde_json::{Value, json};

use crate::with_a_store::folder::Folder;

/// Runs each job of these queues with this script.
fn work(folder: &Folder, queues: &[&str], script: &str) {
    let arguments = [&["work"], queues, &["--until-empty", "--", "sh", "-c", script]].concat();
    folder.done(&arguments);
}

fn state(folder: &Folder, id: &str) -> Value {
    folder.json(&["job", id])["state"].clone()
}

/// `fetch-1`, `parse-1` behind it, both of the flow `import-7`, and `mail` behind the flow.
fn pushed() -> Folder {
    let folder = Folder::new();
    folder.done(&["push", "fetch", "{\"page\":1}", "--id", "fetch-1", "--flow", "import-7"]);
    folder.done(&["push", "parse", "--id", "parse-1", "--after", "fetch-1"]);
    let after = ["--after", "{\"flow\":\"import-7\"}", "--on-parent-failure", "run"];
    folder.done(&[&["push", "mail", "--id", "mail"], &after[..]].concat());
    folder
}

#[test]
fn a_job_waits_for_its_parents_and_finds_their_results() {
    let folder = pushed();
    let (_, out, _) = folder.told(&["explain", "parse-1"]);
    assert!(out.starts_with("parse-1 is dependent: "), "{out}");
    assert!(
        out.contains("\"fetch-1\" has not ended") && out.contains("0 of 1 parents done"),
        "{out}"
    );
    let (_, out, _) = folder.told(&["job", "parse-1"]);
    let fields: Vec<_> = out.lines().filter_map(|line| line.split_once("  ")).collect();
    let field =
        |of: &str| fields.iter().find(|(name, _)| *name == of).map(|(_, value)| value.trim());
    assert_eq!(field("flow"), Some("import-7"), "it is that of its parent: {out}");
    assert_eq!(field("after"), Some("fetch-1; waits for 1 of 1"), "{out}");
    let (_, out, _) = folder.told(&["jobs", "--state", "dependent"]);
    assert!(out.contains("waits for 1 of 1 parents"), "{out}");
    let (_, out, _) = folder.told(&["parents", "parse-1"]);
    assert_eq!(out.lines().nth(1), Some("fetch-1  ready"));
    let (_, out, _) = folder.told(&["children", "fetch-1"]);
    assert_eq!(out.lines().nth(1), Some("parse-1  dependent  cancel"));
    assert_eq!(folder.told(&["parents", "fetch-1"]).1, "it waits for no job\n");
    let script = "test $TENURE_QUEUE = fetch && echo '{\"n\":1}' > $TENURE_RESULT_FILE; \
                  test $TENURE_QUEUE != parse || cp $TENURE_PARENTS_FILE $TENURE_RESULT_FILE; \
                  test $TENURE_QUEUE = mail || test \"$TENURE_FLOW\" = import-7 || exit 65";
    work(&folder, &["fetch", "parse"], script);
    let parent = json!({"id": "fetch-1", "state": "succeeded", "result": {"n": 1}, "error": null});
    assert_eq!(folder.json(&["job", "parse-1"])["result"], parent);
    assert_eq!(state(&folder, "mail"), "ready");
    let full = folder.json(&["parents", "parse-1", "--full"]);
    assert_eq!(full["items"][0]["result"], json!({"n": 1}));
    assert_eq!(folder.json(&["audit"])["ok"], true);
}

#[test]
fn a_flow_is_shown_waited_for_and_its_end_is_the_exit_code() {
    let folder = pushed();
    let out = folder.done(&["flow", "import-7"]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines[0].starts_with("flow  import-7  open since ") && lines[0].ends_with(" ago"),
        "{out}"
    );
    assert_eq!(lines[1], "jobs  2 unfinished, 0 succeeded, 0 failed, 0 cancelled");
    let (_, out, _) = folder.told(&["flow"]);
    assert!(out.lines().nth(1).unwrap().starts_with("import-7  open   2 "), "{out}");
    let (code, out, err) = folder.told(&["flow", "wait", "import-7", "100ms"]);
    assert!(code == 1 && out.contains("2 unfinished"), "{code} {out}");
    assert!(
        err.contains("flow 'import-7' is not finished after 100ms: 2 jobs are unfinished"),
        "{err}"
    );
    work(&folder, &["fetch", "parse"], "true");
    for arguments in [&["flow", "wait", "import-7"][..], &["flow", "wait", "import-7", "5s"]] {
        let (code, out, err) = folder.told(arguments);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert!(out.contains("jobs  0 unfinished, 2 succeeded, 0 failed, 0 cancelled"), "{out}");
    }
    folder.fails(1, &["flow", "none"], "there is no flow \"none\"");
    assert_eq!(folder.json(&["flow", "none"])["code"], "flow_not_found");
    assert_eq!(
        folder.json(&["jobs", "--flow", "import-7"])["items"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn a_failure_cancels_the_dependents_and_a_retry_revives_them() {
    let folder = pushed();
    // A parent that stands behind its child, as an array may have it.
    folder.done(&["push", "parse", "--id", "last", "--after", "parse-1"]);
    work(&folder, &["fetch"], "exit 65");
    for id in ["parse-1", "last"] {
        assert_eq!(folder.json(&["job", id])["error"], "parent_failed");
    }
    assert_eq!(state(&folder, "mail"), "ready", "it runs after any end");
    let (code, _, err) = folder.told(&["flow", "wait", "import-7"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("flow 'import-7' did not succeed: 1 failed, and 2 were cancelled"),
        "{err}"
    );
    assert!(err.contains("tenure flow retry 'import-7'"), "{err}");
    folder.fails(1, &["retry", "parse-1"], "waits for job \"fetch-1\", which is failed");
    let (code, out, err) = folder.told(&["flow", "retry", "import-7"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "3 made ready again\n", ""));
    assert_eq!(state(&folder, "last"), "dependent");
    work(&folder, &["fetch", "parse"], "true");
    assert_eq!(folder.told(&["flow", "wait", "import-7"]).0, 0);
    assert_eq!(folder.json(&["flow", "retry", "import-7"])["done"], 0);
    assert_eq!(folder.json(&["audit"])["ok"], true);
}

#[test]
fn a_retry_by_id_says_how_many_children_stay_cancelled() {
    let folder = pushed();
    work(&folder, &["fetch"], "exit 65");
    let out = folder.done(&["retry", "fetch-1"]);
    assert_eq!(out, "fetch-1 is ready; 1 job that waited for it stays cancelled\n");
}

#[test]
fn a_flow_is_cancelled_as_a_whole() {
    let folder = pushed();
    let out = folder.done(&["flow", "cancel", "import-7"]);
    assert!(out.starts_with("flow  import-7  finished "), "{out}");
    assert!(out.ends_with("jobs  0 unfinished, 0 succeeded, 0 failed, 2 cancelled\n"), "{out}");
    assert_eq!(state(&folder, "parse-1"), "cancelled");
    assert_eq!(state(&folder, "mail"), "ready");
}

#[test]
fn lines_wait_for_earlier_lines() {
    let folder = Folder::new();
    let lines = "{\"id\":\"b\",\"after\":[\"a\"]}\n{\"id\":\"a\",\"flow\":\"f\"}\n\
                 {\"id\":\"c\",\"after\":[\"a\"]}\n{\"ref\":\"r\"}\n";
    std::fs::write(folder.0.path().join("jobs.ndjson"), lines).unwrap();
    let (code, out, err) = folder.told(&["push", "--lines", "jobs.ndjson"]);
    assert_eq!((code, out.as_str()), (1, "a\nc\n"));
    assert!(err.contains("line 1: there is no job \"a\" to wait for"), "{err}");
    assert!(err.contains("line 4: a line of NDJSON has no \"ref\""), "{err}");
    assert_eq!(folder.json(&["job", "c"])["flow"], "f");
    std::fs::write(folder.0.path().join("payloads.ndjson"), "1\n2\n").unwrap();
    let arguments =
        ["push", "q", "--lines", "payloads.ndjson", "--payloads", "--after", "a", "--flow", "g"];
    assert_eq!(folder.told(&arguments).0, 0);
    let waiting = folder.json(&["jobs", "--flow", "g", "--state", "dependent"]);
    assert_eq!(waiting["items"].as_array().map(Vec::len), Some(2));
}
