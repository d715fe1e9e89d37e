//! A server over an engine in memory, and a client that sends raw bytes, right or wrong.
#![allow(dead_code, clippy::unwrap_used, reason = "each test binary uses its part")]

pub mod http2;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure::StoreUrl;
use tenure_core::job::NewJob;
use tenure_core::names::Namespace;
use tenure_core::requests::{GetStats, Push, PushAnswer};
use tenure_core::secret::Secret;
use tenure_engine::{Embedded, Location, MovedEngine, Options};
use tenure_engine_api::{Engine, EngineExt, LeaderAddress, MovedTime};
use tenure_server::{
    Config, Deps, DrainReport, LeaderReport, Leadership, PeerGroup, ServingLeader, Tokens, Trail,
};
use tenure_tls::ServerTls;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::description::Description;

/// The longest wait for anything that must come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server on a port of its own.
pub struct Server {
    pub at: SocketAddr,
    /// Its tokens, which a test may replace.
    pub tokens: Tokens,
    pub engine: Arc<dyn Engine>,
    runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<DrainReport>>,
    /// The server to which it forwards calls; usually `None`.
    owner: Option<Box<Server>>,
    /// Usually none.
    pub trail: Trail,
}

impl Server {
    pub fn start() -> Self {
        Server::with(None, Config::default())
    }

