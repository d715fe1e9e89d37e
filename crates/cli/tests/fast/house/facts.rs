//! The pages agree with the code: formats, versions, what is there and what is not, and what can be installed.

use std::fs;

use super::{below, code, manifests, pages, root};

/// Decisions and the dated parts of the changelogs describe the past.
fn is_of_today(name: &str) -> bool {
    !name.starts_with("docs/decisions/")
}

/// The pages of today; of a changelog only what has not been released, and the newest day.
fn pages_of_today() -> Vec<(String, String)> {
    let today = pages().into_iter().filter(|(name, _)| is_of_today(name));
    let newest = |text: String| text.split("\n## ").take(3).collect::<Vec<_>>().join("\n## ");
    let page = |(name, text): (String, String)| {
        if name.ends_with("CHANGELOG.md") { (name, newest(text)) } else { (name, text) }
    };
    today.map(page).collect()
}

/// The numbers right behind these words; marks between are ignored.
fn numbers_after(text: &str, words: &str) -> Vec<String> {
    let starts = text.match_indices(words).map(|(at, _)| &text[at + words.len()..]);
    let number = |rest: &str| {
        let rest = rest.trim_start_matches([' ', '*', '`', '\n']);
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].trim_end_matches('.').to_owned()
    };
    starts.map(number).filter(|number| !number.is_empty()).collect()
}

/// The text behind these words in a file of the project, up to a quotation mark.
fn setting(file: &str, words: &str) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let rest = text.split(words).nth(1).unwrap_or_else(|| panic!("{file} has no {words}"));
    rest.split('"').next().unwrap().to_owned()
}

