//! Pages name the tests behind their statements: each of these tests exists.

use std::fs;
use std::path::Path;

use super::root;

/// The pages whose tables name tests in their last column, and the fewest rows that each has.
const PAGES: &[(&str, usize)] = &[
    ("docs/hazards.md", 30),
    ("docs/guarantees/work.md", 20),
    ("docs/guarantees/single-machine.md", 12),
    ("docs/guarantees/redis.md", 10),
    ("docs/guarantees/cluster.md", 5),
    ("docs/deploy/upgrade.md", 3),
    ("docs/decisions/124-failure-histories.md", 30),
];

/// A test that a row names: the text between the backquotes, and the file behind it, seen from the page.
struct Named {
    name: String,
    file: String,
}

/// The tests in the last column of a row: `` [`NAME`](../FILE) ``.
fn named(row: &str) -> Vec<Named> {
    let last = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
    let one = |link: &str| {
        let (name, rest) = link.split_once("`](")?;
        let (file, _) = rest.split_once(')')?;
        file.starts_with("../").then(|| Named { name: name.to_owned(), file: file.to_owned() })
    };
    last.split("[`").skip(1).filter_map(one).collect()
}

fn lines_before(text: &str, at: usize) -> impl Iterator<Item = &str> {
    text[..at].lines().rev().map(str::trim)
}

/// A function under `#[test]` or `#[tokio::test…]`, other attributes between allowed.
fn is_rust_test(text: &str, name: &str) -> bool {
    let at = text.find(&format!("fn {name}("));
    let begin = at.map(|at| text[..at].rfind('\n').map_or(0, |end| end + 1));
    begin.is_some_and(|begin| {
        lines_before(text, begin)
            .take_while(|line| line.starts_with("#["))
            .any(|line| line == "#[test]" || line.starts_with("#[tokio::test"))
    })
}

/// The names that the table of the suite lists for a subject.
fn sentences<'a>(cases: &'a str, subject: &str) -> Vec<&'a str> {
    let block = cases.split(&format!(" {subject} {{")).nth(1);
    let block = block.and_then(|block| block.split('}').next()).unwrap_or_default();
    block.split_whitespace().collect()
}

/// `SUBJECT::NAME`: a sentence of the suite, listed among those of its subject, or a test in a module of that name.
/// `SUBJECT::*` is all of them, at least one.
fn is_of_subject(text: &str, file: &str, subject: &str, name: &str, cases: &str) -> bool {
    if !file.ends_with(&format!("/{subject}.rs")) {
        return false;
    }
    let of_the_suite = file.contains("/conformance/");
    match (of_the_suite, name) {
        (true, "*") => !sentences(cases, subject).is_empty(),
        (true, name) => {
            text.contains(&format!("fn {name}(")) && sentences(cases, subject).contains(&name)
        }
        (false, "*") => text.contains("#[test]") || text.contains("#[tokio::test"),
        (false, name) => is_rust_test(text, name),
    }
}

fn is_there(page: &Path, Named { name, file }: &Named, cases: &str) -> bool {
    let folder = page.parent().unwrap();
    let Ok(text) = fs::read_to_string(folder.join(file)) else { return false };
    match name.split_once("::") {
        Some((subject, name)) => is_of_subject(&text, file, subject, name, cases),
        None if file.ends_with(".py") => text
            .lines()
            .any(|line| line.trim_start_matches("async ").starts_with(&format!("def {name}("))),
        None => is_rust_test(&text, name),
    }
}

/// The rows of the tables whose last column names tests.
fn rows(page: &str) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut names_tests = false;
    for line in page.lines() {
        if !line.starts_with("| ") {
            names_tests = false;
        } else if line.ends_with("| shown by |") || line.ends_with("the test that provokes it |") {
            names_tests = true;
        } else if names_tests && !line.starts_with("| ---") {
            rows.push(line);
        }
    }
    rows
}

#[test]
fn each_row_of_a_page_names_tests_that_exist() {
    let cases = fs::read_dir(root().join("tests/conformance/src/cases")).unwrap();
    let cases: String =
        cases.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    let mut wrong = Vec::new();
    for (name, fewest) in PAGES {
        let path = root().join(name);
        let page = fs::read_to_string(&path).unwrap();
        let rows = rows(&page);
        assert!(rows.len() >= *fewest, "{name}: {} rows", rows.len());
        for row in rows {
            let tests = named(row);
            if tests.is_empty() {
                wrong.push(format!("{name}: no test: {row}"));
            }
            let missing = tests.iter().filter(|test| !is_there(&path, test, &cases));
            wrong.extend(
                missing.map(|test| format!("{name}: {} is no test of {}", test.name, test.file)),
            );
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_name_that_is_no_test_is_found() {
    let cases = " events { a_sentence } lost { another }";
    let suite = ("tests/conformance/src/events.rs", "pub async fn a_sentence(");
    for (file, text, subject, name, there) in [
        (suite.0, suite.1, "events", "a_sentence", true),
        (suite.0, suite.1, "events", "*", true),
        (suite.0, suite.1, "lost", "*", false),
        (suite.0, "fn another(", "events", "another", false),
        ("failures/kill.rs", "#[test]\nfn it_dies(", "kill", "it_dies", true),
        ("failures/kill.rs", "fn it_dies(", "kill", "it_dies", false),
        ("failures/kill.rs", "fn it_dies(", "kill", "*", false),
    ] {
        assert_eq!(
            is_of_subject(text, file, subject, name, cases),
            there,
            "{file} {subject}::{name}"
        );
    }
}
