//! The arguments of the commands on jobs: push, jobs, job, result, explain, cancel, retry, delete, failures,
//! reschedule,
//! run-now.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use tenure_core::bounds::{ERROR_BYTES_MAX, LIST_DEFAULT, PRIORITY_MAX, PRIORITY_MIN};
use tenure_core::job::{JobState, OnConflict, Until, When};
use tenure_core::names::{FlowName, Group, JobId, JobRef, QueueName, ScheduleId, UniqueKey};
use tenure_core::requests::JobFilter;
use tenure_core::time::{Moment, Span};

use crate::args::flows::KinArgs;
use crate::args::page::PageArgs;
use crate::args::value::{
    End, end, label, moment, page_size, parse_name, past_moment, span, timeout, whole, word,
};

const PUSH_AFTER: &str = "\
Without --payloads each line of --lines is a job as the API takes it:
  {\"queue\":\"crawl\",\"payload\":{\"url\":\"…\"},\"priority\":5}
A line that is refused is reported on stderr with its number; the others are stored, and the exit
code is 1. Lines that carry an \"id\" can be pushed again without harm.

With --wait the result is printed instead of the id. The exit code is 1 if the job failed, was
cancelled, or did not end in time.

If another job already has the id or the unique key, nothing is pushed: stderr says so, the id of
that job is printed, and the exit code is 0. With --wait the command waits for that job.

NEED is limit:NAME[,weight=N][,cost=N], pool:NAME[#TAG][,prefer=ID][,id=ID], or JSON. The
job carries the trace in the variable TRACEPARENT to its worker.

Examples:
  tenure push mail '{\"to\":\"ann@example.com\"}'
  tenure push crawl @page.json --need limit:site:a.com --need pool:accounts#cn
  tenure push report --at '2026-12-01 09:55' --unique daily
  jq -c '.[]' jobs.json | tenure push --lines -
  tenure push crawl --lines urls.ndjson --payloads
  tenure push fetch 7 --retry 5 --timeout 2m --expires-at 2h
  tenure push resize '{\"image\":7}' --wait=30s
  tenure push publish --after fetch-41 --after key:daily-report --flow import-7
  tenure push mail --after '{\"flow\":\"import-7\"}' --on-parent-failure run";

/// Push a job, or many, and print their ids.
#[derive(Args, Debug)]
#[command(after_help = PUSH_AFTER)]
#[command(override_usage = "tenure push [OPTIONS] <QUEUE> [PAYLOAD]
       tenure push [OPTIONS] [QUEUE] --lines <FILE|->")]
#[command(group = ArgGroup::new("what").args(["payload", "lines"]))]
pub struct PushArgs {
    /// The queue; with --lines, the queue of lines that name none.
    #[arg(required_unless_present = "lines", value_parser = parse_name(QueueName::parse))]
    pub queue: Option<QueueName>,
    /// The payload as JSON; `-` reads it from stdin, `@FILE` from a file. Without it: null.
    #[arg(allow_negative_numbers = true)]
    pub payload: Option<String>,
    /// Push every line of a file, or of stdin (`-`).
    #[arg(long, value_name = "FILE|-")]
    pub lines: Option<PathBuf>,
    /// Every line is a payload for QUEUE, not a job.
    #[arg(long, requires = "lines", requires = "queue")]
    pub payloads: bool,
    /// The job's id; pushing it again returns the existing job.
    #[arg(long, conflicts_with = "lines", value_parser = parse_name(JobId::parse))]
    pub id: Option<JobId>,
    /// A key that at most one unfinished job holds.
    #[arg(long, value_name = "KEY", conflicts_with = "lines")]
    #[arg(value_parser = parse_name(UniqueKey::parse))]
    pub unique: Option<UniqueKey>,
    /// How long the key is held: until the job has ended, or has started.
    #[arg(long, requires = "unique", value_name = "start|end", default_value = "end")]
    pub until: UntilWord,
    /// If the key is held: keep that job, replace its content, or refuse.
    #[arg(long, requires = "unique", default_value = "keep")]
    #[arg(value_name = "keep|replace|reject")]
    pub on_conflict: ConflictWord,
    /// Hold the key at least this long after the push, even if the job ends or starts sooner.
    #[arg(long, requires = "unique", value_name = "D", value_parser = span)]
    pub unique_for: Option<Span>,
    /// With `replace`: run the job at most this long after the push that created it, however often it is replaced.
    #[arg(long, requires = "unique", value_name = "D", value_parser = span)]
    pub within: Option<Span>,
    /// Wait for the end of the job and print its result; without D, as long as it takes. Only options may follow a
    /// bare --wait.
    #[arg(long, value_name = "D", num_args = 0..=1, conflicts_with = "lines")]
    #[arg(value_parser = wait_span)]
    pub wait: Option<Option<Span>>,
    /// Run it at this moment: 2026-12-01T09:55:00Z, or a local time: '2026-12-01 09:55', 09:55, 'tomorrow 09:55'.
    #[arg(long, value_name = "T", conflicts_with = "delay", value_parser = moment)]
    pub at: Option<Moment>,
    /// Run it this long from now.
    #[arg(long, value_name = "D", value_parser = span)]
    pub delay: Option<Span>,
    /// Cancel it if it does not run by this moment, or within this long from now.
    #[arg(long, value_name = "T|D", value_parser = end)]
    pub expires_at: Option<End>,
    /// The jobs and flows that the jobs name.
    #[command(flatten)]
    pub kin: KinArgs,
    /// The fields of the jobs beside their payload.
    #[command(flatten)]
    pub say: SayArgs,
}

/// How long a push waits. A word after `--wait` that is no duration was meant as another argument.
fn wait_span(text: &str) -> Result<Span, String> {
    span(text).map_err(|why| format!("{why}, or put a bare --wait last"))
}

/// Fields of a job beside its payload, for one that is pushed and for those of a schedule; with --lines only beside
/// --payloads.
#[derive(Args, Debug, Default)]
pub struct SayArgs {
    /// The kind of job, by which a worker dispatches.
    #[arg(long)]
    pub kind: Option<String>,
    /// -100 to 100, higher first.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = whole(PRIORITY_MIN as i8, PRIORITY_MAX as i8))]
    pub priority: Option<i8>,
    /// The job's group: groups take turns in the queue.
    #[arg(long, value_parser = parse_name(Group::parse))]
    pub group: Option<Group>,
    /// A need of the job; replaces the queue's needs. May be given several times.
    #[arg(long = "need", value_name = "NEED")]
    pub needs: Vec<String>,
    /// A label, for people and filters; K:V is the same.
    #[arg(long = "label", value_name = "K=V", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// How often and when to retry a failed run: 5, max_attempts=5,base=1s,max=1h, delays=1s/10s/1m, or JSON.
    #[arg(long, value_name = "RETRY")]
    pub retry: Option<String>,
    /// Deadline of one run.
    #[arg(long, value_name = "D", value_parser = timeout)]
    pub timeout: Option<Span>,
    /// How long to keep the finished job; if not given, 1h, or 7d if it failed.
    #[arg(long, value_name = "D", value_parser = span)]
    pub retain: Option<Span>,
}

impl SayArgs {
    /// Whether none of these options is given.
    pub fn is_silent(&self) -> bool {
        self.kind.is_none()
            && self.priority.is_none()
            && self.group.is_none()
            && self.needs.is_empty()
            && self.labels.is_empty()
            && self.retry.is_none()
            && self.timeout.is_none()
            && self.retain.is_none()
    }
}

/// `--at`, `--delay`, or neither.
pub fn when(at: Option<Moment>, delay: Option<Span>) -> When {
    match (at, delay) {
        (Some(at), _) => When::At(at),
        (None, Some(delay)) => When::In(delay),
        (None, None) => When::Now,
    }
}

/// Until when a unique key is held.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum UntilWord {
    /// Until the first run begins.
    Start,
    /// Until the job has ended.
    End,
}

impl From<UntilWord> for Until {
    fn from(word: UntilWord) -> Until {
        match word {
            UntilWord::Start => Until::Start,
            UntilWord::End => Until::End,
        }
    }
}

/// The reaction of a push whose unique key is held.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictWord {
    /// Answer the job that is there.
    Keep,
    /// Give it the new content, unless it runs.
    Replace,
    /// Refuse.
    Reject,
}

