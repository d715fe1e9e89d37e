use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tenure_core::job::NewJob;
use tenure_core::lease::Worker;
use tenure_core::names::{JobId, JobRef, QueueName, WorkerId};
use tenure_core::requests::{Operation, Patch, PatchJob, Push, PushAnswer};
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tenure_engine_api::EngineExt;
use tenure_journal::memory::MemoryJournal;
use tenure_testkit::{TempDir, TestClock};
use tokio::task::JoinHandle;

use super::*;
use crate::engine::Embedded;
use crate::options::{Location, Options};
use crate::sqlite::read::readers::Haste;
use crate::sqlite::write::commit::Numbers;

const PATIENCE: Duration = Duration::from_secs(30);

fn begin<O: Operation + Send + 'static>(engine: &Arc<Embedded>, request: O) -> JoinHandle<O::Reply>
where
    O::Reply: Send,
{
    let engine = engine.clone();
    tokio::spawn(async move { engine.run(&Namespace::main(), request).await.unwrap() })
}

/// Holds a reader thread until the returned sender is dropped.
fn held_reader(shared: &Arc<Shared>) -> Sender<()> {
    let (holds, held) = channel::<()>();
    let (begins, begun) = channel();
    let shared = shared.clone();
    let read = async move {
        let waits = move |_: &Connection| {
            let _ = begins.send(());
            Ok(held.recv().is_err())
        };
        shared.read_rows(Haste::Now, waits).await
    };
    tokio::spawn(read);
    begun.recv_timeout(PATIENCE).unwrap();
    holds
}

/// Waits until the rows hold all entries.
async fn rows_came(folder: &Path, journal: &MemoryJournal) {
    let conn = Connection::open(folder.join("tenure.db")).unwrap();
    let since = Instant::now();
    while Numbers::read(&conn).unwrap().unwrap().commit < journal.entries().len() as u64 {
        assert!(since.elapsed() < PATIENCE, "the rows do not come");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_after_the_lease_is_shown_once_the_journal_has_it() {
    // Rows are read while the grant is appended; or after that, because the row lacked a change of the job.
    for has_changed in [false, true] {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let journal = Arc::new(MemoryJournal::default());
        let options = Options {
            clock: clock.clone(),
            journal: Some(journal.clone()),
            // Keeps no payload in memory.
            body_bytes: 0,
            ..Options::new(Location::Folder(dir.join("rows")))
        };
        let engine = Arc::new(Embedded::open(options).unwrap());
        let queue = QueueName::parse("q").unwrap();
        let id = JobId::parse("a").unwrap();
        let change = |payload: &str| {
            let mut change = PatchJob::new(JobRef::Id(id.clone()));
            change.payload = Patch::Set(Json::from(payload));
            begin(&engine, change)
        };
        let begins = |appends| assert!(journal.wait_for_begun(appends, PATIENCE));
        let job = NewJob { id: Some(id.clone()), ..NewJob::new(queue.clone()) };
        begin(&engine, Push { jobs: vec![job], answer: PushAnswer::Ids }).await.unwrap();
        rows_came(&dir.join("rows"), &journal).await;

        let held = [held_reader(&engine.shared), held_reader(&engine.shared)];
        let begun = journal.begun().len();
        let conn = Connection::open(dir.join("rows").join("tenure.db")).unwrap();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        if has_changed {
            let first = change("one");
            begins(begun + 1);
            first.abort();
        }
        let worker = Worker { id: Some(WorkerId::parse("w").unwrap()), ..Worker::default() };
        let grant = begin(&engine, Lease { worker, ..Lease::jobs(vec![queue], 1) });
        begins(begun + 1 + usize::from(has_changed));
        conn.execute_batch("ROLLBACK").unwrap();
        // The lease ends and the job changes; the journal does not answer these appends.
        for _ in 0..60 {
            clock.advance(Span::from_s(1));
            engine.settled().await;
        }
        let begun = journal.begun().len();
        journal.hold();
        let second = change("two");
        begins(begun + 1);
        rows_came(&dir.join("rows"), &journal).await;
        drop(held);

        // The call has read, and does not answer before an append that begins later.
        let has_asked = journal.wait_for_begun(begun + 2, PATIENCE);
        let is_answered = grant.is_finished();
        journal.release();
        assert!(has_asked && !is_answered, "{has_changed}");
        let granted = grant.await.unwrap();
        let job = granted.leases[0].job.as_ref().unwrap();
        assert_eq!(job.payload.as_ref().map(Json::text), Some("\"two\""));
        second.await.unwrap();
    }
}
