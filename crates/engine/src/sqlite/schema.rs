//! The tables, their format number, and the migration from older formats.
//!
//! The format number (`user_version`) covers the tables and the bytes in them. Each step
//! goes from one number to the next; all steps that are needed run in one transaction. The table `store`
//! never changes its form, so that any release can tell which one wrote a newer store.

use std::sync::OnceLock;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::OpenError;
use crate::options::{Location, Options};
use crate::sqlite::compact;
use crate::sqlite::folder::Folder;
use crate::sqlite::pages::PAGE_BYTES;
use crate::sqlite::sums;
use crate::sqlite::write::synced;

/// Marks the file as ours: "tnre".
const APPLICATION: i64 = 0x746e_7265;

/// In older versions the log of several connections could corrupt the store.
const SQLITE_MIN: i32 = 3_051_003;

/// Pages of 4 KiB in the log before they move into the store. Large, because the pages of
/// live jobs are written many times and need to move only once.
const LOG_PAGES: i64 = 8_192;
/// In a folder with a bound, the log takes at most this part of it.
const LOG_PART: u64 = 8;

/// A step from one format to the next, in SQL.
pub(crate) type Step = &'static str;

/// The format of a new folder; an older one is migrated to it when it is opened.
pub const FORMAT: usize = STEPS.len();

/// The first step makes format 1 from an empty file.
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
    -- Every row has a checksum, and so has each text that is written apart from its row; see `sums`.
    -- They stand before what may be long, so that a start reads no payload. Old rows get theirs here,
    -- so a row without one is damaged.
    ALTER TABLE job RENAME TO job_2;
    CREATE TABLE job(
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        queue TEXT NOT NULL,
        kind TEXT NOT NULL,
        shape BLOB NOT NULL,
        labels TEXT,
        sum INTEGER NOT NULL,
        payload_sum INTEGER NOT NULL,
        payload TEXT NOT NULL
    ) STRICT;
    INSERT INTO job
        SELECT job_2.seq, id, queue, kind, shape, labels,
            row_sum('job', job_2.seq, ns, id, queue, kind, shape, labels),
            text_sum('payload', job_2.seq, payload), payload
        FROM job_2 JOIN life ON life.seq = job_2.seq ORDER BY job_2.seq;
    DROP TABLE job_2;

    ALTER TABLE life RENAME TO life_2;
    DROP INDEX life_over;
    DROP INDEX life_unwell;
    CREATE TABLE life(
        seq INTEGER PRIMARY KEY,
        ns TEXT NOT NULL,
        state INTEGER NOT NULL,
        until INTEGER,
        class INTEGER,
        bytes INTEGER,
        life BLOB NOT NULL,
        sum INTEGER NOT NULL,
        error TEXT,
        error_sum INTEGER,
        progress TEXT,
        progress_sum INTEGER,
        result_sum INTEGER,
        result TEXT
    ) STRICT;
    INSERT INTO life
        SELECT seq, ns, state, until, class, bytes, life,
            row_sum('life', seq, state, until, class, bytes, life),
            error, text_sum('error', seq, error), progress, text_sum('progress', seq, progress),
            text_sum('result', seq, result), result
        FROM life_2 ORDER BY seq;
    DROP TABLE life_2;
    CREATE INDEX life_over ON life(ns, class, until) WHERE until IS NOT NULL;
    CREATE INDEX life_unwell ON life(seq) WHERE state >= 6;

    ALTER TABLE job_error ADD COLUMN sum INTEGER;
    UPDATE job_error SET sum = row_sum('job_error', seq, n, attempt, at, error, lost);
    ALTER TABLE row ADD COLUMN sum INTEGER;
    UPDATE row SET sum = row_sum('row', ns, kind, key, value);
    ALTER TABLE resource_data ADD COLUMN sum INTEGER;
    UPDATE resource_data SET sum = row_sum('resource_data', ns, pool, id, data);
