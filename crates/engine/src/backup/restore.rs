//! Restores a backup into an empty store: a copy ([`crate::copy`]) whose source is a file.
//!
//! 1. Read the whole file ([`check`](super::check)), and look at the target: refuse before anything is changed.
//! 2. Mark the target as this unfinished copy, so that it serves nobody.
//! 3. Fill it: every lease ends as released, and every fence is set past all that the store may have given since.
//! 4. Wait until nobody holds what the store granted before or after the backup: a ttl from the beginning of the restore.
//! 5. Open the target.
//!
//! A restore that breaks off leaves the mark. The same call begins again at 1, and `thaw_target` gives it up.

use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;

use serde::Serialize;
use tenure_core::time::{Moment, Span};
use tenure_engine_api::Clock;

use super::file::{BackupError, BackupHead};
use super::read::{BackupReader, CheckedBackup, READ_BYTES, check};
use crate::copy::{CopyCounts, CopyError, CopyNews, CopyWatch, Found, Frozen, Target};
use crate::seal::Seal;

/// By how much the clock of a restore may be behind that of the store at the backup: clocks of machines differ by less.
const CLOCK_BEHIND_MAX: Span = Span::from_s(10);

/// A restore that is to be made.
#[derive(Clone, Debug)]
pub struct RestorePlan {
    /// The file, as it is shown.
    pub from: String,
    /// The target, without a password.
    pub to: String,
    /// Opens the contents of the backup, and seals those of the target.
    pub seal: Seal,
    /// Waits until leases of the old store have expired. Otherwise its caller knows that all holders have stopped.
    pub waits: bool,
}

/// The result of a restore.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RestoreReport {
    #[serde(flatten)]
    pub head: BackupHead,
    /// The file, as it is shown.
    pub from: String,
    /// The target, without a password.
    pub to: String,
    pub moved: CopyCounts,
}

/// Why a restore stops.
#[derive(Debug, thiserror::Error)]
pub enum NotRestored {
    /// The file is not a whole backup that this release reads. The target was not touched.
    #[error("{0}")]
    Backup(#[from] BackupError),
    /// The target cannot be used, or refuses.
    #[error(transparent)]
    Target(#[from] CopyError),
}

/// A file that was read to its end, and is a whole backup: a restore reads the same file again, whatever has its name by
/// then.
#[derive(Debug)]
pub struct CheckedFile {
    file: File,
    checked: CheckedBackup,
}

impl CheckedFile {
    /// Reads a file to its end. Blocks.
    ///
    /// # Errors
    /// It is not a whole backup, this release does not read it, it cannot be read, or it is no regular file: a pipe
    /// cannot be read twice.
    pub fn open(path: &Path) -> Result<CheckedFile, BackupError> {
        // Asked first: a pipe is opened only once another process writes to it.
        if !std::fs::metadata(path)?.is_file() {
            return Err(BackupError::Irregular);
        }
        let mut file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(BackupError::Irregular);
        }
        let checked = check(BufReader::with_capacity(READ_BYTES, &mut file))?;
        Ok(CheckedFile { file, checked })
    }
}

/// Restores a backup that was checked, or begins a restore again that broke off. Blocks. `clock`: that of this machine.
///
/// # Errors
/// The target refuses it or cannot be used, the file was changed meanwhile, or the watcher stopped it.
pub fn restore(
    from: CheckedFile,
    target: &dyn Target,
    plan: &RestorePlan,
    clock: &dyn Clock,
    watch: &mut dyn CopyWatch,
) -> Result<RestoreReport, NotRestored> {
    let CheckedFile { mut file, checked } = from;
    let (began, head) = (clock.now(), checked.head);
    if head.made_at.since(began) > CLOCK_BEHIND_MAX {
        return Err(clock_is_behind(&head, began).into());
    }
    if let Some(key) = head.sealed.iter().find(|key| !plan.seal.has(key)) {
        return Err(
            CopyError::sealed(&format!("the backup is sealed with the key {key}, which")).into()
        );
    }
    decide(target, plan, &head)?;
    if !target.claim(&head.backup)? {
        return Err(already(plan).into());
    }
    file.rewind().map_err(BackupError::Unread)?;
    let rows = BackupReader::open(BufReader::with_capacity(READ_BYTES, file))?;
    if *rows.head() != head {
        let why = "it was changed after it was checked".to_owned();
        return Err(BackupError::Damaged { at: 0, why }.into());
    }
    let rows = Frozen::of_backup(rows, head.jobs, began).sealed(plan.seal.clone());
    let filled = target.fill(&head.backup, rows, watch)?;
    // Also leases that the backup does not know: the store went on granting, by the same ttls as before.
    let held_until = filled.held_until.max(Some(began.plus(head.largest_ttl)));
    let longest = held_until.map_or(Span::ZERO, |until| until.since(clock.now()));
    if plan.waits && longest > Span::ZERO {
        watch.told(&CopyNews::Waits(longest))?;
        watch.wait(longest);
    }
    target.open(&head.backup)?;
    let (from, to) = (plan.from.clone(), plan.to.clone());
    Ok(RestoreReport { head, from, to, moved: filled.moved })
}

/// Refuses a target that is not empty, before anything is changed.
fn decide(target: &dyn Target, plan: &RestorePlan, head: &BackupHead) -> Result<(), CopyError> {
    let to = &plan.to;
    match target.found()? {
        Found::Empty => Ok(()),
        // An earlier call of this restore broke off.
        Found::Part(copy) if copy == head.backup => Ok(()),
        Found::Part(_) => Err(CopyError::no(
            format!(
                "the target {to} is an unfinished copy, or an unfinished restore of another backup"
            ),
            format!("give it up first: tenure copy --thaw --to '{to}'"),
        )),
        Found::Whole(copy) if copy == head.backup => Err(already(plan)),
        Found::Whole(_) => Err(CopyError::no(
            format!("the target {to} was copied or restored before, and may be in use"),
            EMPTY,
        )),
        Found::Other(what) => {
            Err(CopyError::no(format!("the target {to} is not empty: {what}"), EMPTY))
        }
    }
}

const EMPTY: &str =
    "restore to a folder that does not exist, or to another name in the Redis: ?name=NAME";

fn already(plan: &RestorePlan) -> CopyError {
    CopyError::no(
        format!("{} was restored to {} already, which may be in use since", plan.from, plan.to),
        EMPTY,
    )
}

/// New fences would be below those that the store has given since the backup.
fn clock_is_behind(head: &BackupHead, now: Moment) -> CopyError {
    CopyError::no(
        format!(
            "the clock of this machine shows {now}, and the backup was made at {}",
            head.made_at
        ),
        "set the clock, then repeat the command: fences and leases follow it",
    )
}
