//! Flows that are copied, and jobs that wait for others: each waits on for the same, is told of what it was not told yet,
//! and answers as it would have at the source.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_core::flow::{FlowState, OnParentFailure};
use tenure_core::job::{JobState, JobView, NewJob, When};
use tenure_core::names::Namespace;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::time::{Moment, Span};
use tenure_engine::copy::CopyError;
use tenure_engine_api::{Engine, EngineExt};
use tenure_testkit::needs_redis;

use crate::copy::filled::{Dice, lease_jobs, queue, worker};
use crate::copy::kin::*;
use crate::copy::stores::{Store, Watcher, copied, copy_all, thaw};
use crate::copy::world::{is_sound, same};

const HOUR: Span = Span::from_s(3_600);

/// It stands in a queue of its own.
fn alone(job: NewJob) -> NewJob {
    let name = job.id.as_ref().unwrap().to_string();
    NewJob { queue: queue(&name), ..job }
}
/// It goes as soon as nobody needs it.
fn brief(job: NewJob) -> NewJob {
    NewJob { retain: Some(Span::ZERO), ..job }
}

/// Jobs in all states that waiting has.
async fn fill(engine: &Arc<dyn Engine>, ns: &Namespace) {
    let gone = child("of one that never was", &["never"]);
    push(engine, ns, vec![alone(job("a")), job("b"), alone(job("bad")), alone(brief(job("held")))])
        .await;
    push(
        engine,
        ns,
        vec![
            child("waits", &["a", "b", "never"]),
            child("cancelled", &["bad"]),
            runs(child("runs", &["bad"])),
            child("holds", &["held"]),
            child("scheduled", &["held", "a"]),
            // It stands before those that it waits for.
            child("first", &["ref:second", "ref:third"]),
            job("second"),
            alone(job("third")),
            alone(child("tried again", &["a"])),
            gone,
        ],
    )
    .await;
    for (name, ending) in [
        ("a", succeeded()),
        ("bad", failed()),
        ("held", succeeded()),
        ("third", succeeded()),
        ("tried again", failed()),
    ] {
        end(engine, ns, name, ending).await;
    }
    engine.run(ns, RetryJob { job: named("tried again"), finished_at: None }).await.unwrap();
    let later = NewJob { when: When::In(HOUR), ..child("later", &["b", "held"]) };
    push(engine, ns, vec![later, child("behind it", &["tried again"])]).await;

    // Its parent lives again and is waited for in the second turn.
    push(engine, ns, vec![alone(job("twice")), alone(child("again", &["twice"]))]).await;
    end(engine, ns, "twice", failed()).await;
    for name in ["twice", "again"] {
        engine.run(ns, RetryJob { job: named(name), finished_at: None }).await.unwrap();
    }

    // Members that are forgotten, kept, unfinished; who waits for all of them, and who is above.
    push(
        engine,
        ns,
        vec![
            alone(brief(member("m1", "f"))),
            alone(member("m2", "f")),
            member("m3", "f"),
            child("m4", &["ref:m2"]),
            runs(child("mail", &["flow:f"])),
            child("only if well", &["flow:f", "a"]),
            child("above", &["ref:mail"]),
            alone(brief(member("w1", "well"))),
            alone(member("w2", "well")),
            child("after well", &["flow:well"]),
            alone(member("u1", "unlucky")),
            runs(alone(child("after unlucky", &["flow:unlucky"]))),
        ],
    )
    .await;
    for (name, ending) in [
        ("m1", succeeded()),
        ("m2", succeeded()),
        ("w1", succeeded()),
        ("w2", succeeded()),
        ("u1", failed()),
        ("after unlucky", succeeded()),
    ] {
        end(engine, ns, name, ending).await;
    }
    push(engine, ns, vec![child("of none", &["flow:nobody"])]).await;
    // A child and its parent that were both gone through, and a parent that is gone since.
    push(engine, ns, vec![alone(brief(job("p"))), alone(child("of p", &["p"]))]).await;
    end(engine, ns, "p", succeeded()).await;
    end(engine, ns, "of p", succeeded()).await;
}

async fn view(engine: &Arc<dyn Engine>, ns: &Namespace, name: &str) -> JobView {
    *engine.run(ns, GetJob { job: named(name) }).await.unwrap()
}

