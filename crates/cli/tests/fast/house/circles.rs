//! There is no circle between the files of the crates that keep a store or serve it: a reader of one file needs no file
//! that needs it too.
//!
//! A folder and the files in it belong together, so imports between them do not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::house::{below, code};

/// The crates that this holds for.
const CRATES: [&str; 7] =
    ["election", "engine", "engine-api", "journal", "node", "redis", "server"];

/// The parts of a path in the code: `crate`, `file`, `rows`.
type Parts = Vec<String>;

/// The path of the module that a file is.
fn module_of(path: &str, source: &str) -> Parts {
    let parts = path.trim_start_matches(source).trim_end_matches(".rs").split('/');
    let mut parts: Parts = parts.filter(|part| !part.is_empty()).map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

/// The paths that an import names, one for each of its leaves.
fn leaves(import: &str) -> Vec<String> {
    let Some((before, rest)) = import.split_once('{') else { return vec![import.to_owned()] };
    let Some((inner, _)) = rest.rsplit_once('}') else { return Vec::new() };
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for letter in inner.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(letter);
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(|part| leaves(&format!("{before}{part}"))).collect()
}

/// The modules of the same crate that a text imports from.
fn imports(of: &Parts, text: &str, modules: &BTreeSet<Parts>) -> BTreeSet<Parts> {
    let mut found = BTreeSet::new();
    for statement in text.split("use ").skip(1) {
        let statement: String = statement.split(';').next().unwrap().split_whitespace().collect();
        for leaf in leaves(&statement) {
            let mut names = leaf.split("::").peekable();
            let mut at = match names.peek() {
                Some(&"crate") => Vec::new(),
                Some(&("super" | "self")) => of.clone(),
                _ => continue,
            };
            for name in names {
                match name {
                    "crate" | "self" => {}
                    "super" => drop(at.pop()),
                    name => {
                        at.push(name.to_owned());
                        if !modules.contains(&at) {
                            at.pop();
                            break;
                        }
                    }
                }
            }
            found.insert(at);
        }
    }
    found.retain(|other| !other.starts_with(of) && !of.starts_with(other));
    found
}

/// The modules on a way from this one back to it, if there is one.
fn circle(from: &Parts, needs: &BTreeMap<Parts, BTreeSet<Parts>>) -> Option<Vec<Parts>> {
    let mut seen = BTreeSet::new();
    let mut ways = vec![vec![from.clone()]];
    while let Some(way) = ways.pop() {
        for next in needs.get(way.last().unwrap()).into_iter().flatten() {
            let mut longer = way.clone();
            longer.push(next.clone());
            if next == from {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                ways.push(longer);
            }
        }
    }
    None
}

#[test]
fn files_need_each_other_in_one_direction() {
    let mut arrows = 0;
    for of in CRATES {
        let source = format!("crates/{of}/src/");
        let files = below(&source, ".rs");
        let files: Vec<_> = files.iter().filter(|path| !path.ends_with("/tests.rs")).collect();
        let modules: BTreeSet<Parts> = files.iter().map(|path| module_of(path, &source)).collect();
        let needs: BTreeMap<Parts, BTreeSet<Parts>> = files
            .iter()
            .map(|path| {
                let module = module_of(path, &source);
                let needs = imports(&module, &code(path), &modules);
                (module, needs)
            })
            .collect();
        arrows += needs.values().map(BTreeSet::len).sum::<usize>();
        for module in &modules {
            let circle = circle(module, &needs);
            assert!(circle.is_none(), "{of}: {circle:?}");
        }
    }
    assert!(arrows > 200, "only {arrows} imports are seen");
}

#[test]
fn imports_and_circles_are_seen() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Parts>();
    let modules: BTreeSet<Parts> =
        [path("a"), path("a::b"), path("c"), path("d"), Vec::new()].into();
    let text = "use std::fmt;\nuse crate::c::{self, X, y::{Z}};\nuse super::Q;\npub use crate::{d::E,\n a::b::F};";
    assert_eq!(imports(&path("a::b"), text, &modules), [path("c"), path("d")].into());
    assert_eq!(imports(&path("c"), text, &modules), [path("a::b"), path("d")].into());
    let needs: BTreeMap<Parts, BTreeSet<Parts>> =
        [(path("c"), [path("d")].into()), (path("d"), [path("a"), path("c")].into())].into();
    assert_eq!(circle(&path("c"), &needs).map(|way| way.len()), Some(3));
    assert_eq!(circle(&path("a"), &needs), None);
}
