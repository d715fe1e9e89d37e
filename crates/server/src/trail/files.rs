//! The files of a trail: appends a line, begins a file for each day, deletes the oldest.
//!
//! A line is written with one system call before its answer leaves, so that the end of this process loses none. A power
//! loss may lose what was not synced: see [`TrailFiles::unsynced`]. The present time is an argument.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::bounds::{TRAIL_DAYS_MAX, TRAIL_LINE_BYTES_MAX};
use tenure_core::time::{Moment, Span};
use tenure_core::trail::TrailLine;

use super::chain::ChainEnd;
use super::day_file::{DayFile, files_in};

/// A part of a day is at most this share of all bytes, so that the deletion of one file does not take most of a trail.
const PARTS: u64 = 8;
/// Names the process that writes; locked as long as it does.
const LOCK: &str = "lock";

/// The file that gets lines now.
#[derive(Debug)]
struct OpenedFile {
    name: DayFile,
    file: Arc<File>,
    /// Its length: complete lines alone.
    bytes: u64,
}

/// A folder with files, for one process that writes.
#[derive(Debug)]
pub(super) struct TrailFiles {
    folder: PathBuf,
    most_bytes: u64,
    /// `None` before the first line of a trail.
    opened: Option<OpenedFile>,
    end: ChainEnd,
    /// Lines were written since the last sync.
    is_dirty: bool,
    _lock: File,
}

/// The incomplete line at the end of a file that was cut off: its process or its machine died while it wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CutTail {
    pub file: String,
    pub bytes: u64,
}

impl TrailFiles {
    /// Opens the folder, which is made if it is not there, and cuts an incomplete line off.
    ///
    /// # Errors
    /// The folder cannot be made, read or written, or another process writes there.
    pub(super) fn open(folder: &Path, most_bytes: u64) -> io::Result<(Self, Option<CutTail>)> {
        private_folder(folder)?;
        let lock = private().open(folder.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another process writes a trail there"));
            }
            Err(TryLockError::Error(why)) => return Err(why),
        }
        let (opened, cut, end) = newest(folder)?;
        let folder = folder.to_owned();
        let files = TrailFiles { folder, most_bytes, opened, end, is_dirty: false, _lock: lock };
        Ok((files, cut))
    }

    /// The number of the next line, and the hash of the last one.
    pub(super) fn end(&self) -> &ChainEnd {
        &self.end
    }

    /// Appends a line. Its number, moment and hash are filled in.
    ///
    /// # Errors
    /// It is not in the trail, and the next line takes its place.
    pub(super) fn append(&mut self, now: Moment, line: &mut TrailLine) -> io::Result<()> {
        let part_bytes = self.most_bytes / PARTS;
        let opened = match self.opened.take() {
            Some(opened) if opened.name.is_over(now) => {
                self.begin(DayFile::of(now), Some(opened))?
            }
            Some(opened) if opened.bytes >= part_bytes => {
                self.begin(opened.name.next_part(), Some(opened))?
            }
            Some(opened) => opened,
            None => self.begin(self.newer_than_all(now)?, None)?,
        };
        line.at = now;
        line.begins = (opened.bytes == 0).then(|| opened.name.to_string());
        let (mut bytes, end) = match self.end.seal(line) {
            Ok(sealed) => sealed,
            Err(why) => {
                self.opened = Some(opened);
                return Err(why.into());
            }
        };
        bytes.push(b'\n');
        if bytes.len() > TRAIL_LINE_BYTES_MAX {
            self.opened = Some(opened);
            return Err(io::Error::other("the line is too long"));
        }
        let written = (&*opened.file).write_all(&bytes);
        if let Err(why) = written {
            // A part of the line may be there, on a full disk. If it cannot be removed, the file is opened anew, which
            // cuts it off.
            let whole = opened.file.set_len(opened.bytes);
            self.opened = whole.is_ok().then_some(opened);
            if self.opened.is_none() {
                self.reopen()?;
            }
            return Err(why);
        }
        self.opened = Some(OpenedFile { bytes: opened.bytes + bytes.len() as u64, ..opened });
        self.end = end;
        self.is_dirty = true;
        Ok(())
    }

    /// The name of a file behind all that are there.
    fn newer_than_all(&self, now: Moment) -> io::Result<DayFile> {
        let newest = files_in(&self.folder)?.pop().filter(|newest| !newest.is_over(now));
        Ok(newest.map_or_else(|| DayFile::of(now), |newest| newest.next_part()))
    }

    /// Begins a file. The one before is synced: nobody else does it later.
    fn begin(&mut self, name: DayFile, before: Option<OpenedFile>) -> io::Result<OpenedFile> {
        if let Some(before) = before {
            let synced = before.file.sync_data();
            if let Err(why) = synced {
                self.opened = Some(before);
                return Err(why);
            }
        }
        let file = private().append(true).open(name.path(&self.folder));
        let file = file.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = match file {
            Ok(found) => found,
            Err(why) => {
                self.reopen()?;
                return Err(why);
            }
        };
        // The name of a new file must survive a power loss as its lines do.
        if let Ok(folder) = File::open(&self.folder) {
            let _ = folder.sync_all();
        }
        Ok(OpenedFile { name, file: Arc::new(file), bytes })
    }

    fn reopen(&mut self) -> io::Result<()> {
        let (opened, _cut, end) = newest(&self.folder)?;
        (self.opened, self.end) = (opened, end);
        Ok(())
    }

    /// The file with lines that were not synced, and remembers that it is synced now. It is synced outside, since lines
    /// must not wait for a disk.
    pub(super) fn unsynced(&mut self) -> Option<Arc<File>> {
        let is_dirty = std::mem::take(&mut self.is_dirty);
        self.opened.as_ref().filter(|_| is_dirty).map(|opened| opened.file.clone())
    }

    /// Says that a sync failed: it is tried again.
    pub(super) fn not_synced(&mut self) {
        self.is_dirty = true;
    }

    /// Whether the file that gets lines is still in the folder. Somebody may have moved or deleted it: lines would go to a file
    /// that nobody can read. If so, it is left, and the next line begins another one.
    pub(super) fn leave_lost_file(&mut self) -> Option<String> {
        let opened = self.opened.as_ref()?;
        let there = fs::metadata(opened.name.path(&self.folder));
        let is_same = match (there, opened.file.metadata()) {
            (Ok(there), Ok(own)) => is_same_file(&there, &own) && own.len() == opened.bytes,
            _ => false,
        };
        if is_same {
            return None;
        }
        let lost = opened.name.to_string();
        // The chain goes on behind the last line that this process wrote: a verification finds what is missing.
        self.opened = None;
        Some(lost)
    }

    /// Deletes files that are too old, and the oldest ones as long as all together are too large. Returns their names.
    pub(super) fn retire(&self, now: Moment) -> io::Result<Vec<String>> {
        let current = self.opened.as_ref().map(|opened| &opened.name);
        let files = files_in(&self.folder)?;
        let size =
            |file: &DayFile| fs::metadata(file.path(&self.folder)).map_or(0, |meta| meta.len());
        let mut bytes: u64 = files.iter().map(size).sum();
        let kept_for = Span::from_s(TRAIL_DAYS_MAX * 24 * 60 * 60);
        let mut gone = Vec::new();
        for file in files.iter().filter(|file| Some(*file) != current) {
            if bytes <= self.most_bytes && !file.is_older(kept_for, now) {
                break;
            }
            bytes -= size(file).min(bytes);
            fs::remove_file(file.path(&self.folder))?;
            gone.push(file.to_string());
        }
        Ok(gone)
    }
}

