//! A Redis Cluster of a test's own: primaries that share the slots evenly, and slots that move.
//!
//! It has no replicas: `sentinel` is for failovers.

use super::process;
use super::server::{Aof, RedisServer};
use super::until;
use super::wire::Reply;

/// How many slots every cluster has.
const SLOTS: u16 = 16_384;
/// Keys that one MIGRATE moves.
const KEYS_PER_STEP: &str = "100";
/// Milliseconds that one MIGRATE may take.
const STEP_MS: &str = "10000";
/// Until they know each other, nodes talk twice in this time; in milliseconds.
const JOIN_MS: &str = "1000";
/// Once they know each other, a node that is silent for this long counts as dead, in milliseconds: a machine with other
/// work must not end a cluster. A caller misses a killed node at once, whatever this is.
const PATIENCE_MS: &str = "15000";

/// A running cluster; its servers end when it is dropped.
#[derive(Debug)]
pub struct RedisCluster {
    servers: Vec<RedisServer>,
    ids: Vec<String>,
}

/// A slot on its way from one primary to another, started by [`RedisCluster::begin_move`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the slot stays half-moved until finish_move"]
pub struct SlotMove {
    /// The slot, below 16,384.
    pub slot: u16,
    /// The primary, counted from 0, that has the slot, and all of its keys that are not moved yet.
    pub from: usize,
    /// The primary that gets the slot, and has the keys that are moved already.
    pub to: usize,
}

impl RedisCluster {
    /// Starts that many primaries (1 to 16) that lose everything at a kill, and waits until each of them calls the
    /// cluster whole. It takes some 3 s: Redis itself waits 2 s before a primary that has just started accepts writes.
    pub fn start(primaries: usize) -> Self {
        Self::start_with(primaries, Aof::Off)
    }

    /// The same with servers that keep their data as `aof` says.
    pub fn start_with(primaries: usize, aof: Aof) -> Self {
        assert!((1..=16).contains(&primaries), "{primaries} primaries: 1 to 16 can be started");
        let servers: Vec<_> = (0..primaries).map(|_| start_one(aof)).collect();
        let ids = servers.iter().map(|server| server.must(&["CLUSTER", "MYID"]).text()).collect();
        let cluster = RedisCluster { servers, ids };
        cluster.join();
        for server in &cluster.servers {
            server.must(&["CONFIG", "SET", "cluster-node-timeout", PATIENCE_MS]);
        }
        cluster
    }

