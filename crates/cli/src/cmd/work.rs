//! `tenure work`: takes jobs from queues and runs CMD for each (see `work_job`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tenure::ids::this_process;
use tenure::keeper::Keeper;
use tenure::{Client, call_off, until_empty};
use tenure_core::bounds::{ITEMS_MAX, LIST_MAX};
use tenure_core::count;
use tenure_core::lease::{LeaseView, Leased};
use tenure_core::names::QueueName;
use tenure_core::requests::{JobFilter, Lease, ListJobs, ListQueues, Page};
use tenure_core::time::Span;
use tenure_engine::CallError;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::args::leases::WorkArgs;
use crate::child::signals::Signals;
use crate::cmd::asking::{Asking, slice};
use crate::cmd::work_job::{self, Phase, Shop};
use crate::exit::{Failure, NOT_STARTED, by_signal};
use crate::output::tell;
use crate::store::Store;

/// Who waits for longer than this at a queue that never had a job is told so.
const STRANGE: Duration = Duration::from_secs(5);

/// What is to be done, apart from where.
pub struct Plan {
    /// In order.
    pub queues: Vec<QueueName>,
    /// Jobs at once.
    pub concurrency: usize,
    /// Always in the order given.
    pub strict: bool,
    /// End when nothing is ready or blocked.
    pub until_empty: bool,
    /// End after so many.
    pub max_jobs: u64,
    /// How long jobs may finish.
    pub drain_timeout: Duration,
}

/// Works until it is told to end.
pub async fn run(store: &Store, args: WorkArgs) -> Result<(), Failure> {
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let concurrency = args.concurrency.unwrap_or_else(cores);
    let plan = Plan {
        queues: args.queues,
        concurrency: usize::try_from(concurrency).unwrap_or(ITEMS_MAX).clamp(1, ITEMS_MAX),
        strict: args.strict,
        until_empty: args.until_empty,
        max_jobs: args.max_jobs.unwrap_or(u64::MAX),
        drain_timeout: args.drain_timeout.std(),
    };
    let mut signals = Signals::listen()?;
    let keeper = heartbeats(&store.client())?;
    let (phase, watched) = watch::channel(Phase::Working);
    let shop = Arc::new(Shop {
        store: store.clone(),
        keeper,
        command: args.command,
        bonds: args.bonds,
        ttl: args.ttl,
        phase: watched,
    });
    let mut work = Work::new(plan, shop, phase);
    work.run(async || signals.next().await).await
}

/// Heartbeats on a thread of their own, started before anything is asked for.
pub fn heartbeats(client: &Client) -> Result<Keeper, Failure> {
    client.keeper().map_err(|error| Failure::new(NOT_STARTED, error.to_string()))
}

type Asked = (Instant, Span, Result<Leased, CallError>);
type Call = Pin<Box<dyn Future<Output = Asked> + Send>>;

/// The loop: at most one lease call waits, for as many jobs as there are free places.
pub struct Work {
    plan: Plan,
    shop: Arc<Shop>,
    phase: watch::Sender<Phase>,
    running: JoinSet<Result<(), Failure>>,
    asking: Asking,
    /// Calls itself off when the phase leaves `Working`, and is read to its end even then.
    call: Option<Call>,
    /// Hold back so long before the next call.
    pause: Duration,
    taken: u64,
    /// With `until_empty`: the queues are empty, and nothing runs here.
    empty: bool,
    /// With `until_empty`: something was there that could not go yet.
    more_may_come: bool,
    /// What ended the work before its time.
    failure: Option<Failure>,
    /// Until then what runs may finish.
    drain_until: Option<tokio::time::Instant>,
    /// Signals so far.
    signals: u32,
}

impl Work {
    /// Nothing is taken yet.
    pub fn new(plan: Plan, shop: Arc<Shop>, phase: watch::Sender<Phase>) -> Self {
        Work {
            plan,
            shop,
            phase,
            running: JoinSet::new(),
            asking: Asking::default(),
            call: None,
            pause: Duration::ZERO,
            taken: 0,
            empty: false,
            more_may_come: false,
            failure: None,
            drain_until: None,
            signals: 0,
        }
    }

    /// To the end.
    pub async fn run(
        &mut self,
        mut next_signal: impl AsyncFnMut() -> Signal,
    ) -> Result<(), Failure> {
        let strange = tokio::time::sleep(STRANGE);
        tokio::pin!(strange);
        let mut told = false;
        let mut second: Option<Signal> = None;
        loop {
            self.ask();
            if self.call.is_none() && self.running.is_empty() {
                break;
            }
            let call = async {
                match &mut self.call {
                    Some(call) => call.await,
                    None => std::future::pending().await,
                }
            };
            let drained = async {
                match self.drain_until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // What was granted is read before the signal is.
                biased;
                asked = call => {
                    self.call = None;
                    self.heard(asked).await;
                }
                Some(ended) = self.running.join_next() => self.ended(ended),
                signal = next_signal() => {
                    self.signals += 1;
                    if self.signals > 1 {
                        second = Some(signal);
                    }
                    self.stop();
                }
                () = drained => {
                    self.drain_until = None;
                    tell("the drain timeout is over: what still runs is given back");
                    self.raise(Phase::GivingBack);
                }
                () = &mut strange, if !told => {
                    told = true;
                    if self.taken == 0 && self.failure.is_none() {
                        tokio::spawn(tell_strange(self.shop.store.clone(), self.plan.queues.clone()));
                    }
                }
            }
        }
        match (self.failure.take(), second) {
            (Some(failure), _) => Err(failure),
            (None, Some(signal)) => Err(Failure::silent(by_signal(signal as i32))),
            (None, None) => Ok(()),
        }
    }

