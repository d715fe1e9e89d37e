//! Gathers what the handlers say for a moment, and tells it in as few calls as possible.
//!
//! One bad outcome must not cost the others: a call that is refused for one of its items is sent
//! again without it. What could not be delivered is tried again for a minute.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure_core::bounds::{BODY_BYTES_MAX, ITEMS_MAX, REQUEST_US};
use tenure_core::lease::{Ending, SettleItem, SettledLease};
use tenure_core::refusal::{Code, Refusal};
use tenure_engine::CallError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use super::slots::Slot;
use crate::asking::{is_engines, passes};
use crate::client::{Client, broken};
use crate::repeat::Backoff;

/// How long the first outcome of a call waits for others.
const GATHER_MAX: Duration = Duration::from_millis(1);
/// How long an outcome is tried to be delivered.
const DELIVER_MAX: Duration = Duration::from_micros(REQUEST_US);
/// What is gathered stays well below the largest body.
const GATHER_BYTES: usize = BODY_BYTES_MAX / 2;

struct Wanted {
    item: SettleItem,
    /// Freed when the outcome is sent.
    slot: Option<Slot>,
    tell: oneshot::Sender<Result<SettledLease, CallError>>,
}

/// Takes outcomes from many handlers.
#[derive(Clone)]
pub struct Settler {
    send: mpsc::UnboundedSender<Wanted>,
    working: Arc<AtomicUsize>,
}

/// A handler that is at work, of which an outcome may still come.
pub struct Working(Arc<AtomicUsize>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Settler {
    /// On the runtime of the caller; it ends with the last clone.
    pub fn start(client: Client) -> Self {
        let (send, wanted) = mpsc::unbounded_channel();
        let working = Arc::new(AtomicUsize::new(0));
        tokio::spawn(gather(client, wanted, working.clone()));
        Settler { send, working }
    }

    /// Counts a handler as being at work, until what is returned is dropped.
    pub fn working(&self) -> Working {
        self.working.fetch_add(1, Ordering::Relaxed);
        Working(self.working.clone())
    }

    /// Ends a lease, together with others that end now. `slot` is freed when this is sent.
    pub async fn settle(
        &self,
        item: SettleItem,
        slot: Option<Slot>,
    ) -> Result<SettledLease, CallError> {
        let (tell, told) = oneshot::channel();
        let gone = || broken("settling ended before its worker");
        self.send.send(Wanted { item, slot, tell }).map_err(|_| gone())?;
        told.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn gather(
    client: Client,
    mut wanted: mpsc::UnboundedReceiver<Wanted>,
    working: Arc<AtomicUsize>,
) {
    while let Some(first) = wanted.recv().await {
        let until = Instant::now() + GATHER_MAX;
        let mut bytes = size(&first.item);
        let mut batch = vec![first];
        while batch.len() < ITEMS_MAX && bytes < GATHER_BYTES {
            let next = match wanted.try_recv() {
                Ok(next) => next,
                // Nobody is left who could add something: waiting would be for nothing.
                Err(_) if working.load(Ordering::Relaxed) == 0 => break,
                Err(_) => match timeout_at(until, wanted.recv()).await {
                    Ok(Some(next)) => next,
                    _ => break,
                },
            };
            bytes += size(&next.item);
            batch.push(next);
        }
        tokio::spawn(deliver(client.clone(), batch));
    }
}

/// Roughly what an item adds to a body.
fn size(item: &SettleItem) -> usize {
    let said = match &item.ending {
        Ending::Succeeded { result: Some(result) } => result.text().len(),
        Ending::Failed { error, .. } => error.len(),
        _ => 0,
    };
    said + item.push.iter().map(|job| job.payload.text().len()).sum::<usize>()
}

/// Whether the same outcome may be taken a little later. A follow-up job may find its queue full.
fn may_pass(error: &CallError) -> bool {
    passes(error) || error.code() == Some(Code::QueueFull)
}

async fn deliver(client: Client, mut batch: Vec<Wanted>) {
    let until = Instant::now() + DELIVER_MAX;
    let mut backoff = Backoff::default();
    while !batch.is_empty() {
        let items = batch.iter().map(|wanted| wanted.item.clone()).collect();
        for wanted in &mut batch {
            wanted.slot = None;
        }
        let error = match client.settle(items).await {
            Ok(settled) => {
                for (wanted, settled) in batch.into_iter().zip(settled) {
                    // A handler's task that is gone does not care.
                    let _ = wanted.tell.send(Ok(settled));
                }
                return;
            }
            Err(error) => error,
        };
        match error {
            CallError::Refused(no) if batch.len() > 1 && !no_ones(&no) => {
                // Whose fault it is is known, or is found by halving.
                let apart = match no.index.filter(|at| *at < batch.len()) {
                    Some(at) => vec![batch.remove(at)],
                    None => batch.split_off(batch.len() / 2),
                };
                tokio::spawn(apart_from(client.clone(), apart));
            }
            error if may_pass(&error) && Instant::now() < until => sleep(backoff.wait()).await,
            error => {
                for wanted in batch {
                    let _ = wanted.tell.send(Err(error.clone()));
                }
                return;
            }
        }
    }
}

/// Whether a refusal is about the engine and not about an item.
fn no_ones(no: &Refusal) -> bool {
    no.index.is_none() && is_engines(no.code)
}

/// The same for a part of a batch; boxed, since the two call each other.
fn apart_from(
    client: Client,
    batch: Vec<Wanted>,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(deliver(client, batch))
}
