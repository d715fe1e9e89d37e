//! A copy that is broken off, wherever: it is taken up, and nothing is there twice or not at all.

use std::pin::Pin;

use tenure_core::copy::{Cursor, Head, Section};
use tenure_core::names::Namespace;
use tenure_core::requests::Lease;
use tenure_core::time::Span;
use tenure_engine::OpenError;
use tenure_seam::copy::{
    self, CopyError, CopyNews, CopyPlan, CopyWatch, Found, Source, Target, thaw_source, thaw_target,
};
use tenure_seam::{EngineExt, Fault};
use tenure_testkit::redis::wanted;

use crate::copy::away::Away;
use crate::copy::filled::fill;
use crate::copy::stores::{Store, Watcher, copied, copy_all};
use crate::copy::world::{is_sound, same, world};

const JOBS: u64 = 620;

async fn filled(store: &Store) -> Vec<String> {
    let opened = store.open();
    let engine = opened.engine();
    fill(&engine, &Namespace::main(), 21, JOBS).await;
    world(&engine, &Namespace::main()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_killed_after_any_page_is_taken_up() {
    if !wanted() {
        return;
    }
    for (from, to) in Store::combinations() {
        let before = filled(&from).await;
        let mut tries = 0;
        // Each try gets some pages further, and ends as a kill would: in the middle, without a word.
        let report = loop {
            let mut watch = Watcher { stop_after: Some(to.pages(tries)), ..Watcher::default() };
            match copied(&from, &to, &mut watch).await {
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
async fn a_store_that_is_away_now_and_then_is_copied_all_the_same() {
    if !wanted() {
        return;
    }
    for (from, to) in Store::combinations() {
        let before = filled(&from).await;
        let mut watch = Watcher::default();
        let (report, jobs) = {
            let (from_hands, to_hands) = (from.hands(), to.hands());
            // Not the first steps: who names a wrong store is told so at once.
            let source = Away::from(from_hands.source(), 7);
            let target = Away::from(to_hands.target(), 11);
            let plan = CopyPlan { copy: "copy_away".into(), from: from.shown(), to: to.shown() };
            let report = copy::copy(&source, &target, &plan, &mut watch).await.unwrap();
            (report, from_hands.source().head(&Namespace::main()).await.unwrap().jobs)
        };
        assert!(watch.away > 3, "{}", watch.away);
        assert!(!report.resumed && !report.already, "{report:?}");
        assert_eq!(report.moved.unfinished + report.moved.finished, jobs, "{report:?}");
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
    let plan = CopyPlan { copy: "copy_nowhere".into(), from: from.shown(), to: to.shown() };
    let no = copy::copy(from_hands.source(), &target, &plan, &mut watch).await.unwrap_err();
    assert!(matches!(no, CopyError::Fault(Fault::Unavailable(_))), "{no:?}");
    assert_eq!(watch.away, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_sent_again_changes_nothing() {
    if !wanted() {
        return;
    }
    for (from, to) in Store::combinations() {
        let before = filled(&from).await;
        let hands = (from.hands(), to.hands());
        let (source, target): (&dyn Source, &dyn Target) = (hands.0.source(), hands.1.target());
        let mark = tenure_seam::copy::Mark {
            copy: "copy_twice".to_owned(),
            to: "there".to_owned(),
            whole: false,
        };
        source.freeze(&mark).await.unwrap();
        let ns = Namespace::main();
        let head = source.head(&ns).await.unwrap();
        assert_eq!(target.begin(&mark.copy, &ns, &head).await.unwrap().pages, 0);
        let (mut number, mut next) = (0, Some(Cursor::of(Section::ALL[0])));
        while let Some(cursor) = next {
            let page = source.page(&ns, &cursor).await.unwrap();
            assert_eq!(source.page(&ns, &cursor).await.unwrap(), page, "{cursor}");
            for _ in 0..2 {
                let (items, next) = (page.items.clone(), page.next.clone());
                target.put(&mark.copy, &ns, number, items, next).await.unwrap();
            }
            number += 1;
            let begun = target.begin(&mark.copy, &ns, &head).await.unwrap();
            assert_eq!((begun.pages, &begun.next), (number, &page.next));
            let (items, then) = (page.items.clone(), page.next.clone());
            let no = target.put(&mark.copy, &ns, number + 3, items, then).await;
            assert!(matches!(no, Err(CopyError::No { .. })), "{no:?}");
            next = page.next;
        }
        for _ in 0..2 {
            target.open(&mark.copy).await.unwrap();
        }
        drop(hands);
        let opened = to.open();
        is_sound(&opened.engine(), &ns).await;
        same(&before, &world(&opened.engine(), &ns).await, "every page twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_copy_serves_nobody_and_can_be_given_up() {
    if !wanted() {
        return;
    }
    for (from, to) in Store::combinations() {
        let before = filled(&from).await;
        let mut watch = Watcher { stop_after: Some(8), ..Watcher::default() };
        assert_eq!(copied(&from, &to, &mut watch).await, Err(CopyError::Stopped));
        for store in [&from, &to] {
            crate::copy::refused::serves_nobody(store).await;
        }
        if let Store::Folder { path, .. } = &to {
            let location = tenure_engine::Location::Folder(path.clone());
            let opened = tenure_engine::Embedded::open(tenure_engine::Options::new(location));
            assert!(matches!(opened, Err(OpenError::Unfinished { .. })));
        }
        let shown = to.shown();
        assert_eq!(thaw_target(to.hands().target(), &shown).await, Ok(true));
        assert_eq!(to.hands().target().found().await, Ok(Found::Empty));
        assert_eq!(thaw_target(to.hands().target(), &shown).await, Ok(false));
        if let Store::Redis(server) = &to {
            // The servers that asked for it keep the secret by which they know each other.
            assert_eq!(server.ask(&["KEYS", "*"]).unwrap(), "*1\r\n$15\r\n{tenure}:secret\r\n");
        }
        // The source has lost nothing, and is copied anew.
        let thawed = thaw_source(from.hands().source(), &from.shown(), false).await.unwrap();
        assert!(thawed.is_some_and(|mark| !mark.whole));
        {
            let opened = from.open();
            is_sound(&opened.engine(), &Namespace::main()).await;
            same(&before, &world(&opened.engine(), &Namespace::main()).await, "thawed");
        }
        let report = copy_all(&from, &to).await;
        assert!(!report.resumed);
        let opened = to.open();
        same(&before, &world(&opened.engine(), &Namespace::main()).await, "anew");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_was_thawed_meanwhile_is_another() {
    if !wanted() {
        return;
    }
    let (from, to) = (Store::folder(), Store::redis());
    filled(&from).await;
    let mut watch = Watcher { stop_after: Some(8), ..Watcher::default() };
    assert_eq!(copied(&from, &to, &mut watch).await, Err(CopyError::Stopped));
    thaw_source(from.hands().source(), &from.shown(), false).await.unwrap();
    let no = copied(&from, &to, &mut Watcher::default()).await;
    assert!(matches!(&no, Err(CopyError::No { hint, .. }) if hint.contains("--thaw")), "{no:?}");
}

/// Two processes write the same copy; the other one is faster, and its target is in use by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_another_process_has_finished_is_left_alone() {
    if !wanted() {
        return;
    }
    let (from, to) = (Store::folder(), Store::redis());
    filled(&from).await;
    let mut watch = Watcher { stop_after: Some(1), ..Watcher::default() };
    assert_eq!(copied(&from, &to, &mut watch).await, Err(CopyError::Stopped));
    let slow = to.hands();
    let Ok(Found::Part(copy)) = slow.target().found().await else { panic!("it has a part") };
    let (ns, head) = (Namespace::main(), Head::default());
    slow.target().begin(&copy, &ns, &head).await.unwrap();
    copy_all(&from, &to).await;
    let used = Namespace::parse("used").unwrap();
    fill(&to.open().engine(), &used, 3, 20).await;
    let before = world(&to.open().engine(), &used).await;
    slow.target().open(&copy).await.unwrap();
    same(&before, &world(&to.open().engine(), &used).await, "in use by then");
}

/// Thaws the source while the copy waits for its leases.
struct Thaws<'a>(&'a Store);

impl CopyWatch for Thaws<'_> {
    fn told(&mut self, _what: &CopyNews) -> Result<(), CopyError> {
        Ok(())
    }
    fn wait(&mut self, _long: Span) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let thawed = thaw_source(self.0.hands().source(), "x", false).await.unwrap();
            assert!(thawed.is_some());
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_thawed_while_its_leases_run_out_has_no_copy_in_use() {
    if !wanted() {
        return;
    }
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
    let plan = CopyPlan { copy: "copy_thawed".into(), from: from.shown(), to: to.shown() };
    let no = copy::copy(source.source(), target.target(), &plan, &mut Thaws(&from)).await;
    assert!(
        matches!(&no, Err(CopyError::No { sentence, .. }) if sentence.contains("not frozen any more")),
        "{no:?}"
    );
    drop(target);
    crate::copy::refused::serves_nobody(&to).await;
}
