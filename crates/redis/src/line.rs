//! Pipeline to Redis: a thread that keeps one connection, and connects again when it is lost.
//!
//! Requests are sent and answered in the order in which they begin. After a lost connection, unanswered requests are
//! sent again on the next one, in the same order. So only repeatable requests may enter the pipeline.
//!
//! The thread that begins a request writes it, as far as the socket accepts it at once; the pipeline's own thread
//! writes the rest, and everything under TLS.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenure_journal::threads::spawn_or_die;

use tenure_core::redis_address::Endpoint;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::confirmation::Confirmation;
use crate::dial::{Connection, Dialer, ReadStream, WriteStream};
use crate::known::KnownScripts;
use crate::refusal::{is_of_one_request, moved_to};
use crate::resp::{self, RespValue, Words};
use crate::scripts::ScriptCall;

/// Pauses between attempts to connect: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// With waiting requests and no reply for this long, the connection counts as dead.
const SILENCE: Duration = Duration::from_secs(3);
/// Time after which a request is answered with an unknown outcome.
pub(crate) const PATIENCE: Duration = Duration::from_secs(6);
/// Interval of the checks for silence and for requests that waited too long.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Capacity that the output buffer keeps after a write, in bytes.
const OUT_BYTES: usize = 1 << 20;

/// A request to Redis.
pub(crate) enum RedisCommand {
    Script(ScriptCall),
    /// A script, directly followed by a `WAIT` for its replicas. Both are sent again together: on another connection
    /// Redis would wait for nothing.
    Confirmed(ScriptCall, Confirmation),
    /// Words of a command without a script.
    Plain(Words),
}

/// The callback of a request: gets the reply, or the reason why there is no reply.
pub(crate) type Hears = Box<dyn FnOnce(Result<RespValue, String>) + Send>;

struct Request {
    command: RedisCommand,
    begun: Instant,
    /// The reply of the script, while the same connection waits for the replicas.
    script: Option<RespValue>,
    /// True if its script was sent as text, not as a digest.
    sent_whole: bool,
    /// `None` once the request was given up. Replies come in the order of requests, so the request stays queued until
    /// its own reply comes or the connection is lost.
    hears: Option<Hears>,
    /// Redis has refused it, or a part of it.
    is_refused: bool,
}

impl Request {
    fn new(command: RedisCommand, hears: Hears) -> Request {
        Request {
            command,
            begun: Instant::now(),
            script: None,
            sent_whole: false,
            hears: Some(hears),
            is_refused: false,
        }
    }

    /// Takes a reply; `None` if the request needs another one.
    fn takes(&mut self, value: RespValue) -> Option<Result<RespValue, String>> {
        self.is_refused |= matches!(value, RespValue::Refused(_));
        let RedisCommand::Confirmed(_, confirmation) = &self.command else {
            return Some(unless_refused(value));
        };
        match self.script.take() {
            Some(script) => {
                Some(unless_refused(script).and_then(|script| confirmation.said(script, &value)))
            }
            None => {
                self.script = Some(value);
                None
            }
        }
    }
}

fn unless_refused(value: RespValue) -> Result<RespValue, String> {
    match value {
        RespValue::Refused(why) => Err(why),
        value => Ok(value),
    }
}

/// The pipeline. Its thread ends when this is dropped.
pub(crate) struct RedisLine(Arc<LineInside>);

impl RedisLine {
    pub fn start(dialer: Dialer) -> io::Result<RedisLine> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let inside = Arc::new(LineInside::new());
        let keeper = LineKeeper { dialer, inside: inside.clone() };
        spawn_or_die("tenure-journal", move || runtime.block_on(keeper.keep()))?;
        Ok(RedisLine(inside))
    }

    /// Begins a request. `hears` runs in the thread of the pipeline and must not block.
    pub fn begin(&self, command: RedisCommand, hears: Hears) {
        self.0.begin(Request::new(command, hears));
    }

    /// The number of replicas that have the last write, while that is too few and Redis can be reached.
    pub fn too_few_replicas(&self) -> Option<u32> {
        let state = self.0.lock();
        // Requests that wait for replicas are retried, so an old number concerns no request any more.
        let lasts = |at: &Instant| at.elapsed() < PATIENCE && state.trouble.is_none();
        state.too_few_replicas.filter(|(_, at)| lasts(at)).map(|(have, _)| have)
    }

    /// The reason why Redis cannot be reached now, while requests are still retried.
    pub fn trouble(&self) -> Option<String> {
        self.0.lock().trouble.clone()
    }
}

