//! Limits connections that have not yet shown a credential for this server: how many an address may have, and which one
//! ends when a new one needs room.
//!
//! A connection is a stranger from its first byte until the first request with a valid token, session or secret of
//! another server. It never becomes a stranger again.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Most strangers at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StrangersMost {
    pub of_one_address: usize,
    pub in_all: usize,
}

/// The strangers of a server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strangers(Arc<Mutex<StrangersState>>);

#[derive(Debug, Default)]
struct StrangersState {
    /// In order of arrival.
    all: BTreeMap<u64, StrangerEntry>,
    next: u64,
    /// Strangers per address. An address without one is absent.
    by_address: HashMap<IpAddr, usize>,
}

impl StrangersState {
    fn end_oldest(&mut self) -> bool {
        let oldest = self.all.keys().next().copied().and_then(|number| self.take(number));
        // The notification is kept until the connection waits for it.
        oldest.inspect(|entry| entry.ends.notify_one()).is_some()
    }

    fn take(&mut self, number: u64) -> Option<StrangerEntry> {
        let entry = self.all.remove(&number)?;
        if let Some(count) = self.by_address.get_mut(&entry.from) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&entry.from);
            }
        }
        Some(entry)
    }
}

#[derive(Debug)]
struct StrangerEntry {
    from: IpAddr,
    /// Notified when the connection must end.
    ends: Arc<Notify>,
}

impl Strangers {
    /// Adds a stranger from this address; `None`: the address has its maximum. If all addresses together have their
    /// maximum, the oldest stranger ends.
    pub fn come(&self, from: IpAddr, most: StrangersMost) -> Option<Stranger> {
        let mut state = self.lock();
        let count = state.by_address.get(&from).copied().unwrap_or(0);
        if count >= most.of_one_address {
            return None;
        }
        if state.all.len() >= most.in_all {
            state.end_oldest();
        }
        let count = state.by_address.get(&from).copied().unwrap_or(0);
        state.by_address.insert(from, count + 1);
        let (number, ends) = (state.next, Arc::new(Notify::new()));
        state.next += 1;
        state.all.insert(number, StrangerEntry { from, ends: ends.clone() });
        Some(Stranger { among: self.clone(), number, ends })
    }

    /// Ends the oldest stranger: it has had the longest time to identify itself. Returns whether there is one.
    pub fn end_oldest(&self) -> bool {
        self.lock().end_oldest()
    }

    fn lock(&self) -> MutexGuard<'_, StrangersState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One stranger. The connection is no stranger any more when this is dropped.
#[derive(Debug)]
pub(crate) struct Stranger {
    among: Strangers,
    number: u64,
    ends: Arc<Notify>,
}

impl Stranger {
    /// Notified when the connection must end.
    pub fn ends(&self) -> Arc<Notify> {
        self.ends.clone()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.among.lock().take(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn an_address_has_a_bound_and_others_are_not_touched() {
        let strangers = Strangers::default();
        let most = StrangersMost { of_one_address: 2, in_all: 4 };
        let first = strangers.come(address(1), most).unwrap();
        let _second = strangers.come(address(1), most).unwrap();
        assert!(strangers.come(address(1), most).is_none());
        assert!(strangers.come(address(2), most).is_some());
        drop(first);
        assert!(strangers.come(address(1), most).is_some());
    }

    #[test]
    fn all_together_have_a_bound() {
        let (strangers, most) =
            (Strangers::default(), StrangersMost { of_one_address: 9, in_all: 2 });
        let all: Vec<_> = (1..9).map(|n| strangers.come(address(n), most).unwrap()).collect();
        let state = strangers.lock();
        assert_eq!((state.all.len(), state.by_address.len()), (2, 2));
        assert!(state.all.keys().copied().eq([6, 7]), "those that came last");
        drop(state);
        drop(all);
        assert!(strangers.lock().by_address.is_empty());
    }

    #[tokio::test]
    async fn the_one_that_came_first_ends_first() {
        let strangers = Strangers::default();
        let most = StrangersMost { of_one_address: 9, in_all: 9 };
        let known = strangers.come(address(1), most).unwrap();
        let first = strangers.come(address(1), most).unwrap();
        let second = strangers.come(address(1), most).unwrap();
        drop(known);
        assert!(strangers.end_oldest());
        first.ends().notified().await;
        drop(first);
        assert!(strangers.end_oldest());
        second.ends().notified().await;
        assert!(!strangers.end_oldest());
    }
}
