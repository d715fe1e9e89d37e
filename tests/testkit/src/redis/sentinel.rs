//! A primary, its replica and three Sentinels of a test's own, for failovers.
//!
//! The Sentinels decide which of the two servers is the primary, not the start.

use super::server::{Aof, RedisServer};
use super::until;
use super::wire::Reply;

/// The name under which the Sentinels know the primary.
const NAME: &str = "main";
/// How long a primary may be silent, in milliseconds, until a Sentinel considers it down.
const DOWN_AFTER_MS: &str = "500";
/// How long a failover may take, in milliseconds; after twice that another Sentinel tries.
const FAILOVER_MS: &str = "2000";
/// How often, in milliseconds, a Sentinel does its periodic work, by default every second or two. With a PING each
/// second, and none to a new primary before that, every new primary would be considered down within `DOWN_AFTER_MS`,
/// and one failover would lead to the next without end. Below 200 there would be no failover: a replica is only chosen
/// if it reported within five PINGs, which it does each second.
const PERIODS_MS: [(&str, &str); 4] = [
    ("ping-period", "250"),
    ("ask-period", "100"),
    ("publish-period", "200"),
    ("info-period", "500"),
];
const SENTINELS: usize = 3;

/// A watched pair of servers; all five processes end when it is dropped.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: [RedisServer; 2],
    sentinels: Vec<RedisServer>,
}

impl RedisSentinel {
    /// Starts all five, and waits until the replica has its copy and every Sentinel knows the replica and the other
    /// Sentinels. The servers lose everything at a kill.
    pub fn start() -> Self {
        Self::start_with(Aof::Off)
    }

    /// The same with servers that keep their data as `aof` says.
    pub fn start_with(aof: Aof) -> Self {
        // Without a disk the copy starts 5 s later, in case more replicas come, and the replica reports the link as up
        // a moment before the primary forwards writes.
        let soon = ["--repl-diskless-sync", "no"];
        let primary = RedisServer::start(aof, &soon);
        let of = format!("127.0.0.1 {}", primary.port());
        let replica = RedisServer::start(aof, &[&soon[..], &["--replicaof", &of]].concat());
        let sentinels = (0..SENTINELS).map(|_| start_one(primary.port())).collect();
        let all = RedisSentinel { servers: [primary, replica], sentinels };
        all.await_replica();
        all
    }

    /// The name under which the Sentinels know the primary.
    pub fn name(&self) -> &'static str {
        NAME
    }

    /// The ports of the Sentinels.
    pub fn sentinel_ports(&self) -> Vec<u16> {
        self.sentinels.iter().map(RedisServer::port).collect()
    }

    /// Its address: every Sentinel, and the primary's name as the path.
    pub fn url(&self) -> String {
        let nodes = self.sentinel_ports();
        let nodes: Vec<_> = nodes.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("redis-sentinel://{}/{NAME}", nodes.join(","))
    }

    /// The port of the primary that most Sentinels name, alive or not.
    pub fn primary_port(&self) -> u16 {
        until("Sentinels that agree", || {
            let named: Vec<_> = self.sentinels.iter().map(names).collect();
            let most = named.iter().flatten().find(|&&port| {
                named.iter().filter(|&&other| other == Some(port)).count() > SENTINELS / 2
            });
            most.copied().ok_or_else(|| format!("{named:?}"))
        })
    }

    /// The server that the Sentinels name as the primary.
    pub fn primary(&self) -> &RedisServer {
        let port = self.primary_port();
        &self.servers[self.place(port)]
    }

    /// The server that they do not name as the primary.
    pub fn replica(&self) -> &RedisServer {
        let port = self.primary_port();
        &self.servers[1 - self.place(port)]
    }

    /// Kills the primary with SIGKILL and returns its port. The Sentinels notice it later: see
    /// [`await_failover`](Self::await_failover).
    pub fn kill_primary(&mut self) -> u16 {
        let port = self.primary_port();
        let at = self.place(port);
        self.servers[at].kill();
        port
    }

    /// Waits until all Sentinels name another primary than the one on port `old`, and it accepts writes; returns its
    /// port. It takes a second or two.
    pub fn await_failover(&self, old: u16) -> u16 {
        let port = until("a failover", || {
            let named: Vec<_> = self.sentinels.iter().map(names).collect();
            match named[0] {
                Some(port) if port != old && named.iter().all(|&other| other == Some(port)) => {
                    Ok(port)
                }
                _ => Err(format!("{named:?}; one of them says:\n{}", self.sentinels[0].log())),
            }
        });
        let server = &self.servers[self.place(port)];
        until("a promoted replica", || match server.info("role").as_str() {
            "master" => Ok(port),
            role => Err(role.to_owned()),
        })
    }

    /// Starts the server on this port again, after a kill. The Sentinels make it a replica if another is primary by
    /// now: see [`await_replica`](Self::await_replica).
    pub fn restart(&mut self, port: u16) {
        let at = self.place(port);
        self.servers[at].restart();
    }

    /// Waits until the primary has its replica, with its copy, and all Sentinels know both and each other: then a
    /// failover is possible.
    pub fn await_replica(&self) {
        until("a replica with its copy", || {
            let info = self.replica().call(&["INFO", "replication"]);
            let text = info.map_err(|why| why.to_string())?.text();
            if text.contains("master_link_status:up") { Ok(()) } else { Err(text) }
        });
        for sentinel in &self.sentinels {
            until("a Sentinel that knows everybody", || {
                let seen = sentinel.call(&["SENTINEL", "MASTER", NAME]);
                let seen = seen.map_err(|why| why.to_string())?;
                let knows = |name: &str, count: usize| seen.field(name) == count.to_string();
                let all = knows("num-slaves", 1)
                    && knows("num-other-sentinels", SENTINELS - 1)
                    && seen.field("flags") == "master";
                if all { Ok(()) } else { Err(seen.to_string()) }
            });
        }
    }

    fn place(&self, port: u16) -> usize {
        let place = self.servers.iter().position(|server| server.port() == port);
        place.unwrap_or_else(|| panic!("the Sentinels name port {port}, which is nobody's"))
    }
}

/// The port that a Sentinel names.
fn names(sentinel: &RedisServer) -> Option<u16> {
    let address = sentinel.call(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).ok()?;
    address.list().get(1).map(Reply::text)?.parse().ok()
}

/// A Sentinel for the primary on this port. It takes its settings only from a file, which it writes to as well.
fn start_one(primary: u16) -> RedisServer {
    let quorum = SENTINELS / 2 + 1;
    let file = format!(
        "sentinel monitor {NAME} 127.0.0.1 {primary} {quorum}\n\
         sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}\n\
         sentinel failover-timeout {NAME} {FAILOVER_MS}\n"
    );
    let sentinel = RedisServer::start_ready(&[], "+monitor master", |dir, _| {
        if let Err(why) = std::fs::write(dir.join("sentinel.conf"), &file) {
            panic!("no configuration for a Sentinel: {why}");
        }
        ["sentinel.conf", "--sentinel"].map(str::to_owned).to_vec()
    });
    for (name, period) in PERIODS_MS {
        sentinel.must(&["SENTINEL", "DEBUG", name, period]);
    }
    sentinel
}
