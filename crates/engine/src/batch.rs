//! What is written in one transaction, and what is answered after it.

use std::time::{Duration, Instant};

use tenure_core::flow::FlowView;
use tenure_core::job::JobView;
use tenure_core::lease::Fence;
use tenure_core::names::Namespace;
use tenure_core::refusal::Code;
use tenure_core::time::Moment;
use tenure_machine::facts::Granted;
use tenure_machine::rows::Rows;
use tenure_machine::{Changes, Done, JobStands, Seq, SettledAs, Stands, StoredJob};
use tenure_seam::CallError;
use tokio::sync::oneshot;

use crate::file::ahead::ReadAhead;
use crate::file::merge::merge;

/// What the state answers; the caller's side makes the reply of it.
#[derive(Debug)]
pub(crate) enum Answer {
    /// All that needs no rows but what is in it.
    Done(Done),
    /// Jobs that were pushed.
    Pushed(Vec<PushedShown>),
    /// Leases that were settled, with their follow-ups.
    Settled(Vec<SettledShown>),
    /// A lease call that was granted, or not.
    Leased(Leased),
    /// A call for a result is to read it.
    Result(ResultStands),
    /// A call for a flow: as it is now, or `None` if it is not there any more.
    Flow(Option<Box<FlowView>>),
    /// What tests compare.
    Lines(Vec<String>),
}

/// Where the job of a call for a result stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultStands {
    pub stands: JobStands,
    /// The call is answered whatever it finds.
    pub over: bool,
    /// When its time is over.
    pub until: Moment,
}

/// A job that is shown in an answer.
#[derive(Debug)]
pub(crate) enum Shown {
    /// It is new: nothing needs to be read.
    Built(Box<StoredJob>, Stands),
    /// Its row says it, but for what only the machine knows.
    Read(Seq, Stands),
}

/// One pushed job.
#[derive(Debug)]
pub(crate) struct PushedShown {
    pub shown: Shown,
    pub duplicate: bool,
    pub replaced: bool,
    pub unasked: bool,
    /// What is shown if its row is gone when it is read.
    pub known: Option<Box<JobView>>,
}

/// One settled lease.
#[derive(Debug)]
pub(crate) struct SettledShown {
    pub lease: String,
    pub result: Result<SettledAs, Code>,
    pub pushed: Vec<PushedShown>,
}

/// The answer of a lease call, before payloads and data are read.
#[derive(Debug, Default)]
pub(crate) struct Leased {
    pub granted: Granted,
    /// The lives of the granted jobs as of the grant; none in the answer of a repeat.
    pub lives: Vec<Option<Vec<u8>>>,
    /// What was granted for this very call: given back if nobody takes it.
    pub fresh: Vec<Fence>,
    /// Rows of granted jobs that are read meanwhile.
    pub ahead: Option<ReadAhead>,
}

/// Where an answer goes.
pub(crate) type Reply = oneshot::Sender<Result<Answer, CallError>>;

/// An answer that waits for its batch.
pub(crate) struct Pending {
    pub namespace: Namespace,
    pub reply: Reply,
    pub answer: Result<Answer, CallError>,
}

/// How long a batch of answers that can wait is kept for others to come along: one append less for each that does.
const COMPANY_WITHIN: Duration = Duration::from_millis(4);

/// Whether somebody is held up by waiting for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AnswerHaste {
    Now,
    /// That of a settle while others wait for the next job.
    Patient,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Batch {
    /// Grows by one with each.
    pub number: u64,
    pub changes: Changes,
    /// About what the changes take in the journal.
    pub bytes: usize,
    /// The longest time to live of any lease so far.
    pub ttl: Duration,
    /// The checksum of its entry in the journal, once that append was begun: then its answers wait there.
    pub entry: Option<u64>,
    pub answers: Vec<Pending>,
    /// When the first answer came, if all of them can wait a little.
    pub patient_since: Option<Instant>,
}

impl Batch {
    /// Adds an answer, which goes out with the batch.
    pub(crate) fn answer(&mut self, answer: Pending, haste: AnswerHaste) {
        match haste {
            AnswerHaste::Now => self.patient_since = None,
            AnswerHaste::Patient if self.answers.is_empty() => {
                self.patient_since = Some(Instant::now());
            }
            AnswerHaste::Patient => {}
        }
        self.answers.push(answer);
    }

    /// How long this batch may still wait for others to come along; zero if somebody needs it now.
    pub(crate) fn may_wait(&self) -> Duration {
        let waited = self.patient_since.map(|since| since.elapsed());
        waited.map_or(Duration::ZERO, |waited| COMPANY_WITHIN.saturating_sub(waited))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.answers.is_empty()
    }

    /// Adds the rows of one more step, or of a later batch.
    pub(crate) fn add(&mut self, later: Rows) {
        let Changes { rows, last_seq, .. } = &mut self.changes;
        if rows.is_empty() {
            *rows = later;
        } else {
            let Rows { jobs, errors, other, childless, data } = later;
            for (seq, change) in jobs {
                match rows.jobs.entry(seq) {
                    std::collections::btree_map::Entry::Occupied(there) => {
                        merge(there.into_mut(), change)
                    }
                    std::collections::btree_map::Entry::Vacant(free) => {
                        free.insert(change);
                    }
                }
            }
            rows.errors.extend(errors);
            rows.other.extend(other);
            rows.childless.extend(childless);
            rows.data.extend(data);
        }
        if let Some((seq, _)) = rows.jobs.last_key_value() {
            *last_seq = (*last_seq).max(*seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(answers: &[AnswerHaste]) -> Batch {
        let mut batch = Batch::default();
        for haste in answers {
            let (reply, _) = oneshot::channel();
            let answer = Ok(Answer::Done(Done::Nothing));
            batch.answer(Pending { namespace: Namespace::main(), reply, answer }, *haste);
        }
        batch
    }

    #[test]
    fn only_answers_that_can_all_wait_do_and_not_for_long() {
        use AnswerHaste::*;
        for (answers, waits) in [
            (&[][..], false),
            (&[Patient], true),
            (&[Patient, Patient], true),
            (&[Patient, Now], false),
            (&[Now, Patient], false),
        ] {
            let mut batch = batch(answers);
            // As of now: a machine that is slow must not decide this.
            let since = batch.patient_since.map(|_| Instant::now() + COMPANY_WITHIN);
            batch.patient_since = since;
            assert_eq!(!batch.may_wait().is_zero(), waits, "{answers:?}");
            batch.patient_since = since.map(|since| since - 2 * COMPANY_WITHIN);
            assert!(batch.may_wait().is_zero());
        }
    }
}
