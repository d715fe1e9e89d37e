//! Output of a program on stderr. A program that works for others never waits for its reader.
//!
//! A terminal that was stopped by Ctrl-S and a pipe whose reader stands still take nothing: a thread that writes to
//! them blocks for good, and so does everything that waits for that thread. After [`never_wait`] a thread of its own
//! writes all lines in their order. Lines that do not fit into its queue are dropped and counted; once something is
//! taken again, a line says how many were lost.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Most bytes that may wait to be written.
const QUEUE_BYTES_MAX: usize = 1 << 20;
/// Longest time that a program waits at its end until everything is written.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The queue of this process, set by [`never_wait`].
static QUEUE: OnceLock<StderrQueue> = OnceLock::new();

#[derive(Default)]
struct StderrQueue {
    state: Mutex<StderrState>,
    changed: Condvar,
}

#[derive(Default)]
struct StderrState {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines that did not fit since the last line about them.
    dropped: u64,
    /// An item was taken out and is being written.
    is_writing: bool,
}

/// From now on this process never waits for a write to stderr. If no thread can be started, it waits as before.
pub fn never_wait() {
    let started = thread::Builder::new().name("tenure-stderr".to_owned()).spawn(|| {
        let queue = QUEUE.get_or_init(StderrQueue::default);
        queue.write_to(&mut io::stderr());
    });
    if started.is_ok() {
        QUEUE.get_or_init(StderrQueue::default);
    }
}

/// Writes a whole line or a piece of a stream to stderr.
pub fn say(bytes: &[u8]) {
    match QUEUE.get() {
        Some(queue) => queue.add(bytes),
        // An unread line must stop nothing.
        None => drop(io::stderr().write_all(bytes)),
    }
}

/// Waits until everything is written, for half a second at most: a process that ends says why.
pub fn finish() {
    if let Some(queue) = QUEUE.get() {
        queue.finish(LAST_WORDS);
    }
}

/// Writes to stderr as [`say`] does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        say(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StderrQueue {
    fn lock(&self) -> MutexGuard<'_, StderrState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, bytes: &[u8]) {
        let mut state = self.lock();
        if state.bytes + bytes.len() > QUEUE_BYTES_MAX {
            state.dropped += 1;
            return;
        }
        state.bytes += bytes.len();
        state.waiting.push_back(bytes.to_vec());
        self.changed.notify_all();
    }

    fn finish(&self, within: Duration) {
        let is_busy = |state: &mut StderrState| state.is_writing || !state.waiting.is_empty();
        let waited = self.changed.wait_timeout_while(self.lock(), within, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes the items of the queue, for as long as the process lives.
    fn write_to(&self, out: &mut impl Write) {
        loop {
            let next = self.next();
            // An unread line must stop nothing.
            let _ = out.write_all(&next);
            self.lock().is_writing = false;
            self.changed.notify_all();
        }
    }

    /// The next bytes to write: the line about lost lines goes before everything that came after them.
    fn next(&self) -> Vec<u8> {
        let mut state = self.lock();
        loop {
            if let Some(next) = state.waiting.pop_front() {
                state.bytes -= next.len();
                state.is_writing = true;
                return next;
            }
            if state.dropped > 0 {
                let lost = std::mem::take(&mut state.dropped);
                state.is_writing = true;
                return format!("tenure: {lost} lines were lost here: nobody read stderr\n")
                    .into_bytes();
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    /// Takes a piece only when the test allows it.
    struct SlowReader {
        may: mpsc::Receiver<()>,
        took: mpsc::Sender<String>,
    }

    impl Write for SlowReader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.may.recv().map_err(io::Error::other)?;
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.took.send(text).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn unread_lines_are_dropped_and_counted_and_others_keep_order() {
        let queue = Arc::new(StderrQueue::default());
        let (go, may) = mpsc::channel();
        let (took, taken) = mpsc::channel();
        let writes = queue.clone();
        thread::spawn(move || writes.write_to(&mut SlowReader { may, took }));
        let half = "x".repeat(QUEUE_BYTES_MAX / 2);
        queue.add(b"first");
        go.send(()).unwrap();
        let within = Duration::from_secs(20);
        assert_eq!(taken.recv_timeout(within).unwrap(), "first");
        // The reader stands still with one of these, or with none: a third never fits beside two others.
        for _ in 0..6 {
            queue.add(half.as_bytes());
        }
        let dropped = queue.lock().dropped;
        assert!((3..=4).contains(&dropped), "{dropped}");
        queue.finish(Duration::from_millis(1));
        for _ in 0..7 - dropped {
            go.send(()).unwrap();
        }
        for _ in 0..6 - dropped {
            assert_eq!(taken.recv_timeout(within).unwrap(), half);
        }
        let lost = taken.recv_timeout(within).unwrap();
        assert_eq!(lost, format!("tenure: {dropped} lines were lost here: nobody read stderr\n"));
        queue.finish(within);
        assert!(queue.lock().waiting.is_empty());
    }
}
