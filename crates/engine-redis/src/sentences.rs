//! That the library writes no sentence: it names cases of `tenure_core::sentences`, findings and notes with their
//! parameters, and each that it names is there.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tenure_core::refusal::Code;
use tenure_core::sentences::{NamedRefusal, SentenceRow, StoredNote, rows};

use crate::decode::{FINDINGS, THINGS};
use crate::lua::{Literal, LuaFile, fields, files, literals_of};

/// What the library refuses and no caller ever sees (`OwnCase` in `decode`).
const OWN: &[&str] = &["stale_body"];

/// A refusal in the library: where, the case, and the parameters that are given to it.
struct NamedCase {
    place: String,
    case: String,
    given: Vec<String>,
}

fn named_cases() -> Vec<NamedCase> {
    let mut named = Vec::new();
    for file in files() {
        for (function, more) in
            [("lib.refuse", &[][..]), ("lib.wrong_state", &["job", "state"][..])]
        {
            for (line, arguments) in file.calls(function) {
                let place = format!("{}:{line}", file.name);
                let cases = literals_of(arguments[0]);
                // Only the function that names the state of a job is told the case.
                assert_eq!(cases.is_empty(), arguments[0] == "case", "{place}");
                let table = arguments.get(1).and_then(|told| fields(told)).unwrap_or_default();
                let given: Vec<String> =
                    table.iter().chain(more).map(|name| (*name).to_owned()).collect();
                named.extend(cases.iter().map(|case| NamedCase {
                    place: place.clone(),
                    case: (*case).to_owned(),
                    given: given.clone(),
                }));
            }
        }
    }
    named
}

/// Whether a case can be read from values of some type under these names.
fn reads(case: &str, given: &[String]) -> bool {
    let values = [json!("a"), json!(1), json!("running"), json!("copied")];
    let all = values.len().pow(u32::try_from(given.len()).unwrap());
    (0..all).any(|mut way| {
        let mut told = Map::from_iter([("case".to_owned(), json!(case))]);
        for name in given {
            told.insert(name.clone(), values[way % values.len()].clone());
            way /= values.len();
        }
        serde_json::from_value::<NamedRefusal>(Value::Object(told)).is_ok()
    })
}

#[test]
fn every_refusal_of_the_library_is_a_case_of_the_table_with_its_parameters() {
    let named = named_cases();
    assert!(named.len() > 45, "only {} refusals were found", named.len());
    for NamedCase { place, case, given } in named {
        if OWN.contains(&case.as_str()) {
            assert!(given.is_empty(), "{place}: {case} has no parameters");
            continue;
        }
        let row: Option<&SentenceRow> = rows().find(|row| row.name == case);
        let row = row.unwrap_or_else(|| panic!("{place}: {case:?} is no case of the table"));
        for name in &given {
            assert!(row.parameters.contains(&name.as_str()), "{place}: {case} has no {name:?}");
        }
        assert!(reads(&case, &given), "{place}: {case} needs {:?}, not {given:?}", row.parameters);
    }
}

/// An item of a settle is refused by a code alone.
#[test]
fn every_code_of_the_library_is_one_of_core() {
    let files = files();
    let said = files.iter().flat_map(|file| file.code.split("code = '").skip(1));
    let codes: Vec<&str> = said.filter_map(|rest| rest.split('\'').next()).collect();
    assert!(!codes.is_empty());
    for code in codes {
        assert!(code.parse::<Code>().is_ok(), "{code}");
    }
}

/// How many parameters a finding has, or a thing in one.
fn parameters(rows: &[(&str, &str)], name: &str) -> Option<usize> {
    let row = rows.iter().find(|(known, _)| *known == name);
    row.map(|(_, text)| text.matches("{}").count())
}

fn of_audit() -> Vec<LuaFile> {
    files().into_iter().filter(|file| file.name.contains("audit")).collect()
}

#[test]
fn every_finding_of_the_audit_has_a_sentence_with_its_parameters() {
    let mut found = BTreeSet::new();
    for file in of_audit() {
        for (line, arguments) in file.calls("audit.check") {
            let place = format!("{}:{line}", file.name);
            let names = literals_of(arguments[1]);
            assert!(!names.is_empty(), "{place}: a finding has a name that is written there");
            for name in names {
                let told = arguments.len() - 2;
                assert_eq!(parameters(FINDINGS, name), Some(told), "{place}: {name}");
                found.insert(name.to_owned());
            }
        }
    }
    let rows: BTreeSet<String> = FINDINGS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, rows);
}

#[test]
fn every_thing_that_a_finding_names_has_a_phrase_with_its_parameters() {
    let mut found = BTreeSet::new();
    for file in of_audit() {
        for (line, parts) in file.tables() {
            let names = literals_of(parts[0]);
            let all_literals =
                parts.iter().all(|part| part.starts_with('\'') && part.ends_with('\''));
            if parts.len() > 1 && all_literals || names[0].contains('-') {
                // A list of words, or a flag of Redis.
                continue;
            }
            let of = parameters(THINGS, names[0]);
            // Sums that are compared stand with their name: the name, one sum, the other.
            let told = parts.len() - 1;
            assert!(
                of == Some(told) || (of, told) == (Some(0), 2),
                "{}:{line}: {parts:?}",
                file.name
            );
            found.insert(names[0].to_owned());
        }
    }
    let rows: BTreeSet<String> = THINGS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, rows);
}

#[test]
fn the_library_names_every_note_that_it_stores() {
    let files = files();
    let tables: Vec<_> = files.iter().flat_map(LuaFile::tables).collect();
    for note in StoredNote::ALL {
        let name = serde_json::to_value(note).unwrap();
        let quoted = format!("'{}'", name.as_str().unwrap());
        let named = tables.iter().any(|(_, parts)| *parts == [quoted.as_str()]);
        // A word that programs compare is stored as it is.
        let is_word = !note.as_str().contains(' ');
        assert!(named || is_word, "no file of the library stores {name}");
    }
}

/// The rule that a test can hold: a sentence has words, and words have blanks between them. So no literal has one; the
/// blank alone stands between the parts of an error (`TENURE_LAYOUT 5 6`) or of a cursor.
#[test]
fn the_library_writes_no_sentence() {
    for file in files() {
        for literal in file.literals() {
            let Literal { line, text } = literal;
            assert!(
                text == " " || !text.contains(char::is_whitespace),
                "{}:{line}: {text:?}",
                file.name
            );
        }
    }
}
