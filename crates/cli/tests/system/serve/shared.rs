//! Several servers that share a store in Redis: one leads it, the others forward calls to it, and one of them goes on
//! when it is gone.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tenure::core::job::NewJob;
use tenure::core::lease::{Ending, SettleItem};
use tenure::core::names::{JobRef, Namespace};
use tenure::core::requests::{GetJob, Lease, Push, PushAnswer, Settle};
use tenure::core::secret::Json;
use tenure::remote::Remote;
use tenure::url::StoreUrl;
use tenure_engine_api::EngineExt;
use tenure_testkit::Dice;
use tenure_testkit::redis::{Aof, RedisServer, wanted};
use tenure_testkit::tenure::once;
use tokio::runtime::Runtime;

use super::{Server, start};

pub const LONG: Duration = Duration::from_secs(60);

/// Servers of one store, and the runtime for the calls of a test; `None` if no Redis is wanted.
pub fn sharing(count: usize) -> Option<(RedisServer, Vec<Server>, Runtime)> {
    let redis = wanted().then(|| RedisServer::start(Aof::Off, &[]))?;
    let store = redis.url();
    let servers = (0..count).map(|_| start(&store, None)).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    Some((redis, servers, runtime))
}

pub fn remote(server: &Server) -> Remote {
    let Ok(StoreUrl::Server(url)) = server.url().parse() else {
        panic!("{} is no address", server.at)
    };
    Remote::open(&url, None).unwrap()
}

/// The place of the server that leads the store among these, once one does and the others know it.
pub fn owner(servers: &[Server]) -> usize {
    owner_by(servers, |server| server.get("/readyz"))
}

/// The same, as the answers to `/readyz` say, however they are asked for.
pub fn owner_by(servers: &[Server], ready: impl Fn(&Server) -> String) -> usize {
    once(LONG, "a server that owns the store", || {
        let said: Vec<String> = servers.iter().map(&ready).collect();
        let owner = said.iter().position(|said| said.contains("the server answers calls"));
        let forward = said.iter().filter(|said| said.contains("which owns the store")).count();
        owner.filter(|_| forward + 1 == servers.len()).ok_or_else(|| format!("{said:?}"))
    })
}

/// The first output that has this part.
pub fn until_said(part: &str, mut says: impl FnMut() -> String) -> String {
    once(LONG, part, || {
        let said = says();
        if said.contains(part) { Ok(said) } else { Err(said) }
    })
}

pub async fn push(through: &Remote, id: String) {
    let job = NewJob { id: Some(id.parse().unwrap()), ..NewJob::new("q".parse().unwrap()) };
    let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
    through.run(&Namespace::main(), push).await.unwrap();
}

/// Leases and settles all that is ready, and answers the ids.
async fn drained(through: &Remote) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let lease = Lease::jobs(vec!["q".parse().unwrap()], 100);
        let leased = through.run(&Namespace::main(), lease).await.unwrap();
        if leased.leases.is_empty() {
            ids.sort();
            return ids;
        }
        ids.extend(leased.leases.iter().filter_map(|view| Some(view.job.as_ref()?.id.to_string())));
        let settle = leased.leases.iter();
        let done = Ending::Succeeded { result: None };
        let settle = settle.map(|view| SettleItem::new(view.lease.clone().unwrap(), done.clone()));
        let settle = Settle::of(settle.collect());
        through.run(&Namespace::main(), settle).await.unwrap();
    }
}

#[test]
fn calls_through_any_server_survive_a_killed_or_ended_leader() {
    let Some((_redis, mut servers, runtime)) = sharing(3) else { return };
    let mut expected = Vec::new();
    for (n, signal) in [Signal::SIGKILL, Signal::SIGTERM].into_iter().enumerate() {
        let at = owner(&servers);
        let ends = servers.remove(at);
        runtime.block_on(async {
            let (one, other) = (remote(&servers[0]), remote(servers.last().unwrap()));
            for count in 0..100 {
                if count == 40 {
                    ends.signal(signal);
                }
                let id = format!("{n}-{count:03}");
                push(if count % 2 == 0 { &one } else { &other }, id.clone()).await;
                expected.push(id);
            }
        });
        if signal == Signal::SIGTERM {
            let (code, log) = ends.ended();
            assert_eq!(code, Some(0), "{log}");
        }
    }
    let last = remote(&servers[0]);
    assert_eq!(runtime.block_on(drained(&last)), expected);
}

