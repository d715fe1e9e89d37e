//! The store of a server in a program: its own, or one that several servers share.

use std::sync::Arc;
use std::thread;
use tenure_journal::threads::task_or_die;

use tenure_core::gauge::GaugeHosts;
use tenure_engine::Embedded;
use tenure_seam::Engine;
use tokio::task::JoinSet;

use super::shared::SharedStore;
use crate::whereabouts::Whereabouts;

/// A store that is open.
#[derive(Clone)]
pub(super) enum OpenedPlace {
    /// In a folder or in memory, of this process alone.
    Own(Arc<Embedded>),
    /// In Redis, with other servers.
    Shared(Arc<SharedStore>),
}

impl OpenedPlace {
    pub fn whereabouts(&self) -> Whereabouts {
        match self {
            OpenedPlace::Own(engine) => Whereabouts::always(engine.clone()),
            OpenedPlace::Shared(store) => store.whereabouts(),
        }
    }

    /// Starts what runs beside the server: it is told where the store is served, and its gauges are read.
    pub fn beside(&self, hosts: GaugeHosts) -> JoinSet<()> {
        let mut beside = JoinSet::new();
        match self {
            OpenedPlace::Own(engine) => {
                let engine: Arc<dyn Engine> = engine.clone();
                beside.spawn(task_or_die("reading gauges", tenure::read_gauges(engine, hosts)));
            }
            OpenedPlace::Shared(store) => {
                let (tells, reads) = (store.clone(), store.clone());
                let tells = async move { match tells.tell(tells.engine()).await {} };
                beside.spawn(task_or_die("following the store", tells));
                let reads = async move { match reads.read_gauges(hosts).await {} };
                beside.spawn(task_or_die("reading gauges", reads));
            }
        }
        beside
    }

    /// Gives a store that is shared to another server, while this one drains.
    pub async fn hand_over(&self) {
        if let OpenedPlace::Shared(_) = self {
            self.close().await;
        }
    }

    /// Lets go of it: all is written and what is shared is handed over. Repeating it does nothing.
    pub async fn close(&self) {
        let this = self.clone();
        let closed = tokio::task::spawn_blocking(move || match this {
            OpenedPlace::Own(engine) => engine.close(),
            OpenedPlace::Shared(store) => store.close(),
        });
        if let Err(why) = closed.await {
            tracing::error!("the store was not closed: {why}");
        }
    }

    /// Lets go of it as a process does that is killed. It joins threads, so a thread does it; none can be started: it ends
    /// with the last reference to it.
    pub fn crash(&self) {
        if let OpenedPlace::Shared(store) = self.clone() {
            let thread = thread::Builder::new().name("tenure-crash".to_owned());
            if let Err(why) = thread.spawn(move || store.crash()) {
                tracing::warn!("could not start a thread: {why}");
            }
        }
    }
}
