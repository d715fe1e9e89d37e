//! The line to Redis: what becomes of appends when connections are lost, when Redis is away, and in a cluster.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::time::{Duration, Instant};

use tenure_journal::{Append, Appended, Journal, JournalEntry, Position, Reply};
use tenure_journal_redis::{RedisJournal, RedisStore};
use tenure_redis_address::Address;
use tenure_testkit::redis::{Aof, RedisCluster, RedisSentinel, RedisServer, wanted};

const LONG: Duration = Duration::from_secs(60);

fn journal(url: &str) -> RedisJournal {
    let store = RedisStore::open(Address::parse(url).unwrap(), "shop").unwrap();
    RedisJournal::acquire(store, 1, 7).unwrap()
}

fn entries(count: u32) -> Vec<JournalEntry> {
    let mut end = Position::default();
    let next = |n: u32| {
        let entry = JournalEntry::after(end, 1, &n.to_le_bytes());
        end = entry.position();
        entry
    };
    (0..count).map(next).collect()
}

fn begin(journal: &RedisJournal, entries: &[JournalEntry]) -> Vec<Reply> {
    let append = |entry: &JournalEntry| {
        let append = Append::Entry { entry: entry.clone(), ttl: Duration::ZERO };
        Reply::to(journal, append)
    };
    entries.iter().map(append).collect()
}

fn kill_connections(redis: &RedisServer) {
    redis.must(&["CLIENT", "KILL", "TYPE", "normal"]);
}

#[test]
fn appends_that_were_begun_arrive_in_order_whatever_becomes_of_the_connection() {
    if !wanted() {
        return;
    }
    let redis = RedisServer::start(Aof::Off, &[]);
    let journal = journal(&redis.url());
    let entries = entries(3000);
    let mut replies = Vec::new();
    for (n, some) in entries.chunks(100).enumerate() {
        match n % 3 {
            // None of them is answered before their connection is lost.
            0 => {
                redis.must(&["CLIENT", "PAUSE", "60000", "WRITE"]);
                replies.extend(begin(&journal, some));
                kill_connections(&redis);
                redis.must(&["CLIENT", "UNPAUSE"]);
            }
            // The next find that their script is not known any more.
            1 => {
                replies.extend(begin(&journal, some));
                let end = Append::Nothing(some[99].position());
                assert_eq!(Reply::to(&journal, end).wait(LONG), Some(Appended::Done));
                redis.must(&["SCRIPT", "FLUSH"]);
            }
            _ => replies.extend(begin(&journal, some)),
        }
    }
    for (n, reply) in replies.iter().enumerate() {
        assert_eq!(reply.wait(LONG), Some(Appended::Done), "entry {}", n + 1);
    }
    let mut read = Vec::new();
    while read.len() < entries.len() {
        read.extend(journal.read(read.len() as u64).unwrap());
    }
    assert_eq!(read, entries);
    let end = Append::Nothing(entries[2999].position());
    assert_eq!(Reply::to(&journal, end).wait(LONG), Some(Appended::Done));
}

#[test]
fn a_redis_that_is_away_for_long_leaves_open_whether_it_happened() {
    if !wanted() {
        return;
    }
    let mut redis = RedisServer::start(Aof::Always, &[]);
    let journal = journal(&redis.url());
    let entries = entries(1);
    redis.kill();
    let begun = Instant::now();
    let reply = begin(&journal, &entries).remove(0).wait(LONG);
    assert!(matches!(reply, Some(Appended::Unsure(_))), "{reply:?}");
    assert!(begun.elapsed() >= Duration::from_secs(6), "only after its patience");
    redis.restart();
    let reply = begin(&journal, &entries).remove(0).wait(LONG);
    assert_eq!(reply, Some(Appended::Moved), "it is another run");
}

#[test]
fn a_store_in_a_cluster_is_found_by_its_slot() {
    if !wanted() {
        return;
    }
    let cluster = RedisCluster::start(2);
    let journal = journal(&cluster.url());
    let entries = entries(300);
    for reply in begin(&journal, &entries) {
        assert_eq!(reply.wait(LONG), Some(Appended::Done));
    }
    let owner = cluster.owner(cluster.slot_of("{shop}:log"));
    assert_eq!(cluster.server(owner).must(&["XLEN", "{shop}:log"]).text(), "300");
}

#[test]
fn the_primary_is_the_one_that_the_sentinels_name() {
    if !wanted() {
        return;
    }
    let sentinel = RedisSentinel::start();
    let journal = journal(&sentinel.url());
    let reply = begin(&journal, &entries(1)).remove(0).wait(LONG);
    assert_eq!(reply, Some(Appended::Done));
    assert_eq!(sentinel.primary().must(&["XLEN", "{shop}:log"]).text(), "1");
}
