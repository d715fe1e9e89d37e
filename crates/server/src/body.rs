//! Reads bodies from callers that may be slow, wrong or gone.
//!
//! Only a bounded part of a body is ever in memory. The rest of a body that is refused early is
//! read and dropped for a moment, so that the sender can see the answer.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};
use hyper::header::{
    CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderMap, HeaderValue, TRANSFER_ENCODING,
};
use tenure_core::bounds::BODILESS_BYTES_MAX;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::ServerRefusal;
use tokio::time::{Instant, timeout_at};

use crate::budget::HeldBytes;
use crate::config::Config;

/// The media type in the head of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Media {
    Json,
    Lines,
    /// Any other type, or no header.
    Other,
}

/// Reads the media type from the headers.
pub(crate) fn media(headers: &HeaderMap) -> Media {
    let value = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let essence = value.split(|c| *c == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Media::Json
    } else if essence.eq_ignore_ascii_case(b"application/x-ndjson") {
        Media::Lines
    } else {
        Media::Other
    }
}

/// Refuses an encoded body: its bytes would be read as they are, not decoded.
pub(crate) fn codings(headers: &HeaderMap) -> Result<(), Refusal> {
    let shown = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let is = |value: &HeaderValue, word: &str| {
        value.as_bytes().trim_ascii().eq_ignore_ascii_case(word.as_bytes())
    };
    let mut transfers = headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(first) = transfers.next() {
        let more = transfers.next();
        if let Some(wrong) = more.or_else(|| Some(first).filter(|value| !is(value, "chunked"))) {
            return Err(ServerRefusal::TransferCoding { shown: cut(&shown(wrong)) }.into());
        }
    }
    let mut contents = headers.get_all(CONTENT_ENCODING).iter();
    match contents.find(|value| !is(value, "identity")) {
        Some(wrong) => Err(ServerRefusal::ContentCoding { shown: cut(&shown(wrong)) }.into()),
        None => Ok(()),
    }
}

/// The beginning of a header's value, short enough for a refusal.
fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}

pub(crate) struct Reading {
    body: Incoming,
    /// The sender waits for `100 Continue`.
    expects: bool,
    ended: bool,
    /// Why the sender may send no more, once that is so.
    stops: Option<Stops>,
}

type Stops = Pin<Box<dyn Future<Output = Refusal> + Send + Sync>>;
type Frame = Result<hyper::body::Frame<Bytes>, hyper::Error>;

/// One step of a read.
#[derive(Debug)]
pub(crate) enum Piece {
    Data(Bytes),
    /// The body is complete.
    End,
}

/// Why a body cannot be read to its end.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// For an answer with this refusal.
    Refused(Refusal),
    /// The sender is gone.
    Gone,
}

fn too_large(length: u64, most: usize) -> BodyError {
    let no = match most {
        BODILESS_BYTES_MAX => ServerRefusal::BodyNotTaken { bytes: length },
        most => ServerRefusal::BodyTooLarge { bytes: length, most },
    };
    BodyError::Refused(no.into())
}

fn too_slow() -> BodyError {
    BodyError::Refused(ServerRefusal::BodyTooSlow.into())
}

/// The refusal of a media type that the route does not take.
pub(crate) fn unsupported(takes_lines: bool) -> Refusal {
    if takes_lines {
        ServerRefusal::MediaTypeOrLines.into()
    } else {
        ServerRefusal::MediaType.into()
    }
}

impl Reading {
    pub(crate) fn new(body: Incoming, headers: &HeaderMap) -> Self {
        let ended = body.is_end_stream();
        Reading { body, expects: headers.contains_key(EXPECT), ended, stops: None }
    }

    /// Refuses the rest of the body, however long it is, once `stops` ends.
    pub(crate) fn stop_by(&mut self, stops: impl Future<Output = Refusal> + Send + Sync + 'static) {
        self.stops = Some(Box::pin(stops));
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        if let Some(stops) = &mut self.stops
            && let Poll::Ready(no) = stops.as_mut().poll(cx)
        {
            self.stops = None;
            self.ended = true;
            return Poll::Ready(Err(BodyError::Refused(no)));
        }
        Pin::new(&mut self.body).poll_frame(cx).map(Ok)
    }

