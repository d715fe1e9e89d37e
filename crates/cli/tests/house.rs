//! Rules about the code as a whole, which no compiler checks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// So many crates may each have a type of one name: a thing and what it is on the other side of a wall.
const CRATES_MAX: usize = 2;

/// All files of code below here that are not tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_str().unwrap();
        match path.is_dir() {
            true if name == "tests" || name == "histories" => {}
            true => sources(&path, found),
            false if name.ends_with(".rs") && name != "tests.rs" => found.push(path),
            false => {}
        }
    }
}

/// The name of the type that a line at the margin begins.
fn type_of(line: &str) -> Option<&str> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => line,
    };
    let line = line.trim_start();
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let rest = kinds.into_iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

#[test]
fn a_type_has_a_name_of_its_own_in_its_crate_and_one_namesake_at_most() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in fs::read_dir(crates).unwrap() {
        let folder = folder.unwrap().path();
        let of = folder.file_name().unwrap().to_str().unwrap().to_owned();
        // What only tests use may be called as it is there.
        if of == "testkit" || of == "conformance" {
            continue;
        }
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for name in production.lines().filter_map(type_of) {
                names.entry(name.to_owned()).or_default().push(of.clone());
            }
        }
    }
    assert!(names.len() > 500, "only {} types are seen", names.len());
    let mut wrong = Vec::new();
    for (name, mut crates) in names {
        let all = crates.len();
        crates.sort();
        crates.dedup();
        if crates.len() < all || crates.len() > CRATES_MAX {
            wrong.push(format!("{name}: {all} times, in {}", crates.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "types that share a name:\n{}", wrong.join("\n"));
}

#[test]
fn the_names_of_types_are_seen() {
    for (line, name) in [
        ("pub(crate) struct Lane {", Some("Lane")),
        ("pub enum Code<T> {", Some("Code")),
        ("type Read = fn();", Some("Read")),
        ("    struct Inner;", None),
        ("pub fn structure() {}", None),
        ("pub use self::x::{Type};", None),
    ] {
        assert_eq!(type_of(line), name, "{line}");
    }
}
