//! The pipeline to Redis: appends during lost connections, without a reachable Redis, and in a cluster.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenure_core::redis_address::Address;
use tenure_journal::{Append, Appended, Journal, JournalEntry, Position, Reply};
use tenure_redis::{RedisJournal, RedisStore};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisCluster, RedisSentinel, RedisServer};

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
        let append = Append::Entry { entry: entry.clone(), ttl: Duration::ZERO, grants: false };
        Reply::to(journal, append)
    };
    entries.iter().map(append).collect()
}

fn kill_connections(redis: &RedisServer) {
    redis.must(&["CLIENT", "KILL", "TYPE", "normal"]);
}

#[test]
fn appends_arrive_in_order_across_lost_connections() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let journal = journal(&redis.url());
    let entries = entries(3000);
    let mut replies = Vec::new();
    for (n, some) in entries.chunks(100).enumerate() {
        match n % 3 {
            // Their connection is lost before any of them is answered.
            0 => {
                redis.must(&["CLIENT", "PAUSE", "60000", "WRITE"]);
                replies.extend(begin(&journal, some));
                kill_connections(&redis);
                redis.must(&["CLIENT", "UNPAUSE"]);
            }
            // The next ones find that Redis no longer knows their script.
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
fn an_append_to_an_absent_redis_has_an_unknown_outcome() {
    needs_redis!();
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

/// Forwards bytes to one server, and later to another one over the same client connection, like proxies that handle a
/// failover.
struct Proxy {
    port: u16,
    to: Arc<AtomicU16>,
}

impl Proxy {
    fn start(to: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let to = Arc::new(AtomicU16::new(to));
        let now = to.clone();
        thread::spawn(move || {
            for here in listener.incoming() {
                let (here, now) = (here.unwrap(), now.clone());
                thread::spawn(move || Proxy::pass(here, &now));
            }
        });
        Proxy { port, to }
    }

    /// Forwards one request at a time, each to the current server.
    fn pass(mut here: TcpStream, now: &AtomicU16) {
        let mut there: Option<(u16, TcpStream)> = None;
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read @ 1..) = here.read(&mut bytes) {
            let to = now.load(Ordering::SeqCst);
            if there.as_ref().is_none_or(|(port, _)| *port != to) {
                let stream = TcpStream::connect(("127.0.0.1", to)).unwrap();
                let (mut from, mut back) = (stream.try_clone().unwrap(), here.try_clone().unwrap());
                thread::spawn(move || io::copy(&mut from, &mut back));
                there = Some((to, stream));
            }
            let Some((_, stream)) = &mut there else { return };
            if stream.write_all(&bytes[..read]).is_err() {
                return;
            }
        }
    }
}

#[test]
fn an_append_through_a_proxy_to_another_redis_reports_a_move() {
    needs_redis!();
    let (one, other) = (RedisServer::start(Aof::Off, &[]), RedisServer::start(Aof::Off, &[]));
    other.must(&["REPLICAOF", "127.0.0.1", &one.port().to_string()]);
    let proxy = Proxy::start(one.port());
    let journal = journal(&format!("redis://127.0.0.1:{}", proxy.port));
    let entries = entries(3);
    for entry in &entries[..2] {
        let reply = begin(&journal, std::slice::from_ref(entry)).remove(0);
        assert_eq!(reply.wait(LONG), Some(Appended::Done));
    }
    // A failover that loses nothing: only the run id differs. (`WAIT` counts replicas for the writes of its connection alone.)
    let begun = Instant::now();
    while other.must(&["XLEN", "{shop}:log"]).text() != "2" {
        assert!(begun.elapsed() < LONG, "the replica has not all entries");
        thread::sleep(Duration::from_millis(5));
    }
    other.must(&["REPLICAOF", "NO", "ONE"]);
    proxy.to.store(other.port(), Ordering::SeqCst);
    let reply = begin(&journal, &entries[2..]).remove(0).wait(LONG);
    assert_eq!(reply, Some(Appended::Moved));
    assert_eq!(other.must(&["XLEN", "{shop}:log"]).text(), "2");
}

#[test]
fn a_store_in_a_cluster_is_found_by_its_slot() {
    needs_redis!();
    let cluster = RedisCluster::start(2);
    let journal = journal(&cluster.url());
    let entries = entries(300);
    for reply in begin(&journal, &entries) {
        assert_eq!(reply.wait(LONG), Some(Appended::Done));
    }
    let leader = cluster.owner(cluster.slot_of("{shop}:log"));
    assert_eq!(cluster.server(leader).must(&["XLEN", "{shop}:log"]).text(), "300");
}

#[test]
fn the_primary_is_the_one_that_the_sentinels_name() {
    needs_redis!();
    let sentinel = RedisSentinel::start();
    let journal = journal(&sentinel.url());
    let reply = begin(&journal, &entries(1)).remove(0).wait(LONG);
    assert_eq!(reply, Some(Appended::Done));
    assert_eq!(sentinel.primary().must(&["XLEN", "{shop}:log"]).text(), "1");
}
