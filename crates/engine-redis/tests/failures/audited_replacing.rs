//! Pushes that replaced a job, damaged by hand: the audit finds each fault, which no call of the library makes.

use tenure_core::job::{NewJob, OnConflict, Unique, Until};
use tenure_core::names::{JobId, Namespace, QueueName, UniqueKey};
use tenure_core::requests::{Push, PushAnswer};
use tenure_engine::EngineExt as _;
use tenure_engine_redis::RedisEngine;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;

/// Runs a command on each key of the pattern that has the field.
const ON_RECORD: &str = "
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local packed = redis.call('HGET', key, ARGV[2])
  if packed and ARGV[3] == '' then
    redis.call('HDEL', key, ARGV[2])
  elseif packed then
    local fields = cmsgpack.unpack(packed)
    fields[2] = ARGV[3]
    redis.call('HSET', key, ARGV[2], cmsgpack.pack(fields))
  end
end";

/// A fault made by hand in the memory of the push `b`, which replaced `a`.
enum Fault {
    Does(&'static [&'static str]),
    /// The record names another job; the empty name: it goes.
    Names(&'static str),
}

const FAULTS: &[(Fault, &str)] = &[
    (Fault::Names(""), "pushes that replaced a job: 1 are cached, 0 are"),
    (
        Fault::Names("b"),
        "the push \"b\" that replaced a job is remembered as one that replaced another job",
    ),
    (
        Fault::Names("c"),
        "the push \"b\" that replaced a job is remembered as one that replaced another job",
    ),
    (
        Fault::Does(&["ZREM", "rpe", "b"]),
        "the timer \"rpe\" of the push \"b\" that replaced a job is at none",
    ),
    (
        Fault::Does(&["ZADD", "rpe", "9e15", "b"]),
        "the timer \"rpe\" of the push \"b\" that replaced a job is at",
    ),
    (
        Fault::Does(&["ZADD", "rpe", "9e15", "ghost"]),
        "pushes that replaced a job: 2 are cached, 1 are",
    ),
];

async fn replace(engine: &RedisEngine, ns: &Namespace) {
    for id in ["a", "b"] {
        let mut job = NewJob::new(QueueName::parse("q").expect("a name"));
        job.id = JobId::parse(id).ok();
        job.unique = Some(Unique {
            key: UniqueKey::parse("k").expect("a key"),
            until: Until::End,
            hold: None,
            on_conflict: OnConflict::Replace,
            within: None,
        });
        let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
        engine.run(ns, push).await.expect("it is pushed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_finds_each_fault_of_a_push_that_replaced_a_job() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server.url());
    for (at, (fault, told)) in FAULTS.iter().enumerate() {
        let name = format!("fault-{at}");
        let ns = Namespace::parse(&name).expect("a name");
        replace(&engine, &ns).await;
        nothing_is_found(&engine, &ns).await;
        match fault {
            Fault::Does(words) => damage(&server, &name, words),
            Fault::Names(id) => {
                let pattern = format!("tenure:{{{name}}}rp:*");
                server.must(&["EVAL", ON_RECORD, "0", &pattern, "b", id]);
            }
        }
        audit_tells(&engine, &ns, told).await;
    }
}
