//! TLS, passwords and the rights of a user; failovers by Sentinels, and slots that move in a cluster.

use std::time::Duration;

use tenure_core::redis_address::Address;
use tenure_core::secret::Secret;
use tenure_journal::memory::MemorySnapshot;
use tenure_journal::{Append, Appended, Journal, JournalEntry, Position, Reply, Snapshot};
use tenure_redis::{
    AcquireError, COMMANDS, Generation, RedisJournal, RedisStore, RunNote, ScriptReply,
    ServerEntry, SnapshotTurn, StoreNaming,
};
use tenure_testkit::certificates::Authority;
use tenure_testkit::redis::{Aof, RedisCluster, RedisSentinel, RedisServer, free_port};
use tenure_testkit::{TempDir, needs_redis};

const LONG: Duration = Duration::from_secs(60);

fn acquired(url: &str, leader: u128) -> Result<RedisJournal, AcquireError> {
    named(url, "shop", leader)
}

fn named(url: &str, name: &str, leader: u128) -> Result<RedisJournal, AcquireError> {
    RedisJournal::acquire(RedisStore::open(Address::parse(url).unwrap(), name)?, leader, 7)
}

/// Entries of different lengths: some are written plainly, some compressed, some in several writes to the socket.
fn entries() -> Vec<JournalEntry> {
    let mut end = Position::default();
    let next = |n: u32| {
        let entry = JournalEntry::after(end, 1, &n.to_le_bytes().repeat(1 << (n % 20)));
        end = entry.position();
        entry
    };
    (1..=40).map(next).collect()
}

fn begin(journal: &RedisJournal, entry: &JournalEntry) -> Reply {
    Reply::to(journal, Append::Entry { entry: entry.clone(), ttl: Duration::ZERO, grants: false })
}

fn appended(journal: &RedisJournal, entry: &JournalEntry) -> Appended {
    begin(journal, entry).wait(LONG).unwrap()
}

/// Does everything that a server does with a store. Returns the message of the first failure.
fn everything(url: &str, name: &str) -> Result<(), String> {
    let journal = named(url, name, 1).map_err(|why| why.to_string())?;
    let (store, by, entries) = (journal.store(), journal.term().clone(), entries());
    let failed = |why: tenure_redis::StoreError| why.to_string();
    // The late entry is looked up among the others.
    let late = entries.len() / 2;
    for entry in entries.iter().chain(&entries[late..=late]) {
        match appended(&journal, entry) {
            Appended::Done => {}
            other => return Err(format!("{other:?}")),
        }
    }
    let (url, release) = ("http://h:1".to_owned(), "0.1.0".to_owned());
    let me = ServerEntry { id: 7, url, release, format: 1, applied: 0 };
    store.register(&me, &Secret::new("of the servers")).map_err(failed)?;
    store.unregister(me.id).map_err(failed)?;
    let naming = StoreNaming { store: by.store, ttl: 0 };
    store.name_store(&naming).map_err(failed)?;
    let mut read = Vec::new();
    while read.len() < entries.len() {
        read.extend(store.read(read.len() as u64).map_err(|why| why.to_string())?);
    }
    assert!(read == entries, "other entries came back");
    let (generation, end) = (Generation { epoch: by.epoch, count: 1 }, entries[39].position());
    let mut parts = MemorySnapshot::with(end, entries.clone());
    let written = store.write_snapshot(&by, generation, &mut parts);
    let snapshot = written.map_err(|why| why.to_string())?;
    let (heals, note) = (false, RunNote::Stays);
    let turn = SnapshotTurn { by: by.clone(), snapshot, heals, moment: 0, ttl: 0, note };
    assert!(matches!(store.turn(&turn).map_err(failed)?, ScriptReply::Done { .. }));
    let mut back = store.snapshot().map_err(failed)?.unwrap();
    let mut count = 0;
    while back.next_part().map_err(|why| why.to_string())?.is_some() {
        count += 1;
    }
    assert_eq!(count, entries.len());
    let stray = Generation { count: 2, ..generation };
    store.unlink_snapshot(&by, stray, 1).map_err(failed)?;
    store.measure().map_err(failed)?;
    store.room().map_err(failed)?;
    store.check_server().map_err(failed)?;
    store.refuse_earlier_layout().map_err(failed)?;
    let replicated = store.clone().with_replicas(1);
    let give = tenure_redis::HandOver { by, tip: end, to: 9 };
    let said = replicated.give(&give).unwrap_err().to_string();
    if said.contains("0 of 1 replicas") { Ok(()) } else { Err(said) }
}