impl Drop for RedisLine {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_one();
    }
}

struct LineState {
    /// Unanswered requests, in the order in which they began.
    waiting: VecDeque<Request>,
    /// Individually refused requests, with the reasons. The next look answers them, because a caller may retry at once.
    refused: Vec<(Hears, String)>,
    /// The scripts that were sent whole on this connection.
    known: KnownScripts,
    /// Bytes that this connection still has to write.
    out: Vec<u8>,
    /// True while there is a connection; all waiting requests were or will be written on it.
    is_connected: bool,
    /// The socket of the connection, unless it uses TLS.
    socket: Option<Arc<OwnedWriteHalf>>,
    /// The time of the last reply, or the time since which one is expected.
    heard: Instant,
    /// The time at which this connection was made, or last gave an answer that was no refusal.
    served: Instant,
    /// The reason of the last failed connection or the last refusal; `None` after any answer since.
    trouble: Option<String>,
    /// The number of replicas at the last confirmation, if that was too few, and its time. Starts as `None`.
    too_few_replicas: Option<(u32, Instant)>,
    /// The pause before the next attempt to connect.
    pause: Duration,
    /// True once the pipeline is no longer needed.
    is_closed: bool,
}

struct LineInside {
    state: Mutex<LineState>,
    /// Notified when the socket did not take all bytes at once, or the pipeline is closed.
    changed: Notify,
}

impl LineState {
    fn write(&mut self, request: &mut Request) {
        request.sent_whole = match &request.command {
            RedisCommand::Plain(words) => {
                Words::write(&[words], &mut self.out);
                false
            }
            RedisCommand::Script(call) => self.known.write(call, &mut self.out),
            RedisCommand::Confirmed(call, confirmation) => {
                let sent_whole = self.known.write(call, &mut self.out);
                Words::write(&[&confirmation.words()], &mut self.out);
                sent_whole
            }
        };
    }

    /// Matches a reply with the first waiting request. Returns its answer, unless it needs another reply.
    fn takes(&mut self, value: RespValue) -> Option<(Request, Result<RespValue, String>)> {
        let LineState { waiting, known, too_few_replicas, .. } = self;
        let first = waiting.front_mut()?;
        if first.sent_whole
            && first.script.is_none()
            && let RedisCommand::Script(call) | RedisCommand::Confirmed(call, _) = &first.command
        {
            known.answered(call, &value);
        }
        let have = match value {
            RespValue::Int(have) => Some(u32::try_from(have).unwrap_or_default()),
            _ => None,
        };
        let said = first.takes(value)?;
        if let RedisCommand::Confirmed(..) = &first.command {
            *too_few_replicas = have.filter(|_| said.is_err()).map(|have| (have, Instant::now()));
        }
        waiting.pop_front().map(|request| (request, said))
    }

    /// Writes as much as the socket takes at once. The reader notices an error.
    fn flush(&mut self) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Ok(()) };
        let mut written = 0;
        let done = loop {
            if written == self.out.len() {
                break Ok(());
            }
            match socket.try_write(&self.out[written..]) {
                Ok(bytes) => written += bytes,
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(why) => break Err(why),
            }
        };
        self.out.drain(..written);
        self.out.shrink_to(OUT_BYTES);
        done
    }
}

