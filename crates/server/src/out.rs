//! The body of an answer: in one piece, as lines while a task writes them, or as the body of another server's answer.
//!
//! The body carries the turn of its request, which ends when its last bytes are handed on for sending. A grant in it is
//! tracked until the last byte has left: see [`AnswerPart`].

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::budget::HeldBytes;
use crate::traffic::{Outgoing, Turn};

/// Answers up to this are not counted: counting costs more than they do.
const SMALL_BYTES: usize = 4 * 1024;

/// A task that is aborted when the handle is dropped.
#[derive(Debug)]
pub(crate) struct Tied(pub AbortHandle);

impl Drop for Tied {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug)]
enum From {
    Whole(Option<Bytes>),
    /// Written by a task, which ends with the answer.
    Lines {
        lines: mpsc::Receiver<Bytes>,
        _task: Tied,
    },
    /// The answer of another server, as it comes.
    Passed(UnsyncBoxBody<Bytes, io::Error>),
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Out {
    from: From,
    /// Bytes in memory; 0 for a small answer.
    counts: usize,
    turn: Option<Turn>,
}

impl Out {
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        let counts = if bytes.capacity() > SMALL_BYTES { bytes.capacity() } else { 0 };
        let from = From::Whole((!bytes.is_empty()).then(|| Bytes::from(bytes)));
        Out { from, counts, turn: None }
    }

    /// Bytes of the program itself, which cost nothing however many callers wait for them.
    pub(crate) fn unchanging(bytes: &'static [u8]) -> Self {
        let from = From::Whole((!bytes.is_empty()).then(|| Bytes::from_static(bytes)));
        Out { from, counts: 0, turn: None }
    }

    /// Bytes that the body takes from the budget, until the system has taken the last one.
    pub(crate) fn bytes(&self) -> usize {
        self.counts
    }

    /// Returns this part of the budget when the last byte has left.
    pub(crate) fn holding(mut self, mut held: HeldBytes) -> Self {
        if self.counts > 0
            && let From::Whole(bytes) = &mut self.from
        {
            held.force(self.counts);
            *bytes = bytes.take().map(|bytes| held.with(bytes));
        }
        self
    }

    /// Lines that a task sends through `lines`.
    pub(crate) fn lines(lines: mpsc::Receiver<Bytes>, task: Tied) -> Self {
        Out { from: From::Lines { lines, _task: task }, counts: 0, turn: None }
    }

    /// The body of another server's answer.
    pub(crate) fn passed(
        answer: impl Body<Data = Bytes, Error = io::Error> + Send + 'static,
    ) -> Self {
        Out { from: From::Passed(answer.boxed_unsync()), counts: 0, turn: None }
    }

    /// The request that this body answers.
    pub(crate) fn of(mut self, turn: Turn) -> Self {
        self.turn = Some(turn);
        self
    }

    /// The same without the body: an answer to HEAD.
    pub(crate) fn headless(mut self) -> Self {
        self.from = From::Whole(None);
        self
    }
}

/// A part of an answer on its way out.
///
/// One connection may carry many answers, each at the pace of its reader, so a part may leave long after it was handed
/// on. It is tracked until its last byte was taken. If it is dropped before that, its grant is undone.
#[derive(Debug)]
pub(crate) struct AnswerPart {
    bytes: Bytes,
    /// `None`: nobody needs to know when it has left.
    outgoing: Option<Outgoing>,
}

impl Buf for AnswerPart {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        match &mut self.outgoing {
            Some(outgoing) if self.bytes.is_empty() => {
                outgoing.taken();
                self.outgoing = None;
            }
            Some(outgoing) => outgoing.moves(),
            None => {}
        }
    }
}

impl Body for Out {
    type Data = AnswerPart;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<AnswerPart>, io::Error>>> {
        let next = match &mut self.from {
            From::Whole(bytes) => Poll::Ready(bytes.take().map(Frame::data).map(Ok)),
            From::Lines { lines, .. } => {
                lines.poll_recv(cx).map(|bytes| bytes.map(Frame::data).map(Ok))
            }
            From::Passed(answer) => Pin::new(answer).poll_frame(cx),
        };
        let piece =
            |bytes| AnswerPart { bytes, outgoing: self.turn.as_ref().and_then(Turn::outgoing) };
        next.map(|frame| frame.map(|frame| frame.map(|frame| frame.map_data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.from {
            From::Whole(bytes) => bytes.is_none(),
            From::Lines { .. } => false,
            From::Passed(answer) => answer.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.from {
            From::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            From::Lines { .. } => SizeHint::default(),
            From::Passed(answer) => answer.size_hint(),
        }
    }
}
