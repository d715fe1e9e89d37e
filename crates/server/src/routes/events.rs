//! `/v1/events`: events in their order, as a page or as a stream of server-sent events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use tenure_core::bounds::{EVENT_STREAMS_MAX, WAIT_US_MAX};
use tenure_core::events::EventId;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{EventsRead, EventsSince, ReadEvents};
use tenure_core::sentences::{NameRefusal, ServerRefusal};
use tenure_core::time::Span;
use tenure_engine_api::{CallError, EngineExt};
use tokio::sync::mpsc;

use crate::caller::GuardedEngine;
use crate::listed::accepts;
use crate::out::{Out, Tied};
use crate::problem;

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// An idle stream sends a comment this often, so that no proxy takes it for dead.
const COMMENT_EVERY: Duration = Duration::from_secs(15);
/// A browser reconnects this long after a broken connection.
const RETRY_MS: u64 = 1_000;
/// Pages of a stream that are written and not yet sent: one, so that a slow reader takes little memory.
const PAGES_AHEAD: usize = 1;

/// With several tokens, one in this many of all streams is reserved for tokens that have none.
const LAST_PART: usize = 10;

/// The open streams, by token.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventStreams(Arc<Mutex<StreamCounts>>);

#[derive(Debug, Default)]
struct StreamCounts {
    all: usize,
    /// By the name of the token. A token without a stream is absent.
    by_token: HashMap<Arc<str>, usize>,
}

/// One open stream, counted until it is dropped.
struct CountedStream {
    among: EventStreams,
    caller: Arc<str>,
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        let mut counts = self.among.lock();
        counts.all -= 1;
        if let Some(count) = counts.by_token.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                counts.by_token.remove(&self.caller);
            }
        }
    }
}

/// The caller that asks for a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamAsker {
    /// The name of its token.
    pub caller: Arc<str>,
    /// There are several tokens, so one must not take all streams.
    pub is_one_of_several: bool,
}

impl EventStreams {
    fn lock(&self) -> MutexGuard<'_, StreamCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_more(&self, asker: StreamAsker) -> Result<CountedStream, Refusal> {
        let mut counts = self.lock();
        let is_first = !asker.is_one_of_several || !counts.by_token.contains_key(&asker.caller);
        let kept = if is_first { 0 } else { EVENT_STREAMS_MAX / LAST_PART };
        let most = EVENT_STREAMS_MAX - kept;
        if counts.all >= most {
            return Err(ServerRefusal::TooManyStreams { most }.into());
        }
        counts.all += 1;
        *counts.by_token.entry(asker.caller.clone()).or_default() += 1;
        Ok(CountedStream { among: self.clone(), caller: asker.caller })
    }
}

/// Whether a caller wants a stream of server-sent events.
pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

/// Where a stream begins: a browser that reconnects says so in a header, which takes precedence over the query.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<EventsSince>, Refusal> {
    let Some(header) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let id = header.to_str().ok().and_then(|text| text.parse().ok());
    match id {
        Some(id) => Ok(Some(EventsSince::Id(id))),
        None => Err(Refusal::from(NameRefusal::EventId).at("/header/last-event-id")),
    }
}

