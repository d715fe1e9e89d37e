//! The space that the store may still take, and the refusal when it is used up.
//!
//! Calls that make the store grow (`growth`) are refused while there is still room, so that no write fails for want of
//! it: after a failed write the machine would know jobs that the disk does not have. Calls that free or end something
//! are never refused; for these there is the margin, and the reserve behind it (`reserve`). It must never block, nor
//! touch the disk: the disk's thread measures.
pub(crate) mod growth;
pub(crate) mod reserve;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tenure_core::refusal::Refusal;
use tenure_core::sentences::StoreRefusal;
use tenure_engine_api::CallError;

use crate::options::Options;
use crate::sqlite::capacity::growth::{Growth, WRITTEN_TIMES};

/// Bytes of the reserve, and of the margin before it, on a disk and within a `max_bytes` that are large
/// enough. A transaction that cancels 1,000 jobs changes up to some 6,000 pages of 4 KiB.
const RESERVE_BYTES: u64 = 32 << 20;
/// On a small disk the reserve is this part of it.
const RESERVE_PART: u64 = 8;
/// Bytes of the largest segments of the journal on a disk and within a `max_bytes` that are large enough: an opening replays
/// some of them, and their space is taken whether they are full or not.
const SEGMENT_BYTES: u64 = 16 << 20;
/// On a small disk: one segment takes one of this many parts of it.
const SEGMENT_PART: u64 = 32;
/// The least bytes of a segment, however small the disk is.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// Segments that the journal has: the active one, the next one, and one that is full or free.
const SEGMENTS: u64 = 3;

/// Bytes of the largest segments of a folder's journal, on a disk of `total` bytes.
pub(crate) fn segment_bytes(max_bytes: Option<u64>, total: u64) -> u64 {
    let space = total.min(max_bytes.unwrap_or(u64::MAX));
    SEGMENT_BYTES.min(space / SEGMENT_PART).max(SEGMENT_BYTES_MIN)
}

/// One measurement, all in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Measured {
    /// The space that this user may still take.
    pub free: u64,
    /// The size of the file system.
    pub total: u64,
    pub store: u64,
    /// Unused pages in the store's file.
    pub unused: u64,
    /// The log, with its index: its content may still be appended to the store's file.
    pub log: u64,
    /// Bytes of the journal's segments; `None` for a store without a journal in files.
    pub journal: Option<u64>,
    /// The reserve; 0 if it does not exist.
    pub reserve: u64,
}

impl Measured {
    /// The size that the reserve should have.
    pub(crate) fn reserve_wanted(&self, max_bytes: Option<u64>) -> u64 {
        let space = self.total.min(max_bytes.unwrap_or(u64::MAX));
        RESERVE_BYTES.min(space / RESERVE_PART)
    }

    /// The free space beyond the reserve and the margin before it.
    pub(crate) fn beyond_margin(&self, max_bytes: Option<u64>) -> i64 {
        let wanted = self.reserve_wanted(max_bytes);
        let missing = wanted.saturating_sub(self.reserve);
        signed(self.free) - signed(wanted) - signed(missing)
    }

    /// The segments of the journal, and the bytes by which they may still grow.
    fn journal(&self, max_bytes: Option<u64>) -> (u64, u64) {
        let Some(journal) = self.journal else { return (0, 0) };
        let most = SEGMENTS * segment_bytes(max_bytes, self.total);
        (journal, most.saturating_sub(journal))
    }

