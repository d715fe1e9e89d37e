//! Backups and restores: whole or refused, and nothing of the time before a restore changes anything after it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::lease::{Ending, LeaseView};
use tenure_core::names::{JobRef, Namespace};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::time::{Moment, Span};
use tenure_engine::backup::{
    BackupError, BackupWriter, CheckedBackup, CheckedFile, NotRestored, RestorePlan, RestoreReport,
    check, check_file, restore,
};
use tenure_engine::copy::{CopyError, CopyNews, CopyWatch, thaw_target};
use tenure_engine::{CopyFolder, Embedded, OpenError, Options, Seal};
use tenure_engine_api::Clock;
use tenure_testkit::TestClock;

use crate::store::calls::*;

/// Watches a restore: its waits pass on the clock, and it may be stopped.
struct Watching {
    clock: Arc<TestClock>,
    waited: Vec<Span>,
    way: Way,
}

/// The way of a restore.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Waits,
    DoesNotWait,
    /// It is stopped while the target is filled.
    Stops,
}

impl CopyWatch for Watching {
    fn told(&mut self, _: &CopyNews) -> Result<(), CopyError> {
        if self.way == Way::Stops { Err(CopyError::Stopped) } else { Ok(()) }
    }

    fn wait(&mut self, long: Span) {
        self.clock.advance(long);
        self.waited.push(long);
    }
}

fn written(backup: BackupWriter) -> Vec<u8> {
    backup.map(Result::unwrap).collect::<Vec<_>>().concat()
}

/// Writes the backup of an engine to a file.
pub fn saved(engine: &Embedded, file: &Path) -> PathBuf {
    fs::write(file, written(engine.backup().unwrap())).unwrap();
    file.to_owned()
}

/// Restores a file into a folder; with how long it waited.
pub fn restored(
    file: &Path,
    folder: &Path,
    clock: &Arc<TestClock>,
    way: Way,
) -> (Result<RestoreReport, NotRestored>, Vec<Span>) {
    restored_by(file, folder, clock, (way, Seal::none()))
}

/// The same with keys.
pub fn restored_by(
    file: &Path,
    folder: &Path,
    clock: &Arc<TestClock>,
    (way, seal): (Way, Seal),
) -> (Result<RestoreReport, NotRestored>, Vec<Span>) {
    let target = CopyFolder::target(folder).unwrap();
    let mut watching = Watching { clock: clock.clone(), waited: Vec::new(), way };
    let (from, to) = ("backup".to_owned(), "target".to_owned());
    let plan = RestorePlan { from, to, seal, waits: way == Way::Waits };
    let checked = CheckedFile::open(file).unwrap();
    let done = restore(checked, &target, &plan, &**clock, &mut watching);
    (done, watching.waited)
}

/// Restores a file without a wait, in which the clock would go on, and opens the store.
fn reopened(file: &Path, folder: &Path, options: Options, clock: &Arc<TestClock>) -> Embedded {
    restored(file, folder, clock, Way::DoesNotWait).0.unwrap();
    Embedded::open(Options {
        location: tenure_engine::Location::Folder(folder.to_owned()),
        ..options
    })
    .unwrap()
}

async fn hold(engine: &Embedded, namespace: &Namespace, name: &str) -> LeaseView {
    let lease = Lease { ttl: Span::from_s(20), ..Lease::needs(vec![lock(name)]) };
    run_in(engine, namespace, lease).await.unwrap().leases.remove(0)
}

#[test]
fn a_restored_store_has_all_that_was_answered_before_the_backup() {
    let here = Here::new();
    let before = block(async {
        push(&here.engine, vec![job("a"), job("b"), job("c")]).await;
        let lease = take(&here.engine, 1).await.remove(0);
        settle(&here.engine, vec![done(&lease)]).await;
        let file = saved(&here.engine, &here.dir.join("backup"));
        push(&here.engine, vec![job("later")]).await;
        assert_eq!(check_file(&file).unwrap().head.jobs, 3);
        run(&here.engine, ListJobs::default()).await.unwrap().items
    });
    let file = here.dir.join("backup");
    let options = options(&here.dir, &here.clock);
    let engine = reopened(&file, &here.dir.join("new"), options, &here.clock);
    block(async {
        let after = run(&engine, ListJobs::default()).await.unwrap().items;
        assert_eq!(after[..], before[1..], "all except the one that came later");
        let job = JobRef::Id("a".parse().unwrap());
        assert_eq!(run(&engine, GetJob { job }).await.unwrap().result, Some(text("fine")));
        assert!(run(&engine, Audit { deep: true }).await.unwrap().ok);
    });
}

