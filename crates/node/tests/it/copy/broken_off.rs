//! A copy that is broken off, at any step: it begins again, and nothing is there twice or not at all.

use std::sync::Arc;

use tenure_core::names::Namespace;
use tenure_core::requests::Lease;
use tenure_core::time::Span;
use tenure_engine::copy::{
    self, CopyError, CopyNews, CopyPlan, CopyWatch, Found, Mark, Source, Target, thaw_source,
    thaw_target,
};
use tenure_engine::{OpenError, Seal};
use tenure_engine_api::{Clock, EngineExt, Fault, SystemClock, TestClock};
use tenure_testkit::needs_redis;

use crate::copy::away::Away;
use crate::copy::filled::fill;
use crate::copy::round_trip::one_lock;
use crate::copy::stores::{Opened, Store, Watcher, copied, copy_all};
use crate::copy::world::{is_sound, jobs, same, world};

/// More than fit one page.
const JOBS: u64 = 330;

async fn filled(store: &Store) -> Vec<String> {
    let opened = store.open();
    let engine = opened.engine();
    fill(&engine, &Namespace::main(), 21, JOBS).await;
    world(&engine, &Namespace::main()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_killed_at_any_step_begins_again() {
    needs_redis!();
    for (from, to) in Store::combinations() {
        let before = filled(&from).await;
        let mut tries = 0;
        // Each try gets one step further, and ends as a kill would: in the middle, without a word.
        let report = loop {
            let mut watch = Watcher { stop_after: Some(tries), ..Watcher::default() };
            match copied(&from, &to, &mut watch) {
                Ok(report) => break report,
                Err(why) => assert_eq!(why, CopyError::Stopped),
            }
            tries += 1;
            assert!(tries < 50);
        };
        assert!(tries > 2 && report.resumed, "{tries}");
        let opened = to.open();
        is_sound(&opened.engine(), &Namespace::main()).await;
        same(&before, &world(&opened.engine(), &Namespace::main()).await, "taken up");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: a copy is broken off more often than in the others"]
async fn a_store_that_is_away_now_and_then_is_copied_all_the_same() {
    needs_redis!();
    let pairs = Store::combinations().into_iter().zip(2..);
    // Not the first step of each: a wrong address is an error at once.
    let folders = (2..7).map(|first| ((Store::folder(), Store::folder()), first));
    for ((from, to), first) in pairs.chain(folders) {
        let before = filled(&from).await;
        let all = jobs(&from.open().engine(), &Namespace::main()).await.len() as u64;
        let mut watch = Watcher::default();
        {
            let (from_hands, to_hands) = (from.hands(), to.hands());
            let source = Away::from(from_hands.source(), first);
            let target = Away::from(to_hands.target(), first);
            let plan = CopyPlan {
                copy: "copy_away".into(),
                from: from.shown(),
                to: to.shown(),
                seal: Seal::none(),
            };
            let report = copy::copy(&source, &target, &plan, &mut watch).unwrap();
            assert!(!report.resumed && !report.already, "{report:?}");
            assert_eq!(report.moved.unfinished + report.moved.finished, all, "{report:?}");
        }
        assert!(watch.away > 0, "{}", watch.away);
        let opened = to.open();
        is_sound(&opened.engine(), &Namespace::main()).await;
        same(&before, &world(&opened.engine(), &Namespace::main()).await, "away now and then");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_reached_is_told_at_once() {
    let (from, to) = (Store::folder(), Store::folder());
    filled(&from).await;
    let (from_hands, to_hands) = (from.hands(), to.hands());
    let mut watch = Watcher::default();
    let target = Away::from(to_hands.target(), 1);
    let plan = CopyPlan {
        copy: "copy_nowhere".into(),
        from: from.shown(),
        to: to.shown(),
        seal: Seal::none(),
    };
    let no = copy::copy(from_hands.source(), &target, &plan, &mut watch).unwrap_err();
    assert!(matches!(no, CopyError::Fault(Fault::Unavailable(_))), "{no:?}");
    assert_eq!(watch.away, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_filled_and_opened_twice_is_the_same() {
    needs_redis!();
    for (from, to) in Store::combinations() {
        let before = filled(&from).await;
        let hands = (from.hands(), to.hands());
        let (source, target): (&dyn Source, &dyn Target) = (hands.0.source(), hands.1.target());
        let copy = "copy_twice".to_owned();
        let mark = Mark { copy: copy.clone(), to: "there".to_owned(), whole: false };
        source.freeze(&mark).unwrap();
        let filled = [(); 2].map(|()| {
            assert!(target.claim(&copy).unwrap());
            target.fill(&copy, source.rows().unwrap(), &mut Watcher::default()).unwrap()
        });
        assert_eq!(filled[0], filled[1]);
        for _ in 0..2 {
            target.open(&copy).unwrap();
        }
        assert!(!target.claim(&copy).unwrap(), "it is in use");
        drop(hands);
        let opened = to.open();
        is_sound(&opened.engine(), &Namespace::main()).await;
        same(&before, &world(&opened.engine(), &Namespace::main()).await, "every step twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_copy_serves_nobody_and_can_be_given_up() {
    needs_redis!();
    for (from, to) in Store::combinations() {
        let before = filled(&from).await;
        let mut watch = Watcher { stop_after: Some(2), ..Watcher::default() };
        assert_eq!(copied(&from, &to, &mut watch), Err(CopyError::Stopped));
        for store in [&from, &to] {
            crate::copy::refused::serves_nobody(store).await;
        }
        if let Store::Folder { path, .. } = &to {
            let location = tenure_engine::Location::Folder(path.clone());
            let opened = tenure_engine::Embedded::open(tenure_engine::Options::new(location));
            assert!(matches!(opened, Err(OpenError::Unfinished { .. })));
        }
        let shown = to.shown();
        assert_eq!(thaw_target(to.hands().target(), &shown), Ok(true));
        assert_eq!(to.hands().target().found(), Ok(Found::Empty));
        assert_eq!(thaw_target(to.hands().target(), &shown), Ok(false));
        if let Store::Redis(server) = &to {
            // The servers that asked for it keep the secret by which they know each other.
            assert_eq!(server.ask(&["KEYS", "*"]).unwrap(), "*1\r\n$15\r\n{tenure}:secret\r\n");
        }
        // The source has lost nothing, and is copied anew.
        let thawed = thaw_source(from.hands().source(), &from.shown(), false).unwrap();
        assert!(thawed.is_some_and(|mark| !mark.whole));
        {
            let opened = from.open();
            is_sound(&opened.engine(), &Namespace::main()).await;
            same(&before, &world(&opened.engine(), &Namespace::main()).await, "thawed");
        }
        let report = copy_all(&from, &to);
        assert!(!report.resumed);
        let opened = to.open();
        same(&before, &world(&opened.engine(), &Namespace::main()).await, "anew");
    }
}

/// The folder was used, by a fast clock, and its process was killed: its journal has entries that its rows lack.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_was_used_is_given_up_and_copied_to() {
    let (from, to) = (Store::folder(), Store::folder());
    let (before, ns) = (filled(&from).await, Namespace::main());
    let ahead = Arc::new(TestClock::at(SystemClock.now().plus(Span::from_s(3_600))));
    let opened = to.open_at(ahead);
    let fence = one_lock(&opened.engine(), &ns).await;
    let Opened::Folder(engine) = &opened else { panic!("it is a folder") };
    engine.crash();
    drop(opened);
    for _ in 0..2 {
        let mut watch = Watcher { stop_after: Some(2), ..Watcher::default() };
        assert_eq!(copied(&from, &to, &mut watch), Err(CopyError::Stopped));
        assert_eq!(thaw_target(to.hands().target(), &to.shown()), Ok(true));
        assert_eq!(
            thaw_source(from.hands().source(), "x", false).map(|mark| mark.is_some()),
            Ok(true)
        );
        drop(to.open());
    }
    copy_all(&from, &to);
    let opened = to.open();
    is_sound(&opened.engine(), &ns).await;
    same(&before, &world(&opened.engine(), &ns).await, "into a folder that was used");
    assert!(one_lock(&opened.engine(), &ns).await > fence, "fences rise");
}

/// The Redis of the target may forget that the copy is whole, after the source was told.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_copy_that_was_called_whole_is_finished() {
    let (from, to) = (Store::folder(), Store::folder());
    let before = filled(&from).await;
    let mut watch = Watcher { stop_after: Some(2), ..Watcher::default() };
    assert_eq!(copied(&from, &to, &mut watch), Err(CopyError::Stopped));
    {
        let hands = from.hands();
        let mark = hands.source().marked().unwrap().unwrap();
        hands.source().freeze(&Mark { whole: true, ..mark }).unwrap();
    }
    assert!(copy_all(&from, &to).resumed);
    let opened = to.open();
    same(&before, &world(&opened.engine(), &Namespace::main()).await, "finished");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_was_thawed_meanwhile_is_another() {
    needs_redis!();
    let (from, to) = (Store::folder(), Store::redis());
    filled(&from).await;
    let mut watch = Watcher { stop_after: Some(2), ..Watcher::default() };
    assert_eq!(copied(&from, &to, &mut watch), Err(CopyError::Stopped));
    thaw_source(from.hands().source(), &from.shown(), false).unwrap();
    let no = copied(&from, &to, &mut Watcher::default());
    assert!(matches!(&no, Err(CopyError::No { hint, .. }) if hint.contains("--thaw")), "{no:?}");
}

/// Two processes write the same copy; the other one is faster, and its target is in use by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_another_process_has_finished_is_left_alone() {
    needs_redis!();
    let (from, to) = (Store::folder(), Store::redis());
    filled(&from).await;
    let mut watch = Watcher { stop_after: Some(2), ..Watcher::default() };
    assert_eq!(copied(&from, &to, &mut watch), Err(CopyError::Stopped));
    let slow = to.hands();
    let Ok(Found::Part(copy)) = slow.target().found() else { panic!("it has a part") };
    {
        let source = from.hands();
        let rows = source.source().rows().unwrap();
        slow.target().fill(&copy, rows, &mut Watcher::default()).unwrap();
    }
    copy_all(&from, &to);
    let used = Namespace::parse("used").unwrap();
    fill(&to.open().engine(), &used, 3, 20).await;
    let before = world(&to.open().engine(), &used).await;
    slow.target().open(&copy).unwrap();
    same(&before, &world(&to.open().engine(), &used).await, "in use by then");
}

/// Thaws the source while the copy waits for its leases.
struct Thaws<'a>(&'a Store);

impl CopyWatch for Thaws<'_> {
    fn told(&mut self, _what: &CopyNews) -> Result<(), CopyError> {
        Ok(())
    }
    fn wait(&mut self, _long: Span) {
        let thawed = thaw_source(self.0.hands().source(), "x", false).unwrap();
        assert!(thawed.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_fails_if_its_source_is_thawed_while_leases_run_out() {
    needs_redis!();
    let (from, to) = (Store::redis(), Store::folder());
    {
        let opened = from.open();
        let engine = opened.engine();
        fill(&engine, &Namespace::main(), 21, 20).await;
        let needs = serde_json::from_str(r#"[{"limit":"lock:held"}]"#).unwrap();
        let held = engine.run(&Namespace::main(), Lease::needs(needs));
        assert_eq!(held.await.unwrap().leases.len(), 1);
    }
    let (source, target) = (from.hands(), to.hands());
    let plan = CopyPlan {
        copy: "copy_thawed".into(),
        from: from.shown(),
        to: to.shown(),
        seal: Seal::none(),
    };
    let no = copy::copy(source.source(), target.target(), &plan, &mut Thaws(&from));
    assert!(
        matches!(&no, Err(CopyError::No { sentence, .. }) if sentence.contains("not frozen any more")),
        "{no:?}"
    );
    drop(target);
    crate::copy::refused::serves_nobody(&to).await;
}
