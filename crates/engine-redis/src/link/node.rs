//! One primary: its connections, in turn, and the function library on it, loaded when it is missed.
//!
//! It answers for this one server. Which server has a namespace is not known here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Cmd, Value};
use tenure_engine::redis_address::Endpoint;
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;

use super::dial::SharedDialer;
use super::error::LinkError;
use super::line::{Line, PingTimes};
use super::nonce::{Nonce, Requests};
use crate::library::{FINGERPRINT, Library};

/// What the server says of a function that it does not have.
const MISSING: &str = "Function not found";

/// How a request is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// An answer that comes later is not waited for.
    pub within: Duration,
    /// To the node that a slot is on its way to, for what is there already.
    pub asking: bool,
    /// It calls a function of our library and carries this at its end; `None`: any other command.
    pub nonce: Option<Nonce>,
}

/// One primary.
pub(crate) struct Node {
    /// Where it is.
    pub endpoint: Endpoint,
    lines: Vec<Line>,
    next: AtomicUsize,
    checked: AtomicBool,
    /// How often the library was loaded; grows with each load.
    loads: AtomicU64,
    loading: Mutex<()>,
}

impl Node {
    /// Starts to connect.
    pub fn start(
        dialer: &SharedDialer,
        endpoint: Endpoint,
        connections: usize,
        watch: PingTimes,
        lost: &Arc<Notify>,
    ) -> Self {
        let line = |_| Line::start(dialer.clone(), endpoint.clone(), watch, lost.clone());
        Node {
            lines: (0..connections.max(1)).map(line).collect(),
            endpoint,
            next: AtomicUsize::new(0),
            checked: AtomicBool::new(false),
            loads: AtomicU64::new(0),
            loading: Mutex::new(()),
        }
    }

    /// Why no request can be sent now; `None` if one can.
    pub fn down(&self) -> Option<LinkError> {
        if self.lines.iter().any(|line| line.now().is_some()) {
            return None;
        }
        let none = || LinkError::Unavailable(format!("{}: not connected yet", self.endpoint));
        Some(self.lines.iter().find_map(Line::why).unwrap_or_else(none))
    }

    /// Whether a try to connect has failed, or a connection was there.
    pub fn was_tried(&self) -> bool {
        self.lines.iter().any(|line| line.now().is_some() || line.why().is_some())
    }

    async fn connection(&self) -> Result<Requests, LinkError> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let lines = self.lines.len();
        let now = (0..lines).find_map(|step| self.lines[(turn + step) % lines].now());
        match now {
            Some(requests) => Ok(requests),
            None => self.lines[turn % lines].soon().await,
        }
    }

    /// Sends one request and waits for its answer.
    pub async fn send(&self, cmd: &Cmd, how: Sending) -> Result<Value, LinkError> {
        let mut requests = self.connection().await?;
        let answer = async {
            match how.nonce {
                Some(nonce) => requests.call(cmd, nonce, how.asking).await,
                None => requests.command(cmd, how.asking).await,
            }
        };
        let answer = timeout(how.within, answer).await;
        if !requests.is_sound() {
            // Perhaps somebody has loaded another library under the name of ours.
            self.checked.store(false, Ordering::Release);
        }
        answer.unwrap_or_else(|_| {
            Err(LinkError::Unknown(format!("no answer within {:?}", how.within)))
        })
    }

    /// Calls a function of the library; loads the library if it is not there.
    pub async fn call(
        &self,
        library: &Library,
        cmd: &Cmd,
        how: Sending,
    ) -> Result<Value, LinkError> {
        if !self.checked.load(Ordering::Acquire) {
            self.before_call(how, self.check(library, how.within)).await?;
        }
        let loads = self.loads.load(Ordering::Acquire);
        match self.send(cmd, how).await {
            Err(why) if is_missing(&why) => {
                self.before_call(how, self.load_once(library, loads, how.within)).await?;
                self.send(cmd, how).await
            }
            answer => answer,
        }
    }

    /// What comes before a call, in time. Whatever goes wrong with it, the call itself was not sent.
    async fn before_call(
        &self,
        how: Sending,
        work: impl Future<Output = Result<(), LinkError>>,
    ) -> Result<(), LinkError> {
        match timeout(how.within, work).await {
            Ok(Err(LinkError::Unknown(why))) => Err(LinkError::Unavailable(why)),
            Ok(done) => done,
            Err(_) => Err(LinkError::Unavailable(format!(
                "{}: the function library could not be looked at in time",
                self.endpoint
            ))),
        }
    }

    /// Once for each process: another text under our name is replaced. Releases change the name with
    /// the text, so this is for those who build Tenure themselves.
    async fn check(&self, library: &Library, within: Duration) -> Result<(), LinkError> {
        let _turn = self.loading.lock().await;
        if self.checked.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut cmd = redis::cmd("FCALL");
        cmd.arg(library.function(FINGERPRINT)).arg(0);
        let same = match self.send(&cmd, Sending { within, asking: false, nonce: None }).await {
            Ok(Value::BulkString(loaded)) => loaded == library.fingerprint().as_bytes(),
            Ok(_) => false,
            Err(why) if is_missing(&why) => false,
            Err(why) => return Err(without_functions(why)),
        };
        if !same {
            self.load(library, within).await?;
        }
        self.checked.store(true, Ordering::Release);
        Ok(())
    }

    /// Loads the library unless somebody did so since `seen`.
    async fn load_once(
        &self,
        library: &Library,
        seen: u64,
        within: Duration,
    ) -> Result<(), LinkError> {
        let _turn = self.loading.lock().await;
        if self.loads.load(Ordering::Acquire) != seen {
            return Ok(());
        }
        self.load(library, within).await
    }

    async fn load(&self, library: &Library, within: Duration) -> Result<(), LinkError> {
        let mut cmd = redis::cmd("FUNCTION");
        cmd.arg("LOAD").arg("REPLACE").arg(library.text());
        self.send(&cmd, Sending { within, asking: false, nonce: None })
            .await
            .map_err(without_functions)?;
        self.loads.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

fn is_missing(why: &LinkError) -> bool {
    matches!(why, LinkError::Refused { message, .. } if message.starts_with(MISSING))
}

/// What to do when a server does not let us have our functions.
fn without_functions(why: LinkError) -> LinkError {
    match why {
        LinkError::Refused { code, .. } if code == "NOPERM" => LinkError::refused(
            "NOPERM",
            "this user may not load or call the function library; ask the operator to load the \
             output of \"tenure redis print-library\" and to permit FCALL",
        ),
        LinkError::Refused { code, message } if message.starts_with("unknown command") => {
            LinkError::Refused {
                code,
                message: "the server has no functions; use Redis or Valkey 7 or newer".to_owned(),
            }
        }
        why => why,
    }
}