/// The number that a text begins with, dots within it included.
fn leading_number(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

#[test]
fn numbers_on_pages_are_those_of_the_code() {
    let version = setting("Cargo.toml", "[workspace.package]\nversion = \"");
    let format = tenure_engine::FORMAT.to_string();
    let said: &[(&str, &str)] = &[
        ("format ", &format),
        ("every package in it says ", &version),
        ("Every package says ", &version),
    ];
    let mut wrong = Vec::new();
    for (words, expected) in said {
        let mut seen = 0;
        for (name, text) in pages_of_today() {
            for number in numbers_after(&text, words) {
                seen += 1;
                if number != **expected {
                    wrong.push(format!("{name}: \"{words}{number}\", and it is {expected}"));
                }
            }
        }
        if seen == 0 {
            wrong.push(format!("no page says \"{words}\" and a number: mend this check"));
        }
    }
    let of_python = setting("clients/python/pyproject.toml", "\nversion = \"");
    if of_python != version {
        wrong.push(format!("clients/python has version {of_python}, the workspace {version}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each "NAME … N or newer" of a text: the last of these names before the number, in the same paragraph, and the number.
fn minima<'a>(text: &str, names: &[&'a str]) -> Vec<(&'a str, String)> {
    let text = text.replace('\n', " ").replace("  ", " ¶ ");
    let mut found = Vec::new();
    for words in [" or newer", " or later", " 以上"] {
        for (at, _) in text.match_indices(words) {
            let before = &text[..at];
            let begin = before.rfind(|c: char| !c.is_ascii_digit() && c != '.');
            let begin = begin.map_or(0, |at| at + before[at..].chars().next().unwrap().len_utf8());
            let (rest, number) = before.split_at(begin);
            let sentence = rest.rsplit(['¶', '。', '；']).next().unwrap_or_default();
            let sentence = sentence.rsplit(". ").next().unwrap_or_default();
            let last = names.iter().filter_map(|name| Some((sentence.rfind(name)?, *name))).max();
            if let (Some((_, name)), false) = (last, number.is_empty()) {
                found.push((name, number.to_owned()));
            }
        }
    }
    found
}

#[test]
fn what_pages_ask_for_is_what_the_project_needs() {
    let needed = [
        ("Rust", setting("Cargo.toml", "rust-version = \"")),
        ("Python", setting("clients/python/pyproject.toml", "requires-python = \">=")),
        ("Redis", setting("crates/cli/src/cmd/doctor/rules.rs", "install Redis ")),
        ("Valkey", setting("crates/cli/src/cmd/doctor/rules.rs", "install Redis ")),
        ("Node", setting("tools/test/needs.py", "_node_is_here(major: int = ")),
    ];
    let names: Vec<_> = needed.iter().map(|(name, _)| *name).collect();
    let mut seen = Vec::new();
    let mut wrong = Vec::new();
    for (page, text) in pages_of_today() {
        for (name, number) in minima(&text, &names) {
            let (_, least) = needed.iter().find(|(needed, _)| *needed == name).unwrap();
            if number.trim_end_matches(".0") != leading_number(least).trim_end_matches(".0") {
                wrong.push(format!("{page}: {name} {number}, and it takes {least}"));
            }
            seen.push(name);
        }
    }
    for name in ["Rust", "Python", "Valkey", "Node"] {
        assert!(seen.contains(&name), "no page says which {name} is needed: mend this check");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_minimum_is_that_of_the_name_before_it() {
    let names = ["Rust", "Python", "Valkey"];
    for (text, found) in [
        ("[Rust](https://rustup.rs) 1.89 or newer and a C compiler", vec![("Rust", "1.89")]),
        ("Redis or Valkey (7\nor newer)", vec![("Valkey", "7")]),
        ("Python is needed. Version 5 or newer", vec![]),
        (
            "[Rust](https://rustup.rs) 1.88 以上和 Python 包，3.9 以上",
            vec![("Rust", "1.88"), ("Python", "3.9")],
        ),
    ] {
        let found: Vec<_> =
            found.into_iter().map(|(name, number)| (name, number.to_owned())).collect();
        assert_eq!(minima(text, &names), found, "{text}");
    }
}

/// Things that a page must not call missing once this file exists.
const THERE: &[(&str, &str)] = &[
    ("no django", "docs/guides/django.md"),
    ("a django integration", "docs/guides/django.md"),
    ("no opentelemetry", "docs/guides/traces.md"),
    ("no fastapi", "docs/guides/fastapi.md"),
    ("no python package", "clients/python/README.md"),
    ("- **middleware.**", "clients/python/src/tenure/middleware.py"),
    ("no middleware", "clients/python/src/tenure/middleware.py"),
];

#[test]
fn no_page_calls_missing_what_is_there() {
    let mut wrong = Vec::new();
    for (name, text) in pages_of_today() {
        let text = text.to_lowercase();
        let there = THERE.iter().filter(|(_, file)| root().join(file).exists());
        let said = there.filter(|(words, _)| text.contains(words));
        wrong.extend(said.map(|(words, file)| format!("{name}: \"{words}\", and there is {file}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pages that are read on one screen or in a minute, and the most lines that each has.
const SHORT: &[(&str, usize)] = &[
    ("README.md", 150),
    ("ARCHITECTURE.md", 150),
    ("CONTRIBUTING.md", 150),
    ("docs/guarantees.md", 60),
];

#[test]
fn pages_that_are_read_first_stay_short() {
    for (name, most) in SHORT {
        let lines = fs::read_to_string(root().join(name)).unwrap().lines().count();
        assert!(lines <= *most, "{name} has {lines} lines, and {most} are for it");
    }
}

#[test]
fn the_recording_of_the_demo_shows_no_paths_of_its_machine() {
    let picture = fs::read_to_string(root().join("docs/demo.svg")).unwrap();
    assert!(picture.contains(">holds<"), "the end of the demo is not in it");
    for strange in ["\u{fffd}", "/home/", "/root/", "/tmp/", "/work/", "target/"] {
        assert!(!picture.contains(strange), "{strange:?} is in it");
    }
}

/// Commands that would install names that are not ours on their registries. Nothing is published: a stranger who takes
/// such a name first would own everybody who follows the page.
fn installs_a_strangers_name(line: &str) -> bool {
    let line = line.replace(['\'', '"', '`'], " ");
    let after = |words: &str| line.split(words).nth(1).map(str::to_owned);
    let named = |rest: String| {
        let ours = |word: &str| {
            let name = word.split(['[', '=', '@', ',', '.', ')', ';']).next().unwrap_or_default();
            matches!(name, "tenure" | "tenure-server" | "tenure-cli") && !word.contains('/')
        };
        // With --find-links alone pip asks its registry, too.
        let from_a_folder = ["--no-index", "--path", "--git"];
        rest.split_whitespace().any(ours) && !from_a_folder.iter().any(|flag| rest.contains(flag))
    };
    [
        "pip install",
        "pipx install",
        "uv add",
        "uv pip install",
        "cargo add",
        "cargo install",
        "npm i",
        "npm install",
    ]
    .iter()
    .any(|words| after(words).is_some_and(named))
}

#[test]
fn no_page_and_no_message_installs_a_name_that_is_not_ours() {
    let mut texts = pages();
    for name in below("clients/python/src", ".py") {
        let text = fs::read_to_string(root().join(&name)).unwrap();
        texts.push((name, text));
    }
    let mut wrong = Vec::new();
    for (name, text) in &texts {
        let lines = text.lines().filter(|line| installs_a_strangers_name(line));
        wrong.extend(lines.map(|line| format!("{name}: {}", line.trim())));
    }
    assert!(
        wrong.is_empty(),
        "nothing is published yet; name a file or the repository instead:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn lines_that_install_are_told_apart() {
    for (line, wrong) in [
        ("pip install tenure-server", true),
        ("install it: pip install 'tenure[httpx]'", true),
        ("(`pip install 'tenure[httpx]'`). An application", true),
        ("cargo add tenure", true),
        ("pip install ./clients/python", false),
        ("pip install --no-index --find-links target/wheels 'tenure[server]'", false),
        ("pip install --find-links target/wheels 'tenure[server]'", true),
        ("pip install './clients/python[httpx]'   # for tenure", true),
        ("pip install scrapyd==1.6.0", false),
        ("cargo install --path crates/cli tenure", false),
    ] {
        assert_eq!(installs_a_strangers_name(line), wrong, "{line}");
    }
}

#[test]
fn code_in_the_documentation_of_a_crate_is_run() {
    for manifest in manifests() {
        let folder = manifest.trim_end_matches("/Cargo.toml");
        let is_run = !code(&manifest).contains("doctest = false");
        let has_code = below(&format!("{folder}/src"), ".rs").iter().any(|file| {
            let text = fs::read_to_string(root().join(file)).unwrap();
            text.lines().map(str::trim_start).any(|line| {
                let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
                doc.is_some_and(|doc| doc.trim_start().starts_with("```"))
            })
        });
        let is_lib = root().join(folder).join("src/lib.rs").exists();
        assert!(
            !is_lib || is_run == has_code,
            "{manifest}: doctest says {is_run}, and code is there: {has_code}"
        );
    }
}

#[test]
fn debug_assertions_are_on_in_the_crates_that_have_some() {
    let profile = code("Cargo.toml");
    for manifest in manifests() {
        let folder = manifest.trim_end_matches("/Cargo.toml");
        let package = setting(&manifest, "name = \"");
        let is_on = profile.lines().any(|line| {
            line.starts_with(&package)
                && line[package.len()..].starts_with([' ', '.'])
                && line.contains("debug-assertions = true")
        });
        let sources = below(&format!("{folder}/src"), ".rs");
        let has_some = sources.iter().any(|file| code(file).contains("debug_assert"));
        assert_eq!(is_on, has_some, "{package} in [profile.dev.package] of Cargo.toml");
    }
}
