//! Streams of events in a folder: survival, dropped events, and the gap that a reader gets.

use std::sync::Arc;

use rusqlite::Connection;
use tenure_core::decode::{self, Decode};
use tenure_core::events::{Event, EventFilter, EventId, EventType, GapWhy};
use tenure_core::names::{JobId, JobRef, LimitName, Namespace};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::LimitSettings;
use tenure_core::time::Span;
use tenure_engine::{Durability, Embedded, Options};
use tenure_engine_api::{CallError, EngineExt};
use tenure_testkit::{TempDir, TestClock};

use crate::store::calls::*;

const DAY: Span = Span::from_s(86_400);

fn after(since: EventsSince) -> ReadEvents {
    ReadEvents { since, max: 1_000, ..ReadEvents::default() }
}

async fn read(engine: &Embedded, since: EventsSince) -> EventsRead {
    run(engine, after(since)).await.unwrap()
}

async fn push_some(engine: &Embedded, from: usize, to: usize) {
    for n in from..to {
        push(engine, vec![job(&format!("j{n}"))]).await;
    }
}

fn jobs(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.happened.about.job.as_ref().unwrap().as_str()).collect()
}

#[test]
fn a_reader_goes_on_after_a_crash_of_an_always_synced_engine() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let always = || Options { durability: Durability::Always, ..options(&dir, &clock) };
        let engine = Embedded::open(always()).unwrap();
        push_some(&engine, 0, 3).await;
        let seen = read(&engine, EventsSince::First).await;
        engine.crash();
        let engine = Embedded::open(always()).unwrap();
        push_some(&engine, 3, 5).await;
        let again = read(&engine, EventsSince::First).await;
        assert_eq!(again.items[..3], seen.items);
        let rest = read(&engine, EventsSince::Id(seen.next)).await;
        assert_eq!((jobs(&rest.items), rest.gap), (vec!["j3", "j4"], None));
        assert_eq!(rest.items[0].id.number, seen.next.number + 1);
    });
}

/// Each event by its type and the name of its caller.
fn callers(events: &[Event]) -> Vec<String> {
    let one = |event: &Event| match &event.happened.about.by {
        Some(name) => format!("{} by {name}", event.happened.kind),
        None => event.happened.kind.to_string(),
    };
    events.iter().map(one).collect()
}

#[test]
fn events_of_a_change_name_its_caller_also_after_a_crash() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let always = || Options { durability: Durability::Always, ..options(&dir, &clock) };
        let engine = Embedded::open(always()).unwrap();
        let limit = || PutLimit::of(&["l"], br#"{"concurrency": 1}"#).unwrap();
        run_by(&engine, "ann", limit()).await.unwrap();
        // A repeat changes nothing, so it has no event of its own.
        run_by(&engine, "bob", limit()).await.unwrap();
        run_by(&engine, "ann", Push { jobs: vec![job("a"), job("b")], answer: PushAnswer::Ids })
            .await
            .unwrap();
        let cancel = || CancelJob { job: JobRef::parse("a").unwrap() };
        run_by(&engine, "ann", cancel()).await.unwrap();
        run_by(&engine, "bob", cancel()).await.unwrap();
        let filter = JobFilter { queue: Some(queue()), ..JobFilter::default() };
        run_by(&engine, "bob", DeleteJobs { filter, max: 9, cursor: None }).await.unwrap();
        let schedule = br#"{"every": "1h", "job": {"queue": "other"}}"#;
        let schedule = decode::put_schedule("s", schedule).unwrap();
        run_by(&engine, "ann", schedule.clone()).await.unwrap();
        for name in ["ann", "bob"] {
            let id = JobId::parse("now").ok();
            let run_now = RunScheduleNow { schedule: schedule.schedule.clone(), id };
            run_by(&engine, name, run_now).await.unwrap();
        }
        run(&engine, DeleteSchedule { schedule: schedule.schedule }).await.unwrap();
        let expected = [
            "limit.changed by ann",
            "job.pushed",
            "job.pushed",
            "job.cancelled by ann",
            "job.deleted by bob",
            "job.deleted by bob",
            "schedule.changed by ann",
            "job.pushed by ann",
            "schedule.deleted",
        ];
        assert_eq!(callers(&read(&engine, EventsSince::First).await.items), expected);
        engine.crash();
        let engine = Embedded::open(always()).unwrap();
        assert_eq!(callers(&read(&engine, EventsSince::First).await.items), expected);
    });
}

