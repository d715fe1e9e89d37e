//! Reads the events of a [`Client`] in order, for as long as the caller likes.
//!
//! A reader keeps its position by itself and goes on there after a broken connection. If events after that position are
//! no longer kept, it reports a [`Gap`].

use std::collections::VecDeque;

use tenure_core::bounds::LIST_MAX;
use tenure_core::decode;
use tenure_core::events::{Event, EventFilter, EventId, Gap};
use tenure_core::names::{FlowName, JobId, LimitName, PoolName, QueueName, ScheduleId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{EventsRead, EventsSince, ReadEvents};
use tenure_core::time::Span;
use tenure_engine_api::CallError;
use tokio::time::{Instant, sleep};

use crate::asking::{Answered, Asking};
use crate::client::Client;

/// The longest wait that one call asks for.
const SLICE: Span = Span::from_s(30);

/// The next thing that a reader reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// An event, in its order.
    Event(Box<Event>),
    /// Events may be missing here that are no longer kept; the next event is the first after them.
    Gap(Gap),
}

/// Reads events in their order, as [`Client::events`] starts it. It holds one page, and nothing in the engine.
#[must_use = "nothing is read until `next` is awaited"]
pub struct EventReader {
    client: Client,
    filter: Result<EventFilter, Refusal>,
    since: EventsSince,
    page: VecDeque<Told>,
    asking: Asking,
}

impl Client {
    /// A page of events; see [`ReadEvents`]. [`Client::events`] turns the pages.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::requests::{EventsSince, ReadEvents};
    ///
    /// client.push("mail").await?;
    /// let first = ReadEvents { since: EventsSince::First, ..ReadEvents::default() };
    /// assert!(!client.read_events(first).await?.items.is_empty());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Client::run`]; `wrong_state` where no events are kept.
    pub async fn read_events(&self, asked: ReadEvents) -> Result<EventsRead, CallError> {
        self.run(asked).await
    }

    /// Reads events from now on, all of them unless methods of [`EventReader`] follow.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::Told;
    ///
    /// let mut failures = client.events().only("job.failed").only("schedule.*").queue("mail");
    /// # let mut failures = client.events().from_first();
    /// # client.push("mail").await?;
    /// if let Some(Told::Event(event)) = failures.next().await? {
    ///     println!("{} {:?}", event.happened.kind, event.happened.about.job);
    /// }
    /// # Ok(()) });
    /// ```
    pub fn events(&self) -> EventReader {
        self.events_since(EventsSince::Now, EventFilter::default())
    }

    /// Reads events from `since` on that match `filter`: [`Client::events`] with both of them parsed.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::EventFilter;
    /// use tenure::requests::EventsSince;
    ///
    /// client.push("mail").await?;
    /// let mut events = client.events_since(EventsSince::First, EventFilter::default());
    /// assert!(events.next_now().await?.is_some());
    /// # Ok(()) });
    /// ```
    pub fn events_since(&self, since: EventsSince, filter: EventFilter) -> EventReader {
        let (client, page, asking) = (self.clone(), VecDeque::new(), Asking::new());
        EventReader { client, filter: Ok(filter), since, page, asking }
    }
}

