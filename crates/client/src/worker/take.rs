//! Asks for jobs: as many as there is room for, in slices, one call at a time. A busy worker waits a moment for more
//! room before it asks.
//!
//! It runs nothing; it passes grants on with the time at which their call was first sent.
//!
//! Jobs are leased ahead of free slots only from a backlog, which no waiting worker could be given at that time. A call
//! for nothing but such jobs does not wait: later jobs are for a worker with a free slot.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use tenure_core::lease::Leased;
use tenure_core::names::QueueName;
use tenure_core::requests::Lease;
use tenure_core::time::Span;
use tenure_engine_api::{CallError, Fault};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::asked::Asked;
use super::settler::Riding;
use super::stages::GATHER_MAX;
use super::work::{Work, poll_once};
use super::{Event, Order, Phase, Until, WorkError, Worker};
use crate::asking::{Answered, Asking, Sent, slice};
use crate::call_off;
use crate::ids;
use crate::lease_clock::LeaseClock;
use crate::until_empty;

/// Returns when the worker takes no more jobs.
async fn ended(phase: &mut watch::Receiver<Phase>) {
    // If the sender is gone, so is the worker: it takes nothing either.
    let _ = phase.wait_for(|phase| *phase != Phase::Working).await;
}

/// The loop that asks for jobs.
pub struct Taking {
    queues: Vec<QueueName>,
    asking: Asking,
    clock: LeaseClock,
    /// Since when no heartbeat has been answered.
    beats_fail_since: Option<Instant>,
    /// The lease call under way.
    call: Option<AskFuture>,
    /// When there was first room for the jobs of the present or next call.
    room_since: Option<Instant>,
    /// How long to pause before the next call.
    pause: Duration,
    /// With [`Until::Empty`]: the queues are empty, and nothing runs here.
    empty: bool,
    /// With [`Until::Empty`]: there was a job that could not run yet.
    more_may_come: bool,
}

/// The longest wait of a call that carries outcomes: their settles are only known with its answer.
const RIDE_MAX: Span = Span::from_ms(500);

/// A call that is answered later than this after its wait is reported as trouble.
const LATE: Duration = Duration::from_millis(1_500);

/// With [`Until::Idle`]: the longest wait of a call while something runs.
const IDLE_LOOK_EVERY: Span = Span::from_ms(20);

type LeaseFuture<'a> = Pin<Box<dyn Future<Output = Result<Leased, CallError>> + Send + 'a>>;
type AskFuture = Pin<Box<dyn Future<Output = Asked> + Send>>;

impl Taking {
    /// With the worker's queues, before the first call.
    pub fn of(worker: &Worker, clock: LeaseClock) -> Self {
        Taking {
            queues: worker.queues.clone(),
            asking: Asking::patient(),
            clock,
            beats_fail_since: None,
            call: None,
            room_since: None,
            pause: Duration::ZERO,
            empty: false,
            more_may_come: false,
        }
    }

    /// Runs until the worker is stopped or has nothing more to take. A call that still waits then is cancelled by one
    /// of the worker's tasks, which the worker waits for.
    pub async fn take(
        &mut self,
        worker: &Worker,
        work: &mut Work,
    ) -> Result<(), WorkError<Infallible>> {
        let mut phase = worker.phase.subscribe();
        let mut beats = work.heartbeat_trouble();
        loop {
            let now = Instant::now();
            let turn = work.turn(now);
            let (gathers, answered) = self.ask(worker, work, now, turn.sends);
            if turn.sends {
                // The outcomes that did not ride with a lease call.
                work.send_outcomes();
            }
            if *phase.borrow() == Phase::Working {
                work.fill_slots(now);
            }
            if self.call.is_none() && work.is_idle() {
                return Ok(());
            }
            let answer = async {
                match (answered, &mut self.call) {
                    (Some(asked), _) => asked,
                    (None, Some(call)) => call.await,
                    (None, None) => std::future::pending().await,
                }
            };
            tokio::select! {
                // Grants that arrive at the time of a stop are read, not dropped.
                biased;
                asked = answer => {
                    self.call = None;
                    if *worker.phase.borrow() != Phase::Working {
                        if let Err(error) = &asked.answer {
                            self.asking.lease_failed(error, asked.sent, asked.wait);
                        }
                        work.give_back(std::future::ready(asked));
                        self.take_back(worker, work);
                        return Ok(());
                    }
                    self.heard(worker, work, asked)?;
                }
                () = ended(&mut phase) => {
                    if let Some(call) = self.call.take() {
                        // It sees the phase too, and returns nothing unless it was answered at this very time.
                        work.give_back(call);
                    }
                    self.take_back(worker, work);
                    return Ok(());
                }
                () = work.event(earlier(turn.next, gathers)) => {}
                Ok(()) = beats.changed() => {
                    let failed = beats.borrow_and_update().clone();
                    self.heartbeat(worker, failed);
                }
            }
        }
    }

