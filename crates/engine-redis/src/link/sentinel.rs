//! Who is the primary, as the sentinels know it: asked at once when something points to a change or a
//! sentinel says so, and every few seconds in any case.
//!
//! A sentinel is believed when the server that it names says itself that it is a primary. It never
//! touches a call: while there is no primary, calls go to the last one and learn there that it is gone.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream as _;
use redis::aio::PubSubStream;
use redis::{Msg, Value};
use tenure_engine::redis_address::Endpoint;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::dial::{Connection, Dialer};
use super::error::{LinkError, after_sending};
use super::node::{Node, Sending};
use super::routes::{KnownMap, Map, Nodes};

/// Between two looks at the least.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a sentinel or a server may take to tell.
const TELL_WITHIN: Duration = Duration::from_secs(1);
/// After so many looks another sentinel is asked: one that is cut off from the others must not be the
/// one that is always believed.
const LOOKS_OF_ONE: usize = 5;
/// What the sentinels publish when they have made another server the primary.
const SWITCHED: &str = "+switch-master";

/// What one sentinel says.
struct PrimaryClaim {
    endpoint: Endpoint,
    /// Grows with each failover; the greater one is the later.
    epoch: u64,
}

/// The sentinel that is asked now.
struct Attached {
    connection: Connection,
    news: PubSubStream,
    _subscribed: redis::aio::PubSubSink,
    looks: usize,
}

/// What is to be held of a claim.
enum Checked {
    /// It is true.
    Sure,
    /// The server says something else: another sentinel may know better.
    Doubtful(LinkError),
    /// The server does not answer us; the sentinels will see to it.
    Away(LinkError),
}

struct Seeker {
    sentinels: Vec<Endpoint>,
    master: String,
    dialer: Dialer,
    nodes: Arc<Nodes>,
    found: watch::Sender<KnownMap>,
    /// The place of the sentinel whose turn it is.
    turn: usize,
    attached: Option<Attached>,
    /// Of the primary that stands.
    epoch: u64,
    primary: Option<Arc<Node>>,
}

/// Looks for ever.
pub(crate) async fn look(
    sentinels: Vec<Endpoint>,
    master: String,
    dialer: Dialer,
    nodes: Arc<Nodes>,
    every: Duration,
    found: watch::Sender<KnownMap>,
) {
    let mut seeker = Seeker {
        sentinels,
        master,
        dialer,
        nodes,
        found,
        turn: 0,
        attached: None,
        epoch: 0,
        primary: None,
    };
    loop {
        seeker.look().await;
        sleep(PAUSE).await;
        seeker.cause(every).await;
    }
}

impl Seeker {
    /// Asks the sentinels in turn until one is believed.
    async fn look(&mut self) {
        for _ in 0..self.sentinels.len() {
            let why = match self.ask_and_check().await {
                Ok(Checked::Sure) => return,
                Ok(Checked::Away(why)) => {
                    self.not_found(why);
                    return;
                }
                Ok(Checked::Doubtful(why)) | Err(why) => why,
            };
            self.not_found(why);
            self.move_on();
        }
    }

    fn not_found(&self, failed: LinkError) {
        self.found.send_modify(|found| {
            if let KnownMap::Looking { why, .. } = found {
                *why = failed;
            }
        });
    }

    fn move_on(&mut self) {
        self.attached = None;
        self.turn = (self.turn + 1) % self.sentinels.len().max(1);
    }

    /// An error is the sentinel's.
    async fn ask_and_check(&mut self) -> Result<Checked, LinkError> {
        let claim = self.ask().await?;
        if let Some(primary) = &self.primary {
            if primary.endpoint == claim.endpoint {
                self.epoch = claim.epoch;
                return Ok(checked(primary).await);
            }
            // A sentinel that missed the last failover is not believed while the primary that came
            // of it is well.
            if claim.epoch < self.epoch && matches!(checked(primary).await, Checked::Sure) {
                let why = "the sentinels do not agree which server is the primary";
                return Ok(Checked::Doubtful(LinkError::Unavailable(why.to_owned())));
            }
        }
        let node = self.nodes.at(&claim.endpoint);
        let checked = checked(&node).await;
        if let Checked::Sure = checked {
            self.epoch = claim.epoch;
            self.primary = Some(node.clone());
            self.nodes.keep(self.primary.as_slice());
            self.found.send_replace(KnownMap::At(Arc::new(Map::one(node))));
        }
        Ok(checked)
    }

