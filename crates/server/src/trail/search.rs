//! Reads lines of a trail, newest first. A call looks through a bounded number of lines and says where the next one goes
//! on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use tenure_core::bounds::{TRAIL_LINE_BYTES_MAX, TRAIL_SCAN_MAX};
use tenure_core::refusal::Refusal;
use tenure_core::requests::Listed;
use tenure_core::sentences::ValueRefusal;
use tenure_core::trail::{ReadTrail, TrailLine};

use super::day_file::{DayFile, files_in};

/// Bytes that are read at once.
const BLOCK: u64 = 64 * 1024;

/// Why no lines were read.
#[derive(Debug)]
pub(super) enum SearchError {
    /// The cursor is not one of this trail.
    Cursor(Refusal),
    Unreadable(io::Error),
}

impl From<io::Error> for SearchError {
    fn from(why: io::Error) -> Self {
        SearchError::Unreadable(why)
    }
}

/// The place behind the line that is read next: a file, and a number of bytes in it.
struct Cursor {
    file: DayFile,
    end: u64,
}

impl Cursor {
    fn read(text: &str) -> Result<Self, Refusal> {
        let read = || {
            let (file, end) = text.rsplit_once(':')?;
            Some(Cursor { file: file.parse().ok()?, end: end.parse().ok()? })
        };
        read().ok_or_else(|| {
            let no = Refusal::from(ValueRefusal::CursorOfAnother { cursor: text.to_owned() });
            no.at("/query/cursor")
        })
    }

    fn text(&self) -> String {
        format!("{}:{}", self.file, self.end)
    }
}

/// Finds lines that match. `may_see`: whether the caller may see a line. Files may be deleted meanwhile, and a cursor
/// whose file is gone goes on with the files before it.
pub(super) fn search(
    folder: &Path,
    asked: &ReadTrail,
    may_see: impl Fn(&TrailLine) -> bool,
) -> Result<Listed<TrailLine>, SearchError> {
    let from = asked.page.cursor.as_deref().map(Cursor::read);
    let from = from.transpose().map_err(SearchError::Cursor)?;
    let mut found = Listed { items: Vec::new(), next: None, partial: false };
    let mut looked_at = 0;
    let files = files_in(folder)?;
    let older =
        files.into_iter().rev().filter(|file| from.as_ref().is_none_or(|from| *file <= from.file));
    for name in older {
        let end = from.as_ref().filter(|from| from.file == name).map(|from| from.end);
        let mut lines = match File::open(name.path(folder)) {
            Ok(file) => Backward::from(file, end)?,
            Err(why) if why.kind() == io::ErrorKind::NotFound => continue,
            Err(why) => return Err(why.into()),
        };
        loop {
            let here = || Some(Cursor { file: name.clone(), end: lines.end() }.text());
            if found.items.len() >= asked.page.max {
                found.next = here();
                return Ok(found);
            }
            if looked_at >= TRAIL_SCAN_MAX {
                (found.next, found.partial) = (here(), true);
                return Ok(found);
            }
            let Some(line) = lines.before()? else { break };
            looked_at += 1;
            // A line that somebody changed is for the verification.
            let Ok(line) = serde_json::from_slice::<TrailLine>(&line) else { continue };
            if asked.since.is_some_and(|since| line.at < since) {
                return Ok(found);
            }
            if asked.matches(&line) && may_see(&line) {
                found.items.push(line);
            }
        }
    }
    Ok(found)
}

/// Reads lines, newest first, until `takes` has enough or `most_bytes` are read. Files that are deleted meanwhile are
/// left out.
pub(super) fn newest_lines(
    folder: &Path,
    most_bytes: u64,
    mut takes: impl FnMut(TrailLine) -> bool,
) -> io::Result<()> {
    let mut left = most_bytes;
    for name in files_in(folder)?.into_iter().rev() {
        let mut lines = match File::open(name.path(folder)) {
            Ok(file) => Backward::from(file, None)?,
            Err(why) if why.kind() == io::ErrorKind::NotFound => continue,
            Err(why) => return Err(why),
        };
        while let Some(line) = lines.before()? {
            let Some(rest) = left.checked_sub(line.len() as u64) else { return Ok(()) };
            left = rest;
            // A line that somebody changed is for the verification.
            let Ok(line) = serde_json::from_slice::<TrailLine>(&line) else { continue };
            if !takes(line) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The lines of a file, from its end to its beginning.
struct Backward {
    file: File,
    /// The place of the first byte of `bytes` in the file.
    begin: u64,
    /// The bytes before the line that was read last.
    bytes: Vec<u8>,
}

impl Backward {
    /// Lines before this place; `None`: all complete ones.
    fn from(mut file: File, end: Option<u64>) -> io::Result<Self> {
        let length = file.seek(SeekFrom::End(0))?;
        let mut lines =
            Backward { file, begin: end.unwrap_or(length).min(length), bytes: Vec::new() };
        // An incomplete line at the end, and a cursor in the middle of a line, show no part of a line.
        while !lines.bytes.ends_with(b"\n") {
            match lines.bytes.iter().rposition(|byte| *byte == b'\n') {
                Some(at) => lines.bytes.truncate(at + 1),
                None if lines.begin == 0 => {
                    lines.bytes.clear();
                    break;
                }
                None => lines.more()?,
            }
        }
        Ok(lines)
    }

    /// The place behind the next line.
    fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    /// Reads a block more before those that are here.
    fn more(&mut self) -> io::Result<()> {
        if self.bytes.len() > TRAIL_LINE_BYTES_MAX {
            return Err(io::Error::other("a line of the trail is too long"));
        }
        let from = self.begin.saturating_sub(BLOCK);
        let mut block = vec![0; usize::try_from(self.begin - from).unwrap_or_default()];
        self.file.seek(SeekFrom::Start(from))?;
        self.file.read_exact(&mut block)?;
        block.extend_from_slice(&self.bytes);
        (self.begin, self.bytes) = (from, block);
        Ok(())
    }

    /// The line before the last one, without its line feed; `None` at the beginning.
    fn before(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let Some((_feed, rest)) = self.bytes.split_last() else {
                if self.begin == 0 {
                    return Ok(None);
                }
                self.more()?;
                continue;
            };
            match rest.iter().rposition(|byte| *byte == b'\n') {
                Some(at) => {
                    let line = rest[at + 1..].to_vec();
                    self.bytes.truncate(at + 1);
                    return Ok(Some(line));
                }
                None if self.begin == 0 => {
                    let line = rest.to_vec();
                    self.bytes.clear();
                    return Ok(Some(line));
                }
                None => self.more()?,
            }
        }
    }
}
