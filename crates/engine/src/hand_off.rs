//! Hands batches from the state over to the disk.
//!
//! Answers wait only for the journal, and rows follow: batches are collected for a moment and written together, or at
//! once if a reader waits for them. So a journal of many small entries costs the disk little.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_machine::Seq;

use crate::batch::Batch;
use crate::sqlite::write::written;

/// How long a batch waits for others to be written with it.
const COLLECT_FOR: Duration = Duration::from_millis(25);
/// The most bytes of rows that are written together: a reader waits for the current transaction, which
/// takes some milliseconds. One batch may exceed it.
const COLLECT_BYTES: usize = 128 << 10;
/// Bytes of rows that may wait to be written. One batch may exceed it.
const WAITING_BYTES: usize = 8 << 20;

#[derive(Default)]
struct HandOffState {
    batches: VecDeque<Batch>,
    /// Bytes of their rows.
    bytes: usize,
    /// When the first of them came.
    since: Option<Instant>,
    /// Each batch is written alone: there is little room, and each may need the room of the one before.
    is_single: bool,
    /// A reader waits until the batches up to this one are written.
    wanted: u64,
    /// Jobs with unwritten changes beyond their lives, with the last batch that has one.
    unwritten: HashMap<Seq, u64>,
    /// The state found no room, and must be woken when there is some.
    is_awaited: bool,
    closed: bool,
    /// The batches that are here are not written any more.
    crashed: bool,
    /// Nothing is written any more, and every new batch is refused.
    is_over: bool,
}

impl HandOffState {
    fn has_room(&self) -> bool {
        self.bytes < WAITING_BYTES
    }

    /// The batches of the next transaction: those that a reader waits for, or otherwise all that fit.
    fn take_some(&mut self) -> Vec<Batch> {
        let (mut batches, mut bytes) = (Vec::new(), 0);
        let is_wanted = self.batches.front().is_some_and(|first| first.number <= self.wanted);
        while let Some(next) = self.batches.front() {
            let fits = bytes + next.bytes <= COLLECT_BYTES;
            let is_over = self.is_single || !fits || is_wanted && next.number > self.wanted;
            if !batches.is_empty() && is_over {
                break;
            }
            bytes += next.bytes;
            batches.extend(self.batches.pop_front());
        }
        self.bytes -= bytes;
        self.since = (!self.batches.is_empty()).then(Instant::now);
        batches
    }
}

#[derive(Default)]
pub(crate) struct HandOff {
    inside: Mutex<HandOffState>,
    /// The number of the last written batch: readers may see it.
    written: AtomicU64,
    /// Wakes the disk's thread.
    changed: Condvar,
    /// Wakes readers that wait until a batch is written.
    wrote: Condvar,
}

/// The state in which the disk's thread finds the hand-off.
pub(crate) enum HandedOff {
    /// At least one batch, in their order.
    Batches(Vec<Batch>),
    /// No batch came in the given time.
    Nothing,
    /// No batch will come any more.
    Closed,
    /// The engine ends as after a crash: the batches that are here are not written.
    Crashed,
}

impl HandOff {
    fn lock(&self) -> MutexGuard<'_, HandOffState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much longer the disk lets batches gather; `None` without any.
    fn gathers_for(&self, inside: &HandOffState) -> Option<Duration> {
        let first = inside.batches.front()?;
        let is_enough =
            inside.closed || inside.bytes >= COLLECT_BYTES || first.number <= inside.wanted;
        let waited = inside.since.map_or(COLLECT_FOR, |since| since.elapsed());
        Some(if is_enough { Duration::ZERO } else { COLLECT_FOR.saturating_sub(waited) })
    }

