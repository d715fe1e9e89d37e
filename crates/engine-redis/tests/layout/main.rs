//! A namespace as a release of this layout left it (`LAYOUT.keys`), and what is in it (`LAYOUT.shown`): whoever changes
//! how something is stored, and does not raise the layout, reads it wrongly.
//!
//! `TENURE_WRITE_LAYOUT=1 cargo test -p tenure-engine-redis --test layout` makes both files anew, for a new layout.

// A test that cannot even open its stores is to fail loudly.
#![allow(clippy::unwrap_used)]

#[path = "../direct/dump.rs"]
mod dump;
#[path = "../../../member/tests/copy/filled.rs"]
mod filled;
mod text;
// Tests of copies use the rest of it.
#[allow(dead_code)]
#[path = "../../../member/tests/copy/world.rs"]
mod world;

use std::path::PathBuf;
use std::sync::Arc;

use redis::Connection;
use tenure_core::job::{JobState, NewJob};
use tenure_core::lease::Ending;
use tenure_core::names::Namespace;
use tenure_core::requests::{
    Lease, ListLimits, ListPools, ListQueues, ListResources, Page, Push, PushAnswer, PutLimit,
    PutQueue,
};
use tenure_core::settings::{LimitSettings, QueueSettings};
use tenure_core::time::Span;
use tenure_engine::{Engine, EngineExt};
use tenure_engine_redis::library::LAYOUT;
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine, Time};
use tenure_testkit::TestClock;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use dump::dump;
use filled::{QUEUES, fill, give_back, lease_jobs, limit, queue};
use text::{keys_of, text_of};
use world::is_sound;

const PREFIX: &str = "tenure:{default}";
/// A queue whose jobs need nothing: they lie in a block.
const PLAIN: &str = "plain";
/// The field of an entry of a stream.
const FIELD: &str = "e";
const JOBS: u64 = 60;
const SEED: u64 = 7;
/// Longer than any ttl that is in use.
const LATER: Span = Span::from_s(60);

fn file(kind: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/layout/{LAYOUT}.{kind}"))
}

fn kept(kind: &str) -> String {
    std::fs::read_to_string(file(kind)).unwrap_or_else(|why| {
        panic!("{}: {why}; make it with TENURE_WRITE_LAYOUT=1", file(kind).display())
    })
}

/// A server, its only engine, and their clock. The store never forgets: a namespace of another server learns nothing.
struct Stored {
    server: RedisServer,
    engine: Arc<RedisEngine>,
    clock: TestClock,
}

impl Stored {
    fn start(time: Time) -> Self {
        let server = RedisServer::start(Aof::Off, &[]);
        let address = Address::parse(&format!("{}?forgets=never", server.url())).unwrap();
        let options = Options { time, ..Options::testing(address) };
        let engine = Arc::new(RedisEngine::open(options).unwrap());
        Stored { server, engine, clock: TestClock::default() }
    }

    fn connect(&self) -> Connection {
        redis::Client::open(self.server.url()).unwrap().get_connection().unwrap()
    }

    async fn set_clock(&self) {
        self.engine.testing_set_clock(&self.clock, &[Namespace::main()]).await.unwrap();
    }
}

/// What is there, a line for each thing: no more of it than a stranger could tell from the keys.
async fn shown(engine: &Arc<dyn Engine>) -> String {
    let ns = Namespace::main();
    let page = || Page { max: 1_000, cursor: None };
    let mut lines = Vec::new();
    for job in world::jobs(engine, &ns).await {
        let texts = [&job.payload, &job.result].map(|json| json.as_ref().map(|json| json.text()));
        lines.push(format!(
            "job {} {} {} {} {} {texts:?} {}",
            job.id,
            job.queue,
            job.state,
            job.priority,
            job.attempt,
            job.errors.len()
        ));
    }
    for queue in engine.run(&ns, ListQueues { page: page() }).await.unwrap().items {
        lines.push(format!("queue {} {:?}", queue.name, queue.paused));
    }
    for limit in engine.run(&ns, ListLimits { page: page() }).await.unwrap().items {
        let paused = limit.paused_until.is_some();
        lines.push(format!("limit {} {} {} {paused}", limit.name, limit.in_use, limit.external));
    }
    for pool in engine.run(&ns, ListPools { page: page() }).await.unwrap().items {
        let list = ListResources { pool: pool.name.clone(), page: page() };
        for resource in engine.run(&ns, list).await.unwrap().items {
            lines.push(format!(
                "resource {} {} {:?} {} {}",
                pool.name,
                resource.id,
                resource.state,
                resource.in_use,
                resource.data.text()
            ));
        }
    }
    lines.join("\n") + "\n"
}

