//! An engine that records its calls, and answers by a test's script.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::job::{JobState, JobView};
use tenure_core::lease::{
    Extended, ExtendedLease, Fence, LeaseView, Leased, SettleItem, SettledLease,
};
use tenure_core::names::{JobId, Namespace, QueueName};
use tenure_core::requests::{Extend, GetQueue, Lease, Reply, Request, Settle, Settled};
use tenure_core::secret::Json;
use tenure_core::settings::{QueueCounts, QueueSettings, QueueView};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{CallError, CallFuture, Clock, Engine, Fault, Health, SystemClock};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// A loop of endless calls must not fill the memory of the machine.
const CALLS_MAX: usize = 10_000;

/// The answer of a script to one call.
#[allow(clippy::large_enum_variant)] // made once per call of a test, and moved on at once
pub enum Says {
    /// Answers the call at once.
    Now(Result<Reply, CallError>),
    /// Answers after this long.
    After(Duration, Result<Reply, CallError>),
    /// Never answers the call.
    Never,
}

/// Called for each call, in order, with the number of earlier calls of the same kind.
type Script = Box<dyn FnMut(&Request, usize) -> Says + Send>;

/// An engine that answers by a script, and records every call.
pub struct Fake {
    script: Mutex<Script>,
    calls: Mutex<Vec<(Instant, Request)>>,
    heard: Condvar,
    changed: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fake {
    /// A fake that answers by this script.
    pub fn new(script: impl FnMut(&Request, usize) -> Says + Send + 'static) -> Arc<Self> {
        Arc::new(Fake {
            script: Mutex::new(Box::new(script)),
            calls: Mutex::default(),
            heard: Condvar::new(),
            changed: Notify::new(),
        })
    }

    /// The script's answer to a call, which is recorded; for a script that leaves some calls to another engine.
    pub fn says(&self, request: &Request) -> Says {
        let says = {
            let mut calls = lock(&self.calls);
            let same = |(_, call): &&(Instant, Request)| call.spec().name == request.spec().name;
            let before = calls.iter().filter(same).count();
            calls.push((Instant::now(), request.clone()));
            assert!(calls.len() < CALLS_MAX, "it is asked without end");
            lock(&self.script)(request, before)
        };
        self.heard.notify_all();
        self.changed.notify_waiters();
        says
    }

    /// The same for a call as it arrives: a settle with a lease call is given to the script as two calls, and answered
    /// together, the lease call only if the settle is.
    fn answers(&self, request: Request) -> Says {
        let Request::Settle(Settle { settle, lease: Some(lease) }) = request else {
            return self.says(&request);
        };
        let (took, settled) = match self.says(&Request::Settle(Settle::of(settle))) {
            Says::Now(answer) => (Duration::ZERO, answer),
            Says::After(took, answer) => (took, answer),
            Says::Never => return Says::Never,
        };
        let settled = match settled {
            Ok(Reply::Settle(Settled { settled, .. })) => settled,
            answer => return Says::After(took, answer),
        };
        let (waited, leased) = match self.says(&Request::Lease(*lease)) {
            Says::Now(answer) => (Duration::ZERO, answer),
            Says::After(waited, answer) => (waited, answer),
            Says::Never => return Says::Never,
        };
        let both = match leased {
            Ok(Reply::Lease(leased)) => Ok(Ok(leased)),
            Err(CallError::Refused(no)) => Ok(Err(no.below("/lease"))),
            Ok(_) => Err(Fault::Broken("a lease call was answered otherwise".to_owned()).into()),
            Err(why) => Err(why.after_a_part()),
        };
        let both = both.map(|lease| Reply::Settle(Settled { settled, lease: Some(lease) }));
        Says::After(took.max(waited), both)
    }

    /// Every call until now, with its time.
    pub fn calls(&self) -> Vec<(Instant, Request)> {
        lock(&self.calls).clone()
    }
    /// Every heartbeat until now, with its time.
    pub fn extends(&self) -> Vec<(Instant, Extend)> {
        let one = |(at, call)| match call {
            Request::Extend(extend) => Some((at, extend)),
            _ => None,
        };
        self.calls().into_iter().filter_map(one).collect()
    }
    /// The items of each settle call.
    pub fn settles(&self) -> Vec<Vec<SettleItem>> {
        let one = |(_, call)| match call {
            Request::Settle(Settle { settle, .. }) => Some(settle),
            _ => None,
        };
        self.calls().into_iter().filter_map(one).collect()
    }
    /// The items of all settle calls.
    pub fn settled(&self) -> Vec<SettleItem> {
        self.settles().into_iter().flatten().collect()
    }
    /// Every lease call until now, with its time.
    pub fn leases(&self) -> Vec<(Instant, Lease)> {
        let one = |(at, call)| match call {
            Request::Lease(lease) => Some((at, lease)),
            _ => None,
        };
        self.calls().into_iter().filter_map(one).collect()
    }

    /// Waits until `counts` is true for `many` calls; panics after a minute.
    pub async fn until(&self, counts: impl Fn(&Request) -> bool, many: usize) {
        let done = async {
            loop {
                let changed = self.changed.notified();
                if self.calls().iter().filter(|(_, call)| counts(call)).count() >= many {
                    return;
                }
                changed.await;
            }
        };
        timeout(Duration::from_secs(60), done).await.expect("the calls that were waited for");
    }

    /// The same, blocking the thread.
    pub fn until_blocking(&self, counts: impl Fn(&Request) -> bool, many: usize) -> bool {
        let enough = |calls: &mut Vec<(Instant, Request)>| {
            calls.iter().filter(|(_, call)| counts(call)).count() < many
        };
        let limit = Duration::from_secs(10);
        let waited = self
            .heard
            .wait_timeout_while(lock(&self.calls), limit, enough)
            .expect("no test panicked with it");
        !waited.1.timed_out()
    }
}

impl Engine for Fake {
    fn call(&self, _: &Namespace, request: Request) -> CallFuture {
        let says = self.answers(request);
        Box::pin(async move {
            match says {
                Says::Now(answer) => answer,
                Says::After(span, answer) => {
                    sleep(span).await;
                    answer
                }
                Says::Never => std::future::pending().await,
            }
        })
    }
    fn health(&self) -> Health {
        Health { degraded: None, store: "fake" }
    }
    fn undo(&self, _: &Namespace, _: Vec<String>) {}
    fn drain(&self) {}
}

/// The answer of a healthy engine: nothing to take, everything extended and settled.
pub fn well(request: &Request) -> Says {
    match request {
        Request::Lease(lease) => Says::After(lease.wait.std(), Ok(Reply::Lease(Leased::default()))),
        Request::Extend(extend) => Says::Now(Ok(extended(extend, Moment::MAX))),
        Request::Settle(settle) => Says::Now(Ok(settled(settle))),
        Request::GetQueue(get) => Says::Now(Ok(counts(get, QueueCounts::default()))),
        _ => unavailable(),
    }
}

/// The answer to a heartbeat without a lost lease.
pub fn extended(extend: &Extend, expires_at: Moment) -> Reply {
    let one = |item: &tenure_core::lease::ExtendItem| ExtendedLease {
        lease: item.lease.clone(),
        expires_at,
    };
    let extended = extend.leases.iter().map(one).collect();
    Reply::Extend(Extended { extended, ..Extended::default() })
}

/// The answer to settles that are all accepted.
pub fn settled(settle: &Settle) -> Reply {
    let one = |item: &SettleItem| SettledLease {
        lease: item.lease.clone(),
        ok: true,
        state: Some(JobState::Succeeded),
        run_at: None,
        next_at: None,
        code: None,
        pushed: Vec::new(),
    };
    let settled = settle.settle.iter().map(one).collect();
    Reply::Settle(Settled { settled, lease: None })
}

/// A queue with these counts of jobs.
pub fn counts(get: &GetQueue, counts: QueueCounts) -> Reply {
    Reply::GetQueue(QueueView {
        name: get.queue.clone(),
        paused: false,
        paused_until: None,
        settings: QueueSettings::default(),
        counts,
        oldest_ready_at: None,
        workers: 1,
        skipped: 0,
    })
}

/// The engine is away: nothing was done.
pub fn unavailable() -> Says {
    Says::Now(Err(CallError::Fault(Fault::Unavailable("away".to_owned()))))
}

/// The outcome is unknown: the call may have happened.
pub fn unknown() -> Says {
    Says::Now(Err(CallError::Fault(Fault::Unknown("cut off".to_owned()))))
}

/// Granted jobs with these numbers: leases `l1`…, jobs `j1`….
pub fn granted(numbers: impl IntoIterator<Item = usize>) -> Says {
    let leases = numbers.into_iter().map(|n| lease(n, Some(job(n)))).collect();
    Says::Now(Ok(Reply::Lease(Leased { leases, ..Leased::default() })))
}

/// The lease with this number.
pub fn lease(n: usize, job: Option<JobView>) -> LeaseView {
    LeaseView {
        lease: Some(format!("l{n}")),
        fence: Fence::new(n as u64),
        holder: "me".to_owned(),
        granted_at: Moment::from_us(1_000_000_000),
        expires_at: Moment::from_us(1_030_000_000),
        deadline: None,
        job: job.map(Box::new),
        resources: Vec::new(),
        limits: Vec::new(),
    }
}

/// The job with this number, which is also its payload.
pub fn job(n: usize) -> JobView {
    let id = JobId::parse(&format!("j{n}")).expect("it is a name");
    let queue = QueueName::parse("q").expect("it is a name");
    let bare = JobView::bare(id, queue, JobState::Running, Moment::ZERO);
    JobView { payload: Some(Json::from(n as i64)), attempt: 1, ..bare }
}

/// A lease with this id, without a job, with fence 7, granted now.
pub fn needs_lease(id: &str) -> LeaseView {
    let now = SystemClock.now();
    LeaseView {
        lease: Some(id.to_owned()),
        granted_at: now,
        expires_at: now.plus(Span::from_s(30)),
        ..lease(7, None)
    }
}

/// The same with the job `job-ID` of kind `k`, which has this payload.
pub fn job_lease(id: &str, payload: &str) -> LeaseView {
    let name = JobId::parse(&format!("job-{id}")).expect("it is a name");
    let lease = Some(id.to_owned());
    let (kind, payload) = ("k".to_owned(), Json::parse(payload));
    let job = JobView { id: name, kind, payload, lease, ..job(7) };
    LeaseView { job: Some(Box::new(job)), ..needs_lease(id) }
}

/// Whether it is a heartbeat.
pub fn is_extend(call: &Request) -> bool {
    matches!(call, Request::Extend(_))
}
/// Whether it is a settle.
pub fn is_settle(call: &Request) -> bool {
    matches!(call, Request::Settle(_))
}
/// Whether it is a lease call.
pub fn is_lease(call: &Request) -> bool {
    matches!(call, Request::Lease(_))
}