impl From<ConflictWord> for OnConflict {
    fn from(word: ConflictWord) -> OnConflict {
        match word {
            ConflictWord::Keep => OnConflict::Keep,
            ConflictWord::Replace => OnConflict::Replace,
            ConflictWord::Reject => OnConflict::Reject,
        }
    }
}

/// Filters that select jobs.
#[derive(Args, Debug, Clone, Default)]
pub struct FilterArgs {
    /// Only of this queue.
    #[arg(long, value_parser = parse_name(QueueName::parse))]
    pub queue: Option<QueueName>,
    /// Only in one of these states (`ready,blocked`).
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',', value_parser = state)]
    pub states: Vec<JobState>,
    /// Only of this kind.
    #[arg(long)]
    pub kind: Option<String>,
    /// Only with this label; K=V is the same.
    #[arg(long, value_name = "K:V", value_parser = label)]
    pub label: Option<(String, String)>,
    /// Only those whose last error contains this text.
    #[arg(long, value_name = "TEXT", value_parser = error_part)]
    pub error: Option<String>,
    /// Only those that ended at this moment or later (RFC 3339, or a local time).
    #[arg(long, value_name = "T", value_parser = past_moment)]
    pub finished_after: Option<Moment>,
    /// Only those that ended before this moment (RFC 3339, or a local time).
    #[arg(long, value_name = "T", value_parser = past_moment)]
    pub finished_before: Option<Moment>,
    /// Only those of this flow.
    #[arg(long, value_parser = parse_name(FlowName::known))]
    pub flow: Option<FlowName>,
    /// Only those that this schedule made.
    #[arg(long, value_name = "ID", value_parser = parse_name(ScheduleId::known))]
    pub schedule: Option<ScheduleId>,
}