impl LineInside {
    fn new() -> LineInside {
        let state = LineState {
            waiting: VecDeque::new(),
            refused: Vec::new(),
            known: KnownScripts::default(),
            out: Vec::new(),
            is_connected: false,
            socket: None,
            heard: Instant::now(),
            served: Instant::now(),
            trouble: None,
            too_few_replicas: None,
            pause: PAUSE_MIN,
            is_closed: false,
        };
        LineInside { state: Mutex::new(state), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, mut request: Request) {
        let mut state = self.lock();
        if state.is_closed {
            // Dropped outside the lock: its callback may begin another request.
            drop(state);
            return drop(request);
        }
        if state.is_connected {
            let is_first = state.out.is_empty();
            state.write(&mut request);
            if state.waiting.is_empty() {
                state.heard = request.begun;
            }
            // Bytes of earlier requests go first, and are on their way. The reader notices a broken connection.
            if is_first {
                let _ = state.flush();
            }
        }
        state.waiting.push_back(request);
        let is_left = !state.out.is_empty();
        drop(state);
        if is_left {
            self.changed.notify_one();
        }
    }

    /// Takes a new connection: writes all waiting requests again.
    fn connected(&self, socket: Option<Arc<OwnedWriteHalf>>) {
        let mut state = self.lock();
        (state.is_connected, state.socket) = (true, socket);
        (state.heard, state.served) = (Instant::now(), Instant::now());
        state.known.clear();
        state.out.clear();
        let mut waiting = std::mem::take(&mut state.waiting);
        for request in &mut waiting {
            (request.script, request.is_refused) = (None, false);
            state.write(request);
        }
        state.waiting = waiting;
        drop(state);
        self.changed.notify_one();
    }

    fn disconnected(&self) {
        let mut state = self.lock();
        (state.is_connected, state.socket) = (false, None);
    }

    /// Writes the bytes that the requesting threads leave.
    async fn writes(&self, mut writer: WriteStream) -> Ended {
        let lost = |why: io::Error| Ended::Lost { why: why.to_string(), to: None };
        loop {
            let out = {
                let mut state = self.lock();
                match &mut writer {
                    _ if state.is_closed => return Ended::Closed,
                    WriteStream::Socket(_) => match state.flush() {
                        Ok(()) => Vec::new(),
                        Err(why) => return lost(why),
                    },
                    WriteStream::Tls(_) => std::mem::take(&mut state.out),
                }
            };
            let written = match &mut writer {
                WriteStream::Tls(stream) if !out.is_empty() => write_through(stream, &out).await,
                WriteStream::Socket(socket) if !self.lock().out.is_empty() => {
                    socket.writable().await
                }
                _ => {
                    self.changed.notified().await;
                    Ok(())
                }
            };
            if let Err(why) = written {
                return lost(why);
            }
        }
    }

    /// Reads replies, and gives each to the callback of its request.
    async fn reads(&self, mut reader: ReadStream, at: &Endpoint) -> Ended {
        loop {
            let value = match resp::read(&mut reader).await {
                Ok(value) => value,
                Err(why) => return Ended::Lost { why: why.to_string(), to: None },
            };
            let answered = {
                let mut state = self.lock();
                state.heard = Instant::now();
                if let RespValue::Refused(why) = &value {
                    // A server that has refused everything for a while may be a former primary, or a proxy to it.
                    let serves = state.served.elapsed() < SILENCE;
                    // The request was not done here: all are repeated.
                    if !serves || !is_of_one_request(why) {
                        return Ended::Lost { why: why.clone(), to: moved_to(why, at) };
                    }
                    state.trouble = Some(why.clone());
                } else {
                    // The connection works, so the next loss is a new one.
                    (state.served, state.pause, state.trouble) = (Instant::now(), PAUSE_MIN, None);
                }
                if state.waiting.is_empty() {
                    return Ended::Lost {
                        why: "it answers what nobody asked".to_owned(),
                        to: None,
                    };
                }
                match state.takes(value) {
                    Some((Request { hears: Some(hears), is_refused: true, .. }, Err(why))) => {
                        state.refused.push((hears, why));
                        None
                    }
                    answered => answered,
                }
            };
            if let Some((Request { hears: Some(hears), .. }, said)) = answered {
                hears(said);
            }
        }
    }

    /// Ends when an expected answer does not come. Gives up requests that waited too long, but keeps the connection.
    async fn watches(&self) -> Ended {
        loop {
            sleep(LOOK_EVERY).await;
            {
                let state = self.lock();
                if !state.waiting.is_empty() && state.heard.elapsed() > SILENCE {
                    return Ended::Lost { why: "it does not answer".to_owned(), to: None };
                }
            }
            self.give_up("it answers too slowly");
        }
    }

    async fn serve(&self, connection: Connection) -> Ended {
        let Connection { at, reader, writer } = connection;
        self.connected(match &writer {
            WriteStream::Socket(socket) => Some(socket.clone()),
            WriteStream::Tls(_) => None,
        });
        let ended = tokio::select! {
            ended = self.writes(writer) => ended,
            ended = self.reads(reader, &at) => ended,
            ended = self.watches() => ended,
        };
        self.disconnected();
        ended
    }

    /// Answers requests that waited too long, and those that were refused.
    fn give_up(&self, why: &str) {
        let (over, refused) = {
            let mut state = self.lock();
            let is_over = |request: &&mut Request| request.begun.elapsed() > PATIENCE;
            let over = state.waiting.iter_mut().take_while(is_over);
            let hears = over.filter_map(|request| request.hears.take()).collect::<Vec<_>>();
            if !state.is_connected {
                state.waiting.retain(|request| request.hears.is_some());
            }
            (hears, std::mem::take(&mut state.refused))
        };
        refused.into_iter().for_each(|(hears, why)| hears(Err(why)));
        over.into_iter().for_each(|hears| hears(Err(why.to_owned())));
    }

    /// Stops answering: drops all callbacks, outside the lock.
    fn end(&self) {
        let waiting = {
            let mut state = self.lock();
            state.is_closed = true;
            (std::mem::take(&mut state.waiting), std::mem::take(&mut state.refused))
        };
        drop(waiting);
    }
}

async fn write_through(stream: &mut (impl AsyncWrite + Unpin), out: &[u8]) -> io::Result<()> {
    stream.write_all(out).await?;
    stream.flush().await
}

/// Reasons to stop using a connection.
enum Ended {
    /// The pipeline is no longer needed.
    Closed,
    /// It broke, or Redis refused something that it will accept later or elsewhere.
    Lost { why: String, to: Option<Endpoint> },
}

struct LineKeeper {
    dialer: Dialer,
    inside: Arc<LineInside>,
}

impl LineKeeper {
    async fn keep(self) {
        let inside = &self.inside;
        let mut to = None;
        while !inside.lock().is_closed {
            let why = match self.dialer.connect(to.as_ref()).await {
                Ok(connection) => {
                    let since = Instant::now();
                    let Ended::Lost { why, to: next } = inside.serve(connection).await else {
                        return;
                    };
                    to = next;
                    // This avoids a loop of requests to a server that accepts connections and ends them at once. A
                    // connection that was idle for a while counts as working, too.
                    if since.elapsed() > PAUSE_MAX {
                        inside.lock().pause = PAUSE_MIN;
                    }
                    why
                }
                Err(why) => {
                    to = None;
                    why
                }
            };
            inside.give_up(&why);
            let pause = {
                let mut state = inside.lock();
                state.trouble = Some(why);
                state.pause
            };
            sleep(pause).await;
            inside.lock().pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

impl Drop for LineKeeper {
    fn drop(&mut self) {
        self.inside.end();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};

    use super::*;
    use crate::keys::StoreKeys;
    use crate::scripts::StoreNaming;

    fn somewhere() -> Endpoint {
        Endpoint { host: "127.0.0.1".to_owned(), port: 6379 }
    }

    /// A simulated store: waits for `asked`, writes `replies`, and ends. Returns all bytes that it received.
    async fn store_says(mut there: DuplexStream, asked: &str, replies: &[u8]) -> String {
        let mut seen = Vec::new();
        let text = |seen: &[u8]| String::from_utf8_lossy(seen).into_owned();
        while !text(&seen).contains(asked) {
            let read = there.read_buf(&mut seen).await.expect("it is open");
            assert!(read > 0, "it was sent {:?}", text(&seen));
        }
        there.write_all(replies).await.expect("it is not full");
        there.shutdown().await.expect("it is open");
        text(&seen)
    }

    /// The pause after a connection that got one request, and sent this reply before it was lost.
    async fn pause_after(reply: &[u8]) -> Duration {
        let (here, there) = duplex(1 << 10);
        let inside = LineInside::new();
        inside.lock().pause = PAUSE_MAX;
        let command = RedisCommand::Plain(Words::of(&["PING"]));
        inside.begin(Request::new(command, Box::new(drop)));
        let serves = inside.serve(Connection::through(somewhere(), here));
        let (ended, _) = tokio::join!(serves, store_says(there, "PING", reply));
        assert!(matches!(ended, Ended::Lost { .. }));
        inside.lock().pause
    }

    #[test]
    fn a_script_and_its_wait_for_replicas_are_sent_again_together() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(async {
            let naming = StoreNaming { store: 1, ttl: 0 };
            let call = naming.call(&StoreKeys::of("shop"));
            let command = RedisCommand::Confirmed(call, Confirmation { replicas: 1 });
            let inside = LineInside::new();
            let (told, said) = std::sync::mpsc::channel();
            let hears = Box::new(move |reply| drop(told.send(reply)));
            inside.begin(Request::new(command, hears));
            // On the first connection the script is answered, but the `WAIT` is not.
            for (replies, answered) in [(&b"+done 7\r\n"[..], false), (b"+done 8\r\n:1\r\n", true)]
            {
                let (here, there) = duplex(1 << 12);
                let serves = inside.serve(Connection::through(somewhere(), here));
                let (_, written) = tokio::join!(serves, store_says(there, "WAIT", replies));
                assert!(written.contains("EVAL"), "{written:?}");
                let done = said
                    .try_recv()
                    .ok()
                    .map(|said| said.map(|said| said.text().map(str::to_owned)));
                assert_eq!(done, answered.then(|| Ok(Some("done 8".to_owned()))));
            }
        });
    }

    #[test]
    fn pauses_begin_anew_once_a_request_was_answered() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(async {
            for (reply, pause) in [
                (&b"+PONG\r\n"[..], PAUSE_MIN),
                (b"-READONLY not here\r\n", PAUSE_MAX),
                (b"", PAUSE_MAX),
            ] {
                let said = String::from_utf8_lossy(reply);
                assert_eq!(pause_after(reply).await, pause, "{said:?}");
            }
        });
    }

    /// Sends two requests, the first begun `ago` earlier. Returns the answers after these replies.
    async fn answers(
        ago: Duration,
        replies: &'static [u8],
    ) -> Vec<(u32, Result<RespValue, String>)> {
        let (here, there) = duplex(1 << 10);
        let (inside, (told, said)) = (LineInside::new(), std::sync::mpsc::channel());
        for number in [1, 2] {
            let told = told.clone();
            let hears = Box::new(move |reply| drop(told.send((number, reply))));
            inside.begin(Request::new(RedisCommand::Plain(Words::of(&["PING"])), hears));
        }
        let first = inside.lock().waiting.front_mut().map(|first| first.begun -= ago);
        assert!(first.is_some());
        let asked_twice = "PING\r\n*1\r\n$4\r\nPING";
        let later = async {
            // Leaves time for the check for requests that waited too long.
            if ago > PATIENCE {
                tokio::time::sleep(LOOK_EVERY * 2).await;
            }
            store_says(there, asked_twice, replies).await
        };
        let serves = inside.serve(Connection::through(somewhere(), here));
        tokio::join!(serves, later);
        let mut all: Vec<_> = said.try_iter().collect();
        inside.give_up("nobody asks any more");
        all.extend(said.try_iter());
        all
    }

    #[tokio::test]
    async fn a_refused_request_alone_is_answered_and_the_connection_stays() {
        let said = answers(Duration::ZERO, b"-NOPERM no right\r\n+PONG\r\n").await;
        let pong = Ok(RespValue::Text(b"PONG".to_vec()));
        // The refusal is answered at the next look: a caller that retries at once would run in a loop.
        assert_eq!(said, [(2, pong), (1, Err("NOPERM no right".to_owned()))]);
        // An error of the server ends the connection: both requests are sent again.
        assert_eq!(answers(Duration::ZERO, b"-READONLY here\r\n+PONG\r\n").await, []);
    }

    #[tokio::test]
    async fn a_request_given_up_keeps_its_place_among_the_replies() {
        let said = answers(PATIENCE * 2, b"+one\r\n+two\r\n").await;
        let two = Ok(RespValue::Text(b"two".to_vec()));
        assert_eq!(said, [(1, Err("it answers too slowly".to_owned())), (2, two)]);
    }
}
