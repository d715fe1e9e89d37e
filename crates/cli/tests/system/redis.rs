//! The command line at the address of a Redis, in which it finds the servers of the store, and servers that share one:
//! a job that is pushed at one is handed out at the other, even if servers or workers are killed.

use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisCluster, RedisSentinel, RedisServer};
use tenure_testkit::tenure::{Server, asked, fails, until};

use crate::{answer, client, run, serving};

/// Longer than this nothing here takes, and shorter than the waits that must end early.
const SOON: Duration = Duration::from_secs(30);
/// A long poll's wait: a call that is answered within [`SOON`] was woken.
const WAIT: &str = "60s";

/// stdout of a command that must end well.
#[track_caller]
fn done(url: &str, arguments: &[&str]) -> String {
    tenure_testkit::tenure::done(&mut client(url, arguments))
}

/// A server that answers calls, or knows the one that does.
fn start(store: &str) -> Server {
    let server = start_with(store, &[]);
    until(SOON, "the store to be served", || server.look("/readyz").0 == 200);
    server
}

fn start_with(store: &str, options: &[&str]) -> Server {
    Server::start(serving(store).args(options), SOON)
}

/// A Redis, and two servers that share it.
fn shared() -> (RedisServer, Server, Server) {
    let redis = RedisServer::start(Aof::Off, &[]);
    let (a, b) = (start(&redis.url()), start(&redis.url()));
    (redis, a, b)
}

fn ends_well((code, log): (Option<i32>, String)) {
    assert_eq!(code, Some(0), "{log}");
}

/// A lease call that waits, on a thread of its own; returns when the store knows that it does.
fn poll(server: &Server, queue: &str, worker: &str) -> JoinHandle<std::io::Result<(u16, Value)>> {
    let (at, ask) = (server.at.clone(), json!({"queues": [queue], "wait": WAIT, "worker": worker}));
    let poll = std::thread::spawn(move || asked(&at, SOON, "POST /v1/leases", &ask));
    until(SOON, "a worker to be known", || {
        let (_, workers) = server.look("/v1/workers");
        workers["items"].as_array().unwrap().iter().any(|one| one["id"] == worker)
    });
    poll
}