    /// Sends a lease call if it is due; otherwise returns when it will be. It is due at once if the worker `sends`
    /// outcomes; the gathered ones ride with the call. Also returns the answer, if it is here at once.
    fn ask(
        &mut self,
        worker: &Worker,
        work: &mut Work,
        now: Instant,
        sends: bool,
    ) -> (Option<Instant>, Option<Asked>) {
        if self.call.is_some() || self.empty {
            return (None, None);
        }
        // A later queue is served only while the earlier ones have no jobs: jobs ahead would make that decision too
        // early.
        let in_order = worker.order == Order::Strict && worker.queues.len() > 1;
        // Outcomes do not wait for a call that pauses.
        let rides = self.pause.is_zero();
        let room = work.stages().room(!in_order, rides);
        let left = worker.max_jobs.map_or(u64::MAX, |max| max.saturating_sub(work.jobs));
        let max = room.jobs.min(usize::try_from(left).unwrap_or(usize::MAX));
        if max == 0 {
            self.room_since = None;
            return (None, None);
        }
        let until = *self.room_since.get_or_insert(now) + GATHER_MAX;
        if !sends && now < until && !work.stages().asks_at_once(room) {
            return (Some(until), None);
        }
        let runs = !work.is_idle();
        // The outcomes may free the needs of the next jobs.
        let riding = if rides { work.rides() } else { None };
        let mut call = self.new_call(worker, max, room.slots == 0, runs, riding);
        // Sent before the jobs of the last call run, so that the engine works meanwhile.
        let answered = poll_once(&mut call);
        self.call = Some(call);
        (None, answered)
    }

