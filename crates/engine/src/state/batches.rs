//! Sends batches to the journal and the disk, or refuses their answers when nothing can be written any more.
//!
//! It must never send an answer whose changes are not durable, nor wait for the disk except at the end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_machine::rows::Rows;

use crate::batch::Batch;
use crate::inbox::Envelope;
use crate::options::Fatal;

use super::{AwaitingEnd, StateThread, Waiting};

/// Bytes of rows at which a batch is closed, so that no append takes long. A single call may exceed it.
const BATCH_BYTES: usize = 1 << 20;

/// A batch of this many jobs is handed on although more calls wait, if the disk has room.
const ROWS_ENOUGH: usize = 1_000;

impl StateThread {
    /// Counts the bytes of rows in the journal.
    pub(super) fn weigh(&mut self, rows: &Rows) {
        self.batch.bytes += rows.bytes();
    }

    /// Hands batches on although more calls wait, if there is room: those that are full, or one
    /// of many jobs.
    pub(super) fn hand_on_if_enough(&mut self) {
        if self.batch.bytes >= BATCH_BYTES {
            let batch = self.take_batch();
            self.closed.push_back(batch);
        }
        if !self.closed.is_empty() || self.batch.changes.rows.jobs.len() >= ROWS_ENOUGH {
            self.hand_one_on();
        }
    }

    fn take_batch(&mut self) -> Batch {
        let largest_ttl = self.machine.largest_ttl();
        self.shared.largest_ttl_us.store(largest_ttl.us(), Ordering::Relaxed);
        self.batch.ttl = largest_ttl.std();
        let next = Batch { number: self.batch.number + 1, ..Batch::default() };
        std::mem::replace(&mut self.batch, next)
    }

    /// How long the batch may still wait for others to join. Where no append waits for anything, that would save
    /// nothing.
    pub(super) fn may_wait(&self) -> Duration {
        let is_over =
            || self.shared.draining.load(Ordering::Acquire) || self.shared.inbox.is_closing();
        match self.batch.may_wait() {
            Duration::ZERO => Duration::ZERO,
            _ if self.shared.is_volatile || !self.closed.is_empty() || is_over() => Duration::ZERO,
            left => left,
        }
    }

    /// True if everything was handed on.
    fn is_handed_on(&self) -> bool {
        self.closed.is_empty() && self.batch.is_empty()
    }

    /// Hands all batches on, as long as there is room: if one is left, the state is woken when there is room.
    pub(super) fn hand_on(&mut self) {
        while self.hand_one_on() {}
    }

    /// Hands the next batch on, if there is room for it; true if it did.
    fn hand_one_on(&mut self) -> bool {
        if let Some(why) = self.overlay.failure() {
            // A step could not read the disk, so its decision may be wrong.
            self.shared.stop_for(Fatal::Disk(why));
        }
        if self.shared.fatal().is_some() {
            self.refuse(Vec::new());
            return false;
        }
        if self.is_handed_on() || !self.may_wait().is_zero() {
            return false;
        }
        let shared = self.shared.clone();
        if !shared.hand_off.has_room() || !shared.confirming.has_room() {
            return false;
        }
        let mut batch = self.closed.pop_front().unwrap_or_else(|| self.take_batch());
        // Once per batch, even if the disk has no room for it now.
        if batch.entry.is_none() {
            shared.hand_off.expect(&batch);
            shared.room.expect(batch.bytes);
            shared.confirming.begin(&shared, &mut batch);
        }
        // There is nothing to write, or nothing is written any more.
        if batch.changes.is_empty() || batch.entry.is_none() {
            return true;
        }
        if let Err(batch) = self.shared.hand_off.put(batch) {
            // Only this thread puts batches, so there still is room; but if not, nothing is lost.
            self.closed.push_front(*batch);
            return false;
        }
        true
    }

    /// Refuses all waiting calls: none of their changes was written.
    pub(super) fn refuse(&mut self, calls: Vec<Envelope>) {
        let no = self.shared.unavailable();
        let calls = calls.into_iter().chain(std::mem::take(&mut self.again));
        let calls = calls.filter_map(|call| call.reply);
        let waiting = std::mem::take(&mut self.waiting).into_values().map(|wait| wait.reply);
        let awaiting = std::mem::take(&mut self.awaiting).into_values().map(|call| call.reply);
        let waiting = waiting.chain(awaiting).chain(self.take_readers());
        let closed = std::mem::take(&mut self.closed).into_iter().flat_map(|batch| batch.answers);
        let answers = closed.chain(std::mem::take(&mut self.batch.answers)).map(|one| one.reply);
        for reply in calls.chain(waiting).chain(answers) {
            let _ = reply.send(Err(no.clone()));
        }
    }

    /// Hands the last batch to the disk, and refuses the calls that still wait.
    pub(super) fn close(&mut self) {
        let no = self.shared.unavailable();
        for Waiting { reply, .. } in std::mem::take(&mut self.waiting).into_values() {
            let _ = reply.send(Err(no.clone()));
        }
        for AwaitingEnd { reply, .. } in std::mem::take(&mut self.awaiting).into_values() {
            let _ = reply.send(Err(no.clone()));
        }
        for reply in self.take_readers() {
            let _ = reply.send(Err(no.clone()));
        }
        while !self.is_handed_on() && self.shared.fatal().is_none() {
            self.hand_on();
            if !self.is_handed_on() {
                // The disk pokes when it takes batches.
                if !self.shared.inbox.wait_for_poke() {
                    return;
                }
            }
        }
    }
}
