//! The body of an answer: whole, or lines as they come.
//!
//! It carries its request's turn, which so ends with the last byte that is taken to be sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::budget::HeldBytes;
use crate::traffic::Turn;

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
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Out {
    from: From,
    /// Bytes in memory, unless they are few.
    counts: usize,
    /// Set when the last byte was taken to be sent.
    written: Option<Arc<AtomicBool>>,
    turn: Option<Turn>,
}

impl Out {
    /// These bytes.
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        let counts = if bytes.capacity() > SMALL_BYTES { bytes.capacity() } else { 0 };
        let from = From::Whole((!bytes.is_empty()).then(|| Bytes::from(bytes)));
        Out { from, counts, written: None, turn: None }
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
        Out { from: From::Lines { lines, _task: task }, counts: 0, written: None, turn: None }
    }

    /// The request that this answers.
    pub(crate) fn of(mut self, turn: Turn) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Tells when the last byte was taken to be sent.
    pub(crate) fn telling(mut self, written: Arc<AtomicBool>) -> Self {
        self.written = Some(written);
        self
    }
}

impl Body for Out {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.from {
            From::Whole(bytes) => {
                let bytes = bytes.take();
                if let Some(written) = self.written.take() {
                    written.store(true, Ordering::Release);
                }
                Poll::Ready(bytes)
            }
            From::Lines { lines, .. } => lines.poll_recv(cx),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.from, From::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.from {
            From::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            From::Lines { .. } => SizeHint::default(),
        }
    }
}
