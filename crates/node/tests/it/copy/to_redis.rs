//! A copy into a Redis that has no room for it, or whose replicas do not have it.

use tenure_core::job::NewJob;
use tenure_core::names::Namespace;
use tenure_core::redis_address::Address;
use tenure_core::requests::{Push, PushAnswer};
use tenure_core::secret::Json;
use tenure_engine::copy::{CopyError, Target};
use tenure_engine_api::EngineExt;
use tenure_node::CopyRedis;
use tenure_testkit::redis::RedisServer;
use tenure_testkit::{Dice, needs_redis};

use crate::copy::filled::queue;
use crate::copy::stores::{Store, Watcher, copied, copy_all};
use crate::copy::world::jobs;

/// Of a payload that does not become shorter when it is packed.
const PAYLOAD: usize = 60_000;
const JOBS: usize = 400;

/// A folder with more than 20 MB.
async fn large() -> Store {
    let from = Store::folder();
    let (opened, mut dice) = (from.open(), Dice::mixed(7));
    for _ in 0..JOBS {
        let text: String = (0..PAYLOAD).map(|_| char::from(b' ' + dice.below(90) as u8)).collect();
        let payload = Json::from(text.as_str());
        let jobs = vec![NewJob { payload, ..NewJob::new(queue("q")) }];
        let push = Push { jobs, answer: PushAnswer::Ids };
        opened.engine().run(&Namespace::main(), push).await.unwrap();
    }
    drop(opened);
    from
}

fn server(store: &Store) -> &RedisServer {
    match store {
        Store::Redis(server) => server,
        _ => panic!("it is none"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_without_enough_memory_is_refused_and_leaves_nothing() {
    needs_redis!();
    let (from, to) = (large().await, Store::redis());
    let redis = server(&to);
    // The margin of 32 MiB, and less than the copy takes.
    redis.must(&["CONFIG", "SET", "maxmemory", "42mb"]);
    let no = copied(&from, &to, &mut Watcher::default());
    let is_told =
        matches!(&no, Err(CopyError::No { sentence, .. }) if sentence.contains("maxmemory"));
    assert!(is_told, "{no:?}");
    assert_eq!(redis.must(&["KEYS", "*:snap:*"]).list().len(), 0);
    redis.must(&["CONFIG", "SET", "maxmemory", "0"]);
    copy_all(&from, &to);
    assert_eq!(jobs(&to.open().engine(), &Namespace::main()).await.len(), JOBS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_its_replicas_do_not_have_is_not_begun() {
    needs_redis!();
    let to = Store::redis();
    let address = Address::parse(&format!("{}?replicas=1", server(&to).url())).unwrap();
    let target = CopyRedis::target(address, "tenure").unwrap();
    let begun = target.claim("copy_x");
    let Err(CopyError::Fault(why)) = begun else { panic!("{begun:?}") };
    assert!(why.to_string().contains("0 of 1 replicas"), "{why}");
}
