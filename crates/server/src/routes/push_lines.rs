//! `POST /v1/jobs` with any number of jobs, each on a line of its own.
//!
//! Lines go to the engine in groups, as many as have come; each line is answered by a line of its
//! own, once its job is stored. A bad line is answered in its place and stops no other.
//!
//! Reading does not wait until the caller reads the answers, up to a bound, since a simple client
//! sends everything before it reads anything.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use tenure_core::bounds::{BODY_BYTES_MAX, ITEMS_MAX};
use tenure_core::decode::{self, LineRead, Lines};
use tenure_core::job::NewJob;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Push, PushAnswer, Pushed, PushedId};
use tenure_core::trace::TraceParent;
use tenure_engine_api::{CallError, EngineExt, Fault};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::body::{BodyError, Piece, Reading};
use crate::budget::HeldBytes;
use crate::caller::GuardedEngine;
use crate::config::Config;
use crate::out::{Out, Tied};
use crate::{problem, trace};

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// Groups of unread answers in memory: about 40 MB at most.
const ANSWERS_MAX: usize = 512;

/// Begins to answer; a task reads, calls the engine and writes for as long as the answer is wanted.
pub(crate) fn answer(
    engine: Arc<GuardedEngine>,
    namespace: Namespace,
    reading: Reading,
    trace: Option<TraceParent>,
    held: HeldBytes,
    config: Config,
) -> Response<Out> {
    let (answers, lines) = mpsc::channel(ANSWERS_MAX);
    let group = Vec::new();
    let mut push =
        PushLines { engine, namespace, trace, config, answers, held, group, bytes: 0, lines: 0 };
    let task = tokio::spawn(async move {
        // `None`: nobody wants the answers any more.
        let _ = push.run(reading).await;
    });
    let mut response = Response::new(Out::lines(lines, Tied(task.abort_handle())));
    response.headers_mut().insert(CONTENT_TYPE, NDJSON);
    response
}

/// A line that was read.
type NumberedJob = (usize, Result<NewJob, Refusal>);

struct PushLines {
    engine: Arc<GuardedEngine>,
    namespace: Namespace,
    /// The trace of the request, for jobs that name none.
    trace: Option<TraceParent>,
    config: Config,
    answers: mpsc::Sender<Bytes>,
    /// The group's part of the budget.
    held: HeldBytes,
    /// Lines that were read and not yet stored.
    group: Vec<NumberedJob>,
    /// Bytes of the group.
    bytes: usize,
    /// The number of the last line that was not empty.
    lines: usize,
}

#[derive(Serialize)]
struct StoredLine<'a> {
    line: usize,
    #[serde(flatten)]
    pushed: &'a PushedId,
}

impl PushLines {
    async fn run(&mut self, mut reading: Reading) -> Option<()> {
        let mut lines = Lines::default();
        loop {
            let piece = match reading.next_now().await {
                Some(piece) => piece,
                None => {
                    // No more input is here: the first lines must not wait for more.
                    self.send().await?;
                    reading.next(Instant::now() + self.config.body_pause_max).await
                }
            };
            match piece {
                Ok(Piece::Data(data)) => {
                    if self.held.grow(data.len()).is_err() {
                        // The group returns its part of the budget; if other calls have all of it,
                        // the push ends here.
                        self.send().await?;
                        if let Err(no) = self.held.grow(data.len()) {
                            self.group.push((self.lines + 1, Err(no)));
                            return self.send().await;
                        }
                    }
                    let mut chunk = &data[..];
                    while let Some((number, line)) = lines.next(&mut chunk) {
                        self.take(number, line);
                        if self.group.len() >= ITEMS_MAX || self.bytes >= BODY_BYTES_MAX {
                            self.send().await?;
                        }
                    }
                }
                Ok(Piece::End) => break,
                Err(BodyError::Gone) => return None,
                Err(BodyError::Refused(no)) => {
                    // The beginning of a line is no line if its sender fell silent.
                    self.group.push((self.lines + 1, Err(no)));
                    return self.send().await;
                }
            }
        }
        if let Some((number, line)) = lines.finish() {
            self.take(number, line);
        }
        self.send().await
    }

