//! `tenure push --lines`: every line of a file or of stdin is a job, or a payload.
//!
//! Lines go out in batches as they come: a batch ends when it is full, or when nothing more can be read at once, so
//! that a slow pipe is not kept waiting. A bad line is reported with its number and stops no other. Ids are made here,
//! so that a batch whose answer was lost can be sent again.

use std::collections::{BTreeSet, HashSet};
use std::io::{BufRead, BufReader};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tenure::Client;
use tenure_core::bounds::{BODY_BYTES_MAX, ITEMS_MAX};
use tenure_core::count::{self, counted};
use tenure_core::decode;
use tenure_core::job::NewJob;
use tenure_core::names::{JobId, QueueName};
use tenure_core::refusal::{Problem, Refusal};
use tenure_core::requests::{Push, PushAnswer, Pushed, PushedId};
use tokio::sync::mpsc;

use crate::cmd::no_worker;
use crate::exit::{Failure, NO};
use crate::input::Input;
use crate::output::Output;

/// The meaning of a line.
pub enum Lines {
    /// A job; the queue is that of lines that name none.
    Jobs(Option<QueueName>),
    /// A payload, for a job that is otherwise this one.
    Payloads(Box<NewJob>),
}

/// A line, by its number from 1.
type Numbered<T> = (usize, T);
type ReadLine = Numbered<Result<Vec<u8>, Refusal>>;

/// Bytes asked of a file at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Pushes all lines of a file.
pub async fn run(client: &Client, out: Output, file: &Path, each: Lines) -> Result<(), Failure> {
    let input = Input::open(file)?;
    let bar = bar(input.bytes);
    let source = Source(input);
    let (send, mut batches) = mpsc::channel::<Result<Batch, Failure>>(1);
    // Reading blocks, and stdin may never end: a thread of its own, which ends with the process.
    std::thread::spawn(move || source.read(&send));
    let mut answers = Answers::new(out, bar);
    let mut ended = Ok(());
    while let Some(batch) = batches.recv().await {
        let step = match batch {
            Ok(batch) => push(client, &each, batch, &mut answers).await,
            Err(failure) => Err(failure),
        };
        if step.is_err() {
            ended = step;
            break;
        }
    }
    answers.end(ended.is_ok())?;
    ended.map_err(|failure| Failure {
        refusal: failure.refusal.filter(|_| answers.written == 0),
        ..failure
    })?;
    if let Some(there) = there_already(answers.good, answers.kept, answers.replaced) {
        crate::output::tell(&there);
    }
    for queue in &answers.without_workers {
        no_worker::tell(client, queue).await;
    }
    match answers.bad {
        0 => Ok(()),
        bad => Err(Failure::new(NO, not_all(bad, answers.good))
            .hint("correct the lines above and push them again")),
    }
}

fn not_all(bad: u64, good: u64) -> String {
    format!(
        "{} {} not stored, {good} {}",
        counted(bad, "line", "lines"),
        count::of(bad, "was", "were"),
        count::of(good, "was", "were")
    )
}

/// How many lines made no job of their own; `None` if all did.
fn there_already(good: u64, kept: u64, replaced: u64) -> Option<String> {
    let lines = count::of(good, "line", "lines");
    let mut parts = Vec::new();
    if kept > 0 {
        let what = count::of(kept, "names an existing job", "name existing jobs");
        parts.push(format!(
            "{kept} of {good} {lines} {what}: nothing was pushed for {}",
            count::of(kept, "it", "them")
        ));
    }
    if replaced > 0 {
        let what = count::of(
            replaced,
            "replaced the content of a waiting job",
            "replaced the content of waiting jobs",
        );
        parts.push(format!("{replaced} of {good} {lines} {what}: no second job was pushed"));
    }
    Some(parts.join("; ")).filter(|text| !text.is_empty())
}

/// Lines that were read together.
struct Batch {
    lines: Vec<ReadLine>,
    /// Bytes of the file that they took.
    bytes: u64,
}

/// Sends the lines of a file or of stdin in batches.
struct Source(Input);

