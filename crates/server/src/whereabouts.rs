//! Where the store of a server is served now: by this process, by another one, or by nobody.
//!
//! A store in a folder is served here for as long as the process lives. A store that several servers share is served by the one
//! that owns it, and the task that takes part in the ownership tells it here. Nothing here decides who that is.

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

/// Where a store is served is told within this after it has changed.
const TOLD_WITHIN: Duration = Duration::from_millis(100);
/// A call at an owner that is told to be cut off has waited for it this long already: the store was silent before.
pub(crate) const SILENT_BEFORE: Duration = Duration::from_secs(3);

/// Where calls are answered now.
#[derive(Clone)]
pub enum Serves {
    /// By this process.
    Here {
        /// What answers them.
        engine: Arc<dyn Engine>,
        /// The epoch of this ownership; 0 where no other server could own the store.
        epoch: u64,
    },
    /// By another server.
    There(OwnerAddress),
    /// By none that is known. The sentence says why, for the refusal of who waited in vain.
    Nobody(String),
    /// By none, until somebody ends what pauses the store, as the sentence says: nobody waits for that.
    Paused(String),
}

/// The server that owns the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnerAddress {
    /// Where it takes calls.
    pub url: ServerUrl,
    /// The epoch of its ownership: the same server may own the store again later, under another one.
    pub epoch: u64,
}

/// What a server says of itself that does not own the store.
pub(crate) fn passes_on(url: &dyn fmt::Display) -> String {
    format!("the server passes calls on to {url}, which owns the store")
}

impl Serves {
    /// What is to be told of it while it is well.
    pub(crate) fn notice(&self) -> Option<String> {
        match self {
            Serves::Here { engine, .. } => engine.notice(),
            Serves::There(owner) => Some(passes_on(&owner.url)),
            Serves::Nobody(_) | Serves::Paused(_) => None,
        }
    }

    /// Whether this is the same ownership.
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

/// What the task that takes part in the ownership tells.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Where calls are answered. It must say something else *before* an engine that lost the store ends: a call that this engine
    /// then refuses is passed on.
    pub serves: Serves,
    /// The last epoch at which an append of this process was confirmed. Starts as `None` and never falls.
    pub served_at: Option<u64>,
}

/// How the servers of one store know each other.
#[derive(Clone, Debug)]
pub struct Fellowship {
    /// The id of this process, drawn when it starts.
    pub server: u128,
    /// The id of the store.
    pub store: u128,
    /// What all servers of the store know, and no client.
    pub secret: Secret,
    /// Whose certificates are trusted where a server speaks HTTPS.
    pub trust: Trust,
}

/// Where the store of a server is served, and a way to hear of changes. Clones see the same.
#[derive(Clone)]
pub struct Whereabouts {
    standing: watch::Receiver<Standing>,
    /// `None` where no other server has the store, and as long as the store is not known. The secret changes where Redis was
    /// emptied or the secret was replaced there.
    fellowship: watch::Receiver<Option<Arc<Fellowship>>>,
    /// What writes snapshots here for the owner. `None`: no other server has the store, or this one keeps no rows.
    snapshots: Option<Arc<dyn WritesSnapshots>>,
    /// Says of a server that is well more than that it is; asked anew each time. `None`: there is nothing to say.
    describes: Option<Arc<dyn Describes>>,
    /// One word for what the store is kept in, where this process does not serve it.
    kind: &'static str,
}

/// Says how the store is served, where several servers share it.
pub trait Describes: Send + Sync + 'static {
    /// One sentence for an operator; `None` if there is nothing to say.
    fn described(&self) -> Option<String>;

    /// What an operator should do something about, although calls are answered; `None`: nothing.
    fn warning(&self) -> Option<String>;

    /// The servers that share the store.
    fn servers(&self) -> Vec<SharedServer>;
}

impl Whereabouts {
    /// This engine serves the store from now on, and no other server has it.
    pub fn always(engine: Arc<dyn Engine>) -> Self {
        let standing = Standing { serves: Serves::Here { engine, epoch: 0 }, served_at: None };
        // Its other end is gone, so it never changes.
        let standing = watch::channel(standing).1;
        let (kind, fellowship) = ("embedded", watch::channel(None).1);
        Whereabouts { standing, fellowship, snapshots: None, describes: None, kind }
    }

    /// Several servers share the store, which is kept in something of this kind.
    pub fn shared(
        kind: &'static str,
        fellowship: Fellowship,
        standing: watch::Receiver<Standing>,
    ) -> Self {
        let known = watch::channel(Some(Arc::new(fellowship))).1;
        Whereabouts::joining(kind, known, standing)
    }

    /// Several servers share a store that is perhaps not known yet: `fellowship` is told once it is, and when it changes.
    pub fn joining(
        kind: &'static str,
        fellowship: watch::Receiver<Option<Arc<Fellowship>>>,
        standing: watch::Receiver<Standing>,
    ) -> Self {
        Whereabouts { standing, fellowship, snapshots: None, describes: None, kind }
    }

    /// While another server owns the store, this one writes snapshots for it.
    pub fn writing(self, snapshots: Arc<dyn WritesSnapshots>) -> Self {
        Whereabouts { snapshots: Some(snapshots), ..self }
    }

    /// The same, of which `describes` says more.
    pub fn described_by(self, describes: Arc<dyn Describes>) -> Self {
        Whereabouts { describes: Some(describes), ..self }
    }

    /// How who answers calls is, as far as it is known here.
    pub(crate) fn health(&self) -> Health {
        let degraded = match self.now() {
            Serves::Here { engine, .. } => return engine.health(),
            Serves::There(_) => None,
            Serves::Nobody(why) => Some(format!("no server owns the store: {why}")),
            Serves::Paused(why) => Some(why),
        };
        Health { degraded, store: self.kind }
    }

    /// What is said of a server that is well.
    pub(crate) fn described(&self) -> Option<String> {
        self.describes.as_ref()?.described()
    }

    /// The servers that share the store; empty where no other server has it.
    pub(crate) fn servers(&self) -> Vec<SharedServer> {
        self.describes.as_ref().map_or_else(Vec::new, |describes| describes.servers())
    }

    /// What who looks at this server should know while it is well. That it forwards calls is no news.
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

    /// How the servers of the store know each other; `None`: there is one, or the store is not known yet.
    pub fn fellowship(&self) -> Option<Arc<Fellowship>> {
        self.fellowship.borrow().clone()
    }

    pub(crate) fn snapshots(&self) -> Option<&Arc<dyn WritesSnapshots>> {
        self.snapshots.as_ref()
    }

    /// Whether calls are answered elsewhere than they were.
    pub(crate) fn left(&self, before: &Serves) -> bool {
        !self.standing.borrow().serves.is_same(before)
    }

    /// The same after an engine has refused a call as one that has no store: what takes part in the ownership may tell that a
    /// moment later than the engine finds out.
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

    /// Ends when calls are answered elsewhere than they were; never if no other server has the store.
    pub(crate) async fn moved(&self, before: &Serves) {
        let mut standing = self.standing.clone();
        if standing.wait_for(|now| !now.serves.is_same(before)).await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends, and says why, when nobody has served for this long in a row a call that is answered here, the silence before that was
    /// noticed included: its owner is cut off from the store, and nobody has taken that. Never if another server takes it: then the engine says what became of the call.
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

    /// No more leases are granted here: see [`Engine::drain`].
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