type NewestFile = (Option<OpenedFile>, Option<CutTail>, ChainEnd);

/// Opens the newest file, without an incomplete line at its end, and finds the end of the chain. A file without a line
/// continues the one before it.
fn newest(folder: &Path) -> io::Result<NewestFile> {
    let files = files_in(folder)?;
    let (mut opened, mut cut) = (None, None);
    for name in files.iter().rev() {
        let path = name.path(folder);
        let tail = last_line(&mut File::open(&path)?)?;
        if opened.is_none() {
            let file = private().append(true).open(&path)?;
            let incomplete = file.metadata()?.len() - tail.end;
            if incomplete > 0 {
                file.set_len(tail.end)?;
                file.sync_data()?;
                cut = Some(CutTail { file: name.to_string(), bytes: incomplete });
            }
            opened = Some(OpenedFile { name: name.clone(), file: Arc::new(file), bytes: tail.end });
        }
        if let Some(line) = tail.line {
            return Ok((opened, cut, ChainEnd::behind(&line)));
        }
    }
    Ok((opened, cut, ChainEnd::default()))
}

/// The last complete line of a file.
struct LastLine {
    /// Without its line feed; `None`: the file has no complete line.
    line: Option<Vec<u8>>,
    /// The place behind its line feed; 0 without a line.
    end: u64,
}

fn last_line(file: &mut File) -> io::Result<LastLine> {
    let length = file.metadata()?.len();
    // The last complete line, and an incomplete one behind it. A longer one was not written by a server.
    let from = length.saturating_sub(2 * TRAIL_LINE_BYTES_MAX as u64);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(length - from).read_to_end(&mut bytes)?;
    let Some(feed) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        if from > 0 {
            return Err(io::Error::other("the newest file of the trail ends with no line"));
        }
        return Ok(LastLine { line: None, end: 0 });
    };
    let begin = bytes[..feed].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Ok(LastLine { line: Some(bytes[begin..feed].to_vec()), end: from + feed as u64 + 1 })
}

#[cfg(unix)]
fn is_same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    one.len() == other.len()
}

/// Opens or makes a file that only its owner may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a folder that only its owner may enter.
fn private_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
