//! Unreadable parts of a store: one job, one resource, the last commits. The others go on.

use rusqlite::Connection;
use tenure_core::job::{JobState, Need, NewJob, OnConflict, Unique, Until};
use tenure_core::names::{JobRef, PoolName, ResourceId, UniqueKey};
use tenure_core::requests::*;
use tenure_core::settings::NewResource;
use tenure_engine::{Durability, Embedded, OpenError, Options};

use crate::store::calls::*;

/// Changes the closed store behind its back.
fn damage(here: &Here, sql: &str) {
    here.engine.close();
    let conn = Connection::open(here.dir.join("store/tenure.db")).unwrap();
    assert_eq!(conn.execute(sql, []).unwrap(), 1, "{sql}");
}

async fn view(engine: &Embedded, id: &str) -> Box<tenure_core::job::JobView> {
    run(engine, GetJob { job: JobRef::parse(id).unwrap() }).await.unwrap()
}

fn named(n: usize) -> NewJob {
    NewJob { payload: text(&format!("payload {n}")), ..job(&format!("j{n}")) }
}

#[test]
fn one_payload_that_cannot_be_read_fails_its_job_and_no_other() {
    block(async {
        for bytes in ["CAST(x'22ff22' AS TEXT)", "'no JSON'", "'\"payload 7\"'"] {
            let mut here = Here::new();
            push(&here.engine, (0..3).map(named).collect()).await;
            damage(&here, &format!("UPDATE job SET payload = {bytes} WHERE id = 'j1'"));
            here.reopen();
            let leases = take(&here.engine, 3).await;
            let ids: Vec<_> = leases.iter().map(|l| l.job.as_ref().unwrap().id.as_str()).collect();
            assert_eq!(ids, ["j0", "j2"], "{bytes}");
            let ended = view(&here.engine, "j1").await;
            assert_eq!(ended.state, JobState::Failed);
            assert!(ended.error.as_deref().unwrap().starts_with("unreadable"), "{:?}", ended.error);
            assert!(ended.lease.is_none(), "nobody holds it");
            let explain = ExplainJob { job: JobRef::parse("j1").unwrap() };
            let explained = run(&here.engine, explain).await.unwrap();
            assert!(explained.summary.contains("unreadable"), "{}", explained.summary);
            let audit = run(&here.engine, Audit::default()).await.unwrap();
            assert!(!audit.ok && audit.faults[0].contains("job \"j1\""), "{:?}", audit.faults);
            let page = Page { max: 10, cursor: None };
            let list = ListJobs { filter: JobFilter::default(), page, full: true };
            assert_eq!(run(&here.engine, list).await.unwrap().items.len(), 3);
            let done = settle(&here.engine, leases.iter().map(done).collect()).await;
            assert!(done.settled.iter().all(|one| one.ok), "the others go on");
        }
    });
}

#[test]
fn a_deep_audit_reads_everything_and_names_the_job() {
    block(async {
        let deep = Audit { deep: true };
        let mut here = Here::new();
        push(&here.engine, (0..3).map(named).collect()).await;
        let leases = take(&here.engine, 1).await;
        settle(&here.engine, leases.iter().map(done).collect()).await;
        let audit = run(&here.engine, deep).await.unwrap();
        assert!(audit.ok && audit.checked > 5, "{audit:?}");
        for (change, says) in [
            ("UPDATE life SET result = '\"fime\"' WHERE seq = 1", "job \"j0\""),
            ("UPDATE job SET payload = '1' WHERE seq = 2", "job \"j1\""),
        ] {
            damage(&here, change);
            here.reopen();
            assert!(run(&here.engine, Audit::default()).await.unwrap().ok, "nobody read it");
            let audit = run(&here.engine, deep).await.unwrap();
            assert!(audit.faults.iter().any(|fault| fault.contains(says)), "{:?}", audit.faults);
        }
    });
}

#[test]
fn unreadable_data_bans_a_resource_and_its_job_goes_on() {
    block(async {
        let mut here = Here::new();
        let pool = PoolName::parse("p").unwrap();
        let resource = |id: &str| NewResource {
            id: ResourceId::parse(id).unwrap(),
            data: text("secret"),
            tags: vec![],
            slots: 1,
        };
        let resources = vec![resource("r1"), resource("r2")];
        run(&here.engine, AddResources { pool: pool.clone(), resources }).await.unwrap();
        let need = Need::Pool { pool: pool.clone(), tag: None, prefer: None, id: None, count: 1 };
        push(&here.engine, vec![NewJob { needs: Some(vec![need]), ..named(0) }]).await;
        damage(&here, "UPDATE resource_data SET data = '\"public\"' WHERE id = 'r1'");
        here.reopen();
        assert!(take(&here.engine, 1).await.is_empty(), "the first one is banned");
        let leases = take(&here.engine, 1).await;
        assert_eq!(leases[0].resources[0].id.as_str(), "r2");
        let resource = ResourceId::parse("r1").unwrap();
        let banned = run(&here.engine, GetResource { pool, resource }).await.unwrap();
        assert_eq!(banned.reason.as_deref(), Some("unreadable"));
    });
}

