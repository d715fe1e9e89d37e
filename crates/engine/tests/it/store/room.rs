//! The size of a folder: it shrinks when its content is gone, and grows no further than its bound.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::time::Span;
use tenure_engine::{Embedded, Options};
use tenure_engine_api::Engine;
use tenure_testkit::TempDir;

use crate::store::calls::*;

fn size(path: PathBuf) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

fn large(n: usize) -> tenure_core::job::NewJob {
    let mut new = job(&format!("j{n}"));
    new.payload = text(&"x".repeat(8_000));
    new.retain = Some(Span::from_s(1));
    new
}

#[test]
fn a_folder_that_shrank_is_compacted_while_idle() {
    block(async {
        let here = Here::new();
        for some in 0..15 {
            push(&here.engine, (0..100).map(|n| large(some * 100 + n)).collect()).await;
        }
        for _ in 0..15 {
            let leases = take(&here.engine, 100).await;
            settle(&here.engine, leases.iter().map(done).collect()).await;
        }
        here.pass(2).await;
        let store = || size(here.dir.join("store/tenure.db"));
        let log = || size(here.dir.join("store/tenure.db-wal"));
        let begun = Instant::now();
        // The log has the rows that are not moved into the store yet, so the sum counts.
        while store() + log() > 5 << 20 {
            assert!(begun.elapsed() < PATIENCE, "{} and {}", store(), log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        push(&here.engine, vec![job("later")]).await;
        assert_eq!(take(&here.engine, 10).await.len(), 1);
        assert!(run(&here.engine, Audit::default()).await.unwrap().ok);
    });
}

#[test]
fn a_full_folder_refuses_pushes_until_there_is_room() {
    block(async {
        let (dir, clock) = (TempDir::new(), Default::default());
        let options = Options { max_bytes: Some(8 << 20), ..options(&dir, &clock) };
        let engine = Embedded::open(options).unwrap();
        let mut stored = 0;
        let no = loop {
            let new = Push { jobs: vec![large(stored)], answer: PushAnswer::Ids };
            match run(&engine, new).await {
                Ok(_) => stored += 1,
                Err(no) => break no,
            }
        };
        assert_eq!(no.code(), Some(Code::StoreFull), "{no:?}");
        assert!(stored > 400, "{stored}");
        assert!(engine.notice().is_some_and(|said| said.contains("store_full")));
        assert!(engine.health().degraded.is_none());
        let folder = fs::read_dir(dir.join("store")).unwrap();
        let bytes: u64 = folder.map(|entry| size(entry.unwrap().path())).sum();
        assert!(bytes <= 8 << 20, "{bytes}");
        // Calls that end and free are taken, results too.
        let leases = take(&engine, 100).await;
        assert_eq!(leases.len(), 100);
        assert!(settle(&engine, leases.iter().map(done).collect()).await.settled[0].ok);
        for n in 100..400 {
            let job = tenure_core::names::JobRef::parse(&format!("j{n}")).unwrap();
            run(&engine, DeleteJob { job }).await.unwrap();
        }
        let begun = Instant::now();
        loop {
            let new = Push { jobs: vec![large(stored)], answer: PushAnswer::Ids };
            match run(&engine, new).await {
                Ok(_) => break,
                Err(no) => assert_eq!(no.code(), Some(Code::StoreFull), "{no:?}"),
            }
            assert!(begun.elapsed() < PATIENCE, "there is no room again");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // One push may just fit: the notice goes when there is room for more.
        while engine.notice().is_some() {
            assert!(begun.elapsed() < PATIENCE, "the notice stays");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}