/// The id of the one job that a lease call was granted.
fn granted(poll: JoinHandle<std::io::Result<(u16, Value)>>) -> String {
    let (status, leased) = poll.join().unwrap().unwrap();
    let leases = leased["leases"].as_array().unwrap();
    assert_eq!((status, leases.len()), (200, 1), "{leased}");
    leases[0]["job"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn every_command_finds_the_servers_of_a_store_in_redis() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let url = &redis.url();
    let _server = start(url);
    assert_eq!(done(url, &["push", "mail", r#"{"to":"ann"}"#, "--id", "one"]), "one\n");
    assert_eq!(answer(url, &["explain", "one"])["state"], "ready");
    assert_eq!(done(url, &["work", "mail", "--until-empty", "--", "cat"]), r#"{"to":"ann"}"#);
    let job = answer(url, &["job", "one"]);
    assert_eq!((&job["state"], &job["attempt"]), (&json!("succeeded"), &json!(1)), "{job}");

    done(url, &["limit", "set", "site:*", "--concurrency", "2"]);
    done(url, &["pool", "add", "accounts", "ann", "--tag", "cn"]);
    let script = r#"printf %s "$TENURE_RESOURCE_ID""#;
    let needs = ["--need", "pool:accounts#cn", "--need", "limit:site:x", "--", "sh", "-c", script];
    assert_eq!(done(url, &[&["lease"], &needs[..]].concat()), "ann");
    // The inner one does not get the lock of the outer one.
    let own = env!("CARGO_BIN_EXE_tenure");
    let inner = [own, "lock", "deploy", "--no-wait", "-E", "7", "--", "true"];
    let outer = ["lock", "deploy", "--pass-credentials", "--"];
    assert_eq!(run(url, &[&outer[..], &inner].concat()).0, 7);
    assert_eq!(done(url, &["lock", "deploy", "--no-wait", "--", "echo", "mine"]), "mine\n");
    assert_eq!(answer(url, &["stats"])["store"]["kind"], "redis");
    assert_eq!(answer(url, &["audit"])["ok"], true);
    assert_eq!(run(url, &["job", "another"]).0, 1);
}

#[test]
fn stores_with_names_of_their_own_do_not_see_each_other() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let (shop, blog) = (redis.url() + "?name=shop", redis.url() + "?name=blog&forgets=never");
    let _servers = [&shop, &blog].map(|store| start(store));
    done(&shop, &["push", "q", "--id", "a"]);
    assert_eq!(run(&blog, &["job", "a"]).0, 1);
    assert_eq!(run(&shop, &["job", "a"]).0, 0);
    let keys = redis.must(&["KEYS", "*"]);
    let keys = format!("{keys:?}");
    assert!(keys.contains("{shop}:log") && !keys.contains("tenure"), "{keys}");
}

#[test]
fn redis_cluster_and_sentinel_addresses_work() {
    needs_redis!();
    let cluster = RedisCluster::start_with(2, Aof::Off);
    let sentinel = RedisSentinel::start_with(Aof::Off);
    for url in [cluster.url(), sentinel.url()] {
        let server = start(&url);
        // These two lie in different halves of the slots.
        for namespace in ["default", "foo"] {
            let here = ["--namespace", namespace];
            done(&url, &[&here[..], &["push", "q", "1", "--id", "one"]].concat());
            let work = ["work", "q", "--until-empty", "--", "cat"];
            assert_eq!(done(&server.url(), &[&here[..], &work].concat()), "1");
            assert_eq!(answer(&url, &[&here[..], &["job", "one"]].concat())["state"], "succeeded");
            assert_eq!(answer(&url, &[&here[..], &["audit"]].concat())["ok"], true);
        }
    }
}

#[test]
fn what_is_pushed_at_one_server_is_leased_at_another() {
    needs_redis!();
    let (redis, a, b) = shared();
    done(&a.url(), &["push", "q", "1", "--id", "one"]);
    assert_eq!(done(&b.url(), &["work", "q", "--until-empty", "--", "cat"]), "1");
    // A client that finds them in the Redis sees the same.
    for url in [a.url(), b.url(), redis.url()] {
        assert_eq!(answer(&url, &["job", "one"])["state"], "succeeded", "{url}");
    }
    for server in [a, b] {
        let (status, ready) = server.look("/readyz");
        assert_eq!((status, &ready["store"]), (200, &json!("redis")), "{ready}");
        ends_well(server.stop());
    }
}

#[test]
fn a_push_at_one_server_wakes_a_job_waiter_at_another() {
    needs_redis!();
    let (redis, a, b) = shared();
    for (id, here, there) in [("one", &a, &b), ("two", &b, &a)] {
        let poll = poll(here, "q", id);
        let (status, _) = there.ask("POST /v1/jobs", &json!({"id": id, "queue": "q"}));
        assert_eq!((status, granted(poll)), (201, id.to_owned()));
    }
    // A command that finds the server in the Redis wakes them too.
    let poll = poll(&a, "q", "three");
    done(&redis.url(), &["push", "q", "--id", "three"]);
    assert_eq!(granted(poll), "three");
}

#[test]
fn a_job_waiter_at_a_killed_server_blocks_no_other() {
    needs_redis!();
    let (redis, a, b) = shared();
    // The one at the killed server stands before the other.
    let (first, second) = (poll(&a, "q", "first"), poll(&b, "q", "second"));
    a.signal(Signal::SIGKILL);
    let broken = first.join().unwrap();
    assert!(broken.is_err(), "{broken:?}");
    b.ask("POST /v1/jobs", &json!({"id": "one", "queue": "q"}));
    assert_eq!(granted(second), "one");
    let (_, job) = b.look("/v1/jobs/one");
    assert_eq!((&job["state"], &job["lost"]), (&json!("running"), &json!(0)), "{job}");
    // Another takes its place.
    let again = start(&redis.url());
    let third = poll(&again, "q", "third");
    b.ask("POST /v1/jobs", &json!({"id": "two", "queue": "q"}));
    assert_eq!(granted(third), "two");
}

#[test]
fn an_ending_server_answers_its_waiters_and_the_other_goes_on() {
    needs_redis!();
    let (redis, a, b) = shared();
    let (here, there) = (poll(&a, "q", "here"), poll(&b, "q", "there"));
    a.signal(Signal::SIGTERM);
    let (status, leased) = here.join().unwrap().unwrap();
    assert_eq!((status, &leased["leases"]), (200, &json!([])), "{leased}");
    ends_well(a.ended());
    done(&redis.url(), &["push", "q", "--id", "one"]);
    assert_eq!(granted(there), "one");
}

#[test]
fn a_server_without_its_redis_is_degraded_until_it_is_back() {
    needs_redis!();
    let mut redis = RedisServer::start(Aof::Always, &[]);
    redis.kill();
    let server = start_with(&redis.url(), &[]);
    let job = json!({"id": "one", "queue": "q"});
    for _ in 0..2 {
        until(SOON, "the server to be degraded", || server.look("/readyz").0 == 503);
        let (_, ready) = server.look("/readyz");
        assert_eq!((&ready["status"], &ready["store"]), (&json!("degraded"), &json!("redis")));
        assert_eq!(server.look("/healthz").0, 200);
        let (status, no) = server.ask("POST /v1/jobs", &job);
        assert_eq!((status, &no["code"]), (503, &json!("store_unavailable")), "{no}");
        redis.restart();
        until(SOON, "the server to be well", || server.look("/readyz").0 == 200);
        let (status, job) = server.ask("POST /v1/jobs", &job);
        assert!(matches!(status, 200 | 201), "{job}");
        redis.kill();
    }
    ends_well(server.stop());
}

#[test]
fn a_redis_that_is_away_or_refuses_us_is_told_in_a_sentence() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &["--requirepass", "richtig"]);
    let host = format!("127.0.0.1:{}", redis.port());
    for (url, code, part) in [
        (format!("redis://:falsch@{host}"), 77, "invalid username-password pair"),
        (redis.url(), 77, "Authentication required"),
        (format!("redis://:falsch@{host}?geheim=1"), 2, "unknown parameter"),
        ("redis://:falsch@127.0.0.1:1".to_owned(), 69, "redis://•••@127.0.0.1:1: "),
        ("redis-cluster://127.0.0.1:1,127.0.0.1:2".to_owned(), 69, "redis-cluster://127.0.0.1:1"),
        ("redis-sentinel://127.0.0.1:1/main".to_owned(), 69, "redis-sentinel://127.0.0.1:1/main"),
    ] {
        let (ended, out, err) = run(&url, &["push", "q", "--id", "one"]);
        assert_eq!(ended, code, "{out}{err}");
        assert!(err.contains(part) && err.contains("hint: ") | (code == 2), "{err}");
        assert!(out.is_empty() && !err.contains("falsch") && !err.contains("geheim"), "{err}");
    }
    let right = format!("redis://:richtig@{host}");
    let (ended, out, err) = run(&right, &["push", "q", "--id", "one"]);
    let none = format!(
        "no server of Tenure uses redis://•••@{host}; start one: tenure serve --store redis://•••@{host}"
    );
    assert!(ended == 69 && out.is_empty() && err.contains(&none), "{err}");
    let _server = start(&right);
    assert_eq!(done(&right, &["push", "q", "--id", "one"]), "one\n");
    // A server tells its operator, and does not show it either.
    let server = start_with(&format!("redis://:falsch@{host}"), &[]);
    let line = server.line("the store is not well");
    assert!(!server.said().contains("falsch"), "{}", server.said());
    assert!(line.contains("WRONGPASS"), "{line}");
    let (_, ready) = server.look("/readyz");
    assert!(!ready.to_string().contains("falsch"), "{ready}");
}

#[test]
fn what_an_answer_survives_is_no_servers_to_say() {
    let serve = ["serve", "--store", "redis://127.0.0.1:1", "--durability", "everysec"];
    fails(2, &mut client("http://127.0.0.1:1", &serve), "--durability");
}

#[test]
fn retain_bytes_stay_for_servers_started_without_the_option() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    let payload = format!("\"{}\"", "x".repeat(10_000));
    let done_jobs = |server: &Server| {
        for _ in 0..10 {
            server.ask("POST /v1/jobs", &json!({"queue": "q", "payload": payload}));
        }
        let (_, leased) = server.ask("POST /v1/leases", &json!({"queues": ["q"], "max": 10}));
        let leases = leased["leases"].as_array().unwrap().clone();
        let settle = |lease: &Value| json!({"lease": lease["lease"], "outcome": "succeeded"});
        let settles: Vec<_> = leases.iter().map(settle).collect();
        server.ask("POST /v1/leases/settle", &json!({"settle": settles}));
    };
    let kept = |server: &Server| {
        let (_, stats) = server.look("/v1/stats");
        stats["jobs"]["succeeded"].as_u64().unwrap()
    };
    for options in [&["--retain-bytes", "30KiB", "--patience", "5s"][..], &[]] {
        let server = start_with(&redis.url(), options);
        done_jobs(&server);
        until(SOON, "what is too much to be gone", || kept(&server) <= 3);
    }
}
