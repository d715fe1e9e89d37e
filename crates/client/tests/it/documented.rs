//! Every public function that a user calls appears in an example of the documentation, which is compiled and run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Files whose public functions users do not call: the plumbing of the command line and the server, the engine over
/// HTTP, and the inner parts of a worker.
const INNER: [&str; 19] = [
    "asked.rs",
    "asking.rs",
    "call_off.rs",
    "caught.rs",
    "ended_run.rs",
    "gauges",
    "ids.rs",
    "keeper",
    "observer.rs",
    "pace.rs",
    "remote",
    "repeat",
    "run.rs",
    "settler.rs",
    "stages.rs",
    "take.rs",
    "until_empty.rs",
    "url.rs",
    "work.rs",
];

fn sources(folder: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if INNER.contains(&name) || name == "tests" || name == "tests.rs" {
            continue;
        }
        if path.is_dir() {
            sources(&path, into);
        } else {
            into.push(fs::read_to_string(&path).unwrap());
        }
    }
}

/// The lines of code in the documentation of a file.
fn examples(source: &str) -> Vec<&str> {
    let (mut inside, mut code) = (false, Vec::new());
    for line in source.lines() {
        let line = line.trim_start();
        let Some(doc) = line.strip_prefix("///").or(line.strip_prefix("//!")) else {
            inside = false;
            continue;
        };
        if doc.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside {
            code.push(doc);
        }
    }
    code
}

/// The public functions of a file, except those hidden from its documentation.
fn functions(source: &str) -> BTreeSet<&str> {
    let mut all = BTreeSet::new();
    let mut hidden = false;
    for line in source.lines().map(str::trim_start) {
        if line.starts_with("#[doc(hidden)]") {
            hidden = true;
            continue;
        }
        let rest = ["pub fn ", "pub async fn ", "pub const fn "];
        if let Some(rest) = rest.into_iter().find_map(|start| line.strip_prefix(start)) {
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            if !std::mem::take(&mut hidden) {
                all.insert(name);
            }
        } else if !line.starts_with("//") && !line.starts_with("#[") {
            hidden = false;
        }
    }
    all
}

#[test]
fn every_function_that_a_user_calls_stands_in_an_example() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let code: Vec<&str> = files.iter().flat_map(|source| examples(source)).collect();
    let called = |name: &str| {
        let calls = [format!(".{name}("), format!("::{name}("), format!(".{name}::<")];
        code.iter().any(|line| calls.iter().any(|call| line.contains(call)))
    };
    let all: BTreeSet<&str> = files.iter().flat_map(|source| functions(source)).collect();
    assert!(all.len() > 150 && code.len() > 300, "{} functions, {} lines", all.len(), code.len());
    let without: Vec<&&str> = all.iter().filter(|name| !called(name)).collect();
    assert!(without.is_empty(), "functions without an example: {without:?}");
}

#[test]
fn examples_and_functions_are_seen() {
    let source = "/// Text.\n/// ```\n/// # hidden.start();\n/// x.go();\n/// ```\n/// x.no();\npub fn go() {}\n\
                  #[doc(hidden)]\npub fn left_out() {}\n    pub async fn wait() {}\npub(crate) fn no() {}\n";
    assert_eq!(examples(source), [" # hidden.start();", " x.go();"]);
    assert_eq!(functions(source), BTreeSet::from(["go", "wait"]));
}
