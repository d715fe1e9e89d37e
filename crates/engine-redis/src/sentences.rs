//! Whether the English that the library still writes is that of `tenure_core::sentences`: every refusal in the Lua text
//! is compared with the table, so that the two cannot drift apart.

use std::fs;
use std::path::{Path, PathBuf};

use tenure_core::sentences::{SentenceRow, StoredNote, rows};

/// What one place in the library says. A part that is made elsewhere is `None`; `a or b` are two texts.
#[derive(Debug)]
struct LuaSentence {
    place: String,
    code: String,
    details: Option<Vec<String>>,
    hints: Option<Vec<String>>,
}

fn library(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        if path.is_dir() {
            library(&path, files);
        } else if name.ends_with(".lua") {
            files.push(path);
        }
    }
}

/// The text without comments.
fn code(text: &str) -> String {
    // A text may have "--" too, but before the name of an option.
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let lines = lines.map(|line| line.find("-- ").map_or(line, |at| &line[..at]));
    lines.collect::<Vec<_>>().join(" ")
}

/// What stands between an opening bracket, which is before `text`, and its closing one.
fn bracketed(text: &str) -> &str {
    let (mut depth, mut quote, mut escaped) = (0, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '{' | '[') => depth += 1,
            (None, ')' | '}' | ']') if depth == 0 => return &text[..at],
            (None, ')' | '}' | ']') => depth -= 1,
            (None, _) => {}
        }
    }
    panic!("a bracket is not closed: {text:.80}")
}

/// Splits at commas that stand in no bracket and no text.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '(' | '{' | '[' => bracketed(&rest[1..]).len() + 2,
            '\'' | '"' => 1 + literal(&rest[1..], c).1,
            _ => c.len_utf8(),
        };
        match c {
            ',' => parts.push(String::new()),
            _ => parts.last_mut().unwrap().push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    parts.into_iter().map(|part| part.trim().to_owned()).collect()
}

/// A text up to its closing quote, without the marks that Rust turns into quotes, and its length.
fn literal(text: &str, quote: char) -> (String, usize) {
    let (mut said, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next().unwrap().1 {
                '1'..='4' => {}
                other => said.push(other),
            },
            c if c == quote => return (said, at + 1),
            c => said.push(c),
        }
    }
    panic!("a text is not closed: {text:.80}")
}

/// The texts that an expression can come to, with `{}` for what is not written there. `None` for a name alone.
fn texts(expression: &str, file: &str) -> Option<Vec<String>> {
    if expression.chars().all(|c| c.is_alphanumeric() || c == '_') {
        let given = file.rsplit(&format!("local {expression} = ")).next()?;
        let quote = given.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        return (given.len() < file.len()).then(|| vec![literal(&given[1..], quote).0]);
    }
    let (mut all, mut rest) = (vec![String::new()], expression);
    while let Some(c) = rest.chars().next() {
        let said = all.last_mut().unwrap();
        let length = match c {
            '\'' | '"' => {
                let (text, length) = literal(&rest[1..], c);
                said.push_str(&text);
                length + 1
            }
            _ if rest.starts_with(" and ") => {
                said.clear();
                5
            }
            _ if rest.starts_with(" or ") => {
                all.push(String::new());
                4
            }
            c if c.is_whitespace() || c == '.' => 1,
            _ => {
                if !said.ends_with("{}") {
                    said.push_str("{}");
                }
                match c {
                    '(' | '[' => bracketed(&rest[1..]).len() + 2,
                    _ => c.len_utf8(),
                }
            }
        };
        rest = &rest[length..];
    }
    Some(all.iter().map(|text| plain(text)).collect())
}

/// A text with `{}` for each parameter, however it is quoted.
fn plain(text: &str) -> String {
    text.replace("\"{}\"", "{}").replace("{}{}", "{}")
}

/// A text of the table in the same form.
fn of_table(text: &str) -> String {
    let text = text.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let mut pieces = text.split('{');
    let mut said = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        said.push_str("{}");
        said.push_str(piece.split_once('}').map_or("", |(_, after)| after));
    }
    plain(&said).replace('\u{1}', "{").replace('\u{2}', "}")
}

