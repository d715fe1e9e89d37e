//! Access to the folder: its permissions, and its one holder.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use tenure_engine::{Embedded, Location, OpenError, Options};
use tenure_testkit::TempDir;

use crate::store::calls::*;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn folder_and_files_are_their_owners_alone() {
    block(async {
        let here = Here::new();
        push(&here.engine, vec![job("a")]).await;
        let folder = here.dir.join("store");
        assert_eq!((mode(&folder), mode(&folder.join("journal"))), (0o700, 0o700));
        let files = files_of(&folder);
        for path in &files {
            assert_eq!(mode(path), 0o600, "{path:?}");
        }
        assert!(files.len() >= 5, "the lock, the store and its log, the journal");
    });
}

#[test]
fn a_folder_that_was_there_keeps_its_permissions() {
    let dir = TempDir::new();
    let folder = dir.join("shared");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o750)).unwrap();
    let _engine = Embedded::open(Options::new(Location::Folder(folder.clone()))).unwrap();
    assert_eq!(mode(&folder), 0o750);
    assert_eq!(mode(&folder.join("tenure.db")), 0o600);
}

#[test]
fn a_folder_is_open_once() {
    let here = Here::new();
    let folder = here.dir.join("store");
    let no = Embedded::open(Options::new(Location::Folder(folder.clone()))).unwrap_err();
    assert!(matches!(&no, OpenError::Locked { folder: f } if *f == folder), "{no:?}");
    assert!(no.to_string().contains(folder.to_str().unwrap()), "{no}");
    here.engine.close();
    Embedded::open(Options::new(Location::Folder(folder))).unwrap();
}

#[test]
fn a_closed_store_is_one_file() {
    block(async {
        let here = Here::new();
        push(&here.engine, vec![job("a")]).await;
        here.engine.close();
        here.engine.close();
        let log = here.dir.join("store/tenure.db-wal");
        assert!(!log.exists(), "the log is in the store");
    });
}

#[test]
fn a_folder_whose_making_was_interrupted_is_made() {
    block(async {
        // The states that SQLite leaves before its first commit in the log, as a power cut or a kill leaves them.
        for log in [None, Some(""), Some("the beginning of a log")] {
            let dir = TempDir::new();
            let folder = dir.join("store");
            std::fs::create_dir(&folder).unwrap();
            let conn = Connection::open(folder.join("tenure.db")).unwrap();
            conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
            conn.close().unwrap();
            assert_eq!(std::fs::metadata(folder.join("tenure.db")).unwrap().len(), 4096);
            if let Some(log) = log {
                std::fs::write(folder.join("tenure.db-wal"), log).unwrap();
            }
            let engine = Embedded::open(Options::new(Location::Folder(folder))).expect("made");
            push(&engine, vec![job("a")]).await;
            engine.close();
        }
    });
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let dir = TempDir::new();
    std::fs::write(dir.join("file"), "x").unwrap();
    let no = Embedded::open(Options::new(Location::Folder(dir.join("file/store")))).unwrap_err();
    assert!(matches!(no, OpenError::Folder { .. }), "{no:?}");
}

#[test]
fn what_is_in_memory_is_gone_when_it_is_closed() {
    block(async {
        let engine = Embedded::open(Options::new(Location::Memory)).unwrap();
        push(&engine, vec![job("a")]).await;
        assert_eq!(take(&engine, 1).await.len(), 1);
        engine.close();
        let engine = Embedded::open(Options::new(Location::Memory)).unwrap();
        assert!(take(&engine, 1).await.is_empty());
    });
}
