//! Several members of one store in one process, on a real Redis.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tenure_core::job::NewJob;
use tenure_core::names::{JobId, JobRef, Namespace, QueueName};
use tenure_core::requests::{GetJob, Lease, Push, PushAnswer};
use tenure_core::time::Span;
use tenure_engine::redis_address::Address;
use tenure_engine::{CallError, EngineExt, Fault};
use tenure_engine_embedded::Embedded;
use tenure_member::{AskServer, AskedServer, Member, MemberOptions, ServerWord, StorePlace};
use tenure_testkit::redis::{Aof, RedisServer, wanted};
use tokio::runtime::Runtime;

const LONG: Duration = Duration::from_secs(30);

/// The addresses of a test: who is reached there.
#[derive(Default)]
struct Network {
    members: Mutex<HashMap<String, Weak<Member>>>,
    is_silent: AtomicBool,
}

impl AskServer for Network {
    fn ask(&self, server: &AskedServer, _within: Duration) -> ServerWord {
        if self.is_silent.load(Ordering::Relaxed) {
            return ServerWord::Silent;
        }
        let asked = self.members.lock().unwrap().get(&server.url).and_then(Weak::upgrade);
        match asked.filter(|asked| asked.id() == server.id) {
            Some(asked) => asked.word(),
            None => ServerWord::Refused,
        }
    }
}

struct Bench {
    redis: RedisServer,
    network: Arc<Network>,
    runtime: Runtime,
}

impl Bench {
    fn start() -> Bench {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let redis = RedisServer::start(Aof::Off, &[]);
        Bench { redis, network: Arc::default(), runtime }
    }

    fn member_at(&self, redis: &str, url: &str) -> Arc<Member> {
        let address = Address::parse(redis).unwrap();
        let options = MemberOptions::new(address, "shop", url, self.network.clone());
        let member = Arc::new(Member::open(options).unwrap());
        let all = &mut *self.network.members.lock().unwrap();
        all.insert(url.to_owned(), Arc::downgrade(&member));
        member
    }

    fn member(&self, url: &str) -> Arc<Member> {
        self.member_at(&self.redis.url(), url)
    }

    /// Crashes a member: its address refuses from then on.
    fn crash(&self, member: &Member, url: &str) {
        self.network.members.lock().unwrap().remove(url);
        member.crash();
    }

    /// Waits until the place of a member is one of these.
    fn until<T>(&self, member: &Member, what: &str, is: impl Fn(&StorePlace) -> Option<T>) -> T {
        let mut place = member.place();
        let waits = async {
            loop {
                if let Some(found) = is(&place.borrow_and_update()) {
                    return found;
                }
                place.changed().await.unwrap();
            }
        };
        let waited = self.runtime.block_on(async { tokio::time::timeout(LONG, waits).await });
        waited.unwrap_or_else(|_| {
            panic!("{what}: {:?}, {:?}", member.place().borrow(), member.health())
        })
    }

    fn here(&self, member: &Member) -> Arc<Embedded> {
        self.until(member, "it serves", |place| match place {
            StorePlace::Here { engine, .. } => Some(engine.clone()),
            _ => None,
        })
    }

    fn there(&self, member: &Member, url: &str) {
        self.until(member, "another serves", |place| match place {
            StorePlace::There { url: there, .. } if there == url => Some(()),
            _ => None,
        });
    }

    fn push(&self, engine: &Arc<Embedded>, ids: std::ops::Range<usize>) -> Result<(), CallError> {
        let jobs = ids.map(|n| NewJob { id: Some(id(n)), ..NewJob::new(queue()) });
        let push = Push { jobs: jobs.collect(), answer: PushAnswer::Ids };
        self.runtime.block_on(engine.run(&Namespace::main(), push)).map(drop)
    }

    /// Leases up to `max` jobs; the ends of the leases.
    fn lease(&self, engine: &Arc<Embedded>, max: usize, ttl: Span) -> Vec<(JobId, u64)> {
        let lease = Lease { ttl, wait: Span::from_s(20), ..Lease::jobs(vec![queue()], max) };
        let leased = self.runtime.block_on(engine.run(&Namespace::main(), lease)).unwrap();
        let jobs = leased.leases.into_iter();
        jobs.map(|lease| (lease.job.unwrap().id, lease.expires_at.us())).collect()
    }

    fn is_there(&self, engine: &Arc<Embedded>, n: usize) -> bool {
        let get = GetJob { job: JobRef::Id(id(n)) };
        self.runtime.block_on(engine.run(&Namespace::main(), get)).is_ok()
    }
}

fn id(n: usize) -> JobId {
    JobId::parse(&format!("j{n}")).unwrap()
}

