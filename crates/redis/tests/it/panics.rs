//! A panic in the thread that talks to Redis ends the process: a server without it would answer 503 for good.

use std::process::Command;
use std::thread;
use std::time::Duration;

use tenure_core::redis_address::Address;
use tenure_redis::{Acquisition, RedisStore, StoreCall};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};

const ADDRESS: &str = "TENURE_TEST_PANICS_AT";

#[test]
fn a_panic_in_the_thread_of_the_journal_ends_the_process() {
    if let Ok(address) = std::env::var(ADDRESS) {
        let address = Address::parse(&address).unwrap();
        let store = RedisStore::open(address, "tenure").unwrap();
        let run = store.look().unwrap().run;
        let call =
            Acquisition { store: 7, leader: 1, seen: None, run, above: 0, is_new: true, ttl: 0 };
        store.begin_call(&StoreCall::Acquire(call), |_| panic!("boom"));
        thread::sleep(Duration::from_secs(60));
        return;
    }
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "panics::a_panic_in_the_thread_of_the_journal_ends_the_process",
        "--nocapture",
    ]);
    let ended = child.env(ADDRESS, redis.url()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(70), "{said}");
    assert!(said.contains("tenure-journal panicked: boom"), "{said}");
}
