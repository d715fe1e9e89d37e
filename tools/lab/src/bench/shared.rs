//! The engine of a shared store, in this process: a member of the store, its leader and its only server.

use std::sync::Arc;
use std::time::Duration;

use tenure_console::exit::{Failure, UNAVAILABLE};
use tenure_console::scratch::Scratch;
use tenure_engine_api::Engine;
use tenure_node::{
    AskServer, AskedServer, Node, NodeOptions, ServerWord, SnapshotName, SnapshotWish, StoreLeader,
};
use tokio::time::timeout;

/// How long it may take to become the leader of a store without other servers.
const OWNS_WITHIN: Duration = Duration::from_secs(30);
/// The address of this process, for other servers: it is never called.
const NOWHERE: &str = "http://127.0.0.1:9";

/// A member that leads its store. Dropped, it gives the store back, and does no work beside the next measurement.
pub struct OwningMember(Node);

/// There is no other server.
struct NoServers;

impl AskServer for NoServers {
    fn ask(&self, _: &AskedServer, _: Duration) -> ServerWord {
        ServerWord::Refused
    }

    fn write_snapshot(
        &self,
        _: &AskedServer,
        _: &SnapshotWish,
        _: &(dyn Fn() -> bool + Sync),
    ) -> Option<SnapshotName> {
        None
    }
}

impl OwningMember {
    /// Takes the store in this part of a Redis, with at most this many bytes of events; 0: none are kept.
    pub async fn of(part: &Scratch, events_bytes: Option<u64>) -> Result<Self, Failure> {
        let address = part.address().clone();
        let name = address.name().to_owned();
        let mut options = NodeOptions::new(address, name, NOWHERE, Arc::new(NoServers));
        options.engine.events_bytes = events_bytes.unwrap_or(options.engine.events_bytes);
        let member =
            Node::open(options).map_err(|why| Failure::new(UNAVAILABLE, why.to_string()))?;
        let member = OwningMember(member);
        let mut place = member.0.place();
        let owns = place.wait_for(|place| matches!(place, StoreLeader::Local { .. }));
        if timeout(OWNS_WITHIN, owns).await.is_err() {
            let why = member.0.health().leader;
            return Err(Failure::new(UNAVAILABLE, format!("could not own the store: {why}")));
        }
        Ok(member)
    }

    /// An engine that answers calls through this member.
    pub fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.0.engine())
    }
}

impl Drop for OwningMember {
    fn drop(&mut self) {
        self.0.close();
    }
}
