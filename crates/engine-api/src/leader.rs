//! The leader of a store, as one server of it knows it: the one type for this in every layer.

use std::fmt;

/// The server that answers calls of a store now. `E` is the engine of this process, `U` the address of another server.
#[derive(Clone)]
pub enum Leader<E, U> {
    /// This process.
    Local {
        /// The engine of the store.
        engine: E,
        /// The epoch of this leadership; 0 where no other server could lead the store.
        epoch: u64,
    },
    /// Another server.
    Remote(LeaderAddress<U>),
    /// No known server; the reason, as a sentence. It changes by itself, so calls may wait for that.
    None(String),
    /// No server until somebody ends the pause, as the sentence says: no call waits for that.
    Paused(String),
}

/// The server that leads the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaderAddress<U> {
    /// Where it takes calls.
    pub url: U,
    /// The epoch of its leadership: the same server may lead the store again later, under another one. 0 while it is
    /// unknown, because the store was just handed over to it.
    pub epoch: u64,
}

impl<E, U: PartialEq> Leader<E, U> {
    /// True for the same leadership. Reasons without a leader are not compared.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Leader::Local { epoch, .. }, Leader::Local { epoch: other, .. }) => epoch == other,
            (Leader::Remote(leader), Leader::Remote(other)) => leader == other,
            (Leader::None(_), Leader::None(_)) | (Leader::Paused(_), Leader::Paused(_)) => true,
            (Leader::Local { .. } | Leader::Remote(_) | Leader::None(_) | Leader::Paused(_), _) => {
                false
            }
        }
    }
}

impl<E, U> Leader<E, U> {
    /// The reason why no server answers calls.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Leader::None(why) | Leader::Paused(why) => Some(why),
            Leader::Local { .. } | Leader::Remote(_) => None,
        }
    }
}

impl<E, U: fmt::Display> fmt::Debug for Leader<E, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Leader::Local { epoch, .. } => write!(f, "Local({epoch})"),
            Leader::Remote(LeaderAddress { url, epoch }) => write!(f, "Remote({url}, {epoch})"),
            Leader::None(why) => write!(f, "None({why})"),
            Leader::Paused(why) => write!(f, "Paused({why})"),
        }
    }
}
