//! The store of a server: a folder or the memory of this process, or a Redis that it shares with others.
//!
//! Opened before the server listens, closed when all is answered. It never shows a password.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tenure::url::StoreUrl;
use tenure_core::redis_address::Address;
use tenure_core::time::Moment;
use tenure_engine::{
    Config, Durability, Embedded, Fatal, Location, MovedEngine, Options, Recovery,
};
use tenure_engine_api::{Clock, Engine, MovedTime, SystemClock};
use tenure_server::{Advertised, SharedStore, StoreSettings, node_options};
use tokio::sync::watch;

use crate::args::serve::{DurabilityArg, ServeArgs, TestClock};
use crate::exit::{Failure, UNAVAILABLE};
use crate::settings::seal_file;
use crate::settings::trust::trust;
use crate::store::not_opened;

/// Where the state lives.
pub enum ServePlace {
    /// With this process alone.
    Own(Location),
    /// In the memory of this process, whose time stands at this moment until a test moves it.
    Moved(Moment),
    /// With the other servers of the store in this Redis; one of them leads it.
    Shared(Box<Address>),
}

/// An engine that is open.
pub enum ServedStore {
    /// With a thread and files of its own.
    Own(Arc<Embedded>),
    /// The same in memory, with a clock that a test moves.
    Moved(Arc<MovedEngine>),
    /// With a thread that takes part in the election of the leader.
    Shared(Arc<SharedStore>),
}

/// For people: a folder as a whole path, a Redis without its password.
impl fmt::Display for ServePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServePlace::Own(Location::Folder(path)) => {
                let whole = std::path::absolute(path);
                write!(f, "file:{}", whole.as_deref().unwrap_or(path).display())
            }
            ServePlace::Own(_) | ServePlace::Moved(_) => f.write_str("memory:"),
            ServePlace::Shared(address) => address.fmt(f),
        }
    }
}

impl ServePlace {
    /// Reads `--store`, and checks that the other options go with it.
    pub fn of(args: &ServeArgs) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::usage(format!("--store: {why}"))
                .hint("use file:PATH for a folder, memory:, or redis://HOST:6379 and the like")
        };
        let store = args.store.parse::<StoreUrl>();
        if let Some(start) = args.test_clock {
            return match store {
                Ok(StoreUrl::Memory) => Ok(ServePlace::Moved(match start {
                    TestClock::Now => SystemClock.now(),
                    TestClock::At(moment) => moment,
                })),
                _ => Err(Failure::usage("--test-clock works only with --store memory:").hint(
                    "start the server for a test with --store memory: --test-clock; a store \
                           that outlives the test needs the real clock",
                )),
            };
        }
        match store {
            Ok(StoreUrl::Memory) => Ok(ServePlace::Own(Location::Memory)),
            Ok(StoreUrl::File(path)) => Ok(ServePlace::Own(Location::Folder(path))),
            Ok(StoreUrl::Redis(address)) => {
                fits_redis(args)?;
                Ok(ServePlace::Shared(Box::new(address)))
            }
            Ok(StoreUrl::Server(_) | StoreUrl::Servers(_)) => {
                Err(wrong("this is the address of a server"))
            }
            Err(why) => Err(wrong(&why.to_string())),
        }
    }

    /// The address by which other servers and clients reach this one, if servers share the store; otherwise empty.
    pub async fn advertised(
        &self,
        args: &ServeArgs,
        at: io::Result<SocketAddr>,
        tls: bool,
    ) -> Result<String, Failure> {
        let ServePlace::Shared(address) = self else {
            return match args.advertise {
                None => Ok(String::new()),
                Some(_) => Err(Failure::usage(
                    "--advertise is for a store on Redis that several servers share",
                )
                .hint("leave it out: clients of this server know its address")),
            };
        };
        let advertised = match (&args.advertise, at) {
            (Some(text), _) => Advertised::given(text, tls)
                .map_err(|why| Failure::usage(format!("--advertise: '{text}' {why}")))?,
            (None, Ok(at)) => Advertised::guessed(at, tls, address).await,
            (None, Err(why)) => {
                let sentence = format!("the address of the listener is unknown: {why}");
                return Err(
                    Failure::new(UNAVAILABLE, sentence).hint("name it with --advertise HOST:PORT")
                );
            }
        };
        if advertised.is_only_for_this_machine(address).await {
            let what = format!(
                "other servers of this store cannot reach this one at {}: the address works only \
                 on this machine, and the Redis is on another one",
                advertised.url
            );
            return Err(Failure::usage(what).hint(
                "set --advertise HOST:PORT to an address at which other servers and clients reach \
                 this one, or listen on a network address with --listen HOST:PORT",
            ));
        }
        if let Some(warning) = advertised.warning {
            tracing::warn!("{warning}");
        }
        Ok(advertised.url)
    }

    /// Opens it. A Redis need not be there: until it is, calls are answered as unavailable.
    pub async fn open(
        self,
        args: &ServeArgs,
        accept_loss: bool,
        at: String,
        tell: watch::Sender<Option<Fatal>>,
    ) -> Result<ServedStore, Failure> {
        let seal = seal_file::read(args.seal_key_file.as_deref())?;
        let (location, start) = match self {
            ServePlace::Shared(address) => {
                let trust = trust();
                let mut options = node_options(*address, at, &trust);
                let ServeArgs { patience, retain_bytes, events_bytes, .. } = *args;
                options.engine.seal = seal;
                options.engine.config.namespaces_max = args.namespaces_max as usize;
                let settings = options.settings;
                options.settings =
                    StoreSettings { patience, retain_bytes, events_bytes, ..settings };
                let shared = SharedStore::open(options, trust);
                let shared = shared.map_err(|why| Failure::new(UNAVAILABLE, why.to_string()))?;
                return Ok(ServedStore::Shared(Arc::new(shared)));
            }
            ServePlace::Own(location) => (location, None),
            ServePlace::Moved(start) => (Location::Memory, Some(start)),
        };
        let fresh = Options::new(location);
        let options = Options {
            durability: match args.durability {
                DurabilityArg::Always => Durability::Always,
                DurabilityArg::Everysec => Durability::Everysec,
            },
            config: machine_config(args),
            events_bytes: args.events_bytes.unwrap_or(fresh.events_bytes),
            max_bytes: args.max_bytes,
            on_fatal: Arc::new(move |why| {
                tell.send_replace(Some(why.clone()));
            }),
            accept_loss,
            seal,
            ..fresh
        };
        // It reads the whole index.
        let opened = tokio::task::spawn_blocking(move || match start {
            Some(start) => {
                MovedEngine::open(start, options).map(|engine| ServedStore::Moved(Arc::new(engine)))
            }
            None => Embedded::open(options).map(|engine| ServedStore::Own(Arc::new(engine))),
        });
        let opened =
            opened.await.map_err(|why| Failure::bug(format!("opening panicked: {why}")))?;
        opened.map_err(|why| not_opened(&why))
    }
}

