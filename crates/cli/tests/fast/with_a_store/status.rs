//! `tenure status`: its exit code says if all is well, its lines say what is not, and what to do.

use tenure_testkit::tenure::told;

use crate::with_a_store::folder::Folder;
use crate::with_a_store::server::Server;

#[test]
fn the_exit_code_says_whether_something_needs_attention() {
    let folder = Folder::new();
    let (code, out, err) = folder.told(&["status"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("\n\nall is well\n"), "{out}");
    assert_eq!(out.split("\n\n").next().unwrap().lines().count(), 10, "{out}");

    folder.run(&["limit", "set", "shut", "--concurrency", "0"]);
    folder.run(&["push", "mail", "1"]);
    folder.run(&["push", "mail", "2", "--need", "limit:shut"]);
    let (code, out, err) = folder.told(&["status"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        out.contains("stuck  queue 'mail' has no worker: 2 wait, the oldest ready for "),
        "{out}"
    );
    assert!(out.contains("-> start a worker: tenure work mail -- CMD"), "{out}");
    assert!(!out.contains("all is well"), "{out}");
    assert!(err.contains("1 thing needs attention"), "{err}");

    // Asked once by a worker, the queue has one for a minute; the jobs fail for good, or wait at the limit.
    folder.run(&["work", "mail", "--max-jobs", "1", "--", "sh", "-c", "echo no page >&2; exit 65"]);
    let output = folder.run(&["--json", "status"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["ok"]), (Some(1), &false.into()), "{report}");
    assert_eq!(report["failed_in_the_last_hour"], 1, "{report}");
    assert_eq!(report["jobs"]["failed"], 1, "{report}");
    assert_eq!(report["full_limits"][0]["limit"], "shut", "{report}");
    let said: Vec<_> = report["attention"].as_array().unwrap().iter().collect();
    assert!(
        said.iter().any(|one| one["sentence"]
            == "queue 'mail': 1 job failed in the last hour with \"no page\""
            && one["subject"] == serde_json::json!({"kind": "queue", "name": "mail"})
            && one["fix"] == "see the errors: tenure failures --queue mail"),
        "{report}"
    );
}

#[test]
fn a_job_that_failed_among_many_is_shown_and_all_is_well() {
    let folder = Folder::new();
    let cmd = ["--", "sh", "-c", "test $TENURE_JOB_ID != bad || { echo no page >&2; exit 65; }"];
    let work = [&["work", "crawl", "--until-empty"][..], &cmd].concat();
    folder.run(&["push", "crawl", "1", "--id", "bad"]);
    folder.run(&work);
    let (code, out, err) = folder.told(&["status"]);
    let failed = "queue 'crawl': 1 job failed in the last hour with \"no page\"";
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains(&format!("look   {failed}\n")), "{out}");

    let lines = folder.0.path().join("lines");
    std::fs::write(&lines, "1\n".repeat(9)).unwrap();
    folder.run(&["push", "crawl", "--payloads", "--lines", lines.to_str().unwrap()]);
    folder.run(&work);
    let (code, out, err) = folder.told(&["status"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains(&format!("note   {failed}\n")), "{out}");
    assert!(out.ends_with("\nall is well\n"), "{out}");
}

#[test]
fn status_names_the_server_and_its_version_and_exits_69_if_away() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0");
    let out = server.done(&folder, &["status"]);
    let first = format!("http://{}, version {}, ready\n", server.at(), env!("CARGO_PKG_VERSION"));
    assert!(out.starts_with(&format!("address    {first}")), "{out}");
    let mut command = server.command(&folder, &["status"]);
    server.kill();
    let (code, out, err) = told(&mut command);
    assert_eq!((code, out.as_str()), (69, ""), "{err}");
    assert!(err.contains("hint: is it running?"), "{err}");
}