#[test]
fn everything_works_over_tls_with_a_password() {
    needs_redis!();
    let (dir, authority) = (TempDir::new(), Authority::named("ours"));
    let ca = authority.write(dir.path(), "ca").display().to_string();
    let files = authority.signs(&["127.0.0.1"]).write(dir.path(), "server");
    let (certificate, key) = (files.certificate.display(), files.key.display());
    let port = free_port().to_string();
    let _redis = RedisServer::start(
        Aof::Off,
        &[
            "--requirepass",
            "ge@heim",
            "--tls-port",
            &port,
            "--tls-cert-file",
            &certificate.to_string(),
            "--tls-key-file",
            &key.to_string(),
            "--tls-auth-clients",
            "no",
        ],
    );
    everything(&format!("rediss://:ge%40heim@127.0.0.1:{port}?ca={ca}"), "shop").unwrap();
    for (url, why) in [
        (format!("rediss://:falsch@127.0.0.1:{port}?ca={ca}"), "WRONGPASS"),
        (format!("rediss://127.0.0.1:{port}?ca={ca}"), "NOAUTH"),
        (format!("rediss://:ge%40heim@127.0.0.1:{port}"), "certificate"),
    ] {
        let no = acquired(&url, 1).unwrap_err().to_string();
        assert!(no.contains(why) && !no.contains("heim") && !no.contains("falsch"), "{no}");
    }
}

#[test]
fn a_user_needs_the_commands_that_are_listed_and_each_of_them() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let user = |name: &str, lacks: Option<&str>| {
        let allowed = COMMANDS.iter().filter(|command| Some(**command) != lacks);
        let allowed: Vec<String> = allowed.map(|command| format!("+{command}")).collect();
        let keys = format!("~{{{name}}}:*");
        let mut words = vec!["ACL", "SETUSER", name, "on", ">pw", "-@all", &keys];
        words.extend(allowed.iter().map(String::as_str));
        redis.must(&words);
        format!("redis://{name}:pw@127.0.0.1:{}", redis.port())
    };
    everything(&user("all", None), "all").unwrap();
    // Without `evalsha` each call is sent whole, on a connection of its own.
    let needed = COMMANDS.iter().filter(|command| **command != "evalsha");
    let tried: Vec<_> = (0..)
        .zip(needed)
        .map(|(n, lacks)| {
            let (name, lacks) = (format!("lacks{n}"), *lacks);
            let url = user(&name, Some(lacks));
            (lacks, std::thread::spawn(move || everything(&url, &name)))
        })
        .collect();
    for (lacks, said) in tried {
        let said = said.join().unwrap();
        // Refusals of direct commands, of commands in a script in Redis, and in Valkey.
        let refusals = ["NOPERM", "can't run this command", "ACL failure"];
        let is_refused = |why: &String| refusals.iter().any(|refusal| why.contains(refusal));
        assert!(said.as_ref().is_err_and(is_refused), "{lacks}: {said:?}");
    }
}

#[test]
fn appends_after_a_failover_reach_the_new_primary_as_moved() {
    needs_redis!();
    let mut sentinel = RedisSentinel::start();
    let (url, entries) = (sentinel.url(), entries());
    let store = RedisStore::open(Address::parse(&url).unwrap(), "shop").unwrap();
    let journal = RedisJournal::acquire(store.with_replicas(1), 1, 7).unwrap();
    for entry in &entries[..10] {
        assert_eq!(appended(&journal, entry), Appended::Done);
    }
    let old = sentinel.kill_primary();
    let eleventh = begin(&journal, &entries[10]);
    sentinel.await_failover(old);
    // It began while no primary was there: its outcome is unknown, or the new primary answers already.
    let said = eleventh.wait(LONG).unwrap();
    assert!(matches!(said, Appended::Unsure(_) | Appended::Moved), "{said:?}");
    assert_eq!(appended(&journal, &entries[10]), Appended::Moved, "it is another run");
    let again = acquired(&url, 2).unwrap();
    assert_eq!(again.acquired().tip, entries[9].position(), "all that was done is there");
    for entry in &entries[10..] {
        assert_eq!(appended(&again, entry), Appended::Done);
    }
}

#[test]
fn a_store_whose_slot_moves_waits_and_is_moved() {
    needs_redis!();
    let cluster = RedisCluster::start(2);
    let (url, entries) = (cluster.url(), entries());
    let journal = acquired(&url, 1).unwrap();
    for entry in &entries[..10] {
        assert_eq!(appended(&journal, entry), Appended::Done);
    }
    let slot = cluster.slot_of("{shop}:log");
    let from = cluster.owner(slot);
    let half = cluster.begin_move(slot, from, 1 - from);
    assert_eq!(appended(&journal, &entries[10]), Appended::Done, "no key has moved yet");
    // Its keys lie apart: Redis answers TRYAGAIN to scripts, and ASK for the key that has moved already.
    cluster.move_keys(half, &["{shop}:own"]);
    let waits = begin(&journal, &entries[11]);
    assert_eq!(waits.wait(Duration::from_millis(300)), None);
    cluster.finish_move(half);
    assert_eq!(waits.wait(LONG), Some(Appended::Moved), "it is another run");
    let again = acquired(&url, 2).unwrap();
    assert_eq!(again.acquired().tip, entries[10].position());
    for entry in &entries[11..] {
        assert_eq!(appended(&again, entry), Appended::Done);
    }
    let mut read = Vec::new();
    while read.len() < entries.len() {
        read.extend(again.read(read.len() as u64).unwrap());
    }
    assert!(read == entries, "entries were lost on the way");
}