    /// The primaries' ports, in the order of their numbers.
    pub fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(RedisServer::port).collect()
    }

    /// Its address, with every primary in it.
    pub fn url(&self) -> String {
        let nodes: Vec<_> = self.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("redis-cluster://{}", nodes.join(","))
    }

    /// One primary, counted from 0.
    pub fn server(&self, primary: usize) -> &RedisServer {
        &self.servers[primary]
    }

    /// One primary, to kill it and start it again. See [`await_whole`](Self::await_whole).
    pub fn server_mut(&mut self, primary: usize) -> &mut RedisServer {
        &mut self.servers[primary]
    }

    /// The slot that a key is in.
    pub fn slot_of(&self, key: &str) -> u16 {
        let slot = self.servers[0].must(&["CLUSTER", "KEYSLOT", key]);
        slot.text().parse().unwrap_or_else(|_| panic!("'{slot}' is no slot"))
    }

    /// The primary that has the slot.
    pub fn owner(&self, slot: u16) -> usize {
        let ranges = self.servers[0].must(&["CLUSTER", "SLOTS"]);
        let has = |range: &&Reply| match range.list() {
            [Reply::Int(first), Reply::Int(last), ..] => (*first..=*last).contains(&slot.into()),
            _ => false,
        };
        let range = ranges.list().iter().find(has).map(Reply::list).unwrap_or_default();
        let port = range.get(2).and_then(|node| node.list().get(1)).map(Reply::text);
        let port = port.unwrap_or_default();
        let owner = self.servers.iter().position(|server| server.port().to_string() == port);
        owner.unwrap_or_else(|| panic!("nobody has slot {slot}"))
    }

    /// Moves a slot with its keys. Nothing happens if it is there already.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        if from != to {
            let half = self.begin_move(slot, from, to);
            self.finish_move(half);
        }
    }

    /// Opens a move: from now on `from` answers ASK for keys of the slot that it does not have, and `to` accepts calls
    /// that follow such an answer. No key is moved yet.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) -> SlotMove {
        assert_eq!(self.owner(slot), from, "the slot {slot} is not where it is to be moved from");
        let number = slot.to_string();
        let set = |at: usize, how, other: usize| {
            self.servers[at].must(&["CLUSTER", "SETSLOT", &number, how, &self.ids[other]]);
        };
        set(to, "IMPORTING", from);
        set(from, "MIGRATING", to);
        SlotMove { slot, from, to }
    }

    /// Moves at most 100 keys of an open move; returns how many, 0 when the old primary has no more of them.
    pub fn move_some(&self, half: SlotMove) -> usize {
        let slot = half.slot.to_string();
        let from = &self.servers[half.from];
        let found = from.must(&["CLUSTER", "GETKEYSINSLOT", &slot, KEYS_PER_STEP]);
        let keys: Vec<_> = found.list().iter().map(Reply::text).collect();
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        self.move_keys(half, &keys);
        keys.len()
    }

    /// Moves only these keys of an open move, so that a test can separate keys that belong together. A missing key is
    /// skipped.
    pub fn move_keys(&self, half: SlotMove, keys: &[&str]) {
        if keys.is_empty() {
            return;
        }
        let port = self.servers[half.to].port().to_string();
        let words = ["MIGRATE", "127.0.0.1", &port, "", "0", STEP_MS, "KEYS"];
        self.servers[half.from].must(&[&words[..], keys].concat());
    }

    /// Moves the remaining keys and gives the slot to its new primary; every primary knows it when this returns.
    pub fn finish_move(&self, half: SlotMove) {
        while self.move_some(half) > 0 {}
        let slot = half.slot.to_string();
        let others = (0..self.servers.len()).filter(|&at| at != half.to && at != half.from);
        // The new one first, as Redis's own tool does it: if the process ended here, no slot would be without a
        // primary.
        for at in [half.to, half.from].into_iter().chain(others) {
            self.servers[at].must(&["CLUSTER", "SETSLOT", &slot, "NODE", &self.ids[half.to]]);
        }
    }

    /// Waits until every primary answers and calls the cluster whole, as after a restart.
    pub fn await_whole(&self) {
        let nodes = self.servers.len().to_string();
        let wanted = [
            "cluster_state:ok".to_owned(),
            format!("cluster_slots_ok:{SLOTS}"),
            format!("cluster_known_nodes:{nodes}"),
            format!("cluster_size:{nodes}"),
        ];
        for server in &self.servers {
            until("a cluster that is whole", || {
                let info = server.call(&["CLUSTER", "INFO"]).map_err(|why| why.to_string())?;
                let text = info.text();
                let has = |wanted: &String| text.lines().any(|line| line == wanted);
                if wanted.iter().all(has) { Ok(()) } else { Err(text) }
            });
        }
    }

    fn join(&self) {
        let count = self.servers.len();
        let first = &self.servers[0];
        let (port, bus) =
            (first.port().to_string(), first.must(&["CONFIG", "GET", "cluster-port"]));
        for (at, server) in self.servers.iter().enumerate() {
            // Two primaries with the same epoch would first contend for it.
            server.must(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
            let share = |at: usize| at * usize::from(SLOTS) / count;
            let (begin, end) = (share(at).to_string(), (share(at + 1) - 1).to_string());
            server.must(&["CLUSTER", "ADDSLOTSRANGE", &begin, &end]);
            if at > 0 {
                server.must(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus.field("cluster-port")]);
            }
        }
        self.await_whole();
    }
}

/// A primary that knows no other node yet.
fn start_one(aof: Aof) -> RedisServer {
    // By default the bus uses the port 10,000 above, which may be taken.
    let bus = process::free_port().to_string();
    let words =
        ["--cluster-enabled", "yes", "--cluster-node-timeout", JOIN_MS, "--cluster-port", &bus];
    RedisServer::start(aof, &words)
}
