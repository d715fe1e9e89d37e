//! Retention: the time for which each thing is remembered.

use std::collections::BTreeSet;
use std::sync::Arc;

use memchr::memmem;
use tenure_core::job::{JobState, NewJob, Retry};
use tenure_core::lease::Ending;
use tenure_core::names::{JobRef, Namespace, PoolName, ResourceId};
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::NewResource;
use tenure_core::time::Span;
use tenure_engine::{Embedded, Options};
use tenure_engine_api::Engine;
use tenure_machine::Config;
use tenure_testkit::{TempDir, TestClock};

use crate::store::calls::*;

fn failed(last: bool) -> Ending {
    Ending::Failed { error: "no".to_owned(), retry_in: Some(Span::ZERO), last }
}

#[test]
fn the_last_four_settles_of_a_job_are_known() {
    block(async {
        let here = Here::new();
        let retry = Some(Retry { max_attempts: 0, ..Retry::default() });
        push(&here.engine, vec![NewJob { retry, ..job("a") }]).await;
        let mut leases = Vec::new();
        for _ in 0..5 {
            let lease = take(&here.engine, 1).await.remove(0);
            assert!(settle(&here.engine, vec![ending(&lease, failed(false))]).await.settled[0].ok);
            leases.push(lease);
        }
        let again = leases.iter().map(|lease| ending(lease, failed(false))).collect();
        let answers = settle(&here.engine, again).await.settled;
        let known: Vec<bool> = answers.iter().map(|answer| answer.ok).collect();
        assert_eq!(known, [false, true, true, true, true]);
        assert_eq!(answers[0].code, Some(Code::LeaseLost));
    });
}

#[test]
fn finished_jobs_stay_within_their_bytes_and_failures_own_half() {
    block(async {
        let (dir, clock) = (TempDir::new(), Arc::new(TestClock::default()));
        let config = Config { retain_bytes: 40_000, ..Config::default() };
        let engine = Embedded::open(Options { config, ..options(&dir, &clock) }).unwrap();
        // 2,000 bytes each: ten failed ones fit into their half, and a hundred succeeded ones are
        // too many.
        for n in 0..110 {
            let payload = text(&"x".repeat(2_000));
            push(&engine, vec![NewJob { payload, ..job(&format!("j{n}")) }]).await;
            let lease = take(&engine, 1).await.remove(0);
            let end = if n < 8 { ending(&lease, failed(true)) } else { done(&lease) };
            settle(&engine, vec![end]).await;
            clock.advance(Span::from_s(1));
            engine.settled().await;
        }
        let jobs = run(&engine, GetStats).await.unwrap().jobs;
        let count = |state| jobs.get(&state).copied().unwrap_or(0);
        assert_eq!(count(JobState::Failed), 8, "they are within their half");
        let succeeded = count(JobState::Succeeded);
        assert!((5..20).contains(&succeeded), "{succeeded} are kept");
        // The ones due for removal first are gone, the last one is there.
        let find = |id: &str| GetJob { job: JobRef::parse(id).unwrap() };
        run(&engine, find("j8")).await.unwrap_err();
        run(&engine, find("j109")).await.unwrap();
    });
}

#[test]
fn what_was_read_is_there_after_a_crash() {
    block(async {
        for _ in 0..20 {
            let mut here = Here::new();
            let jobs = (0..100).map(|n| job(&format!("j{n}"))).collect();
            let push = Push { jobs, answer: PushAnswer::Ids };
            // The push is on its way, and nobody waits for its answer.
            tokio::spawn(here.engine.call(&Namespace::main(), push.into()));
            let waiting = async |engine: &Embedded| {
                let jobs = run(engine, GetStats).await.unwrap().jobs;
                jobs.get(&JobState::Ready).copied().unwrap_or(0)
            };
            while waiting(&here.engine).await == 0 {}
            here.engine.crash();
            here.reopen();
            assert_eq!(waiting(&here.engine).await, 100);
        }
    });
}

/// A reader of the files of a folder finds no deleted data after its server has ended.
#[test]
fn what_was_deleted_is_in_no_file_of_a_folder_that_was_closed() {
    const SECRETS: [&str; 3] =
        ["a-short-secret-payload", "a-long-secret-payload", "a-secret-password"];
    block(async {
        let mut here = Here::new();
        let long = |n: usize| SECRETS[1].repeat(1_000 + n);
        for n in 0..50 {
            let [mut one, mut two] = [job(&format!("s{n}")), job(&format!("l{n}"))];
            (one.payload, two.payload) = (text(SECRETS[0]), text(&long(n)));
            // A job that stays lies in between.
            push(&here.engine, vec![one, two, job(&format!("stays{n}"))]).await;
        }
        let id = ResourceId::parse("r").unwrap();
        let account = NewResource { id, data: text(SECRETS[2]), tags: Vec::new(), slots: 1 };
        let pool = PoolName::parse("accounts").unwrap();
        let resources = vec![account];
        run(&here.engine, AddResources { pool: pool.clone(), resources }).await.unwrap();
        let found = |here: &Here| {
            let mut found = Vec::new();
            for path in files_of(&here.dir.join("store")) {
                let bytes = std::fs::read(&path).unwrap();
                let there = |secret: &&str| memmem::find(&bytes, secret.as_bytes()).is_some();
                found.extend(SECRETS.into_iter().filter(there));
            }
            found
        };
        let before: BTreeSet<_> = found(&here).into_iter().collect();
        assert_eq!(before.len(), 3, "{before:?}");
        for n in 0..50 {
            for id in [format!("s{n}"), format!("l{n}")] {
                run(&here.engine, DeleteJob { job: JobRef::parse(&id).unwrap() }).await.unwrap();
            }
        }
        run(&here.engine, DeletePool { pool }).await.unwrap();
        here.engine.close();
        here.reopen();
        here.engine.close();
        assert_eq!(found(&here), Vec::<&str>::new());
    });
}
