//! The place of a content, to which its seal is bound.

use tenure_core::names::Namespace;
use tenure_machine::Seq;
use tenure_machine::rows::{DataKey, RowKey};

/// The place of a content, to which it is bound.
pub(crate) enum ContentPlace<'a> {
    Payload(Seq),
    Result(Seq),
    Progress(Seq),
    Error(Seq),
    PastError(Seq),
    Data(&'a DataKey),
    Row(&'a RowKey),
    Event(&'a Namespace),
}

impl ContentPlace<'_> {
    /// The place as bytes; no two places have the same. Names contain no zero.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let (kind, parts): (&str, [&str; 3]) = match self {
            ContentPlace::Payload(seq) => return of_job("payload", *seq),
            ContentPlace::Result(seq) => return of_job("result", *seq),
            ContentPlace::Progress(seq) => return of_job("progress", *seq),
            ContentPlace::Error(seq) => return of_job("error", *seq),
            ContentPlace::PastError(seq) => return of_job("past error", *seq),
            ContentPlace::Data((namespace, pool, id)) => {
                ("data", [namespace.as_str(), pool.as_str(), id.as_str()])
            }
            ContentPlace::Row(RowKey { namespace, kind, key }) => {
                ("row", [namespace.as_str(), kind.as_str(), key])
            }
            ContentPlace::Event(namespace) => ("event", [namespace.as_str(), "", ""]),
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
