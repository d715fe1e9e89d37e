//! The lists of things that Tenure does not have deny nothing that exists.

use std::fs;

use tenure_server::document;

use super::{pages, root};

const HEADING: &str = "## What Tenure does not have\n";

/// Words for a thing that other systems have too; the route or the page that shows that it exists, and the page to
/// name.
const THERE: &[(&[&str], &str, &str)] = &[
    (&["metrics", "prometheus"], "/metrics", "docs/guides/monitoring.md"),
    (
        &["dashboard", "web interface", "asynqmon", "bull-board"],
        "docs/guides/dashboard.md",
        "docs/guides/dashboard.md",
    ),
    (&["flows", "dag"], "/v1/flows", "docs/guides/flows.md"),
    (&["cron", "schedules"], "/v1/schedules", "docs/guides/recurring-work.md"),
    (&["failures"], "/v1/failures", "docs/guides/dashboard.md"),
    (&["opentelemetry"], "docs/guides/traces.md", "docs/guides/traces.md"),
];

fn is_there(shown_by: &str) -> bool {
    match shown_by.strip_prefix('/') {
        Some(_) => document()["paths"].get(shown_by).is_some(),
        None => root().join(shown_by).is_file(),
    }
}

/// The items of the list, each as one line.
fn items(text: &str) -> Vec<String> {
    let Some(list) = text.split(HEADING).nth(1) else { return Vec::new() };
    let list = list.split("\n## ").next().unwrap_or_default();
    let mut items: Vec<String> = Vec::new();
    for line in list.lines() {
        if line.starts_with("- ") {
            items.push(line.to_owned());
        } else if let Some(item) = items.last_mut().filter(|_| line.starts_with("  ")) {
            item.push_str(line);
        }
    }
    items
}

/// The words for existing things in these items that do not name the page of the thing.
fn denied(items: &[String]) -> Vec<String> {
    let mut denied = Vec::new();
    for (words, shown_by, page) in THERE {
        assert!(is_there(shown_by), "{shown_by} is gone: take its row out of this check");
        let page = page.rsplit('/').next().unwrap_or(page);
        for item in items.iter().filter(|item| !item.contains(page)) {
            let item = item.to_lowercase();
            let named = words.iter().filter(|word| item.contains(**word));
            denied.extend(named.map(|word| format!("{word:?} in {item:?}")));
        }
    }
    denied
}

#[test]
fn a_list_of_what_is_missing_denies_nothing_that_is_there() {
    let lists: Vec<(String, Vec<String>)> = pages()
        .into_iter()
        .map(|(name, text)| (name, items(&text)))
        .filter(|(_, items)| !items.is_empty())
        .collect();
    let systems = fs::read_dir(root().join("docs/coming-from")).unwrap().count();
    assert_eq!(lists.len(), systems, "each page of docs/coming-from has such a list");
    let wrong: Vec<String> = lists
        .iter()
        .flat_map(|(name, items)| {
            denied(items).into_iter().map(move |denied| format!("{name}: {denied}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_lists_of_an_earlier_release_are_found_out() {
    let was = "## What Tenure does not have\n\n- **A metrics endpoint** for Prometheus.\n- The web interface, and\n  profiles.\n- A gem.\n";
    assert_eq!(denied(&items(was)).len(), 3);
}
