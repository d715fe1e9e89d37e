//! A leader that does not reach Redis, or whose engine cannot go on.

use std::backtrace::Backtrace;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tenure_core::names::Namespace;
use tenure_core::requests::{Push, PushAnswer};
use tenure_core::time::{Moment, Span};
use tenure_engine::Embedded;
use tenure_engine_api::{CallError, Clock, EngineExt, Fault, SystemClock};
use tenure_node::{Node, StoreLeader};
use tenure_testkit::needs_redis;
use tokio::task::JoinHandle;

use crate::nodes::bench::{Bench, job};
use crate::nodes::line::Line;

/// Counted from the cut: 3 s, and some for a busy machine.
const SEEN_WITHIN: Duration = Duration::from_secs(5);
/// Much less than the 3 s for which heartbeats must be missing before a silent leader is replaced.
const GIVEN_WITHIN: Duration = Duration::from_secs(2);

impl Bench {
    fn cut_off(&self, node: &Node) {
        let begun = Instant::now();
        self.until(node, "it says that it is cut off", |place| match place {
            StoreLeader::None(why) if why.contains("has not answered") => Some(()),
            _ => None,
        });
        println!("from the cut to its being seen: {:?}", begun.elapsed());
        assert!(begun.elapsed() < SEEN_WITHIN, "{:?}", begun.elapsed());
        assert!(node.health().leader.contains("has not answered"), "{:?}", node.health());
    }

    /// Begins a push that runs beside the test.
    fn begin_push(&self, engine: &Arc<Embedded>, n: usize) -> JoinHandle<Result<(), CallError>> {
        let push = Push { jobs: vec![job(n)], answer: PushAnswer::Ids };
        let engine = engine.clone();
        self.runtime.spawn(async move { engine.run(&Namespace::main(), push).await.map(drop) })
    }
}

#[test]
fn an_owner_that_was_cut_off_serves_again_with_all_that_it_had() {
    needs_redis!();
    let bench = Bench::start();
    let line = Line::to(&bench.runtime, bench.redis.port());
    let first = bench.member_with(&line.url(), "http://first", |_| {});
    let engine = bench.here(&first);
    bench.push(&engine, 0..10).unwrap();
    line.cut();
    let waits = bench.begin_push(&engine, 10);
    bench.cut_off(&first);
    assert!(!waits.is_finished(), "whether it is written is not known yet");
    line.mend();
    let again = bench.here(&first);
    assert!(Arc::ptr_eq(&engine, &again), "it lost nothing");
    bench.runtime.block_on(waits).unwrap().unwrap();
    for n in 0..=10 {
        assert!(bench.is_there(&again, n), "j{n}");
    }
    first.close();
}

#[test]
fn a_partitioned_leader_is_replaced_though_it_answers_servers() {
    needs_redis!();
    let bench = Bench::start();
    let line = Line::to(&bench.runtime, bench.redis.port());
    let first = bench.member_with(&line.url(), "http://first", |_| {});
    let engine = bench.here(&first);
    bench.push(&engine, 0..10).unwrap();
    let second = bench.node("http://second");
    bench.there(&second, "http://first");
    line.cut();
    let waits = bench.begin_push(&engine, 10);
    let taken = bench.here(&second);
    bench.cut_off(&first);
    bench.push(&taken, 11..12).unwrap();
    line.mend();
    bench.there(&first, "http://second");
    let told = bench.runtime.block_on(waits).unwrap();
    assert!(
        matches!(told, Err(CallError::Fault(Fault::Unknown(_) | Fault::Unavailable(_)))),
        "{told:?}"
    );
    for n in 0..12 {
        assert_eq!(bench.is_there(&taken, n), n != 10, "j{n}");
    }
    first.close();
    second.close();
}

#[test]
fn a_script_that_fails_midway_answers_nothing_and_says_why() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..10).unwrap();
    // Somebody wrote to the log by hand: an append fails after it has found the right leader.
    let (log, number) = ("{shop}:log", bench.end());
    bench.redis.ask(&["XADD", log, "999999-0", "by", "hand"]).unwrap();
    let waits = bench.begin_push(&engine, 10);
    bench.cut_off(&first);
    bench.until(&first, "it says what Redis says", |place| match place {
        StoreLeader::None(why) if why.contains("equal or smaller") => Some(()),
        _ => None,
    });
    assert!(!waits.is_finished(), "whether it is written is not known yet");
    assert_eq!(bench.end(), number, "the number of the last entry says that it is there");
    bench.redis.ask(&["XDEL", log, "999999-0"]).unwrap();
    bench.redis.ask(&["XSETID", log, &format!("{number}-0")]).unwrap();
    let again = bench.here(&first);
    bench.runtime.block_on(waits).unwrap().unwrap();
    for n in 0..=10 {
        assert!(bench.is_there(&again, n), "j{n}");
    }
    first.close();
}

