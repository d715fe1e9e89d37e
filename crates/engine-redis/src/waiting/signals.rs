//! What other processes publish, brought to those who wait for it: one subscription for all namespaces,
//! made when the first of them needs it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{mpsc, watch};

use super::given::give_back;
use super::parcels::{MARK, Parcel};
use super::space::Space;
use crate::call::Caller;
use crate::link::{Channels, LinkError, Overheard, Subscription};
use crate::shared::Shared;

/// A name that a test publishes to itself, to know that all that was published before has come.
const BARRIER: &str = "=";

/// What the name of something begins with that has ended (`lua/machine/awaits.lua`).
const ENDED: &str = "!";

/// See the module.
#[derive(Default)]
pub(crate) struct Signals {
    inside: Arc<Mutex<SignalsState>>,
}

#[derive(Default)]
struct SignalsState {
    subscription: Option<Subscription>,
    channels: HashMap<String, Weak<Space>>,
    /// The highest barrier that came, and who waits for one.
    barrier: watch::Sender<u64>,
}

impl Signals {
    fn lock(&self) -> MutexGuard<'_, SignalsState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens for a namespace from now on. Does nothing if it does already.
    pub(crate) fn follow(&self, shared: &Arc<Shared>, space: &Arc<Space>) {
        let mut inside = self.lock();
        if inside.channels.contains_key(&space.times) {
            return;
        }
        if inside.subscription.is_none() {
            let (subscription, events) = shared.link.listen();
            inside.subscription = Some(subscription);
            let of = Arc::downgrade(shared);
            shared.runtime.spawn(bring(self.inside.clone(), of, events, shared.closing()));
        }
        for channel in [&space.times, &space.signals] {
            inside.channels.insert(channel.clone(), Arc::downgrade(space));
            if let Some(subscription) = &inside.subscription {
                subscription.subscribe(channel);
            }
        }
    }

    /// Listens for a namespace no more.
    pub(crate) fn forget(&self, space: &Space) {
        let mut inside = self.lock();
        for channel in [&space.times, &space.signals] {
            inside.channels.remove(channel);
            if let Some(subscription) = &inside.subscription {
                subscription.unsubscribe(channel);
            }
        }
    }

    /// Whether no signals of this namespace come now.
    pub(crate) fn miss(&self, space: &Space) -> bool {
        let inside = self.lock();
        let Some(listening) = &inside.subscription else { return true };
        !listening.hears(&space.signals) || !listening.hears(&space.times)
    }

    /// Why the server lets this process listen to nothing, with what to permit; `None` if that is not so.
    pub(crate) fn refused(&self, channels: Channels) -> Option<String> {
        match self.lock().subscription.as_ref()?.down()? {
            LinkError::Refused { code, message } if code == "NOPERM" => Some(format!(
                "redis does not permit this process to listen ({message}): waiting calls find new work only by \
                 looking, up to a second later; permit it (ACL SETUSER NAME {}, and the channels of Tenure, \
                 &PREFIX*)",
                channels.rights_to_listen()
            )),
            _ => None,
        }
    }

    /// The text of a barrier of this number.
    pub(crate) fn barrier_text(number: u64) -> String {
        format!("{BARRIER}{number}")
    }

    /// Tells the highest barrier that came.
    pub(crate) fn barriers(&self) -> watch::Receiver<u64> {
        self.lock().barrier.subscribe()
    }
}

/// Brings events to their namespaces until the engine closes.
async fn bring(
    inside: Arc<Mutex<SignalsState>>,
    shared: Weak<Shared>,
    mut events: mpsc::Receiver<Overheard>,
    mut closing: watch::Receiver<bool>,
) {
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            _ = closing.changed() => None,
        };
        let Some(event) = event else {
            // The listening ends with its last owner.
            inside.lock().unwrap_or_else(PoisonError::into_inner).subscription = None;
            return;
        };
        let inside = inside.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Overheard::Message { channel, payload } => {
                let Some(space) = inside.channels.get(&channel).and_then(Weak::upgrade) else {
                    continue;
                };
                if payload.first() == Some(&MARK) {
                    let Some(parcel) = Parcel::read(&payload) else { continue };
                    // Its call has ended since.
                    if let Some(parcel) = space.deliver(parcel)
                        && let Some(shared) = shared.upgrade()
                    {
                        give_back(&Caller { shared, space }, parcel);
                    }
                    continue;
                }
                let Ok(text) = std::str::from_utf8(&payload) else { continue };
                if channel == space.times {
                    told_time(&space, text);
                } else {
                    signalled(&inside, &space, text);
                }
            }
            Overheard::Gap { channel } => {
                for (name, space) in &inside.channels {
                    let meant = channel.as_ref().is_none_or(|channel| channel == name);
                    let Some(space) = space.upgrade().filter(|_| meant) else { continue };
                    if *name == space.times {
                        space.timer.look();
                    } else {
                        space.stir();
                    }
                }
            }
        }
    }
}

/// A due moment that is sooner than was known, or (`=`) that takes the place of what was known.
fn told_time(space: &Space, text: &str) {
    match text.strip_prefix('=') {
        Some(due) => space.timer.told(due.parse().ok()),
        None => {
            if let Ok(due) = text.parse() {
                space.timer.sooner(due);
            }
        }
    }
}

/// Names of waiting calls, a line each: the number of a call stands behind the name of its process. Or names of what has
/// ended, each behind a mark.
fn signalled(inside: &SignalsState, space: &Space, text: &str) {
    for line in text.lines() {
        if let Some(number) = line.strip_prefix(BARRIER) {
            if let Ok(number) = number.parse::<u64>() {
                inside.barrier.send_modify(|highest| *highest = number.max(*highest));
            }
        } else if let Some(name) = line.strip_prefix(ENDED) {
            space.ended(name);
        } else if let Some(taker) = line.rsplit(':').next().and_then(|n| n.parse().ok()) {
            space.signal(taker);
        }
    }
}
