//! A connection for requests whose every reply is proven to be its own.
//!
//! A server answers in the order in which it was asked, and nothing in a reply says to which request it
//! belongs. If a proxy, a pool of connections or a fault in between doubles one reply, every later caller
//! is given the reply of another. So a call of our library carries a number that was never used before,
//! its *nonce*, and the function repeats it behind all else that it answers. Whatever else can be asked
//! is followed by a PING that the server answers with the nonce, and so is a call that was answered with
//! an error, since an error repeats nothing. The first reply that is not the caller's own ends the
//! connection, and the outcome of whatever was asked on it is unknown.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ServerError, Value};
use tokio::sync::Notify;

use super::error::{LinkError, after_sending};

/// What is said of a connection whose reply belonged to no request of it, or to another.
const FOREIGN: &str = "a reply belonged to another request, so the connection was closed; look at what is between \
     Tenure and redis";

/// Where this process begins to count: no two processes begin at the same number.
static NEXT: LazyLock<AtomicU64> =
    LazyLock::new(|| AtomicU64::new(RandomState::new().build_hasher().finish()));

/// A number by which the reply to one request is known. No other request carries the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Nonce([u8; 8]);

impl Nonce {
    pub fn new() -> Self {
        Nonce(NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes())
    }

    /// As it is sent, and as it comes back.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn is(&self, value: &Value) -> bool {
        matches!(value, Value::BulkString(bytes) if bytes == &self.0)
    }

    /// The PING that is answered with it.
    fn ping(self) -> Cmd {
        let mut ping = redis::cmd("PING");
        ping.arg(self.bytes());
        ping
    }
}

/// An open connection for requests. Clones share it.
#[derive(Clone)]
pub(crate) struct Requests {
    connection: MultiplexedConnection,
    broken: Arc<Broken>,
}

/// Whether a reply came that belonged to another request.
#[derive(Default)]
struct Broken {
    is: AtomicBool,
    told: Notify,
}

impl Requests {
    pub fn new(connection: MultiplexedConnection) -> Self {
        Requests { connection, broken: Arc::default() }
    }

    /// Whether replies still belong to their requests, as far as is known.
    pub fn is_sound(&self) -> bool {
        !self.broken.is.load(Ordering::Acquire)
    }

    /// Returns when a reply came that belonged to another request: whoever holds the connection closes it.
    pub async fn unsound(&self) {
        self.broken.told.notified().await;
    }

    /// Calls a function of our library. `nonce` is the last argument of the call, and the last element of the
    /// list that it is answered with; it is taken off. `asking`: to a node that takes the slot in.
    pub async fn call(
        &mut self,
        cmd: &Cmd,
        nonce: Nonce,
        asking: bool,
    ) -> Result<Value, LinkError> {
        let answer = if asking {
            let mut pipe = redis::pipe();
            pipe.cmd("ASKING").add_command(cmd.clone());
            let answers = self.connection.send_packed_commands(&pipe, 1, 1).await;
            answers.map(|mut answers| answers.pop().unwrap_or(Value::Nil))
        } else {
            self.connection.send_packed_command(cmd).await
        };
        match answer {
            Ok(Value::Array(mut parts)) if parts.last().is_some_and(|last| nonce.is(last)) => {
                parts.pop();
                Ok(Value::Array(parts))
            }
            Ok(Value::ServerError(said)) => {
                let again = Nonce::new();
                let pong = self.connection.send_packed_command(&again.ping()).await;
                self.judge(again, Value::ServerError(said), pong.map_err(after_sending)?)
            }
            Ok(_) => Err(self.foreign()),
            Err(why) => Err(after_sending(why)),
        }
    }

    /// Sends any other command. `asking` as in [`Requests::call`].
    pub async fn command(&mut self, cmd: &Cmd, asking: bool) -> Result<Value, LinkError> {
        let nonce = Nonce::new();
        let mut pipe = redis::pipe();
        if asking {
            pipe.cmd("ASKING");
        }
        pipe.add_command(cmd.clone()).add_command(nonce.ping());
        let answers = self.connection.send_packed_commands(&pipe, usize::from(asking), 2).await;
        match <[Value; 2]>::try_from(answers.map_err(after_sending)?) {
            Ok([answer, pong]) => self.judge(nonce, answer, pong),
            Err(_) => Err(self.foreign()),
        }
    }

    /// Whether the server answers at all; what is wrong with the connection if it does not.
    pub async fn ping(&mut self) -> Result<(), LinkError> {
        let nonce = Nonce::new();
        let pong = self.connection.send_packed_command(&nonce.ping()).await;
        match pong.map_err(after_sending)? {
            // An error is an answer too: the server is there.
            Value::ServerError(_) => Ok(()),
            pong if nonce.is(&pong) => Ok(()),
            _ => Err(self.foreign()),
        }
    }

    /// Commands whose replies tell nothing that is acted upon but whether they are errors: a greeting.
    pub async fn greet(
        &mut self,
        pipe: &redis::Pipeline,
        commands: usize,
    ) -> redis::RedisResult<Vec<Value>> {
        self.connection.send_packed_commands(pipe, 0, commands).await
    }

    /// An answer, if what came behind it is what the server answers to the PING behind the request.
    fn judge(&self, nonce: Nonce, answer: Value, pong: Value) -> Result<Value, LinkError> {
        match (answer, pong) {
            // A server that cannot answer at all now (it loads, it runs another's script) does not answer the
            // PING either, and says why in the same way.
            (Value::ServerError(said), Value::ServerError(also)) if same(&said, &also) => {
                Err(LinkError::from(&said))
            }
            (Value::ServerError(said), pong) if nonce.is(&pong) => Err(LinkError::from(&said)),
            (answer, pong) if nonce.is(&pong) => Ok(answer),
            _ => Err(self.foreign()),
        }
    }

    fn foreign(&self) -> LinkError {
        self.broken.is.store(true, Ordering::Release);
        self.broken.told.notify_one();
        LinkError::Unknown(FOREIGN.to_owned())
    }
}

fn same(one: &ServerError, other: &ServerError) -> bool {
    one.code() == other.code()
}