/// Makes a namespace with a bit of everything, and leases that live.
async fn write() {
    let stored = Stored::start(Time::Testing);
    stored.set_clock().await;
    let (engine, ns): (Arc<dyn Engine>, _) = (stored.engine.clone(), Namespace::main());
    fill(&engine, &ns, SEED, JOBS).await;
    let plain = NewJob::new(queue(PLAIN));
    let push = Push { jobs: vec![plain; 20], answer: PushAnswer::Ids };
    engine.run(&ns, push).await.unwrap();
    for name in QUEUES.into_iter().chain([PLAIN]) {
        assert!(!lease_jobs(&engine, &ns, name, 2).await.is_empty(), "{name} is empty");
    }
    let needs = serde_json::from_str(r#"[{"limit":"lock:held"},{"pool":"paced"}]"#).unwrap();
    let lease = Lease { worker: filled::worker("guard"), ..Lease::needs(needs) };
    assert_eq!(engine.run(&ns, lease).await.unwrap().leases.len(), 1);
    let keys = dump(&mut stored.connect(), PREFIX);
    std::fs::write(file("keys"), text_of(&keys)).unwrap();
    std::fs::write(file("shown"), shown(&engine).await).unwrap();
}

/// Puts the keys of a namespace into a server.
fn put(commands: &mut Connection, keys: &str) {
    for (name, stored) in keys_of(keys) {
        let key = [PREFIX.as_bytes(), &name].concat();
        let mut command = redis::cmd(match stored.kind.as_str() {
            "hash" => "HSET",
            "zset" => "ZADD",
            "list" => "RPUSH",
            _ => "SET",
        });
        command.arg(key);
        match stored.kind.as_str() {
            // A member comes before its score.
            "zset" => stored.items.chunks_exact(2).for_each(|pair| {
                command.arg(&pair[1]).arg(&pair[0]);
            }),
            "stream" => {
                for entry in stored.items.chunks_exact(2) {
                    let mut add = redis::cmd("XADD");
                    add.arg([PREFIX.as_bytes(), &name].concat())
                        .arg(&entry[0])
                        .arg(FIELD)
                        .arg(&entry[1]);
                    add.exec(commands).unwrap();
                }
                continue;
            }
            _ => stored.items.iter().for_each(|item| {
                command.arg(item);
            }),
        }
        command.exec(commands).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_of_this_layout_is_read_as_it_was_written() {
    if !wanted() {
        return;
    }
    if std::env::var_os("TENURE_WRITE_LAYOUT").is_some() {
        write().await;
    }
    let stored = Stored::start(Time::TestingByHand);
    put(&mut stored.connect(), &kept("keys"));
    let (engine, ns): (Arc<dyn Engine>, _) = (stored.engine.clone(), Namespace::main());
    assert_eq!(shown(&engine).await, kept("shown"));
    is_sound(&engine, &ns).await;

    // It goes on from there: who held something is gone, and what can run does.
    stored.set_clock().await;
    for _ in 0..LATER.us() / Span::from_s(1).us() {
        stored.clock.advance(Span::from_s(1));
        stored.set_clock().await;
        while stored.engine.testing_tick(&ns).await.unwrap() {}
    }
    assert!(!world::jobs(&engine, &ns).await.iter().any(|job| job.state == JobState::Running));
    let open: LimitSettings = serde_json::from_str(r#"{"concurrency":100}"#).unwrap();
    engine.run(&ns, PutLimit { limit: limit("a"), settings: open, gauge: None }).await.unwrap();
    let settings = QueueSettings::default();
    engine.run(&ns, PutQueue { queue: queue("q1"), settings }).await.unwrap();
    let mut done = 0;
    loop {
        let before = done;
        for name in QUEUES.into_iter().chain([PLAIN]) {
            for lease in lease_jobs(&engine, &ns, name, 8).await {
                let ending = Ending::Succeeded { result: None };
                give_back(&engine, &ns, lease.lease.unwrap(), ending).await;
                done += 1;
            }
        }
        if done == before {
            break;
        }
    }
    assert!(done > 30, "{done}");
    is_sound(&engine, &ns).await;
}
