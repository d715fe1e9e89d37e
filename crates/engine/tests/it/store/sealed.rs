//! Sealed contents: they are read as they were given, and are clear in no file.

use std::path::Path;

use tenure_core::events::EventType;
use tenure_core::job::{Need, NewJob};
use tenure_core::lease::{Ending, ExtendItem, LeaseView};
use tenure_core::names::{JobRef, Namespace, PoolName, ResourceId, ScheduleId};
use tenure_core::requests::*;
use tenure_core::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduledJob, TimingSpec};
use tenure_core::settings::NewResource;
use tenure_core::time::Span;
use tenure_engine::backup::NotRestored;
use tenure_engine::copy::CopyError;
use tenure_engine::{Durability, Embedded, OpenError, Options, Seal};

use crate::store::backups::{Way, restored_by, saved};
use crate::store::calls::*;

const OLD: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
const NEW: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Words that stand in no name, each in one content. They begin differently, since what is packed holds equal beginnings once.
const WORDS: [&str; 11] = [
    "PAYLOAD", "LATER", "CHANGED", "RESULT", "MOVING", "ERROR", "WORST", "UNLOCK", "HOURLY",
    "GROWN", "FOLLOWS",
];

fn word(word: &str) -> String {
    assert!(WORDS.contains(&word));
    format!("hunter-{word}")
}

fn seal(keys: &[&str]) -> Seal {
    Seal::read(&keys.join("\n")).unwrap()
}

fn sealed(here: &Here, folder: &str, keys: &[&str]) -> Options {
    let seal = if keys.is_empty() { Seal::none() } else { seal(keys) };
    let location = tenure_engine::Location::Folder(here.dir.join(folder));
    Options { location, seal, durability: Durability::Everysec, ..options(&here.dir, &here.clock) }
}

fn holds(folder: &Path, word: &str) -> bool {
    let has = |file: &Path| {
        let bytes = std::fs::read(file).unwrap();
        // The part that no other content has: files may be packed.
        memchr::memmem::find(&bytes, word.as_bytes()).is_some()
    };
    if folder.is_dir() { files_of(folder).iter().any(|file| has(file)) } else { has(folder) }
}

fn of(id: &str) -> JobRef {
    JobRef::Id(id.parse().unwrap())
}

fn with(id: &str, payload: &str) -> NewJob {
    NewJob { payload: text(&word(payload)), ..job(id) }
}

fn schedule(payload: &str) -> Box<ScheduleSettings> {
    Box::new(ScheduleSettings {
        owner: None,
        timing: TimingSpec { every: Some(Span::from_s(86_400)), ..TimingSpec::default() },
        overlap: Overlap::Allow,
        catch_up: CatchUp::None,
        catch_up_max: 1,
        job: ScheduledJob { payload: Some(text(payload)), ..ScheduledJob::new(queue()) },
    })
}

fn pool() -> PoolName {
    PoolName::parse("accounts").unwrap()
}

fn resource() -> NewResource {
    let id = ResourceId::parse("a").unwrap();
    NewResource { id, data: text(&word("UNLOCK")), tags: Vec::new(), slots: 1 }
}

async fn leased(engine: &Embedded) -> LeaseView {
    let pool = Need::Pool { pool: pool(), tag: None, prefer: None, id: None, count: 1 };
    run(engine, Lease::needs(vec![pool])).await.unwrap().leases.remove(0)
}

