//! The segments that are written to: where the next entry goes, what is durable, and which segments nobody needs any more.
//!
//! It starts no thread and waits for nothing, so that histories with crashes can be played on a disk that is a value.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::disk::{Disk, SegmentFile};
use super::frame::{self, Frame};
use crate::{JournalEntry, Position};

/// The first segment of a journal; each one that follows is twice as large.
const SEGMENT_MIN: u64 = 1 << 20;
/// The smallest segment that is made where there is hardly any room.
const SEGMENT_LEAST: u64 = 64 << 10;

/// A segment that entries are written to, or will be.
struct Segment<F> {
    number: u64,
    file: Arc<F>,
    bytes: u64,
}

/// A segment that is full.
struct FullSegment {
    number: u64,
    bytes: u64,
    /// The last entry in it.
    last: u64,
}

/// Why an entry was not written.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// The segment is full, and the next one is not there yet: see [`Segments::wanted`].
    NoSegment,
    /// The disk refused, and may hold a part of the entry.
    Disk(io::Error),
}

/// The next segment, as it is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WantedSegment {
    pub number: u64,
    pub bytes: u64,
    /// It is this one, which nobody needs any more, under its new number.
    pub from: Option<u64>,
}

/// All segments of a journal, and where the next entry goes.
pub(super) struct Segments<D: Disk> {
    segment_max: u64,
    active: Segment<D::File>,
    /// Where the next entry goes in it.
    at: u64,
    /// Those before it with entries that are not durable in the rows yet, as far as is known.
    full: VecDeque<FullSegment>,
    /// One before it that nobody needs any more.
    free: Option<FullSegment>,
    next: Option<Segment<D::File>>,
    /// The next one is being made.
    is_made: bool,
    /// Segments that were written to since the last sync that was begun.
    written: Vec<Arc<D::File>>,
    /// The last entry.
    end: Position,
    /// The last entry that is known to be durable.
    durable: u64,
    /// The entry that did not fit, so that the next segment has room for it.
    least: u64,
    out: Vec<u8>,
}

impl<D: Disk> Segments<D> {
    /// Begins behind `end`, which all rows have: segments that are there are of no use any more.
    pub(super) fn begin(disk: &D, end: Position, segment_max: u64) -> io::Result<Segments<D>> {
        let before = disk.list()?;
        let number = before.last().map_or(1, |last| last + 1);
        let bytes = SEGMENT_MIN.min(segment_max);
        let active = Segment { number, file: Arc::new(disk.create(number, bytes)?), bytes };
        for number in before {
            disk.remove(number)?;
        }
        Ok(Segments {
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
            least: 0,
            out: Vec::new(),
        })
    }

    /// The last entry.
    pub(super) fn end(&self) -> Position {
        self.end
    }

    /// The last entry that is known to be durable.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    /// Writes the next entry. It is durable after a sync.
    pub(super) fn append(&mut self, entry: &JournalEntry) -> Result<(), NotWritten> {
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
        Frame { entry: entry.clone(), durable: self.durable }.write(&mut self.out);
        self.active.file.write_at(&self.out, self.at).map_err(NotWritten::Disk)?;
        if !self.written.last().is_some_and(|file| Arc::ptr_eq(file, &self.active.file)) {
            self.written.push(self.active.file.clone());
        }
        self.at += bytes;
        self.end = entry.position();
        Ok(())
    }

    /// Takes the files that are to be synced, with the last entry that is durable after that.
    pub(super) fn take_unsynced(&mut self) -> (Vec<Arc<D::File>>, u64) {
        (std::mem::take(&mut self.written), self.end.number)
    }

    /// A sync that covers the entries up to this one was done.
    pub(super) fn synced(&mut self, number: u64) {
        self.durable = self.durable.max(number);
    }

    /// It is time to make the next segment.
    pub(super) fn wants_next(&self) -> bool {
        let is_there = self.next.as_ref().is_some_and(|next| next.bytes >= self.least);
        // Half of the active one is time enough, and a store in which little happens has no other.
        let is_early = self.at < self.active.bytes / 2 && self.least == 0;
        !self.is_made && !is_there && !is_early
    }

    /// The next segment, if it is time to make it. Until it is given none is wanted.
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

    /// The same, as small as the next entry allows: there is no room for a larger one.
    pub(super) fn least(&self, wanted: WantedSegment) -> WantedSegment {
        WantedSegment { bytes: self.least.max(SEGMENT_LEAST).min(wanted.bytes), ..wanted }
    }

    /// The segment that was wanted is there; `None`: it could not be made.
    pub(super) fn give(&mut self, made: Option<(WantedSegment, D::File)>) {
        self.is_made = false;
        if let Some((WantedSegment { number, bytes, .. }, file)) = made {
            self.next = Some(Segment { number, file: Arc::new(file), bytes });
        }
    }

    /// There are segments before the active one, which can go once the rows are durable up to their entries.
    pub(super) fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// All entries up to this one are durable in the rows: segments that have no others are free. One is kept, and the others are
    /// to be removed. A segment that is to be synced stays until that is done.
    pub(super) fn release(&mut self, number: u64) -> Vec<u64> {
        let (number, mut removed) = (number.min(self.durable), Vec::new());
        while self.full.front().is_some_and(|full| full.last <= number) {
            let Some(full) = self.full.pop_front() else { break };
            removed.extend(self.free.replace(full).map(|before| before.number));
        }
        removed
    }
}