    /// Bytes that pushes may still write; zero or less if there is no room for any.
    pub(crate) fn left(&self, max_bytes: Option<u64>) -> i64 {
        let beyond = self.beyond_margin(max_bytes);
        let (journal, journal_grows) = self.journal(max_bytes);
        let on_disk = beyond - signed(self.log.saturating_sub(self.unused)) - signed(journal_grows);
        let Some(max) = max_bytes else { return on_disk };
        let used = self.store.saturating_sub(self.unused) + self.log + journal + journal_grows;
        on_disk.min(signed(max) - signed(self.reserve_wanted(max_bytes)) - signed(used))
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

pub(crate) struct Room {
    /// Bytes that pushes may still write. Set by each measurement; each push takes its part.
    left: AtomicI64,
    /// Bytes that unanswered pushes may still write: no measurement shows them.
    pending: AtomicI64,
    /// Bytes of rows that wait to be written: no measurement shows them either.
    unwritten: AtomicI64,
    /// Something was refused, and no later measurement has found more room than another reserve takes.
    refusing: AtomicBool,
    max_bytes: Option<u64>,
    /// The refusal while there is no room where the journal is kept.
    elsewhere: Arc<dyn Fn() -> Option<Refusal> + Send + Sync>,
}

/// The part of one call, held until the call is answered.
pub(crate) struct TakenRoom<'r> {
    room: &'r Room,
    bytes: i64,
}

impl Drop for TakenRoom<'_> {
    fn drop(&mut self) {
        self.room.pending.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl Room {
    /// Endless until the first measurement.
    pub(crate) fn new(options: &Options) -> Self {
        Room {
            left: AtomicI64::new(i64::MAX),
            pending: AtomicI64::new(0),
            unwritten: AtomicI64::new(0),
            refusing: AtomicBool::new(false),
            max_bytes: options.max_bytes,
            elsewhere: options.no_room.clone(),
        }
    }

    pub(crate) fn max_bytes(&self) -> Option<u64> {
        self.max_bytes
    }

    /// Applies the latest measurement of the disk.
    pub(crate) fn set(&self, measured: &Measured) {
        let left = measured.left(self.max_bytes);
        let unseen = self.pending.load(Ordering::Acquire) + self.unwritten.load(Ordering::Acquire);
        self.left.store(left - unseen, Ordering::Release);
        if left > signed(measured.reserve_wanted(self.max_bytes)) {
            self.refusing.store(false, Ordering::Release);
        }
    }

    /// Rows of this many bytes will be written. To be called before anybody can hear of them.
    pub(crate) fn expect(&self, bytes: usize) {
        self.unwritten.fetch_add(signed(bytes as u64 * WRITTEN_TIMES), Ordering::AcqRel);
    }

    /// Some rows are not written yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.unwritten.load(Ordering::Acquire) > 0
    }

    /// Rows of this many bytes were written.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.unwritten.fetch_sub(signed(bytes as u64 * WRITTEN_TIMES), Ordering::AcqRel);
    }

    /// Bytes that pushes may still write.
    pub(crate) fn left(&self) -> i64 {
        self.left.load(Ordering::Acquire)
    }

    /// True if nothing may be added, even by a schedule.
    pub(crate) fn is_used_up(&self) -> bool {
        self.left() <= 0 || (self.elsewhere)().is_some()
    }

    /// Takes the part of an operation that makes the store grow; refuses it if there is no room.
    pub(crate) fn admit(&self, growth: Growth) -> Result<Option<TakenRoom<'_>>, CallError> {
        let bytes = growth.written_bytes();
        if (bytes > 0 || growth == Growth::Begins)
            && let Some(no) = (self.elsewhere)()
        {
            return Err(CallError::Refused(no));
        }
        match bytes {
            0 => Ok(None),
            bytes => self.take(signed(bytes)).map(Some),
        }
    }

    fn take(&self, bytes: i64) -> Result<TakenRoom<'_>, CallError> {
        self.pending.fetch_add(bytes, Ordering::AcqRel);
        // The part is given back on a refusal, too.
        let taken = TakenRoom { room: self, bytes };
        if self.left.fetch_sub(bytes, Ordering::AcqRel) < bytes {
            self.left.fetch_add(bytes, Ordering::AcqRel);
            self.refusing.store(true, Ordering::Release);
            return Err(CallError::Refused(full(self.max_bytes)));
        }
        Ok(taken)
    }

    /// The sentence for the operator while pushes are refused.
    pub(crate) fn notice(&self) -> Option<String> {
        if let Some(no) = (self.elsewhere)() {
            return Some(format!("{}; {}", no.detail, no.hint));
        }
        let why = match self.max_bytes {
            None => "the disk is nearly full",
            Some(_) => "the disk is nearly full, or the folder has reached \"--max-bytes\"",
        };
        self.refusing.load(Ordering::Acquire).then(|| {
            format!(
                "{why}: what makes the store grow is refused as \"store_full\" until there is room; cancel or delete \
                 jobs, shorten \"retain\", or free space on the disk"
            )
        })
    }
}

