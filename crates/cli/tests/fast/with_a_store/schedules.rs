//! `tenure schedule` on a folder, and the jobs of schedules under `tenure work`.

use serde_json::{Value, json};
use tenure_core::time::{Moment, Span};

use crate::with_a_store::folder::Folder;

const SET: [&str; 8] =
    ["schedule", "set", "news-42", "--every", "1h", "--queue", "news", "{\"source\":42}"];

#[test]
fn a_schedule_is_set_shown_paused_run_and_deleted() {
    let folder = Folder::new();
    assert_eq!(folder.told(&["schedule"]).1, "no schedules\n");
    let need = ["--kind", "visit", "--need", "limit:lock:x,weight=1", "--owner", "sources"];
    let out = folder.done(&[&SET[..], &need].concat());
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("schedule  news-42     "), "{out}");
    assert!(lines[0].ends_with("of sources"), "{out}");
    assert!(
        lines[1].starts_with("timing    every 1h")
            && lines[1].contains("overlap skip, catch up last"),
        "{out}"
    );
    assert!(lines[2].starts_with("job       news visit  needs limit:lock:x"), "{out}");
    assert!(lines[3].starts_with("state     fires at "), "{out}");
    assert!(lines[4].starts_with("next      ") && lines[4].contains("   in "), "{out}");
    assert_eq!(lines.last(), Some(&"so far    0 fired, 0 skipped, 0 missed"), "{out}");
    assert_eq!(folder.told(&["schedule", "news-42"]).1.lines().count(), lines.len());

    let view = folder.json(&["schedule", "news-42"]);
    assert_eq!((&view["every"], &view["job"]["payload"]), (&"1h".into(), &json!({"source": 42})));
    assert_eq!(view["next"].as_array().map(Vec::len), Some(5), "{view}");
    // The same again changes nothing, and an option that is left out is the default again.
    assert_eq!(folder.json(&[&SET[..], &need].concat())["changed_at"], view["changed_at"]);
    assert_eq!(folder.json(&SET)["owner"], Value::Null);

    let (code, out, _) = folder.told(&["schedule", "pause", "news-42", "--for", "2h"]);
    assert!(code == 0 && out.contains("state     paused until "), "{out}");
    let listed = folder.told(&["schedule"]).1;
    assert!(listed.starts_with("SCHEDULE") && listed.contains("news-42"), "{listed}");
    assert!(listed.trim_end().ends_with('Z') && listed.contains("until 2"), "{listed}");
    assert_eq!(folder.json(&["schedule", "pause", "news-42"])["next"], json!([]));
    assert_eq!(folder.json(&["schedule", "resume", "news-42"])["paused"], false);

    let (code, out, err) = folder.told(&["schedule", "run-now", "news-42", "--id", "by-hand"]);
    assert_eq!((code, out.as_str()), (0, "by-hand\n"));
    assert!(err.contains("nobody has asked for queue 'news'"), "{err}");
    // While it has not ended no second one is made.
    let (code, out, err) = folder.told(&["schedule", "run-now", "news-42"]);
    assert_eq!((code, out.as_str()), (0, "by-hand\n"), "{err}");
    assert!(err.contains("has an unfinished job, which runs instead"), "{err}");
    assert_eq!(folder.json(&["job", "by-hand"])["schedule"], json!({"id": "news-42", "at": null}));
    assert!(folder.told(&["schedule", "news-42"]).1.contains("; a job of it has not ended"));

    let (code, out, _) = folder.told(&["schedule", "delete", "news-42"]);
    assert_eq!(
        (code, out.as_str()),
        (0, "schedule 'news-42' was deleted; the jobs that it made go on\n")
    );
    folder.fails(1, &["schedule", "news-42"], "news-42");
    assert_eq!(folder.json(&["job", "by-hand"])["state"], "ready");
}