    /// A call for `max` jobs; `ahead`: none of them has a free slot.
    fn new_call(
        &mut self,
        worker: &Worker,
        max: usize,
        ahead: bool,
        runs: bool,
        riding: Option<Riding>,
    ) -> AskFuture {
        let mut phase = worker.phase.subscribe();
        let wait = match worker.until {
            _ if ahead => Span::ZERO,
            // A wait of zero notices at once that the engine is back; a longer one only when it ends.
            Until::Stopped if self.asking.away_since().is_some() => Span::ZERO,
            Until::Stopped => slice(worker.ttl),
            Until::Empty => until_empty::patience(worker.ttl, runs || self.more_may_come),
            // Running jobs may push more; outcomes that ride push theirs in this very call.
            Until::Idle if runs && riding.is_none() => IDLE_LOOK_EVERY,
            Until::Idle => Span::ZERO,
        };
        let wait = if riding.is_some() { wait.min(RIDE_MAX) } else { wait };
        // Jobs that run during the call may push more before its answer is here.
        let looks = worker.until != Until::Stopped && !runs;
        let idle = worker.until == Until::Idle;
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
        // Retried by this loop, so that each failure is reported at once.
        let client = worker.client.once();
        let pause = std::mem::take(&mut self.pause);
        let (observer, clock) = (worker.observer.clone(), self.clock.clone());
        let (away_since, away_max) = (self.asking.away_since(), worker.away_max);
        Box::pin(async move {
            let nothing = |sent: Sent| Asked {
                at: first_sent.unwrap_or(sent.counts_from),
                sent,
                wait,
                max,
                answer: Ok(Leased::default()),
                late: false,
                empty: None,
            };
            if !pause.is_zero() {
                tokio::select! {
                    () = ended(&mut phase) => return nothing(Sent::now(&clock)),
                    () = sleep(pause) => {}
                }
            }
            let sent = Sent::now(&clock);
            let mut off_phase = phase.clone();
            let off = ended(&mut off_phase);
            let first: LeaseFuture<'_> = match riding {
                Some(riding) => Box::pin(riding.and_lease(&client, lease.clone())),
                None => Box::pin(client.lease(lease.clone())),
            };
            let mut answering = pin!(call_off::answer_unless(&client, first, lease, off));
            let due = sent.here + wait.std();
            let gives_up_at = away_max.map(|most| (away_since.unwrap_or(due) + most).max(due));
            let mut late = false;
            let answer = loop {
                let next = if late { gives_up_at } else { earlier(Some(due + LATE), gives_up_at) };
                tokio::select! {
                    biased;
                    answer = &mut answering => break answer,
                    () = sleep_until(next.unwrap_or(due)), if next.is_some() => {
                        let silent = || CallError::Fault(Fault::Unknown("it does not answer".to_owned()));
                        if gives_up_at.is_some_and(|at| at <= Instant::now()) {
                            break Err(silent());
                        }
                        late = true;
                        let away = away_since.unwrap_or(due).elapsed();
                        observer.tell(|| Event::Trouble { error: silent(), away });
                    }
                }
            };
            let mut asked = Asked { answer, late, ..nothing(sent) };
            let looks = looks && *phase.borrow() == Phase::Working;
            if looks && asked.answer.as_ref().is_ok_and(|leased| leased.leases.is_empty()) {
                asked.empty = Some(if idle {
                    Ok(true)
                } else {
                    until_empty::is_empty(&client, &queues).await
                });
            }
            asked
        })
    }

    /// At a stop: gives back what was granted to a call whose answer is lost, which is repeated no more. Its jobs would
    /// wait for their ttl, and count as lost.
    fn take_back(&self, worker: &Worker, work: &mut Work) {
        let (id, Some(_)) = self.asking.call() else { return };
        let mut lease = Lease::jobs(self.queues.clone(), 1);
        lease.ttl = worker.ttl;
        lease.worker = ids::this_process().clone();
        lease.request_id = Some(id);
        work.take_back(lease);
    }

    /// Passes granted jobs on; notes how to go on.
    fn heard(
        &mut self,
        worker: &Worker,
        work: &mut Work,
        mut asked: Asked,
    ) -> Result<(), WorkError<Infallible>> {
        self.more_may_come = false;
        let room_since = self.room_since.take();
        let leases = match &mut asked.answer {
            Ok(leased) => std::mem::take(&mut leased.leases),
            Err(error) => {
                let error = error.clone();
                return self.trouble(worker, &error, &asked);
            }
        };
        let now = Instant::now();
        let Answered { again, pause } =
            self.asking.answered(!leases.is_empty(), asked.wait, now - asked.sent.here);
        self.pause = pause;
        if again || asked.late {
            worker.observer.tell(|| Event::Recovered);
        }
        match &asked.empty {
            Some(Ok(empty)) => (self.empty, self.more_may_come) = (*empty, !empty),
            Some(Err(error)) => self.trouble(worker, error, &asked)?,
            None => {}
        }
        let scarce = leases.iter().any(|lease| !lease.resources.is_empty());
        let filled = leases.len() >= asked.max;
        work.stages().asked(filled, scarce, room_since.map_or(Duration::ZERO, |at| now - at));
        work.arrived(leases, asked.at, now);
        Ok(())
    }

    /// Pauses after a temporary failure; any other failure ends the worker.
    fn trouble(
        &mut self,
        worker: &Worker,
        error: &CallError,
        asked: &Asked,
    ) -> Result<(), WorkError<Infallible>> {
        let Some(pause) = self.asking.lease_failed(error, asked.sent, asked.wait) else {
            return Err(WorkError::Call(error.clone()));
        };
        let away = self.asking.away();
        // An engine that makes a token wait is there.
        let away_max = worker.away_max.filter(|_| self.asking.away_since().is_some());
        self.pause = match away_max {
            Some(most) if away >= most => return Err(WorkError::Away(error.clone())),
            Some(most) => pause.min(most - away),
            None => pause,
        };
        worker.observer.tell(|| Event::Trouble { error: error.clone(), away });
        Ok(())
    }

    /// A worker whose slots are all in use makes no lease calls: then its heartbeats show that the engine is away.
    fn heartbeat(&mut self, worker: &Worker, failed: Option<CallError>) {
        match failed {
            Some(error) => {
                let since = *self.beats_fail_since.get_or_insert_with(Instant::now);
                worker.observer.tell(|| Event::Trouble { error, away: since.elapsed() });
            }
            None => {
                let failed = self.beats_fail_since.take().is_some();
                if failed && self.asking.away_since().is_none() {
                    worker.observer.tell(|| Event::Recovered);
                }
            }
        }
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
