//! A server with the dashboard, and a browser that only sends bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::decode;
use tenure_core::lease::LeaseView;
use tenure_core::names::Namespace;
use tenure_core::requests::{Operation, Push, PushAnswer, Pushed};
use tenure_core::secret::Secret;
use tenure_dashboard::{Dashboard, History};
use tenure_engine::{Embedded, Location, Options};
use tenure_engine_api::{Engine, EngineExt};
use tenure_server::{
    Config, Deps, ForwardingEngine, Leadership, Tokens, Trail, TrailOptions, TrailPlace,
};
use tenure_testkit::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The longest wait for an answer, on a machine that builds beside the tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// The store of a server.
pub enum Store {
    Memory,
    /// In memory, with 20 KB of events.
    FewEvents,
    Folder(TempDir),
}

impl Store {
    pub fn folder() -> Self {
        Store::Folder(TempDir::new())
    }

    fn open(&self) -> Arc<dyn Engine> {
        let location = match self {
            Store::Memory | Store::FewEvents => Location::Memory,
            Store::Folder(folder) => Location::Folder(folder.path().to_owned()),
        };
        let mut options = Options::new(location);
        if let Store::FewEvents = self {
            options.events_bytes = 20_000;
        }
        Arc::new(Embedded::open(options).unwrap())
    }
}

pub struct Served {
    pub at: SocketAddr,
    /// Its tokens, which a test may replace.
    pub tokens: Tokens,
    /// A header that `get` sends; usually empty.
    pub session: String,
    engine: Arc<dyn Engine>,
    runtime: tokio::runtime::Runtime,
    stop: Option<oneshot::Sender<()>>,
    /// Removed when nothing is open any more.
    _store: Store,
    _trail: TempDir,
}

pub struct Got {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Got {
    /// A header of the answer.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The target of a redirect.
    pub fn leads_to(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.body);
        self.header("location").unwrap()
    }

    /// The page; panics without one.
    #[track_caller]
    pub fn page(self) -> String {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }
}

impl Served {
    pub fn start() -> Self {
        Served::with(None)
    }

    pub fn with(token: Option<&str>) -> Self {
        Served::over(Store::Memory, token, None)
    }

    /// With this source of minutes.
    pub fn with_history(history: impl History) -> Self {
        Served::over(Store::Memory, None, Some(Arc::new(history)))
    }

    /// Over this store, with a source of minutes if one is given.
    pub fn over(store: Store, token: Option<&str>, history: Option<Arc<dyn History>>) -> Self {
        let tokens = Tokens::of(token.map(Secret::new).into_iter().collect());
        Served::locked(store, tokens, history)
    }

    /// With these tokens.
    pub fn locked(store: Store, tokens: Tokens, history: Option<Arc<dyn History>>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let engine = {
            let _inside = runtime.enter();
            store.open()
        };
        let trail_folder = TempDir::new();
        let trail = Trail::open(TrailOptions {
            place: TrailPlace::Folder(trail_folder.path().to_owned()),
            is_required: false,
            most_bytes: 1 << 30,
            server: "127.0.0.1:7171".to_owned(),
        });
        let leadership = Leadership::always(engine.clone());
        let for_pages = ForwardingEngine::for_pages(leadership.clone());
        let pages = Dashboard::new(for_pages, tokens.clone(), None, history, trail.clone());
        let shared = tokens.clone();
        let deps = Deps {
            leadership,
            tokens,
            tls: None,
            config: Config::default(),
            gauge_hosts: Default::default(),
            moved: None,
            pages: Some(Arc::new(pages)),
            metrics: None,
            trail,
        };
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        runtime.spawn(tenure_server::run(listener, deps, async {
            let _ = stopped.await;
        }));
        let session = String::new();
        Served {
            at,
            tokens: shared,
            session,
            engine,
            runtime,
            stop: Some(stop),
            _store: store,
            _trail: trail_folder,
        }
    }

    pub fn drain(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Calls the engine, past HTTP.
    pub fn ask<O: Operation>(&self, request: O) -> O::Reply {
        self.runtime.block_on(self.engine.run(&Namespace::main(), request)).unwrap()
    }

    /// Pushes a job, in the JSON of the API; returns its id.
    pub fn push(&self, body: &str) -> String {
        let jobs = decode::push(body.as_bytes()).unwrap();
        match self.ask(Push { jobs, answer: PushAnswer::Ids }) {
            Pushed::Ids(ids) => ids[0].id.to_string(),
            Pushed::Whole(_) => unreachable!("ids were asked for"),
        }
    }

    /// A lease on a job of this queue, for a worker of this name.
    pub fn lease(&self, queue: &str, worker: &str) -> LeaseView {
        self.try_lease(queue, worker).expect("a job may go")
    }

    /// The same, if a job may go. A job that may not is blocked from then on.
    pub fn try_lease(&self, queue: &str, worker: &str) -> Option<LeaseView> {
        let body = serde_json::json!({
            "queues": [queue], "worker": {"id": worker, "host": worker}, "ttl": "10m",
        });
        let lease = decode::lease(body.to_string().as_bytes()).unwrap();
        self.ask(lease).leases.pop()
    }

    /// Ends a lease, in the JSON of the API.
    pub fn settle(&self, body: &str) {
        let settle = decode::settle(body.as_bytes()).unwrap();
        assert!(self.ask(settle).settled.iter().all(|one| one.ok));
    }

    /// Connects and sends; the caller reads the answer.
    pub fn connect(&self, head: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// One request, with these headers beside `Host`.
    pub fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> Got {
        let length = body.len();
        let host = if headers.contains("Host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.at)
        };
        // The default of browsers.
        let accept = if headers.contains("Accept:") { "" } else { "Accept: text/html\r\n" };
        Served::read(self.connect(&format!(
            "{method} {path} HTTP/1.1\r\n{host}{accept}Connection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )))
    }

    /// An answer, read until the server closes.
    pub fn read(mut stream: TcpStream) -> Got {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Got { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub fn get(&self, path: &str) -> Got {
        self.request("GET", path, &self.session, "")
    }

    /// Sends a form as a page of this server would.
    pub fn post(&self, path: &str, form: &str) -> Got {
        let headers =
            "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n";
        self.request("POST", path, headers, form)
    }
}
