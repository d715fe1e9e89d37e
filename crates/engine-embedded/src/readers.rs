//! Threads that only read: what an answer shows beside what the machine knows.
//!
//! They read what is committed. A read that follows an answer sees at least what the answer saw,
//! since answers leave after their commit.
//!
//! Each read is of one moment. It is also one look at the log: SQLite forgets the pages that it has read
//! whenever a statement begins after another commit, and a lease call reads hundreds of rows.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tenure_engine::Fault;
use tokio::sync::oneshot;

type ReadTask = Box<dyn FnOnce(&Connection) + Send>;

#[derive(Default)]
struct Tasks {
    tasks: Mutex<(VecDeque<ReadTask>, bool)>,
    changed: Condvar,
}

impl Tasks {
    fn next(&self) -> Option<ReadTask> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(task) = tasks.0.pop_front() {
                return Some(task);
            }
            if tasks.1 {
                return None;
            }
            tasks = self.changed.wait(tasks).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn of_one_moment<T>(
    conn: &Connection,
    read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // Nothing is written, so it makes no difference that dropping it rolls back.
    let moment = conn.unchecked_transaction()?;
    read(&moment)
}

/// See the module.
#[derive(Default)]
pub(crate) struct Readers {
    queue: Arc<Tasks>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Readers {
    /// Starts one thread for each connection.
    pub(crate) fn start(connections: Vec<Connection>) -> std::io::Result<Self> {
        let queue = Arc::new(Tasks::default());
        let mut threads = Vec::new();
        for conn in connections {
            let queue = queue.clone();
            let builder = std::thread::Builder::new().name("tenure-reader".to_owned());
            threads.push(builder.spawn(move || {
                while let Some(task) = queue.next() {
                    task(&conn);
                }
            })?);
        }
        Ok(Readers { queue, threads: Mutex::new(threads) })
    }

    /// Reads something.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        let (send, receive) = oneshot::channel();
        let task: ReadTask = Box::new(move |conn| {
            // Whoever asked may be gone; then nobody needs it.
            if !send.is_closed() {
                let _ = send.send(of_one_moment(conn, read));
            }
        });
        {
            let mut tasks = self.queue.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            if tasks.1 {
                return Err(Fault::Unknown("the store was closed before it was read".to_owned()));
            }
            tasks.0.push_back(task);
        }
        self.queue.changed.notify_one();
        match receive.await {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(why)) => Err(Fault::Unknown(format!("the store cannot be read: {why}"))),
            Err(_) => Err(Fault::Unknown("the store was closed while it was read".to_owned())),
        }
    }

    /// Takes no more; returns when the last read is over.
    pub(crate) fn close(&self) {
        self.queue.tasks.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.queue.changed.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A read that panicked has told its caller already.
            let _ = thread.join();
        }
    }
}
