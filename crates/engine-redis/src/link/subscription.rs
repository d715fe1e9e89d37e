//! Messages that the servers publish, for a whole process: one connection ([`super::ear`]) at each node that has a
//! channel which is wanted here. On a single server that is one connection for all.
//!
//! A message is a hint. It may be lost at any time, and when it may have been, that is said, so that
//! whoever waits looks once for himself. Nothing is ever counted on a message alone.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_engine::redis_address::Endpoint;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use super::Link;
use super::dial::Task;
use super::ear::{Ear, Heard, MovedSlot};
use super::error::LinkError;
use super::routes::{KnownMap, nobody, slot_of};

/// Events that may wait for the reader; what comes when there are more is dropped, and a gap is told.
const WAITING_MAX: usize = 1024;
/// Two nodes that each call the other the owner of a slot are asked no more often than this.
const BETWEEN_MOVES: Duration = Duration::from_millis(25);

/// What a subscription tells.
#[derive(Clone, PartialEq, Eq)]
pub enum Overheard {
    /// Somebody published this.
    Message {
        /// Where.
        channel: String,
        /// What.
        payload: Vec<u8>,
    },
    /// Messages may have been missed: look for yourself. From now on they come.
    Gap {
        /// Of this channel, which is heard from now on, for the first time or again; `None`: of any.
        channel: Option<String>,
    },
}

impl std::fmt::Debug for Overheard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Overheard::Message { channel, payload } => {
                write!(f, "Message({channel:?}, {} bytes)", payload.len())
            }
            Overheard::Gap { channel } => write!(f, "Gap({channel:?})"),
        }
    }
}

/// The channels that a process listens to. Dropping it ends the listening.
pub struct Subscription {
    wanted: watch::Sender<BTreeSet<String>>,
    ears: Arc<Ears>,
    _task: Task,
}

impl Subscription {
    /// Also listens to this channel. When it does, a [`Overheard::Gap`] of the channel, or of all, is
    /// told. Does nothing if it does already.
    pub fn subscribe(&self, channel: &str) {
        self.wanted.send_if_modified(|wanted| wanted.insert(channel.to_owned()));
    }

    /// Listens to this channel no more.
    pub fn unsubscribe(&self, channel: &str) {
        self.wanted.send_if_modified(|wanted| wanted.remove(channel));
    }

    /// Why the messages of some channel do not come now; `None` if all come. Never waits.
    pub fn down(&self) -> Option<LinkError> {
        let ears = self.ears.lock();
        if let Some(why) = &ears.nowhere {
            return Some(why.clone());
        }
        if let Some(why) = ears.at.values().find_map(|ear| ear.heard.why()) {
            return Some(why);
        }
        let wanted = self.wanted.borrow();
        wanted.iter().any(|channel| !ears.hear(channel)).then(not_yet)
    }

    /// Whether the messages of this channel come now. Never waits.
    pub fn hears(&self, channel: &str) -> bool {
        self.ears.lock().hear(channel)
    }
}

/// Why nothing is heard at first.
pub(super) fn not_yet() -> LinkError {
    LinkError::Unavailable("it does not listen yet".to_owned())
}

impl Link {
    /// Begins to listen, to no channel yet.
    pub fn listen(&self) -> (Subscription, mpsc::Receiver<Overheard>) {
        let (wanted, seen) = watch::channel(BTreeSet::new());
        let (events, receiver) = mpsc::channel(WAITING_MAX);
        let ears = Arc::new(Ears::default());
        let (tell, moves) = mpsc::unbounded_channel();
        let listener =
            Listener { link: self.clone(), wanted: seen, ears: ears.clone(), events, tell };
        let task = Task(self.inner.routes.runtime().spawn(listener.run(moves)));
        (Subscription { wanted, ears, _task: task }, receiver)
    }
}

/// The nodes that are listened to.
struct Ears {
    state: Mutex<EarsState>,
}

struct EarsState {
    at: BTreeMap<Endpoint, KeptEar>,
    /// Why some channel is listened to nowhere: nobody is known to have its slot.
    nowhere: Option<LinkError>,
}

struct KeptEar {
    wanted: watch::Sender<BTreeSet<String>>,
    heard: Arc<Heard>,
    _task: Task,
}