    /// Whether there is no body at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.ended
    }

    /// Whether the body is known to have bytes.
    pub(crate) fn is_long(&self) -> bool {
        self.body.size_hint().lower() > 0
    }

    /// Waits for the next bytes, until `until`.
    pub(crate) async fn next(&mut self, until: Instant) -> Result<Piece, BodyError> {
        loop {
            if self.ended {
                return Ok(Piece::End);
            }
            let frame = poll_fn(|cx| self.poll_frame(cx));
            match timeout_at(until, frame).await.map_err(|_| too_slow())?? {
                None => self.ended = true,
                Some(Err(_)) => return Err(BodyError::Gone),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Piece::Data(data));
                    }
                }
            }
        }
    }

    /// The next bytes, if they are already here.
    pub(crate) async fn next_now(&mut self) -> Option<Result<Piece, BodyError>> {
        if self.ended {
            return Some(Ok(Piece::End));
        }
        match poll_fn(|cx| Poll::Ready(self.poll_frame(cx))).await {
            Poll::Pending => None,
            Poll::Ready(Err(no)) => Some(Err(no)),
            Poll::Ready(Ok(None)) => {
                self.ended = true;
                Some(Ok(Piece::End))
            }
            Poll::Ready(Ok(Some(Err(_)))) => Some(Err(BodyError::Gone)),
            // Nobody reads trailers.
            Poll::Ready(Ok(Some(Ok(frame)))) => {
                Some(Ok(Piece::Data(frame.into_data().unwrap_or_default())))
            }
        }
    }

    /// Refuses a body by its announced length, before any of it is read.
    pub(crate) fn at_most(&self, most: usize) -> Result<(), BodyError> {
        let length = self.body.size_hint().lower();
        if length > most as u64 { Err(too_large(length, most)) } else { Ok(()) }
    }

    /// Reads the whole body, at most `most` bytes. Its announced length is taken from the budget at
    /// the head, so that an admitted body can be read to its end.
    pub(crate) async fn whole(
        &mut self,
        most: usize,
        config: &Config,
        held: &mut HeldBytes,
    ) -> Result<Bytes, BodyError> {
        self.at_most(most)?;
        let length = self.body.size_hint().lower();
        held.grow(length as usize).map_err(BodyError::Refused)?;
        let end = Instant::now() + config.body_max;
        let mut first = Bytes::new();
        let mut whole = BytesMut::new();
        loop {
            let until = end.min(Instant::now() + config.body_pause_max);
            match self.next(until).await? {
                Piece::End if whole.is_empty() => return Ok(first),
                Piece::End => return Ok(whole.freeze()),
                Piece::Data(data) => {
                    let have = first.len().max(whole.len()) + data.len();
                    if have > most {
                        return Err(too_large(have as u64, most));
                    }
                    if have > length as usize {
                        held.grow(data.len()).map_err(BodyError::Refused)?;
                    }
                    // Most bodies come in one frame, which need not be copied.
                    if first.is_empty() && whole.is_empty() {
                        first = data;
                        continue;
                    }
                    if whole.is_empty() {
                        whole.reserve((length as usize).max(first.len() + data.len()));
                        whole.extend_from_slice(&first);
                    }
                    whole.extend_from_slice(&data);
                }
            }
        }
    }

    /// Reads the rest for a moment and drops it.
    pub(crate) fn linger(mut self, span: Duration) {
        // A sender that waits for `100 Continue` sees the answer instead.
        if self.ended || self.expects {
            return;
        }
        let until = Instant::now() + span;
        tokio::spawn(async move { while let Ok(Piece::Data(_)) = self.next(until).await {} });
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reading(ended: {})", self.ended)
    }
}
