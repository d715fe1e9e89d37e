//! One connection that listens at one node: made, watched, and made anew when it is gone, by a task of its own.
//!
//! It speaks the older protocol itself. The client library listens to ordinary channels only; and a connection that it
//! shares for requests takes the server's word that a channel has ended, which comes unasked when a slot leaves, for
//! the answer to a request.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Value;
use tenure_engine::redis_address::Endpoint;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::channels::{Channels, ServerWord, mode, of_mode};
use super::dial::{AnyStream, Task};
use super::error::LinkError;
use super::routes::slot_of;
use super::subscription::not_yet;
use super::{Link, Overheard};

/// Pauses between tries to connect.
const PAUSE_MIN: Duration = Duration::from_millis(25);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Answers of the server that may wait to be looked at. Messages are not among them.
const ANSWERS_MAX: usize = 64;

/// A node said that it has not this slot.
pub(super) struct MovedSlot {
    pub slot: usize,
    /// The node that has it.
    pub to: Endpoint,
}

/// What one connection hears now.
#[derive(Default)]
pub(super) struct Heard {
    state: Mutex<HeardState>,
}

#[derive(Default)]
struct HeardState {
    /// What the server has confirmed.
    channels: BTreeSet<String>,
    /// There is a connection, and it may listen: something is confirmed, or nothing was wanted yet.
    is_up: bool,
    /// Why the last connection ended. Kept until the next is up.
    why: Option<LinkError>,
}

impl Heard {
    fn lock(&self) -> MutexGuard<'_, HeardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has(&self, channel: &str) -> bool {
        self.lock().channels.contains(channel)
    }

    /// Why there is no connection; `None` if there is one.
    pub fn why(&self) -> Option<LinkError> {
        let state = self.lock();
        (!state.is_up).then(|| state.why.clone().unwrap_or_else(not_yet))
    }

    fn up(&self, channel: Option<&str>) {
        let mut state = self.lock();
        (state.is_up, state.why) = (true, None);
        state.channels.extend(channel.map(str::to_owned));
    }

    fn lost(&self, why: LinkError) {
        *self.lock() = HeardState { channels: BTreeSet::new(), is_up: false, why: Some(why) };
    }
}

/// See the module.
pub(super) struct Ear {
    pub link: Link,
    pub endpoint: Endpoint,
    pub wanted: watch::Receiver<BTreeSet<String>>,
    pub heard: Arc<Heard>,
    pub moves: mpsc::UnboundedSender<MovedSlot>,
    pub events: mpsc::Sender<Overheard>,
}

