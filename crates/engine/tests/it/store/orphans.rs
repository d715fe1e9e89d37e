//! Leases that were held by the very process that had the folder open: it ended, and so did they.

use tenure_core::job::{JobState, Outcome};
use tenure_core::lease::Ending;
use tenure_core::names::{JobRef, LimitName};
use tenure_core::requests::*;
use tenure_core::settings::LimitSettings;
use tenure_core::time::Span;

use tenure_engine::Embedded;
use tenure_journal::memory::MemoryJournal;

use crate::store::calls::*;
use crate::store::journal::{appending, options_in, owner};

async fn look(here: &Here, id: &str) -> tenure_core::job::JobView {
    *run(&here.engine, GetJob { job: JobRef::parse(id).unwrap() }).await.unwrap()
}

async fn crashed(here: &mut Here) {
    here.engine.close();
    here.reopen();
    here.engine.settled().await;
}

#[test]
fn own_leases_of_a_dead_process_are_lost_at_the_next_opening() {
    block(async {
        let mut here = Here::new();
        let limit = LimitName::parse("lock:own").unwrap();
        let settings = LimitSettings {
            concurrency: Some(1),
            quarantine: Span::from_s(60),
            ..LimitSettings::default()
        };
        run(&here.engine, PutLimit { limit: limit.clone(), settings, gauge: None }).await.unwrap();
        push(&here.engine, vec![job("own"), job("far")]).await;
        let own = Lease { local: true, ..ask(1, 0) };
        assert_eq!(run(&here.engine, own).await.unwrap().leases.len(), 1);
        let far = take(&here.engine, 1).await.remove(0);
        let held = Lease { local: true, ..Lease::needs(vec![lock("own")]) };
        run(&here.engine, held).await.unwrap();
        run(&here.engine, Lease::needs(vec![lock("far")])).await.unwrap();
        crashed(&mut here).await;
        let own = look(&here, "own").await;
        assert_eq!((own.state, own.lost, own.attempt), (JobState::Scheduled, 1, 0));
        assert_eq!(own.errors.last().map(|error| error.outcome), Some(Outcome::Lost));
        let lock = run(&here.engine, GetLimit { limit }).await.unwrap();
        assert_eq!((lock.resting, lock.holders.len()), (1, 0), "its quarantine began");
        assert_eq!(look(&here, "far").await.state, JobState::Running, "its worker may live");
        assert!(settle(&here.engine, vec![done(&far)]).await.settled[0].ok);
        let limit = LimitName::parse("lock:far").unwrap();
        assert_eq!(run(&here.engine, GetLimit { limit }).await.unwrap().in_use, 1);
    });
}

/// No folder lock proves that the process is dead: the next process that opens the journal may be wrong about it.
#[test]
fn own_leases_of_a_leader_keep_their_ttl_at_the_next_opening() {
    block(async {
        let journal = std::sync::Arc::new(MemoryJournal::default());
        let mut here = owner(&journal);
        push(&here.engine, vec![job("one"), job("two")]).await;
        let own = Lease { local: true, ..ask(1, 0) };
        let first = run(&here.engine, own.clone()).await.unwrap().leases.remove(0);
        let mut settle = Settle::of(vec![ending(&first, Ending::Released)]);
        settle.lease = Some(Box::new(own));
        let settled = run(&here.engine, settle).await.unwrap();
        assert!(settled.lease.is_some(), "{settled:?}");
        let held = Lease { local: true, ..Lease::needs(vec![lock("own")]) };
        run(&here.engine, held).await.unwrap();
        here.engine.crash();
        let options = options_in(&here.dir.join("elsewhere"), &here.clock);
        here.engine = Embedded::open(appending(options, &journal)).unwrap();
        here.engine.settled().await;
        let states = [look(&here, "one").await.state, look(&here, "two").await.state];
        assert!(states.contains(&JobState::Running), "{states:?}");
        let limit = LimitName::parse("lock:own").unwrap();
        assert_eq!(run(&here.engine, GetLimit { limit }).await.unwrap().in_use, 1);
    });
}

#[test]
fn a_job_that_kills_the_only_process_there_is_found_out() {
    block(async {
        let mut here = Here::new();
        push(&here.engine, vec![job("bad")]).await;
        for death in 1..=3 {
            let own = Lease { local: true, ..ask(1, 0) };
            let leased = run(&here.engine, own).await.unwrap();
            assert_eq!(leased.leases.len(), 1, "before death {death}");
            crashed(&mut here).await;
            assert_eq!(look(&here, "bad").await.lost, death);
            here.pass(10).await;
        }
        let bad = look(&here, "bad").await;
        assert_eq!((bad.state, bad.error.as_deref()), (JobState::Failed, Some("poison")));
    });
}
