//! Where the store is served, and how this member is.

use std::fmt;
use std::sync::Arc;

use tenure_core::secret::Secret;
use tenure_engine::Embedded;
use tenure_owner::owner::Warning;
use tokio::sync::watch;

/// Where calls of the store are answered now.
#[derive(Clone)]
pub enum StorePlace {
    /// By this process.
    Here {
        /// What answers them.
        engine: Arc<Embedded>,
        /// The epoch at which this server took the store. It stays the same as long as the engine does.
        epoch: u64,
    },
    /// By another server.
    There {
        /// Where that one takes calls.
        url: String,
        /// By which the servers of the store know each other.
        secret: Secret,
        /// The epoch at which it took the store; 0 as long as that is not known: it was given the store a moment ago.
        epoch: u64,
    },
    /// By none that is known; why, as a sentence.
    Nobody(String),
    /// By none, because a copy paused the store; a sentence that says how that ends.
    Paused(String),
}

impl StorePlace {
    /// Whether calls are answered by the same owner of the same epoch.
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

/// Where the store is served, and a way to hear of changes.
///
/// Each answer is a copy. What is told is changed by a thread that holds the lock of the member, so who looked at it in its place
/// and asked the member something meanwhile would wait for that thread, and it for them.
pub struct Places(watch::Receiver<StorePlace>);

impl Places {
    pub(crate) fn of(told: &watch::Sender<StorePlace>) -> Self {
        Places(told.subscribe())
    }

    /// Where it is served at this moment.
    pub fn now(&self) -> StorePlace {
        self.0.borrow().clone()
    }

    /// The same; [`changed`](Self::changed) ends when it is no longer so.
    pub fn seen(&mut self) -> StorePlace {
        self.0.borrow_and_update().clone()
    }

    /// Ends at a place that was not [seen](Self::seen). Never, once the member is gone.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends at a place that is so. Never, once the member is gone.
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

/// For an operator.
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

/// How a member is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberHealth {
    /// Where the store is served, as a sentence.
    pub owner: String,
    /// What an operator should know, as sentences; none if all is well.
    pub warnings: Vec<String>,
    /// The other servers, as the owner knows them; none where another server is the owner.
    pub standbys: Vec<StandbyHealth>,
}

/// How far a server that does not own the store is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandbyHealth {
    /// Where it is reached.
    pub url: String,
    /// Entries that its rows lacked when it last said something, which it does once a second: a takeover reads these.
    pub behind: u64,
}

/// That another server owns the store, as a sentence without its full stop.
pub(crate) fn owns(url: &str, epoch: u64) -> String {
    match epoch {
        0 => format!("{url} owns the store"),
        epoch => format!("{url} owns the store, at epoch {epoch}"),
    }
}

/// A warning of the value, as a sentence.
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
