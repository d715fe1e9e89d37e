//! Names of the files of a trail: one for each day, `2026-11-27.ndjson`, and further parts of a day with many lines,
//! `2026-11-27.2.ndjson`. The order of names is the order of lines.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tenure_core::time::{Moment, Span};

/// The length of `2026-11-27`.
const DAY_CHARS: usize = 10;
const SUFFIX: &str = ".ndjson";

/// The name of one file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct DayFile {
    /// A day in UTC, as `2026-11-27`.
    day: String,
    /// From 1.
    part: u32,
}

/// The day of a moment, in UTC.
fn day_of(moment: Moment) -> String {
    moment.to_string().chars().take(DAY_CHARS).collect()
}

impl DayFile {
    /// The first file of this day.
    pub(super) fn of(now: Moment) -> Self {
        DayFile { day: day_of(now), part: 1 }
    }

    /// The next file of the same day.
    pub(super) fn next_part(&self) -> Self {
        DayFile { day: self.day.clone(), part: self.part + 1 }
    }

    /// Whether this day is over at that moment. After a step back of the clock it is not: lines go on in the newest
    /// file, whose name then is a later day.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.day < day_of(now)
    }

    /// Whether its day is longer ago than this.
    pub(super) fn is_older(&self, than: Span, now: Moment) -> bool {
        self.day < day_of(now.minus(than))
    }

    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(self.to_string())
    }
}

impl fmt::Display for DayFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            1 => write!(f, "{}{SUFFIX}", self.day),
            part => write!(f, "{}.{part}{SUFFIX}", self.day),
        }
    }
}

impl FromStr for DayFile {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let name = name.strip_suffix(SUFFIX).ok_or(())?;
        let (day, part) = match name.split_once('.') {
            Some((day, part)) => (day, part.parse().map_err(|_| ())?),
            None => (name, 1),
        };
        let is_day = |(at, byte): (usize, u8)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        let is_day = day.len() == DAY_CHARS && day.bytes().enumerate().all(is_day);
        let found = DayFile { day: day.to_owned(), part };
        // Each file has one name: no `2026-11-27.1.ndjson` beside `2026-11-27.ndjson`.
        (is_day && part > 0 && found.to_string().strip_suffix(SUFFIX) == Some(name))
            .then_some(found)
            .ok_or(())
    }
}

/// The files in a folder, oldest first. Other files in it are nobody's business.
pub(super) fn files_in(folder: &Path) -> io::Result<Vec<DayFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        files.extend(name.to_str().and_then(|name| name.parse::<DayFile>().ok()));
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_day_and_a_part() {
        for (name, is) in [
            ("2026-11-27.ndjson", true),
            ("2026-11-27.2.ndjson", true),
            ("2026-11-27.10.ndjson", true),
            ("2026-11-27.1.ndjson", false),
            ("2026-11-27.0.ndjson", false),
            ("2026-11-27.02.ndjson", false),
            ("2026-11-27.x.ndjson", false),
            ("2026-11-27.json", false),
            ("2026-11-2.ndjson", false),
            ("../../../etc.ndjson", false),
            ("lock", false),
        ] {
            let read = name.parse::<DayFile>();
            assert_eq!(read.is_ok(), is, "{name}");
            assert!(read.is_err() || read.unwrap().to_string() == name);
        }
    }

    #[test]
    fn parts_of_a_day_stand_before_the_next_day() {
        let names = [
            "2026-11-27.ndjson",
            "2026-11-27.2.ndjson",
            "2026-11-27.10.ndjson",
            "2026-11-28.ndjson",
        ];
        let read: Vec<DayFile> = names.iter().map(|name| name.parse().unwrap()).collect();
        assert!(read.is_sorted(), "{read:?}");
    }
}