#[test]
fn an_engine_whose_disk_is_full_hands_the_store_over_at_once() {
    needs_redis!();
    let bench = Bench::start();
    let redis = bench.redis.url();
    let first =
        bench.member_with(&redis, "http://first", |options| options.engine.page_max = Some(100));
    let engine = bench.here(&first);
    let second = bench.node("http://second");
    bench.there(&second, "http://first");
    bench.knows(&first);
    let answered = (0..).take_while(|n| bench.push(&engine, *n..n + 1).is_ok()).count();
    let begun = Instant::now();
    let taken = bench.here(&second);
    println!("from a full disk to the next owner: {:?}", begun.elapsed());
    assert!(begun.elapsed() < GIVEN_WITHIN, "{:?}", begun.elapsed());
    for n in 0..answered {
        assert!(bench.is_there(&taken, n), "j{n}");
    }
    bench.there(&first, "http://second");
    second.close();
}

/// A clock that blocks the thread of an engine's machine.
#[derive(Default)]
struct HangingClock {
    hangs: Mutex<bool>,
    changed: Condvar,
}

impl HangingClock {
    /// Blocks until the returned value is dropped.
    fn hang(&self) -> Hang<'_> {
        *self.hangs.lock().unwrap() = true;
        Hang(self)
    }
}

struct Hang<'c>(&'c HangingClock);

impl Drop for Hang<'_> {
    fn drop(&mut self) {
        *self.0.hangs.lock().unwrap() = false;
        self.0.changed.notify_all();
    }
}

impl Clock for HangingClock {
    fn now(&self) -> Moment {
        SystemClock.now()
    }

    fn monotonic(&self) -> Duration {
        if thread::current().name() == Some("tenure-state") {
            let hangs = self.hangs.lock().unwrap();
            // An append holds the lock of the server. If it hangs there, the server does not beat, and is replaced for that.
            if *hangs && !Backtrace::force_capture().to_string().contains("NodeJournal") {
                drop(self.changed.wait_while(hangs, |hangs| *hangs).unwrap());
            }
        }
        SystemClock.monotonic()
    }

    fn sleep(&self, due: Moment) -> Duration {
        SystemClock.sleep(due)
    }

    fn on_move(&self, _wake: Arc<dyn Fn() + Send + Sync>) {}
}

/// History 25: the process sends heartbeats, and its engine hangs.
#[test]
fn an_engine_that_hangs_is_replaced_although_its_server_beats() {
    needs_redis!();
    let bench = Bench::start();
    let clock = Arc::new(HangingClock::default());
    let first = bench
        .member_with(&bench.redis.url(), "http://first", |options| options.clock = clock.clone());
    let engine = bench.here(&first);
    bench.push(&engine, 0..10).unwrap();
    let second = bench.node("http://second");
    bench.there(&second, "http://first");
    bench.knows(&first);
    let hang = clock.hang();
    let (pushed, begun) = (bench.begin_push(&engine, 10), Instant::now());
    let taken = bench.here(&second);
    println!("from the hang to the next owner: {:?}", begun.elapsed());
    assert_eq!(bench.lease(&taken, 100, Span::from_s(60)).len(), 10);
    bench.there(&first, "http://second");
    // It goes on, and is too late.
    drop(hang);
    let pushed = bench.runtime.block_on(pushed).unwrap();
    let is_told =
        |no: &CallError| matches!(no, CallError::Fault(Fault::Unknown(_) | Fault::Unavailable(_)));
    assert!(pushed.as_ref().is_err_and(is_told), "{pushed:?}");
    assert!(!bench.is_there(&taken, 10));
    drop((engine, taken));
    // It is an ordinary server again.
    second.close();
    let engine = bench.here(&first);
    assert!(bench.is_there(&engine, 0));
    first.close();
}