#[test]
fn a_job_with_an_unreadable_life_has_failed_and_can_be_retried() {
    block(async {
        let changes = [
            "UPDATE life SET life = x'00' WHERE seq = 1",
            "UPDATE life SET state = 5 WHERE seq = 1",
            "UPDATE life SET ns = 'elsewhere' WHERE seq = 1",
            "DELETE FROM life WHERE seq = 1",
        ];
        for change in changes {
            let mut here = Here::new();
            let unique = Unique {
                key: UniqueKey::parse("key").unwrap(),
                until: Until::End,
                hold: None,
                on_conflict: OnConflict::Reject,
                within: None,
            };
            let keyed = |n| NewJob { unique: Some(unique.clone()), ..named(n) };
            push(&here.engine, vec![keyed(0), named(1)]).await;
            damage(&here, change);
            here.reopen();
            let audit = run(&here.engine, Audit::default()).await.unwrap();
            assert_eq!(audit.faults.len(), 1, "{change}: {:?}", audit.faults);
            assert!(audit.faults[0].contains("job \"j0\""), "{:?}", audit.faults);
            let ended = view(&here.engine, "j0").await;
            assert_eq!(
                (ended.state, ended.error.as_deref()),
                (JobState::Failed, Some("unreadable"))
            );
            assert_eq!(ended.payload, Some(text("payload 0")));
            // Its key is free, and the others go on.
            push(&here.engine, vec![keyed(2)]).await;
            let retry = RetryJob { job: JobRef::parse("j0").unwrap(), finished_at: None };
            assert_eq!(run(&here.engine, retry).await.unwrap().state, JobState::Ready);
            assert_eq!(take(&here.engine, 10).await.len(), 3);
            let audit = run(&here.engine, Audit::default()).await.unwrap();
            assert_eq!(audit.faults.len(), 1, "{:?}", audit.faults);
        }
    });
}

#[test]
fn an_unidentified_job_is_set_aside_until_its_loss_is_accepted() {
    block(async {
        for change in ["UPDATE job SET id = 'j7' WHERE seq = 1", "DELETE FROM job WHERE seq = 1"] {
            let mut here = Here::new();
            push(&here.engine, vec![named(0), named(1)]).await;
            damage(&here, change);
            here.reopen();
            let audit = run(&here.engine, Audit::default()).await.unwrap();
            assert!(audit.faults[0].contains("job number 1 "), "{change}: {:?}", audit.faults);
            let leases = take(&here.engine, 10).await;
            assert_eq!(leases.len(), 1);
            assert_eq!(leases[0].job.as_ref().unwrap().id.as_str(), "j1");
            here.engine.close();
            let accepting = Options { accept_loss: true, ..options(&here.dir, &here.clock) };
            here.engine = Embedded::open(accepting).unwrap();
            assert!(run(&here.engine, Audit::default()).await.unwrap().ok);
            here.engine.close();
            here.reopen();
            assert!(
                run(&here.engine, Audit::default()).await.unwrap().ok,
                "it is forgotten for good"
            );
        }
    });
}

#[test]
fn a_damaged_setting_is_refused_until_its_loss_is_accepted() {
    block(async {
        let here = Here::new();
        run(&here.engine, PauseQueue { queue: queue(), until: None }).await.unwrap();
        damage(&here, "UPDATE row SET value = replace(value, '9', '8') WHERE kind = 'queue'");
        let no = Embedded::open(options(&here.dir, &here.clock)).unwrap_err();
        assert!(matches!(no, OpenError::Row { .. }), "{no:?}");
        assert!(no.to_string().contains("queue \"q\"") && no.to_string().contains("--accept-loss"));
        let accepting = Options { accept_loss: true, ..options(&here.dir, &here.clock) };
        Embedded::open(accepting).unwrap().close();
        Embedded::open(options(&here.dir, &here.clock)).unwrap();
    });
}

#[test]
fn an_older_copy_is_refused_until_its_loss_is_accepted() {
    block(async {
        for durability in [Durability::Always, Durability::Everysec] {
            let mut here = Here::new();
            let store = here.dir.join("store/tenure.db");
            push(&here.engine, vec![named(0)]).await;
            here.engine.close();
            let older = std::fs::read(&store).unwrap();
            let how = Options { durability, ..options(&here.dir, &here.clock) };
            here.engine = Embedded::open(how.clone()).unwrap();
            push(&here.engine, vec![named(1)]).await;
            here.engine.close();
            std::fs::write(&store, older).unwrap();
            let no = Embedded::open(how.clone()).unwrap_err();
            assert!(matches!(no, OpenError::Shorter { .. }), "{no:?}");
            assert!(no.to_string().contains("are missing"), "{no}");
            here.engine = Embedded::open(Options { accept_loss: true, ..how.clone() }).unwrap();
            assert_eq!(take(&here.engine, 10).await.len(), 1);
            here.engine.close();
            // The loss was accepted once, and counts from now on.
            Embedded::open(how.clone()).unwrap().close();
            // Without the file nothing is known, and nothing is refused.
            std::fs::write(here.dir.join("store/synced"), "synced 99999999 1 2").unwrap();
            Embedded::open(how.clone()).unwrap().close();
            std::fs::remove_file(here.dir.join("store/synced")).unwrap();
            Embedded::open(how).unwrap().close();
        }
    });
}
