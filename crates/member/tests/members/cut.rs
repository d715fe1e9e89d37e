//! An owner that does not reach Redis, or whose engine cannot go on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::names::Namespace;
use tenure_core::requests::{Push, PushAnswer};
use tenure_engine::Embedded;
use tenure_member::{Member, StorePlace};
use tenure_seam::{CallError, EngineExt, Fault};
use tenure_testkit::redis::wanted;
use tokio::task::JoinHandle;

use crate::bench::{Bench, job};
use crate::line::Line;

/// From the cut on: 3 s, and some for a machine that is busy.
const SEEN_WITHIN: Duration = Duration::from_secs(5);
/// Much less than the 3 s for which a beat has to stand before a silent owner is replaced.
const GIVEN_WITHIN: Duration = Duration::from_secs(2);

impl Bench {
    fn cut_off(&self, member: &Member) {
        let begun = Instant::now();
        self.until(member, "it says that it is cut off", |place| match place {
            StorePlace::Nobody(why) if why.contains("has not answered") => Some(()),
            _ => None,
        });
        println!("from the cut to its being seen: {:?}", begun.elapsed());
        assert!(begun.elapsed() < SEEN_WITHIN, "{:?}", begun.elapsed());
        assert!(member.health().owner.contains("has not answered"), "{:?}", member.health());
    }

    /// A push that goes on beside the test.
    fn begin_push(&self, engine: &Arc<Embedded>, n: usize) -> JoinHandle<Result<(), CallError>> {
        let push = Push { jobs: vec![job(n)], answer: PushAnswer::Ids };
        let engine = engine.clone();
        self.runtime.spawn(async move { engine.run(&Namespace::main(), push).await.map(drop) })
    }
}

#[test]
fn an_owner_that_was_cut_off_serves_again_with_all_that_it_had() {
    if !wanted() {
        return;
    }
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
fn an_owner_that_was_cut_off_is_replaced_though_it_answers_other_servers() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let line = Line::to(&bench.runtime, bench.redis.port());
    let first = bench.member_with(&line.url(), "http://first", |_| {});
    let engine = bench.here(&first);
    bench.push(&engine, 0..10).unwrap();
    let second = bench.member("http://second");
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
fn a_script_that_fails_in_its_middle_answers_nobody_and_the_owner_says_why() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..10).unwrap();
    // Somebody wrote to the log by hand: an append fails after it has found the owner to be the right one.
    let log = "{shop}:log";
    bench.redis.ask(&["RENAME", log, "kept"]).unwrap();
    bench.redis.ask(&["SET", log, "text"]).unwrap();
    let number = bench.end();
    let waits = bench.begin_push(&engine, 10);
    bench.cut_off(&first);
    bench.until(&first, "it says what Redis says", |place| match place {
        StorePlace::Nobody(why) if why.contains("WRONGTYPE") => Some(()),
        _ => None,
    });
    assert!(!waits.is_finished(), "whether it is written is not known yet");
    assert_eq!(bench.end(), number, "the number of the last entry says that it is there");
    bench.redis.ask(&["RENAME", "kept", log]).unwrap();
    let again = bench.here(&first);
    bench.runtime.block_on(waits).unwrap().unwrap();
    for n in 0..=10 {
        assert!(bench.is_there(&again, n), "j{n}");
    }
    first.close();
}

#[test]
fn an_engine_whose_disk_is_full_hands_the_store_over_at_once() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let redis = bench.redis.url();
    let first =
        bench.member_with(&redis, "http://first", |options| options.engine.page_max = Some(100));
    let engine = bench.here(&first);
    let second = bench.member("http://second");
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
