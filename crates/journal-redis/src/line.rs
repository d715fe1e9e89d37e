//! A line to Redis that is kept: a thread with one connection, which it makes anew when it is lost.
//!
//! Requests go out in the order in which they are begun and are answered in it. What was not answered when a connection
//! was lost goes out again on the next one, in the same order. So it must only be given requests that may be repeated.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use tenure_engine::redis_address::Endpoint;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use crate::dial::{Connection, Dialer};
use crate::resp::{self, RespValue, Words};
use crate::scripts::{Script, ScriptCall};

/// Pauses between tries to connect: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Requests are waiting and nothing came for this long: the connection is taken for dead.
const SILENCE: Duration = Duration::from_secs(3);
/// How long a request is tried before it is answered that nobody knows.
pub(crate) const PATIENCE: Duration = Duration::from_secs(6);
/// How often the line looks for silence and for requests that have waited too long.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Requests are written together up to here.
const WRITE_BYTES: usize = 1 << 20;

/// What is said to Redis.
pub(crate) enum RedisCommand {
    Script(ScriptCall),
    /// Words that need no script.
    Plain(Words),
}

/// Hears the reply, or why there is none.
pub(crate) type Hears = Box<dyn FnOnce(Result<RespValue, String>) + Send>;

struct Request {
    command: RedisCommand,
    begun: Instant,
    hears: Hears,
}

/// The line. Its thread ends when this is dropped.
pub(crate) struct RedisLine {
    requests: UnboundedSender<Request>,
}

impl RedisLine {
    pub fn start(dialer: Dialer) -> io::Result<RedisLine> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (requests, begun) = unbounded_channel();
        let keeper = LineKeeper {
            dialer,
            begun,
            waiting: RefCell::default(),
            pause: Cell::new(PAUSE_MIN),
            why: String::new(),
        };
        thread::Builder::new()
            .name("tenure-journal".to_owned())
            .spawn(move || runtime.block_on(keeper.keep()))?;
        Ok(RedisLine { requests })
    }

    /// Begins a request. `hears` runs in the thread of the line and must not block.
    pub fn begin(&self, command: RedisCommand, hears: Hears) {
        // A line whose thread is gone drops the request, and what hears it.
        let _ = self.requests.send(Request { command, begun: Instant::now(), hears });
    }
}

/// Why a connection is no longer used.
enum Ended {
    /// Nobody needs the line any more.
    Closed,
    /// It broke, or Redis refused something that it will take later or elsewhere.
    Lost { why: String, to: Option<Endpoint> },
}

struct LineKeeper {
    dialer: Dialer,
    begun: UnboundedReceiver<Request>,
    /// Begun and not answered, in their order.
    waiting: RefCell<VecDeque<Request>>,
    /// Before the next try to connect.
    pause: Cell<Duration>,
    /// Why there is no connection.
    why: String,
}

impl LineKeeper {
    async fn keep(mut self) {
        let mut to = None;
        while !self.begun.is_closed() {
            match self.dialer.connect(to.as_ref()).await {
                Ok(connection) => {
                    let since = Instant::now();
                    let ended =
                        serve(connection, &mut self.begun, &self.waiting, &self.pause).await;
                    let Ended::Lost { why, to: next } = ended else { return };
                    (self.why, to) = (why, next);
                    // A server that takes connections and ends them at once is not asked in a loop. One that was asked
                    // nothing for a while served too.
                    if since.elapsed() > PAUSE_MAX {
                        self.pause.set(PAUSE_MIN);
                    }
                }
                Err(why) => (self.why, to) = (why, None),
            }
            self.give_up();
            sleep(self.pause.get()).await;
            self.pause.set((self.pause.get() * 2).min(PAUSE_MAX));
        }
    }

    /// Answers those that have waited too long.
    fn give_up(&mut self) {
        while let Ok(request) = self.begun.try_recv() {
            self.waiting.get_mut().push_back(request);
        }
        let is_over = |request: &Request| request.begun.elapsed() > PATIENCE;
        let waiting = std::mem::take(self.waiting.get_mut());
        let (over, rest): (VecDeque<_>, VecDeque<_>) = waiting.into_iter().partition(is_over);
        *self.waiting.get_mut() = rest;
        over.into_iter().for_each(|request| (request.hears)(Err(self.why.clone())));
    }
}

