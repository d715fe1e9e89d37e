//! Reads the state of the store from the engine, with bounded work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::names::Namespace;
use tenure_core::requests::{
    GetStats, ListLimits, ListPools, ListQueues, Listed, Operation, Page, Stats,
};
use tenure_core::settings::{LimitView, PoolView, QueueView};
use tenure_engine_api::{CallError, Engine, EngineExt};
use tokio::time::timeout;

/// Items of a page.
const PAGE: usize = 1000;
/// A list is read for at most this long, and the rest of it is left out.
const LIST_MAX: Duration = Duration::from_millis(250);
/// An engine that does not answer within this has no state to show.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The state of one namespace.
#[derive(Debug)]
pub(crate) struct NamespaceState {
    pub namespace: Namespace,
    pub stats: Stats,
    pub queues: List<QueueView>,
    pub limits: List<LimitView>,
    pub pools: List<PoolView>,
}

/// A list, as far as it was read.
#[derive(Debug)]
pub(crate) struct List<T> {
    pub items: Vec<T>,
    /// Not all of it could be read in time.
    pub cut: bool,
}

/// Reads the state; `None` if the engine refuses or does not answer.
pub(crate) async fn of(engine: &Arc<dyn Engine>, namespace: Namespace) -> Option<NamespaceState> {
    let asked = async {
        let stats = engine.run(&namespace, GetStats).await?;
        let queues = list(engine, &namespace, |page| ListQueues { page }).await?;
        let limits = list(engine, &namespace, |page| ListLimits { page }).await?;
        let pools = list(engine, &namespace, |page| ListPools { page }).await?;
        Ok::<_, CallError>((stats, queues, limits, pools))
    };
    let (stats, queues, limits, pools) = timeout(ANSWER_MAX, asked).await.ok()?.ok()?;
    Some(NamespaceState { namespace, stats, queues, limits, pools })
}

async fn list<T, O: Operation<Reply = Listed<T>>>(
    engine: &Arc<dyn Engine>,
    namespace: &Namespace,
    of: impl Fn(Page) -> O,
) -> Result<List<T>, CallError> {
    let began = Instant::now();
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let page = engine.run(namespace, of(Page { max: PAGE, cursor })).await?;
        items.extend(page.items);
        cursor = page.next;
        let cut = began.elapsed() > LIST_MAX;
        if cursor.is_none() || cut {
            return Ok(List { items, cut: cursor.is_some() });
        }
    }
}
