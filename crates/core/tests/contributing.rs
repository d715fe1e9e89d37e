//! "How to add an operation" in CONTRIBUTING.md, walked: the files that it names are there, and an operation lives in
//! these files and in no others.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tenure_core::requests::OPERATIONS;

/// Files of production code that an operation may cost.
const FILES_MAX: usize = 10;

/// Operations of the usual kind, and the word of the command line for each.
const WALKED: &[(&str, &str)] =
    &[("pause_queue", "Pause"), ("observe_limit", "Observe"), ("cool_resource", "Cool")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

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

/// All files below a folder.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, into),
            false => into.push(path),
        }
    }
}

/// `PauseQueue` of `pause_queue`.
fn type_of(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(word).collect()
}

/// Whether a text has one of these words.
fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| words.contains(&word))
}

/// The code of a file without its comments and its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let is_code = |line: &&str| !["//", "--"].iter().any(|c| line.trim_start().starts_with(c));
    text.lines().filter(is_code).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_tables_name_files_that_are_there_and_not_too_many() {
    let (production, tests) = rows();
    assert!(production.len() <= FILES_MAX, "{production:?}");
    assert!(!tests.is_empty());
    for path in production.iter().chain(&tests) {
        assert!(root().join(path).exists(), "CONTRIBUTING.md names {path}");
    }
}

#[test]
fn an_operation_is_in_one_file_of_each_row_and_in_no_other() {
    let (production, _) = rows();
    let mut all = Vec::new();
    files(&root().join("crates"), &mut all);
    // The suite, the histories and the fixtures are tests, wherever they are kept.
    let tests = ["/tests/", "/tests.rs", "/histories/", "/conformance/", "/testkit/", "/examples/"];
    all.retain(|path| {
        let path = path.to_str().unwrap();
        let is_code = path.ends_with(".rs") || path.ends_with(".lua");
        is_code && !tests.iter().any(|part| path.contains(part))
    });
    for (name, said) in WALKED {
        let spec = OPERATIONS.iter().find(|spec| spec.name == *name).unwrap();
        let named = type_of(name);
        let mut found = BTreeSet::new();
        for path in &all {
            let words: &[&str] = match path.to_str().unwrap().contains("/cli/src/args/") {
                true => &[said],
                false => &[&named, spec.name, spec.function],
            };
            if has_word(&code(path), words) {
                found.insert(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
        for row in &production {
            assert!(found.iter().any(|path| path.starts_with(row)), "{name} is not in {row}");
        }
        let stray: Vec<&String> = found
            .iter()
            .filter(|path| !production.iter().any(|row| path.starts_with(row.as_str())))
            .collect();
        assert!(stray.is_empty(), "CONTRIBUTING.md does not name where {name} is too: {stray:?}");
        assert!(found.len() <= FILES_MAX, "{name} costs {found:#?}");
    }
}