/// What the calls about flows answer, each a change.
async fn goes_on(engine: &Arc<dyn Engine>, ns: &Namespace) {
    let retry = |name: &str| RetryJob { job: named(name), finished_at: None };
    for (name, code) in [("held", Code::InUse), ("a", Code::InUse)] {
        assert_eq!(code_of(engine, ns, DeleteJob { job: named(name) }).await, code, "{name}");
    }
    assert_eq!(code_of(engine, ns, retry("cancelled")).await, Code::WrongState);
    let again = engine.run(ns, retry("bad")).await.unwrap();
    assert_eq!(again.cancelled_children, Some(1));
    engine.run(ns, retry("cancelled")).await.unwrap();
    let waits = view(engine, ns, "cancelled").await;
    assert_eq!((waits.state, waits.waiting_on), (JobState::Dependent, 1));
    let above = NewJob { flow: Some(flow("f")), ..child("x", &["above"]) };
    let above = Push { jobs: vec![above], answer: PushAnswer::Ids };
    assert_eq!(code_of(engine, ns, above).await, Code::Cycle);
    // One that was not named in vain waits on, and its failure is told.
    end(engine, ns, "twice", failed()).await;
    let again = view(engine, ns, "again").await;
    let seen = (again.state, again.error.as_deref(), again.on_parent_failure);
    let told = (JobState::Cancelled, Some("parent_failed"), OnParentFailure::Cancel);
    assert_eq!(seen, told);
    let cancelled = engine.run(ns, CancelFlow { flow: flow("f") }).await.unwrap();
    let counts = cancelled.counts;
    assert_eq!((cancelled.state, counts.succeeded, counts.cancelled), (FlowState::Finished, 2, 2));
    assert_eq!(view(engine, ns, "only if well").await.state, JobState::Cancelled);
    is_sound(engine, ns).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_come_along_and_go_on() {
    needs_redis!();
    let ns = Namespace::main();
    for chain in Store::there_and_back() {
        let before = {
            let opened = chain[0].open();
            fill(&opened.engine(), &ns).await;
            quiet(&opened.engine(), &ns).await
        };
        for (from, to) in [(0, 1), (1, 2)] {
            copy_all(&chain[from], &chain[to]);
            let opened = chain[to].open();
            let after = quiet(&opened.engine(), &ns).await;
            same(&before, &after, &format!("to the store {to}"));
        }
        thaw(&chain[0]);
        thaw(&chain[1]);
        let mut ends = Vec::new();
        for store in &chain {
            let opened = store.open();
            goes_on(&opened.engine(), &ns).await;
            ends.push(run_all(&opened.engine(), &ns, &BTreeSet::from(["b"])).await);
        }
        assert!(ends[0].contains(&"behind it Succeeded None".to_owned()), "{:#?}", ends[0]);
        assert_eq!(ends[0], ends[1]);
        assert_eq!(ends[0], ends[2]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_are_copied_to_a_store_of_the_same_kind() {
    needs_redis!();
    let ns = Namespace::parse("same").unwrap();
    for (from, to) in [(Store::folder(), Store::folder()), (Store::redis(), Store::redis())] {
        fill(&from.open().engine(), &ns).await;
        let before = quiet(&from.open().engine(), &ns).await;
        copy_all(&from, &to);
        let opened = to.open();
        same(&before, &quiet(&opened.engine(), &ns).await, "to its own kind");
        run_all(&opened.engine(), &ns, &BTreeSet::new()).await;
    }
}

/// What was held for a child goes when the child has ended, and not before.
#[tokio::test(flavor = "multi_thread")]
async fn a_parent_is_held_in_the_copy_as_long_as_a_child_needs_it() {
    needs_redis!();
    let ns = Namespace::main();
    for (from, to) in [(Store::folder(), Store::redis()), (Store::redis(), Store::folder())] {
        {
            let (opened, brief) = (from.open(), brief(alone(job("held"))));
            let engine = opened.engine();
            push(&engine, &ns, vec![brief, alone(child("c", &["ref:held"]))]).await;
            end(&engine, &ns, "held", succeeded()).await;
        }
        copy_all(&from, &to);
        let opened = to.open();
        let engine = opened.engine();
        quiet(&engine, &ns).await;
        assert_eq!(view(&engine, &ns, "held").await.state, JobState::Succeeded);
        end(&engine, &ns, "c", succeeded()).await;
        quiet(&engine, &ns).await;
        assert_eq!(code_of(&engine, &ns, GetJob { job: named("held") }).await, Code::JobNotFound);
    }
}

/// A member whose holder is to stop ends with the copy: its flow counts it, and its children are told.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_asked_to_stop_ends_and_is_told() {
    needs_redis!();
    let ns = Namespace::main();
    for (from, to) in [(Store::folder(), Store::redis()), (Store::redis(), Store::folder())] {
        let opened = from.open();
        let engine = opened.engine();
        let jobs = vec![alone(job("p")), alone(member("m", "f")), child("c", &["ref:m"])];
        push(&engine, &ns, jobs).await;
        push(&engine, &ns, vec![runs(child("mail", &["flow:f"]))]).await;
        let m = alone(NewJob { id: Some(id("n")), ..child("n", &["p"]) });
        push(&engine, &ns, vec![NewJob { flow: Some(flow("f")), ..m }]).await;
        end(&engine, &ns, "p", succeeded()).await;
        let ttl = Span::from_s(2);
        for name in ["m", "n"] {
            let ask = Lease { ttl, worker: worker("w"), ..Lease::jobs(vec![queue(name)], 1) };
            assert_eq!(engine.run(&ns, ask).await.unwrap().leases.len(), 1);
            engine.run(&ns, CancelJob { job: named(name) }).await.unwrap();
        }
        drop(engine);
        drop(opened);
        copy_all(&from, &to);
        let opened = to.open();
        let engine = opened.engine();
        quiet(&engine, &ns).await;
        let there = engine.run(&ns, GetFlow { flow: flow("f"), wait: Span::ZERO }).await.unwrap();
        assert_eq!((there.state, there.counts.cancelled), (FlowState::Finished, 3), "{there:?}");
        assert!(there.finished_at.is_some_and(|at| at > Moment::ZERO));
        let ended = run_all(&engine, &ns, &BTreeSet::new()).await;
        assert!(ended.contains(&"mail Succeeded None".to_owned()), "{ended:?}");
        assert!(ended.iter().any(|job| job.starts_with("c Cancelled")), "{ended:?}");
    }
}

/// One step of a random history.
async fn step(engine: &Arc<dyn Engine>, ns: &Namespace, dice: &mut Dice, n: u64) {
    let one = |dice: &mut Dice| format!("r{}", n.saturating_sub(1 + dice.below(9)));
    let (first, second, of) = (one(dice), one(dice), format!("flow:f{}", dice.below(3)));
    match dice.below(8) {
        0..=4 => {
            let parents: &[&str] = match dice.below(6) {
                0 => &[&first, &second],
                1 | 2 => &[&first],
                3 => &[&of, &first],
                _ => &[],
            };
            let mut new = child(&format!("r{n}"), parents);
            new.retain = (dice.below(3) == 0).then_some(Span::ZERO);
            if dice.below(2) == 0 {
                new.flow = Some(flow(&format!("f{}", dice.below(3))));
            }
            new.when = if dice.below(9) == 0 { When::In(HOUR) } else { When::Now };
            // Without parents it says nothing, and not every store keeps it.
            let any_end = !parents.is_empty() && dice.below(3) == 0;
            let new = if any_end { runs(new) } else { new };
            // Above a flow it may belong to none.
            drop(engine.run(ns, Push { jobs: vec![new], answer: PushAnswer::Ids }).await);
        }
        5 | 6 => {
            for lease in lease_jobs(engine, ns, "q", 2).await {
                let ending = if dice.below(3) == 0 { failed() } else { succeeded() };
                settle(engine, ns, &lease, ending).await;
            }
        }
        _ => {
            let (job, finished_at) = (named(&first), None);
            match dice.below(4) {
                0 => drop(engine.run(ns, CancelJob { job }).await),
                1 => drop(engine.run(ns, DeleteJob { job }).await),
                _ => drop(engine.run(ns, RetryJob { job, finished_at }).await),
            }
        }
    }
}

/// Random histories, each copy of which is broken off after every page and taken up again.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_copy_strands_no_job() {
    nobody_is_stranded(1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: another history"]
async fn an_interrupted_copy_strands_no_job_in_a_second_history() {
    nobody_is_stranded(2).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: another history"]
async fn an_interrupted_copy_strands_no_job_in_a_third_history() {
    nobody_is_stranded(3).await;
}

async fn nobody_is_stranded(seed: u64) {
    needs_redis!();
    let ns = Namespace::main();
    for chain in Store::there_and_back() {
        let before = {
            let opened = chain[0].open();
            let mut dice = Dice::new(seed);
            for n in 0..300 {
                step(&opened.engine(), &ns, &mut dice, n).await;
            }
            quiet(&opened.engine(), &ns).await
        };
        for (from, to) in [(0, 1), (1, 2)] {
            let mut tries = 0;
            loop {
                let mut watch = Watcher { stop_after: Some(tries), ..Watcher::default() };
                match copied(&chain[from], &chain[to], &mut watch) {
                    Ok(_) => break,
                    Err(why) => assert_eq!(why, CopyError::Stopped),
                }
                tries += 1;
            }
            assert!(tries > 2, "{tries}");
            let opened = chain[to].open();
            let after = quiet(&opened.engine(), &ns).await;
            same(&before, &after, &format!("seed {seed}, to the store {to}"));
        }
        let mut ends = Vec::new();
        for store in [&chain[0], &chain[2]] {
            if std::ptr::eq(store, &chain[0]) {
                thaw(store);
            }
            let opened = store.open();
            ends.push(run_all(&opened.engine(), &ns, &BTreeSet::new()).await.len());
        }
        assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
    }
}