fn queue() -> QueueName {
    QueueName::parse("mail").unwrap()
}

#[test]
fn one_member_serves_and_the_next_one_passes_on_and_takes_over_with_all_that_was_answered() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..1_000).unwrap();
    assert_eq!(bench.lease(&engine, 1, Span::from_s(60)).len(), 1);
    let second = bench.member("http://second");
    bench.there(&second, "http://first");
    drop(engine);
    let begun = Instant::now();
    bench.crash(&first, "http://first");
    let engine = bench.here(&second);
    assert_eq!(bench.lease(&engine, 1, Span::from_s(60)).len(), 1);
    println!("from the crash to the first grant with 1,000 jobs: {:?}", begun.elapsed());
    for n in [0, 500, 999] {
        assert!(bench.is_there(&engine, n), "j{n}");
    }
    // Both leases are held: 998 jobs are left.
    assert_eq!(bench.lease(&engine, 1_000, Span::from_s(60)).len(), 998);
    second.close();
}

#[test]
fn a_member_that_closes_hands_the_store_over() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    let second = bench.member("http://second");
    bench.there(&second, "http://first");
    bench.push(&engine, 0..10).unwrap();
    drop(engine);
    let begun = Instant::now();
    first.close();
    let engine = bench.here(&second);
    println!("from SIGTERM to the next owner: {:?}", begun.elapsed());
    assert_eq!(bench.lease(&engine, 100, Span::from_s(60)).len(), 10);
    second.close();
}

#[test]
fn of_two_that_start_at_once_on_an_empty_redis_one_owns_the_store() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let (one, other) = (bench.member("http://one"), bench.member("http://other"));
    let mut places = [one.place(), other.place()];
    let owner = bench.runtime.block_on(async {
        let [one, other] = &mut places;
        let serves = |place: &StorePlace| matches!(place, StorePlace::Here { .. });
        tokio::time::timeout(LONG, async {
            tokio::select! {
                _ = one.wait_for(serves) => 0,
                _ = other.wait_for(serves) => 1,
            }
        })
        .await
        .unwrap()
    });
    match owner {
        0 => bench.there(&other, "http://one"),
        _ => bench.there(&one, "http://other"),
    }
}

#[test]
fn a_redis_that_forgot_everything_is_written_anew_by_its_owner() {
    if !wanted() {
        return;
    }
    let mut bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..50).unwrap();
    bench.redis.must(&["FLUSHALL"]);
    bench.push(&engine, 50..60).unwrap();
    // Another process: all that it held is gone with it, and it is another run.
    bench.redis.kill();
    bench.redis.restart();
    bench.push(&engine, 60..70).unwrap();
    drop(engine);
    let second = bench.member("http://second");
    bench.there(&second, "http://first");
    bench.crash(&first, "http://first");
    let engine = bench.here(&second);
    for n in 0..70 {
        assert!(bench.is_there(&engine, n), "j{n}");
    }
}

#[test]
fn a_store_of_another_id_is_not_overwritten() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..1).unwrap();
    let other = "0".repeat(31) + "7";
    bench.redis.must(&["HSET", "{shop}:store", "id", &other]);
    bench.redis.must(&["DEL", "{shop}:own"]);
    bench.until(&first, "nobody serves", |place| match place {
        StorePlace::Nobody(why) if why.contains("another store") => Some(()),
        _ => None,
    });
    assert_eq!(bench.redis.must(&["HGET", "{shop}:store", "id"]).text(), other);
    assert_eq!(bench.redis.must(&["EXISTS", "{shop}:own"]).text(), "0");
    assert!(first.health().warnings.iter().any(|why| why.contains("another store")));
}

#[test]
fn a_member_that_was_taken_over_tells_its_callers_and_passes_on() {
    if !wanted() {
        return;
    }
    let bench = Bench::start();
    let first = bench.member("http://first");
    let engine = bench.here(&first);
    bench.push(&engine, 0..1).unwrap();
    let second = bench.member("http://second");
    bench.there(&second, "http://first");
    // Nobody reaches the first, and it reaches no Redis for a moment: its beat stands.
    bench.network.members.lock().unwrap().remove("http://first");
    let taken = bench.here(&second);
    bench.push(&taken, 1..2).unwrap();
    let refused = bench.push(&engine, 2..3);
    assert!(
        matches!(refused, Err(CallError::Fault(Fault::Unknown(_) | Fault::Unavailable(_)))),
        "{refused:?}"
    );
    bench.there(&first, "http://second");
    assert!(!bench.is_there(&taken, 2), "nothing of it is there");
    first.close();
    second.close();
}