    fn take(&mut self, number: usize, line: LineRead<'_>) {
        self.lines = number;
        let job = match line {
            LineRead::Whole(line) => {
                self.bytes += line.len();
                decode::push_line(line).map(|mut job| {
                    trace::give(self.trace.as_ref(), &mut job);
                    job
                })
            }
            LineRead::TooLong => Err(decode::line_too_long()),
        };
        self.group.push((number, job));
    }

    /// Stores the group, and sends its answers in one piece.
    async fn send(&mut self) -> Option<()> {
        if self.group.is_empty() {
            return Some(());
        }
        self.bytes = 0;
        let group = std::mem::take(&mut self.group);
        let mut answers: Vec<(usize, Vec<u8>)> = Vec::with_capacity(group.len());
        let mut jobs = VecDeque::with_capacity(group.len());
        for (number, job) in group {
            match job {
                Ok(job) => jobs.push_back((number, job)),
                Err(no) => answers.push((number, problem_line(number, no))),
            }
        }
        self.store(jobs, &mut answers).await;
        answers.sort_by_key(|(number, _)| *number);
        self.held.force(0);
        let mut text = Vec::with_capacity(answers.iter().map(|(_, line)| line.len() + 1).sum());
        for (_, line) in answers {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
        // These jobs are stored, so their answers must go out: they may go above the budget, and
        // then no more lines are read.
        let mut held = self.held.another();
        held.force(text.len());
        self.answers.send(held.with(Bytes::from(text))).await.ok()
    }

    /// Stores jobs in as few calls as possible. A call stores all or none, so a call that is
    /// refused for one item is repeated for the items before it, and then for those behind.
    async fn store(
        &self,
        mut jobs: VecDeque<(usize, NewJob)>,
        answers: &mut Vec<(usize, Vec<u8>)>,
    ) {
        // How many to try at once; fewer after a refusal that names no item.
        let mut most = ITEMS_MAX;
        while !jobs.is_empty() {
            let tried = decode::stored_together(jobs.iter().take(most).map(|(_, job)| job));
            let items = jobs.iter().take(tried).map(|(_, job)| job.clone()).collect();
            let push = Push { jobs: items, answer: PushAnswer::Ids };
            match self.engine.run(&self.namespace, push).await {
                Ok(Pushed::Ids(ids)) if ids.len() == tried => {
                    for ((number, _), pushed) in jobs.drain(..tried).zip(&ids) {
                        let stored = StoredLine { line: number, pushed };
                        answers.push((number, serde_json::to_vec(&stored).unwrap_or_default()));
                    }
                    most = ITEMS_MAX;
                }
                Ok(_) => {
                    let fault = Fault::Broken("a push was not answered as asked".to_owned());
                    refuse(jobs.drain(..tried), &problem::of_error(fault.into()), answers);
                }
                Err(CallError::Refused(no)) if tried > 1 => {
                    // The items before the refused one may go; alone, it is refused for itself.
                    let named = no.index.filter(|index| *index < tried);
                    most = match named {
                        Some(0) => 1,
                        Some(index) => index,
                        None => tried / 2,
                    };
                }
                Err(error) => {
                    refuse(jobs.drain(..tried), &problem::of_error(error), answers);
                    most = ITEMS_MAX;
                }
            }
        }
    }
}

/// Answers all lines with one refusal.
fn refuse(
    jobs: impl Iterator<Item = (usize, NewJob)>,
    no: &Refusal,
    answers: &mut Vec<(usize, Vec<u8>)>,
) {
    answers.extend(jobs.map(|(number, _)| (number, problem_line(number, no.clone()))));
}

/// The problem of a line. Its pointer counts from the line.
fn problem_line(number: usize, no: Refusal) -> Vec<u8> {
    problem::json(&no.without_item().on_line(number))
}
