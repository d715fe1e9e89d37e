//! The link to the servers: a call goes out, its answer comes back, or it is said what is known of it.
//!
//! A caller never freezes: connections are made and watched by tasks of their own, off to the side,
//! and what can be used now is swapped in. While nothing can be used, callers are told at once that
//! nothing was sent; only in the first second of an outage they wait for its end. Nothing here
//! repeats a call that may have happened.
//!
//! The client library's own cluster and Sentinel layers are not used: the first holds all requests
//! back while it recovers and never notices a connection that died in silence, the second looks for
//! the primary only when a connection is made. Here each primary is a [`node`] with the same watched
//! connections in every topology, and only the question which primary has what differs.

mod channels;
mod cluster;
mod dial;
mod ear;
mod error;
mod frames;
mod line;
mod node;
mod nonce;
mod options;
mod routes;
mod sentinel;
mod subscription;

use std::sync::Arc;
use std::time::Duration;

pub use channels::Channels;
pub use error::{LinkError, OpenError};
pub use options::LinkOptions;
pub use redis::{Cmd, Value, cmd};
pub use subscription::{Overheard, Subscription};
pub use tenure_engine::redis_address::{
    Address, AddressError, DEFAULT_PREFIX, Endpoint, Login, Topology,
};
pub use tenure_tls::TlsError;

use self::dial::Dialer;
use self::node::Sending;
use self::nonce::Nonce;
use self::routes::Routes;
use crate::library::Library;

/// Keys that one step through all keys looks at, about.
const SCANNED: usize = 1_000;

/// The link to the servers of an address. Clones are the same link; it ends with the last of them.
#[derive(Clone)]
pub struct Link {
    inner: Arc<LinkInner>,
}

struct LinkInner {
    address: Address,
    library: Library,
    within: Duration,
    routes: Routes,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({})", self.inner.address)
    }
}

impl Link {
    /// Begins to connect, and does not wait for it: the servers need not be there. Must be called
    /// inside of a tokio runtime, whose end is the link's end.
    pub fn open(address: Address, options: LinkOptions) -> Result<Self, OpenError> {
        let dialer = Arc::new(Dialer::new(&address, options.connect_within)?);
        let routes = Routes::start(&address, &options, dialer);
        let (library, within) = (options.library, options.answer_within);
        Ok(Link { inner: Arc::new(LinkInner { address, library, within, routes }) })
    }

    /// Where it leads.
    pub fn address(&self) -> &Address {
        &self.inner.address
    }

    /// The library that it calls.
    pub fn library(&self) -> &Library {
        &self.inner.library
    }

    /// Calls the function of an operation (`push`, not `tenure_9_1_push`) on the primary that has the
    /// namespace. `keys` are whole keys ([`Address::key`]), all of this namespace. Loads the library
    /// where it is missing. Waits for the answer as long as the options say. The list that the function
    /// answers is told without the nonce at its end.
    pub async fn fcall(
        &self,
        namespace: &str,
        function: &str,
        keys: &[impl AsRef<[u8]>],
        args: &[impl AsRef<[u8]>],
    ) -> Result<Value, LinkError> {
        self.fcall_within(self.inner.within, namespace, function, keys, args).await
    }

    /// As [`Link::fcall`], and waits for the answer this long.
    pub async fn fcall_within(
        &self,
        within: Duration,
        namespace: &str,
        function: &str,
        keys: &[impl AsRef<[u8]>],
        args: &[impl AsRef<[u8]>],
    ) -> Result<Value, LinkError> {
        let bytes = keys.iter().map(|key| key.as_ref().len()).sum::<usize>()
            + args.iter().map(|arg| arg.as_ref().len()).sum::<usize>();
        let nonce = Nonce::new();
        let mut cmd = Cmd::with_capacity(4 + keys.len() + args.len(), bytes + 64);
        cmd.arg("FCALL").arg(self.inner.library.function(function)).arg(keys.len());
        for key in keys {
            cmd.arg(key.as_ref());
        }
        for arg in args {
            cmd.arg(arg.as_ref());
        }
        cmd.arg(nonce.bytes());
        let call = Some((&self.inner.library, nonce));
        self.inner.routes.send(namespace, &cmd, within, call).await
    }

    /// Sends a command as it is to the primary that has the namespace.
    pub async fn command(&self, namespace: &str, cmd: &Cmd) -> Result<Value, LinkError> {
        self.inner.routes.send(namespace, cmd, self.inner.within, None).await
    }

    /// Sends a command as it is to every primary, one after the other, and says what each answered.
    pub async fn command_all(
        &self,
        cmd: &Cmd,
    ) -> Result<Vec<(Endpoint, Result<Value, LinkError>)>, LinkError> {
        let how = Sending { within: self.inner.within, asking: false, nonce: None };
        let mut answers = Vec::new();
        for node in self.inner.routes.all().await? {
            answers.push((node.endpoint.clone(), node.send(cmd, how).await));
        }
        Ok(answers)
    }

    /// Shows every key of every primary that matches a pattern, some of them twice. It goes through all
    /// keys there are, in steps: for what an operator does, and never for a call.
    pub async fn keys(&self, pattern: &str, mut show: impl FnMut(&[u8])) -> Result<(), LinkError> {
        let how = Sending { within: self.inner.within, asking: false, nonce: None };
        for node in self.inner.routes.all().await? {
            let mut cursor = b"0".to_vec();
            loop {
                let mut scan = cmd("SCAN");
                scan.arg(&cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCANNED);
                let (next, keys) = scanned(node.send(&scan, how).await?)?;
                keys.iter().for_each(|key| show(key));
                if next == b"0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(())
    }

    /// Why some namespace cannot be reached now; `None` if all can. Never waits.
    pub fn down(&self) -> Option<LinkError> {
        self.inner.routes.down()
    }
}

/// The cursor and the keys that a step through all keys answers.
fn scanned(answer: Value) -> Result<(Vec<u8>, Vec<Vec<u8>>), LinkError> {
    let no = || LinkError::refused("ERR", "SCAN was answered in another form than its own");
    let text = |value: Value| match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        _ => Err(no()),
    };
    let Value::Array(parts) = answer else { return Err(no()) };
    let Ok([cursor, Value::Array(keys)]) = <[Value; 2]>::try_from(parts) else {
        return Err(no());
    };
    Ok((text(cursor)?, keys.into_iter().map(text).collect::<Result<_, _>>()?))
}
