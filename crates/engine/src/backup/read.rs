//! Reads a backup, and checks every byte of it. It must never take the end of a file for the end of a backup.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use tenure_journal::packed::{self, FRAME, PACKED_BYTES_MAX};
use tenure_journal::{BadEntry, JournalEntry, Position, ReadError, Snapshot};
use tenure_machine::NAMED_CHANGES_FORMAT;

use super::file::{
    BACKUP_FORMAT, BackupEnd, BackupError, BackupHead, END_ENTRY, FIRST_LINE_MAX, FIRST_WORDS,
    HEAD_ENTRY,
};
use crate::copy::CopiedRows;
use crate::sqlite::snapshot::part_changes;

/// A file is read in such portions.
pub(super) const READ_BYTES: usize = 1 << 20;

/// A backup that is being read. Memory has one part at a time.
pub struct BackupReader<R> {
    from: R,
    /// Bytes that were read.
    at: u64,
    head: BackupHead,
    head_sum: u64,
    /// The position of the last part that was read. Starts before the first.
    before: Position,
    is_over: bool,
    /// Jobs in the parts that were read.
    jobs: u64,
}

/// The contents of a whole backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedBackup {
    pub head: BackupHead,
    /// The length of the file.
    pub bytes: u64,
}

/// Reads a file to its end. Blocks.
///
/// # Errors
/// It is not a whole backup, this release does not read it, or it cannot be read.
pub fn check_file(file: &Path) -> Result<CheckedBackup, BackupError> {
    check(BufReader::with_capacity(READ_BYTES, File::open(file)?))
}

/// Reads a backup to its end. Blocks.
///
/// # Errors
/// It is not a whole backup, this release does not read it, or the file cannot be read.
pub fn check(from: impl Read) -> Result<CheckedBackup, BackupError> {
    let mut reader = BackupReader::open(from)?;
    while reader.next()?.is_some() {}
    Ok(CheckedBackup { bytes: reader.at, head: reader.head })
}

impl<R: Read> BackupReader<R> {
    /// Reads the first line and the head.
    ///
    /// # Errors
    /// It is no backup, this release does not read it, or the file cannot be read.
    pub fn open(mut from: R) -> Result<Self, BackupError> {
        let mut at = first_line(&mut from)?;
        let begins = at;
        let damaged = |why: &str| BackupError::Damaged { at: begins, why: why.to_owned() };
        let entry = next_frame(&mut from, &mut at)?;
        entry.follows(Position::default()).map_err(|why| damaged(&why.to_string()))?;
        let body = entry.body(HEAD_ENTRY).map_err(|_| damaged("its head is missing"))?;
        let head: BackupHead =
            serde_json::from_slice(body).map_err(|_| damaged("its head cannot be read"))?;
        if head.rows > NAMED_CHANGES_FORMAT {
            return Err(BackupError::Newer);
        }
        let head_sum = entry.position().sum;
        let before = Position::default();
        Ok(BackupReader { from, at, head, head_sum, before, is_over: false, jobs: 0 })
    }

    pub fn head(&self) -> &BackupHead {
        &self.head
    }

    /// The next part; `None` behind the last, once the end of the backup was found there and nothing follows it.
    ///
    /// # Errors
    /// It is damaged or cut, or the file cannot be read.
    #[expect(clippy::should_implement_trait, reason = "an error must not be passed over")]
    pub fn next(&mut self) -> Result<Option<JournalEntry>, BackupError> {
        if self.is_over {
            return Ok(None);
        }
        let begins = self.at;
        let damaged = |why: String| BackupError::Damaged { at: begins, why };
        let entry = next_frame(&mut self.from, &mut self.at)?;
        entry.follows(self.before).map_err(|why| damaged(why.to_string()))?;
        match entry.body(END_ENTRY) {
            Ok(body) => {
                self.check_end(body, begins)?;
                self.is_over = true;
                Ok(None)
            }
            Err(_) => {
                self.jobs += jobs_in(&entry).map_err(|why| damaged(why.to_string()))?;
                self.before = entry.position();
                Ok(Some(entry))
            }
        }
    }

