//! Requests about the events of a namespace. They only read.

use crate::bounds::{EVENTS_SCAN_MAX, LIST_DEFAULT};
use crate::events::{Event, EventFilter, EventId, Gap};
use crate::names::JobId;
use crate::time::Span;
use crate::view;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The place from which a reader of events goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EventsSince {
    /// After all events until now: the answer has no events, and says where to begin.
    #[default]
    Now,
    /// Before the oldest event that is kept.
    First,
    /// After the event with this id.
    Id(EventId),
}

/// Reads events in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadEvents {
    pub since: EventsSince,
    pub filter: EventFilter,
    /// Answers with at most this many, 1 to 1,000, and scans no more than 10,000, not counting events that the index by
    /// job skips.
    pub max: usize,
    /// How long to wait for the first one, at most a minute. With [`EventsSince::Now`] the call never waits.
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

/// Skips events of types that only a newer server knows.
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

view! {
    /// The answer to a reader of events.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct EventsRead as "Events" {
        /// What happened, in its order, as far as it was asked for.
        #[serde(deserialize_with = "known")]
        pub items: Vec<Event>,
        /// Where to go on: give it as since.
        pub next: EventId,
        /// What was missed before the first of these; null if nothing.
        #[serde(default)]
        pub gap: Option<Gap>,
    }
}

/// Fills one page while an engine finds events, so that every engine ends it at the same place.
#[derive(Clone, Debug)]
pub struct EventPage {
    asked: Arc<ReadEvents>,
    looked: usize,
    /// The page as it is filled up to now.
    pub read: EventsRead,
}

impl EventPage {
    /// An empty page, before any event was scanned.
    pub fn new(asked: Arc<ReadEvents>) -> Self {
        EventPage { asked, looked: 0, read: EventsRead::default() }
    }

    /// Number of events that may still be scanned; 0 once the page is full.
    pub fn left(&self) -> usize {
        if self.read.items.len() < self.asked.max {
            EVENTS_SCAN_MAX.saturating_sub(self.looked)
        } else {
            0
        }
    }

    /// The only job whose events match, if there is one. Events of other jobs may be skipped without a scan.
    pub fn job(&self) -> Option<&JobId> {
        self.asked.filter.job.as_ref()
    }

    /// True if an event was scanned.
    pub fn has_begun(&self) -> bool {
        self.looked > 0
    }

    /// Scans the next event, and keeps it if it matches.
    pub fn look_at(&mut self, event: Event) {
        self.looked += 1;
        self.read.next = event.id;
        if self.asked.filter.wants(&event.happened) {
            self.read.items.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{About, EventType, Happened};
    use crate::time::Moment;

    fn event(number: u64, kind: EventType) -> Event {
        let happened = Happened { at: Moment::ZERO, kind, about: About::default() };
        Event { id: EventId { life: 1, number }, happened }
    }

    #[test]
    fn a_page_ends_with_the_event_that_fills_it() {
        let filter = EventFilter { types: vec![EventType::JobReady], ..EventFilter::default() };
        let asked = ReadEvents { filter, max: 1, ..ReadEvents::default() };
        let mut page = EventPage::new(asked.into());
        assert!(!page.has_begun());
        page.look_at(event(1, EventType::JobPushed));
        assert_eq!(page.left(), EVENTS_SCAN_MAX - 1);
        page.look_at(event(2, EventType::JobReady));
        assert_eq!((page.left(), page.read.items.len(), page.read.next.number), (0, 1, 2));
    }

    #[test]
    fn a_page_ends_when_so_many_were_looked_at() {
        let filter = EventFilter { types: vec![EventType::JobReady], ..EventFilter::default() };
        let asked = ReadEvents { filter, ..ReadEvents::default() };
        let mut page = EventPage::new(asked.into());
        for number in 0..EVENTS_SCAN_MAX as u64 {
            assert!(page.left() > 0);
            page.look_at(event(number, EventType::JobPushed));
        }
        assert_eq!((page.left(), page.read.items.len()), (0, 0));
    }
}