    /// Puts a batch, if there is room; otherwise gives it back.
    pub(crate) fn put(&self, batch: Batch) -> Result<(), Box<Batch>> {
        let mut inside = self.lock();
        if inside.crashed {
            // No thread will take it: the callers of its answers see that it is gone.
            drop(inside);
            drop(batch);
            return Ok(());
        }
        if !inside.has_room() {
            return Err(Box::new(batch));
        }
        let is_first = inside.batches.is_empty();
        if is_first {
            inside.since = Some(Instant::now());
        }
        inside.bytes += batch.bytes;
        inside.batches.push_back(batch);
        // The disk sleeps until the first of them has waited long enough.
        if is_first || self.gathers_for(&inside) == Some(Duration::ZERO) {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// True if there is room. If not, the next `take` returns that room is awaited.
    pub(crate) fn has_room(&self) -> bool {
        let mut inside = self.lock();
        inside.is_awaited = !inside.has_room();
        !inside.is_awaited
    }

    /// The batches that are to be written now; waits for them, but not longer than `patience`. The flag is true if the
    /// state waits for the room that they leave.
    pub(crate) fn take(&self, patience: Option<Duration>) -> (HandedOff, bool) {
        let until = patience.map(|patience| Instant::now() + patience);
        let mut inside = self.lock();
        loop {
            if inside.crashed {
                return (HandedOff::Crashed, true);
            }
            let gathers_for = self.gathers_for(&inside);
            if gathers_for == Some(Duration::ZERO) {
                let batches = inside.take_some();
                let is_awaited = std::mem::take(&mut inside.is_awaited);
                return (HandedOff::Batches(batches), is_awaited);
            }
            if inside.closed {
                return (HandedOff::Closed, false);
            }
            let left = || until.map(|until| until.saturating_duration_since(Instant::now()));
            inside = match gathers_for.or_else(left) {
                None => self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return (HandedOff::Nothing, false),
                Some(left) => {
                    let waited = self.changed.wait_timeout(inside, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Sets the mode: batches are written one by one, or together.
    pub(crate) fn write_singly(&self, is_single: bool) {
        self.lock().is_single = is_single;
    }

    /// Announces a batch. To be called before anybody can see its changes.
    pub(crate) fn expect(&self, batch: &Batch) {
        let rows = &batch.changes.rows;
        let mut changed = written::changed_jobs(rows).peekable();
        if changed.peek().is_some() {
            self.lock().unwritten.extend(changed.map(|seq| (seq, batch.number)));
        }
    }

    /// The batch that must be written before the rows of these jobs can be read, except lives and progress. 0: none.
    pub(crate) fn needed_for(&self, jobs: impl Iterator<Item = Seq>) -> u64 {
        let inside = self.lock();
        jobs.filter_map(|seq| inside.unwritten.get(&seq).copied()).max().unwrap_or_default()
    }

    /// Drops from `jobs` those whose rows wait to be written, unless only their lives do.
    pub(crate) fn keep_written(&self, jobs: &mut Vec<Seq>) {
        let inside = self.lock();
        jobs.retain(|seq| !inside.unwritten.contains_key(seq));
    }

    /// The number of the last written batch.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Notes that the batches up to this one are written.
    pub(crate) fn wrote(&self, number: u64) {
        // Under the lock, so that no waiting reader misses it.
        let mut inside = self.lock();
        self.written.store(number, Ordering::Release);
        inside.unwritten.retain(|_, batch| *batch > number);
        drop(inside);
        self.wrote.notify_all();
    }

    /// Has the batches up to this one written now, and waits for that. False if the disk's thread has ended before.
    /// Blocks.
    pub(crate) fn have_written(&self, number: u64) -> bool {
        if self.written() >= number {
            return true;
        }
        let mut inside = self.lock();
        inside.wanted = inside.wanted.max(number);
        self.changed.notify_one();
        while self.written() < number && !inside.crashed && !inside.is_over {
            inside = self.wrote.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        self.written() >= number
    }

    /// Ends all waits for writes: nothing will be written any more.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.wrote.notify_all();
    }

    /// No batch will be put any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Drops the batches that are here, and those that come.
    pub(crate) fn crash(&self) {
        let dropped = {
            let mut inside = self.lock();
            inside.crashed = true;
            std::mem::take(&mut inside.batches)
        };
        self.changed.notify_all();
        self.wrote.notify_all();
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_machine::rows::JobChange;

    use super::*;

    fn batch(number: u64, bytes: usize) -> Batch {
        Batch { number, bytes, ..Batch::default() }
    }

    fn numbers(taken: HandedOff) -> Vec<u64> {
        match taken {
            HandedOff::Batches(batches) => batches.iter().map(|batch| batch.number).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn collected_batches_are_taken_together() {
        let hand_off = HandOff::default();
        for number in 1..=3 {
            assert!(hand_off.put(batch(number, 10)).is_ok());
        }
        assert!(hand_off.gathers_for(&hand_off.lock()) > Some(Duration::ZERO));
        // The patience is for new batches; these are already there.
        assert_eq!(numbers(hand_off.take(Some(Duration::ZERO)).0), [1, 2, 3]);
        assert!(matches!(hand_off.take(Some(Duration::ZERO)).0, HandedOff::Nothing));
    }

    #[test]
    fn where_there_is_little_room_batches_are_taken_one_by_one() {
        let hand_off = HandOff::default();
        for number in 1..=3 {
            assert!(hand_off.put(batch(number, 10)).is_ok());
        }
        hand_off.write_singly(true);
        assert_eq!(numbers(hand_off.take(None).0), [1]);
        hand_off.write_singly(false);
        assert_eq!(numbers(hand_off.take(None).0), [2, 3]);
    }

    #[test]
    fn no_more_is_taken_than_is_written_quickly_or_wanted() {
        let hand_off = HandOff::default();
        for number in 1..=4 {
            assert!(hand_off.put(batch(number, COLLECT_BYTES / 2)).is_ok());
        }
        assert_eq!(numbers(hand_off.take(None).0), [1, 2]);
        hand_off.lock().wanted = 3;
        assert_eq!(numbers(hand_off.take(None).0), [3]);
        assert!(hand_off.put(batch(5, 2 * COLLECT_BYTES)).is_ok());
        assert_eq!(numbers(hand_off.take(None).0), [4]);
        assert_eq!(numbers(hand_off.take(None).0), [5]);
        assert_eq!(hand_off.lock().bytes, 0);
    }

    #[test]
    fn many_bytes_and_a_close_end_the_collecting() {
        for (bytes, closes) in [(COLLECT_BYTES, false), (1, true)] {
            let hand_off = HandOff::default();
            assert!(hand_off.put(batch(1, bytes)).is_ok());
            if closes {
                hand_off.close();
            }
            assert_eq!(hand_off.gathers_for(&hand_off.lock()), Some(Duration::ZERO));
        }
        let hand_off = HandOff::default();
        assert!(hand_off.put(batch(1, WAITING_BYTES)).is_ok());
        assert!(hand_off.put(batch(2, 1)).is_err() && !hand_off.has_room());
    }

    #[test]
    fn a_job_needs_the_last_batch_that_changed_more_than_its_life() {
        let hand_off = HandOff::default();
        let change = |seq: u64, change: JobChange| {
            let mut batch = batch(seq, 10);
            batch.changes.rows.jobs.insert(Seq::new(seq), change);
            hand_off.expect(&batch);
        };
        change(1, JobChange { life: Some(Vec::new()), ..JobChange::default() });
        change(2, JobChange { error: Some(None), ..JobChange::default() });
        let needed = |seq: u64| hand_off.needed_for([Seq::new(seq)].into_iter());
        assert_eq!((needed(1), needed(2), needed(3)), (0, 2, 0));
        hand_off.wrote(1);
        assert_eq!(needed(2), 2);
        hand_off.wrote(2);
        assert_eq!(needed(2), 0);
    }

    #[test]
    fn a_reader_waits_for_its_batch_even_if_that_is_put_later() {
        let hand_off = Arc::new(HandOff::default());
        assert!(hand_off.put(batch(1, 10)).is_ok());
        let reader = std::thread::spawn({
            let hand_off = hand_off.clone();
            move || hand_off.have_written(2)
        });
        assert_eq!(numbers(hand_off.take(None).0), [1]);
        hand_off.wrote(1);
        while hand_off.lock().wanted < 2 {
            std::thread::yield_now();
        }
        assert!(hand_off.put(batch(2, 10)).is_ok());
        assert_eq!(hand_off.gathers_for(&hand_off.lock()), Some(Duration::ZERO));
        assert_eq!(numbers(hand_off.take(None).0), [2]);
        hand_off.wrote(2);
        assert!(reader.join().unwrap());
        assert!(hand_off.have_written(1));
        hand_off.crash();
        assert!(!hand_off.have_written(3));
    }
}