#[test]
fn no_lease_of_the_time_before_a_restore_settles_anything() {
    let here = Here::new();
    let other = Namespace::parse("other").unwrap();
    let file = here.dir.join("backup");
    let (old, fence) = block(async {
        push(&here.engine, vec![job("a"), job("b")]).await;
        let mut old = take(&here.engine, 1).await;
        old.push(hold(&here.engine, &Namespace::main(), "x").await);
        old.push(hold(&here.engine, &other, "x").await);
        saved(&here.engine, &file);
        // The store goes on: its job fails and runs again, others begin.
        settle(&here.engine, vec![ending(&old[0], Ending::Released)]).await;
        push(&here.engine, vec![job("later")]).await;
        old.extend(take(&here.engine, 3).await);
        old.push(hold(&here.engine, &other, "y").await);
        assert_eq!(old.len(), 7);
        let fence = old.iter().map(|lease| lease.fence).max().unwrap();
        (old, fence)
    });
    // The machine of the restore has a clock that is behind.
    let now = here.clock.now();
    let clock = Arc::new(TestClock::at(now.minus(Span::from_s(5))));
    let engine = reopened(&file, &here.dir.join("new"), options(&here.dir, &clock), &clock);
    block(async {
        for namespace in [Namespace::main(), other.clone()] {
            let items: Vec<_> = old.iter().map(|lease| ending(lease, Ending::Released)).collect();
            let settled = run_in(&engine, &namespace, Settle::of(items)).await.unwrap().settled;
            let codes: Vec<_> = settled.iter().map(|one| one.code).collect();
            assert_eq!(codes, vec![Some(Code::LeaseLost); 7], "in {namespace}");
            let new = hold(&engine, &namespace, "new").await;
            assert!(new.fence > fence, "in {namespace}: {} {fence}", new.fence);
        }
        // Each job of the backup runs again, and no other.
        let mut again = take(&engine, 9).await;
        again.retain(|lease| lease.fence > fence);
        assert_eq!(again.len(), 2);
        settle(&engine, again.iter().map(done).collect()).await;
        assert!(run(&engine, Audit { deep: true }).await.unwrap().ok);
    });
}

#[test]
fn a_restore_waits_for_the_ttl_of_known_and_of_later_leases() {
    let here = Here::new();
    let main = Namespace::main();
    let none = here.dir.join("none");
    saved(&here.engine, &none);
    let (held, ended) = (here.dir.join("held"), here.dir.join("ended"));
    block(async {
        let lease = hold(&here.engine, &main, "x").await;
        saved(&here.engine, &held);
        settle(&here.engine, vec![ending(&lease, Ending::Released)]).await;
        // Nothing is held, but a lease like the last one may be granted after the backup.
        saved(&here.engine, &ended);
    });
    for (file, waited) in [(none, None), (held, Some(20)), (ended, Some(20))] {
        let folder = file.with_extension("store");
        let (done, waits) = restored(&file, &folder, &here.clock, Way::Waits);
        assert_eq!(waits, waited.map(Span::from_s).into_iter().collect::<Vec<_>>());
        assert_eq!(done.unwrap().moved.released, u64::from(file.ends_with("held")));
    }
}

#[test]
fn a_damaged_cut_foreign_or_newer_file_is_refused() {
    let here = Here::new();
    block(push(&here.engine, vec![job("a"), job("b")]));
    let whole = written(here.engine.backup().unwrap());
    let CheckedBackup { head, bytes } = check(&*whole).unwrap();
    assert_eq!((head.jobs, bytes), (2, whole.len() as u64));
    for cut in 0..whole.len() {
        let why = check(&whole[..cut]).unwrap_err();
        assert!(matches!(why, BackupError::Cut { .. } | BackupError::Foreign), "{cut}: {why}");
        assert!(cut == 0 || !matches!(why, BackupError::Foreign), "{cut}: {why}");
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(check(&*damaged).is_err(), "byte {at}");
    }
    // The first line has no checksum.
    for (at, bit) in (0..b"tenure backup 1\n".len()).flat_map(|at| (0..8).map(move |bit| (at, bit)))
    {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << bit;
        assert!(check(&*damaged).is_err(), "bit {bit} of byte {at}");
    }
    for first in ["0", "+1", "01", "", "1 ", "-1"] {
        let other = [format!("tenure backup {first}\n").as_bytes(), &whole[16..]].concat();
        assert!(matches!(check(&*other), Err(BackupError::Foreign)), "{first:?}");
    }
    let longer = [&whole[..], b"x"].concat();
    assert!(matches!(check(&*longer), Err(BackupError::Damaged { .. })));
    let newer = [b"tenure backup 2", &whole[15..]].concat();
    assert!(matches!(check(&*newer), Err(BackupError::Newer)));
    for foreign in [&b"SQLite format 3\0"[..], b"tenure backup x\n", b"\xff\xfe", b"\n"] {
        assert!(matches!(check(foreign), Err(BackupError::Foreign)), "{foreign:?}");
    }
}