    fn check_end(&mut self, body: &[u8], begins: u64) -> Result<(), BackupError> {
        let damaged = |why: &str| BackupError::Damaged { at: begins, why: why.to_owned() };
        let end: BackupEnd =
            serde_json::from_slice(body).map_err(|_| damaged("its end cannot be read"))?;
        if end.head != self.head_sum {
            return Err(damaged("its end is that of another backup"));
        }
        if self.jobs != self.head.jobs {
            return Err(damaged("it has another number of jobs than it says"));
        }
        match self.from.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(BackupError::Damaged { at: self.at, why: "more follows its end".to_owned() }),
        }
    }
}

fn jobs_in(part: &JournalEntry) -> Result<u64, BadEntry> {
    Ok(part_changes(part)?.iter().map(|changes| changes.rows.jobs.len() as u64).sum())
}

/// The length of the first line, if it is that of a backup.
fn first_line(from: &mut impl Read) -> Result<u64, BackupError> {
    let mut line = Vec::with_capacity(FIRST_LINE_MAX);
    while line.len() < FIRST_LINE_MAX
        && !line.ends_with(b"\n")
        && from.by_ref().take(1).read_to_end(&mut line)? == 1
    {}
    let text = std::str::from_utf8(&line).map_err(|_| BackupError::Foreign)?;
    let format = text.strip_prefix(FIRST_WORDS).and_then(|rest| rest.strip_suffix('\n'));
    // Only as a writer prints it: `+1`, `01` and 0 are none.
    let number = |text: &str| {
        text.parse::<u32>().ok().filter(|format| *format > 0 && format.to_string() == text)
    };
    match format.and_then(number) {
        Some(format) if format > BACKUP_FORMAT => Err(BackupError::Newer),
        Some(_) => Ok(line.len() as u64),
        None if is_cut(text) => Err(BackupError::Cut { at: line.len() as u64 }),
        None => Err(BackupError::Foreign),
    }
}

/// Whether a file was cut within its first line.
fn is_cut(text: &str) -> bool {
    let is_number = |rest: &str| rest.bytes().all(|digit| digit.is_ascii_digit());
    match text.strip_prefix(FIRST_WORDS) {
        Some(rest) => is_number(rest),
        None => !text.is_empty() && FIRST_WORDS.starts_with(text),
    }
}

/// The entry in the next frame. `at` moves behind it.
fn next_frame(from: &mut impl Read, at: &mut u64) -> Result<JournalEntry, BackupError> {
    let begins = *at;
    let damaged = |why: &str| BackupError::Damaged { at: begins, why: why.to_owned() };
    let mut head = [0; FRAME];
    fill(from, &mut head, at)?;
    let (length, field) = packed::frame_head(&head).ok_or_else(|| damaged("a frame is short"))?;
    if length > PACKED_BYTES_MAX {
        return Err(damaged("a length is none"));
    }
    // Not allocated at once: a damaged length must not make this process take memory.
    let mut packed = Vec::new();
    from.by_ref().take(length as u64).read_to_end(&mut packed)?;
    *at += packed.len() as u64;
    if packed.len() < length {
        return Err(BackupError::Cut { at: *at });
    }
    let bytes = packed::unpack(field, &packed).ok_or_else(|| damaged("a part is not packed"))?;
    JournalEntry::read(bytes).map_err(|why| damaged(&why.to_string()))
}

/// Fills the buffer, or says where the file ends.
fn fill(from: &mut impl Read, buffer: &mut [u8], at: &mut u64) -> Result<(), BackupError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => return Err(BackupError::Cut { at: *at }),
            Ok(bytes) => (filled, *at) = (filled + bytes, *at + bytes as u64),
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why.into()),
        }
    }
    Ok(())
}

/// The parts of a backup as those of a snapshot. The rows of a restored store have no journal yet.
impl<R: Read + Send> Snapshot for BackupReader<R> {
    fn end(&self) -> Position {
        Position::default()
    }

    fn next_part(&mut self) -> Result<Option<JournalEntry>, ReadError> {
        self.next().map_err(|why| ReadError::Snapshot(why.to_string()))
    }
}

impl<R: Read + Send> CopiedRows for BackupReader<R> {
    fn jobs_read(&self) -> u64 {
        self.jobs
    }
}

impl<R> std::fmt::Debug for BackupReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackupReader").field("head", &self.head).finish_non_exhaustive()
    }
}
