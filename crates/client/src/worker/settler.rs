//! Settler: delivers the outcomes of handlers, many in one call.
//!
//! One bad outcome must not cost the others: a call that is refused for one of its items is sent again without it. An
//! undeliverable outcome is retried for a minute. One whose follow-ups find a full queue is retried for as long as its
//! lease is held: a consumer that is slow must not cost what was done. An outcome that the engine refuses is replaced:
//! first by a failed attempt with the refusal as its error, then by a release, so that the job does not count as lost.
//! Outcomes that ride with a lease call, and are not answered by it, are sent again alone.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::bounds::REQUEST_US;
use tenure_core::lease::{Leased, SettledLease};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::Lease;
use tenure_engine_api::CallError;
use tokio::time::{Instant, sleep};
use tracing::Instrument;

use super::ended_run::EndedRun;
use super::job::Surroundings;
use super::spans;
use super::stages::Stages;
use super::{Event, NotSettled, Phase};
use crate::asking::{is_engines, passes};
use crate::backoff::Backoff;
use crate::client::Client;
use crate::keeper::{Held, Stop};

/// How long the delivery of an outcome is retried.
const DELIVER_MAX: Duration = Duration::from_micros(REQUEST_US);

/// Delivers outcomes. Cheap to clone.
#[derive(Clone)]
pub struct Settler {
    pub client: Client,
    pub stages: Arc<Stages>,
    pub around: Arc<Surroundings>,
}

/// Whether a retry of the same outcome may succeed. A follow-up job may find its queue full.
fn may_pass(error: &CallError) -> bool {
    passes(error) || error.code() == Some(Code::QueueFull)
}

/// Whether a refusal is about the engine and not about an item.
fn no_ones(no: &Refusal) -> bool {
    no.index.is_none() && is_engines(no.code)
}

impl Settler {
    /// Delivers these; they count as sent until each of them is answered or given up.
    pub async fn deliver(self, mut batch: Vec<EndedRun>) {
        let mut until = Instant::now() + DELIVER_MAX;
        let mut backoff = Backoff::default();
        while !batch.is_empty() {
            let items = batch.iter().map(EndedRun::item).collect();
            let span = spans::settle(batch.iter().map(|said| &said.job));
            let error = match self.client.settle(items).instrument(span).await {
                Ok(settled) => {
                    batch = self.answered(batch, settled);
                    if !batch.is_empty() {
                        sleep(backoff.wait()).await;
                    }
                    continue;
                }
                Err(error) => error,
            };
            if error.code() == Some(Code::QueueFull) && self.waits_for_room(&batch) {
                until = Instant::now() + DELIVER_MAX;
            }
            match error {
                CallError::Refused(no) if batch.len() > 1 && !no_ones(&no) => {
                    // The refused item is known by its index, or is found by halving.
                    let apart = match no.index.filter(|at| *at < batch.len()) {
                        Some(at) => vec![batch.remove(at)],
                        None => batch.split_off(batch.len() / 2),
                    };
                    tokio::join!(self.clone().part(apart), self.part(batch));
                    return;
                }
                error if may_pass(&error) && Instant::now() < until => sleep(backoff.wait()).await,
                error => {
                    batch = self.refused(batch, &error);
                    until = Instant::now() + DELIVER_MAX;
                }
            }
        }
    }

