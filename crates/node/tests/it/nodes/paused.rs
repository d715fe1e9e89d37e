//! A store that a copy has marked: no server takes it, and one that took it lets go.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tenure_node::{AskServer, AskedServer, ServerWord, SnapshotWish, StoreLeader};
use tenure_redis::SnapshotName;
use tenure_testkit::needs_redis;

use crate::nodes::bench::Bench;

const MARK: &[u8] = b"HSET {shop}:store copy '{\"role\":\"target\",\"copy\":\"c\"}'\r\n";

/// By then the last heartbeat of a leader that refuses connections is too old.
const REFUSES_AFTER: Duration = Duration::from_secs(2);

/// Marks the store between the look at it and its acquisition: that is when the leader is asked, and refuses.
struct MarksIt {
    port: u16,
    /// When the leader was asked first.
    asked: OnceLock<Instant>,
    is_done: AtomicBool,
}

impl AskServer for MarksIt {
    fn ask(&self, _server: &AskedServer, _within: Duration) -> ServerWord {
        if self.asked.get_or_init(Instant::now).elapsed() < REFUSES_AFTER {
            return ServerWord::Silent;
        }
        if !self.is_done.swap(true, Ordering::Relaxed) {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
            stream.write_all(MARK).unwrap();
            stream.read_exact(&mut [0; 4]).unwrap();
        }
        ServerWord::Refused
    }

    fn write_snapshot(
        &self,
        _server: &AskedServer,
        _wish: &SnapshotWish,
        _goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<SnapshotName> {
        None
    }
}

#[test]
fn a_store_that_was_taken_after_it_was_marked_is_let_go_of() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..3).unwrap();
    drop(engine);
    bench.crash(&first, "http://first");
    let (port, is_done) = (bench.redis.port(), AtomicBool::new(false));
    let marks = Arc::new(MarksIt { port, asked: OnceLock::new(), is_done });
    let url = bench.redis.url();
    let second = bench.member_with(&url, "http://second", |options| options.asks = marks.clone());
    bench.until(&second, "it lets go", |place| match place {
        StoreLeader::Paused(why) if why.contains("--thaw --to") => Some(()),
        StoreLeader::Local { .. } => panic!("it serves a store that a copy has marked"),
        _ => None,
    });
    // It had taken the store, and goes on by itself once the mark is gone.
    let own = bench.redis.must(&["HGET", "{shop}:own", "owner"]);
    assert_eq!(own.text(), format!("{:032x}", second.id()));
    bench.redis.must(&["HSET", "{shop}:store", "copy", ""]);
    let engine = bench.here(&second);
    assert!(bench.is_there(&engine, 2));
}

#[test]
fn a_server_does_not_take_a_store_from_a_running_copy() {
    needs_redis!();
    let bench = Bench::start();
    let first = bench.node("http://first");
    drop(bench.here(&first));
    bench.crash(&first, "http://first");
    let leader = || bench.redis.must(&["HGET", "{shop}:own", "owner"]).text();
    let before = leader();
    bench.redis.must(&["HSET", "{shop}:store", "copy", r#"{"role":"target","copy":"c"}"#]);
    let second = bench.node("http://second");
    bench.until(&second, "it waits", |place| match place {
        StoreLeader::Paused(why) if why.contains("--thaw --to") => Some(()),
        _ => None,
    });
    // The leader refuses connections, so a server that may take the store has it within a second.
    bench.knows(&second);
    assert_eq!(leader(), before);
}

#[test]
fn a_leader_fenced_by_a_copy_answers_no_more_calls() {
    needs_redis!();
    let (bench, first, engine) = Bench::led();
    bench.push(&engine, 0..3).unwrap();
    // Acts as a copy that took the store from a leader that it could not see.
    let epoch: u64 = bench.redis.must(&["HGET", "{shop}:own", "epoch"]).text().parse().unwrap();
    let (next, leader) = ((epoch + 1).to_string(), format!("{:032x}", 7));
    bench.redis.must(&["HSET", "{shop}:own", "epoch", &next, "owner", &leader]);
    let mark = r#"{"role":"source","copy":"c","to":"file:/b","whole":false,"frozen_at":1}"#;
    bench.redis.must(&["HSET", "{shop}:store", "copy", mark]);
    assert!(bench.push(&engine, 3..4).is_err());
    drop(engine);
    bench.until(&first, "it says why", |place| match place {
        StoreLeader::Paused(why) if why.contains("--thaw --from") => Some(()),
        _ => None,
    });
    first.close();
}
