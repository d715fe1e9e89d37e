//! The thread that syncs: what is committed becomes durable, and then it is answered.
//!
//! A commit appends to SQLite's log and leaves it to this thread to sync that log, so that the next
//! batch is written meanwhile. It must never answer for a commit that is not synced: one that is
//! answered survives a power loss. SQLite itself syncs the log before it moves pages from it into
//! the store, and the start of a new log before it is used, so nothing rests on what is not synced.

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use tenure_seam::Fault;

use crate::answering::{refuse, send};
use crate::batch::Pending;
use crate::file::synced::Synced;
use crate::file::watch::LookWhen;
use crate::options::Fatal;
use crate::shared::{SYNC, Shared};

/// A batch that is committed.
pub(crate) struct Committed {
    pub number: u64,
    /// The number of its commit, if it had rows, so that there is something to sync.
    pub commit: Option<u64>,
    pub answers: Vec<Pending>,
}

/// The way from the disk to the sync. While one batch is synced the next is written, and then the
/// disk waits: more batches in between would be smaller ones, each with the costs of a commit.
pub(crate) fn way() -> (SyncSender<Committed>, Receiver<Committed>) {
    sync_channel(0)
}

/// Runs until the disk has ended.
pub(crate) fn run(
    shared: &Arc<Shared>,
    log: &File,
    mut synced: Synced,
    committed: &Receiver<Committed>,
) {
    while let Ok(Committed { number, commit, answers }) = committed.recv() {
        if shared.fatal().is_some() {
            refuse(answers, &shared.gone());
            continue;
        }
        let began = Instant::now();
        let done = if commit.is_some() { log.sync_data() } else { Ok(()) };
        shared.times.took(SYNC, began.elapsed());
        let done = match done {
            // A look costs next to nothing beside a sync, so what was stored is never answered for
            // after its folder is gone.
            Ok(()) => {
                shared.look(if commit.is_some() { LookWhen::Now } else { LookWhen::BeforeAnswer })
            }
            Err(why) => Err(Fatal::Disk(format!("it cannot be synced: {why}"))),
        };
        match done {
            Ok(()) => {
                if let Some(commit) = commit {
                    synced.note(commit, shared.clock.now());
                }
                shared.is_durable(number);
                send(shared, answers);
            }
            Err(fatal) => {
                // It is committed, and nobody knows whether a power loss would leave it, or whether
                // anybody finds it. Those who wait are told before the engine stops, as its options
                // promise.
                refuse(answers, &Fault::Unknown(fatal.to_string()).into());
                shared.stop_for(fatal);
            }
        }
    }
}
