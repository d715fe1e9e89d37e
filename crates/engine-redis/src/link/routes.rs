//! Which primary has a namespace, in each topology, and what to do when it has it no more.
//!
//! Callers read a finished map; the tasks of [`super::sentinel`] and [`super::cluster`] look for
//! changes and put the next map in its place. A call that the server sends elsewhere goes there at
//! once, and the map is looked at anew beside it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crc::{CRC_16_XMODEM, Crc};
use redis::{Cmd, Value};
use tenure_engine::redis_address::{Address, Endpoint, Topology};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::channels::Channels;
use super::dial::{SharedDialer, Task};
use super::error::LinkError;
use super::line::PingTimes;
use super::node::{Node, Sending};
use super::nonce::Nonce;
use super::options::LinkOptions;
use super::{cluster, sentinel};
use crate::library::Library;

/// Slots of a cluster.
pub(crate) const SLOTS: usize = 16_384;
/// A slot that no primary has.
pub(crate) const NOBODY: u16 = u16::MAX;
/// How often one call is sent elsewhere or again, in all.
const HOPS_MAX: u32 = 3;
/// Before a call is sent again whose keys are between two nodes; doubles.
const BETWEEN: Duration = Duration::from_millis(25);

/// The primaries there are. It starts connections, and keeps those that are in use.
pub(crate) struct Nodes {
    pub dialer: SharedDialer,
    connections: usize,
    watch: PingTimes,
    /// Told when the map may be out of date.
    pub hint: Arc<Notify>,
    known: Mutex<HashMap<Endpoint, Arc<Node>>>,
}

impl Nodes {
    /// The node there; begins to connect if it is new.
    pub fn at(&self, endpoint: &Endpoint) -> Arc<Node> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let (count, watch) = (self.connections, self.watch);
            Arc::new(Node::start(&self.dialer, endpoint.clone(), count, watch, &self.hint))
        };
        known.entry(endpoint.clone()).or_insert_with(start).clone()
    }

    /// Lets go of all others. Calls that are under way there end as they would.
    pub fn keep(&self, wanted: &[Arc<Node>]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, node| wanted.iter().any(|wanted| Arc::ptr_eq(wanted, node)));
    }
}

/// Which primary has which slots.
pub(crate) struct Map {
    /// The primaries.
    pub nodes: Vec<Arc<Node>>,
    /// For each slot the place of its primary in `nodes`, or [`NOBODY`]; `None`: the first has all.
    pub slots: Option<Box<[u16]>>,
}

impl Map {
    /// One primary has all.
    pub fn one(node: Arc<Node>) -> Self {
        Map { nodes: vec![node], slots: None }
    }

    /// The primary that has the slot.
    pub fn primary(&self, slot: usize) -> Option<&Arc<Node>> {
        let place = self.slots.as_ref().map_or(0, |slots| slots[slot]);
        self.nodes.get(usize::from(place))
    }
}

/// What is known of the map.
pub(crate) enum KnownMap {
    /// Nothing yet; callers wait until then, later they are told why at once.
    Looking { until: Instant, why: LinkError },
    /// This.
    At(Arc<Map>),
}

/// Who has what.
pub(crate) struct Routes {
    found: watch::Receiver<KnownMap>,
    nodes: Arc<Nodes>,
    topology: Topology,
    /// Whether channels lie in slots. Starts as the address says; on a single server it is set to what that says.
    is_sharded: AtomicBool,
    _look: Option<Task>,
}

