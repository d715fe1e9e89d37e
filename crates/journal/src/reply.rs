//! The answer to an append, on its way.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::Appended;

/// The side of the caller, who waits.
#[derive(Debug)]
pub struct Reply(Receiver<Appended>);

/// The side of the journal.
#[derive(Debug)]
pub struct Replier(SyncSender<Appended>);

impl Reply {
    /// Both sides of one answer.
    pub fn new() -> (Replier, Reply) {
        let (replier, reply) = sync_channel(1);
        (Replier(replier), Reply(reply))
    }

    /// Waits for the answer; `None` if it has not come within `patience`. A journal that is gone without an answer
    /// leaves open whether it happened.
    pub fn wait(&self, patience: Duration) -> Option<Appended> {
        match self.0.recv_timeout(patience) {
            Ok(appended) => Some(appended),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(Appended::Unsure("the journal gave no answer".to_owned()))
            }
        }
    }
}

impl Replier {
    /// Answers. A caller that is gone does not hear it.
    pub fn answer(self, appended: Appended) {
        let _ = self.0.send(appended);
    }
}
