//! The page of the log quotes messages of the code: an operator finds each of them there.

use std::fs;

use super::{code, production, root};

const PAGE: &str = "docs/guides/logs.md";
/// The fewest rows that the table has.
const ROWS_MIN: usize = 30;

/// The messages in the first column of the table of a page, each as its fixed parts: `…` stands for a part that
/// changes.
fn quoted(page: &str) -> Vec<Vec<String>> {
    let table = page.split("| Line | What happened |").nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| "));
    let spans = rows.flat_map(|row| {
        let cell = row[2..].split(" | ").next().unwrap_or_default();
        cell.split('`').skip(1).step_by(2)
    });
    let parts = |span: &str| span.split('…').map(str::to_owned).collect();
    spans.map(parts).collect()
}

/// A source with its strings in one piece: a line that ends with a backslash goes on at the first word of the next.
fn joined(source: &str) -> String {
    let mut pieces = source.split("\\\n");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    text.extend(pieces.map(str::trim_start));
    text
}

/// Whether a line of this text has all of the parts, in their order.
fn has(text: &str, parts: &[String]) -> bool {
    text.lines().any(|line| {
        let found = parts.iter().try_fold(line, |rest, part| {
            rest.find(part.as_str()).map(|at| &rest[at + part.len()..])
        });
        found.is_some()
    })
}

#[test]
fn each_log_message_in_the_docs_is_written_by_the_code() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let messages = quoted(&page);
    assert!(messages.len() >= ROWS_MIN, "the table of {PAGE} is not found: mend this check");
    let sources: Vec<_> = production()
        .iter()
        .filter(|path| path.ends_with(".rs"))
        .map(|path| joined(&code(path)))
        .collect();
    let wrong: Vec<_> = messages
        .iter()
        .filter(|parts| !sources.iter().any(|source| has(source, parts)))
        .map(|parts| parts.join("…"))
        .collect();
    assert!(wrong.is_empty(), "{PAGE} quotes what no code writes:\n{}", wrong.join("\n"));
}

#[test]
fn a_message_is_found_by_its_fixed_parts_in_their_order() {
    let page = "`no`\n\n| Line | What happened | What to do |\n| --- | --- | --- |\n\
                | `… is … behind`, `well` (debug) | `no` | |\n\nMore `no`.\n";
    let messages = quoted(page);
    assert_eq!(messages, [vec!["", " is ", " behind"], vec!["well"]]);
    let source = joined("warn!(\"{url} is {n} \\\n      behind\");");
    assert!(has(&source, &messages[0]), "{source}");
    assert!(!has("\"behind {url} is {n}\"", &messages[0]) && !has(&source, &messages[1]));
}
