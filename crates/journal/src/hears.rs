//! The completion of an append: its callback, and a way to wait for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::{Append, Appended, Journal};

/// Called with the answer to one append, exactly once: a journal that drops it unanswered answers [`Appended::Ended`].
pub struct Hears(Option<Box<dyn FnOnce(Appended) + Send>>);

impl Hears {
    /// `told` may run in any thread, also in the one that appends, before `append` returns. It must not block.
    pub fn new(told: impl FnOnce(Appended) + Send + 'static) -> Hears {
        Hears(Some(Box::new(told)))
    }

    /// Calls the callback with the answer.
    pub fn hear(mut self, appended: Appended) {
        if let Some(told) = self.0.take() {
            told(appended);
        }
    }
}

impl Drop for Hears {
    fn drop(&mut self) {
        if let Some(told) = self.0.take() {
            told(Appended::Ended);
        }
    }
}

impl std::fmt::Debug for Hears {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hears").field("answered", &self.0.is_none()).finish()
    }
}

/// A pending answer that a caller waits for.
#[derive(Debug)]
pub struct Reply(Receiver<Appended>);

impl Reply {
    /// A callback, and the answer that it will deliver.
    pub fn new() -> (Hears, Reply) {
        let (heard, reply) = sync_channel(1);
        let told = move |appended| {
            // A caller that stopped waiting has dropped the receiver.
            let _ = heard.send(appended);
        };
        (Hears::new(told), Reply(reply))
    }

    /// Begins an append, and returns its pending answer.
    pub fn to(journal: &dyn Journal, append: Append) -> Reply {
        let (hears, reply) = Reply::new();
        journal.append(append, hears);
        reply
    }

    /// Waits for the answer; `None` if it has not come within `patience`.
    pub fn wait(&self, patience: Duration) -> Option<Appended> {
        match self.0.recv_timeout(patience) {
            Ok(appended) => Some(appended),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Appended::Ended),
        }
    }
}
