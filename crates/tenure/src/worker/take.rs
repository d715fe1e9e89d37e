//! Asks for jobs: as many as there are free slots, in slices, one call at a time. A busy worker waits a
//! moment for more slots before it asks.
//!
//! It runs nothing; what was granted is handed on with the moment its call was first sent.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tenure_core::bounds::ITEMS_MAX;
use tenure_core::lease::{LeaseView, Leased};
use tenure_core::names::QueueName;
use tenure_core::requests::Lease;
use tenure_core::time::Span;
use tenure_engine::CallError;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::slots::Slots;
use super::{Event, Order, Phase, Until, Worker, passed_on};
use crate::asking::{Answered, Asking, slice};
use crate::call_off;
use crate::ids;
use crate::until_empty;

/// How long free slots of a busy worker wait for others to become free: a call for many jobs costs an
/// engine little more than a call for one.
const GATHER_MAX: Duration = Duration::from_millis(1);

/// Returns when the worker takes no more.
async fn ended(phase: &mut watch::Receiver<Phase>) {
    // A worker that is gone takes nothing either.
    let _ = phase.wait_for(|phase| *phase != Phase::Working).await;
}

/// An answered lease call.
pub struct Asked {
    /// When it was first sent under its request id.
    pub at: Instant,
    /// When it was sent last.
    sent: Instant,
    wait: Span,
    answer: Result<Leased, CallError>,
    /// Whether the queues are empty, if that was looked at.
    empty: Option<Result<bool, CallError>>,
}

/// Gives back what a call was granted in the moment of a stop, among what runs.
fn return_granted(
    worker: &Worker,
    running: &mut JoinSet<()>,
    call: impl Future<Output = Asked> + Send + 'static,
) {
    let client = worker.client.clone();
    running.spawn(async move {
        let granted = call.await.answer.map(|leased| leased.leases);
        call_off::give_back(&client, granted.unwrap_or_default()).await;
    });
}

/// The loop that asks for jobs.
pub struct Taking {
    queues: Vec<QueueName>,
    /// Jobs that were granted so far.
    pub jobs: u64,
    asking: Asking,
    /// How long to hold back before the next call.
    pause: Duration,
    /// With [`Until::Empty`]: the queues are empty, and nothing runs here.
    empty: bool,
    /// With [`Until::Empty`]: something was there that could not go yet.
    more_may_come: bool,
}

type AskFuture = Pin<Box<dyn Future<Output = Asked> + Send>>;

impl Taking {
    /// With the worker's queues; nothing is asked yet.
    pub fn of(worker: &Worker) -> Self {
        Taking {
            queues: worker.queues.clone(),
            jobs: 0,
            asking: Asking::new(),
            pause: Duration::ZERO,
            empty: false,
            more_may_come: false,
        }
    }

