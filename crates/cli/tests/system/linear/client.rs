//! One thread that calls at random, and writes down its calls and their answers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::job::{JobView, Need, NewJob, OnConflict, Outcome, Retry, Unique, Until};
use tenure_core::lease::{Ending, ExtendItem, Later, SettleItem};
use tenure_core::names::{
    JobId, JobRef, LimitName, Namespace, QueueName, RequestId, UniqueKey, WorkerId,
};
use tenure_core::refusal::Code;
use tenure_core::requests::{
    CancelJob, Extend, GetJob, Lease, Operation, Push, PushAnswer, Pushed, RetryJob, Settle,
};
use tenure_core::time::Span;
use tenure_engine_api::{CallError, Engine, EngineExt, Fault};
use tenure_testkit::Dice;
use tokio::time::{sleep, timeout};

use crate::linear::history::{Answer, Call, Event, NEVER, now_us};
use crate::linear::terms::TTL_US;

/// Objects of one history.
pub const LOCKS: u64 = 3;
pub const SINGLE_JOBS: u64 = 3;
pub const KEYED_JOBS: u64 = 3;
/// Longest rest of a thread between two calls.
const REST_MAX_MS: u64 = 4;
/// Rest after a call that could not be made.
const AWAY: Duration = Duration::from_millis(10);
/// Most leases, requests and jobs of the past that are used again now and then.
const REMEMBERED: usize = 6;

/// An object that clients fight over.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    Lock(String),
    /// A job and its queue, of one name.
    Single(String),
    /// A unique key and its queue, of one name.
    Keyed(String),
}

impl Object {
    fn name(&self) -> &str {
        match self {
            Object::Lock(name) | Object::Single(name) | Object::Keyed(name) => name,
        }
    }

    /// All objects of a history.
    pub fn all(history: u64) -> Vec<Object> {
        let named = |kind: &'static str, n| (0..n).map(move |n| format!("{kind}{history}-{n}"));
        let locks = named("lock:", LOCKS).map(Object::Lock);
        let single = named("job", SINGLE_JOBS).map(Object::Single);
        locks.chain(single).chain(named("key", KEYED_JOBS).map(Object::Keyed)).collect()
    }
}

/// The knowledge of a process's threads about an object.
#[derive(Default)]
struct Known {
    /// All leases, by their fences.
    names: BTreeMap<u64, String>,
    /// The last of them; the other lists have the last ones too.
    leases: Vec<u64>,
    requests: Vec<String>,
    ids: Vec<String>,
}

/// State that the threads of a process share.
pub struct Process {
    pub file: File,
    pub until: Instant,
    known: Mutex<BTreeMap<Object, Known>>,
}

impl Process {
    pub fn new(file: File, until: Instant) -> Self {
        Process { file, until, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Object, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, object: &Object, what: impl FnOnce(&mut Known)) {
        let mut known = self.known();
        let known = known.entry(object.clone()).or_default();
        what(known);
        fn keep<T>(all: &mut Vec<T>) {
            if all.len() > REMEMBERED {
                all.remove(0);
            }
        }
        keep(&mut known.leases);
        keep(&mut known.requests);
        keep(&mut known.ids);
    }

    fn recall<T>(&self, object: &Object, what: impl FnOnce(&Known) -> T) -> T {
        what(self.known().entry(object.clone()).or_default())
    }

    fn write(&self, event: &Event) {
        let line = serde_json::to_string(event).expect("an event can be written");
        (&self.file).write_all(format!("{line}\n").as_bytes()).expect("its file takes a line");
    }
}

/// One thread of a client.
pub struct Client {
    pub process: Arc<Process>,
    pub engine: Arc<dyn Engine>,
    /// If a call gets no answer, its grant is undone at some time, as if the caller had gone away: between the caller
    /// and the leader of the store stands a server, which may be gone.
    pub is_forwarded: bool,
    pub name: String,
    pub dice: Dice,
    pub made: u64,
}

impl Client {
    pub async fn run(mut self, objects: &[Object]) {
        while Instant::now() < self.process.until {
            let Some(object) = self.dice.one(objects).cloned() else { return };
            match object {
                Object::Lock(_) => self.about_a_lock(&object).await,
                _ => self.about_a_job(&object).await,
            }
            sleep(Duration::from_millis(self.dice.below(REST_MAX_MS))).await;
        }
    }

    fn new_name(&mut self) -> String {
        self.made += 1;
        format!("{}.{}", self.name, self.made)
    }

    async fn about_a_lock(&mut self, object: &Object) {
        match self.dice.below(10) {
            0..7 => self.lease(object).await,
            7 => self.lease_again(object).await,
            _ => self.with_an_old_lease(object).await,
        }
    }