/// The Redis that an address names, of a store that several servers share.
pub fn redis_of(text: &str) -> Result<Address, Failure> {
    match text.parse() {
        Ok(StoreUrl::Redis(address)) => Ok(address),
        Ok(_) => Err("this is not the address of a Redis".to_owned()),
        Err(why) => Err(why.to_string()),
    }
    .map_err(|why| {
        Failure::usage(format!("--store: {why}"))
            .hint("name the Redis of the servers: redis://HOST:6379")
    })
}

fn machine_config(args: &ServeArgs) -> Config {
    let usual = Config::default();
    Config {
        patience: args.patience.unwrap_or(usual.patience),
        retain_bytes: args.retain_bytes.unwrap_or(usual.retain_bytes),
        namespaces_max: args.namespaces_max as usize,
    }
}

/// A Redis itself decides which failures its answers survive.
fn fits_redis(args: &ServeArgs) -> Result<(), Failure> {
    if args.max_bytes.is_some() {
        return Err(Failure::usage(
            "--max-bytes does not apply to a Redis, which has its own maximum",
        )
        .hint("set maxmemory in the Redis; `tenure doctor` shows it"));
    }
    match args.durability {
        DurabilityArg::Always => Ok(()),
        DurabilityArg::Everysec => {
            Err(Failure::usage("--durability does not apply to a Redis, which has its own setting")
                .hint("set appendfsync in the Redis; `tenure doctor` shows it"))
        }
    }
}

impl ServedStore {
    pub fn engine(&self) -> Arc<dyn Engine> {
        match self {
            ServedStore::Own(engine) => engine.clone(),
            ServedStore::Moved(engine) => engine.clone(),
            ServedStore::Shared(store) => store.engine(),
        }
    }

    /// The engine, if its store is this process's own and its clock is the system's.
    pub fn own(&self) -> Option<&Arc<Embedded>> {
        match self {
            ServedStore::Own(engine) => Some(engine),
            ServedStore::Moved(_) | ServedStore::Shared(_) => None,
        }
    }

    /// The store, if several servers share it.
    pub fn shared(&self) -> Option<&Arc<SharedStore>> {
        match self {
            ServedStore::Shared(store) => Some(store),
            _ => None,
        }
    }

    /// Its time, if a test moves it.
    pub fn moved(&self) -> Option<Arc<dyn MovedTime>> {
        match self {
            ServedStore::Moved(engine) => Some(engine.clone()),
            ServedStore::Own(_) | ServedStore::Shared(_) => None,
        }
    }

    /// The recovery at its opening, if it has state of its own.
    pub fn recovery(&self) -> Option<Recovery> {
        match self {
            ServedStore::Own(engine) => Some(engine.recovery()),
            ServedStore::Moved(_) | ServedStore::Shared(_) => None,
        }
    }

    /// Closes it. Blocks until all is written.
    pub fn close(self) {
        match self {
            ServedStore::Own(engine) => engine.close(),
            ServedStore::Moved(engine) => engine.close(),
            ServedStore::Shared(store) => store.close(),
        }
    }
}
