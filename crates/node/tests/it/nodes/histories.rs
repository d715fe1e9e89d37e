//! Random histories: three members, a Redis, and callers that record their answers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenure_core::job::Need;
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::{LimitName, Namespace};
use tenure_core::requests::{Lease, Push, PushAnswer, Settle};
use tenure_core::time::Span;
use tenure_engine::Embedded;
use tenure_engine_api::EngineExt;
use tenure_node::{Node, StoreLeader};
use tenure_testkit::redis::Aof;
use tenure_testkit::{Dice, needs_redis};

use crate::nodes::bench::{Bench, LONG, job, queue};
use crate::nodes::line::Line;

/// Faults of one history, unless `TENURE_HISTORY_FAULTS` says more.
const FAULTS: usize = 4;
const CALLERS: usize = 3;
const TTL: Span = Span::from_s(5);
/// One in this many holders of the lock stops its heartbeats.
const STOPS_EACH: usize = 20;

/// The recorded answers of callers.
#[derive(Default)]
struct Books {
    nodes: Mutex<Vec<Arc<Node>>>,
    next: AtomicUsize,
    pushed: Mutex<BTreeSet<usize>>,
    settled: Mutex<BTreeSet<String>>,
    /// A caller believes that it holds the lock.
    is_held: AtomicBool,
    /// A silent holder has the lock at least until then.
    kept_until: Mutex<Option<Instant>>,
    answers: AtomicUsize,
    is_over: AtomicBool,
}

impl Books {
    fn engine(&self) -> Option<Arc<Embedded>> {
        self.nodes.lock().unwrap().iter().find_map(|node| match node.place().now() {
            StoreLeader::Local { engine, .. } => Some(engine),
            _ => None,
        })
    }

    /// True if the holder that asked for the lock at `begun` falls silent: no other one gets it before its ttl is over.
    fn keeps(&self, n: usize, begun: Instant) -> bool {
        let mut kept_until = self.kept_until.lock().unwrap();
        assert!(kept_until.is_none_or(|until| Instant::now() >= until), "two hold the lock");
        let keeps = n.is_multiple_of(STOPS_EACH);
        if keeps {
            *kept_until = Some(begun + TTL.std());
            self.is_held.store(false, Ordering::SeqCst);
        }
        keeps
    }

    /// One caller: pushes a job, runs one, takes the lock and gives it back.
    async fn call(&self) {
        let main = Namespace::main();
        while !self.is_over.load(Ordering::SeqCst) {
            let Some(engine) = self.engine() else {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let n = self.next.fetch_add(1, Ordering::SeqCst);
            let push = Push { jobs: vec![job(n)], answer: PushAnswer::Ids };
            if engine.run(&main, push).await.is_ok() {
                self.pushed.lock().unwrap().insert(n);
                self.answers.fetch_add(1, Ordering::SeqCst);
            }
            let lease = Lease { ttl: TTL, ..Lease::jobs(vec![queue()], 1) };
            for leased in engine.run(&main, lease).await.into_iter().flat_map(|all| all.leases) {
                let id = leased.job.unwrap().id.to_string();
                let item =
                    SettleItem::new(leased.lease.unwrap(), Ending::Succeeded { result: None });
                let settled = engine.run(&main, Settle::of(vec![item])).await;
                if settled.is_ok_and(|all| all.settled.iter().all(|one| one.ok)) {
                    assert!(self.settled.lock().unwrap().insert(id.clone()), "{id} twice");
                }
            }
            let limit = LimitName::parse("lock:site").unwrap();
            let need = Need::Limit { limit, weight: 1, cost: 1 };
            let begun = Instant::now();
            let lease = Lease { ttl: TTL, ..Lease::needs(vec![need]) };
            for leased in engine.run(&main, lease).await.into_iter().flat_map(|all| all.leases) {
                if begun.elapsed() >= TTL.std() {
                    continue;
                }
                assert!(!self.is_held.swap(true, Ordering::SeqCst), "two hold the lock");
                if self.keeps(n, begun) {
                    continue;
                }
                tokio::task::yield_now().await;
                self.is_held.store(false, Ordering::SeqCst);
                let item =
                    SettleItem::new(leased.lease.unwrap(), Ending::Succeeded { result: None });
                let _ = engine.run(&main, Settle::of(vec![item])).await;
            }
        }
    }
}

#[test]
fn no_fault_loses_or_repeats_an_answered_call() {
    needs_redis!();
    let said = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (seed, faults) = (said("TENURE_HISTORY_SEED").unwrap_or(1), said("TENURE_HISTORY_FAULTS"));
    let mut dice = Dice::mixed(seed as u64);
    let mut roll = |sides: u64| dice.below(sides);
    let mut bench = Bench::start_with(Aof::Always);
    let books = Arc::new(Books::default());
    let url = |n: usize| format!("http://m{n}");
    let mut urls: Vec<String> = (0..3).map(url).collect();
    let line = |bench: &Bench| Line::to(&bench.runtime, bench.redis.port());
    let mut lines: Vec<Line> = urls.iter().map(|_| line(&bench)).collect();
    let node = |bench: &Bench, url: &str, line: &Line| bench.member_with(&line.url(), url, |_| {});
    *books.nodes.lock().unwrap() =
        urls.iter().zip(&lines).map(|(url, line)| node(&bench, url, line)).collect();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let books = books.clone();
            bench.runtime.spawn(async move { books.call().await })
        })
        .collect();
    let until_answers = |more: usize| {
        let (begun, before) = (Instant::now(), books.answers.load(Ordering::SeqCst));
        while books.answers.load(Ordering::SeqCst) < before + more {
            assert!(begun.elapsed() < LONG, "seed {seed}: nothing is answered");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    for fault in 0..faults.unwrap_or(FAULTS) {
        until_answers(20 + roll(100) as usize);
        let serves = |node: &Arc<Node>| matches!(node.place().now(), StoreLeader::Local { .. });
        let leader = books.nodes.lock().unwrap().iter().position(serves);
        let Some(at) = leader else { continue };
        let member_there = books.nodes.lock().unwrap()[at].clone();
        match roll(5) {
            0 => bench.crash(&member_there, &urls[at]),
            1 => member_there.close(),
            2 => {
                bench.redis.kill();
                bench.redis.restart();
                continue;
            }
            3 => {
                // Another server takes over; the old leader learns of it from the next answer.
                lines[at].cut();
                let begun = Instant::now();
                while books.nodes.lock().unwrap().iter().position(serves).is_none_or(|o| o == at) {
                    assert!(begun.elapsed() < LONG, "seed {seed}: nobody takes over");
                    std::thread::sleep(Duration::from_millis(1));
                }
                lines[at].mend();
                continue;
            }
            _ => {
                let standby = (at + 1) % lines.len();
                lines[standby].cut();
                until_answers(20);
                lines[standby].mend();
                continue;
            }
        }
        urls[at] = url(3 + fault);
        lines[at] = line(&bench);
        books.nodes.lock().unwrap()[at] = node(&bench, &urls[at], &lines[at]);
    }
    until_answers(20);
    books.is_over.store(true, Ordering::SeqCst);
    for caller in callers {
        bench.runtime.block_on(caller).unwrap();
    }
    let engine = books.engine().expect("one serves");
    for n in books.pushed.lock().unwrap().iter() {
        assert!(bench.is_there(&engine, *n), "seed {seed}: j{n}");
    }
    let (pushed, settled) = (books.pushed.lock().unwrap(), books.settled.lock().unwrap());
    println!("{} jobs pushed, {} settled", pushed.len(), settled.len());
    for node in books.nodes.lock().unwrap().iter() {
        node.close();
    }
}
