//! Every rule of the suite, on an engine whose journal is in Redis. Its rows go with each engine: only the keys stay.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tenure_conformance::{Bench, Capabilities, Factory, MovedClock, Store, Task, all, check_all};
use tenure_core::redis_address::Address;
use tenure_engine::{Embedded, Location, Options};
use tenure_engine_api::Engine;
use tenure_redis::{RedisJournal, RedisStore};
use tenure_testkit::redis::{Aof, RedisServer};
use tenure_testkit::{TestClock, needs_redis};

type Open = Arc<Mutex<Arc<Embedded>>>;

/// One Redis for all rules; each has a store of its own.
struct InRedis {
    redis: RedisServer,
    stores: AtomicU64,
}

struct Here {
    place: (String, String),
    clock: Arc<TestClock>,
    open: Open,
}

/// Gives each process an id of its own.
static OWNERS: AtomicU64 = AtomicU64::new(1);

fn open((url, name): &(String, String), clock: &Arc<TestClock>) -> Arc<Embedded> {
    let address = Address::parse(url).expect("the fixture's address");
    let store = RedisStore::open(address, name).expect("a line can be started");
    let leader = u128::from(OWNERS.fetch_add(1, Ordering::Relaxed));
    let journal = RedisJournal::acquire(store, leader, leader).expect("the store can be acquired");
    let options = Options {
        clock: clock.clone(),
        journal: Some(Arc::new(journal)),
        ..Options::new(Location::Memory)
    };
    Arc::new(Embedded::open(options).expect("the store can be opened"))
}

impl Factory for InRedis {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(async {
            let name = format!("store-{}", self.stores.fetch_add(1, Ordering::Relaxed));
            let place = (self.redis.url(), name);
            let clock = Arc::new(TestClock::default());
            let engine = open(&place, &clock);
            let now_open = Arc::new(Mutex::new(engine.clone()));
            let open_now = now_open.clone();
            let control = MovedClock::new(clock.clone(), move || {
                let engine = open_now.lock().expect("nobody panics with it").clone();
                Box::pin(async move { engine.settled().await })
            });
            let store = Here { place, clock, open: now_open };
            let can = Capabilities::ALL;
            Bench::new(engine, Arc::new(control), can, Box::new(store))
        })
    }
}

impl Store for Here {
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            drop(old);
            let crashed = self.open.lock().expect("nobody panics with it").clone();
            crashed.crash();
            let engine = open(&self.place, &self.clock);
            *self.open.lock().expect("nobody panics with it") = engine.clone();
            engine as Arc<dyn Engine>
        })
    }
}

/// Checks the rules in a Redis of their own: a test of all of them takes minutes on a busy machine.
fn check_part(number: usize) {
    let place = InRedis { redis: RedisServer::start(Aof::Off, &[]), stores: AtomicU64::new(0) };
    let rules = all();
    let part = rules.chunks(rules.len().div_ceil(2)).nth(number).expect("there are two parts");
    check_all(&place, part);
}

#[test]
fn every_rule_holds_where_the_journal_is_in_redis_first_half() {
    needs_redis!();
    check_part(0);
}

#[test]
fn every_rule_holds_where_the_journal_is_in_redis_second_half() {
    needs_redis!();
    check_part(1);
}
