//! Asks the other servers of a shared store by HTTP, and writes snapshots for the leader.
//!
//! It only carries questions. The member of a server decides about its answers.

use std::sync::Arc;
use std::time::Duration;

use tenure::ServerUrl;
use tenure::remote::Trust;
use tenure::url::StoreUrl;
use tenure_node::{
    AskServer, AskedServer, Epoch, Generation, Node, Position, ServerWord, SnapshotName,
    SnapshotWish, Term,
};
use tokio::runtime::Handle;

use crate::leadership::PeerGroup;
use crate::peers::{AsksServers, ServerSays};
use crate::snapshots::{AskedSnapshot, WritesSnapshots, WrittenSnapshot};

/// Pause between two checks that the leader still waits, while another server writes a snapshot.
const ASK_ON_EVERY: Duration = Duration::from_millis(100);

/// Snapshots that this process writes while another one leads the store.
pub(super) struct NodeSnapshots(pub Arc<Node>);

impl WritesSnapshots for NodeSnapshots {
    fn write(
        &self,
        asked: &AskedSnapshot,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<WrittenSnapshot> {
        let AskedSnapshot { store, owner: leader, epoch, run, count, reached } = asked.clone();
        let by = Term { store, epoch, leader, run };
        let written = self.0.write_snapshot(&SnapshotWish { by, count, reached }, goes_on)?;
        let SnapshotName { tip, pieces, bytes, sum, .. } = written;
        Some(WrittenSnapshot { number: tip.number, checksum: tip.sum, pieces, bytes, sum })
    }
}

/// Asks other servers by HTTP.
pub(super) struct AsksByHttp {
    runtime: Handle,
    trust: Trust,
}

impl AsksByHttp {
    /// Uses the runtime of this process, which must live as long.
    pub fn here(trust: Trust) -> Self {
        AsksByHttp { runtime: Handle::current(), trust }
    }

    /// The client for this server, and the server's address; `None`: that is no address.
    fn asking(&self, asked: &AskedServer) -> Option<(AsksServers, ServerUrl)> {
        // The server that is asked does not look at the id of this process.
        let peer_group = PeerGroup {
            server: 0,
            store: asked.store.unwrap_or_default(),
            secret: asked.secret.clone(),
            trust: self.trust.clone(),
        };
        Some((AsksServers::new(peer_group), server_url(&asked.url)?))
    }
}

impl AskServer for AsksByHttp {
    fn ask(&self, asked: &AskedServer, within: Duration) -> ServerWord {
        let Some((asks, url)) = self.asking(asked) else { return ServerWord::Silent };
        match self.runtime.block_on(asks.ask(&url, asked.id, within)) {
            ServerSays::Refused => ServerWord::Refused,
            ServerSays::Silent => ServerWord::Silent,
            ServerSays::Says { serves, served_at } => {
                ServerWord::Says { serves, served: Epoch(served_at.unwrap_or_default()) }
            }
        }
    }

    fn write_snapshot(
        &self,
        server: &AskedServer,
        wish: &SnapshotWish,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<SnapshotName> {
        let (asks, url) = self.asking(server)?;
        let SnapshotWish { by: Term { store, epoch, leader, run }, count, reached } = wish.clone();
        let asked = AskedSnapshot { store, owner: leader, epoch, run, count, reached };
        let waits = async {
            while goes_on() {
                tokio::time::sleep(ASK_ON_EVERY).await;
            }
        };
        let written = self.runtime.block_on(async {
            tokio::select! {
                written = asks.write_snapshot(&url, &asked) => written,
                () = waits => None,
            }
        });
        written.map(|WrittenSnapshot { number, checksum, pieces, bytes, sum }| SnapshotName {
            generation: Generation { epoch, count },
            tip: Position { number, sum: checksum },
            pieces,
            bytes,
            sum,
        })
    }
}

/// The address that another server advertises; `None`: that is no address.
pub(super) fn server_url(text: &str) -> Option<ServerUrl> {
    match text.parse() {
        Ok(StoreUrl::Server(url)) => Some(url),
        _ => None,
    }
}
