//! The arguments of `schedule`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use tenure_core::bounds::{CATCH_UP_MAX, PREVIEW_DEFAULT, PREVIEW_MAX};
use tenure_core::names::{JobId, Owner, QueueName, ScheduleId};
use tenure_core::schedule::TimingSpec;
use tenure_core::time::{Moment, Span};

use crate::args::jobs::SayArgs;
use crate::args::page::PageArgs;
use crate::args::settings::{Format, LaterArgs};
use crate::args::value::{every, moment, parse_name, span, whole};

/// Show and set schedules, which push jobs by cron or at intervals.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  tenure schedule                    all schedules
  tenure schedule news-42            one schedule, and its next occurrences
  tenure schedule set news-42 --cron '0 9 * * 1-5' --queue news '{\"source\":42}'
  tenure schedule set feed-7 --every 15m --queue news --overlap queue
  tenure schedule sync sources sources.csv
  tenure schedule pause news-42 --for 2h
  tenure schedule run-now news-42
  tenure schedule preview --cron '0 9 * * 1-5' --zone Europe/Berlin
  tenure schedule -- set             the schedule that is called \"set\"")]
pub struct ScheduleArgs {
    /// The action; without one the schedule is shown, or all are listed.
    #[command(subcommand)]
    pub action: Option<ScheduleAction>,
    /// Show this one; without it, list all.
    #[arg(value_parser = parse_name(ScheduleId::known))]
    pub id: Option<ScheduleId>,
    /// List only those of this owner.
    #[arg(long, value_name = "O", conflicts_with = "id", value_parser = parse_name(Owner::known))]
    pub owner: Option<Owner>,
    /// The page of the list.
    #[command(flatten)]
    pub page: PageArgs,
}

/// Actions on schedules and timings.
#[derive(Subcommand, Debug)]
pub enum ScheduleAction {
    /// Create a schedule, or replace all settings of an existing one.
    Set(Box<ScheduleSetArgs>),
    /// Replace the schedules of an owner with those of a file.
    Sync(ScheduleSyncArgs),
    /// Pause a schedule; its occurrences during the pause are left out, and counted nowhere.
    Pause {
        /// The schedule's id.
        #[arg(value_parser = parse_name(ScheduleId::known))]
        id: ScheduleId,
        /// How long; without it until it is resumed.
        #[command(flatten)]
        later: LaterArgs,
    },
    /// End a pause.
    Resume {
        /// The schedule's id.
        #[arg(value_parser = parse_name(ScheduleId::known))]
        id: ScheduleId,
    },
    /// Push a job of a schedule at once, paused or not, and print its id.
    #[command(after_help = "\
If a job of the schedule is unfinished, that job is made ready, and its id is printed. A second job
is pushed only if the overlap of the schedule is allow.")]
    RunNow {
        /// The schedule's id.
        #[arg(value_parser = parse_name(ScheduleId::known))]
        id: ScheduleId,
        /// The job's id; repeating the command with it returns the same job.
        #[arg(long = "id", value_name = "ID", value_parser = parse_name(JobId::parse))]
        job: Option<JobId>,
    },
    /// Delete a schedule; the jobs that it made go on.
    Delete {
        /// The schedule's id.
        #[arg(value_parser = parse_name(ScheduleId::known))]
        id: ScheduleId,
    },
    /// Show the next occurrences of a timing, without a call to a server.
    Preview(PreviewArgs),
}

const SET_AFTER: &str = "\
Replaces all settings of the schedule: an option that is left out returns to its default. Repeating the command changes nothing, except with --starts-at now. A new timing counts from now. If needs, retry, timeout or retain are left out, each job takes those of its queue.";

/// All settings of a schedule.
#[derive(Args, Debug)]
#[command(after_help = format!("{SET_AFTER}\n\n{TIMING_AFTER}"))]
#[command(
    override_usage = "tenure schedule set [OPTIONS] --queue <QUEUE> --cron <CRON> <ID> [JSON]
       tenure schedule set [OPTIONS] --queue <QUEUE> --every <D> <ID> [JSON]"
)]
pub struct ScheduleSetArgs {
    /// The schedule's id; a new one makes a schedule.
    #[arg(value_parser = parse_name(ScheduleId::parse))]
    pub id: ScheduleId,
    /// The payload of its jobs: JSON; `-` reads it from stdin, `@FILE` from a file. Without it: null.
    #[arg(allow_negative_numbers = true)]
    pub payload: Option<String>,
    /// The queue of its jobs.
    #[arg(long, value_parser = parse_name(QueueName::parse))]
    pub queue: QueueName,
    /// Its moments: a cron expression or an interval.
    #[command(flatten)]
    pub timing: TimingArgs,
    /// No occurrence after this moment (RFC 3339).
    #[arg(long, value_name = "T", value_parser = moment)]
    pub ends_at: Option<Moment>,
    /// Delay each occurrence by up to this long, at most 1d; the delay of one occurrence never changes.
    #[arg(long, value_name = "D", value_parser = span)]
    pub jitter: Option<Span>,
    /// If a job of the schedule is unfinished: skip the occurrence (the default), queue it until that job has
    /// ended, or allow both jobs.
    #[arg(long, value_name = "skip|queue|allow")]
    pub overlap: Option<String>,
    /// Occurrences that fire after an outage missed them: none, except one that is at most 60s late; the last one
    /// (the default); or all.
    #[arg(long, value_name = "none|last|all")]
    pub catch_up: Option<String>,
    /// With --catch-up all: at most this many of the newest, 1 to 1,000; 100 if not given.
    #[arg(long, value_name = "N", value_parser = whole(1, CATCH_UP_MAX as u32))]
    pub catch_up_max: Option<u32>,
    /// The owner of the schedule: the owner's next sync deletes the schedule if its file does not list it.
    #[arg(long, value_name = "O", value_parser = parse_name(Owner::parse))]
    pub owner: Option<Owner>,
    /// Fields of its jobs beside their payload.
    #[command(flatten)]
    pub say: SayArgs,
    /// Cancel a job that has not started this long after its occurrence.
    #[arg(long, value_name = "D", value_parser = span)]
    pub expires_in: Option<Span>,
}

