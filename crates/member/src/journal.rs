//! The journal that an engine is opened with: its appends go to the value, and are answered when that lets them out.
//!
//! A loss of the store does not end it: the value asks the others, acquires the store anew and heals it, and appends wait
//! meanwhile. Only a server that is deposed tells its engine so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use tenure_core::time::Span;
use tenure_journal::{
    Append, Appended, Hears, Journal, JournalEntry, ReadError, Snapshot, StoreFacts,
};
use tenure_journal_redis::RedisStore;
use tenure_owner::owner::Input;

use crate::hands::Hands;
use crate::translate::tip;

/// See the module.
pub(crate) struct MemberJournal {
    hands: Weak<Hands>,
    store: RedisStore,
    /// Of the load that it was made for.
    term: u64,
    /// The last thing that could not be read is damaged or missing, and not merely away.
    damage: Arc<AtomicBool>,
}

impl MemberJournal {
    pub fn new(hands: &Arc<Hands>, term: u64, damage: Arc<AtomicBool>) -> MemberJournal {
        MemberJournal { hands: Arc::downgrade(hands), store: hands.bulk.clone(), term, damage }
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

impl Journal for MemberJournal {
    fn append(&self, append: Append, hears: Hears) {
        let Some(hands) = self.hands.upgrade() else { return };
        let mut state = hands.lock();
        if state.is_over {
            drop(state);
            return hears.hear(Appended::Ended);
        }
        if state.term != self.term {
            drop(state);
            return hears.hear(Appended::Deposed);
        }
        let input = match append {
            Append::Nothing(end) if state.is_loading => {
                let before = state.proof.replace(hears);
                state.take(Input::Loaded { tip: tip(end) }, &hands.clock);
                hands.act(state);
                return drop(before);
            }
            Append::Nothing(_) => Input::AnswerWaits { ticket: state.appends.add(None, hears) },
            Append::Entry { entry, ttl, grants } => {
                let checksum = entry.position().sum;
                let ticket = state.appends.add(Some(entry), hears);
                Input::Decided { checksum, ticket, ttl: Span::from(ttl), grants }
            }
        };
        state.take(input, &hands.clock);
        hands.act(state);
    }

    fn read(&self, after: u64) -> Result<Vec<JournalEntry>, ReadError> {
        self.note(self.store.read(after))
    }

    fn snapshot(&self) -> Result<Option<Box<dyn Snapshot>>, ReadError> {
        let snapshot = self.store.snapshot().map_err(|why| ReadError::Away(why.to_string()))?;
        Ok(snapshot.map(|snapshot| Box::new(snapshot) as Box<dyn Snapshot>))
    }

    fn facts(&self) -> StoreFacts {
        // What was appended is counted where it is appended, and not where a load reads.
        self.hands.upgrade().map_or(self.store.facts(), |hands| hands.store.facts())
    }
}
