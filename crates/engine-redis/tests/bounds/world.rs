//! A server whose work is counted, and what the tests say to it.

use std::sync::Arc;

use tenure_core::job::{JobState, Need, NewJob};
use tenure_core::lease::{Ending, LeaseView, SettleItem};
use tenure_core::names::{JobId, LimitName, Namespace, PoolName, QueueName, WorkerId};
use tenure_core::requests::{
    Audit, CancelJobs, JobFilter, Lease, Operation, Push, PushAnswer, PutLimit, Settle,
};
use tenure_core::settings::LimitSettings;
use tenure_engine::EngineExt;
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine, Time};
use tenure_testkit::TestClock;
use tenure_testkit::redis::{Aof, RedisServer};

/// More than any call does of anything.
pub const MANY: usize = 1_500;
/// What a call does that has next to nothing to do, in commands.
pub const LITTLE: u64 = 200;
/// What no call does, in commands.
pub const MUCH: u64 = 4_000;
/// How many doors are opened in a call, or entries tried again (`bounds::STEPS_MAX`).
pub const STEPS: usize = tenure_core::bounds::STEPS_MAX;

pub fn ns() -> Namespace {
    Namespace::main()
}

/// A server, and the only engine on it, which ticks when it is told to.
pub struct World {
    pub server: RedisServer,
    pub engine: Arc<RedisEngine>,
    pub clock: TestClock,
}

/// Calls of functions, and commands in them.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub calls: u64,
    pub commands: u64,
}

impl World {
    pub async fn new() -> Self {
        let server = RedisServer::start(Aof::Off, &[]);
        let address = Address::parse(&server.url()).expect("the address of the fixture is one");
        let options = Options { time: Time::TestingByHand, ..Options::testing(address) };
        let engine = Arc::new(RedisEngine::open(options).expect("an engine can be opened"));
        let world = World { server, engine, clock: TestClock::default() };
        world.set().await;
        // So that no later call makes the key that ids are signed with.
        world.take("nothing", 1).await;
        world
    }

    pub async fn set(&self) {
        self.engine.testing_set_clock(&self.clock, &[ns()]).await.expect("the clock is set");
    }

    pub async fn ok<O: Operation>(&self, request: O) -> O::Reply {
        let answer = self.engine.run(&ns(), request).await;
        answer.unwrap_or_else(|why| panic!("{}: {why}", O::NAME))
    }

    /// The same, and what it cost.
    pub async fn cost<O: Operation>(&self, request: O) -> (O::Reply, Work) {
        self.server.must(&["CONFIG", "RESETSTAT"]);
        let reply = self.ok(request).await;
        (reply, self.work())
    }

    pub fn work(&self) -> Work {
        let stats = self.server.ask(&["INFO", "commandstats"]).expect("statistics");
        let mut work = Work { calls: 0, commands: 0 };
        for line in stats.lines() {
            let Some((name, rest)) = line.split_once(":calls=") else { continue };
            let calls: u64 = rest.split(',').next().and_then(|n| n.parse().ok()).expect("a number");
            match name {
                "cmdstat_fcall" | "cmdstat_fcall_ro" => work.calls += calls,
                "cmdstat_config|resetstat" | "cmdstat_info" => {}
                _ => work.commands += calls,
            }
        }
        work
    }

    /// Ticks until nothing is due; how many ticks, and the most commands in one of them.
    pub async fn settle(&self) -> (u64, u64) {
        let (mut ticks, mut most) = (0, 0);
        loop {
            self.server.must(&["CONFIG", "RESETSTAT"]);
            let more = self.engine.testing_tick(&ns()).await.expect("it ticks");
            ticks += 1;
            most = most.max(self.work().commands);
            if !more {
                return (ticks, most);
            }
        }
    }

    pub async fn push(&self, jobs: Vec<NewJob>) {
        for some in jobs.chunks(500) {
            self.ok(Push { jobs: some.to_vec(), answer: PushAnswer::Ids }).await;
        }
    }

    pub async fn limit(&self, name: &str, concurrency: u32) -> Work {
        let settings = LimitSettings { concurrency: Some(concurrency), ..LimitSettings::default() };
        self.cost(PutLimit { limit: limit(name), settings, gauge: None }).await.1
    }

    /// Leases from a queue, in one call of who asks; it may be several of the server.
    pub async fn take(&self, from: &str, max: usize) -> (Vec<LeaseView>, Work) {
        let mut lease = Lease::jobs(vec![queue(from)], max);
        lease.worker.id = Some(WorkerId::parse("w").expect("an id"));
        let (leased, work) = self.cost(lease).await;
        (leased.leases, work)
    }

    pub async fn cancel(&self, mut left: usize) {
        while left > 0 {
            let max = left.min(1_000);
            let done = self.ok(CancelJobs { filter: waits(), max, cursor: None }).await.done;
            assert_eq!(done, max as u64);
            left -= max;
        }
    }

    pub async fn succeed(&self, leases: &[LeaseView]) {
        let ended = |lease: &LeaseView| {
            SettleItem::new(
                lease.lease.clone().expect("it has an id"),
                Ending::Succeeded { result: None },
            )
        };
        for some in leases.chunks(500) {
            self.ok(Settle::of(some.iter().map(ended).collect())).await;
        }
    }

    pub fn size(&self, key: &str) -> usize {
        let key = format!("tenure:{{default}}{key}");
        let n = self.server.must(&["ZCARD", &key]).text();
        n.parse().expect("a number")
    }

    pub async fn is_whole(&self) -> Work {
        let (audit, work) = self.cost(Audit::default()).await;
        assert!(audit.ok && audit.faults.is_empty(), "{:?}", audit.faults);
        work
    }
}

pub fn queue(name: &str) -> QueueName {
    QueueName::parse(name).expect("a name")
}
pub fn limit(name: &str) -> LimitName {
    LimitName::parse(name).expect("a name")
}
pub fn pool() -> PoolName {
    PoolName::parse("accounts").expect("a name")
}
pub fn of(name: &str, weight: u32) -> Need {
    Need::Limit { limit: limit(name), weight, cost: 1 }
}
pub fn job(from: &str, n: usize, needs: Vec<Need>) -> NewJob {
    let id = JobId::parse(&format!("j{n}")).ok();
    NewJob { id, needs: Some(needs), ..NewJob::new(queue(from)) }
}
pub fn waits() -> JobFilter {
    let states = vec![JobState::Ready];
    JobFilter { queue: Some(queue("q")), states, ..JobFilter::default() }
}
pub fn cancel_one() -> CancelJobs {
    CancelJobs { filter: waits(), max: 1, cursor: None }
}
/// The nth of many of a family.
pub fn site(n: usize) -> Need {
    of(&format!("site:{n}"), 1)
}
