//! The place of a content, to which its seal is bound.

use tenure_core::events::Happened;
use tenure_core::job::JobError;
use tenure_core::names::Namespace;
use tenure_core::time::Moment;
use tenure_machine::Seq;
use tenure_machine::rows::{DataKey, RowKey};

/// The place of a content, to which it is bound.
pub(crate) enum ContentPlace<'a> {
    Payload(Seq),
    Result(Seq),
    Progress(Seq),
    Error(Seq),
    /// The error of one run of a job.
    PastError(Seq, u32, Moment),
    Data(&'a DataKey),
    Row(&'a RowKey),
    /// The error in an event of this namespace, of this job, at this moment.
    Event(&'a Namespace, &'a str, Moment),
}

impl<'a> ContentPlace<'a> {
    /// The place of a past error.
    pub(crate) fn past(seq: Seq, error: &JobError) -> ContentPlace<'static> {
        ContentPlace::PastError(seq, error.attempt, error.at)
    }

    /// The place of the error in an event.
    pub(crate) fn event(namespace: &'a Namespace, happened: &'a Happened) -> ContentPlace<'a> {
        let job = happened.about.job.as_ref().map_or("", |job| job.as_str());
        ContentPlace::Event(namespace, job, happened.at)
    }

    /// The place as bytes; no two places have the same. Names contain no zero.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let moment;
        let (kind, parts): (&str, [&str; 3]) = match self {
            ContentPlace::Payload(seq) => return of_job("payload", *seq),
            ContentPlace::Result(seq) => return of_job("result", *seq),
            ContentPlace::Progress(seq) => return of_job("progress", *seq),
            ContentPlace::Error(seq) => return of_job("error", *seq),
            ContentPlace::PastError(seq, attempt, at) => {
                let mut bytes = of_job("past error", *seq);
                bytes.extend_from_slice(&attempt.to_le_bytes());
                bytes.extend_from_slice(&at.us().to_le_bytes());
                return bytes;
            }
            ContentPlace::Data((namespace, pool, id)) => {
                ("data", [namespace.as_str(), pool.as_str(), id.as_str()])
            }
            ContentPlace::Row(RowKey { namespace, kind, key }) => {
                ("row", [namespace.as_str(), kind.as_str(), key])
            }
            ContentPlace::Event(namespace, job, at) => {
                moment = at.us().to_string();
                ("event", [namespace.as_str(), job, &moment])
            }
        };
        let mut bytes = kind.as_bytes().to_vec();
        for part in parts {
            bytes.push(0);
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}

fn of_job(kind: &str, seq: Seq) -> Vec<u8> {
    let mut bytes = kind.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(&seq.get().to_le_bytes());
    bytes
}

/// A sealed text that no key of this process opens, or that was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a sealed text does not open: it was changed, moved, or sealed with a key that is not here"
)]
pub(crate) struct Unopened;
