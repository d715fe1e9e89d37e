//! A disk that is full although it was measured: nobody is told a lie, and the engine ends.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_engine::{CallError, Engine, Fault};
use tenure_engine_embedded::{Embedded, Options};
use tenure_testkit::{TempDir, TestClock};

use crate::calls::*;

#[test]
fn a_full_disk_is_told_and_ends_the_engine() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let (code, said) = (Arc::new(AtomicI32::new(0)), Arc::new(Mutex::new(String::new())));
        let (code_of, said_of) = (code.clone(), said.clone());
        let engine = Embedded::open(Options {
            page_max: Some(60),
            on_fatal: Arc::new(move |fatal| {
                code_of.store(fatal.exit_code(), Ordering::SeqCst);
                *said_of.lock().unwrap() = fatal.to_string();
            }),
            ..options(&dir, &clock)
        })
        .unwrap();
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
        assert_eq!(code.load(Ordering::SeqCst), 74);
        assert!(said.lock().unwrap().contains("full"), "{said:?}");
        assert!(engine.health().degraded.is_some());
        engine.close();
        // With room again all that was answered is there.
        let engine = Embedded::open(options(&dir, &clock)).unwrap();
        assert_eq!(take(&engine, 1_000).await.len(), stored);
        assert!(engine.health().degraded.is_none());
    });
}
