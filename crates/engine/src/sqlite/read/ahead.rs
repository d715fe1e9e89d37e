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

use crate::seal::Seal;
use crate::sqlite::rows::{self, FoundJob, JobRow};
use crate::sqlite::write::commit::Numbers;

/// The newest part of the rows that a lease call shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Newest {
    /// The grants themselves, which are durable. While a job runs under the lease of its grant, only its life and
    /// its progress change.
    #[default]
    Grant,
    /// Jobs whose lives differ in this commit, or in an earlier one: from before the grants, or from after their
    /// leases.
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

#[derive(Default)]
pub(crate) struct RowsAhead {
    jobs: HashMap<Seq, JobRow>,
    newest: Newest,
}

impl RowsAhead {
    /// Reads these jobs, and leaves out a missing or damaged one.
    pub(crate) fn read(
        conn: &Connection,
        of: (&Namespace, &Seal),
        seqs: &[Seq],
    ) -> rusqlite::Result<RowsAhead> {
        let mut jobs = HashMap::with_capacity(seqs.len());
        for seq in seqs {
            if let FoundJob::Job(row) = rows::job(conn, of, *seq, true)?
                && row.unreadable.is_none()
            {
                jobs.insert(*seq, *row);
            }
        }
        Ok(RowsAhead { jobs, newest: Newest::commit(conn)? })
    }

    /// Takes a job out, as of its grant with this life.
    pub(crate) fn take(&mut self, seq: Seq, life: &[u8]) -> Option<JobView> {
        self.jobs.remove(&seq)?.into_granted(life)
    }

    /// The newest part of these rows.
    pub(crate) fn newest(&self) -> Newest {
        self.newest
    }
}

/// The receiver of rows that are being read.
pub(crate) struct ReadAhead(pub oneshot::Receiver<rusqlite::Result<RowsAhead>>);

impl ReadAhead {
    /// The rows; none if they could not be read. They are then read in the usual way, which reports the reason.
    pub(crate) async fn rows(self) -> RowsAhead {
        self.0.await.ok().and_then(Result::ok).unwrap_or_default()
    }
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ReadAhead")
    }
}
