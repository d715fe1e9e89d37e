//! Batch: the rows of one transaction, and the answers that are sent after it.

use std::time::{Duration, Instant};

use tenure_core::flow::FlowView;
use tenure_core::job::JobView;
use tenure_core::lease::Fence;
use tenure_core::names::Namespace;
use tenure_core::refusal::Code;
use tenure_core::time::Moment;
use tenure_engine_api::CallError;
use tenure_machine::facts::Granted;
use tenure_machine::rows::Rows;
use tenure_machine::{Changes, Done, JobStands, Seq, SettledAs, Stands, StoredJob};
use tokio::sync::oneshot;

use crate::sqlite::read::ahead::ReadAhead;
use crate::sqlite::write::merge::merge;

/// An answer of the state; the caller's side makes a reply from it.
#[derive(Debug)]
pub(crate) enum Answer {
    /// All answers that need no rows beyond their content.
    Done(Done),
    /// Jobs that were pushed.
    Pushed(Vec<PushedShown>),
    /// Leases that were settled, with their follow-ups.
    Settled(Vec<SettledShown>),
    /// The outcome of a lease call, granted or not.
    Leased(Leased),
    /// Lets a call for a result read it.
    Result(ResultStands),
    /// A call for a flow: its present view, or `None` if it is gone.
    Flow(Option<Box<FlowView>>),
    /// Text that tests compare.
    Lines(Vec<String>),
}

/// Where the job of a call for a result stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultStands {
    pub stands: JobStands,
    /// The call is answered now, even if the job has not ended.
    pub over: bool,
    /// The end of the wait.
    pub until: Moment,
}

/// A job that is shown in an answer.
#[derive(Debug)]
pub(crate) enum Shown {
    /// It is new: nothing needs to be read.
    Built(Box<StoredJob>, Stands),
    /// Its row has the rest; only the machine knows these two.
    Read(Seq, Stands),
}

#[derive(Debug)]
pub(crate) struct PushedShown {
    pub shown: Shown,
    pub duplicate: bool,
    pub replaced: bool,
    pub unasked: bool,
    /// The view to show if the row is gone by the time it is read.
    pub known: Option<Box<JobView>>,
}

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
    /// Grants made for this very call: given back if nobody receives them.
    pub fresh: Vec<Fence>,
    /// Rows of granted jobs that are being read.
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

/// How long answers that can wait are held back for others to join them; each that joins saves an append.
const COMPANY_WITHIN: Duration = Duration::from_millis(4);

/// The urgency of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AnswerHaste {
    Now,
    /// A settle whose caller also waits for its next job.
    Patient,
}

#[derive(Default)]
pub(crate) struct Batch {
    /// Grows by one from batch to batch.
    pub number: u64,
    pub changes: Changes,
    /// Approximate bytes of the changes in the journal.
    pub bytes: usize,
    /// The longest ttl of any lease up to this batch.
    pub ttl: Duration,
    /// The checksum of its entry in the journal, set when the append begins: its answers then wait there.
    pub entry: Option<u64>,
    pub answers: Vec<Pending>,
    /// When the first answer came, if all answers can wait a little.
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

    /// How long this batch may still wait for others to join; zero if a caller needs it now.
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
            // Starts now, so that a slow test machine does not decide the outcome.
            let since = batch.patient_since.map(|_| Instant::now() + COMPANY_WITHIN);
            batch.patient_since = since;
            assert_eq!(!batch.may_wait().is_zero(), waits, "{answers:?}");
            batch.patient_since = since.map(|since| since - 2 * COMPANY_WITHIN);
            assert!(batch.may_wait().is_zero());
        }
    }
}
