//! Events: pages of a stream, and readers that wait for the next.
//!
//! What a reader gets is in the stream, so nothing is sent while nobody reads. While some wait in this process, one task for
//! each namespace looks where its stream ends, for all of them together.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::bounds::EVENTS_LOOK_US;
use tenure_core::events::{EventId, StreamStands};
use tenure_core::requests::{EventPage, EventsRead, EventsSince, ReadEvents};
use tenure_core::time::Span;
use tenure_engine::CallError;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::answer::Answerable;
use crate::call::{Caller, malformed};
use crate::decode::{Answered, EventsReply};
use crate::encode::{ReadEventsArgs, pack};
use crate::function::Function;
use crate::options::Time;
use crate::waiting::WaitEnd;

/// The ids of leases are asked for only where events name some: a namespace is not made by a look at its events.
const READ_EVENTS: Function = Function { shows_leases: false, ..Function::of::<ReadEvents>() };
/// A reader looks for itself at the latest after this, whatever the task does.
const LOOK: Duration = Duration::from_micros(EVENTS_LOOK_US);
/// So often a page is asked for again that could not be answered before a call that may write had looked.
const LOOKS_MAX: u32 = 3;
/// Events that one call of the store gives, by whole entries.
const FETCHED: usize = 1_000;

/// Readers of a namespace that wait in this process.
#[derive(Default)]
pub(crate) struct Readers {
    state: Mutex<EventReaders>,
}

#[derive(Default)]
struct EventReaders {
    /// How many wait.
    waiting: usize,
    /// Where the stream ends, as the task has seen it last; there while a task looks.
    end: Option<watch::Sender<EventId>>,
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, EventReaders> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any wait.
    pub(crate) fn are_there(&self) -> bool {
        self.lock().waiting > 0
    }
}

/// A reader that waits, and is counted as long as it does.
struct EventWait<'a> {
    caller: &'a Caller,
    end: watch::Receiver<EventId>,
}

impl<'a> EventWait<'a> {
    /// Waits for the stream to end elsewhere than there.
    fn new(caller: &'a Caller, seen: EventId) -> Self {
        let mut state = caller.space.readers.lock();
        state.waiting += 1;
        let end = match &state.end {
            Some(end) => end.subscribe(),
            None => {
                let (sender, end) = watch::channel(seen);
                state.end = Some(sender);
                caller.shared.runtime.spawn(keep_looking(caller.clone()));
                end
            }
        };
        EventWait { caller, end }
    }
}

impl Drop for EventWait<'_> {
    fn drop(&mut self) {
        self.caller.space.readers.lock().waiting -= 1;
    }
}

/// Looks where the stream ends, for as long as somebody waits here.
async fn keep_looking(caller: Caller) {
    let mut closing = caller.shared.closing();
    loop {
        tokio::select! {
            () = sleep(LOOK) => {}
            _ = closing.changed() => {
                caller.space.readers.lock().end = None;
                return;
            }
        }
        {
            let mut state = caller.space.readers.lock();
            if state.waiting == 0 {
                state.end = None;
                return;
            }
        }
        // A store that is away is asked again with the next look.
        let Ok(EntryPage { stands, .. }) = page(&caller, EventId::default(), 0).await else {
            continue;
        };
        if let Some(end) = &caller.space.readers.lock().end {
            end.send_if_modified(|seen| std::mem::replace(seen, stands.end()) != stands.end());
        }
    }
}

/// What one call of the store told.
struct EntryPage {
    stands: StreamStands,
    answered: Answered<EventsReply>,
}