/// The head of a stream, for a HEAD request: no stream begins.
pub(crate) fn head() -> Response<Out> {
    let mut response = Response::new(Out::whole(Vec::new()));
    response.headers_mut().insert(CONTENT_TYPE, EVENT_STREAM);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// Answers with a stream, which goes on until the caller leaves, `drains` says that the server drains, or `ends` is
/// done: the token that began the stream was removed. The first page is read before the answer begins, so that a
/// refusal has a status.
pub(crate) async fn stream(
    engine: Arc<GuardedEngine>,
    namespace: Namespace,
    asked: ReadEvents,
    (streams, asker): (&EventStreams, StreamAsker),
    drains: impl Fn() -> bool + Send + 'static,
    ends: impl Future<Output = ()> + Send + 'static,
) -> Result<Response<Out>, Refusal> {
    let counted = streams.one_more(asker)?;
    let first = ReadEvents { wait: Span::ZERO, ..asked.clone() };
    let first = engine.run(&namespace, first).await.map_err(problem::of_error)?;
    let (sender, receiver) = mpsc::channel(PAGES_AHEAD);
    let task = tokio::spawn(async move {
        let _counted = counted;
        let mut stream = SentStream { sender, engine, namespace, asked };
        tokio::select! {
            // A caller that is gone reads nothing more.
            _ = stream.run(first, drains) => {}
            () = ends => {}
        }
    });
    let mut response = Response::new(Out::lines(receiver, Tied(task.abort_handle())));
    response.headers_mut().insert(CONTENT_TYPE, EVENT_STREAM);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    Ok(response)
}

struct SentStream {
    sender: mpsc::Sender<Bytes>,
    engine: Arc<GuardedEngine>,
    namespace: Namespace,
    asked: ReadEvents,
}

/// The caller is gone.
struct Left;

#[derive(Serialize)]
struct StreamStart {
    next: EventId,
}

impl SentStream {
    async fn run(&mut self, first: EventsRead, drains: impl Fn() -> bool) -> Result<(), Left> {
        let begin = match &first.gap {
            Some(gap) => gap.first.before(),
            None => first.items.first().map_or(first.next, |event| event.id.before()),
        };
        let mut text = format!("retry: {RETRY_MS}\n");
        named(&mut text, "start", &StreamStart { next: begin });
        let mut page = first;
        loop {
            self.asked.since = EventsSince::Id(page.next);
            write_page(&mut text, page);
            if !text.is_empty() {
                self.send(std::mem::take(&mut text)).await?;
            }
            if drains() {
                return Ok(());
            }
            page = match self.next().await? {
                Some(page) => page,
                None => return Ok(()),
            };
        }
    }

    /// The next page; `None` if nothing more can be read here.
    async fn next(&mut self) -> Result<Option<EventsRead>, Left> {
        self.asked.wait = Span::from_us(WAIT_US_MAX);
        let mut reading = Box::pin(self.engine.run(&self.namespace, self.asked.clone()));
        loop {
            tokio::select! {
                read = &mut reading => return Ok(self.read(read)),
                () = tokio::time::sleep(COMMENT_EVERY) => {
                    self.send(":\n\n".to_owned()).await?;
                }
                () = self.sender.closed() => return Err(Left),
            }
        }
    }

    fn read(&self, read: Result<EventsRead, CallError>) -> Option<EventsRead> {
        match read {
            Ok(read) => Some(read),
            Err(why) => {
                // The caller reconnects by itself, and gets the refusal then.
                tracing::warn!(%why, "a stream of events ends");
                None
            }
        }
    }

    async fn send(&self, text: String) -> Result<(), Left> {
        self.sender.send(Bytes::from(text)).await.map_err(|_| Left)
    }
}

fn write_page(text: &mut String, page: EventsRead) {
    if let Some(gap) = &page.gap {
        named(text, "gap", gap);
    }
    for event in &page.items {
        text.push_str(&format!("id: {}\n", event.id));
        named(text, event.happened.kind.as_str(), event);
    }
}

/// One event of the stream. JSON has no line breaks of its own, so the data is one line.
fn named(text: &mut String, name: &str, data: &impl Serialize) {
    match serde_json::to_string(data) {
        Ok(data) => text.push_str(&format!("event: {name}\ndata: {data}\n\n")),
        Err(why) => tracing::error!(%why, "an event cannot be written as JSON"),
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::events::{About, Event, EventType, Gap, GapWhy, Happened};
    use tenure_core::time::Moment;

    use hyper::header::ACCEPT;

    use super::*;

    #[test]
    fn one_of_several_tokens_leaves_streams_to_those_that_have_none() {
        let streams = EventStreams::default();
        let asks = |caller: &'static str, is_one_of_several| {
            let asker = StreamAsker { caller: caller.into(), is_one_of_several };
            streams.one_more(asker).map_err(|no| no.code)
        };
        let mut of_one: Vec<_> = (0..).map_while(|_| asks("one", true).ok()).collect();
        assert_eq!(of_one.len(), 900);
        let other = asks("other", true).unwrap();
        assert!(asks("other", true).is_err(), "the last ones are not for it any more");
        drop(other);
        let alone = (0..).map_while(|_| asks("one", false).ok());
        of_one.extend(alone);
        assert_eq!(of_one.len(), EVENT_STREAMS_MAX, "whoever is alone has all");
        drop(of_one);
        let counts = streams.lock();
        assert!(counts.all == 0 && counts.by_token.is_empty());
    }

    #[test]
    fn a_stream_is_asked_for_by_what_is_accepted() {
        let accepts = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(text).unwrap());
            wants_stream(&headers)
        };
        assert!(accepts("text/event-stream") && accepts("application/json, Text/Event-Stream;q=1"));
        assert!(!accepts("*/*") && !accepts("text/event-streams") && !accepts("application/json"));
        assert!(!wants_stream(&HeaderMap::new()));
    }

    #[test]
    fn the_header_of_a_browser_is_an_id() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(LAST_EVENT_ID, HeaderValue::from_static(text));
            last_event_id(&headers)
        };
        let id = EventId { life: 0x6c1f, number: 7 };
        assert_eq!(of("6c1f-7").unwrap(), Some(EventsSince::Id(id)));
        assert_eq!(last_event_id(&HeaderMap::new()).unwrap(), None);
        for text in ["", "first", "x"] {
            assert_eq!(of(text).unwrap_err().pointer.as_deref(), Some("/header/last-event-id"));
        }
    }

    #[test]
    fn events_and_gaps_have_the_form_of_server_sent_events() {
        let id = |number| EventId { life: 10, number };
        let gap = Gap { after: id(1), first: id(5), why: GapWhy::Dropped };
        let happened = Happened::new(Moment::ZERO, EventType::EngineDeaf, About::default());
        let page =
            EventsRead { items: vec![Event { id: id(5), happened }], next: id(5), gap: Some(gap) };
        let mut text = String::new();
        write_page(&mut text, page);
        assert_eq!(
            text,
            "event: gap\ndata: {\"after\":\"a-1\",\"first\":\"a-5\",\"why\":\"dropped\"}\n\n\
             id: a-5\nevent: engine.deaf\ndata: {\"id\":\"a-5\",\"at\":\"1970-01-01T00:00:00.000000Z\",\
             \"type\":\"engine.deaf\",\"why\":null,\"until\":null}\n\n"
        );
    }
}
