//! Threads that keep a store are started where a panic ends the process.

use std::fs;

use super::{production, root};

/// What keeps a store, on whichever side of the journal.
const CRATES: &[&str] = &["engine", "journal", "journal-redis", "member", "owner"];
/// The one place, and the engine, which tells of the panic of its own threads by `on_fatal`.
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
