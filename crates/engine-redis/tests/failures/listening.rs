//! Stores whose notifications are heard in either way, and the processes that listen, as the store sees them.

use tenure_testkit::redis::{Aof, RedisCluster, RedisServer, wanted};

/// A server alone, or a cluster; and of it the node that has the namespace of the tests.
pub enum Store {
    Alone(RedisServer),
    Clustered { cluster: RedisCluster, owner: usize },
}

impl Store {
    /// One of each kind after the other; none if there is no server to start.
    pub fn each() -> impl Iterator<Item = Store> {
        let kinds: [fn() -> Store; 2] = [Store::alone, Store::clustered];
        kinds.into_iter().take_while(|_| wanted()).map(|start| start())
    }

    fn alone() -> Self {
        Store::Alone(RedisServer::start(Aof::Off, &[]))
    }

    fn clustered() -> Self {
        let cluster = RedisCluster::start(2);
        let owner = cluster.owner(cluster.slot_of("tenure:{default}m"));
        Store::Clustered { cluster, owner }
    }

    /// Where processes find it.
    pub fn url(&self) -> String {
        match self {
            Store::Alone(server) => server.url(),
            Store::Clustered { cluster, .. } => cluster.url(),
        }
    }

    /// The server that has the namespace. It can be addressed alone, since its slot stays there.
    pub fn node(&self) -> &RedisServer {
        match self {
            Store::Alone(server) => server,
            Store::Clustered { cluster, owner } => cluster.server(*owner),
        }
    }
}

/// How many processes listen. A process is sent no parcel before it does.
pub fn listening(server: &RedisServer) -> usize {
    let channels = |how: &str| server.must(&["PUBSUB", how, "tenure:{default}w:*"]).list().len();
    channels("CHANNELS") + channels("SHARDCHANNELS")
}

/// How many parcels were sent to processes that are known.
pub fn sent(server: &RedisServer) -> u64 {
    let numbers = server.must(&["HVALS", "tenure:{default}pg"]);
    let of = |text: &str| text.bytes().take(6).fold(0, |all, byte| all << 8 | u64::from(byte));
    numbers.list().iter().map(|one| of(&one.text())).sum()
}
