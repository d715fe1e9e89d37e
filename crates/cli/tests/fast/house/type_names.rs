//! A type has a name that no other type in its crate has, so that every reader knows which one it is.

use std::collections::BTreeMap;

use crate::house::{code, production};

/// At most this many crates may have a type of one name: a thing and its counterpart on the other side of a wall.
const CRATES_MAX: usize = 2;

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
fn a_type_name_occurs_once_in_a_crate_and_in_two_crates_at_most() {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in production().iter().filter(|path| path.ends_with(".rs") && path.contains("/src/")) {
        let of = path.split('/').nth(1).unwrap();
        for name in code(path).lines().filter_map(type_of) {
            names.entry(name.to_owned()).or_default().push(of.to_owned());
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
