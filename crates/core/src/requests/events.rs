//! Requests about what happened in a namespace. They only read.

use crate::bounded::Bounded;
use crate::bounded::queries::{QUERY, page, wait};
use crate::bounds::{EVENTS_SCAN_MAX, LIST_DEFAULT};
use crate::events::{Event, EventFilter, EventId, Gap};
use crate::names::JobId;
use crate::refusal::Refusal;
use crate::time::Span;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
    /// Answers at most this many, 1 to 1,000, and looks at no more than 10,000, without those that the index by job passes
    /// over.
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
    /// Where to go on: the last event that was looked at or passed over, wanted or not.
    pub next: EventId,
    /// What it missed before the first of these; null if nothing.
    #[serde(default)]
    pub gap: Option<Gap>,
}

/// Fills a page for one request, as an engine finds events, so that every engine ends it at the same place.
#[derive(Clone, Debug)]
pub struct EventPage {
    asked: Arc<ReadEvents>,
    looked: usize,
    /// The page as far as it is filled.
    pub read: EventsRead,
}

impl EventPage {
    /// Nothing was looked at yet.
    pub fn new(asked: Arc<ReadEvents>) -> Self {
        EventPage { asked, looked: 0, read: EventsRead::default() }
    }

    /// How many more events may be looked at; 0 once the page is full.
    pub fn left(&self) -> usize {
        match self.read.items.len() < self.asked.max {
            true => EVENTS_SCAN_MAX.saturating_sub(self.looked),
            false => 0,
        }
    }

    /// The job whose events alone are wanted. Others may be passed over without a look.
    pub fn job(&self) -> Option<&JobId> {
        self.asked.filter.job.as_ref()
    }

    /// Whether an event was looked at.
    pub fn has_begun(&self) -> bool {
        self.looked > 0
    }

    /// Looks at the next event, and takes it if it is wanted.
    pub fn look_at(&mut self, event: Event) {
        self.looked += 1;
        self.read.next = event.id;
        if self.asked.filter.wants(&event.happened) {
            self.read.items.push(event);
        }
    }
}

impl Bounded for ReadEvents {
    fn within_bounds(&self) -> Result<(), Refusal> {
        page(self.max, &QUERY)?;
        wait(self.wait)
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
