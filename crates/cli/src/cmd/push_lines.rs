//! `tenure push --lines`: every line of a file or of stdin is a job, or a payload.
//!
//! Lines go out in batches as they come: a batch ends when it is full, or when nothing more can be
//! read at once, so that a slow pipe is not kept waiting. A bad line is told with its number and
//! stops no other. Ids are made here, so that a batch whose answer was lost can be sent again.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tenure_core::bounds::{BODY_BYTES_MAX, ITEMS_MAX, PAYLOAD_BYTES_MAX};
use tenure_core::decode;
use tenure_core::job::NewJob;
use tenure_core::names::{JobId, QueueName};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Push, PushAnswer, Pushed, PushedId};
use tokio::sync::mpsc;

use crate::exit::{Failure, NO};
use crate::output::{Output, Problem};
use crate::said;
use crate::store::Store;

/// What a line is.
pub enum Lines {
    /// A job; the queue is that of lines that name none.
    Jobs(Option<QueueName>),
    /// A payload, for a job that is otherwise this one.
    Payloads(Box<NewJob>),
}

/// A line, by its number from 1.
type Numbered<T> = (usize, T);
type Line = Numbered<Result<Vec<u8>, Refusal>>;

/// Bytes asked of a file at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Pushes them all.
pub async fn run(store: &Store, out: Output, file: &Path, each: Lines) -> Result<(), Failure> {
    let source = Source::open(file)?;
    let bar = bar(source.bytes);
    let (send, mut batches) = mpsc::channel::<Result<Batch, Failure>>(1);
    // Reading blocks, and stdin may never end: a thread of its own, which ends with the process.
    std::thread::spawn(move || source.read(&send));
    let mut answers = Answers::new(out, bar);
    let mut ended = Ok(());
    while let Some(batch) = batches.recv().await {
        let step = match batch {
            Ok(batch) => push(store, &each, batch, &mut answers).await,
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
    for queue in &answers.without_workers {
        super::push::tell_no_worker(store, queue).await;
    }
    match answers.bad {
        0 => Ok(()),
        bad => Err(Failure::new(NO, format!("{bad} lines were not stored, {} were", answers.good))
            .hint("mend the lines told above and push these again")),
    }
}

/// Lines that were read together.
struct Batch {
    lines: Vec<Line>,
    /// Bytes of the file that they took.
    bytes: u64,
}

struct Source {
    name: String,
    read: Box<dyn Read + Send>,
    /// The size of a file; unknown of a pipe.
    bytes: Option<u64>,
}

impl Source {
    fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let read = Box::new(std::io::stdin());
            return Ok(Source { name: "stdin".to_owned(), read, bytes: None });
        }
        let name = format!("'{}'", path.display());
        let failed = |error| Failure::file(format!("cannot read {name}"), &error);
        let file = File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if meta.is_dir() {
            return Err(Failure::usage(format!("{name} is a folder")));
        }
        let bytes = Some(meta.len()).filter(|_| meta.is_file());
        Ok(Source { name, read: Box::new(file), bytes })
    }

    /// Reads to the end, or until nobody wants more.
    fn read(self, send: &mpsc::Sender<Result<Batch, Failure>>) {
        let mut reader = BufReader::with_capacity(CHUNK_BYTES, self.read);
        let mut lines = decode::Lines::default();
        let mut batch = Batch { lines: Vec::new(), bytes: 0 };
        let mut size = 0;
        loop {
            let mut chunk = match reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let failure = Failure::file(format!("cannot read {}", self.name), &error);
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
            let pause = self.bytes.is_none() && !batch.lines.is_empty();
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

fn whole(line: decode::Line<'_>) -> Result<Vec<u8>, Refusal> {
    match line {
        decode::Line::Whole(bytes) => Ok(bytes.to_vec()),
        decode::Line::TooLong => Err(decode::line_too_long()),
    }
}

fn job_of(each: &Lines, line: &[u8]) -> Result<NewJob, Refusal> {
    let mut job = match each {
        Lines::Jobs(Some(queue)) => decode::push_line_to(line, queue)?,
        Lines::Jobs(None) => decode::push_line(line)?,
        Lines::Payloads(template) => {
            let payload = said::checked_json("the line", line).map_err(|failure| {
                let detail = failure.sentence.unwrap_or_default();
                Refusal::new(Code::BadJson, detail, failure.hint.unwrap_or_default())
            })?;
            if payload.text().len() > PAYLOAD_BYTES_MAX {
                let bytes = payload.text().len();
                return Err(Refusal::new(
                    Code::OutOfBounds,
                    format!("the payload has {bytes} bytes, and {PAYLOAD_BYTES_MAX} is the most"),
                    "keep large content elsewhere, and send where it is",
                ));
            }
            NewJob { payload, ..(**template).clone() }
        }
    };
    job.id.get_or_insert_with(tenure::ids::job_id);
    Ok(job)
}

async fn push(
    store: &Store,
    each: &Lines,
    batch: Batch,
    answers: &mut Answers,
) -> Result<(), Failure> {
    let mut told: Vec<Numbered<Result<PushedId, Refusal>>> = Vec::new();
    let mut jobs = Vec::with_capacity(batch.lines.len());
    for (number, line) in batch.lines {
        match line.and_then(|line| job_of(each, &line)) {
            Ok(job) => jobs.push((number, job)),
            Err(no) => told.push((number, Err(no))),
        }
    }
    let ended = store_all(store, jobs, &mut told, &mut answers.without_workers).await;
    told.sort_by_key(|(number, _)| *number);
    answers.tell(told)?;
    answers.bar.inc(batch.bytes);
    ended
}

/// Stores jobs whole batches at a time. A push is all or nothing, so what a refusal names is taken
/// out and the rest is sent again; batches shrink while there are refusals, so that many bad lines
/// cost no more than twice their number of calls.
async fn store_all(
    store: &Store,
    mut jobs: Vec<Numbered<NewJob>>,
    told: &mut Vec<Numbered<Result<PushedId, Refusal>>>,
    without_workers: &mut BTreeSet<QueueName>,
) -> Result<(), Failure> {
    let mut most = ITEMS_MAX;
    while let Some(first) = jobs.first().map(|(number, _)| *number) {
        let take = most.min(jobs.len());
        let some = jobs[..take].iter().map(|(_, job)| job.clone()).collect();
        match store.run(Push { jobs: some, answer: PushAnswer::Ids }).await {
            Ok(Pushed::Ids(ids)) if ids.len() == take => {
                for ((number, job), id) in jobs.drain(..take).zip(ids) {
                    if id.workers == Some(0) {
                        without_workers.insert(job.queue);
                    }
                    told.push((number, Ok(id)));
                }
                most = (most * 2).min(ITEMS_MAX);
            }
            Ok(_) => return Err(Failure::bug("a push was answered by another number of jobs")),
            Err(error) => {
                let failure = Failure::from(error);
                let Some(no) = failure.refusal.clone().filter(|_| failure.code == NO) else {
                    crate::output::tell(&format!("line {first} and what follows were not stored"));
                    return Err(failure);
                };
                let named = no.index.filter(|index| *index < take);
                if take == 1 || named.is_some() {
                    let at = if take == 1 { 0 } else { named.unwrap_or(0) };
                    let (number, _) = jobs.remove(at);
                    told.push((number, Err(*no)));
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
struct Stored<'a> {
    line: usize,
    id: &'a JobId,
    duplicate: bool,
}

/// What is written while the lines go out.
struct Answers {
    out: Output,
    bar: ProgressBar,
    written: u64,
    good: u64,
    bad: u64,
    without_workers: BTreeSet<QueueName>,
}

impl Answers {
    fn new(out: Output, bar: ProgressBar) -> Self {
        Answers { out, bar, written: 0, good: 0, bad: 0, without_workers: BTreeSet::new() }
    }

    /// Ends the document. If all went wrong before the first answer, what went wrong is the answer.
    fn end(&self, well: bool) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        match (self.out.json, self.written) {
            (false, _) => Ok(()),
            (true, 0) if well => self.text("[]\n"),
            (true, 0) => Ok(()),
            (true, _) => self.text("]\n"),
        }
    }

    /// Writes what became of some lines.
    fn tell(&mut self, told: Vec<Numbered<Result<PushedId, Refusal>>>) -> Result<(), Failure> {
        let mut text = String::new();
        for (line, answer) in told {
            let answer = match answer {
                Ok(PushedId { id, duplicate, .. }) => {
                    self.good += 1;
                    match self.out.json {
                        true => super::job::json(&Stored { line, id: &id, duplicate }),
                        false => id.to_string(),
                    }
                }
                Err(no) => {
                    self.bad += 1;
                    let why = format!("line {line}: {}", no.detail);
                    self.bar.suspend(|| crate::output::tell(&why));
                    if !self.out.json {
                        continue;
                    }
                    let no = Refusal { line: Some(line), index: None, ..no };
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

/// A bar on stderr where that is a terminal, else nothing.
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
mod tests {
    use super::*;
    use crate::fake::{Fake, Said};
    use tenure_core::requests::{Reply, Request};

    /// Stores all but those of the queue `bad`, as an engine does: all of a push, or none.
    fn picky() -> std::sync::Arc<Fake> {
        Fake::new(|request| {
            let Request::Push(push) = request else { panic!("only pushes") };
            let bad = push.jobs.iter().position(|job| job.queue.as_str() == "bad");
            Said::Answer(match bad {
                Some(index) => {
                    Err(Refusal::new(Code::UnknownPool, "no such pool", "").item(index).into())
                }
                None => {
                    let one = |job: &NewJob| PushedId {
                        id: job.id.clone().unwrap(),
                        duplicate: false,
                        replaced: false,
                        workers: None,
                    };
                    Ok(Reply::Push(Pushed::Ids(push.jobs.iter().map(one).collect())))
                }
            })
        })
    }

    async fn stored(bad: impl Fn(usize) -> bool, count: usize) -> (Vec<usize>, Vec<usize>, usize) {
        let engine = picky();
        let store = Store::on(engine.clone());
        let queue = |at| QueueName::parse(if bad(at) { "bad" } else { "good" }).unwrap();
        let jobs = (0..count).map(|at| {
            let id = Some(tenure::ids::job_id());
            (at, NewJob { id, ..NewJob::new(queue(at)) })
        });
        let mut told = Vec::new();
        store_all(&store, jobs.collect(), &mut told, &mut BTreeSet::new()).await.unwrap();
        told.sort_by_key(|(number, _)| *number);
        assert_eq!(told.len(), count, "every line is answered once");
        let (good, refused): (Vec<_>, Vec<_>) = told.into_iter().partition(|(_, a)| a.is_ok());
        let numbers = |some: Vec<Numbered<_>>| some.into_iter().map(|(number, _)| number).collect();
        (numbers(good), numbers(refused), engine.asked().len())
    }

    #[tokio::test]
    async fn refused_lines_stop_no_other_and_cost_few_calls() {
        let (good, refused, calls) = stored(|_| false, 1_000).await;
        assert_eq!((good.len(), refused.len(), calls), (1_000, 0, 1));
        let (good, refused, calls) = stored(|at| at == 700, 1_000).await;
        assert_eq!((good.len(), refused, calls), (999, vec![700], 3));
        let (good, refused, calls) = stored(|at| at % 2 == 0, 1_000).await;
        assert_eq!((good.len(), refused.len()), (500, 500));
        assert!(calls <= 2_000, "{calls}");
        let (good, refused, calls) = stored(|_| true, 1_000).await;
        assert_eq!((good.len(), refused.len()), (0, 1_000));
        assert!(calls <= 1_000, "{calls}");
    }

    #[test]
    fn lines_are_jobs_or_payloads() {
        let queue = |text| QueueName::parse(text).unwrap();
        let named = Lines::Jobs(Some(queue("q")));
        assert_eq!(job_of(&named, b"{\"payload\":1}").unwrap().queue, queue("q"));
        assert_eq!(job_of(&named, b"{\"queue\":\"x\"}").unwrap().queue, queue("x"));
        assert_eq!(job_of(&Lines::Jobs(None), b"{}").unwrap().queue, queue("default"));
        let template = NewJob { priority: 5, ..NewJob::new(queue("q")) };
        let payloads = Lines::Payloads(Box::new(template));
        let job = job_of(&payloads, b"{\"queue\":\"x\"}").unwrap();
        assert_eq!((job.queue, job.priority), (queue("q"), 5));
        assert_eq!(job.payload.text(), "{\"queue\":\"x\"}");
        assert!(job.id.is_some());
        for (each, line) in [(&named, "{"), (&named, "[]"), (&payloads, "x"), (&named, "{\"x\":1}")]
        {
            assert!(job_of(each, line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn a_slow_pipe_is_not_kept_waiting_and_a_long_line_is_told() {
        let text = format!("{{}}\n\n{}\n{{\"a\":1}}", "x".repeat(600_000));
        let (send, mut batches) = mpsc::channel(100);
        let read = Box::new(std::io::Cursor::new(text.into_bytes()));
        Source { name: "x".into(), read, bytes: None }.read(&send);
        drop(send);
        let mut seen = Vec::new();
        while let Some(batch) = batches.blocking_recv() {
            seen.extend(batch.unwrap().lines.into_iter().map(|(n, line)| (n, line.is_ok())));
        }
        assert_eq!(seen, [(1, true), (3, false), (4, true)]);
    }
}