",
    "
    -- Rows of schedules and of those of their jobs that are long, both in the machine's codec for text, and of the
    -- versions of synced sets. A life ends with how often the content of its job changed; that of a job with a unique
    -- key with the bound of its wait, and when the wait began; then with the schedule that made its job, and with what
    -- it has to do with other jobs. Older rows are read as they are. What a job belongs to stands in its life; the column
    -- is there to find its others.
    ALTER TABLE job ADD COLUMN flow TEXT;
    CREATE INDEX job_flow ON job(flow, seq) WHERE flow IS NOT NULL;

    -- What happened in a namespace: an entry holds the events of one batch, from its first number to its last.
    CREATE TABLE stream(
        ns TEXT PRIMARY KEY,
        life INTEGER NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        bytes INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE event(
        ns TEXT NOT NULL,
        last INTEGER NOT NULL,
        first INTEGER NOT NULL,
        sum INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY(ns, last)
    ) STRICT;
",
    "
    -- The trace that a job was pushed in. It has no checksum: one that is not well formed is as none, and all that it
    -- decides is where a run is shown in a tracing system. Settings of a queue may say how long a lost job waits.
    ALTER TABLE job ADD COLUMN trace TEXT;
",
    "
    -- Rows of pushes that replaced the content of a job, by their ids.
",
    "
    -- The row of a resource that a sync dropped while it was banned or rested stays, and says when that was. Events of
    -- progress.
",
    "
    -- Which jobs the entries of events are about, so that the events of one job are found among all. Places are a hash of
    -- a job and how far behind `first` an entry begins, four bytes each, in their order. A row that is missing or not what
    -- was written makes reading slower, and nothing else.
    CREATE TABLE event_jobs(
        ns TEXT NOT NULL,
        last INTEGER NOT NULL,
        first INTEGER NOT NULL,
        sum INTEGER NOT NULL,
        places BLOB NOT NULL,
        PRIMARY KEY(ns, last)
    ) STRICT;
",
    // The tables stay. The rows may lack entries of the journal beside them, and an older release does not know that journal.
    "",
    // The tables stay. Contents may be sealed, and an older release would hand them out as they are.
    "",
    // The tables stay. Events may name their callers, and an older release would take such an entry for a damaged one.
    "",
    // The tables stay. The frames of the journal beside them name the longest ttl, and their checksums begin with a number of
    // its own: to an older release it would be empty.
    "",
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
    if let Some(lacks) = folder.lost_store() {
        incomplete(folder, lacks, options.accept_loss)?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(folder.database(), flags).map_err(failed)?;
    // A refused store stays as it is, with its log.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    plan_once(&conn).map_err(failed)?;
    // A new writer is made for each page of a copy, and of a journal.
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    check_ours(&conn, folder, options.accept_loss)?;
    // A commit appends to the log, which we sync at each checkpoint of the journal. SQLite still syncs around the moves
    // from the log into the store.
    // Deleted data of a folder is overwritten, also where whole pages become free; a temporary store
    // leaves no file.
    let (synchronous, overwrites) = match options.location {
        Location::Memory => ("OFF", "OFF"),
        Location::Folder(_) => ("NORMAL", "ON"),
    };
    let pragmas = [
        // Must come before the first table. A store with content needs a `VACUUM` for it.
        ("auto_vacuum", "INCREMENTAL"),
        ("journal_mode", "WAL"),
        ("synchronous", synchronous),
        ("temp_store", "MEMORY"),
        ("mmap_size", "0"),
        // In KiB. Not more: SQLite scans its whole cache at each commit that rebalanced its
        // tree; the system's cache has the other pages.
        ("cache_size", "-16384"),
        ("busy_timeout", "5000"),
        ("trusted_schema", "OFF"),
        ("secure_delete", overwrites),
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
    if tables(&conn).map_err(failed)? != *expected().map_err(failed)? {
        let why = format!("its tables are not those of format {FORMAT}");
        return Err(OpenError::Store { folder: folder.path().to_owned(), why });
    }
    // A change of a job recomputes the checksum of its row in SQL.
    sums::register(&conn).map_err(failed)?;
    compact::make_shrinkable(&conn, folder).map_err(failed)?;
    if let Some(pages) = options.page_max {
        conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).map_err(failed)?;
    }
    Ok(conn)
}

/// The declarations of the tables and indexes. A flipped bit there changes the meaning of rows.
fn tables(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut all = conn.prepare("SELECT coalesce(sql, '') FROM sqlite_schema ORDER BY name")?;
    all.query_map([], |row| row.get(0))?.collect()
}

/// The result of [`tables`] for a store of this release.
fn expected() -> rusqlite::Result<&'static Vec<String>> {
    static EXPECTED: OnceLock<Vec<String>> = OnceLock::new();
    if EXPECTED.get().is_none() {
        let conn = Connection::open_in_memory()?;
        sums::register(&conn)?;
        for step in STEPS {
            conn.execute_batch(step)?;
        }
        let _ = EXPECTED.set(tables(&conn)?);
    }
    Ok(EXPECTED.get_or_init(Vec::new))
}

/// Some pragmas return a row, others do not.
fn no_rows(why: rusqlite::Error) -> rusqlite::Result<()> {
    match why {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        other => Err(other),
    }
}

/// The store is accepted: its log moves into it when the last connection is closed.
pub(crate) fn may_move_log(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map(drop)
}

/// Prepared statements that a connection keeps: more than any connection has.
const STATEMENTS: usize = 64;