/// The refusal of a call for which there is no room, or whose write failed for want of it: none of
/// it is stored.
pub(crate) fn full(max_bytes: Option<u64>) -> Refusal {
    match max_bytes {
        None => StoreRefusal::DiskFull.into(),
        Some(most_bytes) => StoreRefusal::FolderFull { most_bytes }.into(),
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::job::NewJob;
    use tenure_core::names::QueueName;
    use tenure_core::refusal::Code;
    use tenure_core::requests::{GetStats, Push, PushAnswer, Request};
    use tenure_core::secret::Json;

    use super::*;
    use crate::options::Location;
    use crate::sqlite::capacity::growth::growth;

    const MIB: u64 = 1 << 20;

    fn push(bytes: usize) -> Request {
        let payload = Json::from("x".repeat(bytes).as_str());
        let job = NewJob { payload, ..NewJob::new(QueueName::parse("q").unwrap()) };
        Request::Push(Push { jobs: vec![job], answer: PushAnswer::Ids })
    }

    fn large(free: u64) -> Measured {
        Measured { free, total: 1 << 40, reserve: RESERVE_BYTES, ..Measured::default() }
    }

    #[test]
    fn what_is_left_is_beyond_the_reserve_the_margin_and_the_log() {
        for (what, measured, max_bytes, left) in [
            ("a margin stays", large(100 * MIB), None, 68),
            (
                "a reserve that is missing comes first",
                { Measured { reserve: 0, ..large(100 * MIB) } },
                None,
                36,
            ),
            (
                "what is in the log goes to the store",
                { Measured { log: 30 * MIB, ..large(100 * MIB) } },
                None,
                38,
            ),
            (
                "the log fills pages that hold nothing first",
                { Measured { log: 30 * MIB, unused: 20 * MIB, ..large(100 * MIB) } },
                None,
                58,
            ),
            (
                "a journal will have three segments",
                { Measured { journal: Some(20 * MIB), ..large(100 * MIB) } },
                None,
                68 - 28,
            ),
            (
                "a small folder has small segments",
                { Measured { store: 20 * MIB, journal: Some(MIB), ..large(1 << 30) } },
                Some(64 * MIB),
                64 - 8 - 20 - 6,
            ),
            ("a full disk", large(0), None, -32),
            (
                "a small disk has a small reserve",
                { Measured { free: 10 * MIB, total: 16 * MIB, reserve: 2 * MIB, ..large(0) } },
                None,
                8,
            ),
            (
                "a bound of the folder",
                { Measured { store: 40 * MIB, unused: 10 * MIB, log: 4 * MIB, ..large(1 << 30) } },
                Some(80 * MIB),
                80 - 10 - 34,
            ),
            (
                "a bound that is passed",
                Measured { store: 90 * MIB, ..large(1 << 30) },
                Some(80 * MIB),
                -20,
            ),
        ] {
            assert_eq!(measured.left(max_bytes), left * MIB as i64, "{what}");
        }
    }

    #[test]
    fn a_push_is_refused_when_those_before_it_took_what_was_left() {
        let room = Room::new(&Options::new(Location::Memory));
        let measured = large(2 * RESERVE_BYTES);
        room.set(&Measured { free: RESERVE_BYTES + MIB, ..measured });
        let first = room.admit(growth(&push(MIB as usize / 4))).unwrap();
        let second = room.admit(growth(&push(MIB as usize / 4))).err().unwrap();
        assert_eq!(second.code(), Some(Code::StoreFull));
        assert!(room.notice().is_some());
        assert!(room.admit(growth(&GetStats.into())).unwrap().is_none());
        // Measured before the first push was written: its part is still taken.
        room.set(&Measured { free: RESERVE_BYTES + MIB, ..measured });
        assert!(room.admit(growth(&push(MIB as usize / 4))).is_err());
        drop(first);
        // Answered, and not written yet.
        room.expect(MIB as usize / 4);
        room.set(&Measured { free: RESERVE_BYTES + MIB, ..measured });
        assert!(room.admit(growth(&push(MIB as usize / 4))).is_err());
        room.wrote(MIB as usize / 4);
        room.set(&Measured { free: 4 * RESERVE_BYTES, ..measured });
        assert!(room.admit(growth(&push(MIB as usize / 4))).is_ok());
        assert_eq!(room.notice(), None);
    }
}
