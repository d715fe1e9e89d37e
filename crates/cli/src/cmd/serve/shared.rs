//! A store in Redis that several servers share: this one owns it, or passes calls on to the one that does.
//!
//! It only brings together what decides and what answers: who owns the store is known by the member, and calls are passed on
//! by the server.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure::ServerUrl;
use tenure::remote::Trust;
use tenure::url::StoreUrl;
use tenure_core::gauge::GaugeHosts;
use tenure_engine::Engine;
use tenure_member::{
    AskServer, AskedServer, Epoch, Generation, Member, MemberOptions, Ownership, Position,
    ServerWord, SnapshotName, SnapshotWish, StorePlace,
};
use tenure_server::{
    AskedSnapshot, AsksServers, Fellowship, OwnerAddress, ServerSays, Serves, Standing,
    Whereabouts, WritesSnapshots, WrittenSnapshot,
};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::exit::{Failure, UNAVAILABLE};

/// A store that is not known yet is looked for this often.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// While another server writes a snapshot, the owner is asked this often whether it waits on.
const ASK_ON_EVERY: Duration = Duration::from_millis(100);

/// A member of the store, and what it tells the server.
pub struct SharedStore {
    member: Arc<Member>,
    fellowship: Arc<OnceLock<Arc<Fellowship>>>,
    standing: watch::Sender<Standing>,
}

impl SharedStore {
    /// Begins to take part in the store. Redis need not be there yet.
    pub fn open(options: MemberOptions) -> Result<SharedStore, Failure> {
        let member =
            Member::open(options).map_err(|why| Failure::new(UNAVAILABLE, why.to_string()))?;
        let serves = Serves::Nobody("this server has just started".to_owned());
        let standing = watch::Sender::new(Standing { serves, served_at: None });
        Ok(SharedStore { member: Arc::new(member), fellowship: Arc::default(), standing })
    }

    /// What answers calls while this server owns the store.
    pub fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.member.engine())
    }

    /// Where calls are answered, as the server is told.
    pub fn whereabouts(&self) -> Whereabouts {
        let standing = self.standing.subscribe();
        let snapshots = Arc::new(MemberSnapshots(self.member.clone()));
        Whereabouts::joining(self.fellowship.clone(), standing).writing(snapshots)
    }

    /// Tells the server where calls are answered, for as long as it is polled. `engine` answers those of this process.
    pub async fn tell(&self, engine: Arc<dyn Engine>) -> Infallible {
        let mut places = self.member.place();
        self.known().await;
        loop {
            let place = places.borrow_and_update().clone();
            let serves = serves(place, &engine);
            let served_at = self.member.served().map(|Epoch(epoch)| epoch);
            self.standing.send_replace(Standing { serves, served_at });
            if places.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// Ends when the store and the secret of its servers are known.
    async fn known(&self) {
        loop {
            if let Some((store, secret)) = self.member.store() {
                let (server, trust) = (self.member.id(), Trust::default());
                let fellowship = Fellowship { server, store, secret, trust };
                let _ = self.fellowship.set(Arc::new(fellowship));
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Reads the gauges of the store while this server owns it.
    pub async fn read_gauges(&self, hosts: GaugeHosts) -> Infallible {
        let mut places = self.member.place();
        loop {
            let engine = match &*places.borrow_and_update() {
                StorePlace::Here { engine, .. } => Some(engine.clone()),
                _ => None,
            };
            if let Some(engine) = engine {
                tenure::read_gauges(engine, hosts.clone()).await;
            }
            if places.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// Hands the store over, if this server owns it. Blocks. Repeating it does nothing.
    pub fn close(&self) {
        self.member.close();
    }
}

fn serves(place: StorePlace, engine: &Arc<dyn Engine>) -> Serves {
    match place {
        StorePlace::Here { epoch, .. } => Serves::Here { engine: engine.clone(), epoch },
        StorePlace::There { url, epoch, .. } => match server_url(&url) {
            Some(url) => Serves::There(OwnerAddress { url, epoch }),
            None => {
                Serves::Nobody(format!("the owner says that it is at {url:?}, which is no address"))
            }
        },
        StorePlace::Nobody(why) => Serves::Nobody(why),
    }
}

fn server_url(text: &str) -> Option<ServerUrl> {
    match text.parse() {
        Ok(StoreUrl::Server(url)) => Some(url),
        _ => None,
    }
}

/// Snapshots that this process writes while another one owns the store.
struct MemberSnapshots(Arc<Member>);

impl WritesSnapshots for MemberSnapshots {
    fn write(
        &self,
        asked: &AskedSnapshot,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<WrittenSnapshot> {
        let AskedSnapshot { store, owner, epoch, run, count, reached } = asked.clone();
        let by = Ownership { store, epoch, owner, run };
        let written = self.0.write_snapshot(&SnapshotWish { by, count, reached }, goes_on)?;
        let SnapshotName { tip, pieces, bytes, sum, .. } = written;
        Some(WrittenSnapshot { number: tip.number, checksum: tip.sum, pieces, bytes, sum })
    }
}

/// Asks other servers by HTTP.
pub struct AsksByHttp(Handle);

impl AsksByHttp {
    /// On the runtime of this process.
    pub fn here() -> Self {
        AsksByHttp(Handle::current())
    }
}

/// What asks this server, and where it is; `None`: that is no address.
fn asking(asked: &AskedServer) -> Option<(AsksServers, ServerUrl)> {
    // The id of this process is of no matter to the one that is asked.
    let fellowship = Fellowship {
        server: 0,
        store: asked.store.unwrap_or_default(),
        secret: asked.secret.clone(),
        trust: Trust::default(),
    };
    Some((AsksServers::new(fellowship), server_url(&asked.url)?))
}

impl AskServer for AsksByHttp {
    fn ask(&self, asked: &AskedServer, within: Duration) -> ServerWord {
        let Some((asks, url)) = asking(asked) else { return ServerWord::Silent };
        match self.0.block_on(asks.ask(&url, asked.id, within)) {
            ServerSays::Refused => ServerWord::Refused,
            ServerSays::Silent => ServerWord::Silent,
            ServerSays::Says { serves, served_at } => {
                ServerWord::Says { serves, served: Epoch(served_at.unwrap_or_default()) }
            }
        }
    }

    fn write_snapshot(
        &self,
        server: &AskedServer,
        wish: &SnapshotWish,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<SnapshotName> {
        let (asks, url) = asking(server)?;
        let SnapshotWish { by: Ownership { store, epoch, owner, run }, count, reached } =
            wish.clone();
        let asked = AskedSnapshot { store, owner, epoch, run, count, reached };
        let waits = async {
            while goes_on() {
                tokio::time::sleep(ASK_ON_EVERY).await;
            }
        };
        let written = self.0.block_on(async {
            tokio::select! {
                written = asks.write_snapshot(&url, &asked) => written,
                () = waits => None,
            }
        });
        written.map(|WrittenSnapshot { number, checksum, pieces, bytes, sum }| SnapshotName {
            generation: Generation { epoch, count },
            tip: Position { number, sum: checksum },
            pieces,
            bytes,
            sum,
        })
    }
}