#[test]
fn a_restore_that_broke_off_serves_nobody_and_begins_again() {
    let here = Here::new();
    block(push(&here.engine, vec![job("a")]));
    let file = saved(&here.engine, &here.dir.join("backup"));
    let other = saved(&here.engine, &here.dir.join("other"));
    let folder = here.dir.join("new");
    let options = || Options {
        location: tenure_engine::Location::Folder(folder.clone()),
        ..options(&here.dir, &here.clock)
    };
    let stopped = restored(&file, &folder, &here.clock, Way::Stops).0;
    assert!(matches!(stopped, Err(NotRestored::Target(CopyError::Stopped))));
    assert!(matches!(Embedded::open(options()), Err(OpenError::Unfinished { .. })));
    let refused = restored(&other, &folder, &here.clock, Way::Waits).0.unwrap_err();
    assert!(refused.to_string().contains("restore of another backup"), "{refused}");
    restored(&file, &folder, &here.clock, Way::Waits).0.unwrap();
    let engine = Embedded::open(options()).unwrap();
    assert_eq!(block(run(&engine, ListJobs::default())).unwrap().items.len(), 1);
    drop(engine);
    for used in [&file, &other] {
        let refused = restored(used, &folder, &here.clock, Way::Waits).0;
        assert!(matches!(refused, Err(NotRestored::Target(CopyError::No { .. }))));
    }
    // Given up, the target is empty again.
    let second = here.dir.join("second");
    assert!(restored(&file, &second, &here.clock, Way::Stops).0.is_err());
    assert_eq!(thaw_target(&CopyFolder::target(&second).unwrap(), "second"), Ok(true));
    restored(&other, &second, &here.clock, Way::Waits).0.unwrap();
}

#[test]
fn a_machine_whose_clock_is_behind_the_backup_restores_nothing() {
    let here = Here::new();
    let file = saved(&here.engine, &here.dir.join("backup"));
    let behind = Arc::new(TestClock::at(Moment::from_us(1)));
    let (refused, _) = restored(&file, &here.dir.join("new"), &behind, Way::Waits);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("the clock of this machine"), "{refused}");
}

#[test]
fn a_folder_without_a_server_is_backed_up_too() {
    let mut here = Here::new();
    block(push(&here.engine, vec![job("a")]));
    here.engine.crash();
    let folder = CopyFolder::source(&here.dir.join("store")).unwrap();
    let whole = written(folder.backup().unwrap());
    let head = check(&*whole).unwrap().head;
    assert_eq!(head.jobs, 1);
    // A server that opens it next may grant leases which the backup does not know.
    assert_eq!(head.largest_ttl, Span::from_s(30));
    drop(folder);
    here.reopen();
}

#[test]
fn a_restore_reads_the_file_that_was_checked_and_no_pipe() {
    let here = Here::new();
    block(push(&here.engine, vec![job("a")]));
    let file = saved(&here.engine, &here.dir.join("backup"));
    let checked = CheckedFile::open(&file).unwrap();
    // Another file gets its name meanwhile.
    fs::rename(&file, here.dir.join("older")).unwrap();
    fs::write(&file, "no backup").unwrap();
    let target = CopyFolder::target(&here.dir.join("new")).unwrap();
    let mut watching = Watching { clock: here.clock.clone(), waited: Vec::new(), way: Way::Waits };
    let (from, to, seal) = ("backup".to_owned(), "target".to_owned(), Seal::none());
    let plan = RestorePlan { from, to, seal, waits: true };
    let done = restore(checked, &target, &plan, &*here.clock, &mut watching).unwrap();
    assert_eq!(done.head.jobs, 1);
    for other in [&*here.dir.join("new"), Path::new("/dev/null")] {
        assert!(matches!(CheckedFile::open(other), Err(BackupError::Irregular)), "{other:?}");
    }
}
