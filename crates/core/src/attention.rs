//! Attention: finds work that nothing will move, and work that goes on worse than it should, and words it for an
//! operator.
//!
//! Pure: it reads replies of the public API. `tenure status`, `tenure top`, `tenure doctor` and the dashboard show the
//! same sentences. A fact that no reply contains, such as the time at which a limit became full, is left out unless the
//! caller has watched it ([`AttentionReplies::since`]).
//!
//! Waiting alone is no finding: a full limit with a line that moves is a limit at work. Failures alone are only noted:
//! where many foreign sites are fetched, some requests always fail.

mod watched;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use self::watched::is_unattended;
pub use self::watched::{WatchedSubjects, is_empty, is_full};
use crate::bounds::{ATTENTION_AFTER_US, ATTENTION_FAILED_PERCENT, HOLDERS_SHOWN};
use crate::count::{counted, grouped, of, rough};
use crate::job::JobState;
use crate::names::{JobId, LimitName, PoolName, QueueName, ScheduleId};
use crate::requests::{Failures, Stats};
use crate::schedule::{LastEnded, ScheduleView};
use crate::settings::{LimitView, PoolView, QueueView};
use crate::shell::{command, quoted};
use crate::time::{Moment, Span};
use crate::words;

/// Jobs that failed longer ago than this are not counted.
pub const FAILED_WITHIN: Span = Span::from_s(3_600);

/// Replies of one namespace, requested at about the same time. A list may be its first page: things on later pages are
/// then not looked at.
#[derive(Clone, Copy)]
pub struct AttentionReplies<'a> {
    /// When the replies were requested, by the caller's clock.
    pub now: Moment,
    pub stats: &'a Stats,
    pub queues: &'a [QueueView],
    pub limits: &'a [LimitView],
    pub pools: &'a [PoolView],
    pub schedules: &'a [ScheduleView],
    /// The failures of the last hour ([`FAILED_WITHIN`]).
    pub failures: &'a Failures,
    /// Since when a subject has been as it is (a queue without a worker, a limit full, a pool with nothing free), if
    /// the caller has watched it for that long; see [`WatchedSubjects`] and [`never_watched`].
    pub since: &'a dyn Fn(&Subject) -> Option<Moment>,
}

/// For a first look: nothing is known beside the replies.
pub fn never_watched(_: &Subject) -> Option<Moment> {
    None
}

words! {
    /// Severity of a finding, in ascending order.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AttentionSeverity {
        /// Worth knowing, but needs no action: all is well.
        Note = "note",
        /// Work goes on, but not as it should.
        Look = "look",
        /// Work waits, and nothing will move it until somebody acts.
        Stuck = "stuck",
    }
}

impl AttentionSeverity {
    /// True if somebody has to act, so not all is well.
    pub const fn needs_somebody(self) -> bool {
        !matches!(self, AttentionSeverity::Note)
    }
}

/// The thing that a finding is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Subject {
    Queue(QueueName),
    Limit(LimitName),
    Pool(PoolName),
    Schedule(ScheduleId),
    /// All schedules of the namespace.
    Schedules,
}

impl Subject {
    /// The word that programs read.
    pub const fn kind(&self) -> &'static str {
        match self {
            Subject::Queue(_) => "queue",
            Subject::Limit(_) => "limit",
            Subject::Pool(_) => "pool",
            Subject::Schedule(_) => "schedule",
            Subject::Schedules => "schedules",
        }
    }

    /// Its name; `None` for [`Subject::Schedules`].
    pub fn name(&self) -> Option<&str> {
        match self {
            Subject::Queue(name) => Some(name.as_str()),
            Subject::Limit(name) => Some(name.as_str()),
            Subject::Pool(name) => Some(name.as_str()),
            Subject::Schedule(id) => Some(id.as_str()),
            Subject::Schedules => None,
        }
    }
}

impl fmt::Display for Subject {
    /// The beginning of a sentence: `queue 'crawl'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} '{name}'", self.kind()),
            None => f.write_str("the schedules"),
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            kind: &'static str,
            name: Option<&'a str>,
        }
        Shown { kind: self.kind(), name: self.name() }.serialize(serializer)
    }
}