impl Source {
    /// Reads to the end, or until the receiver is gone.
    fn read(self, send: &mpsc::Sender<Result<Batch, Failure>>) {
        let Input { name, read, bytes } = self.0;
        let mut reader = BufReader::with_capacity(CHUNK_BYTES, read);
        let mut lines = decode::Lines::default();
        let mut batch = Batch { lines: Vec::new(), bytes: 0 };
        let mut size = 0;
        loop {
            let mut chunk = match reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let failure = Failure::file(format!("cannot read {name}"), &error);
                    let _ = send.blocking_send(Ok(batch));
                    let _ = send.blocking_send(Err(failure));
                    return;
                }
            };
            let taken = chunk.len();
            batch.bytes += taken as u64;
            while let Some((number, line)) = lines.next(&mut chunk) {
                let line = whole(line);
                let length = line.as_ref().map_or(0, Vec::len);
                if size + length > BODY_BYTES_MAX || batch.lines.len() == ITEMS_MAX {
                    let full = std::mem::replace(&mut batch, Batch { lines: vec![], bytes: 0 });
                    size = 0;
                    if send.blocking_send(Ok(full)).is_err() {
                        return;
                    }
                }
                size += length;
                batch.lines.push((number, line));
            }
            reader.consume(taken);
            if taken == 0 {
                if let Some((number, line)) = lines.finish() {
                    batch.lines.push((number, whole(line)));
                }
                let _ = send.blocking_send(Ok(batch));
                return;
            }
            // A pipe that gives nothing more now may give nothing for long.
            let pause = bytes.is_none() && !batch.lines.is_empty();
            if pause {
                let part = std::mem::replace(&mut batch, Batch { lines: vec![], bytes: 0 });
                size = 0;
                if send.blocking_send(Ok(part)).is_err() {
                    return;
                }
            }
        }
    }
}

fn whole(line: decode::LineRead<'_>) -> Result<Vec<u8>, Refusal> {
    match line {
        decode::LineRead::Whole(bytes) => Ok(bytes.to_vec()),
        decode::LineRead::TooLong => Err(decode::line_too_long()),
    }
}

fn job_of(each: &Lines, line: &[u8]) -> Result<NewJob, Refusal> {
    match each {
        Lines::Jobs(Some(queue)) => decode::push_line_to(line, queue),
        Lines::Jobs(None) => decode::push_line(line),
        Lines::Payloads(template) => {
            let payload = decode::payload_line(line)?;
            Ok(NewJob { payload, ..(**template).clone() })
        }
    }
}

async fn push(
    client: &Client,
    each: &Lines,
    batch: Batch,
    answers: &mut Answers,
) -> Result<(), Failure> {
    let mut replies: Vec<Numbered<Result<PushedId, Refusal>>> = Vec::new();
    let mut jobs = Vec::with_capacity(batch.lines.len());
    let mut made = HashSet::new();
    for (number, line) in batch.lines {
        match line.and_then(|line| job_of(each, &line)) {
            Ok(mut job) => {
                if job.id.is_none() {
                    let id = tenure::ids::job_id();
                    made.insert(id.clone());
                    job.id = Some(id);
                }
                jobs.push((number, job));
            }
            Err(no) => replies.push((number, Err(no))),
        }
    }
    let ended = store_all(client, jobs, &mut replies, &mut answers.without_workers).await;
    replies.sort_by_key(|(number, _)| *number);
    let stored = replies.iter().filter_map(|(_, answer)| answer.as_ref().ok());
    // An id that was made here exists already if its batch was sent twice: that is no other's job.
    for id in stored.filter(|id| id.duplicate && !made.contains(&id.id)) {
        *(if id.replaced { &mut answers.replaced } else { &mut answers.kept }) += 1;
    }
    answers.tell(replies)?;
    answers.bar.inc(batch.bytes);
    ended
}

