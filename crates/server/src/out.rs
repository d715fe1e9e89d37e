//! The body of an answer: whole, lines as they come, or what another body gives.
//!
//! It carries its request's turn, which so ends when the last of it is handed on to be sent. What was granted with it is
//! followed further, until the last byte has left: see [`AnswerPart`].

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

/// A task that ends with what holds this.
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
    /// What a task writes; the task ends with the answer.
    Lines {
        lines: mpsc::Receiver<Bytes>,
        _task: Tied,
    },
    /// What another server answers, as it comes.
    Passed(UnsyncBoxBody<Bytes, io::Error>),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Out {
    from: From,
    /// Bytes in memory, unless they are few.
    counts: usize,
    turn: Option<Turn>,
}

impl Out {
    /// These bytes.
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        let counts = if bytes.capacity() > SMALL_BYTES { bytes.capacity() } else { 0 };
        let from = From::Whole((!bytes.is_empty()).then(|| Bytes::from(bytes)));
        Out { from, counts, turn: None }
    }

    /// Bytes of the program itself, which cost nothing however many wait for them.
    pub(crate) fn unchanging(bytes: &'static [u8]) -> Self {
        let from = From::Whole((!bytes.is_empty()).then(|| Bytes::from_static(bytes)));
        Out { from, counts: 0, turn: None }
    }

    /// What it takes of the budget, until the system has taken its last byte.
    pub(crate) fn bytes(&self) -> usize {
        self.counts
    }

    /// Gives this part of the budget back when the last byte has left.
    pub(crate) fn holding(mut self, mut held: HeldBytes) -> Self {
        if self.counts > 0
            && let From::Whole(bytes) = &mut self.from
        {
            held.force(self.counts);
            *bytes = bytes.take().map(|bytes| held.with(bytes));
        }
        self
    }

    /// What comes through `lines` from a task.
    pub(crate) fn lines(lines: mpsc::Receiver<Bytes>, task: Tied) -> Self {
        Out { from: From::Lines { lines, _task: task }, counts: 0, turn: None }
    }

    /// The body of another server's answer.
    pub(crate) fn passed(
        answer: impl Body<Data = Bytes, Error = io::Error> + Send + 'static,
    ) -> Self {
        Out { from: From::Passed(answer.boxed_unsync()), counts: 0, turn: None }
    }

    /// The request that this answers.
    pub(crate) fn of(mut self, turn: Turn) -> Self {
        self.turn = Some(turn);
        self
    }

    /// The same without its body, which the answer to HEAD does not have.
    pub(crate) fn headless(mut self) -> Self {
        self.from = From::Whole(None);
        self
    }
}

/// A part of an answer on its way out.
///
/// One connection may carry many answers, each at the pace of its reader: that a part was handed on says nothing of when it
/// leaves. It is followed until its last byte was taken, and if it is dropped before that, whatever was granted with it is undone.
#[derive(Debug)]
pub(crate) struct AnswerPart {
    bytes: Bytes,
    /// `None`: nobody waits to hear when it has left.
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
