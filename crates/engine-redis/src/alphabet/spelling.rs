//! Puts letters and places where the Lua names them. It only makes text.

use std::borrow::Cow;

use super::TABLES;
use super::positions::position;

/// What stands for a name in the text of the library: for `STATE.ready` the letter, for `STATE_BYTE.ready` its byte, for
/// `LIFE_AT.state` a place; for `STATE_WORDS` a table from each letter to its name.
fn value(table: &str, name: Option<&str>) -> Option<String> {
    let rows =
        |table: &str| TABLES.iter().find(|(known, _)| *known == table).map(|(_, rows)| *rows);
    let Some(name) = name else {
        let rows = rows(table.strip_suffix("_WORDS")?)?.iter();
        let fields: Vec<String> =
            rows.map(|(name, letter)| format!("['{letter}'] = '{name}'")).collect();
        return Some(format!("{{ {} }}", fields.join(", ")));
    };
    let of = |table: &str| rows(table)?.iter().find(|(known, _)| *known == name);
    if let Some(list) = table.strip_suffix("_AT") {
        return position(list, name).map(|at| at.to_string());
    }
    match table.strip_suffix("_BYTE") {
        Some(table) => of(table)?.1.bytes().next().map(|byte| byte.to_string()),
        None => of(table).map(|(_, letter)| format!("'{letter}'")),
    }
}

/// The length of the name at the beginning of a text.
fn name_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// A text of the library with every letter in the place of its name.
pub(crate) fn spelled(lua: &str) -> Cow<'_, str> {
    let (mut text, mut done, mut at) = (String::new(), 0, 0);
    while let Some(to) = lua[at..].find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let from = at + to;
        let table = &lua[from..from + name_length(&lua[from..])];
        at = from + table.len();
        if !table.starts_with(|c: char| c.is_ascii_uppercase()) || lua[..from].ends_with('.') {
            continue;
        }
        let name = lua[at..].strip_prefix('.').map(|rest| &rest[..name_length(rest)]);
        let (value, end) = match value(table, name) {
            Some(value) => (value, at + name.map_or(0, |name| name.len() + 1)),
            None => continue,
        };
        text.push_str(&lua[done..from]);
        text.push_str(&value);
        (done, at) = (end, end);
    }
    match done {
        0 => Cow::Borrowed(lua),
        _ => Cow::Owned(text + &lua[done..]),
    }
}
