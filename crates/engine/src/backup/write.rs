//! Writes a backup: the bytes of its file, a chunk at a time, from rows that are read meanwhile.

use tenure_core::time::{Moment, Span};
use tenure_engine_api::{Fault, ids};
use tenure_journal::packed::put_frame;
use tenure_journal::{JournalEntry, Position, ReadError, Snapshot};

use super::file::{BACKUP_FORMAT, BackupEnd, BackupHead, END_ENTRY, FIRST_WORDS, HEAD_ENTRY};
use crate::copy::CopyError;
use crate::sqlite::snapshot::RowsSnapshot;

/// The prefix of the name of a backup.
const NAME: &str = "backup_";

/// The chunks of a backup, in order. Memory has one part at a time, of some 256 KiB.
///
/// The rows of the store that are read may not be replaced until this is dropped, so the log of the store grows
/// meanwhile: the caller must bound the time.
#[derive(Debug)]
pub struct BackupWriter {
    rows: RowsSnapshot,
    /// Taken with the first chunk.
    head: Option<BackupHead>,
    /// The checksum of the head; 0 before the first chunk.
    head_sum: u64,
    /// The position of the last part that was written. Starts before the first.
    before: Position,
    is_over: bool,
}

impl BackupWriter {
    /// A backup of these rows, without their events: a restored store begins its own. `now`: by the clock of the store.
    /// `largest_ttl`: of all leases that the store may grant after the rows were read.
    ///
    /// # Errors
    /// The rows cannot be read, or the system has no random numbers.
    pub fn new(
        rows: RowsSnapshot,
        now: Moment,
        largest_ttl: Span,
    ) -> Result<BackupWriter, CopyError> {
        let head = BackupHead {
            backup: ids::fresh(NAME, now).map_err(Fault::from)?,
            made_at: now,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            rows: rows.format(),
            sealed: rows.keys().to_vec(),
            jobs: rows.jobs()?,
            largest_ttl,
        };
        let (rows, before) = (rows.without_events(), Position::default());
        Ok(BackupWriter { rows, head: Some(head), head_sum: 0, before, is_over: false })
    }

    fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, ReadError> {
        let mut bytes = Vec::new();
        if let Some(head) = self.head.take() {
            bytes.extend_from_slice(format!("{FIRST_WORDS}{BACKUP_FORMAT}\n").as_bytes());
            let head = JournalEntry::after(Position::default(), HEAD_ENTRY, &json(&head));
            self.head_sum = head.position().sum;
            put_frame(&mut bytes, &head);
        } else if let Some(part) = self.rows.next_part()? {
            self.before = part.position();
            put_frame(&mut bytes, &part);
        } else if !self.is_over {
            self.is_over = true;
            let end = BackupEnd { head: self.head_sum };
            put_frame(&mut bytes, &JournalEntry::after(self.before, END_ENTRY, &json(&end)));
        }
        Ok((!bytes.is_empty()).then_some(bytes))
    }
}

impl Iterator for BackupWriter {
    type Item = Result<Vec<u8>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_chunk().transpose()
    }
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    // Plain texts and numbers, for which writing JSON cannot fail.
    serde_json::to_vec(value).unwrap_or_default()
}
