//! A disk that is full although it was measured: no answer is false, and the engine ends.

use std::sync::Arc;

use tenure_core::requests::*;
use tenure_engine::{Embedded, Options};
use tenure_engine_api::{CallError, Engine, Fault};
use tenure_testkit::{TempDir, TestClock};

use crate::store::calls::*;

#[test]
fn a_full_disk_is_told_and_ends_the_engine() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let (engine, end) = ends(Options { page_max: Some(60), ..options(&dir, &clock) });
        let mut stored = 0;
        let failed = loop {
            let mut new = job(&format!("j{stored}"));
            new.payload = text(&"x".repeat(4_000));
            match run(&engine, Push { jobs: vec![new], answer: PushAnswer::Ids }).await {
                Ok(_) => stored += 1,
                Err(no) => break no,
            }
        };
        assert!(stored > 5, "{stored}");
        // The rows of an earlier push ended the engine: this one may be in the journal.
        assert!(matches!(failed, CallError::Fault(_)), "{failed:?}");
        let later = run(&engine, GetStats).await.unwrap_err();
        assert!(matches!(later, CallError::Fault(Fault::Unavailable(_))), "{later:?}");
        let (code, said) = told(&end).await;
        assert_eq!(code, 74);
        assert!(said.contains("full"), "{said}");
        assert!(engine.health().degraded.is_some());
        engine.close();
        // Without room the store cannot be opened: its journal holds entries that the rows lack.
        let no = Embedded::open(Options { page_max: Some(60), ..options(&dir, &clock) });
        assert!(no.unwrap_err().to_string().contains("full"));
        // With room again all answered jobs are there.
        let engine = Embedded::open(options(&dir, &clock)).unwrap();
        let there = take(&engine, 1_000).await.len();
        assert!((stored..=stored + 1).contains(&there), "{there} of {stored}");
        assert!(engine.health().degraded.is_none());
    });
}
