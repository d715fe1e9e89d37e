//! `tenure push`: every field of a job, and its message when the job exists already.

use serde_json::{Value, json};

use crate::with_a_store::folder::Folder;
use crate::with_a_store::server::Server;

/// The option, or the word beside the options, for each field of a job.
const SAID_BY: [(&str, &str); 20] = [
    ("id", "--id"),
    ("queue", "[QUEUE]"),
    ("kind", "--kind"),
    ("payload", "[PAYLOAD]"),
    ("run_at", "--at"),
    ("delay", "--delay"),
    ("priority", "--priority"),
    ("group", "--group"),
    ("needs", "--need"),
    ("unique", "--unique"),
    ("retry", "--retry"),
    ("timeout", "--timeout"),
    ("expires_at", "--expires-at"),
    ("retain", "--retain"),
    ("labels", "--label"),
    ("after", "--after"),
    ("on_parent_failure", "--on-parent-failure"),
    // A name within one call of several jobs; a push of options is of one.
    ("ref", "--after"),
    ("flow", "--flow"),
    ("traceparent", "TRACEPARENT"),
];
const UNIQUE_SAID_BY: [(&str, &str); 5] = [
    ("key", "--unique"),
    ("until", "--until"),
    ("for", "--unique-for"),
    ("on_conflict", "--on-conflict"),
    ("within", "--within"),
];

/// The schema that a reference leads to, or the one itself.
fn schema<'a>(document: &'a Value, at: &'a Value) -> &'a Value {
    match at["$ref"].as_str() {
        Some(path) => document.pointer(path.trim_start_matches('#')).unwrap(),
        None => at,
    }
}

#[test]
fn every_field_of_a_job_has_an_option() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0");
    let document = server.get("/openapi.json");
    server.kill();
    let help = folder.told(&["push", "--help"]).1;
    let job = &document["components"]["schemas"]["NewJob"];
    let unique = schema(&document, &job["properties"]["unique"]);
    for (schema, table) in [(job, &SAID_BY[..]), (unique, &UNIQUE_SAID_BY)] {
        let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields.len(), table.len(), "{fields:?}");
        for field in fields {
            let row = table.iter().find(|(name, _)| name == field);
            let (_, option) = row.unwrap_or_else(|| panic!("no option says \"{field}\""));
            assert!(help.contains(option), "{option} of \"{field}\" is not in the help");
        }
    }
}

#[test]
fn what_is_said_of_a_job_is_stored() {
    let folder = Folder::new();
    let line = "push q 1 --retry max_attempts=5,base=10s --timeout 2m --retain 3d \
                --expires-at 2100-01-01T00:00:00Z --unique k --unique-for 90s \
                --label by=a:b --label site:x";
    let job = folder.json(&line.split(' ').collect::<Vec<_>>());
    let backoff = json!({"kind": "exponential", "base": "10s", "max": "1h", "jitter": true});
    assert_eq!(job["retry"], json!({"max_attempts": 5, "max_lost": 3, "backoff": backoff}));
    assert_eq!((&job["timeout"], &job["retain"]), (&"2m".into(), &"3d".into()));
    assert_eq!(job["expires_at"], "2100-01-01T00:00:00.000000Z");
    assert_eq!((&job["unique"]["key"], &job["unique"]["for"]), (&"k".into(), &"1m30s".into()));
    assert_eq!(job["labels"], json!({"by": "a:b", "site": "x"}));
    assert_eq!(folder.json(&["jobs", "--label", "site=x"])["items"][0]["id"], job["id"]);
    let soon = folder.json(&["push", "q", "--expires-at", "2h"]);
    assert!(soon["expires_at"].as_str() > soon["created_at"].as_str(), "{soon}");
    let lines = folder.0.path().join("lines");
    std::fs::write(&lines, "1\n").unwrap();
    let payloads =
        ["push", "q", "--payloads", "--lines", "lines", "--retry", "7", "--retain", "1m"];
    let id = folder.json(&payloads)[0]["id"].as_str().unwrap().to_owned();
    let job = folder.json(&["job", &id]);
    assert_eq!((&job["retry"]["max_attempts"], &job["retain"]), (&7.into(), &"1m".into()));
}

/// stderr without the word on workers, which is another matter.
fn said(err: &str) -> Vec<&str> {
    err.lines().filter(|line| !line.contains("nobody has asked for queue")).collect()
}

#[test]
fn a_push_that_pushes_nothing_says_so() {
    let folder = Folder::new();
    let push = |arguments: &[&str]| folder.told(&[&["push", "q", "1"], arguments].concat());
    let (code, out, err) = push(&["--id", "two"]);
    assert_eq!((code, out.as_str(), said(&err).len()), (0, "two\n", 0));
    folder.run(&["cancel", "two"]);
    let (code, out, err) = push(&["--id", "two"]);
    assert_eq!((code, out.as_str()), (0, "two\n"));
    let [line] = said(&err)[..] else { panic!("{err}") };
    assert!(line.starts_with("tenure: 'two' already exists (cancelled "), "{err}");
    assert!(line.ends_with("s ago): nothing was pushed"), "{err}");

    push(&["--unique", "daily", "--id", "first"]);
    let (_, out, err) = push(&["--unique", "daily"]);
    assert_eq!(out, "first\n");
    let [line] = said(&err)[..] else { panic!("{err}") };
    assert!(
        line.starts_with("tenure: 'first' holds the unique key 'daily' (ready, pushed "),
        "{err}"
    );
    let (_, out, err) = push(&["--unique", "daily", "--on-conflict", "replace"]);
    assert_eq!(out, "first\n");
    assert!(
        said(&err)[0].ends_with("it has the new content now, and no second job was pushed"),
        "{err}"
    );

    let lines = "{\"id\":\"two\"}\n{\"id\":\"new\"}\n{\"id\":\"first\"}\n{}\n";
    std::fs::write(folder.0.path().join("lines"), lines).unwrap();
    let (code, out, err) = folder.told(&["push", "q", "--lines", "lines"]);
    assert_eq!((code, out.lines().count()), (0, 4), "{err}");
    let want = "tenure: 2 of 4 lines name existing jobs: nothing was pushed for them";
    assert_eq!(said(&err), [want]);
}