    fn raise(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let more = *phase < to;
            *phase = to.max(*phase);
            more
        });
    }

    /// A signal: takes no more; a second one: now.
    fn stop(&mut self) {
        if self.signals == 1 {
            if !self.running.is_empty() {
                tell(&still_running(self.running.len() as u64));
            }
            self.drain();
        } else {
            self.drain_until = None;
            self.raise(Phase::Now);
        }
    }

    fn drain(&mut self) {
        self.raise(Phase::Draining);
        self.drain_until = Some(tokio::time::Instant::now() + self.plan.drain_timeout);
    }

    /// Asks, if there is a place for a job and a reason to.
    fn ask(&mut self) {
        let left = usize::try_from(self.plan.max_jobs - self.taken).unwrap_or(ITEMS_MAX);
        let free = self.plan.concurrency.saturating_sub(self.running.len()).min(left);
        let working = *self.phase.borrow() == Phase::Working;
        if self.call.is_some() || !working || free == 0 || (self.empty && self.running.is_empty()) {
            return;
        }
        let mut lease = Lease::jobs(self.plan.queues.clone(), free);
        lease.ttl = self.shop.ttl;
        lease.worker = this_process().clone();
        let more_may_come = self.more_may_come || !self.running.is_empty();
        lease.wait = match self.plan.until_empty {
            false => slice(self.shop.ttl),
            true => until_empty::patience(self.shop.ttl, more_may_come),
        };
        if !self.plan.strict {
            self.plan.queues.rotate_left(1);
        }
        let client = self.shop.store.client();
        let pause = std::mem::take(&mut self.pause);
        let mut phase = self.phase.subscribe();
        self.call = Some(Box::pin(async move {
            let wait = lease.wait;
            if !pause.is_zero() {
                tokio::select! {
                    () = work_job::reached(&mut phase, Phase::Draining) => {
                        return (Instant::now(), wait, Ok(Leased::default()));
                    }
                    () = tokio::time::sleep(pause) => {}
                }
            }
            let asked = Instant::now();
            let off = work_job::reached(&mut phase, Phase::Draining);
            (asked, wait, call_off::lease_unless(&client, lease, off).await)
        }));
    }

    async fn heard(&mut self, (asked, wait, answer): Asked) {
        if *self.phase.borrow() != Phase::Working {
            // Granted in the moment of the end. That the call failed changes nothing any more.
            let (client, leased) = (self.shop.store.client(), answer.unwrap_or_default());
            self.running.spawn(async move {
                call_off::give_back(&client, leased.leases).await;
                Ok(())
            });
            return;
        }
        match answer {
            Ok(leased) => {
                let granted = !leased.leases.is_empty();
                self.pause = self.asking.answered(granted, wait, asked.elapsed());
                self.more_may_come = false;
                self.start(leased.leases, asked);
                if !granted && self.plan.until_empty && self.running.is_empty() {
                    self.look_whether_empty().await;
                }
            }
            Err(error) => match self.asking.failed(error) {
                Ok(pause) => self.pause = pause,
                Err(error) => self.fail(error.into()),
            },
        }
    }

    fn start(&mut self, leases: Vec<LeaseView>, asked: Instant) {
        for lease in leases {
            self.taken += 1;
            self.running.spawn(work_job::run(self.shop.clone(), lease, asked));
        }
    }

    /// Nothing was to be had, and nothing runs here.
    async fn look_whether_empty(&mut self) {
        match until_empty::is_empty(&self.shop.store.client(), &self.plan.queues).await {
            Ok(empty) => (self.empty, self.more_may_come) = (empty, !empty),
            Err(error) => match self.asking.failed(error) {
                Ok(pause) => self.pause = pause,
                Err(error) => self.fail(error.into()),
            },
        }
    }

    fn ended(&mut self, ended: Result<Result<(), Failure>, JoinError>) {
        self.empty = false;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => self.fail(failure),
            Err(error) => self.fail(Failure::bug(error)),
        }
    }

    /// Takes no more jobs, lets what runs finish, and ends with the first failure.
    fn fail(&mut self, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some(failure);
        }
        if *self.phase.borrow() == Phase::Working {
            self.drain();
        }
    }
}

fn still_running(jobs: u64) -> String {
    format!("no more jobs are taken, {jobs} still {}", count::of(jobs, "runs", "run"))
}

/// Says which of the queues never had a job, and which name was perhaps meant.
async fn tell_strange(store: Store, queues: Vec<QueueName>) {
    let page = Page { max: LIST_MAX, cursor: None };
    let Ok(listed) = store.run(ListQueues { page }).await else { return };
    for queue in &queues {
        let filter = JobFilter { queue: Some(queue.clone()), ..JobFilter::default() };
        let page = Page { max: 1, cursor: None };
        let Ok(jobs) = store.run(ListJobs { filter, page, full: false }).await else { return };
        if !jobs.items.is_empty() {
            continue;
        }
        let others = listed.items.iter().filter(|view| !queues.contains(&view.name));
        let names: Vec<&str> = others.map(|view| view.name.as_str()).collect();
        let head = format!("queue '{queue}' has no jobs and never had one that is still kept");
        match super::push::some_names(queue.as_str(), &names) {
            Some(names) => tell(&format!("{head}; other queues: {names}")),
            None => tell(&head),
        }
    }
}

#[cfg(test)]
mod tests;
