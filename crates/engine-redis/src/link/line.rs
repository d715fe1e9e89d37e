//! One connection that is kept: made, watched, and made anew when it is gone, by a task of its own.
//!
//! A caller never makes a connection and never waits for one beyond the first second of an outage.
//! A connection that is dead and does not say so is found by its own task, also when nobody calls.

use std::sync::Arc;
use std::time::Duration;

use tenure_engine::redis_address::Endpoint;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};

use super::dial::{Connection, SharedDialer, Task};
use super::error::LinkError;
use super::nonce::Requests;

/// Pauses between tries to connect: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(25);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Why a connection is gone.
const CLOSED: &str = "the connection was closed";
const FOREIGN: &str = "a reply belonged to another request, so the connection was closed";

/// The times by which a connection is watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PingTimes {
    /// Between two PINGs.
    pub ping_every: Duration,
    /// Within which one is answered.
    pub ping_within: Duration,
    /// For so long after a loss callers wait for the next connection.
    pub patience: Duration,
}

/// What callers see of a connection.
enum LineState {
    /// It is being made; until then callers wait, later they are told why at once.
    Opening { until: Instant, why: Option<LinkError> },
    /// It is there.
    Up(Requests),
}

/// A connection that is kept.
pub(crate) struct Line {
    state: watch::Receiver<LineState>,
    _task: Task,
}

impl Line {
    /// Starts to make it. `lost` is told at each loss and each try that failed.
    pub fn start(
        dialer: SharedDialer,
        endpoint: Endpoint,
        watch: PingTimes,
        lost: Arc<Notify>,
    ) -> Self {
        let opening = LineState::Opening { until: Instant::now() + watch.patience, why: None };
        let (sender, state) = watch::channel(opening);
        let runtime = dialer.runtime.clone();
        let keeper = Keeper { dialer, endpoint, watch, lost, state: sender };
        Line { state, _task: Task(runtime.spawn(keeper.keep())) }
    }

    /// The connection, if it is there.
    pub fn now(&self) -> Option<Requests> {
        match &*self.state.borrow() {
            LineState::Up(requests) if requests.is_sound() => Some(requests.clone()),
            LineState::Up(_) | LineState::Opening { .. } => None,
        }
    }

    /// Why it is not there; `None` if it is, or if it was never yet tried in full.
    pub fn why(&self) -> Option<LinkError> {
        match &*self.state.borrow() {
            LineState::Up(_) => None,
            LineState::Opening { why, .. } => why.clone(),
        }
    }

    /// The connection, as soon as it is there; an error when the time to wait for it is over.
    pub async fn soon(&self) -> Result<Requests, LinkError> {
        let mut state = self.state.clone();
        loop {
            let until = match &*state.borrow_and_update() {
                LineState::Up(requests) if requests.is_sound() => return Ok(requests.clone()),
                // It is being closed.
                LineState::Up(_) => Instant::now() + PAUSE_MAX,
                LineState::Opening { until, .. } => *until,
            };
            let over = until <= Instant::now();
            if over || !matches!(timeout_at(until, state.changed()).await, Ok(Ok(()))) {
                return match &*state.borrow() {
                    LineState::Up(requests) if requests.is_sound() => Ok(requests.clone()),
                    LineState::Opening { why: Some(why), .. } => Err(why.clone()),
                    LineState::Up(_) | LineState::Opening { why: None, .. } => {
                        Err(LinkError::Unavailable("there is no connection yet".to_owned()))
                    }
                };
            }
        }
    }
}

struct Keeper {
    dialer: SharedDialer,
    endpoint: Endpoint,
    watch: PingTimes,
    lost: Arc<Notify>,
    state: watch::Sender<LineState>,
}

impl Keeper {
    async fn keep(self) {
        let mut pause = PAUSE_MIN;
        loop {
            match self.dialer.connect(&self.endpoint).await {
                Ok(mut connection) => {
                    self.state.send_replace(LineState::Up(connection.requests.clone()));
                    let since = Instant::now();
                    let why = self.watch_over(&mut connection).await;
                    // Callers must find the new state before they can find a dead connection.
                    let why = LinkError::Unavailable(format!("{}: {why}", self.endpoint));
                    let until = Instant::now() + self.watch.patience;
                    self.state.send_replace(LineState::Opening { until, why: Some(why) });
                    drop(connection);
                    self.lost.notify_one();
                    // A server that takes connections and ends them at once is not asked in a loop.
                    if since.elapsed() > PAUSE_MAX {
                        pause = PAUSE_MIN;
                        continue;
                    }
                }
                Err(failed) => {
                    self.state.send_modify(|state| {
                        if let LineState::Opening { why, .. } = state {
                            *why = Some(failed);
                        }
                    });
                    self.lost.notify_one();
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Returns when the connection is gone, and says why.
    async fn watch_over(&self, connection: &mut Connection) -> &'static str {
        let mut ticks = interval(self.watch.ping_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        let unsound = connection.requests.clone();
        loop {
            tokio::select! {
                _ = &mut connection.driver.0 => return CLOSED,
                () = unsound.unsound() => return FOREIGN,
                _ = ticks.tick() => {}
            }
            match timeout(self.watch.ping_within, connection.requests.ping()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) if !unsound.is_sound() => return FOREIGN,
                Ok(Err(_)) => return CLOSED,
                Err(_) => return "nothing comes over the connection any more",
            }
        }
    }
}
