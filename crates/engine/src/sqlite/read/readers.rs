//! Threads that only read: they add rows to the machine's answers.
//!
//! They read committed rows. A read that follows an answer sees at least the rows of that answer: it waits until they
//! are written (`Shared::read_rows`).
//!
//! Reads of old events come in portions, and let all others go first: a thousand of them would otherwise delay the
//! payload that a worker waits for. One thread never reads for them.
//!
//! Each read sees one state, in one transaction. That is also one look at the log: SQLite forgets its cached pages
//! whenever a statement begins after another commit, and a lease call reads hundreds of rows.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tenure_journal::threads::spawn_or_die;

use rusqlite::Connection;
use tenure_engine_api::Fault;
use tokio::sync::oneshot;

type ReadTask = Box<dyn FnOnce(&Connection) + Send>;

/// The urgency of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Haste {
    /// For a call that does something, or shows one thing.
    Now,
    /// For a reader of old events.
    Later,
}

#[derive(Default)]
struct WaitingReads {
    now: VecDeque<ReadTask>,
    later: VecDeque<ReadTask>,
    /// Threads that now run a read of haste `Later`.
    busy_later: usize,
    /// The most threads that may.
    most_later: usize,
    closed: bool,
}

#[derive(Default)]
struct Tasks {
    waiting: Mutex<WaitingReads>,
    changed: Condvar,
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, WaitingReads> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next read for a thread that has just ended one of this haste.
    fn next(&self, ended: Option<Haste>) -> Option<(Haste, ReadTask)> {
        let mut waiting = self.lock();
        if ended == Some(Haste::Later) {
            waiting.busy_later -= 1;
            // A thread that was kept from such a read may start it, unless this thread does.
            self.changed.notify_one();
        }
        loop {
            if let Some(task) = waiting.now.pop_front() {
                return Some((Haste::Now, task));
            }
            if waiting.busy_later < waiting.most_later
                && let Some(task) = waiting.later.pop_front()
            {
                waiting.busy_later += 1;
                return Some((Haste::Later, task));
            }
            if waiting.closed && waiting.later.is_empty() {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn of_one_moment<T>(
    conn: &Connection,
    read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // Nothing is written, so the rollback on drop makes no difference.
    let moment = conn.unchecked_transaction()?;
    read(&moment)
}

#[derive(Default)]
pub(crate) struct Readers {
    queue: Arc<Tasks>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Readers {
    /// Starts one thread for each connection.
    pub(crate) fn start(connections: Vec<Connection>) -> std::io::Result<Self> {
        let queue = Arc::new(Tasks::default());
        queue.lock().most_later = connections.len().saturating_sub(1).max(1);
        let mut threads = Vec::new();
        for conn in connections {
            let queue = queue.clone();
            threads.push(spawn_or_die("tenure-reader", move || {
                let mut ended = None;
                while let Some((haste, task)) = queue.next(ended) {
                    task(&conn);
                    ended = Some(haste);
                }
            })?);
        }
        Ok(Readers { queue, threads: Mutex::new(threads) })
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        haste: Haste,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        let Some(begun) = self.begin(haste, read) else {
            return Err(Fault::Unknown("the store was closed before it was read".to_owned()));
        };
        match begun.await {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(why)) => Err(Fault::Unknown(format!("the store cannot be read: {why}"))),
            Err(_) => Err(Fault::Unknown("the store was closed while it was read".to_owned())),
        }
    }

    /// Begins a read, unless the store is closed. Skips it if its caller has gone.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        haste: Haste,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Option<oneshot::Receiver<rusqlite::Result<T>>> {
        let (send, receive) = oneshot::channel();
        let task: ReadTask = Box::new(move |conn| {
            if !send.is_closed() {
                let _ = send.send(of_one_moment(conn, read));
            }
        });
        {
            let mut waiting = self.queue.lock();
            if waiting.closed {
                return None;
            }
            match haste {
                Haste::Now => waiting.now.push_back(task),
                Haste::Later => waiting.later.push_back(task),
            }
        }
        self.queue.changed.notify_one();
        Some(receive)
    }

    /// Takes no more reads; returns when the last one is over.
    pub(crate) fn close(&self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A read that panicked has already failed its caller.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn an_urgent_read_overtakes_a_patient_one() {
        let connections = (0..2).map(|_| Connection::open_in_memory().unwrap()).collect();
        let readers = Arc::new(Readers::start(connections).unwrap());
        let order: Arc<Mutex<Vec<&str>>> = Arc::default();
        let (go, held) = channel::<()>();
        let noted = |what: &'static str| {
            let order = order.clone();
            move |_: &Connection| {
                order.lock().unwrap().push(what);
                Ok(())
            }
        };
        let long = {
            let readers = readers.clone();
            let read = move |_: &Connection| Ok(held.recv().is_ok());
            tokio::spawn(async move { readers.read(Haste::Later, read).await })
        };
        let later = {
            let (readers, read) = (readers.clone(), noted("later"));
            tokio::spawn(async move { readers.read(Haste::Later, read).await })
        };
        // Both are there before the urgent one.
        tokio::task::yield_now().await;
        // One thread never reads for `Later`, so this does not wait for the long one.
        readers.read(Haste::Now, noted("now")).await.unwrap();
        assert_eq!(*order.lock().unwrap(), ["now"]);
        go.send(()).unwrap();
        assert!(long.await.unwrap().unwrap());
        later.await.unwrap().unwrap();
        assert_eq!(*order.lock().unwrap(), ["now", "later"]);
        readers.close();
    }
}
