//! The state's view of the streams of events: the end of each, and the calls that wait for more.
//!
//! It must never number an event whose rows are not in the same batch.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use tenure_core::events::{EventId, Happened};
use tenure_core::names::Namespace;
use tenure_core::time::Moment;
use tenure_machine::{BatchEvents, Done, NewEvents, TakerId};

use super::StateThread;
use crate::batch::{Answer, Reply};

struct WaitingReader {
    namespace: Namespace,
    until: Moment,
    reply: Reply,
}

#[derive(Default)]
pub(super) struct EventStreams {
    /// The newest event of each namespace.
    ends: HashMap<Namespace, EventId>,
    readers: HashMap<TakerId, WaitingReader>,
    by_namespace: HashMap<Namespace, BTreeSet<TakerId>>,
    by_until: BTreeSet<(Moment, TakerId)>,
}

impl EventStreams {
    pub(super) fn new(ends: HashMap<Namespace, EventId>) -> Self {
        EventStreams { ends, ..EventStreams::default() }
    }

    /// Begins another life of all streams, which includes events that are numbered and not handed on yet.
    pub(super) fn begin_lives(&mut self, now: Moment, batch: &mut BatchEvents) {
        let highest = self.ends.values().map(|end| end.life).max().unwrap_or_default();
        let life = now.us().max(highest + 1);
        self.ends.values_mut().for_each(|end| end.life = life);
        batch.new.values_mut().for_each(|new| new.life = life);
    }

    fn take(&mut self, taker: TakerId) -> Option<WaitingReader> {
        let reader = self.readers.remove(&taker)?;
        self.by_until.remove(&(reader.until, taker));
        if let Some(takers) = self.by_namespace.get_mut(&reader.namespace) {
            takers.remove(&taker);
            if takers.is_empty() {
                self.by_namespace.remove(&reader.namespace);
            }
        }
        Some(reader)
    }

    /// The time at which the first waiting call is answered in any case.
    pub(super) fn next_until(&self) -> Option<Moment> {
        self.by_until.first().map(|(until, _)| *until)
    }
}

impl StateThread {
    /// Numbers the events of steps, and puts them into the batch with their rows.
    pub(super) fn number_events(&mut self, events: Vec<(Namespace, Vec<Happened>)>) {
        if !self.shared.keeps_events() {
            return;
        }
        for (namespace, mut events) in events {
            self.shared.seal.events(&namespace, &mut events);
            let Some(at) = events.first().map(|event| event.at) else { continue };
            // No two lives of a namespace begin at the same time: a day without calls lies between them.
            let begins = EventId { life: at.us(), number: 0 };
            let end = self.streams.ends.entry(namespace.clone()).or_insert(begins);
            let new = self.batch.changes.events.new.entry(namespace.clone()).or_insert_with(|| {
                NewEvents { life: end.life, first: end.number + 1, events: Vec::new() }
            });
            end.number += events.len() as u64;
            new.events.extend(events);
            self.wake_readers(&namespace);
        }
    }

    /// Ends the streams of namespaces that ended.
    pub(super) fn end_streams(&mut self, ended: Vec<Namespace>) {
        for namespace in &ended {
            self.streams.ends.remove(namespace);
            self.batch.changes.events.new.remove(namespace);
        }
        self.batch.changes.events.ended.extend(ended);
    }

    /// Waits for the next event, for a reader that has seen all earlier ones.
    pub(super) fn wait_for_events(
        &mut self,
        namespace: Namespace,
        (after, until): (EventId, Moment),
        taker: TakerId,
        reply: Option<Reply>,
    ) {
        let Some(reply) = reply.filter(|reply| !reply.is_closed()) else { return };
        let end = self.streams.ends.get(&namespace).copied().unwrap_or_default();
        if end != after
            || until <= self.shared.clock.now()
            || self.shared.draining.load(Ordering::Acquire)
        {
            return self.answer(namespace, Some(reply), Ok(Answer::Done(Done::Nothing)));
        }
        self.streams.by_until.insert((until, taker));
        self.streams.by_namespace.entry(namespace.clone()).or_default().insert(taker);
        self.streams.readers.insert(taker, WaitingReader { namespace, until, reply });
    }

    fn wake_readers(&mut self, namespace: &Namespace) {
        let takers = self.streams.by_namespace.get(namespace).cloned().unwrap_or_default();
        takers.into_iter().for_each(|taker| self.wake_reader(taker));
    }

    fn wake_reader(&mut self, taker: TakerId) {
        if let Some(WaitingReader { namespace, reply, .. }) = self.streams.take(taker) {
            self.answer(namespace, Some(reply), Ok(Answer::Done(Done::Nothing)));
        }
    }

    /// Answers the waiting calls whose time is over.
    pub(super) fn end_readers(&mut self, now: Moment) {
        while let Some((until, taker)) = self.streams.by_until.first().copied()
            && until <= now
        {
            self.wake_reader(taker);
        }
    }

    /// Answers all waiting calls.
    pub(super) fn drain_readers(&mut self) {
        self.end_readers(Moment::MAX);
    }

    /// Forgets a waiting call whose caller has gone.
    pub(super) fn drop_reader(&mut self, taker: TakerId) {
        self.streams.take(taker);
    }

    /// Takes the waiting calls when nothing is answered any more.
    pub(super) fn take_readers(&mut self) -> Vec<Reply> {
        let streams = &mut self.streams;
        streams.by_until.clear();
        streams.by_namespace.clear();
        streams.readers.drain().map(|(_, reader)| reader.reply).collect()
    }
}