#[test]
fn what_the_store_refuses_of_a_schedule_is_1() {
    let folder = Folder::new();
    for (arguments, part) in [
        (
            &["schedule", "set", "a", "--cron", "0 0 30 2 *", "--queue", "q"][..],
            "no moment within ten years",
        ),
        (
            &["schedule", "set", "a", "--cron", "@daily", "--zone", "Mars/Up", "--queue", "q"],
            "Mars/Up",
        ),
        (&["schedule", "set", "a", "--cron", "5/15 * * * *", "--queue", "q"], "write 5-59/15"),
        (
            &["schedule", "set", "a", "--every", "1h", "--queue", "q", "--need", "limit:no"],
            "limit \"no\"",
        ),
        (&["schedule", "a"], "\"a\""),
        (&["schedule", "pause", "a"], "\"a\""),
        (&["schedule", "run-now", "a"], "\"a\""),
        (&["schedule", "delete", "a"], "\"a\""),
    ] {
        let (code, out, err) = folder.told(arguments);
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
}

#[test]
fn a_file_is_the_whole_set_of_an_owner() {
    let folder = Folder::new();
    let file = folder.0.path().join("sources.csv");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let sync = ["schedule", "sync", "sources", "sources.csv"];
    write(
        "id,every,cron,zone,queue,url\na,15m,,,news,http://a\nb,,0 9 * * *,Europe/Berlin,news,http://b\n",
    );
    assert_eq!(folder.told(&sync).1, "2 added, 0 updated, 0 unchanged, 0 deleted\n");
    let listed = folder.json(&["schedule", "--owner", "sources"]);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2));
    let b = folder.json(&["schedule", "b"]);
    assert_eq!(
        (&b["zone"], &b["job"]["payload"]),
        (&"Europe/Berlin".into(), &json!({"url": "http://b"}))
    );
    write("id,every,queue,url\na,15m,news,http://a\nc,1h,news,http://c\n");
    let twice = [&sync[..], &["--set-version", "7"]].concat();
    let synced = json!({"added": 1, "updated": 0, "unchanged": 1, "deleted": 1});
    assert_eq!(folder.json(&twice), synced);

    folder.fails(1, &[&sync[..], &["--version", "6"]].concat(), "version 6 is below 7");
    write("id,every,queue\n");
    folder.fails(1, &sync, "add --force");
    write("id,every\na,1h\nc,1h\nx,1h\n");
    let others = ["schedule", "sync", "others", "sources.csv"];
    folder.fails(1, &others, "tenure: schedule \"a\" belongs to the owner \"sources\"");
    write("id,every,queue\n");
    assert_eq!(
        folder.told(&[&sync[..], &["--force"]].concat()).1,
        "0 added, 0 updated, 0 unchanged, 2 deleted\n"
    );
}

#[test]
fn cmd_knows_its_schedule_and_occurrence_and_sets_the_next_time() {
    let folder = Folder::new();
    let set = ["schedule", "set", "s", "--every", "1d", "--starts-at", "now", "--queue", "q"];
    assert_eq!(folder.told(&set).0, 0);
    // The first moment is now, so the worker meets its job.
    let work = |more: &[&str], script: &str| {
        let work = ["work", "q", "--max-jobs", "1"];
        folder.told(&[&work[..], more, &["--", "sh", "-c", script]].concat())
    };
    let script = "echo \"$TENURE_JOB_ID $TENURE_SCHEDULE@$TENURE_SCHEDULE_AT\"";
    let (code, out, err) = work(&["--next-in", "6h"], script);
    assert_eq!(code, 0, "{err}");
    let (job, said) = out.trim_end().split_once(' ').unwrap();
    // Whole seconds in the id; a moment elsewhere has its microseconds.
    assert_eq!(said.replace(".000000Z", "Z"), job, "{out}");
    let view = folder.json(&["schedule", "s"]);
    assert_eq!((&view["moved"], &view["last"]["job"]), (&true.into(), &job.into()), "{view}");
    let is_ahead = |view: &Value, hours: u64| {
        let at = |name: &str| view[name].as_str().unwrap().parse::<Moment>().unwrap();
        let (from, to) = (Span::from_s(hours * 3_600), Span::from_s(hours * 3_600 + 1));
        (from..=to).contains(&at("next_at").since(at("last_succeeded_at")))
    };
    assert!(is_ahead(&view, 6), "{view}");
    let output = folder.told(&["schedule", "s"]).1;
    assert!(output.contains(", as its job said\n"), "{output}");
    assert!(output.contains(&format!("last ended  {job} succeeded ")), "{output}");

    // The outcome file takes precedence over the option; a run-now has no moment.
    assert_eq!(folder.told(&["schedule", "run-now", "s", "--id", "by-hand"]).0, 0);
    let script = "echo '{\"outcome\":\"succeeded\",\"next_in\":\"2h\"}' > $TENURE_OUTCOME_FILE; \
                  echo \"$TENURE_SCHEDULE ${TENURE_SCHEDULE_AT-none}\"";
    assert_eq!(work(&["--next-in", "6h"], script).1, "s none\n");
    let view = folder.json(&["schedule", "s"]);
    assert!(is_ahead(&view, 2), "{view}");

    // A failure says nothing of the next moment.
    let before = view["next_at"].clone();
    assert_eq!(folder.told(&["schedule", "run-now", "s"]).0, 0);
    assert_eq!(work(&["--next-in", "9h"], "exit 65").0, 0);
    assert_eq!(folder.json(&["schedule", "s"])["next_at"], before);
}
