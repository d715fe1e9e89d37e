//! Requests about all jobs that a filter names: cancelled, retried or deleted together.
//!
//! One call changes at most `max` jobs and looks at no more than 10,000; it answers where the next call goes on.

use crate::bounded::bounded_many;
use crate::job::{JobState, Labels};
use crate::names::{FlowName, QueueName, ScheduleId};
use crate::refusal::Refusal;
use crate::sentences::ValueRefusal;
use crate::time::Moment;
use serde::{Deserialize, Serialize};

use super::pages::row_of;

/// Which jobs. Every field narrows the choice; a filter without any names every job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFilter {
    /// Jobs of this queue.
    pub queue: Option<QueueName>,
    /// In one of these states; empty = any.
    pub states: Vec<JobState>,
    /// Jobs of this kind; `""` names those without one.
    pub kind: Option<String>,
    /// With this label: key and value.
    pub label: Option<(String, String)>,
    /// Whose last error contains this text, letter by letter.
    pub error: Option<String>,
    /// That ended at this moment or later.
    pub finished_after: Option<Moment>,
    /// That ended before this moment.
    pub finished_before: Option<Moment>,
    /// Of this flow.
    pub flow: Option<FlowName>,
    /// That this schedule made.
    pub schedule: Option<ScheduleId>,
}

impl JobFilter {
    /// Whether it says nothing, so that every job would match.
    pub fn is_empty(&self) -> bool {
        *self == JobFilter::default()
    }

    /// Whether it asks for what a patch, a replace or a failed run changes without moving the job: kind, labels and
    /// the last error. An engine that has looked at such a job compares it again in the step that changes it.
    pub fn asks_for_content(&self) -> bool {
        self.kind.is_some() || self.label.is_some() || self.error.is_some()
    }

    /// Whether it asks when a job ended.
    pub fn asks_for_end(&self) -> bool {
        self.finished_after.is_some() || self.finished_before.is_some()
    }

    /// Whether a job that belongs to this flow, and that this schedule made, is meant. Neither ever changes.
    pub fn lets_origin(&self, flow: Option<&FlowName>, schedule: Option<&ScheduleId>) -> bool {
        self.flow.as_ref().is_none_or(|wanted| Some(wanted) == flow)
            && self.schedule.as_ref().is_none_or(|wanted| Some(wanted) == schedule)
    }

    /// Whether a job of this kind is meant.
    pub fn lets_kind(&self, kind: &str) -> bool {
        self.kind.as_deref().is_none_or(|wanted| wanted == kind)
    }

    /// Whether a job with these labels is meant.
    pub fn lets_labels(&self, labels: &Labels) -> bool {
        self.label.as_ref().is_none_or(|(key, value)| labels.get(key) == Some(value))
    }

    /// Whether a job with this last error is meant.
    pub fn lets_error(&self, error: Option<&str>) -> bool {
        let Some(part) = &self.error else { return true };
        error.is_some_and(|error| error.contains(part))
    }

    /// Whether a job that ended then is meant; `None` is one that has not ended.
    pub fn lets_end(&self, finished_at: Option<Moment>) -> bool {
        if !self.asks_for_end() {
            return true;
        }
        finished_at.is_some_and(|at| {
            self.finished_after.is_none_or(|from| at >= from)
                && self.finished_before.is_none_or(|before| at < before)
        })
    }
}

/// Calls off the jobs that match, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CancelJobs {
    /// Which; it must say something.
    pub filter: JobFilter,
    /// Changes at most this many, 1 to 1,000.
    pub max: usize,
    /// The `next` of the call before, to go on where that stopped.
    pub cursor: Option<String>,
}

/// Makes the jobs that match ready again, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryJobs {
    /// Which; it must say something.
    pub filter: JobFilter,
    /// Changes at most this many, 1 to 1,000.
    pub max: usize,
    /// The `next` of the call before, to go on where that stopped.
    pub cursor: Option<String>,
}

/// Forgets the jobs that match and do not run, newest first; those that wait are cancelled by it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteJobs {
    /// Which; it must say something.
    pub filter: JobFilter,
    /// Changes at most this many, 1 to 1,000.
    pub max: usize,
    /// The `next` of the call before, to go on where that stopped.
    pub cursor: Option<String>,
}