    /// The same for a part of a batch; boxed, since the two call each other.
    fn part(self, batch: Vec<EndedRun>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.deliver(batch))
    }

    /// Whether these wait for room in the queues of their follow-ups without an end of their own. A worker that stops
    /// waits no longer than for any other answer; nor does one that takes jobs from such a queue itself, since its slots
    /// could all wait for each other.
    fn waits_for_room(&self, batch: &[EndedRun]) -> bool {
        let queues = &self.around.queues;
        let makes_room = |said: &EndedRun| said.pushes_to().any(|queue| queues.contains(queue));
        let held = |said: &EndedRun| said.job.held().stop() != Some(Stop::Lost);
        let works = *self.around.phase.borrow() == Phase::Working && !self.stages.is_closed();
        works && batch.iter().all(|said| held(said) && !makes_room(said))
    }

    /// Reports the answers; returns the outcomes to be sent again. Their leases are still held: an earlier outcome of
    /// the same call took the last room in the queue of their follow-ups.
    #[must_use]
    fn answered(&self, batch: Vec<EndedRun>, settled: Vec<SettledLease>) -> Vec<EndedRun> {
        let (mut again, mut over) = (Vec::new(), Vec::new());
        // Outcomes without an answer are over, too.
        let answers = settled.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
        for (said, settled) in batch.into_iter().zip(answers) {
            let Some(settled) = settled else {
                over.push(said);
                continue;
            };
            if !settled.ok && settled.code == Some(Code::QueueFull) {
                again.push(said);
                continue;
            }
            let id = || said.job.id().clone();
            self.around.observer.tell(|| match settled.code {
                _ if settled.ok => Event::Settled { job: id(), state: settled.state },
                Some(Code::AlreadySettled) => {
                    Event::NotSettled { job: id(), why: NotSettled::Otherwise }
                }
                _ => Event::NotSettled { job: id(), why: NotSettled::Lost },
            });
            over.push(said);
        }
        self.over(&over);
        again
    }

    /// The replacements of outcomes that the engine did not accept.
    fn refused(&self, batch: Vec<EndedRun>, error: &CallError) -> Vec<EndedRun> {
        let (mut again, mut over) = (Vec::new(), Vec::new());
        for mut said in batch {
            let job = said.job.clone();
            let id = || job.id().clone();
            match error {
                CallError::Refused(no) if said.instead(no) => {
                    let event = || Event::OutcomeRefused { job: id(), refusal: no.clone() };
                    self.around.observer.tell(event);
                    again.push(said);
                }
                error => {
                    let why = || NotSettled::Call(error.clone());
                    self.around.observer.tell(|| Event::NotSettled { job: id(), why: why() });
                    over.push(said);
                }
            }
        }
        self.over(&over);
        again
    }

    /// Stops extending the leases of these.
    fn over(&self, batch: &[EndedRun]) {
        Held::let_go(batch.iter().map(|said| said.job.held()));
        self.stages.answered(batch.len());
    }
}

/// Outcomes sent in one call with the next lease call. Dropped without an answer, they are sent again, alone.
pub struct Riding {
    settler: Settler,
    batch: Vec<EndedRun>,
}

impl Riding {
    pub fn of(settler: Settler, batch: Vec<EndedRun>) -> Self {
        Riding { settler, batch }
    }

    /// Sends both; returns the answer of the lease call.
    pub async fn and_lease(mut self, client: &Client, lease: Lease) -> Result<Leased, CallError> {
        let items = self.batch.iter().map(EndedRun::item).collect();
        let span = spans::settle(self.batch.iter().map(|said| &said.job));
        match client.settle_and_lease(items, lease.clone()).instrument(span).await {
            Ok(both) => {
                // What found no room is sent again alone, when this is dropped.
                let batch = std::mem::take(&mut self.batch);
                self.batch = self.settler.answered(batch, both.settled);
                both.lease.transpose().map(Option::unwrap_or_default).map_err(CallError::Refused)
            }
            Err(CallError::Refused(no)) if !no_ones(&no) => {
                // One of the outcomes or the lease call was refused: sent apart, each gets its own answer.
                drop(self);
                client.lease(lease).await
            }
            Err(why) => Err(why),
        }
    }
}

impl Drop for Riding {
    fn drop(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return;
        }
        if let Some(batch) = self.settler.stages.came_back(batch)
            && tokio::runtime::Handle::try_current().is_ok()
        {
            tokio::spawn(self.settler.clone().deliver(batch));
        }
    }
}
