//! The letters by which the store and the library's answers say what something is: states, outcomes, kinds of needs, of
//! records, of keys. Each is written here, and nowhere else.
//!
//! The Lua says `STATE.ready`, and gets the letter when the library is put together ([`spelled`]), so that a name costs
//! nothing in the server. Rust says `state::ready`, or asks the type that the letters stand for. A change of a letter
//! that is stored is a change of the layout.

use std::borrow::Cow;

use tenure_core::job::{JobState, OnConflict, Outcome, Until};
use tenure_core::settings::ResourceState;

/// A name in a table of letters, and its letter.
type Row = (&'static str, &'static str);

/// Makes the tables: for Lua, for Rust by name, and between the letters and a type whose values they stand for.
macro_rules! alphabet {
    ($(
        $(#[$about:meta])*
        $table:ident $module:ident $(($type:ident))? {
            $($name:ident $letter:literal $($value:ident)?,)+
        }
    )+) => {
        /// Each table as the Lua names it, with its rows.
        const TABLES: &[(&str, &[Row])] = &[$((stringify!($table), &[$((stringify!($name), $letter)),+])),+];

        $(
            $(#[$about])*
            // Named as the Lua names them; the letters of one table are no more than the Lua needs.
            #[allow(non_upper_case_globals, dead_code, unused_imports)]
            pub(crate) mod $module {
                use super::*;
                $(pub(crate) const $name: &str = $letter;)+
                typed! { $(($type))? $($name $($value)?,)+ }
            }
        )+
    };
}

/// The functions of a table that stands for a type.
macro_rules! typed {
    (($type:ident) $($name:ident $value:ident,)+) => {
        /// The letter of a value.
        pub(crate) const fn letter(value: $type) -> &'static str {
            match value {
                $($type::$value => $name,)+
            }
        }

        /// The value of a letter.
        pub(crate) fn read(letter: &str) -> Option<$type> {
            match letter {
                $($name => Some($type::$value),)+
                _ => None,
            }
        }
    };
    ($($name:ident,)+) => {};
}

alphabet! {
    /// The state of a job.
    STATE state (JobState) {
        dependent "d" Dependent,
        scheduled "s" Scheduled,
        ready "w" Ready,
        blocked "b" Blocked,
        running "r" Running,
        succeeded "S" Succeeded,
        failed "F" Failed,
        cancelled "C" Cancelled,
    }

    /// How a run ended, or a lease without a job.
    OUTCOME outcome (Outcome) {
        succeeded "S" Succeeded,
        failed "F" Failed,
        snoozed "Z" Snoozed,
        released "R" Released,
        lost "L" Lost,
        undelivered "U" Undelivered,
    }

    /// The state of a resource.
    RESOURCE resource (ResourceState) {
        available "a" Available,
        cooling "c" Cooling,
        banned "b" Banned,
    }

    /// What a settle says of a resource.
    VERDICT verdict {
        fine "o",
        cool "c",
        ban "b",
    }

    /// The kind of a need.
    NEED need {
        limit "l",
        pool "p",
    }

    /// What a door begins with: what is lacked there.
    DOOR door {
        limit "l",
        pool "p",
    }

    /// What follows the name of the pool in a door for some of it.
    POOL_DOOR pool_door {
        tag "t",
        resource "i",
    }

    /// What an entry of a door or of an order begins with. It is the kind of its record as well.
    ENTRY entry {
        bundle "b",
        lane "l",
        queue "q",
    }

    /// What is to be looked at by a tick because it may be needed no more.
    TIDY tidy {
        queue "q",
        groups "g",
    }

    /// What a push does whose unique key is held.
    CONFLICT conflict (OnConflict) {
        keep "k" Keep,
        replace "r" Replace,
        reject "x" Reject,
    }

    /// Until when a job holds its unique key.
    UNTIL until (Until) {
        start "s" Start,
        finish "e" End,
    }

    /// How the wait after a failed attempt grows.
    BACKOFF backoff {
        exponential "e",
        fixed "f",
        list "l",
    }

    /// What of a job lies beside its row: in a hash of its own, or, its life, in a field.
    PART part {
        result "r",
        progress "p",
        errors "e",
        life "x",
    }

    /// What of a long line lies beside its list.
    LINE line {
        aside "r",
        gone "x",
    }

    /// Which of its bundles a group has two of: one of usual lanes, one of suspects.
    BUNDLE bundle {
        usual "n",
        suspect "s",
    }

    /// What stands before the name of a group, where it has one.
    NAMED named {
        group "g",
    }

    /// What a cursor begins with that says by which order it goes on.
    CURSOR cursor {
        by_expiry "x",
    }

    /// Keys of one letter.
    KEY key {
        meta "m",
        expiries "e",
    }

    /// The kinds of records.
    RECORD record {
        space "m",
        queue "q",
        queue_setting "qs",
        group "g",
        bundle "b",
        lane "l",
        mark "mk",
        shape "s",
        chunk "c",
        block "k",
        lease "lf",
        stub "st",
        request "rq",
        unique_key "uk",
        holder "ho",
        worker "w",
        waiting_call "tk",
        caller "ca",
        place "pl",
        limit "L",
        limit_setting "ls",
        pool "p",
        resource "rs",
        tag "tg",
        sync "sy",
        door "d",
        door_line "dl",
        door_group "dg",
    }
}

/// What the Lua writes for a name: `STATE.ready` is the letter, `STATE_BYTE.ready` its byte; `STATE_WORDS` is a table
/// from each letter to its name.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::library::Library;
    use crate::lua::files;

    #[test]
    fn a_name_becomes_its_letter() {
        for (lua, said) in [
            ("if a.state == STATE.ready then", "if a.state == 'w' then"),
            ("byte(e) == ENTRY_BYTE.queue", "byte(e) == 113"),
            ("local WORDS = UNTIL_WORDS", "local WORDS = { ['s'] = 'start', ['e'] = 'finish' }"),
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

    /// Files whose machinery still writes letters.
    const STILL: &[&str] = &["store/", "machine/short_"];

    /// The rule: no literal is one letter, no record is asked for by a literal, and no byte is compared with a number.
    #[test]
    fn the_library_writes_no_letter() {
        for file in files() {
            if STILL.iter().any(|still| file.name.starts_with(still)) {
                continue;
            }
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
}
