//! Many callers at once: nothing is granted twice, no caller is forgotten.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure_core::lease::Leased;
use tenure_core::requests::{Lease, Settle};
use tenure_engine_api::EngineExt;

use crate::bench::Bench;
use crate::words::*;

pub(crate) async fn many_workers_run_each_job_once_and_never_more_than_the_cap(b: &mut Bench) {
    const JOBS: usize = 300;
    b.set_limit("l", cap(3)).await;
    b.set_pool("p", plain_pool(), vec![thing("a"), thing("b")]).await;
    let said = |n: usize| {
        let said = job("q").id(&format!("j{n}"));
        if n.is_multiple_of(2) {
            said.needs([need("l")])
        } else {
            said.needs([need("l"), any_of("p")])
        }
    };
    b.push_all((0..JOBS).map(said).collect()).await;
    let done = Arc::new(Mutex::new(Vec::new()));
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..8)
        .map(|n| {
            let (engine, namespace) = (b.engine(), b.namespace.clone());
            let (done, running, most) = (done.clone(), running.clone(), most.clone());
            let call = Lease::jobs(vec![queue("q")], 1).by(&format!("w{n}")).wait(s(60));
            tokio::spawn(async move {
                loop {
                    let Leased { leases, .. } =
                        engine.run(&namespace, call.clone()).await.expect("answered");
                    for lease in leases {
                        most.fetch_max(
                            running.fetch_add(1, Ordering::SeqCst) + 1,
                            Ordering::SeqCst,
                        );
                        tokio::task::yield_now().await;
                        running.fetch_sub(1, Ordering::SeqCst);
                        let settle = vec![succeeded(&lease)];
                        let settled = engine.run(&namespace, Settle::of(settle)).await;
                        assert!(settled.expect("answered").settled[0].ok);
                        let entry = (job_of(&lease).to_owned(), lease.fence);
                        done.lock().expect("no worker panicked").push(entry);
                    }
                }
            })
        })
        .collect();
    let ended = || done.lock().expect("no worker panicked").len();
    b.eventually("all jobs are done, though no time passes", async || {
        assert!(workers.iter().all(|worker| !worker.is_finished()), "no worker gave up");
        ended() >= JOBS
    })
    .await;
    for worker in &workers {
        worker.abort();
    }
    for worker in workers {
        let _ = worker.await;
    }
    let done = std::mem::take(&mut *done.lock().expect("no worker panicked"));
    let ids: BTreeSet<_> = done.iter().map(|(id, _)| id).collect();
    let fences: BTreeSet<_> = done.iter().map(|(_, fence)| fence).collect();
    assert_eq!((done.len(), ids.len(), fences.len()), (JOBS, JOBS, JOBS));
    let most = most.load(Ordering::SeqCst);
    assert!((1..=3).contains(&most), "at most three at once: {most}");
    b.in_use("l", 0).await;
    assert_eq!(b.pool("p").await.available, 2);
}

pub(crate) async fn what_frees_at_once_serves_as_many_as_fit(b: &mut Bench) {
    b.set_limit("l", cap(50)).await;
    let held = b.hold([weighing("l", 50)]).await;
    b.push_all((0..80).map(|n| job("q").id(&format!("j{n}")).needs([need("l")])).collect()).await;
    let mut waiting = vec![];
    for _ in 0..50 {
        waiting.push(b.waiting(b.ask("q").wait(s(60))).await);
    }
    b.settle(released(&held)).await;
    for call in waiting {
        call.lease().await;
    }
    b.in_use("l", 50).await;
    b.none("q").await;
}

pub(crate) async fn a_hundred_queues_at_one_door_are_all_served(b: &mut Bench) {
    b.set_limit("l", cap(100)).await;
    let held = b.hold([weighing("l", 100)]).await;
    let mut waiting = vec![];
    for n in 0..100 {
        let name = format!("q{n}");
        b.push(job(&name).id(&name).needs([need("l")])).await;
        waiting.push(b.waiting(b.ask(&name).wait(s(60))).await);
    }
    assert!(waiting.iter().all(|call| !call.is_answered()));
    // More lines than one step may open: the rest is due at once, without time passing.
    b.settle(released(&held)).await;
    for call in waiting {
        call.lease().await;
    }
    b.in_use("l", 100).await;
}

pub(crate) async fn many_callers_pass_a_lock_on(b: &mut Bench) {
    let mut held = b.hold([need("lock:x")]).await;
    let mut line = vec![];
    for place in 1..=40 {
        let call = b.ask_needs([need("lock:x")]).ttl(hours(1)).wait(s(60));
        line.push(b.waiting_at("lock:x", place, call).await);
    }
    let mut last = held.fence;
    for call in line {
        b.settle(released(&held)).await;
        held = call.lease().await;
        assert!(held.fence > last);
        last = held.fence;
    }
}

pub(crate) async fn a_lock_excludes_while_callers_come_and_go(b: &mut Bench) {
    let inside = Arc::new(AtomicUsize::new(0));
    let entered = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let (engine, namespace) = (b.engine(), b.namespace.clone());
            let (inside, entered) = (inside.clone(), entered.clone());
            tokio::spawn(async move {
                for round in 0..20 {
                    let call =
                        Lease::needs(vec![need("lock:x")]).by(&format!("w{n}-{round}")).wait(s(60));
                    let leased = engine.run(&namespace, call).await.expect("answered");
                    assert_eq!(inside.fetch_add(leased.leases.len(), Ordering::SeqCst), 0);
                    entered.fetch_add(leased.leases.len(), Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    inside.fetch_sub(leased.leases.len(), Ordering::SeqCst);
                    let settle = leased.leases.iter().map(released).collect();
                    engine.run(&namespace, Settle::of(settle)).await.expect("answered");
                }
            })
        })
        .collect();
    b.eventually("all have been in", async || tasks.iter().all(|task| task.is_finished())).await;
    for task in tasks {
        task.await.expect("nobody met another inside");
    }
    assert_eq!(entered.load(Ordering::SeqCst), 160);
}
