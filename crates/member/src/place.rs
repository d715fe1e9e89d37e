//! The place where the store is served, and the health of this server.

use std::fmt;
use std::sync::Arc;

use tenure_core::secret::Secret;
use tenure_engine::Embedded;
use tenure_owner::owner::Warning;
use tokio::sync::watch;

/// The place where calls of the store are answered now.
#[derive(Clone)]
pub enum StorePlace {
    /// This process leads the store.
    Here {
        /// The engine that answers them.
        engine: Arc<Embedded>,
        /// The epoch at which this server took the store. It stays the same as long as the engine does.
        epoch: u64,
    },
    /// Another server leads the store.
    There {
        /// The address at which that server takes calls.
        url: String,
        /// The secret by which the servers of the store know each other.
        secret: Secret,
        /// The epoch at which it took the store; 0 while that is unknown, because the store was just handed over to it.
        epoch: u64,
    },
    /// No known server leads the store; the reason, as a sentence.
    Nobody(String),
    /// No server leads the store, because a copy paused it; the sentence says how that ends.
    Paused(String),
}

impl StorePlace {
    /// True if the same leader answers calls at the same epoch.
    pub(crate) fn is_same(&self, other: &StorePlace) -> bool {
        match (self, other) {
            (StorePlace::Here { engine, .. }, StorePlace::Here { engine: other, .. }) => {
                Arc::ptr_eq(engine, other)
            }
            (
                StorePlace::There { url, epoch, .. },
                StorePlace::There { url: other_url, epoch: other_epoch, .. },
            ) => (url, epoch) == (other_url, other_epoch),
            (StorePlace::Nobody(why), StorePlace::Nobody(other))
            | (StorePlace::Paused(why), StorePlace::Paused(other)) => why == other,
            _ => false,
        }
    }
}

/// The place where the store is served, and its changes.
///
/// Each answer is a copy. The place is changed by a thread that holds the lock of the member, so a caller that borrowed
/// it and called the member meanwhile would deadlock with that thread.
pub struct Places(watch::Receiver<StorePlace>);

impl Places {
    pub(crate) fn of(told: &watch::Sender<StorePlace>) -> Self {
        Places(told.subscribe())
    }

    /// The place at this moment.
    pub fn now(&self) -> StorePlace {
        self.0.borrow().clone()
    }

    /// The place at this moment; [`changed`](Self::changed) ends when it is another one.
    pub fn seen(&mut self) -> StorePlace {
        self.0.borrow_and_update().clone()
    }

    /// Ends at a place that was not [seen](Self::seen). Never ends once the member is gone.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends at a place for which `is_so` returns true. Never ends once the member is gone.
    pub async fn wait_for(&mut self, is_so: impl Fn(&StorePlace) -> bool) {
        if self.0.wait_for(|place| is_so(place)).await.is_err() {
            std::future::pending().await
        }
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.now())
    }
}

/// The sentence for an operator.
impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorePlace::Here { epoch, .. } => {
                write!(f, "this server has taken over the store, at epoch {epoch}")
            }
            StorePlace::There { url, epoch, .. } => {
                write!(f, "{}; calls are passed on to it", owns(url, *epoch))
            }
            StorePlace::Nobody(why) => write!(f, "no server serves the store: {why}"),
            StorePlace::Paused(why) => f.write_str(why),
        }
    }
}

impl fmt::Debug for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorePlace::Here { epoch, .. } => write!(f, "Here({epoch})"),
            StorePlace::There { url, epoch, .. } => write!(f, "There({url}, {epoch})"),
            StorePlace::Nobody(why) => write!(f, "Nobody({why})"),
            StorePlace::Paused(why) => write!(f, "Paused({why})"),
        }
    }
}

/// The health of a server of a shared store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberHealth {
    /// The place where the store is served, as a sentence.
    pub owner: String,
    /// Sentences for the operator; empty if all is well.
    pub warnings: Vec<String>,
    /// The other servers, as the leader knows them; empty on any other server.
    pub standbys: Vec<StandbyHealth>,
}

/// The distance of a follower behind the leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandbyHealth {
    /// The address at which it is reached.
    pub url: String,
    /// Entries that its rows lacked at its last report, one a second: a takeover reads these.
    pub behind: u64,
}

/// The sentence that another server leads the store, without its full stop.
pub(crate) fn owns(url: &str, epoch: u64) -> String {
    match epoch {
        0 => format!("{url} owns the store"),
        epoch => format!("{url} owns the store, at epoch {epoch}"),
    }
}

/// A warning of the election, as a sentence.
pub(crate) fn sentence(warning: Warning) -> &'static str {
    match warning {
        Warning::StoreForgot => {
            "the store in Redis lost what it held, or is another run of it; this server asks the others and writes it anew"
        }
        Warning::OtherStore => {
            "another store lies in Redis where this one was, so nothing is written and no call answered; restore the keys of \
             this store, or start this server again to use the other one"
        }
        Warning::Recovering => {
            "answered entries may be lost; until every lease that may be unknown here has ended, nothing exclusive is granted"
        }
        Warning::Damaged => {
            "the journal in Redis cannot be read as a whole; restore Redis from a backup, or use another name for a new store"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_said_once_it_is_known() {
        let there = |epoch| {
            let (url, secret) = ("http://b".to_owned(), Secret::new("x"));
            StorePlace::There { url, secret, epoch }.to_string()
        };
        assert_eq!(there(7), "http://b owns the store, at epoch 7; calls are passed on to it");
        assert_eq!(there(0), "http://b owns the store; calls are passed on to it");
    }
}
