//! What is not copied, and who is not served.

use tenure_core::job::NewJob;
use tenure_core::names::Namespace;
use tenure_core::requests::{GetStats, Push, PushAnswer};
use tenure_engine::copy::{CopyError, thaw_source};
use tenure_engine::{Embedded, Location, OpenError, Options};
use tenure_engine_api::{CallError, EngineExt, Fault};
use tenure_node::CopyOpenError;
use tenure_testkit::needs_redis;

use crate::copy::filled::{fill, queue};
use crate::copy::stores::{Store, Watcher, copied, copy_all};

/// Every call is refused, and what is said names the way out.
pub async fn serves_nobody(store: &Store) {
    match store {
        Store::Folder { path, .. } => {
            let opened = Embedded::open(Options::new(Location::Folder(path.clone())));
            let why = opened.err().unwrap();
            let refused = matches!(why, OpenError::Frozen { .. } | OpenError::Unfinished { .. });
            assert!(refused && why.to_string().contains("tenure copy"), "{why}");
        }
        Store::Redis(_) | Store::Cluster(_) => {
            let opened = store.open();
            let (engine, ns) = (opened.engine(), Namespace::main());
            let jobs = vec![NewJob::new(queue("q"))];
            let pushed = engine.run(&ns, Push { jobs, answer: PushAnswer::Ids }).await;
            let looked = engine.run(&ns, GetStats).await;
            for no in [pushed.err(), looked.err()] {
                let Some(CallError::Fault(Fault::Unavailable(why))) = no else { panic!("{no:?}") };
                assert!(why.contains("tenure copy"), "{why}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_stays_frozen_when_its_copy_is_whole() {
    needs_redis!();
    for (from, to) in Store::combinations() {
        fill(&from.open().engine(), &Namespace::main(), 3, 20).await;
        copy_all(&from, &to);
        serves_nobody(&from).await;
        // The same once more does nothing, also when the copy is in use by then.
        fill(&to.open().engine(), &Namespace::parse("new").unwrap(), 4, 5).await;
        let again = copy_all(&from, &to);
        assert!(again.already && again.moved == Default::default());
        // It is not thawed by accident.
        let no = thaw_source(from.hands().source(), &from.shown(), false);
        assert!(
            matches!(&no, Err(CopyError::No { hint, .. }) if hint.contains("--force")),
            "{no:?}"
        );
        serves_nobody(&from).await;
        // Nor copied a second time.
        let elsewhere = Store::folder();
        let no = copied(&from, &elsewhere, &mut Watcher::default());
        assert!(matches!(&no, Err(CopyError::No { sentence, .. }) if sentence.contains("already")));
        let thawed = thaw_source(from.hands().source(), &from.shown(), true).unwrap();
        assert!(thawed.is_some_and(|mark| mark.whole));
        from.open().engine().run(&Namespace::main(), GetStats).await.unwrap();
        assert_eq!(thaw_source(from.hands().source(), "x", false), Ok(None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_with_content_is_refused_and_the_source_goes_on() {
    needs_redis!();
    for (from, to) in Store::combinations() {
        fill(&from.open().engine(), &Namespace::main(), 3, 20).await;
        let elsewhere = Namespace::parse("elsewhere").unwrap();
        let jobs = vec![NewJob::new(queue("q"))];
        let push = Push { jobs, answer: PushAnswer::Ids };
        to.open().engine().run(&elsewhere, push).await.unwrap();
        let no = copied(&from, &to, &mut Watcher::default());
        assert!(
            matches!(&no, Err(CopyError::No { sentence, .. }) if sentence.contains("not empty"))
        );
        // Nothing was frozen for it.
        from.open().engine().run(&Namespace::main(), GetStats).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_was_only_asked_for_work_is_empty() {
    needs_redis!();
    let (from, to) = (Store::folder(), Store::redis());
    fill(&from.open().engine(), &Namespace::main(), 3, 20).await;
    to.open().engine().run(&Namespace::main(), GetStats).await.unwrap();
    copy_all(&from, &to);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_a_server_uses_is_refused_and_goes_on() {
    needs_redis!();
    let store = Store::redis();
    let opened = store.open();
    fill(&opened.engine(), &Namespace::main(), 3, 20).await;
    let refused = store.source().unwrap_err();
    assert!(matches!(refused, CopyOpenError::Served { .. }), "{refused}");
    opened.engine().run(&Namespace::main(), GetStats).await.unwrap();
    drop(opened);
    store.source().unwrap();
}

/// A server wrote to it after it was looked at.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_not_empty_any_more_becomes_no_copy() {
    needs_redis!();
    let store = Store::redis();
    let hands = store.hands();
    fill(&store.open().engine(), &Namespace::main(), 3, 20).await;
    let no = hands.target().claim("copy_x");
    assert!(
        matches!(&no, Err(CopyError::No { sentence, .. }) if sentence.contains("not empty")),
        "{no:?}"
    );
    store.open().engine().run(&Namespace::main(), GetStats).await.unwrap();
}
