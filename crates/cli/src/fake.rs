//! An engine for tests: answers what a script says, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use tenure_core::job::{JobState, JobView, Retry};
use tenure_core::lease::{Extended, ExtendedLease, Fence, LeaseView, SettledLease};
use tenure_core::names::{JobId, Namespace, QueueName};
use tenure_core::requests::{Reply, Request, Settled};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};
use tenure_engine::{CallError, CallFuture, Clock, Engine, Health, SystemClock};

/// What the script says to a request.
#[allow(clippy::large_enum_variant)] // made once per call of a test, and moved on at once
pub enum Said {
    /// This answer.
    Answer(Result<Reply, CallError>),
    /// No answer, ever.
    Never,
    /// What an engine answers to whom all goes well: leases are extended, settles are taken.
    Well,
}

type Script = Box<dyn FnMut(&Request) -> Said + Send>;

/// The engine.
pub struct Fake {
    script: Mutex<Script>,
    asked: Mutex<Vec<Request>>,
}

impl Fake {
    /// With this script.
    pub fn new(script: impl FnMut(&Request) -> Said + Send + 'static) -> Arc<Self> {
        Arc::new(Fake { script: Mutex::new(Box::new(script)), asked: Mutex::default() })
    }
    /// What it was asked, in order.
    pub fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }
    /// Every settle item that came.
    pub fn settled(&self) -> Vec<tenure_core::lease::SettleItem> {
        let items = |request| match request {
            Request::Settle(settle) => settle.settle,
            _ => vec![],
        };
        self.asked().into_iter().flat_map(items).collect()
    }
}

impl Engine for Fake {
    fn call(&self, _namespace: &Namespace, request: Request) -> CallFuture {
        let said = (self.script.lock().unwrap())(&request);
        let mut asked = self.asked.lock().unwrap();
        asked.push(request.clone());
        // A loop that asks without end must not fill the memory of the machine.
        assert!(asked.len() < 10_000, "asked without end");
        drop(asked);
        match said {
            Said::Answer(answer) => Box::pin(std::future::ready(answer)),
            Said::Never => Box::pin(std::future::pending()),
            Said::Well => Box::pin(std::future::ready(Ok(well(request)))),
        }
    }
    fn health(&self) -> Health {
        Health { degraded: None, store: "fake" }
    }
    fn undo(&self, _: &Namespace, _: Vec<String>) {}
    fn drain(&self) {}
}

fn well(request: Request) -> Reply {
    match request {
        Request::Extend(extend) => {
            let expires_at = SystemClock.now().plus(Span::from_s(30));
            let one = |item: tenure_core::lease::ExtendItem| ExtendedLease {
                lease: item.lease,
                expires_at,
            };
            let extended = extend.leases.into_iter().map(one).collect();
            Reply::Extend(Extended { extended, ..Extended::default() })
        }
        Request::Settle(settle) => {
            let one = |item: tenure_core::lease::SettleItem| SettledLease {
                lease: item.lease,
                ok: true,
                state: Some(JobState::Succeeded),
                run_at: None,
                code: None,
                pushed: vec![],
            };
            Reply::Settle(Settled { settled: settle.settle.into_iter().map(one).collect() })
        }
        other => panic!("the script has no answer to {}", other.name()),
    }
}

/// A lease without a job.
pub fn needs_lease(id: &str) -> LeaseView {
    let now = SystemClock.now();
    LeaseView {
        lease: Some(id.to_owned()),
        fence: Fence::new(7),
        holder: "w".into(),
        granted_at: now,
        expires_at: now.plus(Span::from_s(30)),
        deadline: None,
        job: None,
        resources: vec![],
        limits: vec![],
    }
}

/// A lease on a job with this payload.
pub fn job_lease(id: &str, payload: &str) -> LeaseView {
    let mut job = job(&format!("job-{id}"));
    job.payload = Json::parse(payload);
    job.lease = Some(id.to_owned());
    LeaseView { job: Some(job), ..needs_lease(id) }
}

/// A job that runs.
pub fn job(id: &str) -> JobView {
    JobView {
        id: JobId::parse(id).unwrap(),
        queue: QueueName::parse("q").unwrap(),
        kind: "k".into(),
        state: JobState::Running,
        payload: None,
        priority: 0,
        group: None,
        needs: vec![],
        attempt: 1,
        lost: 0,
        run_at: Moment::ZERO,
        created_at: Moment::ZERO,
        started_at: None,
        finished_at: None,
        expires_at: None,
        result: None,
        error: None,
        errors: vec![],
        progress: None,
        unique: None,
        labels: Default::default(),
        lease: None,
        cancel_requested: false,
        retry: Retry::default(),
        timeout: None,
        retain: None,
    }
}
