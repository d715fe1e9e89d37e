//! Backups of the store that this process opened.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tenure_engine::Embedded;
use tenure_engine::backup::BackupWriter;
use tenure_engine::copy::CopyError;
use tenure_engine_api::Fault;
use tenure_journal::priority;
use tenure_node::Node;

use crate::backups::{BackupChunks, MakesBackups};

/// Of a store that this process alone has open.
#[derive(Debug)]
pub struct OwnBackups(pub Arc<Embedded>);

/// Of a shared store, from the rows of this server, wherever the leader is.
pub(super) struct NodeBackups(pub Arc<Node>);

impl MakesBackups for OwnBackups {
    fn begin(&self) -> Result<BackupChunks, Fault> {
        chunks(|| self.0.backup())
    }
}

impl MakesBackups for NodeBackups {
    fn begin(&self) -> Result<BackupChunks, Fault> {
        chunks(|| self.0.backup())
    }
}

fn chunks(begin: impl FnOnce() -> Result<BackupWriter, CopyError>) -> Result<BackupChunks, Fault> {
    // Calls come first.
    priority::let_others_go_first();
    let chunks = begin().map_err(|why| match why {
        CopyError::Fault(fault) => fault,
        why => Fault::Unavailable(why.to_string()),
    })?;
    Ok(Box::new(PacedChunks(chunks)))
}

/// After a read the thread rests for this many times as long: calls find a processor and the disk free for two thirds of
/// the time. A million jobs take 12 s instead of 5 s.
const RESTS: u32 = 2;
/// A disk that stalls once must not make a backup stand still.
const REST_MAX: Duration = Duration::from_millis(100);

struct PacedChunks(BackupWriter);

impl Iterator for PacedChunks {
    type Item = Result<Vec<u8>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let begun = Instant::now();
        let chunk = self.0.next()?;
        thread::sleep((begun.elapsed() * RESTS).min(REST_MAX));
        Some(chunk.map_err(|why| why.to_string()))
    }
}
