//! A store in Redis that several servers share: this one owns it, or passes calls on to the one that does.
//!
//! It only brings together what decides and what answers: who owns the store is known by the member, and calls are passed on
//! by the server.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tenure::remote::Trust;
use tenure_core::gauge::GaugeHosts;
use tenure_member::{
    Epoch, Member, MemberError, MemberOptions, STORE_KIND, StorePlace, StoreSettings,
};
use tenure_redis_address::Address;
use tenure_seam::{Engine, SharedServer};
use tokio::sync::watch;

use super::asks::{AsksByHttp, MemberSnapshots, server_url};
use super::unreachable::UnreachableServers;
use crate::whereabouts::{
    Describes, Fellowship, OwnerAddress, Serves, Standing, Whereabouts, passes_on,
};

/// A store that is not known yet is looked for this often.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The secret of the servers is looked at this often. The member reads it in Redis once a second.
const LOOK_AT_SECRET_EVERY: Duration = Duration::from_millis(250);

/// Options of a member of the store at this address, which is reached at `url` and asks the other servers by HTTP. To be
/// called within a runtime, which must live as long as the member.
pub fn member_options(address: Address, url: String, trust: &Trust) -> MemberOptions {
    let name = address.name().to_owned();
    let asks = AsksByHttp::here(trust.clone());
    let forgets_never = address.forgets_never().then_some(true);
    let settings =
        StoreSettings { forgets_never, replicas: address.replicas(), ..StoreSettings::default() };
    MemberOptions { settings, ..MemberOptions::new(address, name, url, Arc::new(asks)) }
}

/// A member of the store, and what it tells the server.
pub struct SharedStore {
    member: Arc<Member>,
    fellowship: watch::Sender<Option<Arc<Fellowship>>>,
    standing: watch::Sender<Standing>,
    /// Whose certificates are trusted where another server speaks HTTPS.
    trust: Trust,
    unreachable: Arc<UnreachableServers>,
}

impl SharedStore {
    /// Begins to take part in the store. Redis need not be there yet.
    ///
    /// # Errors
    /// As [`Member::open`].
    pub fn open(options: MemberOptions, trust: Trust) -> Result<SharedStore, MemberError> {
        let member = Arc::new(Member::open(options)?);
        let serves = Serves::Nobody("this server has just started".to_owned());
        let standing = watch::Sender::new(Standing { serves, served_at: None });
        let (fellowship, unreachable) = (watch::Sender::new(None), Arc::default());
        Ok(SharedStore { member, fellowship, standing, trust, unreachable })
    }

