//! A close ends, whatever is on its way at that moment.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tenure_core::job::NewJob;
use tenure_core::names::Namespace;
use tenure_core::requests::*;
use tenure_engine::Embedded;
use tenure_engine_api::{CallError, Engine};
use tenure_journal::Appended;
use tenure_journal::memory::{Fate, MemoryJournal};
use tokio::task::JoinHandle;

use crate::store::calls::*;
use crate::store::journal::owner;

/// A push whose rows fill a batch.
fn large(id: &str) -> Request {
    let jobs = (0..4)
        .map(|n| NewJob { payload: text(&"x".repeat(300 << 10)), ..job(&format!("{id}-{n}")) });
    Push { jobs: jobs.collect(), answer: PushAnswer::Ids }.into()
}

type Call = JoinHandle<Result<Reply, CallError>>;

/// Begins large pushes: two appends are on their way, and `more` calls wait in the inbox behind them.
async fn loaded(engine: &Embedded, journal: &MemoryJournal, more: usize) -> Vec<Call> {
    engine.settled().await;
    journal.hold();
    let begun = journal.begun().len();
    let mut calls = Vec::new();
    for n in 0..2 + more {
        // Its first poll puts the call into the inbox.
        let mut call = Box::pin(engine.call(&Namespace::main(), large(&n.to_string())));
        let first = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
        assert!(first.is_pending());
        calls.push(tokio::spawn(call));
        assert!(n >= 2 || journal.wait_for_begun(begun + n + 1, PATIENCE));
    }
    calls
}

/// Closes an engine on a thread; the channel hears of its end.
fn closes(engine: &Arc<Embedded>) -> Receiver<()> {
    let (ends, ended) = channel();
    let engine = engine.clone();
    std::thread::spawn(move || {
        engine.close();
        let _ = ends.send(());
    });
    ended
}

#[test]
fn a_close_hands_on_every_batch_that_is_left() {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    let engine = Arc::new(here.engine);
    block(async {
        let calls = loaded(&engine, &journal, 3).await;
        let begun = journal.begun().len();
        let ended = closes(&engine);
        // The close has begun once a call is refused. One that came before waits for its append.
        let soon = Duration::from_millis(5);
        let refused =
            || tokio::time::timeout(soon, engine.call(&Namespace::main(), ask(1, 0).into()));
        while !matches!(refused().await, Ok(Err(_))) {}
        journal.release_one();
        assert!(journal.wait_for_begun(begun + 1, PATIENCE));
        journal.release();
        let done = tokio::task::spawn_blocking(move || ended.recv_timeout(PATIENCE));
        assert!(done.await.unwrap().is_ok(), "the close waits for ever");
        for call in calls {
            call.await.unwrap().unwrap();
        }
    });
}

#[test]
fn batches_that_wait_for_room_are_all_handed_on_when_there_is_some() {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    block(async {
        let calls = loaded(&here.engine, &journal, 12).await;
        let began = Instant::now();
        journal.release();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        // A state that sleeps although there is room wakes once a second, for one batch.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    });
}

#[test]
fn a_close_ends_if_the_last_append_is_lost() {
    let journal = Arc::new(MemoryJournal::default());
    let here = owner(&journal);
    let engine = Arc::new(here.engine);
    block(async {
        engine.settled().await;
        journal.hold();
        journal.fates(|_| Fate::Answered(Appended::Fenced));
        let begun = journal.begun().len();
        let request = Push { jobs: vec![job("a")], answer: PushAnswer::Ids };
        let call = tokio::spawn(engine.call(&Namespace::main(), request.into()));
        assert!(journal.wait_for_begun(begun + 1, PATIENCE));
        let ended = closes(&engine);
        // The disk's thread notes its end last of all.
        let rows = Connection::open(here.dir.join("rows").join("tenure.db")).unwrap();
        let noted = "SELECT count(*) FROM store WHERE key = 'events' AND value = 'clean'";
        let began = Instant::now();
        while rows.query_row(noted, [], |row| row.get::<_, i64>(0)).unwrap() == 0 {
            assert!(began.elapsed() < PATIENCE, "the disk's thread does not end");
            tokio::task::yield_now().await;
        }
        journal.release();
        let done = tokio::task::spawn_blocking(move || ended.recv_timeout(PATIENCE));
        assert!(done.await.unwrap().is_ok(), "the close waits for ever");
        assert!(call.await.unwrap().is_err());
    });
}
