//! The trail of a server: a line for each change, refusal, login and grant of resource data, with its caller, and counts
//! of all other calls (docs/decisions/174-the-trail.md).
//!
//! `record` stands at the gate of all calls and makes the lines; `chain` links them, `files` writes them, `counts` has
//! those of a minute, `search` and `verify` read them, `recent` remembers the last changes, `leaders` tells of takeovers,
//! `offline` writes for commands without a server. Nothing here knows an engine's rule.

mod chain;
mod counts;
mod day_file;
mod files;
mod leaders;
mod offline;
mod recent;
mod record;
mod search;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::access::Grants;
use tenure_core::bounds::TRAIL_BYTES_DEFAULT;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Listed, TrailEnd};
use tenure_core::sentences::ServerRefusal;
use tenure_core::trail::{ReadTrail, TrailLine};
use tenure_engine_api::{Clock, SystemClock};
use tokio::time::{MissedTickBehavior, interval};

pub use leaders::follow_leadership;
pub use offline::write_offline;
pub use record::CallRecord;
pub(crate) use record::RecordedRefusal;
pub use verify::{TrailBreak, VerifiedTrail, verify_trail};

use self::counts::{CallTallies, CountedAs};
use self::files::TrailFiles;
use self::recent::RecentChanges;
use self::search::SearchError;
use self::writer::TrailWriter;

/// The folder of the trail in that of a store.
pub const TRAIL_FOLDER: &str = "trail";

/// How often lines are synced to the disk: a power loss may lose the lines of this time.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Looks of one second after which counts become lines.
const COUNTS_EVERY: u32 = 60;
/// Looks of one second after which the log has the last hash, and old files are deleted.
const ANCHOR_EVERY: u32 = 60 * 60;

/// Where lines go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TrailPlace {
    /// Files in this folder.
    Folder(PathBuf),
    /// The stderr of this process, for those who collect logs. It cannot be read back.
    Stderr,
}

/// The settings of a trail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrailOptions {
    pub place: TrailPlace,
    /// Refuses changes that cannot be recorded.
    pub is_required: bool,
    /// Bytes of all files; beyond them the oldest is deleted.
    pub most_bytes: u64,
    /// The address of this server, for its lines.
    pub server: String,
}

impl TrailOptions {
    /// A trail of the usual size, without which changes are made, too. A server fills in its address.
    pub fn new(place: TrailPlace) -> Self {
        let (is_required, most_bytes, server) = (false, TRAIL_BYTES_DEFAULT, String::new());
        TrailOptions { place, is_required, most_bytes, server }
    }
}

/// The trail of a server, or none. Clones share it.
#[derive(Clone, Default)]
pub struct Trail(Option<Arc<KeptTrail>>);

struct KeptTrail {
    options: TrailOptions,
    writer: Mutex<TrailWriter>,
    tallies: Mutex<CallTallies>,
    /// Empty if lines cannot be read back. Locked after `writer`, if both are.
    recent: Mutex<RecentChanges>,
}

impl Trail {
    /// Opens a trail, and writes its first line. If that is not possible, the log says so, and it is tried again with
    /// each line.
    pub fn open(options: TrailOptions) -> Self {
        let writer = Mutex::new(TrailWriter::new(&options.place));
        let (tallies, recent) = Default::default();
        let trail = Trail(Some(Arc::new(KeptTrail { options, writer, tallies, recent })));
        let version = concat!("version ", env!("CARGO_PKG_VERSION"));
        trail.write(TrailLine::of("server_started").saying(version));
        trail
    }

    /// Whether lines are written.
    pub fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Whether its lines can be read.
    pub fn is_readable(&self) -> bool {
        self.0.as_ref().is_some_and(|kept| kept.folder().is_some())
    }

    /// Writes a line; its number, moment, server and hash are filled in. True if it is written, or nothing is kept.
    /// When this returns, the end of the process cannot lose the line.
    pub fn write(&self, mut line: TrailLine) -> bool {
        self.0.as_ref().is_none_or(|kept| kept.write(&mut line))
    }

    /// Counts a call that has no line of its own.
    fn count(&self, call: CountedAs) {
        if let Some(kept) = &self.0 {
            kept.tallies().add(call);
        }
    }

    /// Counts a refusal; true if it is the first of its kind in this minute.
    fn is_first(&self, refusal: CountedAs) -> bool {
        self.0.as_ref().is_some_and(|kept| kept.tallies().is_first(refusal))
    }

    /// Refuses a change whose line cannot be written, if lines are required. After a failure it is tried again here, so
    /// that the first change after a repair is permitted.
    ///
    /// # Errors
    /// `trail_unwritable`.
    fn permit_change(&self) -> Result<(), Refusal> {
        let Some(kept) = self.0.as_ref().filter(|kept| kept.options.is_required) else {
            return Ok(());
        };
        if kept.writer().can_write(&kept.options) {
            Ok(())
        } else {
            Err(ServerRefusal::TrailUnwritable.into())
        }
    }

    /// Whether a change must not be answered without its line.
    fn is_required(&self) -> bool {
        self.0.as_ref().is_some_and(|kept| kept.options.is_required)
    }

    /// Reads lines that the grants permit to see, newest first. A line without a namespace is for callers that may enter
    /// every namespace. Blocks.
    ///
    /// # Errors
    /// `wrong_state`: no trail is kept in files; `invalid_field`: the cursor is not one of it.
    pub fn read(&self, asked: &ReadTrail, grants: &Grants) -> Result<Listed<TrailLine>, Refusal> {
        let folder = self.0.as_ref().and_then(|kept| kept.folder());
        let folder = folder.ok_or(ServerRefusal::TrailNotKept)?;
        let may_see = |line: &TrailLine| match &line.namespace {
            Some(namespace) => {
                Namespace::known(namespace).is_ok_and(|one| grants.may_enter(&one).is_ok())
            }
            None => grants.enters_all(),
        };
        search::search(folder, asked, may_see).map_err(|why| match why {
            SearchError::Cursor(no) => no,
            SearchError::Unreadable(why) => {
                tracing::error!(%why, "the trail cannot be read");
                ServerRefusal::TrailUnreadable.into()
            }
        })
    }

