//! docs/hazards.md names a test for each failure: each of them is there.

use std::fs;

use super::root;

/// A test as a row names it: what stands between the backquotes, and the file behind it.
struct Named {
    name: String,
    file: String,
}

/// The tests in the last column of a row: `` [`NAME`](../FILE) ``.
fn named(row: &str) -> Vec<Named> {
    let last = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
    let one = |link: &str| {
        let (name, rest) = link.split_once("`](../")?;
        let (file, _) = rest.split_once(')')?;
        Some(Named { name: name.to_owned(), file: file.to_owned() })
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

/// A sentence of the suite, `SUBJECT::NAME`: a function of its file, and listed among the cases of its subject.
fn is_sentence(text: &str, file: &str, subject: &str, name: &str, cases: &str) -> bool {
    let listed = cases.split(&format!(" {subject} {{")).nth(1);
    let listed = listed.and_then(|block| block.split('}').next()).unwrap_or_default();
    file.ends_with(&format!("/{subject}.rs"))
        && text.contains(&format!("fn {name}("))
        && listed.split_whitespace().any(|word| word == name)
}

fn is_there(Named { name, file }: &Named, cases: &str) -> bool {
    let Ok(text) = fs::read_to_string(root().join(file)) else { return false };
    match name.split_once("::") {
        Some((subject, name)) => is_sentence(&text, file, subject, name, cases),
        None if file.ends_with(".py") => text
            .lines()
            .any(|line| line.trim_start_matches("async ").starts_with(&format!("def {name}("))),
        None => is_rust_test(&text, name),
    }
}

#[test]
fn each_hazard_names_tests_that_exist() {
    let cases = fs::read_dir(root().join("crates/conformance/src/cases")).unwrap();
    let cases: String =
        cases.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    let page = fs::read_to_string(root().join("docs/hazards.md")).unwrap();
    let is_row = |line: &&str| {
        line.starts_with("| ") && !line.starts_with("| ---") && !line.starts_with("| the failure")
    };
    let rows: Vec<_> = page.lines().filter(is_row).collect();
    assert!(rows.len() >= 30, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let tests = named(row);
        if tests.is_empty() {
            wrong.push(format!("no test: {row}"));
        }
        let missing = tests.iter().filter(|test| !is_there(test, &cases));
        wrong.extend(missing.map(|Named { name, file }| format!("{name} is no test of {file}")));
    }
    assert_eq!(wrong, Vec::<String>::new());
}
