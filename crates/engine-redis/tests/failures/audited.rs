//! Schedules that were damaged by hand: the audit finds each fault, which no call of the library makes.

use tenure_core::names::{Namespace, Owner};
use tenure_core::requests::{PutSchedule, RunScheduleNow};
use tenure_core::schedule::{Overlap, ScheduleSettings};
use tenure_core::time::{Moment, Span};
use tenure_engine::EngineExt as _;
use tenure_engine_redis::RedisEngine;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;
use crate::schedules::*;

/// A field of the records of schedules, by its place in their form (lua/store/forms.lua).
const OWNER: u32 = 2;
const CURSOR: u32 = 9;
const UNFINISHED: u32 = 15;
const OVERLAP: u32 = 4;
const SHELL: u32 = 1;
const PLACE: u32 = 29;

/// What is done by hand.
enum Fault {
    /// A command, on a key of the namespace.
    Does(&'static [&'static str]),
    /// A field of a schedule's record gets this value, as JSON.
    Sets(&'static str, u32, &'static str),
    /// A schedule's record goes, or the job that it makes: the kind of its key.
    Loses(&'static str, &'static str),
}

/// Writes into the record of a schedule, or takes it away.
const CHANGE: &str = "
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local packed = redis.call('HGET', key, ARGV[2])
  if packed and ARGV[3] == '' then
    redis.call('HDEL', key, ARGV[2])
  elseif packed then
    local fields = cmsgpack.unpack(packed)
    fields[tonumber(ARGV[3])] = cjson.decode(ARGV[4])[1]
    redis.call('HSET', key, ARGV[2], cmsgpack.pack(fields))
  end
end";

fn make(server: &RedisServer, namespace: &str, fault: &Fault) {
    let change = |kind: &str, id: &str, field: &str, value: &str| {
        let pattern = format!("tenure:{{{namespace}}}{kind}:*");
        server.must(&["EVAL", CHANGE, "0", &pattern, id, field, value]);
    };
    match fault {
        Fault::Does(words) => damage(server, namespace, words),
        Fault::Sets(id, field, value) => {
            change("sc", id, &field.to_string(), &format!("[{value}]"));
        }
        Fault::Loses(kind, id) => change(kind, id, "", ""),
    }
}

const FAULTS: &[(Fault, &str)] = &[
    (Fault::Sets("far", UNFINISHED, "3"), "schedule \"far\": 3 unfinished jobs are cached, 1 are"),
    (Fault::Sets("far", UNFINISHED, "3"), "unfinished jobs by schedules: 4 are cached, 2 are"),
    (Fault::Loses("sc", "far"), "its schedule \"far\" is not there"),
    (Fault::Loses("sj", "far"), "schedule \"far\": the job that it makes is not there"),
    (Fault::Loses("sj", "far"), "jobs that schedules make: 2 are cached, 3 are"),
    (Fault::Sets("daily", SHELL, "true"), "schedule \"daily\" is deleted, and kept for no job"),
    (
        Fault::Sets("daily", SHELL, "true"),
        "schedule \"daily\" has no moment, and stands in an order",
    ),
    (Fault::Does(&["ZREM", "sl", "far"]), "schedule \"far\" is in no list"),
    (Fault::Does(&["ZADD", "sl", "0", "ghost"]), "schedules by id: 4 are cached, 3 are"),
    (
        Fault::Does(&["ZREM", "so:o", "far"]),
        "schedule \"far\" is not in the set of its owner \"o\"",
    ),
    (Fault::Sets("far", OWNER, "false"), "owner \"o\" has 3 schedules, and 2 are there"),
    (Fault::Does(&["ZREM", "sd", "far"]), "the timer \"sd\" of schedule \"far\" is at none"),
    (
        Fault::Does(&["ZADD", "sd", "1e15", "ghost"]),
        "schedules and their order: 3 are cached, 2 are",
    ),
    (Fault::Sets("far", PLACE, "false"), "schedule \"far\" has moments, and stands in no order"),
    (Fault::Sets("far", PLACE, "9e15"), "schedule \"far\" fires at"),
    (
        Fault::Sets("daily", CURSOR, "7e15"),
        "schedule \"daily\": its plan is not ascending from its cursor",
    ),
    (Fault::Does(&["ZADD", "sp", "9e15", "daily"]), "the timer \"sp\" of schedule \"daily\" is at"),
    (
        Fault::Does(&["ZADD", "sp", "9e15", "ghost"]),
        "schedules that want plans and their order: 1 are cached, 0 are",
    ),
    (Fault::Does(&["ZREM", "sw", "waits"]), "the timer \"sw\" of schedule \"waits\" is at none"),
    (
        Fault::Does(&["ZADD", "sw", "9e15", "ghost"]),
        "schedules that wait for a job and their order: 2 are cached, 1 are",
    ),
    (Fault::Sets("waits", OVERLAP, "\"s\""), "schedule \"waits\" waits for no job"),
];

/// Three schedules: one far ahead with an unfinished job, one whose due moment waits for such a job, and one that is
/// planned.
async fn filled(engine: &RedisEngine, start: Moment, ns: &Namespace) {
    for (name, timing, overlap) in [
        ("far", from(every(3_600), start), Overlap::Allow),
        ("waits", every(1), Overlap::Queue),
        ("daily", cron("0 0 1 1 *"), Overlap::Skip),
    ] {
        let owner = Owner::parse("o").ok();
        let settings = Box::new(ScheduleSettings { owner, ..settings(timing, overlap) });
        let put = PutSchedule { schedule: id(name), settings, plan: None };
        engine.run(ns, put).await.expect("it is put");
        if name != "daily" {
            let run = RunScheduleNow { schedule: id(name), id: None };
            engine.run(ns, run).await.expect("it runs");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_finds_each_fault_of_a_schedule() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server.url());
    let start = now(&server).plus(Span::from_s(86_400));
    let name = |at: usize| format!("fault-{at}");
    for at in 0..FAULTS.len() {
        filled(&engine, start, &Namespace::parse(&name(at)).expect("a name")).await;
    }
    for (at, (fault, told)) in FAULTS.iter().enumerate() {
        let (name, ns) = (name(at), Namespace::parse(&name(at)).expect("a name"));
        let waiting = format!("tenure:{{{name}}}sw");
        eventually("one waits for its job", async || {
            server.must(&["ZCARD", &waiting]).text() == "1"
        })
        .await;
        nothing_is_found(&engine, &ns).await;
        make(&server, &name, fault);
        audit_tells(&engine, &ns, told).await;
    }
}
