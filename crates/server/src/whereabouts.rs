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
use tenure_seam::{Engine, Health, SharedServer};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::snapshots::WritesSnapshots;

/// A change of the leadership is reported within this.
const TOLD_WITHIN: Duration = Duration::from_millis(100);
/// How long a call at a leader has already waited when the leader is reported as partitioned: the store was silent
/// before.
pub(crate) const SILENT_BEFORE: Duration = Duration::from_secs(3);

/// Where calls are answered now.
#[derive(Clone)]
pub enum Serves {
    /// This process leads the store and answers.
    Here {
        /// The engine of the store.
        engine: Arc<dyn Engine>,
        /// The epoch of this leadership; 0 where no other server could lead the store.
        epoch: u64,
    },
    /// Another server leads the store and answers.
    There(OwnerAddress),
    /// No known server answers. The sentence is the reason in the refusal of a call that waited in vain.
    Nobody(String),
    /// No server answers until somebody ends the pause, as the sentence says: no call waits for that.
    Paused(String),
}

/// The server that leads the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnerAddress {
    /// Where it takes calls.
    pub url: ServerUrl,
    /// The epoch of its leadership: the same server may lead the store again later, under another one.
    pub epoch: u64,
}

/// The notice of a server that does not lead the store.
pub(crate) fn passes_on(url: &dyn fmt::Display) -> String {
    format!("the server passes calls on to {url}, which owns the store")
}

impl Serves {
    /// A notice for an operator while the server is well.
    pub(crate) fn notice(&self) -> Option<String> {
        match self {
            Serves::Here { engine, .. } => engine.notice(),
            Serves::There(owner) => Some(passes_on(&owner.url)),
            Serves::Nobody(_) | Serves::Paused(_) => None,
        }
    }

    /// Whether this is the same leadership.
    fn is_same(&self, other: &Serves) -> bool {
        match (self, other) {
            (Serves::Here { epoch, .. }, Serves::Here { epoch: other, .. }) => epoch == other,
            (Serves::There(owner), Serves::There(other)) => owner == other,
            (Serves::Nobody(_), Serves::Nobody(_)) | (Serves::Paused(_), Serves::Paused(_)) => true,
            _ => false,
        }
    }
}

impl fmt::Debug for Serves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Serves::Here { epoch, .. } => write!(f, "Here({epoch})"),
            Serves::There(owner) => write!(f, "There({}, {})", owner.url, owner.epoch),
            Serves::Nobody(why) => write!(f, "Nobody({why})"),
            Serves::Paused(why) => write!(f, "Paused({why})"),
        }
    }
}

/// A report of the task that follows the leadership.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Where calls are answered. It must change *before* an engine that lost the store ends: a call that this engine
    /// then refuses is forwarded.
    pub serves: Serves,
    /// The last epoch at which an append of this process was confirmed. Initially `None`; never falls.
    pub served_at: Option<u64>,
}

/// Identity and secret by which the servers of one store know each other.
#[derive(Clone, Debug)]
pub struct Fellowship {
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
pub struct Whereabouts {
    standing: watch::Receiver<Standing>,
    /// `None` where no other server has the store, and until the store is known. The secret changes when Redis is
    /// emptied or the secret is replaced there.
    fellowship: watch::Receiver<Option<Arc<Fellowship>>>,
    /// Writes snapshots here for the leader. `None`: no other server has the store, or this one keeps no rows.
    snapshots: Option<Arc<dyn WritesSnapshots>>,
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

impl Whereabouts {
    /// For an engine that serves the store from now on, which no other server has.
    pub fn always(engine: Arc<dyn Engine>) -> Self {
        let standing = Standing { serves: Serves::Here { engine, epoch: 0 }, served_at: None };
        // The sender is gone, so the value never changes.
        let standing = watch::channel(standing).1;
        let (kind, fellowship) = ("embedded", watch::channel(None).1);
        Whereabouts { standing, fellowship, snapshots: None, describes: None, kind }
    }

    /// For a store of this kind that several servers share.
    pub fn shared(
        kind: &'static str,
        fellowship: Fellowship,
        standing: watch::Receiver<Standing>,
    ) -> Self {
        let known = watch::channel(Some(Arc::new(fellowship))).1;
        Whereabouts::joining(kind, known, standing)
    }