/// A whole set of schedules.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads a JSON array, NDJSON or CSV, by the file's suffix or --format; stdin is JSON or NDJSON unless --format says CSV.

JSON: each item is a schedule as the API takes it, with its id:
  {\"id\":\"news-42\",\"every\":\"15m\",\"job\":{\"queue\":\"news\",\"payload\":{\"n\":42}}}
CSV: the columns id, cron, every, zone and queue are settings, and an empty cell sets nothing. All other columns are the payload, each value a string.

A quote that is never closed, a row with another number of columns, and a cell of several lines (unless --multiline is given) are refused, and nothing is changed.

Schedules of the owner that are not in the file are deleted; the jobs that they made go on. A schedule that did not change is not touched. Pauses, counters and occurrences that a job moved stay, unless the timing changes.

Example:
  tenure schedule sync sources sources.csv")]
pub struct ScheduleSyncArgs {
    /// The owner of the set.
    #[arg(value_name = "OWNER", value_parser = parse_name(Owner::parse))]
    pub owner: Owner,
    /// The file, or `-` for stdin.
    #[arg(value_name = "FILE|-")]
    pub file: PathBuf,
    /// The format of the file.
    #[arg(long, value_name = "json|ndjson|csv")]
    pub format: Option<Format>,
    /// Accept CSV cells of several lines; without this a quote that is closed on a later line is refused.
    #[arg(long)]
    pub multiline: bool,
    /// Accept an empty set, and one that deletes more than half.
    #[arg(long)]
    pub force: bool,
    /// The version of this set; a number below the last one is refused (an older list that arrives late).
    #[arg(long = "set-version", visible_alias = "version", value_name = "N")]
    pub version: Option<u64>,
}

const TIMING_AFTER: &str = "\
CRON has five fields (minute, hour, day, month, weekday) or six (second first), or is one of
@hourly, @daily, @weekly, @monthly and @yearly. ZONE is an IANA name such as Europe/Berlin;
without it UTC.";

/// The next moments of a timing.
#[derive(Args, Debug)]
#[command(after_help = TIMING_AFTER)]
pub struct PreviewArgs {
    /// The id of the schedule, which decides the phase of an interval.
    #[arg(value_parser = parse_name(ScheduleId::parse))]
    pub id: Option<ScheduleId>,
    /// The timing, as the options say it.
    #[command(flatten)]
    pub timing: TimingArgs,
    /// How many occurrences, 1 to 100.
    #[arg(short = 'n', value_name = "N", default_value_t = PREVIEW_DEFAULT, value_parser = whole(1, PREVIEW_MAX))]
    pub count: usize,
}

/// When a schedule fires.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("rhythm").args(["cron", "every"]).required(true))]
pub struct TimingArgs {
    /// A cron expression, such as '0 9 * * 1-5'.
    #[arg(long, value_name = "CRON", allow_hyphen_values = true)]
    pub cron: Option<String>,
    /// The time zone of the expression.
    #[arg(long, value_name = "ZONE", conflicts_with = "every")]
    pub zone: Option<String>,
    /// An interval, in whole seconds.
    #[arg(long, value_name = "D", value_parser = every)]
    pub every: Option<Span>,
    /// No occurrence before this moment (RFC 3339, or now). An interval counts from it; without it, from a phase
    /// that the schedule's id decides.
    #[arg(long, value_name = "T|now", value_parser = start)]
    pub starts_at: Option<Start>,
}

impl TimingArgs {
    /// The timing, where `now` is the time. Without end and jitter, which only a schedule has.
    pub fn spec(&self, now: Moment) -> TimingSpec {
        let zone =
            self.cron.as_ref().map(|_| self.zone.clone().unwrap_or_else(|| "UTC".to_owned()));
        TimingSpec {
            cron: self.cron.clone(),
            zone,
            every: self.every,
            starts_at: self.starts_at.map(|start| start.moment(now)),
            ends_at: None,
            jitter: Span::ZERO,
        }
    }
}

/// The start of a timing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// When the command runs.
    Now,
    /// A moment that the caller names.
    At(Moment),
}

impl Start {
    /// The moment that it is.
    pub fn moment(self, now: Moment) -> Moment {
        match self {
            Start::Now => now,
            Start::At(moment) => moment,
        }
    }
}

fn start(text: &str) -> Result<Start, String> {
    match text {
        "now" => Ok(Start::Now),
        _ => moment(text).map(Start::At),
    }
}
