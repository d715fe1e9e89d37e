//! Tracks the activity of each connection, and how many requests the whole server is answering.
//!
//! Times are those of this process, and decide only when a slow or silent caller is dropped.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::call_bounds::CountedCall;
use crate::config::Config;
use crate::strangers::Stranger;
use crate::undelivered::Undelivered;

/// All requests of a server.
///
/// A drain ends when the requests that it found are answered, and those that keep leases alive or end them. Other
/// requests that come meanwhile are answered too, but the drain does not wait for them: a caller that pushes or polls
/// all the time would hold it up until its deadline.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// Requests that a drain waits for.
    now: AtomicUsize,
    answered: AtomicU64,
    draining: watch::Sender<bool>,
    last: Mutex<Instant>,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Traffic {
            now: AtomicUsize::new(0),
            answered: AtomicU64::new(0),
            draining: watch::Sender::new(false),
            last: Mutex::new(Instant::now()),
        }
    }

    pub(crate) fn drain(&self) {
        *self.last() = Instant::now();
        self.draining.send_replace(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Ends when the server drains.
    pub(crate) async fn drained(&self) {
        // The other end of the channel is in `self`, so this cannot fail.
        let _ = self.draining.subscribe().wait_for(|drains| *drains).await;
    }

    /// Requests that were answered, whatever the answer.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Whether no request that a drain waits for is being answered now, or was within the last `span`.
    pub(crate) fn is_quiet(&self, span: Duration) -> bool {
        self.now.load(Ordering::Acquire) == 0 && self.last().elapsed() >= span
    }

    fn last(&self) -> MutexGuard<'_, Instant> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The activity of a connection.
#[derive(Clone, Copy, Debug)]
struct Doing {
    /// Requests that are being answered: at most one, except over HTTP/2.
    requests: usize,
    /// HTTP/2: many requests share the connection, and incoming bytes need not be a head.
    is_shared: bool,
    /// Since when the head of the next request is coming.
    head_since: Option<Instant>,
    /// Since when the connection has been idle.
    idle_since: Instant,
    /// Since when the other side takes none of the written bytes.
    stuck_since: Option<Instant>,
    /// The number of the next request.
    next: u64,
}

/// Requests that a connection may have under way before it has shown a token. A browser loads a page and its files.
const STRANGER_REQUESTS_MAX: usize = 16;

/// Leases that were granted to a request, until its answer has left.
#[derive(Debug)]
struct Owed {
    /// The number of the request in the connection.
    number: u64,
    grant: Undelivered,
    /// The system has all of the answer; it leaves with the next flush.
    is_taken: bool,
}

/// A part of an answer, among many answers that may wait for a slow reader.
#[derive(Debug)]
struct SlowPart {
    /// The number of the request that it answers.
    number: u64,
    /// Since when none of it was taken.
    since: Instant,
}

/// One connection, shared by its stream, its requests and its driver.
#[derive(Debug)]
pub(crate) struct ConnectionTraffic {
    traffic: Arc<Traffic>,
    /// Its entry among the strangers. `None`: it has shown a token.
    stranger: Mutex<Option<Stranger>>,
    doing: Mutex<Doing>,
    /// Grants whose answers have not left yet.
    undelivered: Mutex<Vec<Owed>>,
    /// Parts of answers that wait for their readers: over HTTP/2 alone, where each request has a pace of its own.
    held: Mutex<Vec<SlowPart>>,
    /// Notified when the connection must end: it sent too many frames that are no part of a request.
    flooded: Notify,
}

/// The next step for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SocketVerdict {
    /// It is well; look again at this time.
    Well(Instant),
    /// Its next head comes too slowly: answer 408.
    SlowHead,
    /// Nobody uses it, or nobody reads: close it.
    Over,
}

impl ConnectionTraffic {
    pub(crate) fn new(traffic: Arc<Traffic>, stranger: Option<Stranger>) -> Self {
        let doing = Doing {
            requests: 0,
            is_shared: false,
            head_since: None,
            idle_since: Instant::now(),
            stuck_since: None,
            next: 0,
        };
        let (undelivered, held) = (Mutex::default(), Mutex::default());
        let stranger = Mutex::new(stranger);
        let (doing, flooded) = (Mutex::new(doing), Notify::new());
        ConnectionTraffic { traffic, stranger, doing, undelivered, held, flooded }
    }

    pub(crate) fn flooded(&self) -> &Notify {
        &self.flooded
    }

    /// Whether it has shown no token yet.
    pub(crate) fn is_of_a_stranger(&self) -> bool {
        self.stranger().is_some()
    }

    fn stranger(&self) -> MutexGuard<'_, Option<Stranger>> {
        self.stranger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a connection without a token has its maximum of requests under way: the next one is not answered. Unread
    /// answers take memory, which the budget of bytes limits for a caller with a token.
    pub(crate) fn is_crowded(&self) -> bool {
        self.doing().requests > STRANGER_REQUESTS_MAX && self.is_of_a_stranger()
    }

    /// From now on many requests share the connection.
    pub(crate) fn share(&self) {
        let mut doing = self.doing();
        doing.is_shared = true;
        doing.head_since = None;
    }

    fn doing(&self) -> MutexGuard<'_, Doing> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that bytes came.
    pub(crate) fn heard(&self) {
        let mut doing = self.doing();
        if doing.requests == 0 && !doing.is_shared && doing.head_since.is_none() {
            doing.head_since = Some(Instant::now());
        }
    }

    /// Records that the other side took bytes, or takes none at the moment.
    pub(crate) fn wrote(&self, taken: bool) {
        let mut doing = self.doing();
        if taken {
            doing.stuck_since = None;
        } else if doing.stuck_since.is_none() {
            doing.stuck_since = Some(Instant::now());
        }
    }

    /// Records that everything written has left.
    pub(crate) fn flushed(&self) {
        self.grants().retain(|owed| !owed.is_taken);
    }

    /// Takes grants that never left; the connection is over.
    pub(crate) fn undelivered(&self) -> Vec<Undelivered> {
        std::mem::take(&mut *self.grants()).into_iter().map(|owed| owed.grant).collect()
    }

    /// The answer to this request will never leave.
    fn lost(&self, number: u64) {
        let found = {
            let mut grants = self.grants();
            let at = grants.iter().position(|owed| owed.number == number && !owed.is_taken);
            at.map(|at| grants.swap_remove(at))
        };
        if let Some(owed) = found {
            owed.grant.undo();
        }
    }

    fn grants(&self) -> MutexGuard<'_, Vec<Owed>> {
        self.undelivered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, Vec<SlowPart>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A head is complete; its request is being answered until the turn is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Turn {
        let mut doing = self.doing();
        doing.requests += 1;
        doing.head_since = None;
        let (number, is_shared) = (doing.next, doing.is_shared);
        doing.next += 1;
        drop(doing);
        let turn = Turn {
            line: self.clone(),
            number,
            is_shared,
            owes: AtomicBool::new(false),
            counted: AtomicBool::new(false),
            of_token: OnceLock::new(),
        };
        if !self.traffic.is_draining() {
            turn.keeps();
        }
        turn
    }

    /// How long a healthy connection may go unchecked: a head may begin to come, or an answer may get stuck, at any
    /// moment.
    pub(crate) fn look_every(config: &Config) -> Duration {
        config.head_max.min(config.idle_max).min(config.write_pause_max)
    }

    /// Judges the connection at this time.
    pub(crate) fn look(&self, config: &Config, now: Instant) -> SocketVerdict {
        let doing = *self.doing();
        if let Some(since) = doing.stuck_since {
            // Also when the answer is made and only its last bytes are stuck: its grant is undone no later.
            let end = since + config.write_pause_max;
            return if now >= end { SocketVerdict::Over } else { SocketVerdict::Well(end) };
        }
        let oldest = self.held().iter().map(|held| held.since).min();
        if oldest.is_some_and(|since| now >= since + config.write_pause_max) {
            return SocketVerdict::Over;
        }
        if doing.requests > 0 {
            return SocketVerdict::Well(now + config.write_pause_max);
        }
        match doing.head_since {
            Some(since) if now >= since + config.head_max => SocketVerdict::SlowHead,
            Some(since) => SocketVerdict::Well(since + config.head_max),
            // A caller connects in order to send a request.
            None if doing.next == 0 && now >= doing.idle_since + config.head_max => {
                SocketVerdict::Over
            }
            None if now >= doing.idle_since + config.idle_max => SocketVerdict::Over,
            None => SocketVerdict::Well(now + ConnectionTraffic::look_every(config)),
        }
    }
}

/// One request while it is being answered. It ends with the last byte of its answer's body.
#[derive(Debug)]
pub(crate) struct Turn {
    line: Arc<ConnectionTraffic>,
    /// The number of the request in the connection.
    number: u64,
    /// Other requests share the connection.
    is_shared: bool,
    /// The answer grants something and was not handed on yet.
    owes: AtomicBool,
    /// A drain waits for the request.
    counted: AtomicBool,
    /// The request among those of its token. Initially empty.
    of_token: OnceLock<CountedCall>,
}

impl Turn {
    /// Counts the request among those of its token until its answer has left.
    pub(crate) fn counts(&self, call: CountedCall) {
        // A request has one caller.
        let _ = self.of_token.set(call);
    }

    /// The answer grants something: the grant is undone if the answer does not leave.
    pub(crate) fn granted(&self, grant: Undelivered) {
        self.owes.store(true, Ordering::Release);
        self.line.grants().push(Owed { number: self.number, grant, is_taken: false });
    }

    /// Tracks a part of the answer that is handed on now; `None` if nobody needs to know when it has left.
    pub(crate) fn outgoing(&self) -> Option<Outgoing> {
        let owes = self.owes.swap(false, Ordering::AcqRel);
        if self.is_shared {
            let mut held = self.line.held();
            held.push(SlowPart { number: self.number, since: Instant::now() });
        }
        (owes || self.is_shared).then(|| Outgoing {
            line: self.line.clone(),
            number: self.number,
            owes,
            is_shared: self.is_shared,
        })
    }

    /// The caller showed a token, or another credential.
    pub(crate) fn is_of_a_caller(&self) {
        // The entry is dropped without the lock.
        let stranger = self.line.stranger().take();
        drop(stranger);
    }

    /// A drain waits for the request from now on.
    pub(crate) fn keeps(&self) {
        if !self.counted.swap(true, Ordering::AcqRel) {
            self.line.traffic.now.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = Instant::now();
        {
            let mut doing = self.line.doing();
            doing.requests -= 1;
            doing.idle_since = now;
        }
        if *self.owes.get_mut() {
            self.line.lost(self.number);
        }
        let traffic = &self.line.traffic;
        traffic.answered.fetch_add(1, Ordering::Relaxed);
        if *self.counted.get_mut() {
            if traffic.is_draining() {
                *traffic.last() = now;
            }
            traffic.now.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// A part of an answer between the request that handed it on and the system.
#[derive(Debug)]
pub(crate) struct Outgoing {
    line: Arc<ConnectionTraffic>,
    number: u64,
    /// The part grants something.
    owes: bool,
    is_shared: bool,
}

impl Outgoing {
    /// Some of it was taken.
    pub(crate) fn moves(&self) {
        let mut held = self.line.held();
        if let Some(held) = held.iter_mut().find(|held| held.number == self.number) {
            held.since = Instant::now();
        }
    }

    /// All of it was taken: it leaves with the next flush.
    pub(crate) fn taken(&mut self) {
        if std::mem::take(&mut self.owes) {
            let mut grants = self.line.grants();
            if let Some(owed) = grants.iter_mut().find(|owed| owed.number == self.number) {
                owed.is_taken = true;
            }
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if self.is_shared {
            let mut held = self.line.held();
            if let Some(at) = held.iter().position(|held| held.number == self.number) {
                held.swap_remove(at);
            }
        }
        if self.owes {
            self.line.lost(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_closed_when_slow_idle_or_unread() {
        let config = Config::default();
        let line = Arc::new(ConnectionTraffic::new(Arc::new(Traffic::new()), None));
        let at = Instant::now();
        assert!(matches!(line.look(&config, at), SocketVerdict::Well(_)));
        assert_eq!(line.look(&config, at + config.idle_max * 2), SocketVerdict::Over);
        line.heard();
        assert_eq!(line.look(&config, at + config.head_max * 2), SocketVerdict::SlowHead);
        let turn = line.begin();
        line.heard();
        assert!(matches!(line.look(&config, at + config.idle_max * 2), SocketVerdict::Well(_)));
        line.wrote(false);
        assert_eq!(line.look(&config, at + config.write_pause_max * 2), SocketVerdict::Over);
        line.wrote(true);
        assert!(matches!(line.look(&config, at + config.idle_max * 2), SocketVerdict::Well(_)));
        line.wrote(false);
        let soon = at + config.write_pause_max / 2;
        assert!(
            matches!(line.look(&config, soon), SocketVerdict::Well(next) if next <= soon + config.write_pause_max)
        );
        line.wrote(true);
        assert!(!line.traffic.is_quiet(Duration::ZERO));
        drop(turn);
        assert!(line.traffic.is_quiet(Duration::ZERO));
        assert_eq!(line.traffic.answered(), 1);
    }

    #[test]
    fn a_drain_waits_for_what_it_found_and_for_leases_alone() {
        let traffic = Arc::new(Traffic::new());
        let line = Arc::new(ConnectionTraffic::new(traffic.clone(), None));
        let found = line.begin();
        traffic.drain();
        assert!(!traffic.is_quiet(Duration::ZERO));
        drop(found);
        assert!(traffic.is_quiet(Duration::ZERO));
        let since = *traffic.last();
        let push = line.begin();
        assert!(traffic.is_quiet(Duration::ZERO));
        drop(push);
        assert_eq!(*traffic.last(), since);
        let settle = line.begin();
        settle.keeps();
        assert!(!traffic.is_quiet(Duration::ZERO));
        drop(settle);
        assert!(*traffic.last() > since);
        assert_eq!(traffic.answered(), 3);
    }
}
