//! Messages that the servers publish: one connection for a whole process, kept by a task of its own.
//!
//! A message is a hint. It may be lost at any time, and when it may have been, that is said, so that
//! whoever waits looks once for himself. Nothing is ever counted on a message alone.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use redis::Msg;
use redis::aio::{PubSubSink, PubSubStream};
use tenure_engine::redis_address::Endpoint;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::Link;
use super::dial::Task;
use super::error::{LinkError, described};

/// Events that may wait for the reader; what comes when there are more is dropped, and a gap is told.
const WAITING_MAX: usize = 1024;
/// Pauses between tries to connect.
const PAUSE_MIN: Duration = Duration::from_millis(25);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What a subscription tells.
#[derive(Clone, PartialEq, Eq)]
pub enum Event {
    /// Somebody published this.
    Message {
        /// Where.
        channel: String,
        /// What.
        payload: Vec<u8>,
    },
    /// Messages may have been missed: look for yourself. From now on they come.
    Gap {
        /// Of this channel, which is new; `None`: of any.
        channel: Option<String>,
    },
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Event::Message { channel, payload } => {
                write!(f, "Message({channel:?}, {} bytes)", payload.len())
            }
            Event::Gap { channel } => write!(f, "Gap({channel:?})"),
        }
    }
}

/// The channels that a process listens to. Dropping it ends the listening.
pub struct Subscription {
    wanted: watch::Sender<BTreeSet<String>>,
    down: watch::Receiver<Option<LinkError>>,
    _task: Task,
}

impl Subscription {
    /// Also listens to this channel. When it does, a [`Event::Gap`] of the channel, or of all, is
    /// told. Does nothing if it does already.
    pub fn subscribe(&self, channel: &str) {
        self.wanted.send_if_modified(|wanted| wanted.insert(channel.to_owned()));
    }

    /// Listens to this channel no more.
    pub fn unsubscribe(&self, channel: &str) {
        self.wanted.send_if_modified(|wanted| wanted.remove(channel));
    }

    /// Why no messages come now; `None` if they do. Never waits.
    pub fn down(&self) -> Option<LinkError> {
        self.down.borrow().clone()
    }
}

impl Link {
    /// Begins to listen, to no channel yet: on the primary, in a cluster on any of them, since what
    /// one node is told to publish all nodes publish.
    pub fn listen(&self) -> (Subscription, mpsc::Receiver<Event>) {
        let (wanted, seen) = watch::channel(BTreeSet::new());
        let not_yet = LinkError::Unavailable("it does not listen yet".to_owned());
        let (state, down) = watch::channel(Some(not_yet));
        let (events, receiver) = mpsc::channel(WAITING_MAX);
        let listener = Listener { link: self.clone(), wanted: seen, state, events };
        let task = Task(self.inner.routes.runtime().spawn(listener.run()));
        (Subscription { wanted, down, _task: task }, receiver)
    }
}

struct Listener {
    link: Link,
    wanted: watch::Receiver<BTreeSet<String>>,
    state: watch::Sender<Option<LinkError>>,
    events: mpsc::Sender<Event>,
}

