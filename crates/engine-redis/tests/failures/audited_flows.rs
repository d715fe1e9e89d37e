//! Flows that were damaged by hand: the audit finds each fault, which no call of the library makes.

use tenure_core::flow::{After, OnParentFailure, Parent};
use tenure_core::job::{NewJob, Retry};
use tenure_core::lease::{Ending, SettleItem};
use tenure_core::names::{FlowName, JobId, JobRef, Namespace, QueueName};
use tenure_core::requests::{Audit, Lease, Push, PushAnswer, Settle};
use tenure_engine::EngineExt as _;
use tenure_engine_redis::RedisEngine;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::{eventually, nothing_is_found, open};

/// What the damages are said with: records by their keys, and what their fields mean, as the forms of the library have
/// them (lua/store/forms.lua, src/alphabet/positions.rs). A set in a record is flat: score, member, and so on.
const WORDS: &str = "
local space = ARGV[1]
local function call(...) return redis.call(...) end
local function change(key, field, act)
  local fields = cmsgpack.unpack(call('HGET', space .. key, field))
  act(fields)
  call('HSET', space .. key, field, cmsgpack.pack(fields))
end
local function hash_of(kind, field)
  for part = 0, 255 do
    if call('HEXISTS', space .. kind .. ':' .. part, field) == 1 then return kind .. ':' .. part end
  end
end
local function life(row, act) change('j:0', row .. 'x', act) end
local function parent(row, act) change('pa:0', row, act) end
local function flow(name, act) change(hash_of('fl', name), name, act) end
local function edge(child) return struct.pack('>I6I4', child, 0) end
local KIN, OPEN_COUNT, FOLLOWS = 24, 1, 6
local FOLLOWERS, OPEN = 1, 6
local CANCELLING, MEMBERS, UNFINISHED, FLOW_OPEN = 6, 8, 9, 10
";

/// Rows of the jobs, as they are pushed one by one. `p` is waited for by `c` and `d`; `f` has failed, and `e`, which any
/// end will do, is ready. These three children belong to the flow `open`; `g` alone, which has succeeded, to `ended`.
const JOBS: [&str; 6] = ["p", "c", "d", "f", "e", "g"];

/// A damage, and what the audit says of it.
const FAULTS: &[(&str, &str)] = &[
    (
        "life(2, function(job) job[KIN][OPEN_COUNT] = 5 end)",
        "the job of row 2: 5 open edges are cached, 1 are",
    ),
    (
        "life(2, function(job) job[KIN][OPEN_COUNT] = 5 end)",
        "open edges by parents and by children: 6 are cached, 2 are",
    ),
    (
        "life(2, function(job) job[KIN][OPEN_COUNT] = 0 end)",
        "job \"c\" has 0 open edges, and its state says otherwise",
    ),
    (
        "parent(1, function(record) record[OPEN] = { 3, edge(3) } end)",
        "open edges by parents and by children: 2 are cached, 1 are",
    ),
    (
        "parent(1, function(record) record[OPEN] = { 2, edge(2), 3, edge(3), 99, edge(99) } end)",
        "the job of row 1 has an open edge to the job of row 99, which does not wait for it",
    ),
    (
        "parent(1, function(record) record[OPEN] = { 2, edge(2), 3, edge(3), 5, edge(5) } end)",
        "the job of row 1 has an open edge to the job of row 5, which does not wait for it",
    ),
    (
        "flow('open', function(record) record[FLOW_OPEN] = { 99, edge(99) } end)",
        "the flow \"open\" has an open edge to the job of row 99, which does not wait for it",
    ),
    (
        "parent(1, function(record) record[FOLLOWERS] = 9 end)",
        "the job of row 1: 9 followers are cached, 2 are",
    ),
    (
        "parent(1, function(record) record[FOLLOWERS] = 9 end)",
        "followers by parents and by children: 10 are cached, 3 are",
    ),
    (
        "life(5, function(job) job[KIN][FOLLOWS] = false end)",
        "the job of row 4: 1 followers are cached, 0 are",
    ),
    (
        "call('ZREM', space .. 'par', '1')",
        "job \"c\" names the job of row 1, which does not know it",
    ),
    (
        "call('ZREM', space .. 'hf', '4')",
        "the job of row 4 is counted as a failed job that is kept for others, or is not, by mistake",
    ),
    (
        "call('ZADD', space .. 'hf', '99', '99')",
        "failed jobs that are kept for others: 2 are cached, 1 are",
    ),
    (
        "parent(4, function(record) record[OPEN] = { 2, edge(2) } end)",
        "the job of row 4 has ended, with 1 open edges, and nobody is told",
    ),
    (
        "flow('ended', function(record) record[FLOW_OPEN] = { 2, edge(2) } end)",
        "the flow \"ended\" has ended, with 1 open edges, and nobody is told",
    ),
    (
        "call('ZADD', space .. 'tell', '7', 'j1')",
        "the job of row 1 stands elsewhere among those whose end is told",
    ),
    ("call('ZADD', space .. 'tell', '7', 'j99')", "ends that are told: 1 are cached, 0 are"),
    (
        "call('ZADD', space .. 'leave', '7', '99')",
        "jobs that let their parents go: 1 are cached, 0 are",
    ),
    (
        "flow('open', function(record) record[UNFINISHED] = { 2, '2', 3, '3', 5, '5', 99, '99' } end)",
        "the flow \"open\": 4 unfinished jobs are cached, 3 are",
    ),
    (
        "flow('open', function(record) record[UNFINISHED] = { 3, '3', 5, '5' } end)",
        "the flow \"open\": 2 unfinished jobs are cached, 3 are",
    ),
    (
        "flow('open', function(record) record[UNFINISHED] = { 3, '3', 5, '5' } end)",
        "job \"c\" belongs to the flow \"open\", which does not know it",
    ),
    (
        "flow('ended', function(record) record[MEMBERS] = { 6, '6', 99, '99' } end)",
        "the flow \"ended\": 2 jobs are cached, 1 are",
    ),
    (
        "flow('open', function(record) record[CANCELLING] = 0 end)",
        "the flow \"open\" does not know whether it is called off",
    ),
    ("call('ZREM', space .. 'fln', 'open')", "flows by name: 2 are cached, 1 are"),
    (
        "call('HDEL', space .. hash_of('fl', 'open'), 'open')",
        "job \"c\" belongs to the flow \"open\", which does not know it",
    ),
    ("call('HDEL', space .. 'j:0a', '2')", "job \"c\": the list of its parents is not there"),
];