/// Methods that narrow the events. Calls of [`EventReader::only`] add up; of every other method the last call counts.
/// An invalid name is refused by the first [`EventReader::next`].
impl EventReader {
    /// Only events of this type, such as `job.failed`, or of this family, such as `schedule.*`. A second call adds a
    /// type.
    pub fn only(self, types: &str) -> Self {
        self.of(decode::event_types(types), |filter, types| filter.types.extend(types.iter()))
    }
    /// Only events about this queue.
    pub fn queue(self, name: &str) -> Self {
        self.of(QueueName::parse(name), |filter, name| filter.queue = Some(name))
    }
    /// Only events about this job.
    pub fn job(self, id: impl AsRef<str>) -> Self {
        self.of(JobId::known(id.as_ref()), |filter, id| filter.job = Some(id))
    }
    /// Only events about this flow.
    pub fn flow(self, name: &str) -> Self {
        self.of(FlowName::known(name), |filter, name| filter.flow = Some(name))
    }
    /// Only events about this schedule.
    pub fn schedule(self, id: &str) -> Self {
        self.of(ScheduleId::known(id), |filter, id| filter.schedule = Some(id))
    }
    /// Only events about this limit, also as a need that a job lacks.
    pub fn limit(self, name: &str) -> Self {
        self.of(LimitName::parse(name), |filter, name| filter.limit = Some(name))
    }
    /// Only events about this pool, also as a need that a job lacks.
    pub fn pool(self, name: &str) -> Self {
        self.of(PoolName::parse(name), |filter, name| filter.pool = Some(name))
    }
    /// From the oldest kept event on.
    pub fn from_first(self) -> Self {
        EventReader { since: EventsSince::First, ..self }
    }
    /// From the event after this one on: where an earlier reader stopped.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::Told;
    ///
    /// client.push("mail").id("m1").await?;
    /// client.push("mail").id("m2").await?;
    /// let mut all = client.events().only("job.pushed").from_first();
    /// let Some(Told::Event(first)) = all.next_now().await? else { panic!("it was kept") };
    /// let mut rest = client.events().only("job.pushed").after(first.id);
    /// assert!(rest.next_now().await?.is_some() && rest.next_now().await?.is_none());
    ///
    /// // Each word narrows what is read.
    /// let about = client.events().job("m1").flow("f").schedule("s").limit("l").pool("p");
    /// assert!(about.from_first().next_now().await?.is_none());
    /// # Ok(()) });
    /// ```
    pub fn after(self, id: EventId) -> Self {
        EventReader { since: EventsSince::Id(id), ..self }
    }

    fn of<T>(self, name: Result<T, Refusal>, put: impl FnOnce(&mut EventFilter, T)) -> Self {
        let filter = self.filter.and_then(|mut filter| {
            put(&mut filter, name?);
            Ok(filter)
        });
        EventReader { filter, ..self }
    }
}

impl EventReader {
    /// The next event, waited for without an end. Once the engine has answered, temporary failures (a server that
    /// restarts, a broken connection) are waited through. It never returns `None` today.
    ///
    /// # Errors
    /// As [`Client::read_events`]; a failure that no retry can cure.
    pub async fn next(&mut self) -> Result<Option<Told>, CallError> {
        loop {
            if let Some(told) = self.page.pop_front() {
                return Ok(Some(told));
            }
            // A wait in which the engine dies looks as if it had never been there: so the first call does not wait.
            let wait = if self.asking.has_met() { SLICE } else { Span::ZERO };
            self.read(wait).await?;
        }
    }

    /// The next event that is there already, without a wait; `None` if there is no such event.
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
            // A page may have been searched and hold no matching event.
            if self.page.is_empty() && self.since == before {
                return Ok(None);
            }
        }
    }

    async fn read(&mut self, wait: Span) -> Result<(), CallError> {
        loop {
            let (since, filter) = (self.since, self.filter.clone()?);
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
                    let Some(pause) = self.asking.failed(&error, sent, wait) else {
                        return Err(error);
                    };
                    sleep(pause).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tenure_core::events::{About, EventType, Happened};
    use tenure_core::requests::{Reply, Request};
    use tenure_core::time::Moment;
    use tenure_testkit::fake::{Fake, Says, unavailable};

    #[tokio::test(start_paused = true)]
    async fn a_reader_survives_a_server_killed_during_its_first_wait() {
        let fake = Fake::new(|call, before| {
            let Request::ReadEvents(asked) = call else { panic!("only events are read: {call:?}") };
            let read = |items| Reply::ReadEvents(EventsRead { items, ..EventsRead::default() });
            if before < 2 && asked.wait > Span::ZERO {
                return unavailable();
            }
            let happened = Happened::new(Moment::ZERO, EventType::JobPushed, About::default());
            let event = Event { id: EventId { life: 1, number: 8 }, happened };
            Says::Now(Ok(read(if before == 0 { Vec::new() } else { vec![event] })))
        });
        let client = Client::on_this_runtime(fake.clone());
        let mut events = client.events().after(EventId { life: 1, number: 7 });
        assert!(matches!(events.next().await, Ok(Some(Told::Event(_)))));
        assert_eq!(fake.calls().len(), 3);
        // An engine that is away from the start may be a wrong address.
        let away = Client::on_this_runtime(Fake::new(|_, _| unavailable()));
        assert!(away.events().next().await.is_err());
    }
}
