//! Recovery: reads the entries that a process left in its segments, for the rows that lack them.
//!
//! A crash may have cut the last entries short. Those were not durable, so no caller got an answer for them, and the
//! journal ends before them. Damage must never be taken for such an end: a durable entry that is missing is reported.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::disk::Disk;
use super::frame::{self, ALIGNED, Frame, JournalKey};
use crate::{BadEntry, JournalEntry, Position, ReadError};

/// Reads the entries once, in order.
pub(super) struct LeftEntries<D> {
    disk: Arc<D>,
    key: JournalKey,
    /// Segments that are still unread.
    segments: VecDeque<u64>,
    segment: Vec<u8>,
    at: usize,
    /// The last entry that was returned; at first, the last entry of the rows.
    end: Position,
    /// The highest durable entry that any frame names.
    durable: u64,
    /// The longest ttl that any frame names, in microseconds.
    ttl_us: u64,
}

impl<D: Disk> LeftEntries<D> {
    /// The entries behind `end`, the last entry of the rows.
    pub(super) fn open(disk: Arc<D>, key: JournalKey, end: Position) -> io::Result<Self> {
        let segments = disk.list()?.into();
        let (segment, at) = (Vec::new(), 0);
        Ok(LeftEntries { disk, key, segments, segment, at, end, durable: 0, ttl_us: 0 })
    }

    /// The longest ttl of any lease, in microseconds, as far as the frames that were read name it.
    pub(super) fn ttl_us(&self) -> u64 {
        self.ttl_us
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// The disk cannot be read, an entry that was durable is missing, or the rows are not those of this journal.
    pub(super) fn next(&mut self) -> Result<Option<JournalEntry>, ReadError> {
        loop {
            if let Some(entry) = self.next_of_segment() {
                if !self.is_next(&entry)? {
                    continue;
                }
                self.end = entry.position();
                return Ok(Some(entry));
            }
            self.look_behind();
            let Some(number) = self.segments.pop_front() else { return self.check_end() };
            let away = |why: io::Error| ReadError::Away(why.to_string());
            (self.segment, self.at) = (self.disk.read(number).map_err(away)?, 0);
        }
    }

    /// The next entry of this segment, unless one is missing before it.
    fn next_of_segment(&mut self) -> Option<JournalEntry> {
        let Frame { entry, durable, ttl_us } = Frame::read(self.segment.get(self.at..)?, self.key)?;
        if entry.position().number > self.end.number + 1 {
            return None;
        }
        self.at += frame::size(&entry);
        self.durable = self.durable.max(durable);
        self.ttl_us = self.ttl_us.max(ttl_us);
        Some(entry)
    }

    /// True if this entry comes next, false if it was already returned.
    fn is_next(&self, entry: &JournalEntry) -> Result<bool, ReadError> {
        let number = entry.position().number;
        let damaged = |why| ReadError::Damaged { number, why };
        if number > self.end.number {
            return entry.follows(self.end).map(|()| true).map_err(damaged);
        }
        if number < self.end.number || entry.position() == self.end {
            Ok(false)
        } else {
            Err(damaged(BadEntry::OtherPast { before: number }))
        }
    }

    /// Searches behind the last entry of a segment. There may be entries of its earlier use, an entry that a crash cut
    /// short, or entries behind damage.
    fn look_behind(&mut self) {
        for at in (self.at..self.segment.len()).step_by(ALIGNED) {
            if let Some(Frame { durable, ttl_us, .. }) = Frame::read(&self.segment[at..], self.key)
            {
                self.durable = self.durable.max(durable);
                self.ttl_us = self.ttl_us.max(ttl_us);
            }
        }
    }

    fn check_end(&self) -> Result<Option<JournalEntry>, ReadError> {
        if self.durable > self.end.number {
            Err(ReadError::Missing { number: self.end.number + 1, last: self.durable })
        } else {
            Ok(None)
        }
    }
}
