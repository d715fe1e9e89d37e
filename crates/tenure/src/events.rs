//! Events of a [`Client`]: what happened, one after the other, for as long as somebody reads.
//!
//! A reader keeps its place by itself and goes on there after a broken connection. What it cannot be told any more it is
//! told of, as a [`Gap`].

use std::collections::VecDeque;

use tenure_core::bounds::LIST_MAX;
use tenure_core::events::{Event, EventFilter, Gap};
use tenure_core::requests::{EventsRead, EventsSince, ReadEvents};
use tenure_core::time::Span;
use tenure_engine::CallError;
use tokio::time::{Instant, sleep};

use crate::asking::{Answered, Asking};
use crate::client::Client;

/// The longest wait that one call asks for.
const SLICE: Span = Span::from_s(30);

/// What a reader is told next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// Something happened.
    Event(Box<Event>),
    /// Something may have happened that nobody can tell any more; the next event is the first after it.
    Gap(Gap),
}

/// Reads events in their order. It holds one page, and nothing of it in the engine.
pub struct EventReader {
    client: Client,
    filter: EventFilter,
    since: EventsSince,
    page: VecDeque<Told>,
    asking: Asking,
}

impl Client {
    /// A page of what happened; see [`ReadEvents`].
    ///
    /// # Errors
    /// As [`Client::run`]; `wrong_state` where no events are kept.
    pub async fn read_events(&self, asked: ReadEvents) -> Result<EventsRead, CallError> {
        self.run(asked).await
    }

    /// Reads what happens from `since` on, as far as `filter` wants it.
    ///
    /// ```no_run
    /// # use tenure::core::events::EventFilter;
    /// # use tenure::core::requests::EventsSince;
    /// # async fn example(client: tenure::Client) -> Result<(), tenure::CallError> {
    /// let mut events = client.events(EventsSince::Now, EventFilter::default());
    /// while let Some(told) = events.next().await? {
    ///     println!("{told:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(&self, since: EventsSince, filter: EventFilter) -> EventReader {
        let (client, page, asking) = (self.clone(), VecDeque::new(), Asking::new());
        EventReader { client, filter, since, page, asking }
    }
}

impl EventReader {
    /// The next event, waited for without an end. What passes by itself (a server that starts anew, a broken connection)
    /// is waited through, once the engine has answered; it never answers `None` today.
    ///
    /// # Errors
    /// As [`Client::read_events`]; a call that cannot be repeated with success.
    pub async fn next(&mut self) -> Result<Option<Told>, CallError> {
        loop {
            if let Some(told) = self.page.pop_front() {
                return Ok(Some(told));
            }
            self.read(SLICE).await?;
        }
    }

    /// The next event that has happened already; `None` if there is none.
    ///
    /// # Errors
    /// As [`EventReader::next`].
    pub async fn next_now(&mut self) -> Result<Option<Told>, CallError> {
        loop {
            if let Some(told) = self.page.pop_front() {
                return Ok(Some(told));
            }
            let before = self.since;
            self.read(Span::ZERO).await?;
            // A page may have been looked at without anything wanted in it.
            if self.page.is_empty() && self.since == before {
                return Ok(None);
            }
        }
    }

    async fn read(&mut self, wait: Span) -> Result<(), CallError> {
        loop {
            let (since, filter) = (self.since, self.filter.clone());
            let asked = ReadEvents { since, filter, max: LIST_MAX, wait };
            let sent = Instant::now();
            match self.client.read_events(asked).await {
                Ok(EventsRead { items, next, gap }) => {
                    let found = !items.is_empty() || gap.is_some();
                    self.since = EventsSince::Id(next);
                    self.page.extend(gap.map(Told::Gap));
                    self.page.extend(items.into_iter().map(|event| Told::Event(Box::new(event))));
                    // An engine that drains answers at once and with nothing.
                    let moved = found || since != self.since;
                    let Answered { pause, .. } = self.asking.answered(moved, wait, sent.elapsed());
                    sleep(pause).await;
                    return Ok(());
                }
                Err(error) => {
                    let Some(pause) = self.asking.failed(&error, sent) else { return Err(error) };
                    sleep(pause).await;
                }
            }
        }
    }
}
