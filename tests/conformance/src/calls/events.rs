//! Events since a mark in a sentence, as short lines.

use std::future::Future;
use std::panic::Location;

use tenure_core::events::{Event, EventFilter, EventId, EventType};
use tenure_core::requests::*;
use tenure_core::time::Span;

use crate::bench::Bench;
use crate::calls::waits::Waiting;

impl Bench {
    /// The position after all events until now.
    #[track_caller]
    pub(crate) fn mark(&self) -> impl Future<Output = EventId> + Send + use<> {
        let read = self.ok(ReadEvents::default());
        async move {
            let read = read.await;
            assert!(read.items.is_empty() && read.gap.is_none(), "{read:?}");
            read.next
        }
    }

    /// The events after a position, without a gap. Events that are only about engines are left out.
    #[track_caller]
    pub(crate) fn since(&self, mark: EventId) -> impl Future<Output = Vec<Event>> + Send + use<> {
        let at = Location::caller();
        let read = self.ok(reading(mark, EventFilter::default()));
        async move {
            let mut read = read.await;
            assert_eq!(read.gap, None, "{at}");
            let of_engine =
                |event: &Event| ["clock", "engine"].contains(&event.happened.kind.family());
            read.items.retain(|event| !of_engine(event));
            read.items
        }
    }

    /// The same as short lines.
    #[track_caller]
    pub(crate) fn heard(&self, mark: EventId) -> impl Future<Output = Vec<String>> + Send + use<> {
        let since = self.since(mark);
        async move { since.await.iter().map(line).collect() }
    }

    /// A reader that waits after a position.
    pub(crate) fn reads(&self, mark: EventId, wait: Span) -> Waiting<EventsRead> {
        self.start(ReadEvents { wait, ..reading(mark, EventFilter::default()) })
    }
}

/// A page from a position.
pub(crate) fn reading(mark: EventId, filter: EventFilter) -> ReadEvents {
    ReadEvents { since: EventsSince::Id(mark), filter, max: 1_000, wait: Span::ZERO }
}

/// Events of these types.
pub(crate) fn only_types(types: &[EventType]) -> EventFilter {
    EventFilter { types: types.to_vec(), ..EventFilter::default() }
}

/// The type of an event, its subject and its fields. Values that differ from run to run are left out.
pub(crate) fn line(event: &Event) -> String {
    let about = &event.happened.about;
    let mut words = vec![event.happened.kind.to_string()];
    let mut say = |word: Option<String>| words.extend(word);
    say(about.schedule.as_ref().filter(|_| about.job.is_none()).map(ToString::to_string));
    say(about.job.as_ref().map(ToString::to_string));
    say(about.limit.as_ref().map(ToString::to_string));
    say(about.pool.as_ref().map(ToString::to_string));
    say(about.resource.as_ref().map(ToString::to_string));
    say(about.queue.as_ref().filter(|_| about.job.is_none()).map(ToString::to_string));
    say(about.flow.as_ref().filter(|_| about.job.is_none()).map(ToString::to_string));
    say(about.why.as_ref().map(|why| format!("why {why}")));
    say(about.attempt.map(|attempt| format!("attempt {attempt}")));
    say(about.error.as_ref().map(|error| format!("error {error}")));
    say(about.outcome.map(|outcome| outcome.as_str().to_owned()));
    say(about.external.map(|external| format!("external {external}")));
    say(about.n.map(|n| format!("n {n}")));
    words.join(" ")
}
