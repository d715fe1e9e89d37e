//! The tables, their format number, and the way from an older format to this one.
//!
//! The format number (`user_version`) stands for the tables and for the bytes in them. Each step
//! goes from one number to the next; all steps that are needed run in one transaction. `store` keeps
//! its form for ever, so that any release can say who wrote a newer one.

use rusqlite::{Connection, OpenFlags};

use crate::compact;
use crate::error::OpenError;
use crate::folder::Folder;
use crate::options::{Location, Options};

/// Marks the file as ours: "tnre".
const APPLICATION: i64 = 0x746e_7265;

/// Below it the log of several connections could corrupt the store.
const SQLITE_MIN: i32 = 3_051_003;

/// Pages of 4 KiB that the log may have before its content goes into the store. Large, because
/// pages of jobs that live are written many times and need to go there once.
const LOG_PAGES: i64 = 8_192;
/// Of a folder that may take only so many bytes, the log is this part at most.
const LOG_PART: u64 = 8;
/// The size of a page, which is SQLite's default.
pub(crate) const PAGE_BYTES: u64 = 4_096;

/// A step from one format to the next, in SQL.
pub(crate) type Step = &'static str;

/// From nothing to format 1, and so on.
pub(crate) const STEPS: &[Step] = &[
    "
    -- Small facts about the store itself; this table never changes its form.
    CREATE TABLE store(
        key TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- What a job is: written with its push, and then hardly ever.
    CREATE TABLE job(
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        queue TEXT NOT NULL,
        kind TEXT NOT NULL,
        shape BLOB NOT NULL,
        labels TEXT,
        payload TEXT NOT NULL
    ) STRICT;

    -- How it goes: written with every step of its life, so the rows are small, and none of these
    -- writes touches a page with payloads.
    CREATE TABLE life(
        seq INTEGER PRIMARY KEY,
        ns TEXT NOT NULL,
        state INTEGER NOT NULL,
        until INTEGER,
        class INTEGER,
        bytes INTEGER,
        life BLOB NOT NULL,
        error TEXT,
        progress TEXT,
        result TEXT
    ) STRICT;
    -- Finished jobs in the order in which they go. Ids of finished jobs are found by memory, so no
    -- index of ids is paid for with every push.
    CREATE INDEX life_over ON life(ns, class, until) WHERE until IS NOT NULL;
    -- Failed and cancelled jobs, newest first: what people look for among many that went well.
    CREATE INDEX life_unwell ON life(seq) WHERE state >= 6;

    CREATE TABLE job_error(
        seq INTEGER NOT NULL,
        n INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        at INTEGER NOT NULL,
        error TEXT NOT NULL,
        lost INTEGER NOT NULL,
        PRIMARY KEY(seq, n)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE row(
        ns TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY(ns, kind, key)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE resource_data(
        ns TEXT NOT NULL,
        pool TEXT NOT NULL,
        id TEXT NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY(ns, pool, id)
    ) STRICT, WITHOUT ROWID;
",
    "
    -- The row of a unique key says what became of its job, where that is finished.
",
    "
    -- A life ends with the length of a row of undelivered leases, a lease with whose it is and whether
    -- it began its job; `lost` of an error may be 2, undelivered. Older rows are read as they are.
",
];

/// The only connection that writes.
pub(crate) fn open_writer(folder: &Folder, options: &Options) -> Result<Connection, OpenError> {
    let failed = |why: rusqlite::Error| store_error(folder, why);
    if rusqlite::version_number() < SQLITE_MIN {
        return Err(OpenError::System(format!(
            "SQLite {} is too old: its log could corrupt the store",
            rusqlite::version()
        )));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(folder.database(), flags).map_err(failed)?;
    check_ours(&conn, folder)?;
    // A commit appends to the log, which is synced by us: see `sync`. SQLite still syncs around the
    // moves from the log into the store.
    let synchronous = match options.location {
        Location::Memory => "OFF",
        Location::Folder(_) => "NORMAL",
    };
    let pragmas = [
        // Before anything is in the file. One that has something gets it by a `VACUUM` alone.
        ("auto_vacuum", "INCREMENTAL"),
        ("journal_mode", "WAL"),
        ("synchronous", synchronous),
        ("temp_store", "MEMORY"),
        ("mmap_size", "0"),
        // In KiB. Not more: SQLite looks through the whole cache with each commit after which its
        // tree was rebalanced; what is not in it is in the system's.
        ("cache_size", "-16384"),
        ("busy_timeout", "5000"),
        ("trusted_schema", "OFF"),
    ];
    for (name, value) in pragmas {
        conn.pragma_update_and_check(None, name, value, |_| Ok(()))
            .or_else(no_rows)
            .map_err(failed)?;
    }
    let log_pages = options.max_bytes.map_or(LOG_PAGES, |max| {
        LOG_PAGES.min(i64::try_from(max / LOG_PART / PAGE_BYTES).unwrap_or(LOG_PAGES))
    });
    conn.pragma_update(None, "wal_autocheckpoint", log_pages).or_else(no_rows).map_err(failed)?;
    let mode: String =
        conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(failed)?;
    if mode != "wal" {
        let why =
            format!("its log mode is {mode:?}, and \"wal\" cannot be had on this file system");
        return Err(OpenError::Store { folder: folder.path().to_owned(), why });
    }
    migrate(&mut conn, folder, STEPS, env!("CARGO_PKG_VERSION"))?;
    compact::make_shrinkable(&conn, folder).map_err(failed)?;
    if let Some(pages) = options.page_max {
        conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).map_err(failed)?;
    }
    Ok(conn)
}

/// Some pragmas answer a row and some do not.
fn no_rows(why: rusqlite::Error) -> rusqlite::Result<()> {
    match why {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        other => Err(other),
    }
}

/// A connection that can only read.
pub(crate) fn open_reader(folder: &Folder) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(folder.database(), flags)?;
    for (name, value) in [("temp_store", "MEMORY"), ("mmap_size", "0"), ("cache_size", "-8192")] {
        conn.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(no_rows)?;
    }
    conn.busy_timeout(std::time::Duration::from_secs(5))?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

pub(crate) fn store_error(folder: &Folder, why: rusqlite::Error) -> OpenError {
    OpenError::Store { folder: folder.path().to_owned(), why: why.to_string() }
}

/// An empty file is ours to be; any other must say that it is.
fn check_ours(conn: &Connection, folder: &Folder) -> Result<(), OpenError> {
    let foreign = || OpenError::Foreign { folder: folder.path().to_owned() };
    let number = |name: &str| -> rusqlite::Result<i64> {
        conn.pragma_query_value(None, name, |row| row.get(0))
    };
    let application = number("application_id").map_err(|why| match why.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => foreign(),
        _ => store_error(folder, why),
    })?;
    let pages = number("page_count").map_err(|why| store_error(folder, why))?;
    if application == APPLICATION || application == 0 && pages == 0 {
        return Ok(());
    }
    Err(foreign())
}

/// Brings a store to the format of `steps`, or refuses a newer one.
pub(crate) fn migrate(
    conn: &mut Connection,
    folder: &Folder,
    steps: &[Step],
    release: &str,
) -> Result<(), OpenError> {
    let known = steps.len() as i64;
    let format: i64 = conn
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|why| store_error(folder, why))?;
    if format > known {
        let written_by = conn
            .query_row("SELECT value FROM store WHERE key = 'written_by'", [], |row| row.get(0))
            .unwrap_or_else(|_| format!("with format {format}"));
        let folder = folder.path().to_owned();
        return Err(OpenError::Newer { folder, format, known, written_by });
    }
    if format == known {
        return Ok(());
    }
    let mut step = || -> rusqlite::Result<()> {
        let todo = steps.get(format as usize..).unwrap_or_default();
        let step = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for sql in todo {
            step.execute_batch(sql)?;
        }
        step.pragma_update(None, "user_version", known)?;
        step.pragma_update(None, "application_id", APPLICATION)?;
        step.execute(
            "INSERT INTO store(key, value) VALUES('written_by', ?1)
             ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            [release],
        )?;
        step.commit()
    };
    step().map_err(|why| store_error(folder, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(steps: &[Step]) -> (tempfile::TempDir, Folder, Connection) {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(&Location::Folder(dir.path().join("s"))).unwrap();
        let mut conn = Connection::open(folder.database()).unwrap();
        check_ours(&conn, &folder).unwrap();
        migrate(&mut conn, &folder, steps, "1.0.0").unwrap();
        (dir, folder, conn)
    }

    const FIRST: &[Step] = &[STEPS[0]];
    const NEXT: &[Step] =
        &[STEPS[0], "ALTER TABLE job ADD COLUMN colour TEXT; UPDATE job SET colour = 'red'"];

    #[test]
    fn an_older_store_is_brought_forward_in_one_step() {
        let (_dir, folder, mut conn) = made(FIRST);
        let job = "INSERT INTO job(seq, id, queue, kind, shape, payload)
                   VALUES(1, 'i', 'q', '', x'00', 'null')";
        conn.execute(job, []).unwrap();
        let broken: &[Step] = &[STEPS[0], NEXT[1], "CREATE TABLE store(x)"];
        assert!(migrate(&mut conn, &folder, broken, "3.0.0").is_err());
        let format = |conn: &Connection| -> i64 {
            conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
        };
        assert_eq!(format(&conn), 1, "a step that fails leaves the store as it was");
        migrate(&mut conn, &folder, NEXT, "2.0.0").unwrap();
        assert_eq!(format(&conn), 2);
        let colour: String =
            conn.query_row("SELECT colour FROM job", [], |row| row.get(0)).unwrap();
        assert_eq!(colour, "red");
    }

    #[test]
    fn a_newer_store_is_refused_and_names_who_can_open_it() {
        let (_dir, folder, mut conn) = made(FIRST);
        migrate(&mut conn, &folder, NEXT, "2.7.1").unwrap();
        let no = migrate(&mut conn, &folder, FIRST, "1.0.0").unwrap_err();
        assert!(matches!(&no, OpenError::Newer { format: 2, known: 1, .. }), "{no:?}");
        assert!(no.to_string().contains("open it with tenure 2.7.1 or newer"), "{no}");
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let (_dir, folder, conn) = made(STEPS);
        conn.pragma_update(None, "application_id", 17).unwrap();
        assert!(matches!(check_ours(&conn, &folder), Err(OpenError::Foreign { .. })));
        drop(conn);
        std::fs::write(folder.database(), "a shopping list, which is long enough to be read")
            .unwrap();
        let conn = Connection::open(folder.database()).unwrap();
        assert!(matches!(check_ours(&conn, &folder), Err(OpenError::Foreign { .. })));
    }
}