/// Stores jobs whole batches at a time. A push is all or nothing, so refused jobs are taken out and the rest is sent
/// again; batches shrink while there are refusals, so that many bad lines cost no more than twice their number of
/// calls.
async fn store_all(
    client: &Client,
    mut jobs: Vec<Numbered<NewJob>>,
    replies: &mut Vec<Numbered<Result<PushedId, Refusal>>>,
    without_workers: &mut BTreeSet<QueueName>,
) -> Result<(), Failure> {
    let mut most = ITEMS_MAX;
    while let Some(first) = jobs.first().map(|(number, _)| *number) {
        let take = decode::stored_together(jobs.iter().take(most).map(|(_, job)| job));
        let some = jobs[..take].iter().map(|(_, job)| job.clone()).collect();
        match client.run(Push { jobs: some, answer: PushAnswer::Ids }).await {
            Ok(Pushed::Ids(ids)) if ids.len() == take => {
                for ((number, job), id) in jobs.drain(..take).zip(ids) {
                    if id.workers == Some(0) {
                        without_workers.insert(job.queue);
                    }
                    replies.push((number, Ok(id)));
                }
                most = (most * 2).min(ITEMS_MAX);
            }
            Ok(_) => return Err(Failure::bug("a push was answered by another number of jobs")),
            Err(error) => {
                let failure = Failure::from(error);
                let Some(no) = failure.refusal.clone().filter(|_| failure.code == NO) else {
                    crate::output::tell(&format!(
                        "line {first} and the lines after it were not stored"
                    ));
                    return Err(failure);
                };
                let named = no.index.filter(|index| *index < take);
                if take == 1 || named.is_some() {
                    let at = if take == 1 { 0 } else { named.unwrap_or(0) };
                    let (number, _) = jobs.remove(at);
                    replies.push((number, Err(*no)));
                    most = if at > 0 { at } else { (take / 2).max(1) };
                } else {
                    most = (take / 2).max(1);
                }
            }
        }
    }
    Ok(())
}

/// The answer to one line, as the API writes it.
#[derive(Serialize)]
struct StoredLine<'a> {
    line: usize,
    id: &'a JobId,
    duplicate: bool,
}

/// The answers, written while the lines go out.
struct Answers {
    out: Output,
    bar: ProgressBar,
    written: u64,
    good: u64,
    bad: u64,
    /// Of the good ones, those that met a job which stays as it is.
    kept: u64,
    /// Of the good ones, those that gave a job their content.
    replaced: u64,
    without_workers: BTreeSet<QueueName>,
}

impl Answers {
    fn new(out: Output, bar: ProgressBar) -> Self {
        Answers {
            out,
            bar,
            written: 0,
            good: 0,
            bad: 0,
            kept: 0,
            replaced: 0,
            without_workers: BTreeSet::new(),
        }
    }

    /// Ends the document. An error before the first answer is the answer.
    fn end(&self, well: bool) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        match (self.out.json, self.written) {
            (false, _) => Ok(()),
            (true, 0) if well => self.text("[]\n"),
            (true, 0) => Ok(()),
            (true, _) => self.text("]\n"),
        }
    }

    /// Writes the answers to some lines.
    fn tell(&mut self, replies: Vec<Numbered<Result<PushedId, Refusal>>>) -> Result<(), Failure> {
        let mut text = String::new();
        for (line, answer) in replies {
            let answer = match answer {
                Ok(PushedId { id, duplicate, .. }) => {
                    self.good += 1;
                    if self.out.json {
                        super::job::json(&StoredLine { line, id: &id, duplicate })
                    } else {
                        id.to_string()
                    }
                }
                Err(no) => {
                    self.bad += 1;
                    let why = format!("line {line}: {}", no.detail);
                    self.bar.suspend(|| crate::output::tell(&why));
                    if !self.out.json {
                        continue;
                    }
                    let no = no.without_item().on_line(line);
                    super::job::json(&Problem::of(&no))
                }
            };
            let before = match (self.out.json, self.written) {
                (false, _) => "",
                (true, 0) => "[",
                (true, _) => ",\n",
            };
            self.written += 1;
            text.push_str(before);
            text.push_str(&answer);
            if !self.out.json {
                text.push('\n');
            }
        }
        self.text(&text)
    }

    fn text(&self, text: &str) -> Result<(), Failure> {
        self.bar.suspend(|| self.out.text(text))
    }
}

/// A bar on stderr if that is a terminal, otherwise nothing.
fn bar(bytes: Option<u64>) -> ProgressBar {
    let (bar, form) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:30} {percent}% {bytes_per_sec} {eta}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} {bytes_per_sec}"),
    };
    match ProgressStyle::with_template(form) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests;