/// The cause of a finding, with the values of its sentence: for programs that show it in another language.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttentionCause {
    /// Jobs wait in a queue, none runs, and no worker asked for them within the last minute.
    NoWorker {
        /// Jobs that are ready or blocked.
        waiting: u64,
        /// How long no worker has asked, if the caller watched it.
        unattended: Option<Span>,
        /// How long the oldest ready job has waited.
        oldest: Option<Span>,
    },
    /// Jobs wait in a queue that is paused.
    Paused {
        /// Jobs that are ready or blocked.
        waiting: u64,
        /// End of the pause; `None`: until it is resumed.
        until: Option<Moment>,
    },
    /// A job has been ready for 5 minutes or more, though there are workers.
    Slow {
        /// Jobs that are ready.
        ready: u64,
        /// How long the oldest one has waited.
        oldest: Span,
    },
    /// A queue takes no more jobs.
    QueueFull {
        /// Its `max_waiting`, in jobs.
        most: u32,
    },
    /// Jobs of a queue failed for good within the last hour.
    Failed {
        /// Jobs that failed so.
        failed: u64,
        /// The beginning of their most frequent error, and the number of jobs with it.
        most: (String, u64),
    },
    /// Something waits for a limit with the concurrency 0.
    Closed {
        /// Jobs and callers in its line.
        waiting: u64,
    },
    /// A limit has been full for 5 minutes or more.
    LimitFull {
        /// Jobs and callers in its line.
        waiting: u64,
        /// At least this long.
        full: Span,
    },
    /// The gauge of a limit cannot be read.
    Unread {
        /// Time since the last failed attempt.
        ago: Span,
        /// The error, without the secret parts of the address.
        error: String,
    },
    /// Something waits for a pool without resources.
    NoResource {
        /// Jobs and callers in its lines.
        waiting: u64,
    },
    /// Something waits for a pool whose resources are all banned.
    AllBanned {
        /// Jobs and callers in its lines.
        waiting: u64,
        /// All of its resources.
        banned: u64,
    },
    /// Something waits for a pool that has nothing free, and no holder could give anything back; or nothing has been
    /// free for 5 minutes or more.
    NothingFree {
        /// Jobs and callers in its lines.
        waiting: u64,
        /// Resources that are held.
        leased: u64,
        /// Resources that rest until a moment.
        cooling: u64,
        /// Resources that are banned.
        banned: u64,
        /// How long nothing has been free, if the caller watched it.
        empty: Option<Span>,
    },
    /// A moment of a schedule has been due for 5 minutes or more.
    Overdue {
        /// Schedules with such a moment.
        due: u64,
        /// How long the oldest one has been due.
        oldest: Span,
    },
    /// The last job of a schedule failed.
    LastFailed {
        /// The job that ended last.
        job: JobId,
        /// Time since it ended.
        ago: Span,
    },
}

/// One thing that needs attention.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    pub severity: AttentionSeverity,
    pub subject: Subject,
    /// The problem, as a sentence without a capital and a full stop. A moment in it is in UTC.
    pub sentence: String,
    /// The remedy, as the end of a sentence; it names a command.
    pub fix: String,
    /// The same as the sentence, for programs with words of their own.
    #[serde(skip)]
    pub cause: AttentionCause,
}

/// All findings, the most urgent first, then by subject.
pub fn findings(looked: &AttentionReplies<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    looked.queues.iter().for_each(|queue| of_queue(looked, queue, &mut all));
    of_failures(looked, &mut all);
    looked.limits.iter().for_each(|limit| of_limit(looked, limit, &mut all));
    looked.pools.iter().for_each(|pool| of_pool(looked, pool, &mut all));
    of_schedules(looked, &mut all);
    // A stable sort keeps findings about one subject together, in the order of this file.
    all.sort_by(|a, b| (b.severity, &a.subject).cmp(&(a.severity, &b.subject)));
    all
}