/// Brings each word into the store, and a job into each state.
async fn fill(engine: &Embedded) {
    push(engine, vec![with("done", "PAYLOAD"), with("failed", "PAYLOAD"), with("waits", "LATER")])
        .await;
    let mut leases = take(engine, 2).await;
    let (failed, done) = (leases.remove(1), leases.remove(0));
    assert_eq!(done.job.as_ref().unwrap().payload, Some(text(&word("PAYLOAD"))));
    let lease = done.lease.clone().unwrap();
    let item = ExtendItem { lease, progress: Some(text(&word("MOVING"))) };
    run(engine, Extend { leases: vec![item], ttl: None }).await.unwrap();
    let mut item = ending(&done, Ending::Succeeded { result: Some(text(&word("RESULT"))) });
    item.push = vec![with("follows", "FOLLOWS")];
    let error = word("ERROR");
    let failed = ending(&failed, Ending::Failed { error, retry_in: Some(Span::ZERO), last: false });
    settle(engine, vec![item, failed]).await;
    let again = run(engine, ask(3, 0)).await.unwrap().leases;
    let again = again
        .into_iter()
        .find(|lease| lease.job.as_ref().unwrap().id.as_str() == "failed")
        .unwrap();
    assert_eq!(again.job.as_ref().unwrap().error, Some(word("ERROR")));
    settle(
        engine,
        vec![ending(&again, Ending::Failed { error: word("WORST"), retry_in: None, last: true })],
    )
    .await;
    push(engine, vec![job("patched")]).await;
    let payload = Patch::Set(text(&word("CHANGED")));
    run(engine, PatchJob { payload, ..PatchJob::new(of("patched")) }).await.unwrap();
    for (name, payload) in [("short", word("HOURLY")), ("long", word("GROWN").repeat(50))] {
        let put = PutSchedule {
            schedule: name.parse().unwrap(),
            settings: schedule(&payload),
            plan: None,
        };
        run(engine, put).await.unwrap();
    }
    let sync = SyncResources {
        pool: pool(),
        resources: vec![resource()],
        meant: Meant::Yes,
        version: None,
    };
    run(engine, sync).await.unwrap();
}

/// Everything is read as it was given.
async fn read(engine: &Embedded) {
    let get = async |id: &str| run(engine, GetJob { job: of(id) }).await.unwrap();
    let done = get("done").await;
    assert_eq!(done.payload, Some(text(&word("PAYLOAD"))));
    assert_eq!(
        (done.result, done.progress),
        (Some(text(&word("RESULT"))), Some(text(&word("MOVING"))))
    );
    let failed = get("failed").await;
    assert_eq!(failed.error, Some(word("WORST")));
    assert_eq!(
        failed.errors.iter().map(|one| one.error.clone()).collect::<Vec<_>>(),
        [word("ERROR"), word("WORST")]
    );
    assert_eq!(get("patched").await.payload, Some(text(&word("CHANGED"))));
    assert_eq!(get("follows").await.payload, Some(text(&word("FOLLOWS"))));
    let filter = JobFilter { error: Some(word("WORST")), ..JobFilter::default() };
    let listed =
        run(engine, ListJobs { filter, full: true, ..ListJobs::default() }).await.unwrap().items;
    assert_eq!(listed.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["failed"]);
    assert_eq!(listed[0].payload, Some(text(&word("PAYLOAD"))));
    let failures = run(engine, ListFailures::default()).await.unwrap().items;
    assert_eq!(
        failures.iter().map(|group| group.error.clone()).collect::<Vec<_>>(),
        [word("WORST")]
    );
    for (name, payload) in [("short", word("HOURLY")), ("long", word("GROWN").repeat(50))] {
        let schedule: ScheduleId = name.parse().unwrap();
        let got = run(engine, GetSchedule { schedule }).await.unwrap();
        assert_eq!(got.settings.job.payload, Some(text(&payload)), "{name}");
    }
    let lease = leased(engine).await;
    assert_eq!(lease.resources[0].data, text(&word("UNLOCK")));
    settle(engine, vec![ending(&lease, Ending::Released)]).await;
    let audit = run(engine, Audit { deep: true }).await.unwrap();
    assert!(audit.ok, "{:?}", audit.faults);
}

#[test]
fn contents_are_clear_to_callers_and_in_no_file() {
    let here = Here::new();
    for (folder, keys) in [("clear", &[][..]), ("sealed", &[OLD])] {
        let options = sealed(&here, folder, keys);
        let engine = Embedded::open(options.clone()).unwrap();
        block(async {
            fill(&engine).await;
            let since = EventsSince::First;
            let read_events = ReadEvents { since, max: 1_000, ..ReadEvents::default() };
            let events = run(&engine, read_events).await.unwrap().items;
            let failed = events.iter().find(|event| event.happened.kind == EventType::JobFailed);
            assert_eq!(failed.unwrap().happened.about.error, Some(word("WORST")));
            read(&engine).await;
        });
        let file = saved(&engine, &here.dir.join(format!("{folder}.backup")));
        // Some is still in the journal, and what is read from memory is the same from rows.
        let early = here.dir.join(format!("{folder}-open"));
        copy_folder(&here.dir.join(folder), &early);
        engine.close();
        drop(engine);
        let engine = Embedded::open(options).unwrap();
        block(read(&engine));
        engine.close();
        for word in WORDS {
            let is_clear = keys.is_empty();
            let found = [&file, &here.dir.join(folder)].map(|place| holds(place, word));
            assert_eq!(found, [is_clear; 2], "{word} in {folder}");
            assert!(is_clear || !holds(&early, word), "{word} in {folder} while it is open");
        }
    }
}