    /// What answers calls while this server owns the store.
    pub fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.member.engine())
    }

    /// Where calls are answered, as the server is told.
    pub fn whereabouts(&self) -> Whereabouts {
        let standing = self.standing.subscribe();
        Whereabouts::joining(STORE_KIND, self.fellowship.subscribe(), standing)
            .writing(Arc::new(MemberSnapshots(self.member.clone())))
            .described_by(Arc::new(DescribesMember {
                member: self.member.clone(),
                unreachable: self.unreachable.clone(),
            }))
    }

    /// Tells the server where calls are answered, for as long as it is polled. `engine` answers those of this process.
    pub async fn tell(&self, engine: Arc<dyn Engine>) -> Infallible {
        tokio::select! {
            never = self.tell_places(|place| match place {
                // Nothing is served or passed on as long as the store is not known.
                StorePlace::Here { .. } | StorePlace::There { .. } => None,
                place => Some(serves(place, &engine)),
            }) => return never,
            () = self.known() => {}
        }
        tokio::select! {
            never = self.tell_places(|place| Some(serves(place, &engine))) => never,
            never = self.tell_secrets() => never,
            never = self.unreachable.follow(&self.member) => never,
        }
    }

    async fn tell_places(&self, says: impl Fn(StorePlace) -> Option<Serves>) -> Infallible {
        let mut places = self.member.place();
        loop {
            if let Some(serves) = says(places.seen()) {
                let served_at = self.member.served().map(|Epoch(epoch)| epoch);
                self.standing.send_replace(Standing { serves, served_at });
            }
            places.changed().await;
        }
    }

    /// Ends when the store and the secret of its servers are known.
    async fn known(&self) {
        while !self.tell_secret() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Tells the server another secret of the servers, once the store has one. It changes where Redis was emptied, or where
    /// somebody replaced it there.
    async fn tell_secrets(&self) -> Infallible {
        loop {
            tokio::time::sleep(LOOK_AT_SECRET_EVERY).await;
            if self.tell_secret() {
                tracing::warn!(
                    "the servers of the store have another secret now; that of before is taken for a minute more"
                );
            }
        }
    }

    /// Tells the server how the servers of the store know each other; whether that is new.
    fn tell_secret(&self) -> bool {
        let Some((store, secret)) = self.member.store() else { return false };
        self.fellowship.send_if_modified(|told| {
            if told.as_ref().is_some_and(|told| told.store == store && told.secret == secret) {
                return false;
            }
            let (server, trust) = (self.member.id(), self.trust.clone());
            *told = Some(Arc::new(Fellowship { server, store, secret, trust }));
            true
        })
    }

    /// Reads the gauges of the store while this server owns it.
    pub async fn read_gauges(&self, hosts: GaugeHosts) -> Infallible {
        let mut places = self.member.place();
        loop {
            if let StorePlace::Here { engine, .. } = places.seen() {
                tenure::read_gauges(engine, hosts.clone()).await;
            }
            places.changed().await;
        }
    }

    /// Hands the store over, if this server owns it. Blocks. Repeating it does nothing.
    pub fn close(&self) {
        self.member.close();
    }

    /// Ends as if the process had been killed: see [`Member::crash`]. Blocks.
    pub fn crash(&self) {
        self.member.crash();
    }
}

/// Says who owns the store: on the owner how far the other servers are, and on another server what an operator should know of it.
struct DescribesMember {
    member: Arc<Member>,
    unreachable: Arc<UnreachableServers>,
}

impl Describes for DescribesMember {
    fn described(&self) -> Option<String> {
        let epoch = match self.member.place().now() {
            StorePlace::Here { epoch, .. } => epoch,
            StorePlace::There { url, .. } => {
                return Some(format!("{}; {}", passes_on(&url), self.warning()?));
            }
            _ => return None,
        };
        let one = |server: SharedServer| {
            let SharedServer { url, behind, unreachable, .. } = server;
            let lag = match behind {
                1 => format!("{url} is one entry behind"),
                behind => format!("{url} is {behind} entries behind"),
            };
            match unreachable {
                Some(why) => format!("{lag} and is unreachable from here ({why})"),
                None => lag,
            }
        };
        let others = self.servers().into_iter().filter(|server| !server.is_self);
        let others: Vec<String> = others.map(one).collect();
        let others = if others.is_empty() {
            "no other server is there to go on without it".to_owned()
        } else {
            others.join(", ")
        };
        Some(format!("the server answers calls and owns the store, at epoch {epoch}; {others}"))
    }

    fn warning(&self) -> Option<String> {
        let is_unreachable = |server: &SharedServer| server.unreachable.is_some();
        let unreachable = self.servers().into_iter().find(is_unreachable).map(|server| {
            let why = server.unreachable.unwrap_or_default();
            format!(
                "{} is unreachable from here ({why}): see that --advertise of it is right",
                server.url
            )
        });
        self.member.health().warnings.into_iter().next().or(unreachable)
    }

    fn servers(&self) -> Vec<SharedServer> {
        let mut servers = self.member.servers();
        for server in servers.iter_mut().filter(|server| !server.is_self) {
            server.unreachable = self.unreachable.why(&server.url);
        }
        servers
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
        StorePlace::Paused(why) => Serves::Paused(why),
    }
}