impl Routes {
    /// Starts to look.
    pub fn start(address: &Address, options: &LinkOptions, dialer: SharedDialer) -> Self {
        let nodes = Arc::new(Nodes {
            dialer: dialer.clone(),
            connections: options.connections,
            watch: options.watch(),
            hint: Arc::new(Notify::new()),
            known: Mutex::default(),
        });
        let looking = |what: &str| KnownMap::Looking {
            until: Instant::now() + options.patience,
            why: LinkError::Unavailable(what.to_owned()),
        };
        let every = options.look_every;
        let (found, look) = match address.topology() {
            Topology::Single(endpoint) => {
                (watch::channel(KnownMap::At(Arc::new(Map::one(nodes.at(endpoint))))).1, None)
            }
            Topology::Sentinel { sentinels, master } => {
                let (found, seen) = watch::channel(looking("no sentinel has answered yet"));
                let (names, master) = (sentinels.clone(), master.clone());
                let asking = dialer.for_sentinels(address);
                let look = sentinel::look(names, master, asking, nodes.clone(), every, found);
                (seen, Some(Task(dialer.runtime.spawn(look))))
            }
            Topology::Cluster(seeds) => {
                let (found, seen) = watch::channel(looking("no node has answered yet"));
                let look = cluster::look(seeds.clone(), nodes.clone(), every, found);
                (seen, Some(Task(dialer.runtime.spawn(look))))
            }
        };
        let topology = address.topology().clone();
        let is_sharded = AtomicBool::new(matches!(topology, Topology::Cluster(_)));
        Routes { found, nodes, topology, is_sharded, _look: look }
    }

    async fn map(&self) -> Result<Arc<Map>, LinkError> {
        let mut found = self.found.clone();
        loop {
            let (until, why) = match &*found.borrow_and_update() {
                KnownMap::At(map) => return Ok(map.clone()),
                KnownMap::Looking { until, why } => (*until, why.clone()),
            };
            if until <= Instant::now() {
                return Err(why);
            }
            // Time over: the loop says why. A task that is gone says nothing new.
            if let Ok(Err(_)) = timeout_at(until, found.changed()).await {
                return Err(why);
            }
        }
    }

    /// Every primary.
    pub async fn all(&self) -> Result<Vec<Arc<Node>>, LinkError> {
        Ok(self.map().await?.nodes.clone())
    }

    /// Shows the map, and each that takes its place.
    pub fn maps(&self) -> watch::Receiver<KnownMap> {
        self.found.clone()
    }

    /// How channels are heard, as far as it is known.
    pub fn channels(&self) -> Channels {
        if self.is_sharded.load(Ordering::Relaxed) { Channels::Sharded } else { Channels::Ordinary }
    }

    /// Whether only the server can say how channels are heard: a single one may be a whole cluster.
    pub fn may_be_either(&self) -> bool {
        matches!(self.topology, Topology::Single(_))
    }

    /// The server said how channels are heard.
    pub fn learn_channels(&self, channels: Channels) {
        self.is_sharded.store(channels == Channels::Sharded, Ordering::Relaxed);
    }

    /// The slot that a node says it has not, and the node that has it; `None` if it said something else. An error
    /// where the address names one server alone.
    pub fn moved(
        &self,
        said: &LinkError,
        from: &Endpoint,
    ) -> Result<Option<(usize, Endpoint)>, LinkError> {
        let LinkError::Refused { code, message } = said else { return Ok(None) };
        if matches!(code.as_str(), "MOVED" | "CLUSTERDOWN") {
            self.nodes.hint.notify_one();
        }
        if code != "MOVED" {
            return Ok(None);
        }
        if !matches!(self.topology, Topology::Cluster(_)) {
            return Err(of_a_cluster(code));
        }
        let slot = message.split_whitespace().next().and_then(|slot| slot.parse().ok());
        Ok(slot.zip(elsewhere(message, from)))
    }

    /// How connections to the primaries are made.
    pub fn dialer(&self) -> &SharedDialer {
        &self.nodes.dialer
    }

    /// Where the tasks of the link live.
    pub fn runtime(&self) -> &Handle {
        &self.nodes.dialer.runtime
    }

    /// The times by which connections are watched.
    pub fn watch(&self) -> PingTimes {
        self.nodes.watch
    }

    /// Why some slot cannot be reached now.
    pub fn down(&self) -> Option<LinkError> {
        match &*self.found.borrow() {
            KnownMap::Looking { why, .. } => Some(why.clone()),
            KnownMap::At(map) => {
                let hole = || map.slots.as_ref().is_some_and(|slots| slots.contains(&NOBODY));
                let down = map.nodes.iter().find_map(|node| node.down());
                down.or_else(|| hole().then(nobody))
            }
        }
    }

