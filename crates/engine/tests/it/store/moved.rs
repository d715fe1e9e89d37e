//! A store whose files are removed while it is open: no call succeeds any more, and the engine ends.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use tenure_core::requests::*;
use tenure_engine::copy::{CopyError, Mark, Source};
use tenure_engine::{CopyFolder, Durability, Embedded, Location, OpenError, Options};
use tenure_engine_api::{CallError, Fault};
use tenure_testkit::{TempDir, TestClock};

use crate::store::calls::*;

type Deed = fn(&Path);

/// Removes a folder into which the engine may still write a file meanwhile.
fn remove(folder: &Path) {
    while let Err(why) = fs::remove_dir_all(folder) {
        assert_eq!(why.kind(), ErrorKind::DirectoryNotEmpty, "{why}");
    }
}

/// Ways to harm the folder `store` of a temporary folder.
const DEEDS: [(&str, Deed); 7] = [
    ("the folder is removed", |dir| remove(&dir.join("store"))),
    ("the folder is moved", |dir| fs::rename(dir.join("store"), dir.join("away")).unwrap()),
    ("the folder is replaced by a copy of it", |dir| {
        copy_folder(&dir.join("store"), &dir.join("copy"));
        fs::rename(dir.join("store"), dir.join("away")).unwrap();
        fs::rename(dir.join("copy"), dir.join("store")).unwrap();
    }),
    ("the store is removed", |dir| fs::remove_file(dir.join("store/tenure.db")).unwrap()),
    ("the store is replaced", |dir| {
        fs::copy(dir.join("store/tenure.db"), dir.join("new")).unwrap();
        fs::rename(dir.join("new"), dir.join("store/tenure.db")).unwrap();
    }),
    ("the log is removed", |dir| fs::remove_file(dir.join("store/tenure.db-wal")).unwrap()),
    ("the journal is removed", |dir| remove(&dir.join("store/journal"))),
];

fn watched(dir: &TempDir, durability: Durability) -> (Embedded, End) {
    ends(Options { durability, ..options(dir, &Arc::new(TestClock::default())) })
}

#[test]
fn a_store_that_is_taken_away_is_noticed_without_any_call() {
    block(async {
        for (deed, does) in DEEDS {
            let dir = TempDir::new();
            let (engine, end) = watched(&dir, Durability::Everysec);
            push(&engine, vec![job("a")]).await;
            does(dir.path());
            let (code, said) = told(&end).await;
            assert_eq!(code, 74, "{deed}");
            let file = if deed.contains("journal") { "journal" } else { "tenure.db" };
            assert!(said.contains(file) && said.contains("; "), "{deed}: {said}");
            let no = run(&engine, GetStats).await.unwrap_err();
            assert!(matches!(no, CallError::Fault(Fault::Unavailable(_))), "{deed}: {no:?}");
        }
    });
}

#[test]
fn a_push_into_a_store_taken_away_is_not_answered_as_stored() {
    block(async {
        for (deed, does) in DEEDS {
            let dir = TempDir::new();
            let (engine, end) = watched(&dir, Durability::Always);
            push(&engine, vec![job("a")]).await;
            does(dir.path());
            let new = Push { jobs: vec![job("b")], answer: PushAnswer::Ids };
            let no = run(&engine, new).await.expect_err(deed);
            assert!(matches!(no, CallError::Fault(_)), "{deed}: {no:?}");
            assert_eq!(told(&end).await.0, 74, "{deed}");
        }
    });
}

/// Harm to a folder whose engine is closed.
type Closed = Box<dyn Fn(&Path)>;