#[test]
fn an_everysec_store_begins_a_new_life_only_after_a_crash() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let everysec = || Options { durability: Durability::Everysec, ..options(&dir, &clock) };
        let engine = Embedded::open(everysec()).unwrap();
        push_some(&engine, 0, 2).await;
        let seen = read(&engine, EventsSince::First).await;
        engine.close();
        let engine = Embedded::open(everysec()).unwrap();
        assert_eq!(read(&engine, EventsSince::Id(seen.next)).await.gap, None);
        engine.crash();
        // The next process opens it: forgotten events stay forgotten.
        let always = Options { durability: Durability::Always, ..options(&dir, &clock) };
        let engine = Embedded::open(always).unwrap();
        push_some(&engine, 2, 3).await;
        let told = read(&engine, EventsSince::Id(seen.next)).await;
        let gap = told.gap.unwrap();
        assert_eq!((gap.after, gap.why), (seen.next, GapWhy::Restarted));
        assert_eq!(jobs(&told.items), ["j0", "j1", "j2"], "what is kept is told again");
        assert_eq!(told.items[2].id.number, 3, "numbers go on");
    });
}

/// Pushes `many` other jobs, a thousand in a call.
async fn push_others(engine: &Embedded, name: &str, many: usize) {
    for from in (0..many).step_by(1_000) {
        push(engine, (from..from + 1_000).map(|n| job(&format!("{name}{n}"))).collect()).await;
    }
}

/// The events of a job in one answer.
async fn of_job(engine: &Embedded, job: &str) -> EventsRead {
    let filter = EventFilter { job: Some(job.parse().unwrap()), ..EventFilter::default() };
    run(engine, ReadEvents { filter, ..after(EventsSince::First) }).await.unwrap()
}

#[test]
fn one_answer_has_events_of_a_job_among_many_of_others() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let engine = Embedded::open(options(&dir, &clock)).unwrap();
        push_others(&engine, "before", 13_000).await;
        push(&engine, vec![job("mine")]).await;
        push_others(&engine, "between", 13_000).await;
        let cancel = || JobId::parse("mine").unwrap();
        run(&engine, CancelJob { job: JobRef::Id(cancel()) }).await.unwrap();
        push_others(&engine, "after", 13_000).await;
        let found = of_job(&engine, "mine").await;
        let kinds: Vec<_> = found.items.iter().map(|event| event.happened.kind).collect();
        assert_eq!(kinds.first(), Some(&EventType::JobPushed), "{kinds:?}");
        assert_eq!(kinds.last(), Some(&EventType::JobCancelled), "{kinds:?}");
        let end = run(&engine, GetStats).await.unwrap().events.last.unwrap();
        assert_eq!((found.next, found.gap), (end, None), "it looked to the end");
        assert_eq!(of_job(&engine, "none").await.items, []);
        // The index only helps: without it, or with a damaged one, pages take longer.
        engine.close();
        for damage in ["UPDATE event_jobs SET sum = sum + 1", "DELETE FROM event_jobs"] {
            let conn = Connection::open(dir.join("store/tenure.db")).unwrap();
            conn.execute_batch(damage).unwrap();
            drop(conn);
            let engine = Embedded::open(options(&dir, &clock)).unwrap();
            let (mut since, mut all) = (EventsSince::First, Vec::new());
            loop {
                let filter = EventFilter { job: Some(cancel()), ..EventFilter::default() };
                let read = run(&engine, ReadEvents { filter, ..after(since) }).await.unwrap();
                all.extend(read.items);
                if read.next == end {
                    break;
                }
                since = EventsSince::Id(read.next);
            }
            assert_eq!(all, found.items, "{damage}");
            engine.close();
        }
    });
}

#[test]
fn events_of_an_older_release_are_indexed_bit_by_bit() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let engine = Embedded::open(options(&dir, &clock)).unwrap();
        push_others(&engine, "before", 20_000).await;
        push(&engine, vec![job("mine")]).await;
        engine.close();
        let conn = Connection::open(dir.join("store/tenure.db")).unwrap();
        conn.execute_batch("DELETE FROM event_jobs").unwrap();
        drop(conn);
        let engine = Embedded::open(options(&dir, &clock)).unwrap();
        assert_eq!(of_job(&engine, "mine").await.items, [], "10,000 are looked at");
        push_others(&engine, "after", 8_000).await;
        assert_ne!(of_job(&engine, "mine").await.items, []);
    });
}

#[test]
fn a_full_event_log_drops_old_events_and_tells_late_readers() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let bound = 4_000;
        let engine = Embedded::open(Options { events_bytes: bound, ..options(&dir, &clock) });
        let engine = engine.unwrap();
        push_some(&engine, 0, 1).await;
        let early = read(&engine, EventsSince::First).await.next;
        push_some(&engine, 1, 400).await;
        let stats = run(&engine, GetStats).await.unwrap().events;
        assert!(stats.bytes <= bound && stats.bytes > bound / 2, "{stats:?}");
        let told = read(&engine, EventsSince::Id(early)).await;
        let gap = told.gap.unwrap();
        assert_eq!((gap.why, Some(gap.first)), (GapWhy::Dropped, stats.first));
        assert_eq!(told.items.first().map(|event| event.id), stats.first);
        assert_eq!(jobs(&told.items).last(), Some(&"j399"));
        // A reader at the edge of the kept events has missed nothing.
        let edge = EventId { number: gap.first.number - 1, ..gap.first };
        assert_eq!(read(&engine, EventsSince::Id(edge)).await.gap, None);
        let audit = run(&engine, Audit { deep: true }).await.unwrap();
        assert!(audit.ok, "{:?}", audit.faults);
    });
}