/// Whether a text is one of the table, where the parameter that begins it may be written out.
fn fits(known: &str, said: &str) -> bool {
    known == said
        || known.strip_prefix("{}").is_some_and(|rest| !rest.is_empty() && said.ends_with(rest))
}

fn said() -> Vec<LuaSentence> {
    let mut files = Vec::new();
    library(&Path::new(env!("CARGO_MANIFEST_DIR")).join("lua"), &mut files);
    let mut said = Vec::new();
    for file in files {
        let whole = code(&fs::read_to_string(&file).unwrap());
        let calls = |start: &str| {
            let at = whole.match_indices(start).map(|(at, start)| at + start.len());
            at.map(|at| (&whole[..at], parts(bracketed(&whole[at..])))).collect::<Vec<_>>()
        };
        let mut say = |before: &str, code: &str, detail: Option<&str>, hint: Option<&str>| {
            let Some(code) = code.strip_prefix('\'').and_then(|code| code.strip_suffix('\''))
            else {
                return;
            };
            let place = format!("{}: {code}", file.display());
            let (details, hints) = (
                detail.and_then(|detail| texts(detail, before)),
                hint.and_then(|hint| texts(hint, before)),
            );
            said.push(LuaSentence { place, code: code.to_owned(), details, hints });
        };
        for (before, members) in calls("T.refuse({") {
            let of = |name: &str| {
                let named = members.iter().filter_map(|member| member.split_once(" = "));
                named.filter(|(key, _)| *key == name).map(|(_, value)| value.trim()).next()
            };
            if let Some(code) = of("code") {
                say(before, code, of("detail"), of("hint"));
            }
        }
        for (before, arguments) in calls(" no(") {
            if let [code, _, detail, hint] = arguments.as_slice() {
                say(before, code, Some(detail), Some(hint));
            }
        }
        for (before, arguments) in calls("T.wrong_state(") {
            say(before, "'wrong_state'", None, arguments.get(1).map(String::as_str));
        }
    }
    said
}

#[test]
fn the_library_says_what_the_table_says() {
    let rows: Vec<(&SentenceRow, String, String)> =
        rows().map(|row| (row, of_table(row.detail), of_table(row.hint))).collect();
    let mut compared = 0;
    for LuaSentence { place, code, details, hints } in said() {
        // Never seen by a caller.
        if code == "stale_body" {
            continue;
        }
        // A text that is put together from parts alone is compared by the suite.
        let told = |text: &String| text.split(' ').filter(|word| !word.contains("{}")).count() > 2;
        let details = details.filter(|details| details.iter().all(told));
        let same = |texts: &Option<Vec<String>>, known: &String| {
            texts.as_ref().is_none_or(|texts| texts.iter().any(|text| fits(known, text)))
        };
        let of_code = || rows.iter().filter(|(row, ..)| row.code.as_str() == code);
        let both = of_code().any(|(_, detail, hint)| same(&details, detail) && same(&hints, hint));
        assert!(both, "{place} is not in the table: {details:?}, {hints:?}");
        for hint in hints.iter().flatten() {
            assert!(
                of_code().any(|(.., known)| fits(known, hint)),
                "{place}: {hint:?} is not in the table"
            );
            compared += 1;
        }
        for detail in details.iter().flatten() {
            let known = of_code().any(|(_, known, _)| fits(known, detail));
            assert!(known, "{place}: {detail:?} is not in the table");
            compared += 1;
        }
    }
    assert!(compared > 60, "only {compared} texts were found");
}

#[test]
fn the_library_stores_the_notes_of_the_table() {
    let mut files = Vec::new();
    library(&Path::new(env!("CARGO_MANIFEST_DIR")).join("lua"), &mut files);
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for note in StoredNote::ALL {
        let text = format!("'{note}'");
        assert!(texts.iter().any(|lua| lua.contains(&text)), "no file of the library says {text}");
    }
}
