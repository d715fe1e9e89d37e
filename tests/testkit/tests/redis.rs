//! The fixtures of Redis do what other tests rely on.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tenure_testkit::redis::{Aof, RedisCluster, RedisSentinel, RedisServer};
use tenure_testkit::{TempDir, needs_redis};

/// For the work of another process.
const DEADLINE: Duration = Duration::from_secs(60);

fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < DEADLINE, "it did not happen in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn runs(pid: u32) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-0", &pid.to_string()]).stderr(Stdio::null());
    kill.status().is_ok_and(|status| status.success())
}

fn says(why: &std::io::Error, word: &str) -> bool {
    why.to_string().starts_with(word)
}

#[test]
fn what_is_synced_always_outlives_a_kill() {
    needs_redis!();
    let mut server = RedisServer::start(Aof::Always, &[]);
    server.must(&["SET", "k", "v"]);
    let (port, pid) = (server.port(), server.pid());
    server.kill();
    assert!(server.ask(&["PING"]).is_err());
    server.restart();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.ask(&["GET", "k"]).unwrap(), "$1\r\nv\r\n");
}

#[test]
fn what_is_not_kept_is_gone_after_a_kill() {
    needs_redis!();
    let mut server = RedisServer::start(Aof::Off, &[]);
    server.must(&["SET", "k", "v"]);
    server.restart();
    assert_eq!(server.ask(&["GET", "k"]).unwrap(), "$-1\r\n");
}

#[test]
fn further_arguments_reach_the_server_and_its_password_is_given() {
    needs_redis!();
    let more = ["--requirepass", "s3cret", "--maxmemory", "10mb"];
    let server = RedisServer::start(Aof::Everysec, &more);
    let limit = server.must(&["CONFIG", "GET", "maxmemory"]);
    assert_eq!(limit.field("maxmemory"), (10 << 20).to_string());
    assert_eq!(server.info("aof_enabled"), "1");
    assert!(server.call(&["HGET", "k"]).is_err());
}

#[test]
fn a_server_outlives_its_starting_thread_and_ends_when_dropped() {
    needs_redis!();
    let server = std::thread::spawn(|| RedisServer::start(Aof::Off, &[])).join().unwrap();
    server.must(&["PING"]);
    let pid = server.pid();
    drop(server);
    assert!(!runs(pid));
}

#[test]
fn a_server_ends_with_a_test_that_panics() {
    needs_redis!();
    let (tell, told) = std::sync::mpsc::channel();
    let ended = std::thread::spawn(move || {
        let server = RedisServer::start(Aof::Off, &[]);
        tell.send(server.pid()).unwrap();
        // Not panic!: an intended panic should print nothing.
        std::panic::resume_unwind(Box::new("meant"));
    });
    assert!(ended.join().is_err());
    assert!(!runs(told.recv().unwrap()));
}

#[test]
fn a_server_ends_with_a_test_process_that_is_killed() {
    // The process to be killed is this test itself, started once more.
    const INNER: &str = "TENURE_TESTKIT_TELLS_THE_PID_TO";
    needs_redis!();
    if !cfg!(target_os = "linux") {
        return;
    }
    if let Some(told) = std::env::var_os(INNER) {
        let server = RedisServer::start(Aof::Off, &[]);
        std::fs::write(told, server.pid().to_string()).unwrap();
        std::thread::sleep(DEADLINE);
        return;
    }
    let dir = TempDir::new();
    let told = dir.join("pid");
    let name = "a_server_ends_with_a_test_process_that_is_killed";
    let mut inner = Command::new(std::env::current_exe().unwrap());
    inner.args(["--exact", name]).env("TMPDIR", dir.path()).env(INNER, &told).stdout(Stdio::null());
    let mut inner = inner.spawn().unwrap();
    let pid = until(|| std::fs::read_to_string(&told).ok()?.parse::<u32>().ok());
    assert!(runs(pid));
    inner.kill().unwrap();
    inner.wait().unwrap();
    until(|| (!runs(pid)).then_some(()));
}

#[test]
fn a_cluster_shares_its_slots_and_a_slot_moves_with_its_keys() {
    needs_redis!();
    let mut cluster = RedisCluster::start(3);
    assert_eq!(cluster.ports().len(), 3);
    assert_eq!([0, 5_461, 16_383].map(|slot| cluster.owner(slot)), [0, 1, 2]);

    let slot = cluster.slot_of("{a}");
    let from = cluster.owner(slot);
    let to = (from + 1) % 3;
    for n in 0..250 {
        cluster.server(from).must(&["SET", &format!("{{a}}{n}"), "v"]);
    }
    assert!(cluster.server(to).call(&["GET", "{a}0"]).is_err_and(|why| says(&why, "MOVED")));

    // Half-way: moved keys are asked for at the new primary, all others still at the old one.
    let half = cluster.begin_move(slot, from, to);
    cluster.move_keys(half, &["{a}0", "{a}none"]);
    assert!(cluster.server(from).call(&["GET", "{a}0"]).is_err_and(|why| says(&why, "ASK")));
    assert_eq!(cluster.server(from).must(&["GET", "{a}1"]).text(), "v");
    assert_eq!(cluster.move_some(half), 100);
    assert_eq!(cluster.owner(slot), from);

    cluster.finish_move(half);
    assert_eq!(cluster.owner(slot), to);
    for n in 0..250 {
        assert_eq!(cluster.server(to).must(&["GET", &format!("{{a}}{n}")]).text(), "v");
    }
    cluster.move_slot(slot, to, from);
    assert_eq!(cluster.server(from).must(&["GET", "{a}249"]).text(), "v");

    cluster.server_mut(from).restart();
    cluster.await_whole();
    cluster.server(from).must(&["SET", "{a}0", "w"]);
}

#[test]
fn a_cluster_of_one_has_every_slot() {
    needs_redis!();
    let cluster = RedisCluster::start(1);
    cluster.server(0).must(&["SET", "k", "v"]);
    assert_eq!(cluster.owner(cluster.slot_of("k")), 0);
}

#[test]
fn a_killed_primary_is_replaced_and_comes_back_as_a_replica() {
    needs_redis!();
    let mut redis = RedisSentinel::start();
    assert_eq!(redis.sentinel_ports().len(), 3);
    redis.primary().must(&["SET", "k", "v"]);
    until(|| (redis.replica().must(&["GET", "k"]).text() == "v").then_some(()));

    let old = redis.kill_primary();
    let new = redis.await_failover(old);
    assert_ne!(new, old);
    assert_eq!(redis.primary_port(), new);
    assert_eq!(redis.primary().must(&["GET", "k"]).text(), "v");
    redis.primary().must(&["SET", "k", "w"]);

    redis.restart(old);
    redis.await_replica();
    assert_eq!(redis.replica().port(), old);
    assert_eq!(redis.replica().must(&["GET", "k"]).text(), "w");
}