#[test]
fn the_last_entry_stays_however_large_it_is() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let engine = Embedded::open(Options { events_bytes: 1, ..options(&dir, &clock) }).unwrap();
        push(&engine, (0..50).map(|n| job(&format!("j{n}"))).collect()).await;
        assert_eq!(read(&engine, EventsSince::First).await.items.len(), 50);
        push_some(&engine, 50, 51).await;
        assert_eq!(jobs(&read(&engine, EventsSince::First).await.items), ["j50"]);
    });
}

#[test]
fn a_store_set_to_keep_no_events_refuses_readers_and_forgets() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let engine = Embedded::open(options(&dir, &clock)).unwrap();
        push_some(&engine, 0, 1).await;
        let seen = read(&engine, EventsSince::First).await.next;
        engine.close();
        let none = Options { events_bytes: 0, ..options(&dir, &clock) };
        let engine = Embedded::open(none).unwrap();
        push_some(&engine, 1, 2).await;
        match run(&engine, after(EventsSince::First)).await {
            Err(CallError::Refused(no)) => assert_eq!(no.code, Code::WrongState),
            other => panic!("{other:?}"),
        }
        assert_eq!(run(&engine, GetStats).await.unwrap().events, EventStats::default());
        engine.close();
        clock.advance(Span::from_s(1));
        let engine = Embedded::open(options(&dir, &clock)).unwrap();
        push_some(&engine, 2, 3).await;
        let told = read(&engine, EventsSince::Id(seen)).await;
        assert_eq!(told.gap.unwrap().why, GapWhy::Restarted);
        assert_eq!(jobs(&told.items), ["j2"]);
    });
}

#[test]
fn an_entry_that_cannot_be_read_is_told_as_a_gap() {
    block(async {
        let mut here = Here::new();
        push_some(&here.engine, 0, 5).await;
        let first = read(&here.engine, EventsSince::First).await.items[0].id;
        here.engine.close();
        let conn = Connection::open(here.dir.join("store/tenure.db")).unwrap();
        let number = first.number + 2;
        let sql = format!("UPDATE event SET body = x'00' WHERE last = {number}");
        assert_eq!(conn.execute(&sql, []).unwrap(), 1);
        drop(conn);
        here.reopen();
        let before = read(&here.engine, EventsSince::First).await;
        assert_eq!((jobs(&before.items), before.gap), (vec!["j0", "j1"], None));
        let told = read(&here.engine, EventsSince::Id(before.next)).await;
        let gap = told.gap.unwrap();
        assert_eq!((gap.after, gap.why), (before.next, GapWhy::Dropped));
        assert_eq!((jobs(&told.items), told.items[0].id), (vec!["j3", "j4"], gap.first));
        let audit = run(&here.engine, Audit { deep: true }).await.unwrap();
        assert!(!audit.ok && audit.faults[0].contains("event"), "{:?}", audit.faults);
    });
}

#[test]
fn a_namespace_that_begins_again_has_another_stream() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let engine = Embedded::open(options(&dir, &clock)).unwrap();
        let namespace = Namespace::parse("other").unwrap();
        let limit = || LimitName::parse("l").unwrap();
        let put = || PutLimit {
            gauge: None,
            limit: limit(),
            settings: LimitSettings { concurrency: Some(1), ..LimitSettings::default() },
        };
        let seen = || async { engine.run(&namespace, after(EventsSince::First)).await.unwrap() };
        engine.run(&namespace, put()).await.unwrap();
        engine.run(&namespace, DeleteLimit { limit: limit() }).await.unwrap();
        let before = seen().await;
        assert_eq!(before.items.len(), 2);
        for _ in 0..3 {
            clock.advance(DAY);
            engine.settled().await;
        }
        assert_eq!(seen().await, EventsRead::default());
        engine.run(&namespace, put()).await.unwrap();
        let told = engine.run(&namespace, after(EventsSince::Id(before.next))).await.unwrap();
        assert_eq!((told.gap.unwrap().why, told.items.len()), (GapWhy::Restarted, 1));
        // A reader that asked while there was nothing has missed nothing.
        let told = engine.run(&namespace, after(EventsSince::Id(EventId::default()))).await;
        let told = told.unwrap();
        assert_eq!((told.gap, told.items.len()), (None, 1));
    });
}