fn of_queue(looked: &AttentionReplies<'_>, queue: &QueueView, all: &mut Vec<Finding>) {
    let counts = &queue.counts;
    let waiting = counts.ready + counts.blocked;
    let subject = Subject::Queue(queue.name.clone());
    let oldest = queue.oldest_ready_at.map(|at| looked.now.since(at));
    let cause = match oldest {
        _ if waiting == 0 => None,
        _ if queue.paused => Some(AttentionCause::Paused { waiting, until: queue.paused_until }),
        oldest if is_unattended(queue) => {
            Some(AttentionCause::NoWorker { waiting, unattended: looked.lasting(&subject), oldest })
        }
        Some(oldest) if is_long(oldest) => {
            Some(AttentionCause::Slow { ready: counts.ready, oldest })
        }
        _ => None,
    };
    all.extend(cause.map(|cause| Finding::new(subject.clone(), cause)));
    let held = waiting + counts.scheduled + counts.dependent;
    let most = queue.settings.max_waiting.filter(|most| held >= u64::from(*most));
    all.extend(most.map(|most| Finding::new(subject, AttentionCause::QueueFull { most })));
}

fn of_failures(looked: &AttentionReplies<'_>, all: &mut Vec<Finding>) {
    let mut queues: BTreeMap<&QueueName, (u64, (String, u64))> = BTreeMap::new();
    for group in &looked.failures.items {
        let (failed, most) = queues.entry(&group.queue).or_default();
        *failed += group.count;
        if group.count > most.1 {
            *most = (group.error.clone(), group.count);
        }
    }
    all.extend(queues.into_iter().map(|(queue, (failed, most))| {
        let cause = AttentionCause::Failed { failed, most };
        let finding = Finding::new(Subject::Queue(queue.clone()), cause);
        // A queue that forgets succeeded jobs within the hour does not show the share of failures.
        let view = looked.queues.iter().find(|view| view.name == *queue);
        let kept =
            view.is_none_or(|view| view.settings.retain.is_none_or(|for_| for_ >= FAILED_WITHIN));
        let states = looked.stats.queues.get(queue);
        let succeeded = states.and_then(|states| states.get(&JobState::Succeeded));
        finding.noted_if(!kept || are_few(failed, succeeded.copied().unwrap_or_default()))
    }));
}

/// True if this share of failures is usual: some requests to foreign sites always fail.
fn are_few(failed: u64, succeeded: u64) -> bool {
    failed.saturating_mul(100) <= (failed + succeeded).saturating_mul(ATTENTION_FAILED_PERCENT)
}

fn of_limit(looked: &AttentionReplies<'_>, limit: &LimitView, all: &mut Vec<Finding>) {
    let subject = Subject::Limit(limit.name.clone());
    let waiting = limit.waiting;
    let cause = match limit.settings.concurrency {
        _ if waiting == 0 => None,
        Some(0) => Some(AttentionCause::Closed { waiting }),
        Some(_) if is_full(limit) => {
            let full = looked.lasting(&subject).max(stands_still(limit, looked.now));
            full.filter(|full| is_long(*full))
                .map(|full| AttentionCause::LimitFull { waiting, full })
        }
        _ => None,
    };
    all.extend(cause.map(|cause| Finding::new(subject.clone(), cause)));
    let reading = limit.gauge.as_ref().and_then(|gauge| gauge.reading.as_ref());
    if let Some(failed_at) = reading.and_then(|reading| reading.failed_at) {
        let error = reading.and_then(|reading| reading.error.clone()).unwrap_or_default();
        let ago = looked.now.since(failed_at);
        all.push(Finding::new(subject, AttentionCause::Unread { ago, error }));
    }
}

/// How long a full limit has granted nothing, if its holders show that: it has been full since the last grant. Permits
/// that rest or are used outside come and go without a grant.
fn stands_still(limit: &LimitView, now: Moment) -> Option<Span> {
    let is_whole = limit.holders.len() < HOLDERS_SHOWN && limit.resting == 0 && limit.external == 0;
    let last = limit.holders.iter().map(|holder| holder.since).max();
    last.filter(|_| is_whole).map(|last| now.since(last))
}

fn of_pool(looked: &AttentionReplies<'_>, pool: &PoolView, all: &mut Vec<Finding>) {
    let PoolView { leased, cooling, banned, waiting, .. } = *pool;
    if waiting == 0 || !is_empty(pool) {
        return;
    }
    let subject = Subject::Pool(pool.name.clone());
    let empty = looked.lasting(&subject);
    let cause = match (leased, cooling, banned) {
        (0, 0, 0) => AttentionCause::NoResource { waiting },
        (0, 0, banned) => AttentionCause::AllBanned { waiting, banned },
        _ if leased == 0 || empty.is_some_and(is_long) => {
            AttentionCause::NothingFree { waiting, leased, cooling, banned, empty }
        }
        _ => return,
    };
    all.push(Finding::new(subject, cause));
}

