//! Where the store of a server is served now: by this process, by another one, or by nobody.
//!
//! A store in a folder is served here as long as the process lives. The leader serves a shared store, and the task that
//! follows the leadership reports it here. Nothing here decides about the leader.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure::ServerUrl;
use tenure::remote::Trust;
use tenure_core::secret::Secret;
use tenure_engine_api::{Engine, Health, Leader, SharedServer};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::backups::MakesBackups;
use crate::snapshots::WritesSnapshots;

/// A change of the leadership is reported within this.
const TOLD_WITHIN: Duration = Duration::from_millis(100);
/// How long a call at a leader has already waited when the leader is reported as partitioned: the store was silent
/// before.
pub(crate) const SILENT_BEFORE: Duration = Duration::from_secs(3);

/// The leader for a server: the engine that answers its own calls, or the address of another server.
pub type ServingLeader = Leader<Arc<dyn Engine>, ServerUrl>;

/// The notice of a server that does not lead the store.
pub(crate) fn forwarding(url: &dyn fmt::Display) -> String {
    format!("the server passes calls on to {url}, which owns the store")
}

/// A notice for an operator while the server is well.
pub(crate) fn notice(leader: &ServingLeader) -> Option<String> {
    match leader {
        ServingLeader::Local { engine, .. } => engine.notice(),
        ServingLeader::Remote(leader) => Some(forwarding(&leader.url)),
        ServingLeader::None(_) | ServingLeader::Paused(_) => None,
    }
}

/// A report of the task that follows the leadership.
#[derive(Clone, Debug)]
pub struct LeaderReport {
    /// Where calls are answered. It must change *before* an engine that lost the store ends: a call that this engine
    /// then refuses is forwarded.
    pub serves: ServingLeader,
    /// The last epoch at which an append of this process was confirmed. Initially `None`; never falls.
    pub served_at: Option<u64>,
}

/// Identity and secret by which the servers of one store know each other.
#[derive(Clone, Debug)]
pub struct PeerGroup {
    /// The id of this process, drawn at its start.
    pub server: u128,
    /// The id of the store.
    pub store: u128,
    /// Known to all servers of the store, and to no client.
    pub secret: Secret,
    /// Certificates to trust where a server speaks HTTPS.
    pub trust: Trust,
}

/// Where the store of a server is served, and a way to follow changes. Clones share the state.
#[derive(Clone)]
pub struct Leadership {
    standing: watch::Receiver<LeaderReport>,
    /// `None` where no other server has the store, and until the store is known. The secret changes when Redis is
    /// emptied or the secret is replaced there.
    peer_group: watch::Receiver<Option<Arc<PeerGroup>>>,
    /// Writes snapshots here for the leader. `None`: no other server has the store, or this one keeps no rows.
    snapshots: Option<Arc<dyn WritesSnapshots>>,
    /// Makes backups from what this process has of the store. `None`: this store has no backups.
    backups: Option<Arc<dyn MakesBackups>>,
    /// Describes a server that is well, at each call. `None`: there is nothing to add.
    describes: Option<Arc<dyn Describes>>,
    /// One word for the kind of the store, where this process does not serve it.
    kind: &'static str,
}

/// Describes how a shared store is served.
pub trait Describes: Send + Sync + 'static {
    /// One sentence for an operator; `None` if there is nothing to say.
    fn described(&self) -> Option<String>;

    /// A fault for an operator to repair, although calls are answered; `None`: no fault.
    fn warning(&self) -> Option<String>;

    /// The servers that share the store.
    fn servers(&self) -> Vec<SharedServer>;
}

impl Leadership {
    /// For an engine that serves the store from now on, which no other server has.
    pub fn always(engine: Arc<dyn Engine>) -> Self {
        let standing =
            LeaderReport { serves: ServingLeader::Local { engine, epoch: 0 }, served_at: None };
        // The sender is gone, so the value never changes.
        let standing = watch::channel(standing).1;
        let (kind, peer_group) = ("embedded", watch::channel(None).1);
        Leadership { standing, peer_group, snapshots: None, backups: None, describes: None, kind }
    }

    /// For a store of this kind that several servers share.
    pub fn shared(
        kind: &'static str,
        peer_group: PeerGroup,
        standing: watch::Receiver<LeaderReport>,
    ) -> Self {
        let known = watch::channel(Some(Arc::new(peer_group))).1;
        Leadership::joining(kind, known, standing)
    }

    /// For a shared store that may not be known yet: `peer_group` is set once it is, and when it changes.
    pub fn joining(
        kind: &'static str,
        peer_group: watch::Receiver<Option<Arc<PeerGroup>>>,
        standing: watch::Receiver<LeaderReport>,
    ) -> Self {
        Leadership { standing, peer_group, snapshots: None, backups: None, describes: None, kind }
    }

    /// Writes snapshots for the leader with `snapshots`, while another server leads the store.
    pub fn writing(self, snapshots: Arc<dyn WritesSnapshots>) -> Self {
        Leadership { snapshots: Some(snapshots), ..self }
    }

