//! The place where the store is served, and the health of this server.

use std::fmt;
use std::sync::Arc;

use tenure_election::election::Warning;
use tenure_engine::Embedded;
use tenure_engine_api::{Leader, LeaderAddress};
use tokio::sync::watch;

/// The leader of the store of a node: its own engine, or the address that another server registered.
pub type StoreLeader = Leader<Arc<Embedded>, String>;

/// The place where the store is served, and its changes.
///
/// Each answer is a copy. The place is changed by a thread that holds the lock of the member, so a caller that borrowed
/// it and called the member meanwhile would deadlock with that thread.
pub struct Places(watch::Receiver<StoreLeader>);

impl Places {
    pub(crate) fn of(told: &watch::Sender<StoreLeader>) -> Self {
        Places(told.subscribe())
    }

    /// The place at this moment.
    pub fn now(&self) -> StoreLeader {
        self.0.borrow().clone()
    }

    /// The place at this moment; [`changed`](Self::changed) ends when it is another one.
    pub fn seen(&mut self) -> StoreLeader {
        self.0.borrow_and_update().clone()
    }

    /// Ends at a place that was not [seen](Self::seen). Never ends once the member is gone.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends at a place for which `is_so` returns true. Never ends once the member is gone.
    pub async fn wait_for(&mut self, is_so: impl Fn(&StoreLeader) -> bool) {
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

/// The sentence about a change of the leader, for an operator.
pub fn leader_sentence(leader: &StoreLeader) -> String {
    match leader {
        Leader::Local { epoch, .. } => {
            format!("this server has taken over the store, at epoch {epoch}")
        }
        Leader::Remote(leader) => format!("{}; calls are passed on to it", leads(leader)),
        Leader::None(why) => format!("no server serves the store: {why}"),
        Leader::Paused(why) => why.clone(),
    }
}

/// The health of a server of a shared store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeHealth {
    /// The place where the store is served, as a sentence.
    pub leader: String,
    /// Sentences for the operator; empty if all is well.
    pub warnings: Vec<String>,
    /// The other servers, as the leader knows them; empty on any other server.
    pub standbys: Vec<FollowerHealth>,
}

/// The distance of a follower behind the leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FollowerHealth {
    /// The address at which it is reached.
    pub url: String,
    /// Entries that its rows lacked at its last report, one a second: a takeover reads these.
    pub behind: u64,
}

/// The sentence that another server leads the store, without its full stop.
pub(crate) fn leads(leader: &LeaderAddress<String>) -> String {
    let LeaderAddress { url, epoch } = leader;
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
            let url = "http://b".to_owned();
            leader_sentence(&StoreLeader::Remote(LeaderAddress { url, epoch }))
        };
        assert_eq!(there(7), "http://b owns the store, at epoch 7; calls are passed on to it");
        assert_eq!(there(0), "http://b owns the store; calls are passed on to it");
    }
}
