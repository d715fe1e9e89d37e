//! Rules about the project as a whole, which no compiler checks: how the code is named, what an operation costs, and
//! whether the pages agree with the code and with each other.

mod absent;
mod circles;
mod contributing;
mod facts;
mod heads;
mod links;
mod log_lines;
mod named_tests;
mod threads;
mod type_names;

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All files of production code, in Rust and in Lua, by their paths below the root. The suite, the histories and the
/// fixtures are tests, wherever they are kept, and the peers are a workspace of their own.
fn production() -> Vec<String> {
    let (root, mut found) = (root(), Vec::new());
    for folder in ["crates", "tools"] {
        files(&root.join(folder), &mut found);
    }
    let other = [
        "/tests/",
        "/tests.rs",
        "/histories/",
        "/conformance/",
        "/testkit/",
        "/examples/",
        "tools/peers/",
    ];
    let paths = found.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap());
    let code = paths.filter(|path| {
        let is_code = path.ends_with(".rs") || path.ends_with(".lua");
        is_code && !other.iter().any(|part| path.contains(part))
    });
    code.map(str::to_owned).collect()
}

/// All files below a folder.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// All files below a folder of the project whose names end with `end`, by their paths below the root.
fn below(folder: &str, end: &str) -> Vec<String> {
    let (root, mut found) = (root(), Vec::new());
    files(&root.join(folder), &mut found);
    let paths = found.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap());
    paths.filter(|path| path.ends_with(end)).map(str::to_owned).collect()
}

/// The manifests of all crates, by their paths below the root.
fn manifests() -> Vec<String> {
    let folders = ["crates", "tests", "tools"].into_iter();
    let all = folders.flat_map(|folder| below(folder, "/Cargo.toml"));
    all.filter(|path| !path.starts_with("tools/peers/")).collect()
}

/// All pages of the project with their texts, by their paths below the root.
fn pages() -> Vec<(String, String)> {
    let mut names: Vec<String> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .collect();
    for folder in ["docs", "examples", "clients", "crates", "tests", "tools"] {
        names.extend(below(folder, ".md"));
    }
    // Packages installed for an example or a check are not ours.
    names.retain(|name| {
        !name.split('/').any(|part| matches!(part, ".venv" | "venv" | "node_modules" | "target"))
    });
    names.sort();
    names
        .into_iter()
        .map(|name| (name.clone(), fs::read_to_string(root().join(name)).unwrap()))
        .collect()
}

/// The text of a file without its tests.
fn code(path: &str) -> String {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let tests = ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\npub mod tests {"];
    let at = tests.iter().filter_map(|tests| text.find(tests)).min();
    text[..at.unwrap_or(text.len())].to_owned()
}
