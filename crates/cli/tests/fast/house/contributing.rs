//! "How to add an operation" in CONTRIBUTING.md, walked: the files that it names are there, and an operation lives in
//! these files and in no others.

use std::collections::BTreeSet;
use std::fs;

use tenure_core::requests::OPERATIONS;

use crate::house::{code, production, root};

/// Places in production code that an operation may cost. One of them counts its rows, in a match that has an arm for each; another
/// decides for each what a token permits, and a third what the trail shows.
const PLACES_MAX: usize = 9;

/// Operations of the usual kind, and the word of the command line for each.
const WALKED: &[(&str, &str)] =
    &[("observe_limit", "Observe"), ("cool_resource", "Cool"), ("ban_resource", "Ban")];

/// Where an operation may also stand: as a word for Rust users, as a button for people.
const MAY_STAND: [&str; 2] = ["crates/client/src/spoken/", "crates/dashboard/src/pages/"];

/// The paths that the rows of the two tables name: of production code, and of tests.
fn rows() -> (Vec<String>, Vec<String>) {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, section) = page.split_once("## How to add an operation").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let (code, tests) = section.split_once("\nIts tests").unwrap();
    let paths = |text: &str| {
        let rows = text.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
        rows.map(|row| row.rsplit('`').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    (paths(code), paths(tests))
}

/// `PauseQueue` for the operation `pause_queue`.
fn type_of(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(word).collect()
}

/// Whether a text has one of these words.
fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| words.contains(&word))
}

/// The code of a file without its comments and its tests.
fn without_comments(path: &str) -> String {
    let is_code = |line: &&str| !["//", "--"].iter().any(|c| line.trim_start().starts_with(c));
    code(path).lines().filter(is_code).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_tables_name_files_that_are_there_and_not_too_many() {
    let (rows, tests) = rows();
    assert!(rows.len() <= PLACES_MAX, "{rows:?}");
    assert!(!tests.is_empty());
    for path in rows.iter().chain(&tests) {
        assert!(root().join(path).exists(), "CONTRIBUTING.md names {path}");
    }
}

#[test]
fn an_operation_is_in_one_file_of_each_row_and_in_no_other() {
    let (rows, _) = rows();
    let all = production();
    for (name, said) in WALKED {
        let spec = OPERATIONS.iter().find(|spec| spec.name == *name).unwrap();
        let named = type_of(name);
        let mut found = BTreeSet::new();
        for path in &all {
            let words: &[&str] =
                if path.contains("/cli/src/args/") { &[said] } else { &[&named, spec.name] };
            let may = MAY_STAND.iter().any(|folder| path.starts_with(folder));
            if !may && has_word(&without_comments(path), words) {
                found.insert(path);
            }
        }
        for row in &rows {
            assert!(
                found.iter().any(|path| path.starts_with(row.as_str())),
                "{name} is not in {row}"
            );
        }
        let stray: Vec<_> = found
            .iter()
            .filter(|path| !rows.iter().any(|row| path.starts_with(row.as_str())))
            .collect();
        assert!(stray.is_empty(), "CONTRIBUTING.md does not name where {name} is too: {stray:?}");
        // Fields that several operations share may be declared in a file of their own.
        assert!(found.len() <= PLACES_MAX + 1, "{name} costs {found:#?}");
    }
}
