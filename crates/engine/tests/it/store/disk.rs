//! A disk that is full although it was measured: nobody is told a lie, and the engine ends.

use std::sync::Arc;

use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_engine::{Embedded, Options};
use tenure_seam::{CallError, Engine, Fault};
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
        assert_eq!(failed.code(), Some(Code::StoreFull), "nothing of it was stored: {failed:?}");
        let later = run(&engine, GetStats).await.unwrap_err();
        assert!(matches!(later, CallError::Fault(Fault::Unavailable(_))), "{later:?}");
        let (code, said) = told(&end).await;
        assert_eq!(code, 74);
        assert!(said.contains("full"), "{said}");
        assert!(engine.health().degraded.is_some());
        engine.close();
        // With room again all that was answered is there.
        let engine = Embedded::open(options(&dir, &clock)).unwrap();
        assert_eq!(take(&engine, 1_000).await.len(), stored);
        assert!(engine.health().degraded.is_none());
    });
}
