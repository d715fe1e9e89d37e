//! Making one connection: TCP without delay, TLS, the login, the database; all of it within one time.
//!
//! Nothing here tries twice: that is for those who hold a connection and miss it.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, Value};
use tenure_engine::redis_address::{Address, Endpoint, Login};
use tenure_tls::{HostName, Tls};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::error::{LinkError, OpenError, described};
use super::frames::Counted;
use super::nonce::Requests;

/// What the server lists us as.
const CLIENT_NAME: &str = "tenure";
/// Requests that may wait for the connection's task; beyond it callers wait themselves.
const WAITING_MAX: usize = 512;
/// So much is written at once: a call of 1,000 jobs is far more than the library's own 8 KiB.
const WRITE_BYTES: usize = 256 * 1024;

/// A task that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Task(pub JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection of bytes, with TLS or without.
pub(crate) type AnyStream = Box<dyn Stream>;

/// An open connection. Requests share it; when it is dropped, they end without their answers.
pub(crate) struct Connection {
    /// Where requests go.
    pub requests: Requests,
    /// Ends when the connection does.
    pub driver: Task,
}

/// How connections to the servers of an address are made.
#[derive(Clone)]
pub(crate) struct Dialer {
    login: Login,
    db: u32,
    tls: Option<Tls>,
    within: Duration,
    /// Where all tasks of a link live.
    pub runtime: Handle,
}

impl Dialer {
    /// For the servers of this address; reads the certificates.
    pub fn new(address: &Address, within: Duration) -> Result<Self, OpenError> {
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let tls = if address.tls() { Some(Tls::new(address.ca(), &[])?) } else { None };
        Ok(Dialer { login: address.login().clone(), db: address.db(), tls, within, runtime })
    }

    /// For the sentinels of this address.
    pub fn for_sentinels(&self, address: &Address) -> Self {
        Dialer { login: address.sentinel_login().clone(), db: 0, ..self.clone() }
    }

    /// A connection that is logged in and has answered.
    pub async fn connect(&self, endpoint: &Endpoint) -> Result<Connection, LinkError> {
        self.in_time(endpoint, async {
            let stream = Counted::new(self.stream(endpoint).await?);
            let config = AsyncConnectionConfig::new()
                .set_response_timeout(None)
                .set_connection_timeout(None)
                .set_pipeline_buffer_size(WAITING_MAX)
                .set_write_backpressure_boundary(WRITE_BYTES);
            // The login is said below: the library would hide what the server answers to it.
            let silent = RedisConnectionInfo::default().set_skip_set_lib_name();
            let (requests, driver) =
                MultiplexedConnection::new_with_config(&silent, stream, config)
                    .await
                    .map_err(|why| lost(endpoint, &described(&why)))?;
            let driver = Task(self.runtime.spawn(driver));
            let mut requests = Requests::new(requests);
            self.greet(endpoint, &mut requests).await?;
            Ok(Connection { requests, driver })
        })
        .await
    }

    /// A connection for messages that is logged in.
    pub async fn listen(&self, endpoint: &Endpoint) -> Result<PubSub, LinkError> {
        self.in_time(endpoint, async {
            let stream = self.stream(endpoint).await?;
            let mut info = RedisConnectionInfo::default().set_skip_set_lib_name();
            if let Some(password) = &self.login.password {
                info = info.set_password(password.reveal());
                if let Some(user) = &self.login.user {
                    info = info.set_username(user);
                }
            }
            PubSub::new(&info, stream).await.map_err(|why| lost(endpoint, &described(&why)))
        })
        .await
    }

    /// What takes too long ends.
    pub async fn in_time<T>(
        &self,
        endpoint: &Endpoint,
        dialing: impl Future<Output = Result<T, LinkError>>,
    ) -> Result<T, LinkError> {
        timeout(self.within, dialing)
            .await
            .unwrap_or_else(|_| Err(lost(endpoint, "it did not answer in time")))
    }

    /// A connection that nothing was said on.
    pub async fn stream(&self, endpoint: &Endpoint) -> Result<AnyStream, LinkError> {
        let why = |why: std::io::Error| lost(endpoint, &why.to_string());
        let stream =
            TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await.map_err(why)?;
        stream.set_nodelay(true).map_err(why)?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let name =
            HostName::parse(&endpoint.host).map_err(|why| lost(endpoint, &why.to_string()))?;
        Ok(Box::new(tls.connect(name, stream).await.map_err(why)?))
    }

    /// The login, if the address has one.
    pub fn auth(&self) -> Option<Cmd> {
        let password = self.login.password.as_ref()?;
        let mut auth = redis::cmd("AUTH");
        if let Some(user) = &self.login.user {
            auth.arg(user);
        }
        auth.arg(password.reveal());
        Some(auth)
    }

    async fn greet(&self, endpoint: &Endpoint, requests: &mut Requests) -> Result<(), LinkError> {
        let mut pipe = redis::pipe();
        let mut matters = Vec::new();
        if let Some(auth) = self.auth() {
            pipe.add_command(auth);
            matters.push(true);
        }
        if self.db != 0 {
            pipe.cmd("SELECT").arg(self.db);
            matters.push(true);
        }
        // A user who may not set a name may do all the rest.
        pipe.cmd("CLIENT").arg("SETNAME").arg(CLIENT_NAME);
        matters.push(false);
        // A server that is still loading its data is not there yet.
        pipe.cmd("PING");
        matters.push(true);
        let answers = requests
            .greet(&pipe, matters.len())
            .await
            .map_err(|why| lost(endpoint, &described(&why)))?;
        for (answer, matters) in answers.iter().zip(matters) {
            if let Value::ServerError(said) = answer
                && matters
            {
                return Err(LinkError::from(said));
            }
        }
        Ok(())
    }
}

fn lost(endpoint: &Endpoint, why: &str) -> LinkError {
    LinkError::Unavailable(format!("{endpoint}: {why}"))
}

/// Shared by all that connect.
pub(crate) type SharedDialer = Arc<Dialer>;
