//! The position of the journal at its last sync, in a small file beside it.
//!
//! The last entries of a journal can be cut off without a trace in it, and SQLite takes a damaged log to end where the
//! damage begins: answered changes would be lost in silence. The file is written after each sync of the journal, and
//! has no sync of its own, so that it may be behind the journal, but never ahead of an intact one.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use tenure_core::time::Moment;

use crate::error::OpenError;
use crate::sqlite::folder::{self, Folder};
use crate::sqlite::sums::Sum;
use crate::sqlite::write::commit::Numbers;

const FIRST_WORD: &str = "synced";

/// The content of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Said {
    commit: u64,
    at: Moment,
}

impl Said {
    fn sum(self) -> i64 {
        Sum::of(FIRST_WORD).int(self.commit as i64).int(self.at.us() as i64).end()
    }

    /// Always of one length, and within one sector: a new text covers the whole old one.
    fn text(self) -> String {
        let sum = self.sum() as u32;
        format!("{FIRST_WORD} {:020} {:020} {sum:010}\n", self.commit, self.at.us())
    }

    fn parse(text: &str) -> Option<Said> {
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some(FIRST_WORD) {
            return None;
        }
        let mut number = || words.next()?.parse::<u64>().ok();
        let (commit, at, sum) = (number()?, number()?, number()?);
        let said = Said { commit, at: Moment::from_us(at) };
        (u64::from(said.sum() as u32) == sum).then_some(said)
    }
}

pub(crate) struct Synced {
    file: File,
    /// A write has failed, and a warning was logged.
    failed: bool,
}

impl Synced {
    /// Notes that the log is synced up to this commit.
    pub(crate) fn note(&mut self, commit: u64, at: Moment) {
        let said = Said { commit, at };
        let written = self
            .file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.write_all(said.text().as_bytes()));
        if let Err(why) = written
            && !self.failed
        {
            self.failed = true;
            tracing::warn!(
                "how far the log is synced cannot be noted: {why}; a log that is cut off would be \
                 noticed less exactly"
            );
        }
    }
}

/// The last synced commit and its time, by the folder's file; `None` if the file is missing or unreadable.
pub(crate) fn said(folder: &Folder) -> Option<(u64, Moment)> {
    let text = std::fs::read_to_string(folder.synced()).ok()?;
    Said::parse(&text).map(|said| (said.commit, said.at))
}

/// Refuses a store that has fewer commits than were synced. True: the loss was accepted.
pub(crate) fn check(folder: &Folder, commit: u64, accept_loss: bool) -> Result<bool, OpenError> {
    let path = folder.synced();
    let unknown = "a log that was cut off would not be noticed now; it is written anew";
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            if commit > 0 {
                tracing::warn!("the file {path:?} is not there: {unknown}");
            }
            return Ok(false);
        }
        Err(why) => return Err(OpenError::Folder { folder: folder.path().to_owned(), why }),
    };
    let Some(said) = std::str::from_utf8(&bytes).ok().and_then(Said::parse) else {
        tracing::warn!("the file {path:?} cannot be read: {unknown}");
        return Ok(false);
    };
    if said.commit <= commit {
        return Ok(false);
    }
    let shorter = OpenError::Shorter {
        folder: folder.path().to_owned(),
        commit,
        synced: said.commit,
        at: Some(said.at),
    };
    if !accept_loss {
        return Err(shorter);
    }
    tracing::warn!("accepted: {shorter}");
    Ok(true)
}

/// Opens the file with the numbers of the store. The log must be synced by now.
pub(crate) fn open(folder: &Folder, numbers: Numbers, now: Moment) -> Result<Synced, OpenError> {
    let file = folder::private_file(&folder.synced())
        .map_err(|why| OpenError::Folder { folder: folder.path().to_owned(), why })?;
    let mut synced = Synced { file, failed: false };
    synced.note(numbers.commit, now);
    Ok(synced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_again_and_nothing_else_is() {
        let said = Said { commit: 17, at: Moment::from_us(1_234_567) };
        assert_eq!(Said::parse(&said.text()), Some(said));
        let later = Said { commit: u64::MAX >> 1, at: Moment::from_us(u64::MAX >> 1) };
        assert_eq!(later.text().len(), said.text().len());
        for text in ["", "synced", "synced 1 2 3", &said.text().replace("17", "16")] {
            assert_eq!(Said::parse(text), None, "{text}");
        }
    }
}
