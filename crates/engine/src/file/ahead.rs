//! Rows of jobs that a lease call will show, read while their grant is appended.
//!
//! They may have other lives than the grants, and be of a commit that is not durable yet: [`Newest`] says so.

use std::collections::HashMap;
use std::fmt;

use rusqlite::Connection;
use tenure_core::job::JobView;
use tenure_core::names::Namespace;
use tenure_machine::Seq;
use tokio::sync::oneshot;

use crate::file::commit::Numbers;
use crate::file::rows::{self, FoundJob, JobRow};

/// The newest of what was read that a lease call shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Newest {
    /// The grants themselves, which are durable. While a job runs under the lease that it was granted with, only its life and
    /// its progress change.
    #[default]
    Grant,
    /// Jobs that have other lives in this commit, or in one before: from before the grants, or from after their leases.
    Commit(u64),
    /// More than jobs, or rows of a commit whose number cannot be read.
    Any,
}

impl Newest {
    /// The commit of the rows that this connection shows now.
    pub(crate) fn commit(conn: &Connection) -> rusqlite::Result<Newest> {
        // A number that cannot be read is damage, and reported at the next start.
        Ok(Numbers::read(conn)?.map_or(Newest::Any, |numbers| Newest::Commit(numbers.commit)))
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct RowsAhead {
    jobs: HashMap<Seq, JobRow>,
    newest: Newest,
}

impl RowsAhead {
    /// Reads these jobs. One that is not there, or is damaged, is not among them.
    pub(crate) fn read(
        conn: &Connection,
        namespace: &Namespace,
        seqs: &[Seq],
    ) -> rusqlite::Result<RowsAhead> {
        let mut jobs = HashMap::with_capacity(seqs.len());
        for seq in seqs {
            if let FoundJob::Job(row) = rows::job(conn, namespace, *seq, true)?
                && row.unreadable.is_none()
            {
                jobs.insert(*seq, *row);
            }
        }
        Ok(RowsAhead { jobs, newest: Newest::commit(conn)? })
    }

    /// Takes one out, as of its grant with this life.
    pub(crate) fn take(&mut self, seq: Seq, life: &[u8]) -> Option<JobView> {
        self.jobs.remove(&seq)?.into_granted(life)
    }

    /// How new they are.
    pub(crate) fn newest(&self) -> Newest {
        self.newest
    }
}

/// Where the rows come.
pub(crate) struct ReadAhead(pub oneshot::Receiver<rusqlite::Result<RowsAhead>>);

impl ReadAhead {
    /// The rows; none if they could not be read. Then they are read in the usual way, which tells why.
    pub(crate) async fn rows(self) -> RowsAhead {
        self.0.await.ok().and_then(Result::ok).unwrap_or_default()
    }
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ReadAhead")
    }
}
