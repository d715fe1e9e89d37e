//! Tasks of the disk's thread beside batches: measures how much room there is, keeps the reserve,
//! moves the log into the store when room is short, and gives unused pages back to the
//! file system while no call comes.
//!
//! Each step is small, so that a batch that comes meanwhile waits for a few milliseconds at most. It
//! must never change the content of a row.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use crate::sqlite::capacity::reserve::Reserve;
use crate::sqlite::capacity::{Measured, Room};
use crate::sqlite::compact;
use crate::sqlite::folder::{Files, bytes_in, file_system};
use crate::sqlite::pages::PAGE_BYTES;

/// The longest age of a measurement, if little was written since.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// Measured again when pushes took this part of the room that was left.
const MEASURE_PART: i64 = 8;
/// The most bytes of the log while room is short; a longer one is moved into the store.
const SHORT_LOG: u64 = 1 << 20;
/// After this long without a write, the log is moved into the store, and pages are given back.
const IDLE: Duration = Duration::from_millis(500);
/// The rest between two steps of giving pages back.
const STEP_REST: Duration = Duration::from_millis(2);
/// Pages of one step. Each is read and written to the log, and its parent's entry is changed.
const STEP_PAGES: u32 = 64;
/// Unused pages that are kept for new rows: 4 MiB, or an eighth of the store.
const KEPT_PAGES: u64 = 1_024;
const KEPT_PART: u64 = 8;
/// The longest wait for readers of the log, before it is left as it is.
const READERS_MAX: Duration = Duration::from_millis(200);
/// The longest wait for a lock of SQLite's, as the connection was opened with.
const BUSY_MAX: Duration = Duration::from_secs(5);

pub(crate) struct Upkeep<'c> {
    conn: &'c Connection,
    files: &'c Files,
    /// `None` for a temporary store.
    reserve: Option<Reserve>,
    measured: Measured,
    at: Instant,
    /// Bytes that pushes could still write by that measurement.
    left: i64,
    /// `left` is less than the log may take before SQLite moves it into the store.
    short: bool,
    /// The time of the last batch.
    written: Instant,
    /// The store was made, or rebuilt, so that pages can be given back.
    gives_back: bool,
    /// Pages are being given back, until few are left.
    giving: bool,
    /// All pages that could be given back were, and nothing was written since.
    given: bool,
}

impl<'c> Upkeep<'c> {
    pub(crate) fn new(conn: &'c Connection, files: &'c Files) -> Self {
        Upkeep {
            conn,
            files,
            reserve: (!files.temporary).then(|| Reserve::of(&files.folder)),
            measured: Measured::default(),
            at: Instant::now(),
            left: i64::MAX,
            short: false,
            written: Instant::now(),
            gives_back: compact::is_shrinkable(conn).unwrap_or(false),
            giving: false,
            given: false,
        }
    }

    /// To be called first: measures, and makes the reserve if there is room for it.
    pub(crate) fn begin(&mut self, room: &Room) {
        self.measure(room);
        self.keep_reserve(room);
        if self.short {
            self.save_room(room);
        }
    }

    /// True if there is so little room that the log must be emptied often.
    pub(crate) fn is_short(&self) -> bool {
        self.short
    }

    /// How long the disk's thread may wait for a batch.
    pub(crate) fn patience(&self) -> Duration {
        if self.giving { STEP_REST } else { IDLE }
    }

    /// Follows the write of a batch: measures, if that is due, and moves the log into the store if room is short.
    pub(crate) fn batch_written(&mut self, room: &Room) {
        self.written = Instant::now();
        self.given = false;
        let spent = self.left.saturating_sub(room.left());
        if self.at.elapsed() < MEASURE_EVERY && spent < self.left / MEASURE_PART {
            return;
        }
        self.measure(room);
        if self.short {
            self.save_room(room);
        }
    }

    /// Called when no batch came within `patience`.
    pub(crate) fn idle(&mut self, room: &Room) {
        if self.at.elapsed() >= MEASURE_EVERY || self.giving || self.short {
            self.measure(room);
        }
        self.keep_reserve(room);
        if self.giving {
            self.give_back();
        } else if self.written.elapsed() >= IDLE {
            self.giving = self.gives_back && !self.given && self.unused_pages() > self.kept_pages();
            if !self.giving && self.measured.log > SHORT_LOG {
                self.empty_log();
                self.measure(room);
            }
        }
    }