    /// Makes backups with `backups`.
    pub fn backed_up_by(self, backups: Arc<dyn MakesBackups>) -> Self {
        Leadership { backups: Some(backups), ..self }
    }

    /// Adds the description by `describes`.
    pub fn described_by(self, describes: Arc<dyn Describes>) -> Self {
        Leadership { describes: Some(describes), ..self }
    }

    /// The health of the server that answers calls, as far as this process knows it.
    pub(crate) fn health(&self) -> Health {
        let degraded = match self.now() {
            ServingLeader::Local { engine, .. } => return engine.health(),
            ServingLeader::Remote(_) => None,
            ServingLeader::None(why) => Some(format!("no server owns the store: {why}")),
            ServingLeader::Paused(why) => Some(why),
        };
        Health { degraded, store: self.kind }
    }

    /// The description of a server that is well.
    pub(crate) fn described(&self) -> Option<String> {
        self.describes.as_ref()?.described()
    }

    /// The servers that share the store; empty where no other server has it.
    pub(crate) fn servers(&self) -> Vec<SharedServer> {
        self.describes.as_ref().map_or_else(Vec::new, |describes| describes.servers())
    }

    /// News for an operator while the server is well. Forwarding calls is no news.
    pub(crate) fn news(&self) -> Option<String> {
        match self.now() {
            ServingLeader::Local { engine, .. } => engine.notice(),
            ServingLeader::Remote(_) => self.describes.as_ref()?.warning(),
            ServingLeader::None(_) | ServingLeader::Paused(_) => None,
        }
    }

    /// Where calls are answered at this moment.
    pub fn now(&self) -> ServingLeader {
        self.standing.borrow().serves.clone()
    }

    /// The last epoch at which this process served.
    pub(crate) fn served_at(&self) -> Option<u64> {
        self.standing.borrow().served_at
    }

    /// How the servers of the store know each other; `None`: there is only one, or the store is not known yet.
    pub fn peer_group(&self) -> Option<Arc<PeerGroup>> {
        self.peer_group.borrow().clone()
    }

    pub(crate) fn snapshots(&self) -> Option<&Arc<dyn WritesSnapshots>> {
        self.snapshots.as_ref()
    }

    pub(crate) fn backups(&self) -> Option<&Arc<dyn MakesBackups>> {
        self.backups.as_ref()
    }

    /// Whether calls are answered elsewhere since then.
    pub(crate) fn left(&self, before: &ServingLeader) -> bool {
        !self.standing.borrow().serves.is_same(before)
    }

    /// The same, after an engine has refused a call because it has no store: the report of the leadership may come a
    /// moment later than the engine's own discovery.
    pub(crate) async fn left_by_now(&self, before: &ServingLeader) -> bool {
        if self.peer_group().is_none() {
            return false;
        }
        timeout(TOLD_WITHIN, self.moved(before)).await.is_ok()
    }

    /// Whether several servers may share the store.
    pub(crate) fn is_shared(&self) -> bool {
        self.describes.is_some() || self.peer_group().is_some()
    }

    /// Whether several servers share the store and this one does not lead it.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.peer_group().is_some() && !matches!(self.now(), ServingLeader::Local { .. })
    }

    /// Ends when [`is_elsewhere`](Self::is_elsewhere) is true; never if no other server has the store.
    pub(crate) async fn handed_over(&self) {
        let mut standing = self.standing.clone();
        let is_elsewhere = |now: &LeaderReport| {
            self.peer_group().is_some() && !matches!(now.serves, ServingLeader::Local { .. })
        };
        if standing.wait_for(is_elsewhere).await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends when calls are answered elsewhere; never if no other server has the store.
    pub(crate) async fn moved(&self, before: &ServingLeader) {
        let mut standing = self.standing.clone();
        if standing.wait_for(|now| !now.serves.is_same(before)).await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends with a reason when a call at this leader has gone unserved for this long, including the silence before that
    /// was noticed: the leader is partitioned from the store, and no other server has taken it. Never ends if another
    /// server takes it: then the engine reports the outcome of the call.
    pub(crate) async fn cut_off(&self, before: &ServingLeader, most: Duration) -> String {
        let most = most.saturating_sub(SILENT_BEFORE);
        loop {
            self.moved(before).await;
            let ServingLeader::None(why) = self.now() else {
                if self.left(before) {
                    std::future::pending::<()>().await;
                }
                continue;
            };
            let mut standing = self.standing.clone();
            let serves = |now: &LeaderReport| !matches!(now.serves, ServingLeader::None(_));
            if timeout(most, standing.wait_for(serves)).await.is_err() {
                return why;
            }
        }
    }

    /// Stops granting leases here: see [`Engine::drain`].
    pub(crate) fn drain(&self) {
        if let ServingLeader::Local { engine, .. } = self.now() {
            engine.drain();
        }
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.now())
    }
}