fn error_part(text: &str) -> Result<String, String> {
    match text.len() {
        0..=ERROR_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("an error is kept with at most {ERROR_BYTES_MAX} bytes")),
    }
}

fn state(text: &str) -> Result<JobState, String> {
    word(text, "a state", &JobState::ALL).map_err(|why| match meant(text) {
        Some(state) => format!("{why}; did you mean {state}?"),
        None => why,
    })
}

/// The state that other systems call by this name.
fn meant(text: &str) -> Option<JobState> {
    match text {
        "done" | "completed" | "success" | "successful" => Some(JobState::Succeeded),
        "pending" | "queued" | "waiting" | "available" => Some(JobState::Ready),
        "active" | "processing" | "started" | "executing" => Some(JobState::Running),
        "delayed" | "retryable" => Some(JobState::Scheduled),
        "dead" | "error" | "discarded" => Some(JobState::Failed),
        "canceled" | "revoked" => Some(JobState::Cancelled),
        _ => None,
    }
}

impl FilterArgs {
    /// As the engine takes it.
    pub fn filter(self) -> JobFilter {
        JobFilter {
            queue: self.queue,
            states: self.states,
            kind: self.kind,
            label: self.label,
            error: self.error,
            finished_after: self.finished_after,
            finished_before: self.finished_before,
            flow: self.flow,
            schedule: self.schedule,
        }
    }
}

/// List jobs, newest first.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure jobs --queue mail --state ready,blocked
  tenure --json jobs --state failed --max 1000 | jq -r '.items[].id'")]
pub struct JobsArgs {
    /// The jobs to list.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// The page of the list.
    #[command(flatten)]
    pub page: PageArgs,
    /// Include payloads and results (shown with --json).
    #[arg(long)]
    pub full: bool,
}

/// The job of `job` and `explain`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure explain job_01h…
  tenure job key:daily-report      the job that holds this unique key")]
