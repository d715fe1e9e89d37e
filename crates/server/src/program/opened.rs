//! The store of a server in a program: its own, or a shared one.

use std::sync::Arc;
use std::thread;
use tenure_journal::threads::task_or_die;

use tenure_core::gauge::GaugeHosts;
use tenure_engine::Embedded;
use tenure_engine_api::Engine;
use tokio::task::JoinSet;

use super::backups::OwnBackups;
use super::shared::SharedStore;
use crate::leadership::Leadership;

#[derive(Clone)]
pub(super) enum OpenedPlace {
    /// In a folder or in memory, of this process alone.
    Own(Arc<Embedded>),
    /// In Redis, with other servers.
    Shared(Arc<SharedStore>),
}

impl OpenedPlace {
    pub fn leadership(&self) -> Leadership {
        match self {
            OpenedPlace::Own(engine) => Leadership::always(engine.clone())
                .backed_up_by(Arc::new(OwnBackups(engine.clone()))),
            OpenedPlace::Shared(store) => store.leadership(),
        }
    }

    /// Starts the background tasks of the server: one follows the leadership of a shared store, one reads gauges.
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

    /// Gives a shared store to another server, while this one drains.
    pub async fn hand_over(&self) {
        if let OpenedPlace::Shared(_) = self {
            self.close().await;
        }
    }

    /// Closes the store: everything is written, and a shared store is handed over. A second call does nothing.
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

    /// Drops the store as a killed process would. That joins threads, so a thread does it. If none can be started, the
    /// store ends with the last reference to it.
    pub fn crash(&self) {
        if let OpenedPlace::Shared(store) = self.clone() {
            let thread = thread::Builder::new().name("tenure-crash".to_owned());
            if let Err(why) = thread.spawn(move || store.crash()) {
                tracing::warn!("could not start a thread: {why}");
            }
        }
    }
}
