//! The size of a store in its Redis, and the Redis servers that are rejected.

use std::time::Duration;

use tenure_core::redis_address::Address;
use tenure_journal::{Append, Appended, JournalEntry, Position, Reply};
use tenure_redis::{
    Generation, RedisJournal, RedisStore, RunNote, ScriptReply, SnapshotTurn, StoreError,
    UnfitServer,
};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};

const LONG: Duration = Duration::from_secs(60);

fn store(redis: &RedisServer) -> RedisStore {
    RedisStore::open(Address::parse(&redis.url()).unwrap(), "shop").unwrap()
}

/// Bytes that cannot be compressed.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut dice = tenure_testkit::Dice::mixed(seed);
    (0..bytes).map(|_| dice.below(256) as u8).collect()
}

#[test]
fn the_bytes_of_the_log_are_counted_between_two_looks_at_it() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let journal = RedisJournal::acquire(store(&redis), 1, 7).unwrap();
    let store = journal.store();
    let mut end = Position::default();
    let mut append = |bytes| {
        let entry = JournalEntry::after(end, 1, &noise(end.number, bytes));
        end = entry.position();
        let reply =
            Reply::to(&journal, Append::Entry { entry, ttl: Duration::ZERO, grants: false });
        assert_eq!(reply.wait(LONG), Some(Appended::Done));
        end
    };
    assert_eq!(store.measure().unwrap().log, 0);
    let mut tip = Position::default();
    for n in 0..200 {
        tip = append(if n % 2 == 0 { 100 } else { 40_000 });
    }
    let (counted, measured) = (store.sizes().log, store.measure().unwrap().log);
    assert!(counted > 4_000_000 && counted <= measured && measured < counted * 3 / 2);
    for _ in 0..5 {
        append(40_000);
    }
    let by = journal.term().clone();
    let generation = Generation { epoch: by.epoch, count: 1 };
    let mut parts = tenure_journal::memory::MemorySnapshot::with(
        tip,
        vec![JournalEntry::after(Position::default(), 1, &noise(1, 3 << 20))],
    );
    let snapshot = store.write_snapshot(&by, generation, &mut parts).unwrap();
    let (heals, note) = (false, RunNote::Stays);
    let turn = SnapshotTurn { by, snapshot, heals, moment: 0, ttl: 0, note };
    assert!(matches!(store.turn(&turn).unwrap(), ScriptReply::Done { .. }));
    let sizes = store.measure().unwrap();
    assert!(sizes.log >= 200_000 && sizes.log < 400_000, "{sizes:?}");
    assert!(sizes.snapshot == snapshot.bytes && sizes.snapshot > 3 << 20, "{sizes:?}");
    assert_eq!(sizes.before, 0);
    let room = store.room().unwrap();
    assert!(room.used > sizes.snapshot + sizes.log && !room.is_full());
    let now = room.used.to_string();
    redis.must(&["CONFIG", "SET", "maxmemory", &now]);
    assert!(store.room().unwrap().is_full());
}

#[test]
fn a_redis_that_would_drop_jobs_is_refused() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let store = store(&redis);
    store.check_server().unwrap();
    assert_eq!(store.room().unwrap().evicts, None);
    redis.must(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let no = store.check_server().unwrap_err();
    let policy = "allkeys-lru".to_owned();
    let evicts = UnfitServer::Evicts { policy: policy.clone() };
    assert_eq!(
        store.room().unwrap().evicts,
        Some(evicts),
        "whoever keeps a store in it looks again"
    );
    assert!(
        matches!(&no, StoreError::Unfit(why) if *why == UnfitServer::Evicts { policy }),
        "{no}"
    );
}

#[test]
fn a_namespace_of_an_old_release_is_found_among_many_keys() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let store = store(&redis);
    let ours = RedisJournal::acquire(store.clone(), 1, 7).unwrap();
    let fill = "for i = 1, 5000 do redis.call('SET', 'other:' .. i, i) end";
    redis.must(&["EVAL", fill, "0"]);
    redis.must(&["SET", "tenure:{default}m", "of another program"]);
    redis.must(&["HSET", "tenure:{default}r:1", "a", "b"]);
    redis.must(&["HSET", "te*ure:{default}m", "layout", "12"]);
    let named = |name| RedisStore::open(Address::parse(&redis.url()).unwrap(), name).unwrap();
    let (default, odd) = (named("tenure"), named("te?ure"));
    for store in [&store, &default, &odd] {
        store.refuse_earlier_layout().unwrap();
    }
    redis.must(&["UNLINK", "tenure:{default}m"]);
    redis.must(&["HSET", "tenure:{default}m", "layout", "12"]);
    let no = default.refuse_earlier_layout().unwrap_err().to_string();
    assert!(no.contains("has namespaces under \"tenure:\""), "{no}");
    store.refuse_earlier_layout().unwrap();
    odd.refuse_earlier_layout().unwrap();
    drop(ours);
}

#[test]
fn a_store_of_another_format_is_said_to_be_one() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    RedisJournal::acquire(store(&redis), 1, 7).unwrap();
    redis.must(&["HSET", "{shop}:store", "format", "2", "id", "of another form"]);
    let no = store(&redis).look().unwrap_err();
    assert!(matches!(no, StoreError::Format { format: 2, known: 1 }), "{no}");
    redis.must(&["HSET", "{shop}:store", "format", "x"]);
    let no = store(&redis).look().unwrap_err();
    assert!(matches!(no, StoreError::Strange { key: "store" }), "{no}");
}
