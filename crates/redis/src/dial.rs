//! Connects to the Redis of a store: TCP, TLS, login and database, at the primary.
//!
//! It tries each endpoint once; `line` decides when to retry.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::redis_address::{Address, Endpoint, Login, Topology};
use tenure_tls::{HostName, Tls, TlsError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::timeout;

use crate::resp::{self, RespValue, Words};

/// Time limit of one connection attempt, with TLS and login.
const WITHIN: Duration = Duration::from_secs(2);
/// The name of a connection in the server's `CLIENT LIST`.
const CLIENT_NAME: &str = "tenure";

/// The largest number of bytes in one read.
const READ_BYTES: usize = 64 << 10;

/// The reading half of a connection.
pub(crate) type ReadStream = BufReader<Box<dyn AsyncRead + Unpin + Send>>;

/// The writing half of a connection.
pub(crate) enum WriteStream {
    /// Without TLS; any thread may write.
    Socket(Arc<OwnedWriteHalf>),
    /// Through TLS; only one thread writes.
    Tls(Box<dyn AsyncWrite + Unpin + Send>),
}

/// A connection that the server has answered on.
pub(crate) struct Connection {
    /// The server at the other end.
    pub at: Endpoint,
    pub reader: ReadStream,
    pub writer: WriteStream,
}

impl Connection {
    /// Sends one command; no other one may be on its way.
    pub async fn ask(&mut self, words: &Words) -> io::Result<RespValue> {
        let mut out = Vec::new();
        Words::write(&[words], &mut out);
        match &mut self.writer {
            WriteStream::Tls(stream) => stream.write_all(&out).await?,
            WriteStream::Socket(socket) => write_all(socket, &out).await?,
        }
        resp::read(&mut self.reader).await
    }

    /// A connection that only one thread writes to.
    pub fn through(
        at: Endpoint,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Connection {
        let (reader, writer) = tokio::io::split(stream);
        let reader = BufReader::with_capacity(READ_BYTES, Box::new(reader) as Box<_>);
        Connection { at, reader, writer: WriteStream::Tls(Box::new(writer)) }
    }
}

/// Makes the connections to a store.
pub(crate) struct Dialer {
    address: Address,
    tls: Option<Tls>,
}

impl Dialer {
    /// Reads the certificates, if the address wants TLS.
    pub fn new(address: Address) -> Result<Dialer, TlsError> {
        let tls = if address.tls() { Some(Tls::new(address.ca(), &[])?) } else { None };
        Ok(Dialer { address, tls })
    }

    /// A connection to the primary; `to` is the node of a cluster that the last node redirected to.
    pub async fn connect(&self, to: Option<&Endpoint>) -> Result<Connection, String> {
        let mut why = "the address names no server".to_owned();
        match self.address.topology() {
            Topology::Single(endpoint) => return self.open(endpoint).await,
            Topology::Cluster(nodes) => {
                for endpoint in to.into_iter().chain(nodes) {
                    match self.open(endpoint).await {
                        Ok(connection) => return Ok(connection),
                        Err(failed) => why = failed,
                    }
                }
            }
            Topology::Sentinel { sentinels, master } => {
                // A partitioned Sentinel names a former primary: the next one may know better.
                let mut tried = Vec::new();
                for sentinel in sentinels {
                    let primary = match self.primary(sentinel, master).await {
                        Ok(primary) if tried.contains(&primary) => continue,
                        Ok(primary) => primary,
                        Err(failed) => {
                            why = failed;
                            continue;
                        }
                    };
                    match in_time(&primary, self.named(&primary)).await {
                        Ok(connection) => return Ok(connection),
                        Err(failed) => why = failed,
                    }
                    tried.push(primary);
                }
            }
        }
        Err(why)
    }

    /// The address of the primary, according to a sentinel.
    async fn primary(&self, sentinel: &Endpoint, master: &str) -> Result<Endpoint, String> {
        let ask = Words::of(&["SENTINEL", "get-master-addr-by-name", master]);
        let asking = async {
            let mut connection = self.greeted(sentinel, self.address.sentinel_login(), 0).await?;
            connection.ask(&ask).await
        };
        let said = in_time(sentinel, asking).await?;
        let primary = said.list().and_then(|said| match said {
            [host, port] => {
                let (host, port) = (host.text()?.to_owned(), port.text()?.parse().ok()?);
                Some(Endpoint { host, port })
            }
            _ => None,
        });
        primary.ok_or_else(|| format!("{sentinel} knows no primary of that name"))
    }

    async fn open(&self, endpoint: &Endpoint) -> Result<Connection, String> {
        in_time(endpoint, self.greeted(endpoint, self.address.login(), self.address.db())).await
    }

    /// A connection to the server that a Sentinel names, unless that server calls itself a replica.
    async fn named(&self, primary: &Endpoint) -> io::Result<Connection> {
        let mut connection = self.greeted(primary, self.address.login(), self.address.db()).await?;
        let role = connection.ask(&Words::of(&["ROLE"])).await?;
        // A user without the right to ask notices a replica by the first refused write.
        let role = role.list().and_then(|role| role.first()?.text());
        match role {
            None | Some("master") => Ok(connection),
            Some(role) => Err(io::Error::other(format!(
                "a Sentinel names it as the primary, and it says that it is a {role}"
            ))),
        }
    }

    /// A connection that is logged in.
    async fn greeted(&self, endpoint: &Endpoint, login: &Login, db: u32) -> io::Result<Connection> {
        let mut connection = self.connection(endpoint).await?;
        let mut matters = Vec::new();
        if let Some(password) = &login.password {
            let user = login.user.iter().fold(Words::of(&["AUTH"]), |words, user| words.and(user));
            matters.push(user.and(password.reveal()));
        }
        if db != 0 {
            matters.push(Words::of(&["SELECT"]).and(db.to_string()));
        }
        // A server that still loads its data is not ready.
        matters.push(Words::of(&["PING"]));
        for words in &matters {
            if let RespValue::Refused(why) = connection.ask(words).await? {
                return Err(io::Error::other(why));
            }
        }
        // A user without the right to set a name may do all the rest.
        connection.ask(&Words::of(&["CLIENT", "SETNAME", CLIENT_NAME])).await?;
        Ok(connection)
    }

    async fn connection(&self, endpoint: &Endpoint) -> io::Result<Connection> {
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            let (reader, writer) = stream.into_split();
            let reader = BufReader::with_capacity(READ_BYTES, Box::new(reader) as Box<_>);
            let writer = WriteStream::Socket(Arc::new(writer));
            return Ok(Connection { at: endpoint.clone(), reader, writer });
        };
        let name = HostName::parse(&endpoint.host).map_err(io::Error::other)?;
        Ok(Connection::through(endpoint.clone(), tls.connect(name, stream).await?))
    }
}

async fn write_all(socket: &OwnedWriteHalf, mut out: &[u8]) -> io::Result<()> {
    while !out.is_empty() {
        socket.writable().await?;
        match socket.try_write(out) {
            Ok(bytes) => out = &out[bytes..],
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Ends an attempt that takes too long.
async fn in_time<T>(
    endpoint: &Endpoint,
    dialing: impl Future<Output = io::Result<T>>,
) -> Result<T, String> {
    match timeout(WITHIN, dialing).await {
        Ok(done) => done.map_err(|why| format!("{endpoint}: {why}")),
        Err(_) => Err(format!("{endpoint}: it did not answer in time")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    /// Starts a server that answers each command by its words, and returns its port. It ends with the runtime.
    async fn server(answers: impl Fn(&str) -> String + Send + Sync + 'static) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it listens").port();
        let answers = Arc::new(answers);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answers = answers.clone();
                tokio::spawn(async move {
                    let mut bytes = vec![0; 1 << 10];
                    while let Ok(read @ 1..) = stream.read(&mut bytes).await {
                        let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
                        let is_word = |line: &&str| !line.starts_with(['*', '$']);
                        let words: Vec<&str> = text.lines().filter(is_word).collect();
                        if stream.write_all(answers(&words.join(" ")).as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        port
    }

    fn redis(role: &'static str) -> impl Fn(&str) -> String {
        move |words| if words == "ROLE" { role.to_owned() } else { "+OK\r\n".to_owned() }
    }

    fn sentinel(names: u16, asked: &Arc<Mutex<u32>>) -> impl Fn(&str) -> String + use<> {
        let asked = asked.clone();
        move |words| {
            if !words.starts_with("SENTINEL") {
                return "+PONG\r\n".to_owned();
            }
            *asked.lock().expect("nobody panics") += 1;
            let port = names.to_string();
            format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len())
        }
    }

    #[tokio::test]
    async fn a_demoted_primary_that_a_sentinel_names_is_not_taken() {
        let demoted = server(redis("*1\r\n$5\r\nslave\r\n")).await;
        let primary = server(redis("*1\r\n$6\r\nmaster\r\n")).await;
        let unsaid = server(redis("-NOPERM no rights to run ROLE\r\n")).await;
        for (first, second, found) in [
            (demoted, primary, Some(primary)),
            (demoted, demoted, None),
            (unsaid, primary, Some(unsaid)),
        ] {
            let asked = Arc::default();
            let (one, two) =
                (server(sentinel(first, &asked)).await, server(sentinel(second, &asked)).await);
            let url = format!("redis-sentinel://127.0.0.1:{one},127.0.0.1:{two}/shop");
            let address = Address::parse(&url).expect("it is an address");
            let dialer = Dialer::new(address).expect("no certificate is read");
            match (dialer.connect(None).await, found) {
                (Ok(connection), found) => assert_eq!(Some(connection.at.port), found),
                (Err(why), None) => assert!(why.contains("says that it is a slave"), "{why}"),
                (Err(why), Some(_)) => panic!("{why}"),
            }
        }
    }
}