/// Where the stream stands, and entries behind an event, at most so many.
async fn page(caller: &Caller, after: EventId, most: usize) -> Result<EntryPage, CallError> {
    for _ in 0..LOOKS_MAX {
        let args = pack(&ReadEventsArgs::after(after, most));
        let mut answered = caller.ask::<EventsReply>(READ_EVENTS, args).await?;
        let known = &caller.space.known;
        let was_there = known.signer().is_some() || known.epoch(0).0.is_some();
        if answered.reply.look || answered.reply.absent && was_there {
            // The call for the key looks whether this is the store that it was.
            caller.signer_anew().await?;
            continue;
        }
        if !answered.reply.is_empty() && answered.blobs.signer.is_none() {
            answered.blobs.signer = Some(caller.signer().await?);
        }
        return Ok(EntryPage { stands: answered.reply.stands(), answered });
    }
    let why = "the namespace is lost again and again: look at redis";
    Err(tenure_engine::Fault::Unavailable(why.to_owned()).into())
}

impl ReadsOn {
    /// A page of what a reader wants.
    async fn read(&self, caller: &Caller, asked: &ReadEvents) -> Result<EventsRead, CallError> {
        let mut found = EventPage::new(asked);
        let mut after = self.after;
        loop {
            let EntryPage { stands, answered } =
                page(caller, after, found.left().min(FETCHED)).await?;
            let (number, gap) = stands.resume(after);
            if gap.is_some() && found.has_begun() {
                // Another life, or dropped meanwhile: the next call says so.
                return Ok(found.read);
            }
            if !self.from_first {
                found.read.gap = found.read.gap.or(gap);
            }
            found.read.next = EventId { number, ..stands.end() };
            let events = answered.reply.events(number, &answered.blobs);
            let events = events.map_err(malformed(READ_EVENTS))?;
            let is_last = events.last().is_none_or(|event| event.id.number >= stands.last);
            for event in events {
                if found.left() == 0 {
                    return Ok(found.read);
                }
                found.look_at(event);
            }
            if is_last || found.left() == 0 {
                return Ok(found.read);
            }
            after = found.read.next;
        }
    }
}

/// From where a reader reads on.
struct ReadsOn {
    after: EventId,
    /// From the oldest that is kept, whichever that is: it misses nothing.
    from_first: bool,
}

impl Answerable for ReadEvents {
    async fn answer(self, caller: Caller) -> Result<EventsRead, CallError> {
        let after = match self.since {
            EventsSince::Now => {
                let EntryPage { stands, .. } = page(&caller, EventId::default(), 0).await?;
                return Ok(EventsRead { next: stands.end(), ..EventsRead::default() });
            }
            EventsSince::First => EventId::default(),
            EventsSince::Id(after) => after,
        };
        let from_first = self.since == EventsSince::First;
        let on = ReadsOn { after, from_first };
        let mut read = on.read(&caller, &self).await?;
        if self.wait == Span::ZERO {
            return Ok(read);
        }
        let shared = &caller.shared;
        let end = WaitEnd::after(shared, self.wait);
        let mut draining = shared.draining();
        let mut stirred = caller.space.stirred();
        while read.items.is_empty()
            && read.gap.is_none()
            && end.left(shared) > 0
            && !shared.is_draining()
        {
            let mut waits = EventWait::new(&caller, read.next);
            let seen = read.next;
            let left = match shared.time {
                Time::Server => Duration::from_micros(end.left(shared)),
                // A test that moves its clock stirs all that wait.
                _ => Duration::MAX,
            };
            tokio::select! {
                _ = waits.end.wait_for(|end| *end != seen && *end != EventId::default()) => {}
                _ = draining.wait_for(|draining| *draining) => {}
                _ = stirred.changed() => {}
                () = sleep(left) => {}
            }
            drop(waits);
            let on = ReadsOn { after: read.next, from_first: false };
            match on.read(&caller, &self).await {
                Ok(more) => read = more,
                // A store that is away for a moment is asked again.
                Err(CallError::Fault(_)) if end.left(shared) > 0 && !shared.is_draining() => {
                    sleep(LOOK).await;
                }
                Err(why) => return Err(why),
            }
        }
        Ok(read)
    }
}