fn new_job(id: &str) -> NewJob {
    let after = match id {
        "c" | "d" => Some("p"),
        "e" => Some("f"),
        _ => None,
    };
    let flow = match id {
        "c" | "d" | "e" => Some("open"),
        "g" => Some("ended"),
        _ => None,
    };
    let parent = |id: &str| Parent::Job(JobRef::Id(JobId::parse(id).expect("an id")));
    let entry = |id: &str| After { parent: parent(id), gone_is_done: false };
    NewJob {
        id: JobId::parse(id).ok(),
        retry: Some(Retry { max_attempts: 1, ..Retry::default() }),
        after: after.map(entry).into_iter().collect(),
        on_parent_failure: OnParentFailure::Run,
        flow: flow.map(|name| FlowName::parse(name).expect("a name")),
        ..NewJob::new(QueueName::parse(id).expect("a name"))
    }
}

async fn filled(engine: &RedisEngine, ns: &Namespace) {
    for id in JOBS {
        let push = Push { jobs: vec![new_job(id)], answer: PushAnswer::Ids };
        engine.run(ns, push).await.expect("it is pushed");
    }
    let failed = Ending::Failed { error: "no".to_owned(), retry_in: None, last: true };
    for (id, ending) in [("f", failed), ("g", Ending::Succeeded { result: None })] {
        let take = Lease::jobs(vec![QueueName::parse(id).expect("a name")], 1);
        let mut leases = engine.run(ns, take).await.expect("it is granted").leases;
        let lease = leases.pop().and_then(|lease| lease.lease).expect("the job is ready");
        let settle = Settle::of(vec![SettleItem::new(lease, ending)]);
        assert!(engine.run(ns, settle).await.expect("it is settled").settled[0].ok);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_finds_each_fault_of_a_flow() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server.url());
    for (at, (damage, told)) in FAULTS.iter().enumerate() {
        let name = format!("fault-{at}");
        let ns = Namespace::parse(&name).expect("a name");
        filled(&engine, &ns).await;
        nothing_is_found(&engine, &ns).await;
        let script = format!("{WORDS}{damage}");
        server.must(&["EVAL", &script, "0", &format!("tenure:{{{name}}}")]);
        // An audit between whose steps somebody ticks compares no sums; the next one does.
        let mut found = String::new();
        let is_found = async || {
            let audit = engine.run(&ns, Audit::default()).await.expect("an audit");
            found = audit.faults.join("\n");
            found.contains(told)
        };
        let within = tokio::time::timeout(WITHIN, eventually(told, is_found)).await;
        assert!(within.is_ok(), "{damage}\n{told}\nfound instead: {found}");
    }
}

/// How long the fault may take to be told.
const WITHIN: std::time::Duration = std::time::Duration::from_secs(10);
