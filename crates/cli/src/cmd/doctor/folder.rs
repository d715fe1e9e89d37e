//! Is this folder fit to hold a store: room, the time of a sync, its format, and the process that has it open.
//!
//! It never opens the store. To measure a sync it writes a file of its own, which is removed at the end.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::finding::{Examined, Finding, RuleVerdict, look, ok, wrong};
use crate::exit::{Failure, NO};
use crate::output::size;

const DATABASE: &str = "tenure.db";
/// The application id in the SQLite header of our stores.
const APPLICATION: u32 = 1_953_395_301;
/// How often a sync is measured; half of the times are below the reported one.
const SYNCS: usize = 10;
/// Bytes that each sync writes.
const SYNCED_BYTES: usize = 4_096;
/// From here on every answer waits noticeably.
const SYNC_SLOW: Duration = Duration::from_millis(20);
/// Less room than this may be gone within a minute of pushes.
const ROOM_MIN: u64 = 64 << 20;
const ROOM_FEW: u64 = 1 << 30;

/// Everything about a folder.
pub fn examined(folder: &Path) -> Result<Examined, Failure> {
    if !folder.is_dir() {
        return Err(Failure::new(NO, format!("there is no folder '{}'", folder.display()))
            .hint("create it with `tenure serve --store file:PATH`, or name another folder"));
    }
    let mut findings =
        vec![Finding::of("format", format(folder)), Finding::of("open", open(folder))];
    findings.extend(disk(folder));
    let store = format!("file:{}", folder.display());
    Ok(Examined { what: "folder", store, servers: Vec::new(), findings })
}

/// Findings about the disk below a folder.
pub fn disk(folder: &Path) -> [Finding; 2] {
    [Finding::of("room", room(folder)), Finding::of("sync", sync(folder))]
}

fn room(folder: &Path) -> RuleVerdict {
    let Ok(about) = rustix::fs::statvfs(folder) else {
        return look("cannot read how full the disk is", "check it with `df`");
    };
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    let all = about.f_blocks.saturating_mul(about.f_frsize);
    verdict_of_room(free, all)
}

fn verdict_of_room(free: u64, all: u64) -> RuleVerdict {
    let found = format!("{} of {} are free on its disk", size(free), size(all));
    let fix = "free some space, or keep finished jobs for a shorter time (retain, --retain-bytes)";
    match free {
        0..ROOM_MIN => wrong(format!("{found}: pushes will be refused soon"), fix),
        ROOM_MIN..ROOM_FEW => look(found, fix),
        _ => ok(found),
    }
}

fn sync(folder: &Path) -> RuleVerdict {
    match median_sync(folder) {
        Ok(median) => verdict_of_sync(median),
        Err(why) => look(
            format!("cannot measure the time of a sync: {why}"),
            "run doctor as the user of the server",
        ),
    }
}

fn verdict_of_sync(median: Duration) -> RuleVerdict {
    let found = format!("{:.2} ms, the median of {SYNCS}", median.as_secs_f64() * 1e3);
    if median <= SYNC_SLOW {
        ok(found)
    } else {
        look(
            format!("{found}: every answer waits that long"),
            "put the folder on a faster disk, or push, lease and settle many jobs with each call",
        )
    }
}

fn median_sync(folder: &Path) -> io::Result<Duration> {
    let mut file = tempfile::Builder::new().prefix(".doctor-").tempfile_in(folder)?;
    let mut took = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begin = Instant::now();
        file.write_all(&[0; SYNCED_BYTES])?;
        file.as_file().sync_data()?;
        took.push(begin.elapsed());
    }
    took.sort_unstable();
    Ok(took[SYNCS / 2])
}

/// Read from the header of the file, which SQLite documents; a new store may still have it in its log.
fn format(folder: &Path) -> RuleVerdict {
    let path = folder.join(DATABASE);
    let mut head = [0; 100];
    let read = File::open(&path).and_then(|mut file| {
        file.read_exact(&mut head)?;
        file.metadata()
    });
    let about = match read {
        Ok(about) => about,
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            return ok("there is no store in it yet");
        }
        Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => {
            return ok("the store in it is new: its format is not written yet");
        }
        Err(why) => {
            let found = format!("cannot read its store: {why}");
            return look(found, "run doctor as the user of the server");
        }
    };
    let number =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if !head.starts_with(b"SQLite format 3\0") || ![0, APPLICATION].contains(&number(68)) {
        return wrong(
            format!("\"{DATABASE}\" in it is not a store of Tenure"),
            "name another folder",
        );
    }
    match number(60) {
        0 => ok("the store in it is new: its format is not written yet"),
        format => ok(format!("format {format}, {}", size(about.len()))),
    }
}

fn open(folder: &Path) -> RuleVerdict {
    match holder(folder) {
        Some(pid) => {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let name = Some(name.trim()).filter(|name| !name.is_empty());
            let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
            ok(format!("process {pid}{name} has it open: use its address, not the folder"))
        }
        None => ok("no process has it open"),
    }
}

/// The process that has the lock of the store, as Linux lists it.
fn holder(folder: &Path) -> Option<u32> {
    let inode = std::fs::metadata(folder.join(DATABASE)).ok()?.ino();
    holder_of(inode, &std::fs::read_to_string("/proc/locks").ok()?)
}

fn holder_of(inode: u64, locks: &str) -> Option<u32> {
    let end = format!(":{inode}");
    let line = locks.lines().find(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("FLOCK") && words.nth(3).is_some_and(|file| file.ends_with(&end))
    })?;
    line.split_whitespace().nth(4)?.parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::doctor::finding::Severity;

    #[test]
    fn room_and_syncs_are_judged() {
        let (mib, gib) = (1 << 20, 1 << 30);
        for (free, level) in
            [(5 * gib, Severity::Ok), (500 * mib, Severity::Look), (10 * mib, Severity::Wrong)]
        {
            assert_eq!(verdict_of_room(free, 100 * gib).0, level);
        }
        assert_eq!(verdict_of_sync(Duration::from_millis(2)).0, Severity::Ok);
        assert_eq!(verdict_of_sync(Duration::from_millis(50)).0, Severity::Look);
    }

    #[test]
    fn a_folder_is_looked_at_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        for finding in examined(folder.path()).unwrap().findings {
            assert_ne!(finding.level, Severity::Wrong, "{finding:?}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        std::fs::write(folder.path().join(DATABASE), [b'x'; 200]).unwrap();
        assert_eq!(format(folder.path()).0, Severity::Wrong);
        assert_eq!(examined(&folder.path().join("none")).err().map(|no| no.code), Some(NO));
    }

    #[test]
    fn the_holder_of_a_lock_is_found_in_the_list() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fd:01:42 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 12 fd:01:142 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 fd:01:42 0 EOF\n";
        assert_eq!(holder_of(42, locks), Some(13));
        assert_eq!(holder_of(43, locks), None);
    }
}