pub struct JobArg {
    /// Its id, or `key:KEY` for the job that holds a unique key.
    #[arg(value_name = "ID", value_parser = parse_name(JobRef::parse))]
    pub job: JobRef,
}

/// Print a job's result, or wait for it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure result job_01h… --wait 5m
  tenure --json result key:daily-report | jq -r .state

The exit code is 0 if it succeeded, and 1 if it failed, was cancelled or is not finished in time.")]
pub struct ResultArgs {
    /// Its id, or `key:KEY` for the job that holds a unique key.
    #[arg(value_name = "ID", value_parser = parse_name(JobRef::parse))]
    pub job: JobRef,
    /// Wait for its end, at most this long; without it, do not wait.
    #[arg(long, value_name = "D", value_parser = span)]
    pub wait: Option<Span>,
}

/// Which jobs: by id, or all that match.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure cancel key:daily-report
  tenure retry --queue mail --state failed
  tenure retry --error refused --finished-after 2026-12-01T08:00:00Z
  tenure delete --queue crawl --state succeeded,cancelled")]
pub struct ManyArgs {
    /// Ids, or `key:KEY`.
    #[arg(value_name = "ID", value_parser = parse_name(JobRef::parse))]
    #[arg(conflicts_with_all = [
        "queue", "states", "kind", "label", "error", "finished_after", "finished_before", "flow", "schedule", "max",
    ])]
    pub ids: Vec<JobRef>,
    /// Or all that match.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// At most this many of the matching jobs; without it, all.
    #[arg(long, value_name = "N", value_parser = whole(1, u64::MAX))]
    pub max: Option<u64>,
}

/// Count failed jobs by their errors.
#[derive(Args, Debug)]
#[command(
    after_help = "Errors are grouped by their first line, without its numbers: \"http 502\" and \"http 503\" are one
failure. Only a status code at the start of the line or after \"status\" counts: \"550 unavailable\".
At most 10,000 failed jobs are read.

Examples:
  tenure failures --queue crawl
  tenure retry --queue crawl --error refused      run those of one error again"
)]
pub struct FailuresArgs {
    /// Only of this queue.
    #[arg(long, value_parser = parse_name(QueueName::parse))]
    pub queue: Option<QueueName>,
    /// Only of this kind.
    #[arg(long)]
    pub kind: Option<String>,
    /// Only jobs that ended at this moment or later (RFC 3339, or a local time).
    #[arg(long, value_name = "T", value_parser = past_moment)]
    pub finished_after: Option<Moment>,
    /// Show at most this many errors, those with the most jobs first; 1 to 1,000.
    #[arg(long, value_name = "N", default_value_t = LIST_DEFAULT, value_parser = page_size)]
    pub max: usize,
}

/// Move a waiting job to another moment.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("moment").args(["at", "delay"]).required(true))]
#[command(after_help = "Example:
  tenure reschedule key:meeting-42 --at 2026-12-01T09:55:00+08:00")]
pub struct RescheduleArgs {
    /// Its id, or `key:KEY`.
    #[arg(value_name = "ID", value_parser = parse_name(JobRef::parse))]
    pub job: JobRef,
    /// To this moment, or local time ('2026-12-01 09:55').
    #[arg(long, value_name = "T", value_parser = moment)]
    pub at: Option<Moment>,
    /// To this long from now.
    #[arg(long, value_name = "D", value_parser = span)]
    pub delay: Option<Span>,
}

/// Which jobs to make ready.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  tenure run-now key:meeting-42")]
pub struct RunNowArgs {
    /// Ids, or `key:KEY`.
    #[arg(value_name = "ID", required = true, value_parser = parse_name(JobRef::parse))]
    pub ids: Vec<JobRef>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_by_the_name_of_another_system_is_told_by_ours() {
        for (text, hint) in
            [("done", "did you mean succeeded?"), ("active", "did you mean running?")]
        {
            let why = state(text).unwrap_err();
            assert!(why.ends_with(hint), "{why}");
        }
        assert!(!state("purple").unwrap_err().contains("did you mean"));
        assert_eq!(state("ready"), Ok(JobState::Ready));
    }
}
