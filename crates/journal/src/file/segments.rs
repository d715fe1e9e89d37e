//! The segments of a journal: the place of the next entry, the last durable entry, and the segments that can be used
//! again.
//!
//! It starts no thread and waits for nothing, so that histories with crashes run on a simulated disk.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::disk::{Disk, SegmentFile};
use super::frame::{self, Frame, JournalKey};
use crate::{JournalEntry, Position};

/// The size of a journal's first segment in bytes; each next one is twice as large.
const SEGMENT_MIN: u64 = 1 << 20;
/// The smallest segment, in bytes, for a disk that is nearly full.
const SEGMENT_LEAST: u64 = 64 << 10;

/// A segment that takes entries, or will.
struct Segment<F> {
    number: u64,
    file: Arc<F>,
    bytes: u64,
}

/// A segment that is full.
struct FullSegment {
    number: u64,
    bytes: u64,
    /// The number of the last entry in it.
    last: u64,
}

/// Reasons why an entry was not written.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// The segment is full, and the next one does not exist yet: see [`Segments::wanted`].
    NoSegment,
    /// The disk refused, and may hold a part of the entry.
    Disk(io::Error),
}

/// The next segment, which is yet to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WantedSegment {
    pub number: u64,
    pub bytes: u64,
    /// A free segment that is renamed to the new number; `None`: a new file.
    pub from: Option<u64>,
}

/// All segments of a journal, and the place of the next entry.
pub(super) struct Segments<D: Disk> {
    key: JournalKey,
    segment_max: u64,
    active: Segment<D::File>,
    /// The offset of the next entry in it.
    at: u64,
    /// Segments before it with entries that are not known to be durable in the rows.
    full: VecDeque<FullSegment>,
    /// A segment before it that is no longer needed.
    free: Option<FullSegment>,
    next: Option<Segment<D::File>>,
    /// True while the next segment is being made.
    is_made: bool,
    /// Segments that were written since the start of the last sync.
    written: Vec<Arc<D::File>>,
    /// The position of the last entry, durable or not.
    end: Position,
    /// The last entry that is known to be durable.
    durable: u64,
    /// The longest ttl of any lease, in microseconds, and the entry with which it became that.
    ttl_us: u64,
    ttl_since: u64,
    /// The size of an entry that did not fit, so that the next segment has room for it; 0 for none.
    least: u64,
    out: Vec<u8>,
}

impl<D: Disk> Segments<D> {
    /// Begins behind `end`, which all rows have: existing segments are of no use any more.
    pub(super) fn begin(
        disk: &D,
        key: JournalKey,
        end: Position,
        segment_max: u64,
    ) -> io::Result<Segments<D>> {
        let before = disk.list()?;
        let number = before.last().map_or(1, |last| last + 1);
        let bytes = SEGMENT_MIN.min(segment_max);
        let active = Segment { number, file: Arc::new(disk.create(number, bytes)?), bytes };
        for number in before {
            disk.remove(number)?;
        }
        Ok(Segments {
            key,
            segment_max,
            active,
            at: 0,
            full: VecDeque::new(),
            free: None,
            next: None,
            is_made: false,
            written: Vec::new(),
            end,
            durable: end.number,
            ttl_us: 0,
            ttl_since: end.number,
            least: 0,
            out: Vec::new(),
        })
    }

    /// The position of the last entry, durable or not.
    pub(super) fn end(&self) -> Position {
        self.end
    }

    /// The last entry that is known to be durable.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    /// True if it is durable how long leases may last.
    pub(super) fn knows_ttl(&self) -> bool {
        self.ttl_since <= self.durable
    }

    /// Writes the next entry. It is durable after a sync. `ttl_us`: the longest ttl of any lease so far.
    pub(super) fn append(&mut self, entry: &JournalEntry, ttl_us: u64) -> Result<(), NotWritten> {
        let bytes = frame::size(entry) as u64;
        if self.at + bytes > self.active.bytes {
            self.least = bytes;
            let next = self.next.take_if(|next| next.bytes >= bytes);
            let next = next.ok_or(NotWritten::NoSegment)?;
            let full = std::mem::replace(&mut self.active, next);
            let last = self.end.number;
            self.full.push_back(FullSegment { number: full.number, bytes: full.bytes, last });
            (self.at, self.least) = (0, 0);
        }
        self.out.clear();
        let ttl_us = ttl_us.max(self.ttl_us);
        let frame = Frame { entry: entry.clone(), durable: self.durable, ttl_us };
        frame.write(self.key, &mut self.out);
        self.active.file.write_at(&self.out, self.at).map_err(NotWritten::Disk)?;
        if !self.written.last().is_some_and(|file| Arc::ptr_eq(file, &self.active.file)) {
            self.written.push(self.active.file.clone());
        }
        self.at += bytes;
        self.end = entry.position();
        if ttl_us > self.ttl_us {
            (self.ttl_us, self.ttl_since) = (ttl_us, self.end.number);
        }
        Ok(())
    }

    /// Takes the files to sync, and the last entry that is durable after the sync.
    pub(super) fn take_unsynced(&mut self) -> (Vec<Arc<D::File>>, u64) {
        (std::mem::take(&mut self.written), self.end.number)
    }

    /// Reports that a sync covered the entries up to this one.
    pub(super) fn synced(&mut self, number: u64) {
        self.durable = self.durable.max(number);
    }

    /// True if it is time to make the next segment.
    pub(super) fn wants_next(&self) -> bool {
        let is_there = self.next.as_ref().is_some_and(|next| next.bytes >= self.least);
        // Half of the active segment is early enough, and a store with little traffic keeps no second one.
        let is_early = self.at < self.active.bytes / 2 && self.least == 0;
        !self.is_made && !is_there && !is_early
    }

    /// The next segment, if it is time to make it. No further one is wanted before [`Segments::give`].
    pub(super) fn wanted(&mut self) -> Option<WantedSegment> {
        if !self.wants_next() {
            return None;
        }
        self.is_made = true;
        let bytes = (self.active.bytes * 2).min(self.segment_max).max(self.least);
        let number = self.active.number + 1;
        let free = self.free.take_if(|free| free.bytes >= bytes);
        Some(match free {
            Some(free) => WantedSegment { number, bytes: free.bytes, from: Some(free.number) },
            None => WantedSegment { number, bytes, from: None },
        })
    }

    /// The same segment, as small as the next entry allows, for a disk without room for a larger one.
    pub(super) fn least(&self, wanted: WantedSegment) -> WantedSegment {
        WantedSegment { bytes: self.least.max(SEGMENT_LEAST).min(wanted.bytes), ..wanted }
    }

    /// Takes the segment that was wanted; `None`: it could not be made.
    pub(super) fn give(&mut self, made: Option<(WantedSegment, D::File)>) {
        self.is_made = false;
        if let Some((WantedSegment { number, bytes, .. }, file)) = made {
            self.next = Some(Segment { number, file: Arc::new(file), bytes });
        }
    }

    /// True if segments before the active one can go once the rows are durable up to their entries.
    pub(super) fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// The rows are durable up to this entry: frees the segments that hold only such entries. Keeps one of them, and
    /// returns the others for removal. A segment that waits for a sync stays until the sync is done.
    pub(super) fn release(&mut self, number: u64) -> Vec<u64> {
        let (number, mut removed) = (number.min(self.durable), Vec::new());
        while self.full.front().is_some_and(|full| full.last <= number) {
            let Some(full) = self.full.pop_front() else { break };
            removed.extend(self.free.replace(full).map(|before| before.number));
        }
        removed
    }
}
