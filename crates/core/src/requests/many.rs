//! Requests about all jobs that match a filter: they are cancelled, retried or deleted together.
//!
//! One call changes at most `max` jobs and scans no more than 10,000; its answer says where the next call continues.

use crate::job::{JobState, Labels};
use crate::names::{FlowName, QueueName, ScheduleId};
use crate::refusal::Refusal;
use crate::sentences::ValueRefusal;
use crate::time::Moment;
use crate::view;
use serde::{Deserialize, Serialize};

use super::pages::row_of;

/// A filter of jobs. Every field narrows it; a filter without fields matches every job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFilter {
    /// Jobs of this queue.
    pub queue: Option<QueueName>,
    /// Jobs in one of these states; empty for any state.
    pub states: Vec<JobState>,
    /// Jobs of this kind; `""` for those without one.
    pub kind: Option<String>,
    /// Jobs with this label: key and value.
    pub label: Option<(String, String)>,
    /// Jobs whose last error contains this text, compared letter by letter.
    pub error: Option<String>,
    /// Jobs that ended at this moment or later.
    pub finished_after: Option<Moment>,
    /// Jobs that ended before this moment.
    pub finished_before: Option<Moment>,
    /// Jobs of this flow.
    pub flow: Option<FlowName>,
    /// Jobs that this schedule made.
    pub schedule: Option<ScheduleId>,
}

impl JobFilter {
    /// True if it has no fields, so that every job would match.
    pub fn is_empty(&self) -> bool {
        *self == JobFilter::default()
    }

    /// True if it depends on content that a patch, a replace or a failed run changes without moving the job: kind,
    /// labels and the last error. An engine that has scanned such a job compares it again in the step that changes it.
    pub fn asks_for_content(&self) -> bool {
        self.kind.is_some() || self.label.is_some() || self.error.is_some()
    }

    /// True if it depends on the end of a job.
    pub fn asks_for_end(&self) -> bool {
        self.finished_after.is_some() || self.finished_before.is_some()
    }

    /// True if a job of this flow and this schedule matches. Neither ever changes.
    pub fn lets_origin(&self, flow: Option<&FlowName>, schedule: Option<&ScheduleId>) -> bool {
        self.flow.as_ref().is_none_or(|wanted| Some(wanted) == flow)
            && self.schedule.as_ref().is_none_or(|wanted| Some(wanted) == schedule)
    }

    /// True if a job of this kind matches.
    pub fn lets_kind(&self, kind: &str) -> bool {
        self.kind.as_deref().is_none_or(|wanted| wanted == kind)
    }

    /// True if a job with these labels matches.
    pub fn lets_labels(&self, labels: &Labels) -> bool {
        self.label.as_ref().is_none_or(|(key, value)| labels.get(key) == Some(value))
    }

    /// True if a job with this last error matches.
    pub fn lets_error(&self, error: Option<&str>) -> bool {
        let Some(part) = &self.error else { return true };
        error.is_some_and(|error| error.contains(part))
    }

    /// True if a job with this end matches; `None` is a job that has not ended.
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

/// Cancels matching jobs, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CancelJobs {
    /// It must have a field.
    pub filter: JobFilter,
    /// Changes at most this many jobs, 1 to 1,000.
    pub max: usize,
    /// The `next` of the call before, to continue where that call stopped.
    pub cursor: Option<String>,
}

/// Makes matching jobs ready again, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryJobs {
    /// It must have a field.
    pub filter: JobFilter,
    /// Changes at most this many jobs, 1 to 1,000.
    pub max: usize,
    /// The `next` of the call before, to continue where that call stopped.
    pub cursor: Option<String>,
}

/// Forgets matching jobs that do not run, newest first; waiting ones are cancelled by it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteJobs {
    /// It must have a field.
    pub filter: JobFilter,
    /// Changes at most this many jobs, 1 to 1,000.
    pub max: usize,
    /// The `next` of the call before, to continue where that call stopped.
    pub cursor: Option<String>,
}

/// The change that a call on many jobs makes to each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkChange {
    /// Cancels a waiting job, and asks the holder of a running one to stop.
    Cancel,
    /// Makes a job ready again, with its attempts from 0.
    Retry,
    /// Forgets a job with its id and unique key.
    Delete,
}

impl BulkChange {
    /// The states of jobs that it can change. A job in another state does not match.
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
    /// Keeps only the states in `filter` that it can change. If no state remains, no job matches: an empty list would
    /// mean any state, so the caller checks it before it asks.
    fn narrow(self, filter: &mut JobFilter) {
        let asked = std::mem::take(&mut filter.states);
        let kept = self.states().iter().filter(|state| asked.is_empty() || asked.contains(state));
        filter.states = kept.copied().collect();
    }
}

/// A call on many jobs, in the form in which an engine runs all three kinds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManyJobs {
    pub change: BulkChange,
    /// Its states are those that the change can change.
    pub filter: JobFilter,
    /// Changes at most this many jobs.
    pub max: usize,
    /// The row number behind which the scan continues; `None` to begin.
    pub row: Option<u64>,
    /// True when a flow is cancelled or retried: oldest first, so that parents come before their children. Otherwise
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

    /// True if it asks only for states that the change cannot change: then no job matches.
    pub fn matches_nothing(&self) -> bool {
        self.filter.states.is_empty()
    }
}

/// Refuses a filter that names every job: a program that forgot to set its filter must not empty the store.
///
/// # Errors
/// `invalid_field`, at the whole body.
pub fn must_say_something(filter: &JobFilter) -> Result<(), Refusal> {
    if filter.is_empty() { Err(Refusal::from(ValueRefusal::FilterEmpty).at("")) } else { Ok(()) }
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

view! {
    /// Progress of a call on many jobs.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct DoneMany {
        /// How many jobs this call changed.
        pub done: u64,
        /// Whether jobs may be left that match.
        pub more: bool,
        /// The cursor with which the next call goes on; null when all are done.
        #[serde(default)]
        pub next: Option<String>,
    }
}

impl DoneMany {
    /// The scan reached the last job.
    pub fn all(done: u64) -> Self {
        DoneMany { done, more: false, next: None }
    }

    /// The scan stopped; the next call begins behind this row.
    pub fn stopped(done: u64, row: u64) -> Self {
        DoneMany { done, more: true, next: Some(row.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Code;

    #[test]
    fn a_bulk_change_narrows_its_filter_to_states_it_can_change() {
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
    fn a_bulk_call_without_a_filter_or_its_own_cursor_is_refused() {
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
