//! Events from the caller's side: a page of the stream, and the wait for more.
//!
//! A reader holds nothing except its page. If events that it has not read are dropped, its next
//! page reports the gap.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Connection;
use tenure_core::events::EventId;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{EventPage, EventsRead, EventsSince, ReadEvents};
use tenure_core::sentences::StoreRefusal;
use tenure_core::time::Moment;
use tenure_engine_api::{CallError, Fault};

use crate::batch::Answer;
use crate::calls::result_call::AwaitingCaller;
use crate::inbox::Ask;
use crate::shared::Shared;
use crate::sqlite::read::event_pages::{PortionEnd, portion};
use crate::sqlite::read::readers::Haste;

/// Events after the requested place; waits for the first one that matches.
pub(crate) async fn read(
    shared: &Arc<Shared>,
    namespace: &Namespace,
    asked: ReadEvents,
) -> Result<EventsRead, CallError> {
    if !shared.keeps_events() {
        return Err(Refusal::from(StoreRefusal::EventsNotKept).into());
    }
    let until = shared.clock.now().plus(asked.wait);
    let asked = Arc::new(asked);
    let mut since = asked.since;
    let mut haste = Haste::Later;
    loop {
        let (read, ended) = page(shared, namespace, since, &asked, haste).await?;
        let has_found = !read.items.is_empty() || read.gap.is_some() || ended == PortionEnd::Page;
        let answers_at_once = matches!(asked.since, EventsSince::Now);
        let draining = shared.draining.load(Ordering::Acquire);
        if has_found || answers_at_once || draining || shared.clock.now() >= until {
            return Ok(read);
        }
        wait(shared, namespace, read.next, until).await?;
        since = EventsSince::Id(read.next);
        // Few events have happened since the wait began.
        haste = Haste::Now;
    }
}

/// Returns when an event follows this one, or at `until`.
async fn wait(
    shared: &Shared,
    namespace: &Namespace,
    after: EventId,
    until: Moment,
) -> Result<(), CallError> {
    let taker = shared.next_taker();
    let receiver = shared.send(namespace, Ask::WaitForEvents { after, until, taker })?;
    let mut waiting = AwaitingCaller { shared, namespace, taker, answered: false };
    let answer = receiver.await;
    waiting.answered = true;
    match answer.unwrap_or_else(|_| Err(shared.gone()))? {
        Answer::Done(_) => Ok(()),
        _ => Err(Fault::Broken("a reader of events got another answer".to_owned()).into()),
    }
}

/// A page, read in portions: other reads get the readers in between.
async fn page(
    shared: &Shared,
    namespace: &Namespace,
    since: EventsSince,
    asked: &Arc<ReadEvents>,
    haste: Haste,
) -> Result<(EventsRead, PortionEnd), CallError> {
    let mut page = EventPage::new(asked.clone());
    let mut from = since;
    loop {
        let (namespace, seal) = (namespace.clone(), shared.seal.clone());
        let read = move |conn: &Connection| portion(conn, (&namespace, &seal), from, page);
        let (read, ended) = shared.read_rows(haste, read).await?;
        if ended != PortionEnd::Portion {
            shared.read_may_be_answered().await?;
            return Ok((read.read, ended));
        }
        from = EventsSince::Id(read.read.next);
        page = read;
    }
}
