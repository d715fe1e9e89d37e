//! The body of a forwarded call: whole if it can be sent again; otherwise in pieces as they come from the caller, with
//! only a few of them in memory.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tenure_core::bounds::LINE_BYTES_MAX;
use tenure_core::decode::{LineRead, Lines};
use tenure_core::refusal::Refusal;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ids;
use crate::body::{BodyError, Piece, Reading};
use crate::budget::{Budget, Rank};
use crate::config::Config;
use crate::out::Tied;

/// Pieces that were read from the caller and not yet taken by the connection to the leader.
const PIECES_MAX: usize = 4;

/// Why the rest of a body was not accepted. Initially `None`; set before the body ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct RestRefused(Arc<Mutex<Option<(usize, Refusal)>>>);

impl RestRefused {
    fn set(&self, line: usize, no: Refusal) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((line, no));
    }

    /// The refusal, and the number of the line that it is about.
    pub(crate) fn take(&self) -> Option<(usize, Refusal)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The body of a forwarded call.
#[derive(Debug)]
pub(crate) enum SentBody {
    /// `None`: it was empty, or has left.
    Whole(Option<Bytes>),
    /// A body whose reading begins when the connection to the leader asks for it. `None` only while it begins.
    Unbegun(Option<Box<UnbegunBody>>),
    /// A task reads it from the caller and ends with the body. An error closes the connection to the leader, so that a
    /// part of the body is not taken for all of it.
    Streamed(
        mpsc::Receiver<Result<Bytes, io::Error>>,
        #[allow(dead_code, reason = "dropped")] Tied,
    ),
}

impl SentBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        SentBody::Whole(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// Reads a body from its caller as the leader takes it. `are_jobs`: each line is a job, and gets an id if it lacks
    /// one.
    pub(crate) fn streamed(
        reading: Reading,
        are_jobs: bool,
        budget: Arc<Budget>,
        config: Config,
        rest: RestRefused,
    ) -> Self {
        let unbegun = UnbegunBody { reading, are_jobs, budget, config, rest };
        SentBody::Unbegun(Some(Box::new(unbegun)))
    }

    /// The caller's body if nothing of it was read, otherwise the rest of it.
    pub(crate) fn unread(self) -> Result<Reading, SentBody> {
        match self {
            SentBody::Unbegun(Some(unbegun)) => Ok(unbegun.reading),
            begun => Err(begun),
        }
    }
}

/// A body that nobody has begun to read.
#[derive(Debug)]
pub(crate) struct UnbegunBody {
    reading: Reading,
    are_jobs: bool,
    budget: Arc<Budget>,
    config: Config,
    rest: RestRefused,
}

impl UnbegunBody {
    fn begin(self) -> SentBody {
        let UnbegunBody { reading, are_jobs, budget, config, rest } = self;
        let (pieces, receiver) = mpsc::channel(PIECES_MAX);
        let task = tokio::spawn(async move {
            let lines = are_jobs.then(ForwardedLines::default);
            // If nobody takes the pieces any more, there is nothing more to do.
            let _ = forward(reading, lines, &budget, &config, &pieces, &rest).await;
        });
        SentBody::Streamed(receiver, Tied(task.abort_handle()))
    }
}

async fn forward(
    mut reading: Reading,
    mut lines: Option<ForwardedLines>,
    budget: &Arc<Budget>,
    config: &Config,
    pieces: &mpsc::Sender<Result<Bytes, io::Error>>,
    rest: &RestRefused,
) -> Option<()> {
    let refused = |lines: &Option<ForwardedLines>, no: Refusal| {
        rest.set(lines.as_ref().map_or(0, |lines| lines.left) + 1, no.clone());
        // Jobs that came are stored, each for itself. A part of a whole set must not be taken for all of it.
        lines.is_none().then(|| Err(io::Error::other(no)))
    };
    loop {
        let read = reading.next(Instant::now() + config.body_pause_max).await;
        let (bytes, is_last) = match read {
            Ok(Piece::Data(data)) => match &mut lines {
                Some(lines) => (Bytes::from(lines.piece(&data)), false),
                None => (data, false),
            },
            Ok(Piece::End) => match &mut lines {
                Some(lines) => (Bytes::from(lines.end()), true),
                None => return Some(()),
            },
            Err(BodyError::Gone) => {
                let gone = io::Error::from(io::ErrorKind::ConnectionAborted);
                return pieces.send(Err(gone)).await.ok();
            }
            Err(BodyError::Refused(no)) => {
                return match refused(&lines, no) {
                    Some(broken) => pieces.send(broken).await.ok(),
                    None => Some(()),
                };
            }
        };
        if !bytes.is_empty() {
            let held = budget.take(bytes.len(), Rank::Ordinary);
            let piece = match held {
                Ok(held) => Ok(held.with(bytes)),
                Err(no) => match refused(&lines, no) {
                    Some(broken) => broken,
                    None => return Some(()),
                },
            };
            let failed = piece.is_err();
            pieces.send(piece).await.ok()?;
            if failed {
                return Some(());
            }
        }
        if is_last {
            return Some(());
        }
    }
}

