//! A store in Redis that several servers share: this server leads it, or forwards calls to the leader.
//!
//! It only connects the parts: the member decides about the leader of the store, and the server answers and forwards
//! calls.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tenure::remote::Trust;
use tenure_core::gauge::GaugeHosts;
use tenure_core::redis_address::Address;
use tenure_engine_api::{Engine, Leader, LeaderAddress, SharedServer};
use tenure_node::{Epoch, Node, NodeError, NodeOptions, STORE_KIND, StoreLeader, StoreSettings};
use tokio::sync::watch;

use super::asks::{AsksByHttp, NodeSnapshots, server_url};
use super::backups::NodeBackups;
use super::unreachable::UnreachableServers;
use crate::leadership::{
    Describes, LeaderReport, Leadership, PeerGroup, ServingLeader, forwarding,
};

/// How often to look for a store that is not known yet.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often to check the secret of the servers. The member reads it from Redis once a second.
const LOOK_AT_SECRET_EVERY: Duration = Duration::from_millis(250);

/// Options of a member of the store at this address. Others reach it at `url`, and it asks them by HTTP. Must be called
/// within a runtime that lives as long as the member.
pub fn node_options(address: Address, url: String, trust: &Trust) -> NodeOptions {
    let name = address.name().to_owned();
    let asks = AsksByHttp::here(trust.clone());
    let forgets_never = address.forgets_never().then_some(true);
    let settings =
        StoreSettings { forgets_never, replicas: address.replicas(), ..StoreSettings::default() };
    NodeOptions { settings, ..NodeOptions::new(address, name, url, Arc::new(asks)) }
}

/// A member of the store, and the channels by which it notifies the server.
pub struct SharedStore {
    node: Arc<Node>,
    peer_group: watch::Sender<Option<Arc<PeerGroup>>>,
    standing: watch::Sender<LeaderReport>,
    /// Certificates to trust where another server speaks HTTPS.
    trust: Trust,
    unreachable: Arc<UnreachableServers>,
}

impl SharedStore {
    /// Begins to take part in the store. Redis need not be there yet.
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn open(options: NodeOptions, trust: Trust) -> Result<SharedStore, NodeError> {
        let node = Arc::new(Node::open(options)?);
        let serves = ServingLeader::None("this server has just started".to_owned());
        let standing = watch::Sender::new(LeaderReport { serves, served_at: None });
        let (peer_group, unreachable) = (watch::Sender::new(None), Arc::default());
        Ok(SharedStore { node, peer_group, standing, trust, unreachable })
    }

    /// Answers calls while this server leads the store.
    pub fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.node.engine())
    }

    /// The channels for the server.
    pub fn leadership(&self) -> Leadership {
        let standing = self.standing.subscribe();
        Leadership::joining(STORE_KIND, self.peer_group.subscribe(), standing)
            .writing(Arc::new(NodeSnapshots(self.node.clone())))
            .backed_up_by(Arc::new(NodeBackups(self.node.clone())))
            .described_by(Arc::new(DescribesNode {
                node: self.node.clone(),
                unreachable: self.unreachable.clone(),
            }))
    }

    /// Notifies the server of each change of the leader, for as long as the future is polled. `engine` answers those of
    /// this process.
    pub async fn tell(&self, engine: Arc<dyn Engine>) -> Infallible {
        tokio::select! {
            never = self.tell_places(|place| match place {
                // Until the store is known, nothing is served or forwarded.
                StoreLeader::Local { .. } | StoreLeader::Remote(_) => None,
                place => Some(serves(place, &engine)),
            }) => return never,
            () = self.known() => {}
        }
        tokio::select! {
            never = self.tell_places(|place| Some(serves(place, &engine))) => never,
            never = self.tell_secrets() => never,
            never = self.unreachable.follow(&self.node) => never,
        }
    }

    async fn tell_places(&self, says: impl Fn(StoreLeader) -> Option<ServingLeader>) -> Infallible {
        let mut places = self.node.place();
        loop {
            if let Some(serves) = says(places.seen()) {
                let served_at = self.node.served().map(|Epoch(epoch)| epoch);
                self.standing.send_replace(LeaderReport { serves, served_at });
            }
            places.changed().await;
        }
    }

    /// Ends when the store and the secret of its servers are known.
    async fn known(&self) {
        while !self.tell_secret() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Notifies the server when the secret of the servers changes, because Redis was emptied or somebody replaced the
    /// secret there.
    async fn tell_secrets(&self) -> Infallible {
        loop {
            tokio::time::sleep(LOOK_AT_SECRET_EVERY).await;
            if self.tell_secret() {
                tracing::warn!(
                    "the servers of the store have another secret now; that of before is taken for a minute more"
                );
            }
        }
    }

    /// Notifies the server of the store's id and secret; returns whether they are new.
    fn tell_secret(&self) -> bool {
        let Some((store, secret)) = self.node.store() else { return false };
        self.peer_group.send_if_modified(|told| {
            if told.as_ref().is_some_and(|told| told.store == store && told.secret == secret) {
                return false;
            }
            let (server, trust) = (self.node.id(), self.trust.clone());
            *told = Some(Arc::new(PeerGroup { server, store, secret, trust }));
            true
        })
    }

    /// Reads the gauges of the store while this server leads it.
    pub async fn read_gauges(&self, hosts: GaugeHosts) -> Infallible {
        let mut places = self.node.place();
        loop {
            if let StoreLeader::Local { engine, .. } = places.seen() {
                tenure::read_gauges(engine, hosts.clone()).await;
            }
            places.changed().await;
        }
    }

    /// Hands the store over if this server leads it. Blocks. A second call does nothing.
    pub fn close(&self) {
        self.node.close();
    }

    /// Ends as if the process had been killed: see [`Node::crash`]. Blocks.
    pub fn crash(&self) {
        self.node.crash();
    }
}