fn of_schedules(looked: &AttentionReplies<'_>, all: &mut Vec<Finding>) {
    let stats = &looked.stats.schedules;
    let oldest = stats.oldest_due_at.map(|at| looked.now.since(at));
    if let Some(oldest) = oldest.filter(|oldest| is_long(*oldest)) {
        let cause = AttentionCause::Overdue { due: stats.due, oldest };
        all.push(Finding::new(Subject::Schedules, cause));
    }
    let ended = || looked.schedules.iter().filter_map(|one| Some((one, one.last_ended.as_ref()?)));
    let has_failed = |ended: &LastEnded| ended.state == JobState::Failed;
    let failed = ended().filter(|(_, ended)| has_failed(ended)).count() as u64;
    let few = are_few(failed, ended().count() as u64 - failed);
    for (schedule, ended) in ended().filter(|(_, ended)| has_failed(ended)) {
        let ago = looked.now.since(ended.finished_at);
        let cause = AttentionCause::LastFailed { job: ended.job.clone(), ago };
        all.push(Finding::new(Subject::Schedule(schedule.id.clone()), cause).noted_if(few));
    }
}

fn is_long(span: Span) -> bool {
    span.us() >= ATTENTION_AFTER_US
}

impl AttentionReplies<'_> {
    /// How long a subject has been as it is, if the caller watched it.
    fn lasting(&self, subject: &Subject) -> Option<Span> {
        let lasting = (self.since)(subject).map(|since| self.now.since(since));
        // A first look shows no duration.
        lasting.filter(|lasting| *lasting > Span::ZERO)
    }
}

impl Finding {
    fn new(subject: Subject, cause: AttentionCause) -> Self {
        let (severity, sentence, fix) =
            (cause.severity(), cause.sentence(&subject), cause.fix(&subject));
        Finding { severity, subject, sentence, fix, cause }
    }

    fn noted_if(mut self, so: bool) -> Self {
        if so {
            self.severity = AttentionSeverity::Note;
        }
        self
    }
}

impl AttentionCause {
    fn severity(&self) -> AttentionSeverity {
        match self {
            // Somebody paused it on purpose: an alarm would stay red for as long as the pause lasts.
            AttentionCause::Paused { .. } => AttentionSeverity::Note,
            AttentionCause::NoWorker { .. }
            | AttentionCause::Closed { .. }
            | AttentionCause::NoResource { .. }
            | AttentionCause::AllBanned { .. } => AttentionSeverity::Stuck,
            _ => AttentionSeverity::Look,
        }
    }

