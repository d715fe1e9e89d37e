//! Threads that keep a store are started where a panic ends the process.

use std::fs;

use super::{production, root};

/// The crates that keep a store, on either side of the journal.
const CRATES: &[&str] = &["election", "engine", "journal", "node", "redis"];
/// The one place, and the engine, which reports the panic of its own threads by `on_fatal`.
const PLACES: &[&str] = &["crates/journal/src/threads.rs", "crates/engine/src/engine.rs"];

#[test]
fn a_thread_that_keeps_a_store_is_started_in_one_place() {
    let of_a_store = production()
        .into_iter()
        .filter(|file| CRATES.iter().any(|name| file.starts_with(&format!("crates/{name}/src/"))));
    let mut starts = Vec::new();
    for file in of_a_store {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        // Tests within a file are at its end.
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let code = code.split("#[cfg(all(test,").next().unwrap_or_default();
        if ["thread::spawn(", "Builder::new().name", "spawn_scoped("]
            .iter()
            .any(|way| code.contains(way))
        {
            starts.push(file);
        }
    }
    starts.sort();
    let mut places: Vec<String> = PLACES.iter().map(|place| (*place).to_owned()).collect();
    places.sort();
    assert_eq!(starts, places, "start threads by tenure_journal::threads::spawn_or_die");
}

/// Where the tasks of a whole server are started. Those of single calls and connections are elsewhere, and may panic alone.
const OF_A_SERVER: &[&str] = &["crates/cli/src/cmd/serve/", "crates/server/src/program/"];

/// Tasks that are started without the end of the process on a panic, each with the rest of its line.
fn bare_tasks(code: &str) -> Vec<&str> {
    let started = code.split("tokio::spawn(").skip(1);
    let rests = started.map(|rest| rest.lines().next().unwrap_or_default());
    rests.filter(|rest| !rest.starts_with("task_or_die(")).collect()
}

#[test]
fn a_panic_in_a_task_of_a_server_ends_the_process() {
    let files = production()
        .into_iter()
        .filter(|file| OF_A_SERVER.iter().any(|folder| file.starts_with(folder)));
    let (mut bare, mut seen) = (Vec::new(), 0);
    for file in files {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        seen += code.matches("tokio::spawn(").count();
        bare.extend(bare_tasks(code).into_iter().map(|rest| format!("{file}: {rest}")));
    }
    assert!(seen > 2, "the tasks of a server are started elsewhere: mend OF_A_SERVER");
    assert!(bare.is_empty(), "start tasks by tenure_journal::threads::task_or_die: {bare:#?}");
}

#[test]
fn a_bare_task_is_found() {
    let code =
        "tokio::spawn(beat());\ntokio::spawn(task_or_die(\"b\", y));\ntokio::spawn(async move {";
    assert_eq!(bare_tasks(code), ["beat());", "async move {"]);
}