    /// A server with these tokens.
    pub fn with_tokens(tokens: Tokens, config: Config) -> Self {
        let engine: Arc<dyn Engine> =
            Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap());
        Server::at(Leadership::always(engine.clone()), engine, tokens, config, None, None)
    }

    /// A server with these tokens, on a store that a test has opened.
    pub fn on(engine: Arc<dyn Engine>, tokens: Tokens) -> Self {
        let leadership = Leadership::always(engine.clone());
        Server::at(leadership, engine, tokens, Config::default(), None, None)
    }

    /// A server with these tokens and a trail.
    pub fn with_trail(tokens: Tokens, trail: Trail) -> Self {
        let engine: Arc<dyn Engine> =
            Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap());
        let leadership = Leadership::always(engine.clone());
        Server::recorded(leadership, engine, tokens, Config::default(), (None, None), trail)
    }

    pub fn with(token: Option<&str>, config: Config) -> Self {
        let engine = Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap());
        Server::over(engine, token, config, None, None)
    }

    /// A server that speaks HTTPS.
    pub fn with_tls(tls: ServerTls, config: Config) -> Self {
        let engine = Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap());
        Server::over(engine, None, config, None, Some(tls))
    }

    /// With a clock that a test moves. It starts at the first second of 2027, a Friday.
    pub fn with_test_clock() -> Self {
        let start = "2027-01-01T00:00:00Z".parse().unwrap();
        let engine = MovedEngine::open(start, Options::new(Location::Memory)).unwrap();
        let engine = Arc::new(engine);
        Server::over(engine.clone(), None, Config::default(), Some(engine), None)
    }

    fn over(
        engine: Arc<dyn Engine>,
        token: Option<&str>,
        config: Config,
        moved: Option<Arc<dyn MovedTime>>,
        tls: Option<ServerTls>,
    ) -> Self {
        let leadership = Leadership::always(engine.clone());
        Server::at(leadership, engine, tokens_of(token), config, moved, tls)
    }

    /// A server that forwards each call to another server of the same store.
    pub fn forwarding_server(token: Option<&str>, config: Config) -> Self {
        Server::two(tokens_of(token), Tokens::default(), config)
    }

    /// A server with these tokens that forwards each call to one with those of the leader.
    pub fn two(tokens: Tokens, of_leader: Tokens, config: Config) -> Self {
        Server::two_recorded((tokens, Trail::default()), (of_leader, Trail::default()), config)
    }

    /// The same, each with a trail.
    pub fn two_recorded(
        (tokens, trail): (Tokens, Trail),
        (of_leader, trail_of_leader): (Tokens, Trail),
        config: Config,
    ) -> Self {
        let engine = Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap());
        let place = |server, serves| {
            let (secret, trust) = (Secret::new("of-the-servers"), Default::default());
            let peer_group = PeerGroup { server, store: 7, secret, trust };
            let standing = LeaderReport { serves, served_at: None };
            Leadership::shared("redis", peer_group, watch::channel(standing).1)
        };
        let here = place(1, ServingLeader::Local { engine: engine.clone(), epoch: 1 });
        // Its bounds are wider, so that the test sees those of the first server.
        let bounds = Config::default();
        let parts = (None, None);
        let owner =
            Server::recorded(here, engine.clone(), of_leader, bounds, parts, trail_of_leader);
        let Ok(StoreUrl::Server(url)) = format!("http://{}", owner.at).parse() else {
            panic!("it is a server")
        };
        let there = place(2, ServingLeader::Remote(LeaderAddress { url, epoch: 1 }));
        let mut server = Server::recorded(there, engine, tokens, config, (None, None), trail);
        server.owner = Some(Box::new(owner));
        server
    }

    /// One of several servers that share the store of this engine.
    pub fn of_several(
        leadership: Leadership,
        engine: Arc<dyn Engine>,
        token: Option<&str>,
        config: Config,
        tls: Option<ServerTls>,
    ) -> Self {
        Server::at(leadership, engine, tokens_of(token), config, None, tls)
    }

    /// The server to which this one forwards calls.
    pub fn leader(&self) -> &Server {
        self.owner.as_ref().unwrap()
    }

    fn at(
        leadership: Leadership,
        engine: Arc<dyn Engine>,
        tokens: Tokens,
        config: Config,
        moved: Option<Arc<dyn MovedTime>>,
        tls: Option<ServerTls>,
    ) -> Self {
        Server::recorded(leadership, engine, tokens, config, (moved, tls), Trail::default())
    }

    fn recorded(
        leadership: Leadership,
        engine: Arc<dyn Engine>,
        tokens: Tokens,
        config: Config,
        (moved, tls): (Option<Arc<dyn MovedTime>>, Option<ServerTls>),
        trail: Trail,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let deps = Deps {
            leadership,
            tokens: tokens.clone(),
            tls,
            config,
            gauge_hosts: Default::default(),
            moved,
            pages: None,
            metrics: None,
            trail: trail.clone(),
        };
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let running = runtime.spawn(tenure_server::run(listener, deps, async {
            let _ = stopped.await;
        }));
        Server {
            at,
            tokens,
            engine,
            runtime,
            stop: Some(stop),
            running: Some(running),
            owner: None,
            trail,
        }
    }

    pub fn drain(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> DrainReport {
        let running = self.running.take().unwrap();
        self.runtime
            .block_on(async { tokio::time::timeout(PATIENCE, running).await })
            .unwrap()
            .unwrap()
    }

    /// Live leases, from the engine: also after the server's end.
    pub fn live_leases(&self) -> u64 {
        let stats = self.engine.run(&Namespace::main(), GetStats);
        self.runtime.block_on(stats).unwrap().leases
    }

    /// Stores jobs in one call, past HTTP.
    pub fn push(&self, jobs: Vec<NewJob>) {
        let push = Push { jobs, answer: PushAnswer::Ids };
        self.runtime.block_on(self.engine.run(&Namespace::main(), push)).unwrap();
    }

    pub fn connect(&self) -> Conn {
        self.conn(TcpStream::connect(self.at).unwrap())
    }

    /// A connection with small buffers: unread bytes soon stay at the server.
    pub fn connect_narrow(&self) -> Conn {
        let stream = self.runtime.block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(64 * 1024).unwrap();
            socket.connect(self.at).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        self.conn(stream)
    }

    fn conn(&self, stream: TcpStream) -> Conn {
        Conn::of(stream, self.at)
    }

    /// A call whose answer is not compared with `/openapi.json`.
    pub fn get_as_it_is(&self, path: &str) -> Answer {
        let mut conn = self.connect();
        conn.ask("GET", path, "");
        conn.answer_as_it_is()
    }

    /// One call on a connection of its own.
    pub fn call(&self, method: &str, path: &str, body: &str) -> Answer {
        self.connect().call(method, path, body)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "")
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.call("POST", path, body)
    }

    pub fn put(&self, path: &str, body: &str) -> Answer {
        self.call("PUT", path, body)
    }

    /// State that a refused call must not change.
    pub fn state(&self) -> Value {
        let audit = self.get("/v1/audit").good();
        assert_eq!(audit["ok"], true, "{audit}");
        let mut stats = self.get("/v1/stats").good();
        stats["store"] = Value::Null;
        let list = |what: &str| self.get(&format!("/v1/{what}?max=1000")).good();
        serde_json::json!([
            stats,
            list("jobs"),
            list("leases"),
            list("queues"),
            list("limits"),
            list("pools")
        ])
    }
}

fn tokens_of(token: Option<&str>) -> Tokens {
    Tokens::of(token.map(Secret::new).into_iter().collect())
}

/// Waits for a condition that has no event of its own.
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "it never was: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn request(at: SocketAddr, method: &str, path: &str, body: &str) -> String {
    let media = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {at}\r\n{media}Content-Length: {length}\r\n\r\n{body}"
    )
}

/// A connection, and the bytes that were read ahead.
pub struct Conn {
    reader: BufReader<TcpStream>,
    at: SocketAddr,
    /// Methods and paths of the calls that were not answered yet. `None` once a test sent bytes of its own: nobody
    /// knows then which answer belongs to which call.
    asked: Option<VecDeque<(String, String)>>,
}

impl Conn {
    /// A new connection, if the other side accepts it.
    pub fn to(at: SocketAddr) -> std::io::Result<Conn> {
        TcpStream::connect(at).map(|stream| Conn::of(stream, at))
    }

