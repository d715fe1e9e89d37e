//! Rows of jobs that a lease call will show, read while their grant is appended.
//!
//! They may have other lives than the grants, and be of a commit that is not durable yet: whoever shows them looks.

use std::collections::HashMap;
use std::fmt;

use rusqlite::Connection;
use tenure_core::job::JobView;
use tenure_core::names::Namespace;
use tenure_machine::Seq;
use tokio::sync::oneshot;

use crate::file::commit::Numbers;
use crate::file::rows::{self, FoundJob, JobRow};

/// See the module.
#[derive(Default)]
pub(crate) struct RowsAhead {
    jobs: HashMap<Seq, JobRow>,
    commit: u64,
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
        Ok(match Numbers::read(conn)? {
            Ok(numbers) => RowsAhead { jobs, commit: numbers.commit },
            Err(_) => RowsAhead::default(),
        })
    }

    /// Takes one out, as of its grant with this life.
    pub(crate) fn take(&mut self, seq: Seq, life: &[u8]) -> Option<JobView> {
        self.jobs.remove(&seq)?.into_granted(life)
    }

    /// They are of this commit, or of earlier ones.
    pub(crate) fn commit(&self) -> u64 {
        self.commit
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
