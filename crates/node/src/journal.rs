//! The journal of an engine: sends its appends to the election, and answers them when the election releases them.
//!
//! A loss of the store does not end it: the election asks the other servers, acquires the store again and rebuilds it,
//! and appends wait meanwhile. Only the engine of a fenced server learns of its fencing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use tenure_core::time::Span;
use tenure_election::election::Input;
use tenure_journal::{
    Append, Appended, Hears, Journal, JournalEntry, ReadError, Snapshot, StoreFacts,
};
use tenure_redis::RedisStore;

use crate::driver::Driver;
use crate::translate::tip;

/// The journal for the engine of one load.
pub(crate) struct NodeJournal {
    driver: Weak<Driver>,
    store: RedisStore,
    /// The term of that load.
    term: u64,
    /// The last failed read found damage or a gap, and not merely an unreachable store.
    damage: Arc<AtomicBool>,
}

impl NodeJournal {
    pub fn new(driver: &Arc<Driver>, term: u64, damage: Arc<AtomicBool>) -> NodeJournal {
        NodeJournal { driver: Arc::downgrade(driver), store: driver.bulk.clone(), term, damage }
    }

    fn note<T>(&self, read: Result<T, ReadError>) -> Result<T, ReadError> {
        let is_damage = match &read {
            Ok(_) | Err(ReadError::Away(_) | ReadError::InSnapshot { .. } | ReadError::Turned) => {
                false
            }
            Err(_) => true,
        };
        self.damage.store(is_damage, Ordering::Release);
        read
    }
}

impl Journal for NodeJournal {
    fn append(&self, append: Append, hears: Hears) {
        let Some(driver) = self.driver.upgrade() else { return };
        let mut state = driver.lock();
        if state.is_over {
            drop(state);
            return hears.hear(Appended::Ended);
        }
        if state.term != self.term {
            drop(state);
            return hears.hear(Appended::Fenced);
        }
        let input = match append {
            Append::Nothing(end) if state.is_loading => {
                let before = state.proof.replace(hears);
                state.take(Input::Loaded { tip: tip(end) }, &driver.clock);
                driver.act(state);
                return drop(before);
            }
            Append::Nothing(_) => Input::AnswerWaits { ticket: state.appends.add(None, hears) },
            Append::Entry { entry, ttl, grants } => {
                let checksum = entry.position().sum;
                let ticket = state.appends.add(Some(entry), hears);
                Input::Decided { checksum, ticket, ttl: Span::from(ttl), grants }
            }
        };
        state.take(input, &driver.clock);
        driver.act(state);
    }

    fn read(&self, after: u64) -> Result<Vec<JournalEntry>, ReadError> {
        self.note(self.store.read(after))
    }

    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>, ReadError> {
        let snapshot = self.store.snapshot().map_err(|why| ReadError::Away(why.to_string()))?;
        Ok(snapshot.map(|snapshot| Box::new(snapshot) as Box<dyn Snapshot>))
    }

    fn facts(&self) -> StoreFacts {
        // Appends are counted on the connection that sends them, and not on the one that a load reads from.
        self.driver.upgrade().map_or(self.store.facts(), |driver| driver.store.facts())
    }
}