/// The change that a call on many makes to the jobs that match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkChange {
    /// Cancels those that wait, and asks those that run to stop.
    Cancel,
    /// Makes them ready again, with their attempts from 0.
    Retry,
    /// Forgets them with their ids and unique keys.
    Delete,
}

impl BulkChange {
    /// The states of the jobs that it can change. A job in another state does not match.
    pub const fn states(self) -> &'static [JobState] {
        match self {
            BulkChange::Cancel => &[
                JobState::Dependent,
                JobState::Scheduled,
                JobState::Ready,
                JobState::Blocked,
                JobState::Running,
            ],
            BulkChange::Retry => &[JobState::Failed, JobState::Cancelled],
            BulkChange::Delete => &[
                JobState::Dependent,
                JobState::Scheduled,
                JobState::Ready,
                JobState::Blocked,
                JobState::Succeeded,
                JobState::Failed,
                JobState::Cancelled,
            ],
        }
    }
    /// Leaves in `filter` the states that it can change. If none is left, no job matches: an empty
    /// list would mean any state, so the caller looks at it before it asks.
    fn narrow(self, filter: &mut JobFilter) {
        let asked = std::mem::take(&mut filter.states);
        let kept = self.states().iter().filter(|state| asked.is_empty() || asked.contains(state));
        filter.states = kept.copied().collect();
    }
}

/// A call on many jobs as an engine does it, whichever of the three it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManyJobs {
    /// What becomes of them.
    pub change: BulkChange,
    /// Which; its states are those that the change can change.
    pub filter: JobFilter,
    /// Changes at most this many.
    pub max: usize,
    /// The row number at which it goes on: it looks at those behind it; `None` for the first of all.
    pub row: Option<u64>,
    /// Oldest first, so that parents come before their children: of a flow that is cancelled or retried. Otherwise
    /// newest first: a parent cannot be deleted before its children.
    pub oldest_first: bool,
}

impl ManyJobs {
    fn new(
        change: BulkChange,
        mut filter: JobFilter,
        max: usize,
        cursor: Option<&str>,
    ) -> Result<Self, Refusal> {
        must_say_something(&filter)?;
        let row = row_of(cursor, "/cursor")?;
        change.narrow(&mut filter);
        let oldest_first = filter.flow.is_some() && change != BulkChange::Delete;
        Ok(ManyJobs { change, filter, max, row, oldest_first })
    }

    /// Whether it asks only for states that the change cannot change: then no job matches.
    pub fn matches_nothing(&self) -> bool {
        self.filter.states.is_empty()
    }
}

/// Refuses a filter that names every job: a program that forgot to set its filter must not empty the store.
///
/// # Errors
/// `invalid_field`, with the whole body as its place.
pub fn must_say_something(filter: &JobFilter) -> Result<(), Refusal> {
    match filter.is_empty() {
        true => Err(Refusal::from(ValueRefusal::FilterEmpty).at("")),
        false => Ok(()),
    }
}

macro_rules! many {
    ($($request:ident $change:ident)*) => {
        $(impl TryFrom<$request> for ManyJobs {
            type Error = Refusal;
            fn try_from(asked: $request) -> Result<ManyJobs, Refusal> {
                let $request { filter, max, cursor } = asked;
                ManyJobs::new(BulkChange::$change, filter, max, cursor.as_deref())
            }
        })*
    };
}
many! { CancelJobs Cancel  RetryJobs Retry  DeleteJobs Delete }

/// How far a call on many came.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DoneMany {
    /// Jobs that were changed.
    pub done: u64,
    /// It stopped before the last job: there may be more that match.
    pub more: bool,
    /// The cursor with which the next call goes on; `None` exactly where there is no more.
    #[serde(default)]
    pub next: Option<String>,
}

impl DoneMany {
    /// It has looked at the last job.
    pub fn all(done: u64) -> Self {
        DoneMany { done, more: false, next: None }
    }

    /// It stopped; the next call looks at rows behind this one.
    pub fn stopped(done: u64, row: u64) -> Self {
        DoneMany { done, more: true, next: Some(row.to_string()) }
    }
}