    /// For a shared store that may not be known yet: `fellowship` is set once it is, and when it changes.
    pub fn joining(
        kind: &'static str,
        fellowship: watch::Receiver<Option<Arc<Fellowship>>>,
        standing: watch::Receiver<Standing>,
    ) -> Self {
        Whereabouts { standing, fellowship, snapshots: None, describes: None, kind }
    }

    /// Writes snapshots for the leader with `snapshots`, while another server leads the store.
    pub fn writing(self, snapshots: Arc<dyn WritesSnapshots>) -> Self {
        Whereabouts { snapshots: Some(snapshots), ..self }
    }

    /// Adds the description by `describes`.
    pub fn described_by(self, describes: Arc<dyn Describes>) -> Self {
        Whereabouts { describes: Some(describes), ..self }
    }

    /// The health of the server that answers calls, as far as this process knows it.
    pub(crate) fn health(&self) -> Health {
        let degraded = match self.now() {
            Serves::Here { engine, .. } => return engine.health(),
            Serves::There(_) => None,
            Serves::Nobody(why) => Some(format!("no server owns the store: {why}")),
            Serves::Paused(why) => Some(why),
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
            Serves::Here { engine, .. } => engine.notice(),
            Serves::There(_) => self.describes.as_ref()?.warning(),
            Serves::Nobody(_) | Serves::Paused(_) => None,
        }
    }

    /// Where calls are answered at this moment.
    pub fn now(&self) -> Serves {
        self.standing.borrow().serves.clone()
    }

    /// The last epoch at which this process served.
    pub(crate) fn served_at(&self) -> Option<u64> {
        self.standing.borrow().served_at
    }

    /// How the servers of the store know each other; `None`: there is only one, or the store is not known yet.
    pub fn fellowship(&self) -> Option<Arc<Fellowship>> {
        self.fellowship.borrow().clone()
    }

    pub(crate) fn snapshots(&self) -> Option<&Arc<dyn WritesSnapshots>> {
        self.snapshots.as_ref()
    }

    /// Whether calls are answered elsewhere since then.
    pub(crate) fn left(&self, before: &Serves) -> bool {
        !self.standing.borrow().serves.is_same(before)
    }

    /// The same, after an engine has refused a call because it has no store: the report of the leadership may come a
    /// moment later than the engine's own discovery.
    pub(crate) async fn left_by_now(&self, before: &Serves) -> bool {
        if self.fellowship().is_none() {
            return false;
        }
        timeout(TOLD_WITHIN, self.moved(before)).await.is_ok()
    }

    /// Whether several servers may share the store.
    pub(crate) fn is_shared(&self) -> bool {
        self.describes.is_some() || self.fellowship().is_some()
    }

    /// Whether several servers share the store and this one does not lead it.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.fellowship().is_some() && !matches!(self.now(), Serves::Here { .. })
    }

    /// Ends when [`is_elsewhere`](Self::is_elsewhere) is true; never if no other server has the store.
    pub(crate) async fn handed_over(&self) {
        let mut standing = self.standing.clone();
        let is_elsewhere = |now: &Standing| {
            self.fellowship().is_some() && !matches!(now.serves, Serves::Here { .. })
        };
        if standing.wait_for(is_elsewhere).await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends when calls are answered elsewhere; never if no other server has the store.
    pub(crate) async fn moved(&self, before: &Serves) {
        let mut standing = self.standing.clone();
        if standing.wait_for(|now| !now.serves.is_same(before)).await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends with a reason when a call at this leader has gone unserved for this long, including the silence before that
    /// was noticed: the leader is partitioned from the store, and no other server has taken it. Never ends if another
    /// server takes it: then the engine reports the outcome of the call.
    pub(crate) async fn cut_off(&self, before: &Serves, most: Duration) -> String {
        let most = most.saturating_sub(SILENT_BEFORE);
        loop {
            self.moved(before).await;
            let Serves::Nobody(why) = self.now() else {
                if self.left(before) {
                    std::future::pending::<()>().await;
                }
                continue;
            };
            let mut standing = self.standing.clone();
            let serves = |now: &Standing| !matches!(now.serves, Serves::Nobody(_));
            if timeout(most, standing.wait_for(serves)).await.is_err() {
                return why;
            }
        }
    }

    /// Stops granting leases here: see [`Engine::drain`].
    pub(crate) fn drain(&self) {
        if let Serves::Here { engine, .. } = self.now() {
            engine.drain();
        }
    }
}

impl fmt::Debug for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.now())
    }
}