/// Describes the leadership: on the leader how far the other servers are, on a follower anything that an operator
/// should know of it.
struct DescribesNode {
    node: Arc<Node>,
    unreachable: Arc<UnreachableServers>,
}

impl Describes for DescribesNode {
    fn described(&self) -> Option<String> {
        let epoch = match self.node.place().now() {
            StoreLeader::Local { epoch, .. } => epoch,
            StoreLeader::Remote(LeaderAddress { url, .. }) => {
                return Some(format!("{}; {}", forwarding(&url), self.warning()?));
            }
            _ => return None,
        };
        let one = |server: SharedServer| {
            let SharedServer { url, behind, unreachable, .. } = server;
            let lag = match behind {
                1 => format!("{url} is one entry behind"),
                behind => format!("{url} is {behind} entries behind"),
            };
            match unreachable {
                Some(why) => format!("{lag} and is unreachable from here ({why})"),
                None => lag,
            }
        };
        let others = self.servers().into_iter().filter(|server| !server.is_self);
        let others: Vec<String> = others.map(one).collect();
        let others = if others.is_empty() {
            "no other server is there to go on without it".to_owned()
        } else {
            others.join(", ")
        };
        Some(format!("the server answers calls and owns the store, at epoch {epoch}; {others}"))
    }

    fn warning(&self) -> Option<String> {
        let is_unreachable = |server: &SharedServer| server.unreachable.is_some();
        let unreachable = self.servers().into_iter().find(is_unreachable).map(|server| {
            let why = server.unreachable.unwrap_or_default();
            format!(
                "{} is unreachable from here ({why}): see that --advertise of it is right",
                server.url
            )
        });
        self.node.health().warnings.into_iter().next().or(unreachable)
    }

    fn servers(&self) -> Vec<SharedServer> {
        let mut servers = self.node.servers();
        for server in servers.iter_mut().filter(|server| !server.is_self) {
            server.unreachable = self.unreachable.why(&server.url);
        }
        servers
    }
}

fn serves(leader: StoreLeader, engine: &Arc<dyn Engine>) -> ServingLeader {
    match leader {
        Leader::Local { epoch, .. } => Leader::Local { engine: engine.clone(), epoch },
        Leader::Remote(LeaderAddress { url, epoch }) => match server_url(&url) {
            Some(url) => Leader::Remote(LeaderAddress { url, epoch }),
            None => {
                Leader::None(format!("the owner says that it is at {url:?}, which is no address"))
            }
        },
        Leader::None(why) => Leader::None(why),
        Leader::Paused(why) => Leader::Paused(why),
    }
}