impl Default for Ears {
    fn default() -> Self {
        let state = EarsState { at: BTreeMap::new(), nowhere: Some(not_yet()) };
        Ears { state: Mutex::new(state) }
    }
}

impl Ears {
    fn lock(&self) -> MutexGuard<'_, EarsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EarsState {
    fn hear(&self, channel: &str) -> bool {
        self.at.values().any(|ear| ear.heard.has(channel))
    }
}

/// Sees to it that each channel is listened to at the node that has it.
struct Listener {
    link: Link,
    wanted: watch::Receiver<BTreeSet<String>>,
    ears: Arc<Ears>,
    events: mpsc::Sender<Overheard>,
    tell: mpsc::UnboundedSender<MovedSlot>,
}

impl Listener {
    async fn run(mut self, mut moves: mpsc::UnboundedReceiver<MovedSlot>) {
        let mut maps = self.link.inner.routes.maps();
        // Where a slot is by the word of a node, which is newer than the map.
        let mut moved: HashMap<usize, Endpoint> = HashMap::new();
        let mut moved_at: Option<Instant> = None;
        loop {
            self.plan(&mut maps, &moved);
            tokio::select! {
                () = self.events.closed() => {
                    self.ears.lock().at.clear();
                    return;
                }
                changed = self.wanted.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                // If the next map is older than the word of the node, the node will say it again.
                () = changed(&mut maps) => moved.clear(),
                Some(MovedSlot { slot, to }) = moves.recv() => {
                    if moved_at.is_some_and(|at| at.elapsed() < BETWEEN_MOVES) {
                        sleep(BETWEEN_MOVES).await;
                    }
                    moved_at = Some(Instant::now());
                    moved.insert(slot, to);
                }
            }
        }
    }

    /// Listens to what is wanted at the nodes that have it, and at no others.
    fn plan(&mut self, maps: &mut watch::Receiver<KnownMap>, moved: &HashMap<usize, Endpoint>) {
        let wanted = self.wanted.borrow_and_update().clone();
        let mut places: BTreeMap<Endpoint, BTreeSet<String>> = BTreeMap::new();
        let mut nowhere = None;
        match &*maps.borrow_and_update() {
            KnownMap::Looking { why, .. } => nowhere = Some(why.clone()),
            KnownMap::At(map) => {
                if let (None, [node]) = (&map.slots, map.nodes.as_slice()) {
                    // Also while nothing is wanted: then the first channel is heard sooner.
                    places.entry(node.endpoint.clone()).or_default();
                }
                for channel in wanted {
                    let slot = slot_of(&channel);
                    let known = || map.primary(slot).map(|node| &node.endpoint);
                    match moved.get(&slot).or_else(known) {
                        Some(there) => {
                            places.entry(there.clone()).or_default().insert(channel);
                        }
                        None => nowhere = Some(nobody()),
                    }
                }
            }
        }
        let mut ears = self.ears.lock();
        ears.nowhere = nowhere;
        // First: after a failover the old node is a replica that hears the new one's messages too.
        ears.at.retain(|endpoint, _| places.contains_key(endpoint));
        for (endpoint, channels) in places {
            match ears.at.entry(endpoint) {
                // Told also if nothing has changed: the node may have refused a channel that it has after all.
                Entry::Occupied(ear) => {
                    ear.get().wanted.send_replace(channels);
                }
                Entry::Vacant(free) => {
                    let ear = self.start(free.key().clone(), channels);
                    free.insert(ear);
                }
            }
        }
    }

    fn start(&self, endpoint: Endpoint, channels: BTreeSet<String>) -> KeptEar {
        let (wanted, seen) = watch::channel(channels);
        let heard = Arc::new(Heard::default());
        let ear = Ear {
            link: self.link.clone(),
            endpoint,
            wanted: seen,
            heard: heard.clone(),
            moves: self.tell.clone(),
            events: self.events.clone(),
        };
        let task = Task(self.link.inner.routes.runtime().spawn(ear.run()));
        KeptEar { wanted, heard, _task: task }
    }
}

/// Returns when there is another map. Where nobody looks for changes there are none.
async fn changed(maps: &mut watch::Receiver<KnownMap>) {
    if maps.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
