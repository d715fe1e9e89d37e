//! The answer to an append, on its way.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::{Append, Appended, Journal};

/// Hears the answer to one append, exactly once: a journal that drops it without an answer says [`Appended::Ended`].
pub struct Hears(Option<Box<dyn FnOnce(Appended) + Send>>);

impl Hears {
    /// `told` may run in any thread, also in the one that appends, before that returns. It must not block.
    pub fn new(told: impl FnOnce(Appended) + Send + 'static) -> Hears {
        Hears(Some(Box::new(told)))
    }

    /// Answers.
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

/// An answer that somebody waits for.
#[derive(Debug)]
pub struct Reply(Receiver<Appended>);

impl Reply {
    /// What hears an answer, and what waits for it.
    pub fn new() -> (Hears, Reply) {
        let (heard, reply) = sync_channel(1);
        let told = move |appended| {
            // Who waits no longer does not hear it.
            let _ = heard.send(appended);
        };
        (Hears::new(told), Reply(reply))
    }

    /// Begins an append, whose answer is waited for.
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