#[test]
fn a_sealed_store_without_its_key_is_refused_and_stays_as_it_is() {
    let here = Here::new();
    let engine = Embedded::open(sealed(&here, "s", &[OLD])).unwrap();
    block(fill(&engine));
    engine.crash();
    drop(engine);
    let folder = here.dir.join("s");
    let bytes = || {
        let mut files = files_of(&folder);
        // SQLite marks both when it opens them.
        files.retain(|file| !file.ends_with("tenure.db-shm") && !file.ends_with("tenure.db-wal"));
        files.sort();
        files.iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect::<Vec<_>>()
    };
    let before = bytes();
    for keys in [&[][..], &[NEW]] {
        let no = Embedded::open(sealed(&here, "s", keys)).unwrap_err();
        assert!(matches!(&no, OpenError::Sealed { .. }), "{no}");
        assert!(no.to_string().contains("--seal-key-file"), "{no}");
        let changed = bytes().into_iter().filter(|file| !before.contains(file));
        let changed: Vec<_> = changed.map(|(path, _)| path).collect();
        assert!(changed.is_empty(), "{changed:?}");
    }
    let engine = Embedded::open(sealed(&here, "s", &[OLD])).unwrap();
    block(read(&engine));
}

#[test]
fn a_key_is_changed_while_the_old_one_still_opens() {
    let here = Here::new();
    // A job from before the first key stays clear, and is read.
    let engine = Embedded::open(sealed(&here, "s", &[])).unwrap();
    block(async { push(&engine, vec![with("before", "LATER")]).await });
    engine.close();
    drop(engine);
    let engine = Embedded::open(sealed(&here, "s", &[OLD])).unwrap();
    block(async {
        let lease = take(&engine, 1).await.remove(0);
        assert_eq!(lease.job.as_ref().unwrap().payload, Some(text(&word("LATER"))));
        settle(&engine, vec![done(&lease)]).await;
        fill(&engine).await;
    });
    engine.close();
    drop(engine);
    let engine = Embedded::open(sealed(&here, "s", &[NEW, OLD])).unwrap();
    block(async {
        push(&engine, vec![with("new", "LATER")]).await;
        read(&engine).await;
    });
    let file = saved(&engine, &here.dir.join("backup"));
    engine.close();
    drop(engine);
    assert!(matches!(Embedded::open(sealed(&here, "s", &[NEW])), Err(OpenError::Sealed { .. })));
    // A restore, as a copy, seals again: then the old key is needed no more.
    let to = here.dir.join("anew");
    for keys in [Seal::none(), seal(&[NEW])] {
        let no = restored_by(&file, &to, &here.clock, (Way::DoesNotWait, keys)).0.unwrap_err();
        assert!(matches!(&no, NotRestored::Target(CopyError::Sealed(_))), "{no}");
    }
    restored_by(&file, &to, &here.clock, (Way::DoesNotWait, seal(&[NEW, OLD]))).0.unwrap();
    let engine = Embedded::open(sealed(&here, "anew", &[NEW])).unwrap();
    block(async {
        read(&engine).await;
        let before =
            run_in(&engine, &Namespace::main(), GetJob { job: of("before") }).await.unwrap();
        assert_eq!(before.payload, Some(text(&word("LATER"))));
    });
    engine.close();
    assert!(WORDS.iter().all(|word| !holds(&to, word)));
}

/// Wherever the payload of a job goes, the job that a worker gets has it.
#[test]
fn a_job_is_leased_with_its_payload_from_memory_and_from_rows() {
    let here = Here::new();
    for body_bytes in [0, 1 << 20] {
        let engine = Embedded::open(Options { body_bytes, ..sealed(&here, "s", &[OLD]) }).unwrap();
        block(async {
            let ids = ["a", "b", "c"].map(|id| format!("{id}-{body_bytes}"));
            push(&engine, ids.iter().map(|id| with(id, "PAYLOAD")).collect()).await;
            let leases = take(&engine, 3).await;
            assert_eq!(leases.len(), 3);
            for lease in &leases {
                assert_eq!(lease.job.as_ref().unwrap().payload, Some(text(&word("PAYLOAD"))));
            }
            settle(&engine, leases.iter().map(done).collect()).await;
        });
        engine.close();
    }
}