impl Ear {
    /// Listens for ever.
    pub async fn run(mut self) {
        let mut pause = PAUSE_MIN;
        loop {
            let since = Instant::now();
            let Err(why) = self.once().await;
            self.heard.lost(why);
            if since.elapsed() > 2 * PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// One connection, from its beginning to its end.
    async fn once(&mut self) -> Result<Infallible, LinkError> {
        let watch = self.link.inner.routes.watch();
        let mut wire = self.open().await?;
        let wanted = self.wanted.borrow_and_update().clone();
        // On the only connection there is one gap for all that was wanted when it began.
        let mut first = (wire.channels == Channels::Ordinary).then(|| wanted.clone());
        wire.follow(wanted).await?;
        if wire.asked.is_empty() {
            self.heard.up(None);
            self.whole(&mut first).await?;
        }
        let mut ticks = interval(watch.ping_every);
        ticks.reset();
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pong_by = None;
        loop {
            tokio::select! {
                // A process that stood still for a while has the answer to its PING already.
                biased;
                said = wire.said.recv() => match said {
                    None => return Err(wire.lost("the connection was closed")),
                    Some(ServerWord::Pong) => pong_by = None,
                    Some(ServerWord::Begins(channel)) => {
                        // Otherwise it was wanted no more before the server had heard of it.
                        if wire.asked.contains(&channel) {
                            self.begins(channel, &mut first).await?;
                        }
                    }
                    Some(ServerWord::Ends(channel)) => {
                        self.heard.lock().channels.remove(&channel);
                        // Unasked: the slot has left, and the answer to the next try names its new owner.
                        if wire.asked.remove(&channel) {
                            let wanted = self.wanted.borrow().clone();
                            wire.follow(wanted).await?;
                        }
                    }
                    Some(ServerWord::Answer(Value::ServerError(said))) => {
                        self.refused(&mut wire, LinkError::from(&said))?;
                    }
                    Some(ServerWord::Message { .. } | ServerWord::Answer(_)) => {}
                },
                changed = self.wanted.changed() => {
                    if changed.is_err() {
                        return Err(wire.lost("nobody listens"));
                    }
                    let wanted = self.wanted.borrow_and_update().clone();
                    self.heard.lock().channels.retain(|channel| wanted.contains(channel));
                    wire.follow(wanted).await?;
                    if let Some(left) = &mut first {
                        left.retain(|channel| wire.asked.contains(channel));
                        if left.is_empty() {
                            self.whole(&mut first).await?;
                        }
                    }
                }
                _ = ticks.tick(), if pong_by.is_none() => {
                    wire.send(&[redis::cmd("PING")]).await?;
                    pong_by = Some(Instant::now() + watch.ping_within);
                }
                () = sleep_until(pong_by.unwrap_or_else(Instant::now)), if pong_by.is_some() => {
                    return Err(wire.lost("nothing comes over the connection any more"));
                }
            }
        }
    }

    /// The server has confirmed a channel. Whoever hears of the gap looks after that, so nothing is missed between.
    async fn begins(
        &self,
        channel: String,
        first: &mut Option<BTreeSet<String>>,
    ) -> Result<(), LinkError> {
        self.heard.up(Some(&channel));
        let Some(left) = first.as_mut().filter(|left| left.contains(&channel)) else {
            return self.tell(Overheard::Gap { channel: Some(channel) }).await;
        };
        left.remove(&channel);
        if left.is_empty() { self.whole(first).await } else { Ok(()) }
    }

    /// All is heard that was wanted when the connection began.
    async fn whole(&self, first: &mut Option<BTreeSet<String>>) -> Result<(), LinkError> {
        match first.take() {
            Some(_) => self.tell(Overheard::Gap { channel: None }).await,
            None => Ok(()),
        }
    }

    async fn tell(&self, event: Overheard) -> Result<(), LinkError> {
        let gone = |_| LinkError::Unavailable("nobody reads".to_owned());
        self.events.send(event).await.map_err(gone)
    }

    /// A channel was refused: because its slot is elsewhere, or in a way that ends the connection.
    fn refused(&self, wire: &mut Wire, why: LinkError) -> Result<(), LinkError> {
        let Some((slot, to)) = self.link.inner.routes.moved(&why, &self.endpoint)? else {
            return Err(why);
        };
        wire.asked.retain(|channel| slot_of(channel) != slot);
        self.heard.lock().channels.retain(|channel| slot_of(channel) != slot);
        // The listening ends with its last owner.
        let _ = self.moves.send(MovedSlot { slot, to });
        Ok(())
    }

    /// A connection that is logged in, and knows how channels are heard there.
    async fn open(&self) -> Result<Wire, LinkError> {
        let routes = &self.link.inner.routes;
        let dialer = routes.dialer();
        let opening = async {
            let (reader, writer) = split(dialer.stream(&self.endpoint).await?);
            let (tell, said) = mpsc::channel(ANSWERS_MAX);
            let reader = Task(routes.runtime().spawn(read(reader, self.events.clone(), tell)));
            let mut wire = Wire {
                writer,
                said,
                _reader: reader,
                asked: BTreeSet::new(),
                channels: routes.channels(),
                endpoint: self.endpoint.clone(),
                within: routes.watch().ping_within,
            };
            let login = dialer.auth();
            wire.send(login.as_slice()).await?;
            wire.send(&[mode()]).await?;
            if login.is_some()
                && let Value::ServerError(said) = wire.answer().await?
            {
                return Err(LinkError::from(&said));
            }
            let mode = wire.answer().await?;
            if matches!(mode, Value::BulkString(_)) && routes.may_be_either() {
                wire.channels = of_mode(&mode);
                routes.learn_channels(wire.channels);
            }
            Ok(wire)
        };
        dialer.in_time(&self.endpoint, opening).await
    }
}

/// The connection that is there now.
struct Wire {
    writer: WriteHalf<AnyStream>,
    said: mpsc::Receiver<ServerWord>,
    _reader: Task,
    /// What the server was asked to bring, and did not refuse so far.
    asked: BTreeSet<String>,
    channels: Channels,
    endpoint: Endpoint,
    within: Duration,
}

impl Wire {
    /// Listens to what is wanted and to nothing else.
    async fn follow(&mut self, wanted: BTreeSet<String>) -> Result<(), LinkError> {
        // One command for each: those of several slots cannot be asked for with one.
        let command = |word, channel| {
            let mut command = redis::cmd(word);
            command.arg(channel);
            command
        };
        let new = wanted.difference(&self.asked);
        let new = new.map(|channel| command(self.channels.subscribe(), channel));
        let old = self.asked.difference(&wanted);
        let old = old.map(|channel| command(self.channels.unsubscribe(), channel));
        let all: Vec<redis::Cmd> = new.chain(old).collect();
        self.asked = wanted;
        self.send(&all).await
    }

    async fn send(&mut self, commands: &[redis::Cmd]) -> Result<(), LinkError> {
        let bytes: Vec<u8> = commands.iter().flat_map(redis::Cmd::get_packed_command).collect();
        let sent = async {
            self.writer.write_all(&bytes).await?;
            self.writer.flush().await
        };
        match timeout(self.within, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.lost("the connection was closed")),
            Err(_) => Err(self.lost("nothing goes over the connection any more")),
        }
    }

    /// The answer to a command, before there are channels.
    async fn answer(&mut self) -> Result<Value, LinkError> {
        match self.said.recv().await {
            Some(ServerWord::Answer(answer)) => Ok(answer),
            Some(_) => Err(self.lost("it does not speak the Redis protocol")),
            None => Err(self.lost("the connection was closed")),
        }
    }

    fn lost(&self, why: &str) -> LinkError {
        LinkError::Unavailable(format!("{}: {why}", self.endpoint))
    }
}

/// Hands on what comes, to the end of the connection.
async fn read(
    mut stream: ReadHalf<AnyStream>,
    events: mpsc::Sender<Overheard>,
    answers: mpsc::Sender<ServerWord>,
) {
    let mut decoder = Default::default();
    let owed = Arc::new(AtomicBool::new(false));
    while let Ok(value) = redis::parse_redis_value_async(&mut decoder, &mut stream).await {
        let is_read = match ServerWord::read(value) {
            ServerWord::Message { channel, payload } => {
                hand_on(&events, &owed, Overheard::Message { channel, payload })
            }
            said => answers.send(said).await.is_ok(),
        };
        if !is_read {
            return;
        }
    }
}

/// Never waits for the reader of the events: one that is behind is told of a gap when it has room, and loses the
/// messages between. Whether there is a reader.
fn hand_on(events: &mpsc::Sender<Overheard>, owed: &Arc<AtomicBool>, event: Overheard) -> bool {
    if owed.load(Ordering::Acquire) {
        return !events.is_closed();
    }
    match events.try_send(event) {
        Ok(()) => true,
        Err(mpsc::error::TrySendError::Closed(_)) => false,
        Err(mpsc::error::TrySendError::Full(_)) => {
            owed.store(true, Ordering::Release);
            let (events, owed) = (events.clone(), owed.clone());
            tokio::spawn(async move {
                if let Ok(room) = events.reserve().await {
                    // First: what comes from now on is handed on, and what was dropped came before the gap is told.
                    owed.store(false, Ordering::Release);
                    room.send(Overheard::Gap { channel: None });
                }
            });
            true
        }
    }
}