    /// The last line; `None`: no line is kept. A copy of its hash on another machine shows when lines at the end are
    /// missing.
    pub fn end(&self) -> Option<TrailEnd> {
        self.0.as_ref()?.end()
    }

    /// The last changes of a thing, newest first, among the [`TRAIL_RECENT_MAX`](tenure_core::bounds::TRAIL_RECENT_MAX)
    /// last changes that this server wrote. Reads no file. The caller of this method checks who may see them.
    pub fn last_changes(
        &self,
        namespace: &Namespace,
        target: &str,
        most: usize,
    ) -> Vec<Arc<TrailLine>> {
        let of = |kept: &Arc<KeptTrail>| kept.recent().of(namespace.as_str(), target, most);
        self.0.as_ref().map(of).unwrap_or_default()
    }

    /// Syncs lines, writes counts and deletes old files, for as long as it is polled.
    pub async fn keep(&self) -> Infallible {
        let Some(kept) = self.0.clone() else { return std::future::pending().await };
        let mut looks = interval(SYNC_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for look in 0_u32.. {
            looks.tick().await;
            let kept = kept.clone();
            let looked = tokio::task::spawn_blocking(move || kept.look(look)).await;
            if let Err(why) = looked {
                tracing::error!(%why, "the trail is no longer synced; this is a bug");
                break;
            }
        }
        std::future::pending().await
    }

    /// Writes what is counted and a last line, and syncs. Blocks.
    pub fn close(&self) {
        let Some(kept) = &self.0 else { return };
        kept.write_counts();
        self.write(TrailLine::of("server_stopped"));
        kept.anchor();
        kept.sync();
    }
}

impl KeptTrail {
    fn writer(&self) -> MutexGuard<'_, TrailWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tallies(&self) -> MutexGuard<'_, CallTallies> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent(&self) -> MutexGuard<'_, RecentChanges> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of the files; `None`: lines cannot be read back.
    fn folder(&self) -> Option<&Path> {
        match &self.options.place {
            TrailPlace::Folder(folder) => Some(folder),
            TrailPlace::Stderr => None,
        }
    }

    /// Whether the line was written.
    fn write(&self, line: &mut TrailLine) -> bool {
        let mut writer = self.writer();
        let is_written = writer.write(&self.options, line);
        if is_written && self.folder().is_some() {
            // Under the lock of the writer: they are in the order of lines.
            self.recent().add(line);
        }
        is_written
    }

    /// Remembers the last changes of earlier processes.
    fn fill_recent(&self) {
        let Some(folder) = self.folder() else { return };
        match recent::changes_in(folder) {
            Ok(changes) => self.recent().fill(changes),
            Err(why) => tracing::warn!(%why, "the last changes cannot be read from the trail"),
        }
    }

    fn look(&self, look: u32) {
        if look == 0 {
            self.fill_recent();
        }
        if look > 0 && look.is_multiple_of(COUNTS_EVERY) {
            self.write_counts();
        }
        if look.is_multiple_of(ANCHOR_EVERY) {
            self.anchor();
        }
        if look.is_multiple_of(COUNTS_EVERY) {
            self.retire();
        }
        self.look_for_file();
        self.sync();
    }

    fn write_counts(&self) {
        let lines = self.tallies().take();
        for mut line in lines {
            self.writer().write(&self.options, &mut line);
        }
    }

    /// The line that was written last, also to stderr.
    fn end(&self) -> Option<TrailEnd> {
        let writer = self.writer();
        let end = writer.end()?;
        let (seq, hash) = (end.seq.checked_sub(1)?, end.hash.clone());
        Some(TrailEnd { server: self.options.server.clone(), seq, hash })
    }

    /// Tells the log the last hash.
    fn anchor(&self) {
        if let Some(TrailEnd { seq, hash, .. }) = self.end() {
            tracing::info!(seq, hash, "the last line of the trail");
        }
    }

    fn retire(&self) {
        let retired = self.writer().files().map(|files| files.retire(SystemClock.now()));
        match retired {
            Some(Ok(files)) if !files.is_empty() => {
                tracing::info!(files = files.join(", "), "old files of the trail were deleted");
            }
            Some(Err(why)) => tracing::warn!(%why, "an old file of the trail cannot be deleted"),
            _ => {}
        }
    }

    fn look_for_file(&self) {
        let lost = self.writer().files().and_then(TrailFiles::leave_lost_file);
        if let Some(file) = lost {
            tracing::error!(file, "a file of the trail was changed or removed by somebody else");
            let lost = TrailLine::of("trail_file_lost").saying(file);
            self.writer().write(&self.options, &mut lost.clone());
        }
    }

    fn sync(&self) {
        let unsynced = self.writer().files().and_then(TrailFiles::unsynced);
        let Some(file) = unsynced else { return };
        // Outside of the lock: no line waits for the disk.
        if let Err(why) = file.sync_data() {
            tracing::error!(%why, "the trail cannot be synced");
            if let Some(files) = self.writer().files() {
                files.not_synced();
            }
        }
    }
}

impl fmt::Debug for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(kept) => write!(f, "Trail({:?})", kept.options.place),
            None => f.write_str("Trail(none)"),
        }
    }
}