#[test]
fn the_next_start_says_which_file_is_gone_and_what_to_do() {
    block(async {
        let remove =
            |file: &'static str| move |dir: &Path| fs::remove_file(dir.join(file)).unwrap();
        let deeds: [(&str, Closed, &str); 4] = [
            (
                "the log is removed",
                Box::new(remove("store/tenure.db-wal")),
                "its log \"tenure.db-wal\" is missing",
            ),
            (
                "the store is removed",
                Box::new(remove("store/tenure.db")),
                "\"tenure.db\" is missing or empty",
            ),
            (
                "the store is emptied",
                Box::new(|dir| fs::write(dir.join("store/tenure.db"), "").unwrap()),
                "\"tenure.db\" is missing or empty",
            ),
            (
                "the log is removed, and the note of what was synced",
                Box::new(|dir| {
                    fs::remove_file(dir.join("store/tenure.db-wal")).unwrap();
                    fs::remove_file(dir.join("store/synced")).unwrap();
                }),
                "its log \"tenure.db-wal\" is missing",
            ),
        ];
        for (deed, does, says) in deeds {
            let dir = TempDir::new();
            let how = options(&dir, &Arc::new(TestClock::default()));
            let engine = Embedded::open(how.clone()).unwrap();
            push(&engine, vec![job("a")]).await;
            engine.crash();
            does(dir.path());
            // A second opening gives the same error: the first one changed nothing.
            for _ in 0..2 {
                let no = Embedded::open(how.clone()).expect_err(deed);
                assert!(matches!(no, OpenError::Incomplete { .. }), "{deed}: {no:?}");
                let said = no.to_string();
                assert!(said.contains(says) && said.contains("restore"), "{deed}: {said}");
                assert!(!said.contains("another folder"), "{deed}: {said}");
                assert_eq!(said.contains("up to commit"), !deed.contains("note"), "{deed}: {said}");
            }
            let went_on = Embedded::open(Options { accept_loss: true, ..how }).expect(deed);
            assert_eq!(
                take(&went_on, 10).await.len(),
                1,
                "{deed}: the journal has all from the beginning"
            );
        }
        // The loss of the lock file loses nothing.
        let dir = TempDir::new();
        let how = options(&dir, &Arc::new(TestClock::default()));
        let engine = Embedded::open(how.clone()).unwrap();
        push(&engine, vec![job("a")]).await;
        engine.crash();
        fs::remove_file(dir.path().join("store/lock")).unwrap();
        assert_eq!(take(&Embedded::open(how).unwrap(), 10).await.len(), 1);
    });
}

#[test]
fn the_end_of_the_old_engine_leaves_the_new_folder_alone() {
    block(async {
        let dir = TempDir::new();
        let (old, end) = watched(&dir, Durability::Always);
        push(&old, vec![job("a")]).await;
        fs::rename(dir.join("store"), dir.join("away")).unwrap();
        told(&end).await;
        let clock = Arc::new(TestClock::default());
        let new = Embedded::open(options(&dir, &clock)).unwrap();
        push(&new, vec![job("b")]).await;
        // By its paths it would delete the log of the other.
        old.close();
        new.crash();
        let new = Embedded::open(options(&dir, &clock)).unwrap();
        assert_eq!(take(&new, 10).await.len(), 1);
        let away = Options::new(Location::Folder(dir.join("away")));
        assert_eq!(take(&Embedded::open(away).unwrap(), 10).await.len(), 1, "the old one is whole");
    });
}

#[test]
fn a_copy_of_a_folder_that_is_taken_away_is_told() {
    block(async {
        let dir = TempDir::new();
        let (engine, _) = watched(&dir, Durability::Always);
        push(&engine, vec![job("a")]).await;
        engine.close();
        let source = CopyFolder::source(&dir.join("store")).unwrap();
        let mark = Mark { copy: "c".to_owned(), to: "elsewhere".to_owned(), whole: false };
        source.freeze(&mark).unwrap();
        fs::rename(dir.join("store"), dir.join("away")).unwrap();
        let no = source.thaw().unwrap_err();
        assert!(matches!(&no, CopyError::Disk(said) if said.contains("tenure.db")), "{no:?}");
    });
}

#[test]
fn a_store_that_is_taken_away_at_the_very_end_is_told() {
    block(async {
        let dir = TempDir::new();
        let (engine, end) = watched(&dir, Durability::Everysec);
        push(&engine, vec![job("a")]).await;
        remove(&dir.join("store"));
        engine.close();
        assert_eq!(end.lock().unwrap().as_ref().map(|(code, _)| *code), Some(74));
    });
}