    async fn about_a_job(&mut self, object: &Object) {
        match self.dice.below(20) {
            0..5 => self.push(object).await,
            5..12 => self.lease(object).await,
            12 => self.lease_again(object).await,
            13..16 => self.with_an_old_lease(object).await,
            kind => {
                let Some(id) = self.some_id(object) else { return };
                let call = match kind {
                    16 => Call::Cancel { id },
                    17 | 18 => Call::Retry { id },
                    _ => Call::Get { id },
                };
                self.answered(object, call).await;
            }
        }
    }

    fn some_id(&mut self, object: &Object) -> Option<String> {
        match object {
            Object::Keyed(_) => {
                let ids = self.process.recall(object, |known| known.ids.clone());
                self.dice.one(&ids).cloned()
            }
            _ => Some(object.name().to_owned()),
        }
    }

    async fn push(&mut self, object: &Object) {
        let id = match object {
            Object::Keyed(_) if !self.dice.one_in(4) => self.new_name(),
            _ => self.some_id(object).unwrap_or_else(|| self.new_name()),
        };
        if let Some(Answer::Pushed { id, .. }) = self.answered(object, Call::Push { id }).await {
            self.process.learn(object, |known| known.ids.push(id));
        }
    }

    async fn lease(&mut self, object: &Object) {
        let request = self.new_name();
        let wait_ms = [0, 0, 30, 150][self.dice.below(4) as usize];
        self.process.learn(object, |known| known.requests.push(request.clone()));
        self.lease_by(object, request, wait_ms).await;
    }

    async fn lease_again(&mut self, object: &Object) {
        let requests = self.process.recall(object, |known| known.requests.clone());
        if let Some(request) = self.dice.one(&requests).cloned() {
            self.lease_by(object, request, 0).await;
        }
    }

    async fn lease_by(&mut self, object: &Object, request: String, wait_ms: u64) {
        let call = Call::Lease { request, wait_ms };
        let Some(Answer::Granted { fence, .. }) = self.answered(object, call).await else { return };
        // Now and then a holder is silent for longer than its ttl, and may come back after all.
        if self.dice.one_in(25) {
            return;
        }
        while self.dice.one_in(3) {
            sleep(Duration::from_millis(self.dice.below(20))).await;
            self.answered(object, Call::Extend { fence }).await;
        }
        let settle = self.some_settle(object, fence);
        self.answered(object, settle).await;
    }

    async fn with_an_old_lease(&mut self, object: &Object) {
        let leases = self.process.recall(object, |known| known.leases.clone());
        let Some(fence) = self.dice.one(&leases).cloned() else { return };
        let call = if self.dice.one_in(3) {
            Call::Extend { fence }
        } else {
            self.some_settle(object, fence)
        };
        self.answered(object, call).await;
    }

    fn some_settle(&mut self, object: &Object, fence: u64) -> Call {
        let (outcome, wait_ms) = match (object, self.dice.below(8)) {
            (Object::Lock(_), _) | (_, 0..2) => (Outcome::Released, 0),
            // Its id never runs again then.
            (Object::Single(_), 2) if self.dice.one_in(8) => (Outcome::Succeeded, 0),
            (Object::Keyed(_), 2..4) => (Outcome::Succeeded, 0),
            (_, 2..7) => (Outcome::Failed, 20 + self.dice.below(60)),
            _ => (Outcome::Snoozed, 100),
        };
        let last = outcome == Outcome::Failed && self.dice.one_in(2);
        Call::Settle { fence, outcome, wait_ms, last }
    }

    /// Makes a call, and mostly repeats it until it is answered.
    async fn answered(&mut self, object: &Object, call: Call) -> Option<Answer> {
        loop {
            let answer = self.once(object, &call).await;
            match answer {
                Some(Answer::Unavailable) => sleep(AWAY).await,
                Some(_) => return answer,
                None if self.dice.one_in(3) => return None,
                None => {}
            }
            if Instant::now() > self.process.until {
                return None;
            }
        }
    }

    async fn once(&mut self, object: &Object, call: &Call) -> Option<Answer> {
        let patience = self.dice.one_in(12).then(|| Duration::from_micros(self.dice.below(2_500)));
        let begin = now_us();
        let made = self.make(object, call);
        let (made, dropped) = match patience {
            None => (made.await, false),
            Some(patience) => match timeout(patience, made).await {
                Ok(made) => (made, false),
                Err(_) => (Err(None), true),
            },
        };
        let answer = made.map_or_else(|why| why, Some);
        let end = if answer.is_some() { now_us() } else { NEVER };
        self.process.write(&Event {
            who: self.name.clone(),
            object: object.name().to_owned(),
            call: call.clone(),
            begin,
            end,
            answer: answer.clone(),
            dropped: dropped || self.is_forwarded && answer.is_none(),
        });
        answer
    }

