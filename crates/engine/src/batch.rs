//! What is written in one transaction, and what is answered after it.

use std::time::Duration;

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
}

/// Where an answer goes.
pub(crate) type Reply = oneshot::Sender<Result<Answer, CallError>>;

/// An answer that waits for its batch.
pub(crate) struct Pending {
    pub namespace: Namespace,
    pub reply: Reply,
    pub answer: Result<Answer, CallError>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Batch {
    /// Grows by one with each.
    pub number: u64,
    pub changes: Changes,
    /// About what the changes take in a journal; counted only where the journal appends.
    pub bytes: usize,
    /// The longest time to live of any lease so far.
    pub ttl: Duration,
    /// The checksum of its entry in a journal that appends, once that append was begun: then its answers wait there.
    pub entry: Option<u64>,
    pub answers: Vec<Pending>,
}

impl Batch {
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