impl Listener {
    async fn run(mut self) {
        let mut pause = PAUSE_MIN;
        while !self.events.is_closed() {
            let since = Instant::now();
            let why = self.once().await;
            self.state.send_replace(Some(why));
            if since.elapsed() > 2 * PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// One connection, from its beginning to its end; answers why it ended.
    async fn once(&mut self) -> LinkError {
        let routes = &self.link.inner.routes;
        let endpoint = match routes.somewhere().await {
            Ok(endpoint) => endpoint,
            Err(why) => return why,
        };
        let (sink, stream) = match routes.dialer().listen(&endpoint).await {
            Ok(connection) => connection.split(),
            Err(why) => return why,
        };
        let within = routes.watch().ping_within;
        let at = endpoint.clone();
        let mut wire = Wire { sink, within, endpoint: at, live: BTreeSet::new() };
        self.wanted.mark_changed();
        let wanted = self.wanted.borrow_and_update().clone();
        if let Err(why) = wire.follow(&wanted).await {
            return why;
        }
        // Told before any message of this connection; a reader that is gone ends the listening.
        if self.events.send(Event::Gap { channel: None }).await.is_err() {
            return wire.lost("nobody reads");
        }
        let mut forward = Task(routes.runtime().spawn(forward(stream, self.events.clone())));
        self.state.send_replace(None);
        let mut ticks = interval(routes.watch().ping_every);
        ticks.reset();
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = &mut forward.0 => return wire.lost("the connection was closed"),
                changed = self.wanted.changed() => {
                    if changed.is_err() {
                        return wire.lost("nobody listens");
                    }
                    let wanted = self.wanted.borrow_and_update().clone();
                    match wire.follow(&wanted).await {
                        Err(why) => return why,
                        Ok(new) => for channel in new {
                            let gap = Event::Gap { channel: Some(channel) };
                            if self.events.send(gap).await.is_err() {
                                return wire.lost("nobody reads");
                            }
                        },
                    }
                }
                _ = ticks.tick() => if let Err(why) = wire.ping().await {
                    return why;
                },
                () = routes.left(&endpoint) => return wire.lost("it is no primary any more"),
            }
        }
    }
}

/// One connection for messages.
struct Wire {
    sink: PubSubSink,
    within: Duration,
    endpoint: Endpoint,
    live: BTreeSet<String>,
}

impl Wire {
    /// Listens to what is wanted and to nothing else; answers what is new.
    async fn follow(&mut self, wanted: &BTreeSet<String>) -> Result<Vec<String>, LinkError> {
        let new: Vec<String> = wanted.difference(&self.live).cloned().collect();
        let old: Vec<String> = self.live.difference(wanted).cloned().collect();
        let done = async {
            if !new.is_empty() {
                self.sink.subscribe(&new).await?;
            }
            if !old.is_empty() {
                self.sink.unsubscribe(&old).await?;
            }
            Ok(())
        };
        let done = timeout(self.within, done).await;
        self.judged(done)?;
        self.live.clone_from(wanted);
        Ok(new)
    }

    async fn ping(&mut self) -> Result<(), LinkError> {
        let done = timeout(self.within, self.sink.ping::<redis::Value>()).await;
        self.judged(done.map(|done| done.map(|_| ())))
    }

    fn judged<E>(&self, done: Result<redis::RedisResult<()>, E>) -> Result<(), LinkError> {
        match done {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => match redis::ServerError::try_from(why) {
                Ok(said) => Err(LinkError::from(&said)),
                Err(why) => Err(self.lost(&described(&why))),
            },
            Err(_) => Err(self.lost("nothing comes over the connection any more")),
        }
    }

    fn lost(&self, why: &str) -> LinkError {
        LinkError::Unavailable(format!("{}: {why}", self.endpoint))
    }
}

/// Hands on what comes. It never waits for the reader: a reader who is behind is told of a gap when
/// he has room, and loses what came between.
async fn forward(mut stream: PubSubStream, events: mpsc::Sender<Event>) {
    let mut owed = false;
    loop {
        tokio::select! {
            room = events.reserve(), if owed => match room {
                Ok(room) => {
                    room.send(Event::Gap { channel: None });
                    owed = false;
                }
                Err(_) => return,
            },
            message = next(&mut stream) => {
                let Some(message) = message else { return };
                if owed {
                    continue;
                }
                let event = Event::Message {
                    channel: message.get_channel_name().to_owned(),
                    payload: message.get_payload_bytes().to_vec(),
                };
                match events.try_send(event) {
                    Ok(()) => {}
                    Err(mpsc::error::TrySendError::Full(_)) => owed = true,
                    Err(mpsc::error::TrySendError::Closed(_)) => return,
                }
            }
        }
    }
}

/// The next message; `None` when the connection is gone.
pub(crate) async fn next(stream: &mut PubSubStream) -> Option<Msg> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}