    /// `Err`: no answer, so that it may have happened.
    async fn make(&self, object: &Object, call: &Call) -> Result<Answer, Option<Answer>> {
        let name = object.name();
        let job = |id: &str| JobRef::parse(id).expect("an id");
        match call {
            Call::Lease { request, wait_ms } => {
                let mut lease = match object {
                    Object::Lock(_) => Lease::needs(vec![Need::Limit {
                        limit: LimitName::parse(name).expect("a name"),
                        weight: 1,
                        cost: 1,
                    }]),
                    _ => Lease::jobs(vec![QueueName::parse(name).expect("a name")], 1),
                };
                (lease.ttl, lease.wait) = (Span::from_us(TTL_US), Span::from_ms(*wait_ms));
                lease.worker.id = Some(WorkerId::parse(&self.name).expect("an id"));
                lease.request_id = Some(RequestId::parse(request).expect("an id"));
                let mut leased = self.call(lease).await?;
                let Some(lease) = leased.leases.pop() else { return Ok(Answer::Nothing) };
                let id = lease.lease.expect("a lease of a job or a lock has an id");
                let fence = lease.fence.get();
                self.process.learn(object, |known| {
                    if known.names.insert(fence, id).is_none() {
                        known.leases.push(fence);
                    }
                });
                let job = lease.job.map(|job| (job.id.to_string(), job.attempt));
                Ok(Answer::Granted { fence, job })
            }
            Call::Extend { fence } => {
                let leases =
                    vec![ExtendItem { lease: self.lease_of(object, *fence), progress: None }];
                let extended = self.call(Extend { leases, ttl: None }).await?;
                Ok(if extended.lost.is_empty() {
                    Answer::Extended { cancel: !extended.cancel.is_empty() }
                } else {
                    Answer::Lost
                })
            }
            Call::Settle { fence, outcome, wait_ms, last } => {
                let wait = Span::from_ms(*wait_ms);
                let ending = match outcome {
                    Outcome::Succeeded => Ending::Succeeded { result: None },
                    Outcome::Failed => {
                        // A last attempt is followed by none.
                        let retry_in = (!*last).then_some(wait);
                        Ending::Failed { error: "no".to_owned(), retry_in, last: *last }
                    }
                    Outcome::Snoozed => Ending::Snoozed { later: Later::For(wait), reset: false },
                    Outcome::Released | Outcome::Lost | Outcome::Undelivered => Ending::Released,
                };
                let item = SettleItem::new(self.lease_of(object, *fence), ending);
                let settled = self.call(Settle::of(vec![item])).await?.settled.remove(0);
                Ok(match (settled.ok, settled.code) {
                    (true, _) => Answer::Settled { state: settled.state },
                    (false, Some(Code::AlreadySettled)) => Answer::AlreadySettled,
                    (false, Some(Code::LeaseLost)) => Answer::Lost,
                    (false, code) => panic!("a settle was answered {code:?}"),
                })
            }
            Call::Push { id } => {
                let queue = QueueName::parse(name).expect("a name");
                let unique = matches!(object, Object::Keyed(_)).then(|| Unique {
                    key: UniqueKey::parse(name).expect("a key"),
                    until: Until::End,
                    hold: None,
                    on_conflict: OnConflict::Keep,
                    within: None,
                });
                let job = NewJob {
                    id: Some(JobId::parse(id).expect("an id")),
                    unique,
                    retry: Some(Retry { max_attempts: 0, max_lost: 0, ..Retry::default() }),
                    ..NewJob::new(queue)
                };
                match self.call(Push { jobs: vec![job], answer: PushAnswer::Ids }).await? {
                    Pushed::Ids(mut ids) => {
                        let pushed = ids.remove(0);
                        let id = pushed.id.to_string();
                        Ok(Answer::Pushed { id, duplicate: pushed.duplicate })
                    }
                    Pushed::Whole(_) => panic!("a push was answered whole"),
                }
            }
            Call::Cancel { id } => Ok(shown(&*self.call(CancelJob { job: job(id) }).await?)),
            Call::Retry { id } => {
                Ok(shown(&*self.call(RetryJob { job: job(id), finished_at: None }).await?))
            }
            Call::Get { id } => Ok(shown(&*self.call(GetJob { job: job(id) }).await?)),
        }
    }

    async fn call<O: Operation>(&self, request: O) -> Result<O::Reply, Option<Answer>> {
        let why = match self.engine.run(&Namespace::main(), request).await {
            Ok(reply) => return Ok(reply),
            Err(why) => why,
        };
        Err(match (&why, why.code()) {
            (CallError::Fault(Fault::Unknown(_)), _) => None,
            (CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_)), _)
            | (_, Some(Code::Draining)) => Some(Answer::Unavailable),
            (_, Some(Code::JobNotFound)) => Some(Answer::NotFound),
            (_, Some(Code::WrongState)) => Some(Answer::WrongState),
            (_, Some(Code::UniqueConflict)) => Some(Answer::Conflict),
            _ => panic!("{} was not answered: {why}", O::NAME),
        })
    }

    fn lease_of(&self, object: &Object, fence: u64) -> String {
        self.process.recall(object, |known| known.names[&fence].clone())
    }
}

fn shown(job: &JobView) -> Answer {
    Answer::Shown { state: job.state, attempt: job.attempt }
}