/// The scripts that Redis knows since they were sent whole on this connection.
#[derive(Default)]
struct KnownScripts(Vec<&'static Script>);

impl KnownScripts {
    fn write(&mut self, command: &RedisCommand, out: &mut Vec<u8>) {
        match command {
            RedisCommand::Plain(words) => words.write(&Words::default(), out),
            RedisCommand::Script(call) => {
                let is_known = self.0.iter().any(|known| std::ptr::eq(*known, call.script));
                if !is_known {
                    self.0.push(call.script);
                }
                call.words.write(&call.script.words(is_known), out);
            }
        }
    }
}

async fn serve(
    connection: Connection,
    begun: &mut UnboundedReceiver<Request>,
    waiting: &RefCell<VecDeque<Request>>,
    pause: &Cell<Duration>,
) -> Ended {
    let Connection { mut reader, mut writer } = connection;
    let heard = Cell::new(Instant::now());
    let lost = |why: io::Error| Ended::Lost { why: why.to_string(), to: None };
    let writes = async {
        let (mut known, mut out) = (KnownScripts::default(), Vec::new());
        waiting.borrow().iter().for_each(|request| known.write(&request.command, &mut out));
        loop {
            if let Err(why) = writer.write_all(&out).await {
                return lost(why);
            }
            out.clear();
            out.shrink_to(WRITE_BYTES);
            let Some(first) = begun.recv().await else { return Ended::Closed };
            if waiting.borrow().is_empty() {
                heard.set(Instant::now());
            }
            let mut next = Some(first);
            while let Some(request) = next {
                known.write(&request.command, &mut out);
                waiting.borrow_mut().push_back(request);
                next = if out.len() < WRITE_BYTES { begun.try_recv().ok() } else { None };
            }
        }
    };
    let reads = async {
        loop {
            let value = match resp::read(&mut reader).await {
                Ok(value) => value,
                Err(why) => return lost(why),
            };
            heard.set(Instant::now());
            // A refusal says nothing of a request but that it did not happen here and now: all are repeated.
            if let RespValue::Refused(why) = value {
                let to = moved_to(&why);
                return Ended::Lost { why, to };
            }
            let answered = waiting.borrow_mut().pop_front();
            let Some(request) = answered else {
                return Ended::Lost { why: "it answers what nobody asked".to_owned(), to: None };
            };
            // It serves, so the next loss is another one.
            pause.set(PAUSE_MIN);
            (request.hears)(Ok(value));
        }
    };
    let watches = async {
        loop {
            sleep(LOOK_EVERY).await;
            let is_waiting = !waiting.borrow().is_empty();
            if is_waiting && heard.get().elapsed() > SILENCE {
                let why = "it does not answer".to_owned();
                return Ended::Lost { why, to: None };
            }
        }
    };
    tokio::select! {
        ended = writes => ended,
        ended = reads => ended,
        ended = watches => ended,
    }
}

/// Where a node of a cluster says that the store is: `MOVED SLOT HOST:PORT`.
fn moved_to(refusal: &str) -> Option<Endpoint> {
    let place = refusal.strip_prefix("MOVED ")?.split(' ').nth(1)?;
    Endpoint::parse(place, 6379).ok()
}

#[cfg(test)]
mod tests {
    use tokio::io::{BufReader, duplex, split};

    use super::*;
    use crate::dial::ByteStream;

    /// The pause after a connection on which one request was sent, and this came back before it was lost.
    async fn pause_after(reply: &[u8]) -> Duration {
        let (here, mut there) = duplex(1 << 10);
        there.write_all(reply).await.expect("it is not full");
        // It takes what is sent and says no more.
        there.shutdown().await.expect("it is open");
        let (reader, writer) = split(Box::new(here) as Box<dyn ByteStream>);
        let connection = Connection { reader: BufReader::new(reader), writer };
        let (_requests, mut begun) = unbounded_channel();
        let command = RedisCommand::Plain(Words::of(&["PING"]));
        let request = Request { command, begun: Instant::now(), hears: Box::new(drop) };
        let waiting = RefCell::new(VecDeque::from([request]));
        let pause = Cell::new(PAUSE_MAX);
        let ended = serve(connection, &mut begun, &waiting, &pause).await;
        assert!(matches!(ended, Ended::Lost { .. }));
        pause.get()
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
}
