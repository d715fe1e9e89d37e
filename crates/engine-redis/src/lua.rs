//! The sources of the library as tests read them: files without comments, their literals, the calls of a function.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of `lua/`, with its comments blanked out.
pub(crate) struct LuaFile {
    /// Its path below `lua/`.
    pub name: String,
    /// Its text without comments.
    pub code: String,
}

/// A literal, without its quotes and with its escapes as they are written.
pub(crate) struct Literal<'a> {
    pub line: usize,
    pub text: &'a str,
}

/// Where a literal ends that begins at the start of `code`: behind its closing quote.
fn literal_end(code: &str) -> usize {
    let quote = code.as_bytes()[0];
    let mut at = 1;
    while code.as_bytes()[at] != quote {
        at += if code.as_bytes()[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// The same code in lines as they were, without comments.
fn without_comments(text: &str) -> String {
    let (mut code, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\'' | '"' => literal_end(rest),
            _ if rest.starts_with("--") => {
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
                continue;
            }
            c => c.len_utf8(),
        };
        code.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    code
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<LuaFile>) {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|ending| ending == "lua") {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.push(LuaFile {
                name,
                code: without_comments(&fs::read_to_string(&path).unwrap()),
            });
        }
    }
}

/// Every file of the library.
pub(crate) fn files() -> Vec<LuaFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let mut files = Vec::new();
    collect(&root, &root, &mut files);
    assert!(files.len() > 40, "only {} files were found", files.len());
    files
}

impl LuaFile {
    pub(crate) fn literals(&self) -> Vec<Literal<'_>> {
        let placed = |(at, text)| Literal { line: self.line(at), text };
        placed_literals(&self.code).into_iter().map(placed).collect()
    }

    /// The calls of a function, each with its line and its arguments; `name` is as the code writes it.
    pub(crate) fn calls(&self, name: &str) -> Vec<(usize, Vec<&str>)> {
        let start = format!("{name}(");
        let calls = self.code.match_indices(&start).filter(|(at, _)| {
            let before = self.code[..*at].chars().next_back();
            let defined = self.code[..*at].ends_with("function ");
            !defined && !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.')
        });
        let told = |(at, start): (usize, &str)| {
            (self.line(at), parts(bracketed(&self.code[at + start.len()..])))
        };
        calls.map(told).collect()
    }

    /// Tables that begin with a literal, each with its line and its parts.
    pub(crate) fn tables(&self) -> Vec<(usize, Vec<&str>)> {
        let begun = self
            .code
            .match_indices('{')
            .filter(|(at, _)| self.code[at + 1..].trim_start().starts_with(['\'', '"']));
        begun.map(|(at, _)| (self.line(at), parts(bracketed(&self.code[at + 1..])))).collect()
    }

    fn line(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }
}

/// What stands between an opening bracket, which is before `code`, and its closing one.
fn bracketed(code: &str) -> &str {
    let (mut depth, mut at) = (0, 0);
    loop {
        match code.as_bytes()[at] {
            b'\'' | b'"' => at += literal_end(&code[at..]) - 1,
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' if depth == 0 => return &code[..at],
            b')' | b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// Splits at commas that stand in no bracket and no literal.
fn parts(code: &str) -> Vec<&str> {
    let (mut found, mut from, mut at) = (Vec::new(), 0, 0);
    while at < code.len() {
        match code.as_bytes()[at] {
            b'\'' | b'"' => at += literal_end(&code[at..]),
            b'(' | b'{' | b'[' => at += bracketed(&code[at + 1..]).len() + 2,
            b',' => {
                found.push(code[from..at].trim());
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    found.push(code[from..].trim());
    found.retain(|part| !part.is_empty());
    found
}

/// The names of the fields of a table that is written out, `{ a = 1, ['b'] = 2 }`; `None` if it is none.
pub(crate) fn fields(table: &str) -> Option<Vec<&str>> {
    let inside = table.strip_prefix('{')?.strip_suffix('}')?;
    let mut names = Vec::new();
    for part in parts(inside) {
        let Some((name, _)) = part.split_once('=') else { continue };
        let name = name.trim();
        let name = name.strip_prefix("['").and_then(|name| name.strip_suffix("']")).unwrap_or(name);
        if name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            names.push(name);
        }
    }
    Some(names)
}

/// The literals of code, each with the place of its opening quote.
fn placed_literals(code: &str) -> Vec<(usize, &str)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(to) = code[at..].find(['\'', '"']) {
        at += to;
        let end = at + literal_end(&code[at..]);
        found.push((at, &code[at + 1..end - 1]));
        at = end;
    }
    found
}

/// The literals of an expression.
pub(crate) fn literals_of(expression: &str) -> Vec<&str> {
    placed_literals(expression).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn code_is_read_without_its_comments() {
    let code = without_comments(
        "-- a 'b'\nlib.refuse('x--y', { a = f(1, 2), ['until'] = c }, '/a') -- no\n",
    );
    let file = LuaFile { name: "a.lua".to_owned(), code };
    let literals: Vec<_> = file.literals().iter().map(|literal| literal.text).collect();
    assert_eq!(literals, ["x--y", "until", "/a"]);
    let calls = file.calls("lib.refuse");
    assert_eq!(calls, [(2, vec!["'x--y'", "{ a = f(1, 2), ['until'] = c }", "'/a'"])]);
    assert_eq!(fields(calls[0].1[1]), Some(vec!["a", "until"]));
    assert_eq!(literals_of("a and 'b' or 'c'"), ["b", "c"]);
}
