//! That every letter and every place that the library needs has one name, and that nothing writes it otherwise.

use std::collections::BTreeSet;

use tenure_core::job::JobState;

use super::positions::POSITIONS;
use super::*;
use crate::library::Library;
use crate::lua::files;

#[test]
fn a_name_becomes_its_letter() {
    for (lua, said) in [
        ("if a.state == STATE.ready then", "if a.state == 'w' then"),
        ("byte(e) == ENTRY_BYTE.queue", "byte(e) == 113"),
        ("local WORDS = UNTIL_WORDS", "local WORDS = { ['s'] = 'start', ['e'] = 'finish' }"),
        ("need[NEED_AT.name], l[LIFE_AT.undelivered]", "need[2], l[23]"),
        ("{ [STATE.failed]=1 }", "{ ['F']=1 }"),
        (
            "STATE.of_tomorrow, B.STATE.ready, state.ready",
            "STATE.of_tomorrow, B.STATE.ready, state.ready",
        ),
    ] {
        assert_eq!(spelled(lua), said);
    }
}

#[test]
fn every_name_of_the_library_has_a_letter_and_every_letter_a_use() {
    let text = Library::release().text().to_owned();
    let sources: String = files().iter().map(|file| file.code.as_str()).collect();
    for (table, rows) in TABLES {
        for found in [table.to_string(), format!("{table}_BYTE")] {
            let left = text.match_indices(&format!("{found}.")).find(|(at, _)| {
                !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.')
            });
            assert!(left.is_none(), "{found} has not all names that the library uses");
        }
        let letters: BTreeSet<_> = rows.iter().map(|(_, letter)| letter).collect();
        assert_eq!(letters.len(), rows.len(), "{table} has a letter twice");
        assert!(sources.contains(&format!("{table}.")), "{table} is not used");
    }
    for (list, _) in POSITIONS {
        assert!(!text.contains(&format!("[{list}_AT.")), "{list} has not all fields that are used");
        assert!(sources.contains(&format!("[{list}_AT.")), "{list} is not used");
    }
}

/// The rule: what has a list in the table is never asked for a number.
#[test]
fn the_library_writes_no_place_of_a_field() {
    let lists = [
        "need", "held", "claimed", "rate", "unique", "retry", "verdict", "fields", "span", "past",
        "kept", "x", "y", "l", "step", "knows", "sight", "gap", "claim", "item", "plan", "run",
        "front", "said", "shown", "rest", "who",
    ];
    for file in files() {
        for (at, line) in file.code.lines().enumerate() {
            for list in lists {
                let asked = line.match_indices(&format!("{list}[")).any(|(from, found)| {
                    let inside = line[from + found.len()..].split(']').next().unwrap_or_default();
                    let whole = !line[..from].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                    whole && inside.len() < 3 && inside.chars().all(|c| c.is_ascii_digit())
                });
                assert!(!asked, "{}:{}: {line}", file.name, at + 1);
            }
        }
    }
}

/// An entry is found by its letter as a record.
#[test]
fn an_entry_has_the_letter_of_its_record() {
    let entries = [entry::bundle, entry::lane, entry::queue];
    assert_eq!(entries, [record::bundle, record::lane, record::queue]);
}

#[test]
fn a_state_has_its_own_name() {
    for known in JobState::ALL {
        assert_eq!(state::read(state::letter(known)), Some(known));
        let row = TABLES[0].1.iter().find(|(_, letter)| *letter == state::letter(known));
        assert_eq!(row.map(|(name, _)| *name), Some(known.as_str()));
    }
    assert_eq!(state::read("?"), None);
}

/// The rule: what has fields has a name, and a letter is none.
#[test]
fn no_table_is_called_by_a_letter() {
    for file in files() {
        for (at, line) in file.code.lines().enumerate() {
            let bytes = line.as_bytes();
            let letter = |at: usize| {
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let before = at.checked_sub(1).and_then(|at| bytes.get(at));
                let [one, next, after, ..] = bytes.get(at..).unwrap_or_default() else {
                    return false;
                };
                let asked = *next == b'[' || *next == b'.' && is_name(after);
                let is_field = before == Some(&b'.');
                one.is_ascii_alphabetic() && asked && !is_field && !before.is_some_and(is_name)
            };
            let found = (0..bytes.len()).find(|at| letter(*at));
            assert!(found.is_none(), "{}:{}: {line}", file.name, at + 1);
        }
    }
}

/// The rule: no literal is one letter, no record is asked for by a literal, and no byte is compared with a number.
#[test]
fn the_library_writes_no_letter() {
    for file in files() {
        for literal in file.literals() {
            let is_letter =
                literal.text.len() == 1 && literal.text.chars().all(char::is_alphabetic);
            assert!(!is_letter, "{}:{}: '{}'", file.name, literal.line, literal.text);
        }
        for function in ["db.get", "db.see", "db.put", "db.drop", "db.encode", "db.decode"] {
            for (line, arguments) in file.calls(function) {
                let literal = arguments[0].starts_with(['\'', '"']);
                assert!(!literal, "{}:{line}: {function}({}", file.name, arguments[0]);
            }
        }
        for (at, line) in file.code.lines().enumerate() {
            let compared = line.split("byte(").skip(1).filter_map(|rest| rest.split_once(") "));
            let compared = compared.filter_map(|(_, rest)| {
                rest.strip_prefix("== ").or_else(|| rest.strip_prefix("~= "))
            });
            for with in compared {
                let number = with.starts_with(|c: char| c.is_ascii_digit());
                assert!(!number, "{}:{}: {line}", file.name, at + 1);
            }
        }
    }
}