    fn of(stream: TcpStream, at: SocketAddr) -> Conn {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Conn { reader: BufReader::new(stream), at, asked: Some(VecDeque::new()) }
    }

    /// Makes a call, unless the other side has closed.
    pub fn try_call(&mut self, method: &str, path: &str, body: &str) -> Option<Answer> {
        let request = request(self.at, method, path, body);
        if self.reader.get_mut().write_all(request.as_bytes()).is_err() {
            return None;
        }
        self.asks(method, path);
        let begun = self.reader.fill_buf().is_ok_and(|bytes| !bytes.is_empty());
        begun.then(|| self.answer())
    }

    fn asks(&mut self, method: &str, path: &str) {
        if let Some(asked) = &mut self.asked {
            asked.push_back((method.to_owned(), path.to_owned()));
        }
    }

    /// Sends bytes, right or wrong. From now on no answer on this connection is compared with `/openapi.json`.
    pub fn send(&mut self, bytes: &[u8]) {
        self.asked = None;
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// Sends as much as the other side accepts.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.asked = None;
        self.reader.get_mut().write_all(bytes).is_ok()
    }

    pub fn call(&mut self, method: &str, path: &str, body: &str) -> Answer {
        self.ask(method, path, body);
        self.answer()
    }

    /// A valid request; a body is JSON.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) {
        let request = request(self.at, method, path, body);
        self.reader.get_mut().write_all(request.as_bytes()).unwrap();
        self.asks(method, path);
    }

    /// A request with these header lines.
    pub fn ask_with(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let head =
            format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        self.reader.get_mut().write_all(head.as_bytes()).unwrap();
        // It may be answered before all of it is read.
        let _ = self.reader.get_mut().write_all(body);
        self.asks(method, path);
        self.answer()
    }

    /// Whether the other side closes without another byte.
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        !matches!(self.reader.read(&mut byte), Ok(1))
    }

    /// Whether the other side has closed by now, without another byte.
    pub fn was_closed(&mut self) -> bool {
        use std::io::ErrorKind;
        let mut byte = [0];
        let stream = self.reader.get_ref();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let read = self.reader.read(&mut byte);
        self.reader.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        match read {
            Ok(read) => read == 0,
            Err(why) => !matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }

    /// The next line from the server.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The head of the next answer: its status, and its headers in lower case.
    pub fn head(&mut self) -> (u16, Vec<(String, String)>) {
        self.asked.as_mut().and_then(VecDeque::pop_front);
        self.read_head()
    }

    fn read_head(&mut self) -> (u16, Vec<(String, String)>) {
        let first = self.line();
        let status = first.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {first:?}"));
        let status = status.parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap();
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        (status, headers)
    }

    /// The next chunk of a chunked body; `None` at its end.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line(), 16).unwrap();
        let mut chunk = vec![0; size];
        self.reader.read_exact(&mut chunk).unwrap();
        self.line();
        (size > 0).then_some(chunk)
    }

    /// The next answer, which must be as `/openapi.json` says.
    pub fn answer(&mut self) -> Answer {
        let asked = self.asked.as_mut().and_then(VecDeque::pop_front);
        let answer = self.answer_as_it_is();
        if let Some((method, path)) = asked {
            Description::of_this_build().check(&method, &path, &answer);
        }
        answer
    }

    fn answer_as_it_is(&mut self) -> Answer {
        let (status, headers) = self.read_head();
        let mut answer = Answer { status, headers, body: Vec::new() };
        if let Some(length) = answer.header("content-length") {
            answer.body = vec![0; length.parse().unwrap()];
            self.reader.read_exact(&mut answer.body).unwrap();
        } else if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                answer.body.extend(chunk);
            }
        }
        answer
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// The JSON of a good answer.
    pub fn good(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text());
        self.json()
    }

    /// The JSON of every line.
    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A problem with this status and code, and with all required members.
    pub fn refused(&self, status: u16, code: &str, pointer: Option<&str>) -> Value {
        let problem = self.json();
        let got = (self.status, problem["code"].as_str(), problem["pointer"].as_str());
        assert_eq!(got, (status, Some(code), pointer), "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        for field in ["type", "title", "detail", "hint"] {
            assert!(
                problem[field].as_str().is_some_and(|text| !text.is_empty()),
                "{field}: {problem}"
            );
        }
        // The command line shows the same sentences, and it talks to any store.
        for field in ["detail", "hint"] {
            let text = problem[field].as_str().unwrap_or_default();
            let words = ["/v1/", "GET ", "POST ", "PUT ", "PATCH ", "DELETE ", "?force"];
            let names_a_route = words.iter().any(|word| text.contains(word));
            let is_of_http = matches!(code, "route_not_found" | "method_not_allowed");
            assert!(is_of_http || !names_a_route, "{problem}");
        }
        if status == 429 || status == 503 {
            assert!(self.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
        }
        problem
    }
}