    /// Until the worker is stopped or has nothing more to take. A call that still waits then is called
    /// off among what runs, which the worker waits for.
    pub async fn take(
        &mut self,
        worker: &Worker,
        running: &mut JoinSet<()>,
        slots: &Slots,
        mut start: impl FnMut(&mut JoinSet<()>, &Asked, Vec<LeaseView>),
    ) -> Result<(), CallError> {
        let mut phase = worker.phase.subscribe();
        let mut asking: Option<AskFuture> = None;
        let mut free_since = None;
        loop {
            while let Some(ended) = running.try_join_next() {
                passed_on(ended);
            }
            let mut free = slots.free(running.len()).min(ITEMS_MAX);
            if let Some(max) = worker.max_jobs {
                let left = max.saturating_sub(self.jobs);
                free = free.min(usize::try_from(left).unwrap_or(usize::MAX));
            }
            let mut gathers = None;
            if asking.is_none() && free > 0 && !self.empty {
                let until = *free_since.get_or_insert_with(Instant::now) + GATHER_MAX;
                if slots.none_works() || Instant::now() >= until {
                    let off = worker.phase.subscribe();
                    asking = Some(self.ask(worker, free, !running.is_empty(), off));
                    free_since = None;
                } else {
                    gathers = Some(until);
                }
            }
            if asking.is_none() && running.is_empty() {
                return Ok(());
            }
            let answered = async {
                match &mut asking {
                    Some(call) => call.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // What was granted in the moment of a stop is read, not dropped.
                biased;
                asked = answered => {
                    asking = None;
                    if *worker.phase.borrow() != Phase::Working {
                        // That a call failed changes nothing any more.
                        return_granted(worker, running, std::future::ready(asked));
                        return Ok(());
                    }
                    let leases = self.heard(worker, &asked)?;
                    self.jobs += leases.len() as u64;
                    start(running, &asked, leases);
                }
                _ = phase.wait_for(|phase| *phase != Phase::Working) => {
                    if let Some(asking) = asking {
                        // It sees the phase too, and answers with nothing unless it was answered in
                        // this very moment.
                        return_granted(worker, running, asking);
                    }
                    return Ok(());
                }
                () = slots.freed() => {}
                Some(ended) = running.join_next() => passed_on(ended),
                () = sleep_until(gathers.unwrap_or_else(Instant::now)), if gathers.is_some() => {}
            }
        }
    }

    fn ask(
        &mut self,
        worker: &Worker,
        max: usize,
        runs: bool,
        mut phase: watch::Receiver<Phase>,
    ) -> AskFuture {
        let wait = match worker.until {
            Until::Stopped => slice(worker.ttl),
            Until::Empty => until_empty::patience(worker.ttl, runs || self.more_may_come),
        };
        // What runs when the call is made may push more before its answer is here.
        let looks = worker.until == Until::Empty && !runs;
        let queues = self.queues.clone();
        let mut lease = Lease::jobs(self.queues.clone(), max);
        lease.wait = wait;
        lease.ttl = worker.ttl;
        lease.worker = ids::this_process().clone();
        let (id, first_sent) = self.asking.call();
        lease.request_id = Some(id);
        if worker.order == Order::Turning && !self.queues.is_empty() {
            self.queues.rotate_left(1);
        }
        let client = worker.client.clone();
        let pause = std::mem::take(&mut self.pause);
        Box::pin(async move {
            let nothing = |sent| Asked {
                at: first_sent.unwrap_or(sent),
                sent,
                wait,
                answer: Ok(Leased::default()),
                empty: None,
            };
            if !pause.is_zero() {
                tokio::select! {
                    () = ended(&mut phase) => return nothing(Instant::now()),
                    () = sleep(pause) => {}
                }
            }
            let sent = Instant::now();
            let answer = call_off::lease_unless(&client, lease, ended(&mut phase)).await;
            let mut asked = Asked { answer, ..nothing(sent) };
            let looks = looks && *phase.borrow() == Phase::Working;
            if looks && asked.answer.as_ref().is_ok_and(|leased| leased.leases.is_empty()) {
                asked.empty = Some(until_empty::is_empty(&client, &queues).await);
            }
            asked
        })
    }

    /// What was granted; notes how to go on.
    fn heard(&mut self, worker: &Worker, asked: &Asked) -> Result<Vec<LeaseView>, CallError> {
        self.more_may_come = false;
        let leased = match &asked.answer {
            Ok(leased) => leased,
            Err(error) => {
                self.trouble(worker, error, asked)?;
                return Ok(Vec::new());
            }
        };
        let granted = !leased.leases.is_empty();
        let Answered { again, pause } =
            self.asking.answered(granted, asked.wait, asked.sent.elapsed());
        self.pause = pause;
        if again {
            worker.observer.tell(&Event::Recovered);
        }
        match &asked.empty {
            Some(Ok(empty)) => (self.empty, self.more_may_come) = (*empty, !empty),
            Some(Err(error)) => self.trouble(worker, error, asked)?,
            None => {}
        }
        Ok(leased.leases.clone())
    }

    /// Holds back after what will pass; all else ends the worker.
    fn trouble(
        &mut self,
        worker: &Worker,
        error: &CallError,
        asked: &Asked,
    ) -> Result<(), CallError> {
        let Some(pause) = self.asking.failed(error, asked.sent) else {
            return Err(error.clone());
        };
        self.pause = pause;
        worker.observer.tell(&Event::Trouble(error.clone()));
        Ok(())
    }
}
