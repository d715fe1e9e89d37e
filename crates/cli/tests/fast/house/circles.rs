//! There is no circle between the files of a crate: a reader of one file needs no file that needs it too.
//!
//! A folder and the files in it belong together, so paths between them do not count, except in [`FOLDERS_TOO`]: there a
//! file that names the files of its folder holds nothing that they use. The root of a crate names everything, and never
//! counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::house::{below, code, manifests};

/// The crates in which paths between a folder and its files count as well.
const FOLDERS_TOO: [&str; 3] = ["crates/cli", "crates/redis", "crates/tls"];

/// The parts of a path in the code: `crate`, `file`, `rows`.
type Parts = Vec<String>;

/// The path of the module that a file is.
fn module_of(path: &str, source: &str) -> Parts {
    let parts = path.trim_start_matches(source).trim_end_matches(".rs").split('/');
    let mut parts: Parts = parts.filter(|part| !part.is_empty()).map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
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

/// The paths of a text: those of its imports, and those that stand in its code.
fn paths(text: &str) -> Vec<String> {
    let imports = text.split("use ").skip(1).flat_map(|statement| {
        leaves(&statement.split(';').next().unwrap().split_whitespace().collect::<String>())
    });
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    let is_end = |letter: char| !letter.is_alphanumeric() && !"_:".contains(letter);
    let words = lines.flat_map(|line| line.split_inclusive(is_end));
    // A path before a brace is the beginning of those in the import.
    let words = words.filter(|word| word.contains("::") && !word.ends_with("::{"));
    imports.chain(words.map(|word| word.trim_end_matches(is_end).to_owned())).collect()
}

/// The modules of the same crate that a text names.
fn needs(of: &Parts, text: &str, modules: &BTreeSet<Parts>, folders_too: bool) -> BTreeSet<Parts> {
    let mut found = BTreeSet::new();
    for path in paths(text) {
        let mut names = path.split("::").peekable();
        let mut at = match names.peek() {
            Some(&"crate") => Vec::new(),
            Some(&("super" | "self")) => of.clone(),
            Some(name) if modules.contains(&[&of[..], &[(*name).to_owned()]].concat()) => {
                of.clone()
            }
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
    let belongs = |other: &Parts| other.starts_with(of) || of.starts_with(other);
    found.retain(
        |other| {
            if folders_too { other != of && !other.is_empty() } else { !belongs(other) }
        },
    );
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
    let (mut arrows, mut circles) = (0, Vec::new());
    for manifest in manifests() {
        let of = manifest.trim_end_matches("/Cargo.toml");
        let (source, folders_too) = (format!("{of}/src/"), FOLDERS_TOO.contains(&of));
        let files = below(&source, ".rs");
        let files: Vec<_> = files.iter().filter(|path| !path.ends_with("/tests.rs")).collect();
        let modules: BTreeSet<Parts> = files.iter().map(|path| module_of(path, &source)).collect();
        let needs: BTreeMap<Parts, BTreeSet<Parts>> = files
            .iter()
            .map(|path| {
                let module = module_of(path, &source);
                let needs = needs(&module, &code(path), &modules, folders_too);
                (module, needs)
            })
            .collect();
        arrows += needs.values().map(BTreeSet::len).sum::<usize>();
        let found = modules.iter().find_map(|module| circle(module, &needs));
        circles.extend(found.map(|way| format!("{of}: {way:?}")));
    }
    assert!(circles.is_empty(), "{}", circles.join("\n"));
    assert!(arrows > 2000, "only {arrows} paths are seen");
}

#[test]
fn paths_and_circles_are_seen() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Parts>();
    let modules: BTreeSet<Parts> =
        [path("a"), path("a::b"), path("c"), path("d"), path("e"), Vec::new()].into();
    let text = "use std::fmt;\nuse crate::c::{self, X, y::{Z}};\nuse super::Q;\npub use crate::{d::E,\n a::b::F};";
    let seen = |of: &str, text: &str, folders_too| needs(&path(of), text, &modules, folders_too);
    assert_eq!(seen("a::b", text, false), [path("c"), path("d")].into());
    assert_eq!(seen("c", text, false), [path("a::b"), path("d")].into());
    assert_eq!(seen("a::b", text, true), [path("a"), path("c"), path("d")].into());
    let text = "crate::e::f::<u8>(super::super::c::G); // crate::d::H\nself::I";
    assert_eq!(seen("a::b", text, false), [path("c"), path("e")].into());
    let text = "b::run(crate::e::f)";
    assert_eq!(seen("a", text, false), [path("e")].into());
    assert_eq!(seen("a", text, true), [path("a::b"), path("e")].into());
    let needs: BTreeMap<Parts, BTreeSet<Parts>> =
        [(path("c"), [path("d")].into()), (path("d"), [path("a"), path("c")].into())].into();
    assert_eq!(circle(&path("c"), &needs).map(|way| way.len()), Some(3));
    assert_eq!(circle(&path("a"), &needs), None);
}