    fn sentence(&self, subject: &Subject) -> String {
        match self {
            AttentionCause::NoWorker { waiting, unattended, oldest } => {
                let span = unattended.map(|span| format!(" since {}", rough(span)));
                let oldest = oldest.map(|span| format!(", the oldest ready for {}", rough(span)));
                let (span, oldest) = (span.unwrap_or_default(), oldest.unwrap_or_default());
                format!("{subject} has no worker{span}: {}{oldest}", wait(*waiting))
            }
            AttentionCause::Paused { waiting, until } => {
                let until = until.map_or("it is resumed".to_owned(), |until| until.to_string());
                format!("{subject} is paused until {until}: {}", wait(*waiting))
            }
            AttentionCause::Slow { ready, oldest } => {
                let (are, oldest) = (of(*ready, "is", "are"), rough(*oldest));
                format!(
                    "the oldest ready job of {subject} has waited for {oldest}: {} {are} ready",
                    grouped(*ready)
                )
            }
            AttentionCause::QueueFull { most } => {
                format!("{subject} is full ({}): pushes are refused", grouped(u64::from(*most)))
            }
            AttentionCause::Failed { failed, most: (error, count) } => {
                let jobs = of(*failed, "job", "jobs");
                let first =
                    format!("{subject}: {} {jobs} failed in the last hour", grouped(*failed));
                match (error.as_str(), count == failed) {
                    ("", _) => first,
                    (error, true) => format!("{first} with \"{error}\""),
                    (error, false) => format!("{first}, {} with \"{error}\"", grouped(*count)),
                }
            }
            AttentionCause::Closed { waiting } => {
                format!("{subject} is closed (its concurrency is 0): {}", wait(*waiting))
            }
            AttentionCause::LimitFull { waiting, full } => {
                format!("{subject} has been full for {}: {}", rough(*full), wait(*waiting))
            }
            AttentionCause::Unread { ago, error } => {
                format!("the gauge of {subject} could not be read {} ago: {error}", rough(*ago))
            }
            AttentionCause::NoResource { waiting } => {
                format!("{subject} has no resources: {}", wait(*waiting))
            }
            AttentionCause::AllBanned { waiting, banned } => {
                let all = match banned {
                    1 => "the only resource".to_owned(),
                    banned => format!("all {} resources", grouped(*banned)),
                };
                let are = of(*banned, "is", "are");
                format!("{all} of {subject} {are} banned: {}", wait(*waiting))
            }
            AttentionCause::NothingFree { waiting, leased, cooling, banned, empty } => {
                let parts = [(leased, "in use"), (cooling, "cooling"), (banned, "banned")];
                let parts = parts.into_iter().filter(|(n, _)| **n > 0);
                let parts: Vec<_> =
                    parts.map(|(n, what)| format!("{} {what}", grouped(*n))).collect();
                let has = match empty {
                    Some(empty) => format!("has had nothing free for {}", rough(*empty)),
                    None => "has nothing free".to_owned(),
                };
                format!("{subject} {has} ({}): {}", parts.join(", "), wait(*waiting))
            }
            AttentionCause::Overdue { due, oldest } => {
                let moments = counted(*due, "schedule has a moment", "schedules have moments");
                format!("{moments} that did not fire, the oldest due for {}", rough(*oldest))
            }
            AttentionCause::LastFailed { job, ago } => {
                format!("the last job of {subject} failed {} ago: '{job}'", rough(*ago))
            }
        }
    }

    fn fix(&self, subject: &Subject) -> String {
        let name = subject.name().unwrap_or_default();
        match self {
            // No form of `tenure work` takes a name that begins with `-`.
            AttentionCause::NoWorker { .. } if name.starts_with('-') => "start a worker".to_owned(),
            AttentionCause::NoWorker { .. } => {
                format!("start a worker: {}", command("work", name, "-- CMD"))
            }
            AttentionCause::Paused { .. } => {
                format!("resume it: {}", command("queue resume", name, ""))
            }
            AttentionCause::Slow { .. } => {
                "start more workers, or see what they do: tenure workers".to_owned()
            }
            AttentionCause::QueueFull { .. } => {
                let set = command("queue set", name, "--max-waiting N");
                format!("start more workers, or raise it: {set}")
            }
            AttentionCause::Failed { .. } => {
                let between = if name.starts_with('-') { "=" } else { " " };
                format!("see the errors: tenure failures --queue{between}{}", quoted(name))
            }
            AttentionCause::Closed { .. } => {
                format!("open it: {}", command("limit set", name, "--concurrency 1"))
            }
            AttentionCause::LimitFull { .. } | AttentionCause::Unread { .. } => {
                format!("look at it: {}", command("limit", name, ""))
            }
            AttentionCause::NoResource { .. } => {
                format!("add some: {}", command("pool add", name, "ID"))
            }
            AttentionCause::AllBanned { .. } => {
                format!("restore what is well again: {}", command("pool restore", name, "ID"))
            }
            AttentionCause::NothingFree { .. } => {
                format!("look at it: {}", command("pool", name, ""))
            }
            AttentionCause::Overdue { .. } => "see which: tenure schedule".to_owned(),
            AttentionCause::LastFailed { job, .. } => {
                format!("look at it: {}", command("job", job.as_str(), ""))
            }
        }
    }
}

/// The end of a sentence: how many wait.
fn wait(waiting: u64) -> String {
    format!("{} {}", grouped(waiting), of(waiting, "waits", "wait"))
}

#[cfg(test)]
mod tests;
