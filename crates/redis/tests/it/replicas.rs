//! Confirmation by replicas, and failovers that lose writes.

use std::time::{Duration, Instant};

use tenure_core::redis_address::Address;
use tenure_journal::{Append, Appended, JournalEntry, Position, Reply};
use tenure_redis::{RedisJournal, RedisStore};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};

const LONG: Duration = Duration::from_secs(60);

/// A primary and a replica that follows it.
struct Pair {
    primary: RedisServer,
    replica: RedisServer,
}

impl Pair {
    fn start() -> Pair {
        let primary = RedisServer::start(Aof::Off, &[]);
        let of = primary.port().to_string();
        let replica = RedisServer::start(Aof::Off, &["--replicaof", "127.0.0.1", &of]);
        let pair = Pair { primary, replica };
        until("the replica follows", || pair.replica.info("master_link_status") == "up");
        pair
    }

    /// Sends the replica a signal; a stopped one answers nothing and acknowledges nothing.
    fn signal(&self, name: &str) {
        let pid = self.replica.pid().to_string();
        let sent = std::process::Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }
}

pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn acquired(redis: &RedisServer, replicas: u32, leader: u128) -> RedisJournal {
    let store = RedisStore::open(Address::parse(&redis.url()).unwrap(), "shop").unwrap();
    RedisJournal::acquire(store.with_replicas(replicas), leader, 7).unwrap()
}

fn after(end: &mut Position, n: u32) -> Append {
    let entry = JournalEntry::after(*end, 1, &n.to_le_bytes());
    *end = entry.position();
    Append::Entry { entry, ttl: Duration::ZERO, grants: false }
}

fn said(journal: &RedisJournal, append: &Append) -> Appended {
    Reply::to(journal, append.clone()).wait(LONG).unwrap()
}

#[test]
fn an_append_is_done_only_once_the_replica_has_it() {
    needs_redis!();
    let pair = Pair::start();
    let journal = acquired(&pair.primary, 1, 1);
    let mut end = Position::default();
    let first = after(&mut end, 1);
    assert_eq!(said(&journal, &first), Appended::Done);
    pair.signal("-STOP");
    let second = after(&mut end, 2);
    for (what, append) in [
        ("the repeat of one that the replica has", &first),
        ("a new one", &second),
        ("its repeat", &second),
        ("a check", &Append::Nothing(end)),
    ] {
        let said = said(&journal, append);
        assert!(matches!(said, Appended::Unsure(_)), "{what}: {said:?}");
    }
    let strange = Append::Nothing(Position { number: 9, sum: 9 });
    assert_eq!(said(&journal, &strange), Appended::At(2), "a refusal needs no replica");
    pair.signal("-CONT");
    until("the replica goes on", || said(&journal, &second) == Appended::Done);
    assert_eq!(said(&journal, &Append::Nothing(end)), Appended::Done);
}

#[test]
fn a_connection_lost_before_replicas_answer_confirms_nothing() {
    needs_redis!();
    let pair = Pair::start();
    let journal = acquired(&pair.primary, 1, 1);
    let mut end = Position::default();
    assert_eq!(said(&journal, &after(&mut end, 1)), Appended::Done);
    pair.signal("-STOP");
    let reply = Reply::to(&journal, after(&mut end, 2));
    // It is written, and its connection waits for the replica. On the next connection only the heartbeat makes it wait.
    until("it is written", || pair.primary.must(&["XLEN", "{shop}:log"]).text() == "2");
    pair.primary.must(&["CLIENT", "KILL", "TYPE", "normal"]);
    let said = reply.wait(LONG).unwrap();
    assert!(matches!(said, Appended::Unsure(_)), "{said:?}");
    pair.signal("-CONT");
}

#[test]
fn a_failover_keeps_appends_only_if_all_replicas_confirmed_them() {
    needs_redis!();
    for replicas in [0, 1] {
        let mut pair = Pair::start();
        let journal = acquired(&pair.primary, replicas, 1);
        let mut end = Position::default();
        assert_eq!(said(&journal, &after(&mut end, 0)), Appended::Done);
        // From now on appends reach the primary alone.
        pair.signal("-STOP");
        pair.primary.must(&["CLIENT", "KILL", "TYPE", "replica"]);
        let replies: Vec<Reply> = (1..4).map(|n| Reply::to(&journal, after(&mut end, n))).collect();
        until("all is written", || pair.primary.must(&["XLEN", "{shop}:log"]).text() == "4");
        if replicas == 0 {
            assert!(replies.iter().all(|reply| reply.wait(LONG) == Some(Appended::Done)));
        }
        pair.primary.kill();
        pair.signal("-CONT");
        pair.replica.must(&["REPLICAOF", "NO", "ONE"]);
        let has = acquired(&pair.replica, 0, 2).acquired().tip.number;
        let done = match replicas {
            0 => 4,
            _ => {
                1 + replies.iter().filter(|reply| reply.wait(LONG) == Some(Appended::Done)).count()
            }
        };
        assert_eq!(has >= done as u64, replicas == 1, "{done} were done, and {has} are there");
    }
}
