//! The pages of the project lead somewhere: each relative link names a file that is there, and each anchor a heading.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{below, pages, root};

/// The links of a page, `[text](target)`, outside of code.
fn links(page: &str) -> Vec<String> {
    let text = without_code(page);
    let targets = text.split("](").skip(1);
    let one = |rest: &str| rest.split(')').next().map(|target| target.trim().to_owned());
    targets.filter_map(one).filter(|target| !target.is_empty()).collect()
}

/// The text without its fenced blocks and without what stands between backquotes. The text of a link stays, which may be
/// code itself.
fn without_code(page: &str) -> String {
    let lines = unfenced(page).into_iter();
    lines.map(|line| line.split('`').step_by(2).collect::<String>() + "\n").collect()
}

/// The texts between backquotes outside of fenced blocks.
fn spans(page: &str) -> impl Iterator<Item = &str> {
    unfenced(page).into_iter().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The lines outside of fenced blocks.
fn unfenced(page: &str) -> Vec<&str> {
    let mut fenced = false;
    let shown = page.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    });
    shown.collect()
}

/// The anchors that a code host makes of the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    let mut fenced = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let heading = line.trim_start_matches('#');
        if fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let slug = slug(heading.trim());
        let count = seen.entry(slug.clone()).or_default();
        found.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    found
}

/// A heading as an anchor: lower case, spaces as hyphens, no punctuation; of a link only its text.
fn slug(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text.to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        })
        .collect()
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[test]
fn each_link_leads_to_a_file_and_each_anchor_to_a_heading() {
    let root = root();
    let pages = pages();
    assert!(pages.len() > 150, "only {} pages are seen", pages.len());
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (name, text) in &pages {
        let folder = Path::new(name).parent().unwrap();
        for link in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            seen += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => PathBuf::from(name),
                path => plain(&folder.join(path)),
            };
            if !root.join(&target).exists() {
                wrong.push(format!("{name}: {link}: there is no such file"));
            } else if !anchor.is_empty() {
                let page = fs::read_to_string(root.join(&target)).unwrap_or_default();
                if !anchors(&page).contains(anchor) {
                    wrong.push(format!("{name}: {link}: there is no such heading"));
                }
            }
        }
    }
    assert!(seen > 800, "only {seen} links are seen");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_source_file_that_a_page_names_is_there() {
    let is_source = |path: &str| {
        let plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        let ends = [".rs", ".lua", ".py", ".ts"];
        plain && path.contains('/') && ends.iter().any(|end| path.ends_with(end))
    };
    let folders = ["crates", "tests", "tools", "clients", "examples"].into_iter();
    let sources: Vec<String> = folders.flat_map(|folder| below(folder, "")).collect();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (name, text) in &pages() {
        for path in spans(text).filter(|path| is_source(path)) {
            seen += 1;
            let end = format!("/{path}");
            if !sources.iter().any(|source| source == path || source.ends_with(&end)) {
                wrong.push(format!("{name}: {path}: there is no such file"));
            }
        }
    }
    assert!(seen > 100, "only {seen} paths are seen");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Folders of pages, and the page that leads to each page in it.
const INDEXES: &[(&str, &str)] = &[
    ("docs/start/", "docs/start/README.md"),
    ("docs/guides/", "docs/guides/README.md"),
    ("docs/deploy/", "docs/deploy/README.md"),
    ("docs/reference/", "docs/reference/README.md"),
    ("docs/guarantees/", "docs/guarantees.md"),
    ("docs/coming-from/", "docs/coming-from/README.md"),
    ("docs/decisions/", "docs/decisions/README.md"),
];

#[test]
fn each_page_is_in_the_index_of_its_folder() {
    let pages = pages();
    let mut wrong = Vec::new();
    for (folder, index) in INDEXES {
        let (_, text) = pages.iter().find(|(name, _)| name == index).unwrap();
        let near = Path::new(index).parent().unwrap();
        let reached: BTreeSet<PathBuf> = links(text)
            .iter()
            .map(|link| plain(&near.join(link.split('#').next().unwrap_or_default())))
            .collect();
        let within = pages.iter().filter(|(name, _)| name.starts_with(folder) && name != index);
        for (name, _) in within {
            if !reached.contains(Path::new(name)) {
                wrong.push(format!("{index} does not lead to {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_and_anchors_are_seen_as_a_code_host_sees_them() {
    let page = "# A page\n\n[`code`](a.md) and `[no](b.md)`, ![picture](c.svg)\n\n```sh\n[no](d.md)\n# no\n```\n";
    assert_eq!(links(page), ["a.md", "c.svg"]);
    let page =
        "# It's `retain: 0s`, *twice*\n## [Name](x.md) - 2\n## 保证什么，不保证什么\n# a\n# a\n";
    let found: Vec<_> = anchors(page).into_iter().collect();
    assert_eq!(found, ["a", "a-1", "its-retain-0s-twice", "name---2", "保证什么不保证什么"]);
}
