//! Requests about what happened in a namespace. They only read.

use serde::{Deserialize, Serialize};

use crate::bounds::LIST_DEFAULT;
use crate::events::{Event, EventFilter, EventId, Gap};
use crate::time::Span;

/// After which event a reader goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EventsSince {
    /// After all that happened so far: the answer has no events, and says where to begin.
    #[default]
    Now,
    /// Before the oldest that is kept.
    First,
    /// After this one.
    Id(EventId),
}

/// Reads what happened, in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadEvents {
    /// From where.
    pub since: EventsSince,
    /// Which events.
    pub filter: EventFilter,
    /// Answers at most this many, 1 to 1,000, and looks at no more than 10,000.
    pub max: usize,
    /// How long to wait for the first one, at most a minute. With [`EventsSince::Now`] it is answered at once.
    pub wait: Span,
}

impl Default for ReadEvents {
    fn default() -> Self {
        ReadEvents {
            since: EventsSince::Now,
            filter: EventFilter::default(),
            max: LIST_DEFAULT,
            wait: Span::ZERO,
        }
    }
}

/// Passes over what a newer server tells.
fn known<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Event>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Read {
        Known(Box<Event>),
        Other(serde::de::IgnoredAny),
    }
    let read = Vec::<Read>::deserialize(deserializer)?;
    let known = |one| match one {
        Read::Known(event) => Some(*event),
        Read::Other(_) => None,
    };
    Ok(read.into_iter().filter_map(known).collect())
}

/// What a reader gets.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EventsRead {
    /// The events that it wants, in their order. Of an answer that is read, those of types that are known here.
    #[serde(deserialize_with = "known")]
    pub items: Vec<Event>,
    /// Where to go on: the last event that was looked at, wanted or not.
    pub next: EventId,
    /// What it missed before the first of these; null if nothing.
    #[serde(default)]
    pub gap: Option<Gap>,
}