    async fn ask(&mut self) -> Result<PrimaryClaim, LinkError> {
        if self.attached.as_ref().is_some_and(|attached| attached.looks >= LOOKS_OF_ONE) {
            self.move_on();
        }
        let sentinel = self.sentinels[self.turn].clone();
        let attached = match &mut self.attached {
            Some(attached) => attached,
            none => none.insert(attach(&self.dialer, &sentinel).await?),
        };
        attached.looks += 1;
        let mut cmd = redis::cmd("SENTINEL");
        cmd.arg("MASTER").arg(&self.master);
        let said = attached.connection.requests.command(&cmd, false);
        let said = match timeout(TELL_WITHIN, said).await {
            Ok(said) => said?,
            Err(_) => return Err(silent(&sentinel)),
        };
        claim(&said).ok_or_else(|| {
            let master = &self.master;
            LinkError::Unavailable(format!("{sentinel}: it does not say where \"{master}\" is"))
        })
    }

    /// Returns when there is cause to look again.
    async fn cause(&mut self, every: Duration) {
        let Some(attached) = &mut self.attached else {
            return;
        };
        let hint = self.nodes.hint.clone();
        let news = async {
            // The master's name is the first word; news of another master are none.
            while let Some(message) = next(&mut attached.news).await {
                let text = String::from_utf8_lossy(message.get_payload_bytes());
                if text.split(' ').next() == Some(self.master.as_str()) {
                    return;
                }
            }
            attached.looks = LOOKS_OF_ONE;
        };
        tokio::select! {
            () = news => {}
            () = hint.notified() => {}
            () = sleep(every) => {}
        }
    }
}

/// Connects to a sentinel, and listens before anything is asked: so no change is missed between.
async fn attach(dialer: &Dialer, sentinel: &Endpoint) -> Result<Attached, LinkError> {
    let (mut subscribed, news) = dialer.listen(sentinel).await?.split();
    match timeout(TELL_WITHIN, subscribed.subscribe(SWITCHED)).await {
        Ok(done) => done.map_err(after_sending)?,
        Err(_) => return Err(silent(sentinel)),
    }
    let connection = dialer.connect(sentinel).await?;
    Ok(Attached { connection, news, _subscribed: subscribed, looks: 0 })
}

/// The next message; `None` when the connection is gone.
async fn next(stream: &mut PubSubStream) -> Option<Msg> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}

fn silent(sentinel: &Endpoint) -> LinkError {
    LinkError::Unavailable(format!("the sentinel {sentinel} did not answer in time"))
}

/// What the server that a sentinel named says itself.
async fn checked(node: &Node) -> Checked {
    if let Some(why) = node.down()
        && node.was_tried()
    {
        return Checked::Away(why);
    }
    let how = Sending { within: TELL_WITHIN, asking: false, nonce: None };
    let role = match node.send(&redis::cmd("ROLE"), how).await {
        Ok(Value::Array(role)) => role,
        Ok(_) => Vec::new(),
        Err(why) => return Checked::Away(why),
    };
    match role.first() {
        Some(Value::BulkString(role)) if role == b"master" => Checked::Sure,
        _ => {
            let why = format!("{}: the sentinel calls it the primary, it does not", node.endpoint);
            Checked::Doubtful(LinkError::Unavailable(why))
        }
    }
}

/// What `SENTINEL MASTER` answers: names and values in turn.
fn claim(said: &Value) -> Option<PrimaryClaim> {
    let Value::Array(said) = said else { return None };
    let field = |name: &str| {
        said.chunks_exact(2).find_map(|pair| match pair {
            [Value::BulkString(key), Value::BulkString(value)] if key == name.as_bytes() => {
                String::from_utf8(value.clone()).ok()
            }
            _ => None,
        })
    };
    let host = field("ip").filter(|host| !host.is_empty())?;
    let port = field("port")?.parse().ok().filter(|port| *port != 0)?;
    let epoch = field("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
    Some(PrimaryClaim { endpoint: Endpoint { host, port }, epoch })
}