bounded_many! { CancelJobs RetryJobs DeleteJobs }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Code;

    #[test]
    fn a_bulk_change_narrows_a_filter_to_the_states_that_it_can_change() {
        use JobState::*;
        for (change, asked, left) in [
            (BulkChange::Cancel, &[][..], &[Dependent, Scheduled, Ready, Blocked, Running][..]),
            (BulkChange::Cancel, &[Failed, Ready], &[Ready]),
            (BulkChange::Cancel, &[Succeeded], &[]),
            (BulkChange::Retry, &[], &[Failed, Cancelled]),
            (BulkChange::Retry, &[Ready, Cancelled], &[Cancelled]),
            (BulkChange::Retry, &[Running], &[]),
            (BulkChange::Delete, &[Running], &[]),
            (BulkChange::Delete, &[Running, Succeeded, Ready], &[Ready, Succeeded]),
        ] {
            let mut filter = JobFilter { states: asked.to_vec(), ..JobFilter::default() };
            change.narrow(&mut filter);
            assert_eq!(filter.states, left, "{change:?} {asked:?}");
        }
    }

    #[test]
    fn a_call_without_a_filter_or_with_a_cursor_of_another_list_is_refused() {
        let call = |filter, cursor: Option<&str>| {
            let cursor = cursor.map(str::to_owned);
            ManyJobs::try_from(DeleteJobs { filter, max: 1, cursor })
        };
        let no = call(JobFilter::default(), Some("7")).unwrap_err();
        assert_eq!((no.code, no.pointer.as_deref()), (Code::InvalidField, Some("")));
        let failed = || JobFilter { states: vec![JobState::Failed], ..JobFilter::default() };
        let no = call(failed(), Some("a")).unwrap_err();
        assert_eq!((no.code, no.pointer.as_deref()), (Code::InvalidField, Some("/cursor")));
        assert_eq!(call(failed(), Some("7")).unwrap().row, Some(7));
        let running = JobFilter { states: vec![JobState::Running], ..JobFilter::default() };
        assert!(call(running, None).unwrap().matches_nothing());
    }

    #[test]
    fn every_field_of_a_filter_is_one() {
        let none = JobFilter::default;
        let moment = Some(Moment::from_us(1));
        assert!(none().is_empty());
        for filter in [
            JobFilter { queue: Some(QueueName::parse("q").unwrap()), ..none() },
            JobFilter { states: vec![JobState::Ready], ..none() },
            JobFilter { kind: Some(String::new()), ..none() },
            JobFilter { label: Some(("a".to_owned(), String::new())), ..none() },
            JobFilter { error: Some(String::new()), ..none() },
            JobFilter { finished_after: moment, ..none() },
            JobFilter { finished_before: moment, ..none() },
            JobFilter { flow: Some(FlowName::parse("f").unwrap()), ..none() },
            JobFilter { schedule: Some(ScheduleId::parse("s").unwrap()), ..none() },
        ] {
            assert!(must_say_something(&filter).is_ok(), "{filter:?}");
        }
    }

    #[test]
    fn a_label_is_compared_as_a_whole() {
        let labels: Labels = [("a", "b:c"), ("a:b", "c"), ("site", "s")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        for (key, value, lets) in [
            ("a", "b:c", true),
            ("a:b", "c", true),
            ("a", "b", false),
            ("site", "s", true),
            ("site", "", false),
            ("none", "s", false),
        ] {
            let label = Some((key.to_owned(), value.to_owned()));
            let filter = JobFilter { label, ..JobFilter::default() };
            assert_eq!(filter.lets_labels(&labels), lets, "{key} {value}");
        }
    }

    #[test]
    fn windows_of_ends_join() {
        let at = |us| Some(Moment::from_us(us));
        let window = |finished_after, finished_before| JobFilter {
            finished_after,
            finished_before,
            ..JobFilter::default()
        };
        for (ended, first, second) in
            [(at(9), false, false), (at(10), true, false), (at(20), false, true)]
        {
            assert_eq!(window(at(10), at(20)).lets_end(ended), first, "{ended:?}");
            assert_eq!(window(at(20), at(30)).lets_end(ended), second, "{ended:?}");
        }
        assert!(!window(at(0), None).lets_end(None), "it has not ended");
        assert!(window(None, None).lets_end(None));
    }
}
