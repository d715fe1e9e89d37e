//! Connections that have not shown a token yet, or whatever else opens this server: how many an address may have, and which
//! one goes where there is no room for a new one.
//!
//! A connection is a stranger from its first byte until the first request that a token, a session or another server's secret
//! lets in. It never becomes one again.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// How many there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StrangersMost {
    pub of_one_address: usize,
    pub in_all: usize,
}

/// See the module. Clones see the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strangers(Arc<Mutex<StrangersState>>);

#[derive(Debug, Default)]
struct StrangersState {
    /// By the order in which they came.
    all: BTreeMap<u64, StrangerEntry>,
    next: u64,
    /// How many each address has. An address that has none is not here.
    by_address: HashMap<IpAddr, usize>,
}

impl StrangersState {
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
    /// Told when the connection must end.
    ends: Arc<Notify>,
}

impl Strangers {
    /// One more from this address; `None`: the address, or all together, have as many as they may.
    pub fn come(&self, from: IpAddr, most: StrangersMost) -> Option<Stranger> {
        let mut state = self.lock();
        let count = state.by_address.get(&from).copied().unwrap_or(0);
        if count >= most.of_one_address || state.all.len() >= most.in_all {
            return None;
        }
        state.by_address.insert(from, count + 1);
        let (number, ends) = (state.next, Arc::new(Notify::new()));
        state.next += 1;
        state.all.insert(number, StrangerEntry { from, ends: ends.clone() });
        Some(Stranger { among: self.clone(), number, ends })
    }

    /// Ends the one that came first: it has had the longest time to say who it is. Whether there is one.
    pub fn end_oldest(&self) -> bool {
        let mut state = self.lock();
        let oldest = state.all.keys().next().copied().and_then(|number| state.take(number));
        // Kept until it is waited for.
        oldest.inspect(|entry| entry.ends.notify_one()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, StrangersState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them. It is none any more when this is dropped.
#[derive(Debug)]
pub(crate) struct Stranger {
    among: Strangers,
    number: u64,
    ends: Arc<Notify>,
}

impl Stranger {
    /// Told when the connection must end.
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
        let _all: Vec<_> = (1..3).map(|n| strangers.come(address(n), most).unwrap()).collect();
        assert!(strangers.come(address(3), most).is_none());
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