    /// Sends a request to the primary of a namespace, and on to where the server says. `call`: it calls a
    /// function of this library, and carries this nonce.
    pub async fn send(
        &self,
        namespace: &str,
        cmd: &Cmd,
        within: Duration,
        call: Option<(&Library, Nonce)>,
    ) -> Result<Value, LinkError> {
        let map = self.map().await?;
        let mut node = map.primary(slot(namespace)).cloned().ok_or_else(nobody)?;
        let is_cluster = map.slots.is_some();
        drop(map);
        let mut how = Sending { within, asking: false, nonce: call.map(|(_, nonce)| nonce) };
        let mut hops = 0;
        loop {
            let answer = match call {
                Some((library, _)) => node.call(library, cmd, how).await,
                None => node.send(cmd, how).await,
            };
            let Err(LinkError::Refused { code, message }) = &answer else {
                return answer;
            };
            if matches!(code.as_str(), "MOVED" | "READONLY" | "CLUSTERDOWN" | "MASTERDOWN") {
                self.nodes.hint.notify_one();
            }
            // Only an error that says that nothing was done leads to another try.
            match code.as_str() {
                _ if hops == HOPS_MAX => return answer,
                "MOVED" | "ASK" if !is_cluster => {
                    return Err(of_a_cluster(code));
                }
                "MOVED" | "ASK" => {
                    let Some(there) = elsewhere(message, &node.endpoint) else {
                        return answer;
                    };
                    how.asking = code == "ASK";
                    node = self.nodes.at(&there);
                }
                "TRYAGAIN" => sleep(BETWEEN * 2_u32.pow(hops)).await,
                _ => return answer,
            }
            hops += 1;
        }
    }
}

pub(crate) fn nobody() -> LinkError {
    LinkError::refused(
        "CLUSTERDOWN",
        "no primary of the cluster has the slot of this namespace now",
    )
}

fn of_a_cluster(code: &str) -> LinkError {
    LinkError::refused(
        code,
        "the server is a node of a cluster; write redis-cluster:// in its address",
    )
}

/// The endpoint in `SLOT HOST:PORT`; without a host it is that of who said it.
fn elsewhere(message: &str, from: &Endpoint) -> Option<Endpoint> {
    let (host, port) = message.split_whitespace().nth(1)?.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = if host.is_empty() { &from.host } else { host };
    Some(Endpoint { host: host.to_owned(), port: port.parse().ok()? })
}

/// What the slot of a whole key, or of a channel, is computed from: the namespace in it.
pub(crate) fn hash_tag(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// The slot of a whole key, or of a channel.
pub(crate) fn slot_of(key: &str) -> usize {
    slot(hash_tag(key))
}

/// The slot of all keys of a namespace: its name is their hash tag.
pub(crate) fn slot(namespace: &str) -> usize {
    /// As the cluster's specification has it.
    const CRC_16: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);
    usize::from(CRC_16.checksum(namespace.as_bytes())) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_lies_in_the_slot_that_the_servers_compute() {
        // The first is in the cluster's specification, the others are what CLUSTER KEYSLOT answers.
        for (name, there) in [("123456789", 0x31C3), ("foo", 12_182), ("default", 5_718)] {
            assert_eq!(slot(name), there, "{name}");
        }
    }

    #[test]
    fn a_key_or_channel_lies_in_the_slot_of_its_first_hash_tag() {
        for (key, tag) in [
            ("tenure:{default}w:a", "default"),
            ("{a}{b}", "a"),
            ("no tag", "no tag"),
            ("{}x", "{}x"),
            ("{x", "{x"),
            ("x}{y}", "y"),
        ] {
            assert_eq!(hash_tag(key), tag);
        }
    }

    #[test]
    fn a_redirection_is_read_in_every_form() {
        let from = Endpoint { host: "a".to_owned(), port: 1 };
        for (message, there) in [
            ("3999 127.0.0.1:6381", Some(("127.0.0.1", 6381))),
            ("3999 host:6381", Some(("host", 6381))),
            ("3999 :6381", Some(("a", 6381))),
            ("3999 ::1:6381", Some(("::1", 6381))),
            ("3999", None),
            ("3999 host:port", None),
        ] {
            let there = there.map(|(host, port)| Endpoint { host: host.to_owned(), port });
            assert_eq!(elsewhere(message, &from), there, "{message}");
        }
    }
}