/// Jobs on lines of their own, which leave with ids. The leader counts the same lines as the caller.
#[derive(Default)]
struct ForwardedLines {
    lines: Lines,
    /// The number of the last line that left.
    left: usize,
}

impl ForwardedLines {
    /// Output for a piece of input: the lines that are complete now. Blank lines leave at once, or a caller could have
    /// any number of them made in one step.
    fn piece(&mut self, data: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(data.len() + data.len() / 4);
        let mut chunk = data;
        while let Some((number, line)) = self.lines.next(&mut chunk) {
            leave(&mut self.left, number, line, &mut text);
        }
        leave_blank(&mut self.left, self.lines.ended(), &mut text);
        text
    }

    /// Output for a last line without a line break.
    fn end(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        if let Some((number, line)) = self.lines.finish() {
            leave(&mut self.left, number, line, &mut text);
        }
        text
    }
}

/// `Lines` counts blank lines and does not return them: those up to this number are added here.
fn leave_blank(left: &mut usize, number: usize, text: &mut Vec<u8>) {
    text.resize(text.len() + number.saturating_sub(*left), b'\n');
    *left = number.max(*left);
}

fn leave(left: &mut usize, number: usize, line: LineRead<'_>, text: &mut Vec<u8>) {
    leave_blank(left, number - 1, text);
    *left = number;
    match line {
        LineRead::Whole(line) => match ids::line(line) {
            Some(line) => text.extend_from_slice(&line),
            None => text.extend_from_slice(line),
        },
        // None of a long line is kept here, and every line of that length gets the same refusal.
        LineRead::TooLong => text.resize(text.len() + LINE_BYTES_MAX + 2, b'x'),
    }
    text.push(b'\n');
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let SentBody::Unbegun(unbegun) = &mut *self
            && let Some(unbegun) = unbegun.take()
        {
            *self = unbegun.begin();
        }
        match &mut *self {
            SentBody::Unbegun(_) => Poll::Ready(None),
            SentBody::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            SentBody::Streamed(pieces, _) => {
                pieces.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, SentBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            SentBody::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            SentBody::Unbegun(_) | SentBody::Streamed(..) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_leave_with_ids_and_keep_their_numbers() {
        let long = format!("{{\"payload\":\"{}\"}}", "x".repeat(LINE_BYTES_MAX));
        let body =
            format!("\n\n{{}}\n{{\"id\":\"a\"}}\r\n  \nnonsense\n{long}\n{{\"queue\":\"q\"}}");
        for size in [1, 7, 1 << 20] {
            let mut passed = ForwardedLines::default();
            let mut text = Vec::new();
            for chunk in body.as_bytes().chunks(size) {
                text.extend(passed.piece(chunk));
            }
            text.extend(passed.end());
            // Only the last line has no line break.
            let whole = format!("{body}\n");
            let (mut before, mut after) = (whole.as_bytes(), &text[..]);
            let (mut theirs, mut ours) = (Lines::default(), Lines::default());
            for _ in 0..5 {
                let (number, line) = ours.next(&mut after).unwrap();
                let (at, was) = theirs.next(&mut before).unwrap();
                assert_eq!(number, at);
                match (line, was) {
                    (LineRead::Whole(b"nonsense"), LineRead::Whole(b"nonsense"))
                    | (LineRead::TooLong, LineRead::TooLong) => {}
                    (LineRead::Whole(line), LineRead::Whole(was)) => {
                        let job = tenure_core::decode::push_line(line).unwrap();
                        let was = tenure_core::decode::push_line(was).unwrap();
                        assert!(job.id.is_some());
                        assert_eq!(job.queue, was.queue);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn blank_lines_leave_in_the_piece_in_which_they_came() {
        let mut passed = ForwardedLines::default();
        for _ in 0..100 {
            assert_eq!(passed.piece(&[b'\n'; 1_000]).len(), 1_000);
        }
        assert_eq!(passed.piece(b"nonsense\n"), b"nonsense\n");
        assert_eq!(passed.piece(b" \n"), b"\n");
        assert_eq!(passed.left, 100_002);
    }
}