    /// Makes room after a write failed for want of it; true if a retry may succeed.
    pub(crate) fn make_room(&mut self, room: &Room) -> bool {
        let released = self.reserve.as_ref().is_some_and(Reserve::release);
        let emptied = self.empty_log();
        self.measure(room);
        released || emptied
    }

    fn measure(&mut self, room: &Room) {
        let size = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
        let (free, total) = file_system(&self.files.folder);
        self.measured = Measured {
            free,
            total,
            store: size(&self.files.store),
            unused: self.unused_pages() * PAGE_BYTES,
            log: size(&self.files.log) + size(&self.files.index),
            journal: (!self.files.temporary).then(|| bytes_in(&self.files.journal)),
            // A store that wants no reserve lacks none.
            reserve: self.reserve.as_ref().map_or(u64::MAX, Reserve::bytes),
        };
        self.at = Instant::now();
        self.left = self.measured.left(room.max_bytes());
        let reserve = self.measured.reserve_wanted(room.max_bytes());
        self.short = self.left < 2 * i64::try_from(reserve).unwrap_or(i64::MAX / 2);
        room.set(&self.measured);
    }

    /// Moves the log into the store, and gives pages back, while batches go on.
    fn save_room(&mut self, room: &Room) {
        if self.gives_back && self.unused_pages() > 0 {
            self.give_pages();
        }
        if self.measured.log > SHORT_LOG {
            self.empty_log();
            self.measure(room);
        }
    }

    fn keep_reserve(&mut self, room: &Room) {
        let Some(reserve) = &self.reserve else { return };
        let wanted = self.measured.reserve_wanted(room.max_bytes());
        // Beyond the margin; the reserve is already taken off.
        if self.measured.reserve < wanted
            && self.measured.beyond_margin(room.max_bytes()) > 0
            && reserve.make(wanted).is_ok()
        {
            self.measure(room);
        }
    }

    fn unused_pages(&self) -> u64 {
        compact::unused_pages(self.conn).unwrap_or(0)
    }

    fn kept_pages(&self) -> u64 {
        if self.short { 0 } else { KEPT_PAGES.max(self.measured.store / PAGE_BYTES / KEPT_PART) }
    }

    fn give_back(&mut self) {
        let before = self.unused_pages();
        self.give_pages();
        let after = self.unused_pages();
        let over = after <= self.kept_pages() / 2 || after >= before;
        if over || self.short && self.measured.log > SHORT_LOG {
            // The file becomes shorter only now.
            self.empty_log();
        }
        if over {
            self.giving = false;
            // Not retried before the next write.
            self.given = true;
        }
    }

    fn give_pages(&self) {
        // A store that cannot give its pages back is only larger than it needs to be.
        let _ = compact::give_pages(self.conn, STEP_PAGES);
    }

    /// Moves all of the log into the store, unless readers need it; true if that was done. The log file is then
    /// truncated, except where the reserve is gone: there the space of that file is all that we have.
    fn empty_log(&self) -> bool {
        let reserved = self.reserve.as_ref().is_none_or(|reserve| reserve.bytes() > 0);
        let how = if reserved { "TRUNCATE" } else { "RESTART" };
        let _ = self.conn.busy_timeout(READERS_MAX);
        // The columns: 1 if a lock was in the way, pages in the log, pages that were moved.
        let moved = self.conn.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |row| {
            Ok(row.get::<_, i64>(0)? == 0 && row.get::<_, i64>(1)? == row.get::<_, i64>(2)?)
        });
        let _ = self.conn.busy_timeout(BUSY_MAX);
        moved.unwrap_or(false)
    }
}

/// True if a write failed for want of room; then nothing of it was stored.
pub(crate) fn is_full(why: &rusqlite::Error) -> bool {
    // The index of the log is a file too, and reports a full disk in another way.
    let of_index = why.sqlite_error().map(|error| error.extended_code)
        == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
    why.sqlite_error_code() == Some(ErrorCode::DiskFull) || of_index
}
