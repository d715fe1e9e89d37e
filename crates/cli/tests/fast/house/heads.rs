//! Each file says at its head what it is for, and ARCHITECTURE.md names each crate: together they are the map of the code.

use std::collections::BTreeSet;
use std::fs;

use super::{code, manifests, production, root};

/// The crates that have a row in the table of a page.
fn in_table(page: &str) -> BTreeSet<&str> {
    let table = page.split("\n| crate |").nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| "));
    rows.filter_map(|row| row.split('`').nth(1)).collect()
}

#[test]
fn each_source_file_begins_with_its_purpose() {
    let files = production();
    let sources = files.iter().filter(|path| path.ends_with(".rs") && path.contains("/src/"));
    let (right, wrong): (Vec<_>, Vec<_>) = sources.partition(|path| code(path).starts_with("//! "));
    assert!(right.len() > 500, "only {} files are seen", right.len());
    assert!(wrong.is_empty(), "begin with `//! ` and what the file is for: {wrong:#?}");
}

#[test]
fn the_table_of_crates_has_a_row_for_each_crate() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let manifests = manifests();
    let crates: BTreeSet<&str> =
        manifests.iter().filter_map(|path| path.rsplit('/').nth(1)).collect();
    assert!(crates.len() > 15, "only {crates:?} are seen");
    assert_eq!(in_table(&page), crates, "the table of crates in ARCHITECTURE.md");
}

#[test]
fn rows_of_the_table_of_crates_are_seen() {
    let page =
        "# A\n\n| crate | what |\n| --- | --- |\n| `core` | `x` |\n| `cli` | y |\n\n| `no` |\n";
    assert_eq!(in_table(page), BTreeSet::from(["cli", "core"]));
}