/// Plans statements by their text alone, when they are prepared. Otherwise SQLite plans them again
/// whenever other values are bound, to look the values up in statistics that we never make.
fn plan_once(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Opens a connection that can only read.
pub(crate) fn open_reader(folder: &Folder) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(folder.database(), flags)?;
    plan_once(&conn)?;
    for (name, value) in [("temp_store", "MEMORY"), ("mmap_size", "0"), ("cache_size", "-8192")] {
        conn.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(no_rows)?;
    }
    conn.busy_timeout(std::time::Duration::from_secs(5))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

pub(crate) fn store_error(folder: &Folder, why: rusqlite::Error) -> OpenError {
    OpenError::Store { folder: folder.path().to_owned(), why: why.to_string() }
}

/// Refuses a store that lacks one of its files, unless the operator accepts the loss.
fn incomplete(folder: &Folder, lacks: &'static str, accept_loss: bool) -> Result<(), OpenError> {
    let synced = synced::said(folder);
    let no = OpenError::Incomplete { folder: folder.path().to_owned(), lacks, synced };
    if !accept_loss {
        return Err(no);
    }
    tracing::warn!("accepted: {no}");
    Ok(())
}

/// Checks that the file is ours. One without tables may become ours; any other must say that it is ours. Until its log is
/// first moved into it, a store of ours has no table and no mark in its own file: without the log it looks like one whose
/// making was interrupted. But that one has no journal yet. An empty file was judged by [`Folder::lost_store`].
fn check_ours(conn: &Connection, folder: &Folder, accept_loss: bool) -> Result<(), OpenError> {
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
    let tables = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0));
    let tables: i64 = tables.map_err(|why| store_error(folder, why))?;
    if application != 0 || tables != 0 {
        return Err(foreign());
    }
    if folder.was_answered_from() {
        incomplete(folder, "its log \"tenure.db-wal\" is missing", accept_loss)?;
    }
    Ok(())
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
        sums::register(conn)?;
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
        check_ours(&conn, &folder, false).unwrap();
        migrate(&mut conn, &folder, steps, "1.0.0").unwrap();
        (dir, folder, conn)
    }

    #[test]
    fn a_statement_is_planned_once_however_often_it_runs() {
        use rusqlite::StatementStatus::RePrepare;

        let dir = tempfile::tempdir().unwrap();
        let options = Options::new(Location::Folder(dir.path().join("s")));
        let folder = Folder::open(&options.location).unwrap();
        let writer = open_writer(&folder, &options).unwrap();
        let reader = open_reader(&folder).unwrap();
        for conn in [&writer, &reader] {
            for sql in [
                "SELECT n FROM job_error WHERE seq = ?1 ORDER BY n",
                "SELECT id FROM life CROSS JOIN job ON job.seq = life.seq WHERE life.seq = ?1 AND ns = 'a'",
            ] {
                let mut one = conn.prepare(sql).unwrap();
                for seq in 0..3 {
                    assert!(!one.exists([seq]).unwrap());
                }
                assert_eq!(one.get_status(RePrepare), 0, "{sql}");
            }
        }
    }

    #[test]
    fn rows_of_an_older_store_get_their_checksums() {
        let (_dir, folder, mut conn) = made(&STEPS[..2]);
        conn.execute_batch(
            "INSERT INTO job(seq, id, queue, kind, shape, payload)
                 VALUES(1, 'i', 'q', 'k', x'00', '{}');
             INSERT INTO life(seq, ns, state, life, error) VALUES(1, 'main', 2, x'01', 'e');
             INSERT INTO row VALUES('main', 'queue', 'q', '{}');
             INSERT INTO store VALUES('last_seq', '9');",
        )
        .unwrap();
        migrate(&mut conn, &folder, STEPS, "2.0.0").unwrap();
        let sums: (i64, i64, i64, i64, Option<i64>) = conn
            .query_row(
                "SELECT job.sum, payload_sum, life.sum, error_sum, result_sum FROM job, life",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)),
            )
            .unwrap();
        let job = sums::JobSum {
            seq: 1,
            namespace: "main",
            id: "i",
            queue: "q",
            kind: "k",
            shape: &[0],
            labels: None,
        };
        let life =
            sums::LifeSum { seq: 1, state: 2, until: None, class: None, bytes: None, life: &[1] };
        let text = |column: sums::JobText, text: &str| column.sum(1, text.as_bytes());
        let error = text(sums::JobText::Error, "e");
        let payload = text(sums::JobText::Payload, "{}");
        assert_eq!(sums, (job.sum(), payload, life.sum(), error, None));
        let row: i64 = conn.query_row("SELECT sum FROM row", [], |row| row.get(0)).unwrap();
        assert_eq!(row, sums::row_sum("main", "queue", "q", "{}"));
        assert_eq!(
            crate::sqlite::write::commit::Numbers::read(&conn).unwrap().unwrap().last_seq.get(),
            9
        );
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
    fn a_newer_store_is_refused_with_the_release_that_can_open_it() {
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
        assert!(matches!(check_ours(&conn, &folder, false), Err(OpenError::Foreign { .. })));
        drop(conn);
        std::fs::write(folder.database(), "a shopping list, which is long enough to be read")
            .unwrap();
        let conn = Connection::open(folder.database()).unwrap();
        assert!(matches!(check_ours(&conn, &folder, false), Err(OpenError::Foreign { .. })));
    }
}
