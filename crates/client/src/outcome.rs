//! Outcomes that a holder reports: how the lease ends, and what it learned about its resources and limits.
//!
//! Plain values; the engine checks them.

use std::fmt::Display;

use serde::Serialize;
use tenure_core::job::NewJob;
use tenure_core::lease::{Ending, Later, LimitVerdict, ResourceVerdict, SettleItem, Verdict};
use tenure_core::names::{LimitName, PoolName, ResourceId};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};

/// How a lease ends, and what else its holder reports.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tenure::Verdict;
/// use tenure::{Later, NewJob, SettleOutcome};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let minute = Duration::from_secs(60);
/// let done = SettleOutcome::succeeded_with(&"a title").then(NewJob::new("index".parse()?));
/// let again = SettleOutcome::failed("http 500");
/// let later = SettleOutcome::failed_retry_in("http 503", minute).pause("api".parse()?, minute);
/// let never = SettleOutcome::failed_for_good("http 404");
/// let not_yet = SettleOutcome::snoozed(minute).reset_attempts().progress(7.into());
/// let tomorrow = SettleOutcome::snoozed_until(SystemTime::now() + 24 * 60 * minute);
/// let seldom = SettleOutcome::succeeded().next_in(60 * minute).spent("tokens".parse()?, 812);
/// let tired = Verdict::Cool(Later::For(minute.into()));
/// let back = SettleOutcome::released().resource("accounts".parse()?, "ann".parse()?, tired);
/// # Ok(()) }
/// ```
///
/// A handler may return one, or `()` for success, or a `Result` of either: an `Err` is a failed
/// attempt with its text as the error.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SettleOutcome {
    /// The end itself: succeeded, failed, snoozed or released.
    pub ending: Ending,
    /// The last progress report, at most 4 KiB of JSON: the job shows it, and its next run finds it in its lease.
    /// `None` keeps the previous report.
    pub progress: Option<Json>,
    /// The time from this outcome to the next occurrence of the job's schedule: whole seconds. `None` moves no
    /// occurrence.
    pub next_in: Option<Span>,
    /// Verdicts on resources held; the verdict is `ok` for every other one.
    pub resources: Vec<ResourceVerdict>,
    /// Pauses and corrected costs of limits held.
    pub limits: Vec<LimitVerdict>,
    /// Follow-up jobs, stored in the same step as the settle; at most 100.
    pub push: Vec<NewJob>,
}

impl From<Ending> for SettleOutcome {
    fn from(ending: Ending) -> Self {
        SettleItem::new(String::new(), ending).into()
    }
}

impl From<SettleItem> for SettleOutcome {
    fn from(item: SettleItem) -> Self {
        let SettleItem { lease: _, ending, progress, next_in, resources, limits, push } = item;
        SettleOutcome { ending, progress, next_in, resources, limits, push }
    }
}

impl SettleOutcome {
    /// Done, without a result.
    pub fn succeeded() -> Self {
        Ending::Succeeded { result: None }.into()
    }
    /// Done, with a result: at most 256 KiB of JSON. A result that cannot be written as JSON makes
    /// it a failed attempt whose error says so: a job that looks done must not have lost its result.
    pub fn succeeded_with(result: &impl Serialize) -> Self {
        match Json::of(result) {
            Ok(result) => Ending::Succeeded { result: Some(result) }.into(),
            Err(why) => SettleOutcome::failed(format_args!(
                "the run succeeded, but its result is lost: {why}"
            )),
        }
    }
    /// A failed attempt; the job's retry settings apply. Of a long error the last 8 KiB are kept.
    pub fn failed(error: impl Display) -> Self {
        Ending::Failed { error: error.to_string(), retry_in: None, last: false }.into()
    }
    /// A failed attempt that is retried after `wait`, whatever the job's retry settings are.
    pub fn failed_retry_in(error: impl Display, wait: impl Into<Span>) -> Self {
        Ending::Failed { error: error.to_string(), retry_in: Some(wait.into()), last: false }.into()
    }
    /// Failed, and never retried.
    pub fn failed_for_good(error: impl Display) -> Self {
        Ending::Failed { error: error.to_string(), retry_in: None, last: true }.into()
    }
    /// Not yet: run again after `wait`, at least 100 ms. Costs no attempt.
    pub fn snoozed(wait: impl Into<Span>) -> Self {
        Ending::Snoozed { later: Later::For(wait.into()), reset: false }.into()
    }
    /// Not yet: run again at a moment, at least 100 ms ahead. Costs no attempt.
    pub fn snoozed_until(at: impl Into<Moment>) -> Self {
        Ending::Snoozed { later: Later::Until(at.into()), reset: false }.into()
    }
    /// Given back untouched: the job is ready again.
    pub fn released() -> Self {
        Ending::Released.into()
    }

    /// Resets the attempts of a snoozed job to 0. Has no effect on any other outcome.
    ///
    /// A job that lives on by snoozing, such as one that follows a feed for a year, would otherwise fail for good with
    /// its twentieth failure, however many runs went well in between.
    pub fn reset_attempts(mut self) -> Self {
        if let Ending::Snoozed { reset, .. } = &mut self.ending {
            *reset = true;
        }
        self
    }
    /// Reports progress with the outcome: at most 4 KiB of JSON; `null` means no report. It wins over reports that the
    /// handler made before ([`Job::set_progress`](crate::Job::set_progress)).
    pub fn progress(mut self, progress: Json) -> Self {
        self.progress = Some(progress);
        self
    }
    /// Moves the next occurrence of the job's schedule to this long after the outcome, in whole seconds: a source that
    /// never changes is visited less. Without effect for a job without a schedule, or if the timing of its schedule has
    /// changed since.
    pub fn next_in(mut self, wait: impl Into<Span>) -> Self {
        self.next_in = Some(wait.into());
        self
    }
    /// Gives a verdict on a resource that was held.
    pub fn resource(mut self, pool: PoolName, id: ResourceId, verdict: Verdict) -> Self {
        self.resources.push(ResourceVerdict { pool, id, verdict });
        self
    }
    /// Pauses this limit for this long: nobody is granted it.
    pub fn pause(mut self, limit: LimitName, rest: impl Into<Span>) -> Self {
        let pause = Some(rest.into());
        self.limits.push(LimitVerdict { limit, pause, spent: None });
        self
    }
    /// The tokens that were really spent of a rate, instead of the cost that the grant booked.
    pub fn spent(mut self, limit: LimitName, tokens: u32) -> Self {
        self.limits.push(LimitVerdict { limit, pause: None, spent: Some(tokens) });
        self
    }
    /// Stores a follow-up job in the same step as the settle, both or neither.
    pub fn then(mut self, job: NewJob) -> Self {
        self.push.push(job);
        self
    }

    /// An item of a settle call, for this lease.
    pub fn of(self, lease: String) -> SettleItem {
        SettleItem {
            lease,
            ending: self.ending,
            progress: self.progress,
            next_in: self.next_in,
            resources: self.resources,
            limits: self.limits,
            push: self.push,
        }
    }
}

impl From<()> for SettleOutcome {
    fn from((): ()) -> Self {
        SettleOutcome::succeeded()
    }
}

impl<T: Into<SettleOutcome>, E: Display> From<Result<T, E>> for SettleOutcome {
    fn from(done: Result<T, E>) -> Self {
        match done {
            Ok(outcome) => outcome.into(),
            Err(error) => SettleOutcome::failed(error),
        }
    }
}
