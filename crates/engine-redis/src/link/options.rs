//! What can be chosen when a link is opened, with what suits nearly all.

use std::time::Duration;

use super::line::PingTimes;
use crate::library::Library;

/// How a link behaves.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// The library whose functions are called.
    pub library: Library,
    /// Connections to each primary; requests take them in turn. At least 1.
    pub connections: usize,
    /// How long an answer is waited for unless the call says otherwise.
    pub answer_within: Duration,
    /// How long making one connection may take, with TLS and login.
    pub connect_within: Duration,
    /// For so long after the loss of a connection, and after the opening, callers wait for the next
    /// one; later they are told at once that there is none.
    pub patience: Duration,
    /// Between two PINGs on a connection. A connection that died in silence is noticed after this
    /// and `ping_within` at the latest.
    pub ping_every: Duration,
    /// How long the answer to a PING may take.
    pub ping_within: Duration,
    /// Between two looks at who is the primary of what, if nothing gives cause for one earlier.
    pub look_every: Duration,
}

impl LinkOptions {
    /// The defaults, with this library.
    pub fn with(library: Library) -> Self {
        LinkOptions {
            library,
            connections: 2,
            answer_within: Duration::from_secs(5),
            connect_within: Duration::from_secs(2),
            patience: Duration::from_secs(1),
            ping_every: Duration::from_millis(1500),
            ping_within: Duration::from_secs(2),
            look_every: Duration::from_secs(2),
        }
    }

    pub(crate) fn watch(&self) -> PingTimes {
        PingTimes {
            ping_every: self.ping_every,
            ping_within: self.ping_within,
            patience: self.patience,
        }
    }
}

impl Default for LinkOptions {
    fn default() -> Self {
        LinkOptions::with(Library::release())
    }
}