#[test]
fn a_stopped_leader_is_replaced_and_forwards_calls_on_waking() {
    let Some((_redis, mut servers, runtime)) = sharing(3) else { return };
    let at = owner(&servers);
    let stopped = servers.remove(at);
    let (other, woken) = (remote(&servers[0]), remote(&stopped));
    runtime.block_on(push(&other, "before".to_owned()));
    stopped.signal(Signal::SIGSTOP);
    // It is forwarded to the one that is stopped, and then to the one that takes over.
    runtime.block_on(push(&other, "meanwhile".to_owned()));
    owner(&servers);
    stopped.signal(Signal::SIGCONT);
    runtime.block_on(push(&woken, "woken".to_owned()));
    // The first sending reached it too, and did nothing.
    assert_eq!(runtime.block_on(drained(&other)), ["before", "meanwhile", "woken"]);
    assert!(stopped.get("/readyz").contains("which owns the store"));
}

#[test]
fn a_server_that_does_not_own_the_store_shows_it_all_the_same() {
    let Some((_redis, servers, runtime)) = sharing(2) else { return };
    let owns = owner(&servers);
    let (owns, other) = (&servers[owns], &servers[1 - owns]);
    runtime.block_on(push(&remote(other), "shown-by-both".to_owned()));
    // The metrics are those of a moment ago.
    let ready = "tenure_jobs{namespace=\"default\",queue=\"q\",state=\"ready\"} 1";
    until_said(ready, || other.get("/metrics"));
    for server in [owns, other] {
        let page = server.get("/jobs");
        assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("shown-by-both"), "{page}");
    }
    // The forwarded call is counted by the server that answered it.
    let counted = |server: &Server| {
        let text = server.get("/metrics");
        text.lines()
            .any(|line| line.starts_with("tenure_jobs_pushed_total{") && line.ends_with(" 1"))
    };
    assert_eq!([counted(owns), counted(other)], [true, false]);
}

/// A payload of 100,000 letters that hardly becomes smaller when it is packed.
fn payload(n: usize) -> Json {
    Json::parse(&format!("\"{}\"", Dice::mixed(n as u64 + 1).text(100_000))).unwrap()
}

/// The value of this field of `own`.
fn own(redis: &RedisServer, field: &str) -> String {
    redis.must(&["HGET", "{tenure}:own", field]).text()
}

/// Pushes until this is so, of a store that would need a snapshot each few seconds.
fn push_until(
    (redis, through, runtime): (&RedisServer, &Remote, &Runtime),
    pushed: &mut usize,
    is_so: impl Fn() -> bool,
) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{}", redis.must(&["HGETALL", "{tenure}:own"]));
        let log = redis.must(&["MEMORY", "USAGE", "{tenure}:log", "SAMPLES", "0"]).text();
        if log.parse::<u64>().unwrap_or(0) > 64 << 20 {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let job = |n: usize| NewJob {
            id: Some(format!("{n:05}").parse().unwrap()),
            payload: payload(n),
            ..NewJob::new("q".parse().unwrap())
        };
        let jobs = (*pushed..*pushed + 20).map(job).collect();
        let push = Push { jobs, answer: PushAnswer::Ids };
        runtime.block_on(through.run(&Namespace::main(), push)).unwrap();
        *pushed += 20;
    }
}

#[test]
fn a_follower_writes_snapshots_and_after_its_death_the_leader() {
    let Some((redis, mut servers, runtime)) = sharing(2) else { return };
    let owner = servers.remove(owner(&servers));
    let standby = servers.remove(0);
    let (through, mut pushed) = (remote(&owner), 0);
    let all = (&redis, &through, &runtime);
    let is_named = |count: &str| {
        let name = own(&redis, "snapshot");
        name.split(' ').next().is_some_and(|generation| generation.ends_with(count))
    };
    // A server is asked that has rows.
    runtime.block_on(push(&through, "first".to_owned()));
    until_said("is 0 entries behind", || owner.get("/readyz"));
    push_until(all, &mut pushed, || is_named("-1"));
    push_until(all, &mut pushed, || own(&redis, "writing").ends_with("-2"));
    standby.signal(Signal::SIGKILL);
    let (_, said) = standby.ended();
    assert!(said.contains("was written for the owner"), "{said}");
    push_until(all, &mut pushed, || is_named("-3"));
    let of_the_dead = redis.must(&["KEYS", "{tenure}:snap:*-2:*"]);
    assert!(of_the_dead.list().is_empty(), "{of_the_dead}");
    // A server that starts now has the snapshot and the log alone.
    owner.signal(Signal::SIGKILL);
    let store = redis.url();
    let next = start(&store, None);
    let next = remote(&next);
    for n in (0..pushed).step_by(19) {
        let get = GetJob { job: JobRef::Id(format!("{n:05}").parse().unwrap()) };
        runtime.block_on(next.run(&Namespace::main(), get)).unwrap();
    }
}
