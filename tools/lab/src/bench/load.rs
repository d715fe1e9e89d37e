//! Callers: each makes one call after the other, as soon as the last one is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tenure_console::exit::Failure;
use tenure_core::job::{Need, NewJob, When};
use tenure_core::lease::{Ending, SettleItem, Worker};
use tenure_core::names::{
    Group, JobId, LimitName, Namespace, PoolName, QueueName, RequestId, WorkerId,
};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Lease, Push, PushAnswer, Settle};
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tenure_engine_api::{CallError, Engine, EngineExt};
use tokio::task::JoinSet;

/// About a hundred bytes, as most payloads are.
pub const PAYLOAD: &str = r#"{"url":"https://example.com/articles/2026/12/01/a-page","depth":3,"from":"a-list","lang":"en"}"#;
/// No lease expires during a measurement.
const TTL: Span = Span::from_s(1_800);
/// How long a lease call waits for jobs that are pushed already, but may be blocked by a need.
const WAIT: Span = Span::from_s(1);
/// Sites of the templated limit.
const SITES: u64 = 100;

/// Each caller of this process has its own number, so that ids are unique.
static CALLERS: AtomicU64 = AtomicU64::new(0);

/// The kinds of jobs that callers push.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Jobs {
    Free,
    /// With a limit, a templated limit and a pool, none of them full.
    ThreeNeeds,
    /// Ready, behind all others of the queue.
    Behind,
    /// In need of this limit.
    Needing(LimitName),
    /// In need of this limit, and of one of a thousand groups.
    NeedingInGroups(LimitName),
    /// Not to run before this long.
    Later(Span),
}

/// The names that all jobs of a measurement share.
#[derive(Clone, Debug)]
struct LoadNames {
    queue: QueueName,
    payload: Json,
    pool: PoolName,
    api: LimitName,
    sites: Vec<LimitName>,
    groups: Vec<Group>,
}

/// The queue of all measurements.
pub fn queue() -> Result<QueueName, Refusal> {
    QueueName::parse("bench")
}

/// The limit that all jobs with three needs share.
pub const API: &str = "api";
/// The family of the templated limit.
pub const SITE: &str = "site";
/// The pool of the jobs with three needs.
pub const POOL: &str = "accounts";

impl LoadNames {
    fn new() -> Result<Self, Refusal> {
        let site = |n| LimitName::parse(&format!("{SITE}:{n}.example"));
        Ok(LoadNames {
            queue: queue()?,
            payload: Json::parse(PAYLOAD).unwrap_or_default(),
            pool: PoolName::parse(POOL)?,
            api: LimitName::parse(API)?,
            sites: (0..SITES).map(site).collect::<Result<_, _>>()?,
            groups: (0..1_000)
                .map(|n| Group::parse(&format!("tenant-{n}")))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// A caller with its engine, its ids and its measurements.
pub struct LoadCaller {
    engine: Arc<dyn Engine>,
    namespace: Namespace,
    words: LoadNames,
    worker: Worker,
    name: String,
    jobs_made: u64,
    calls_made: u64,
    /// The duration of each call, in microseconds.
    pub calls_us: Histogram<u64>,
}

impl LoadCaller {
    /// A new caller with a number of its own.
    pub fn new(engine: Arc<dyn Engine>) -> Result<Self, Failure> {
        let number = CALLERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let id = Some(WorkerId::parse(&name)?);
        Ok(LoadCaller {
            engine,
            namespace: Namespace::main(),
            words: LoadNames::new()?,
            worker: Worker { id, ..Worker::default() },
            name,
            jobs_made: 0,
            calls_made: 0,
            calls_us: histogram()?,
        })
    }

    /// A job with an id of its own.
    pub fn job(&mut self, jobs: &Jobs) -> Result<NewJob, Refusal> {
        let n = self.jobs_made;
        self.jobs_made += 1;
        let mut job = NewJob::new(self.words.queue.clone());
        job.id = Some(JobId::parse(&format!("{}-{n}", self.name))?);
        job.payload = self.words.payload.clone();
        let of = |limit: &LimitName| Need::Limit { limit: limit.clone(), weight: 1, cost: 1 };
        match jobs {
            Jobs::Free => {}
            Jobs::ThreeNeeds => {
                let site = &self.words.sites[(n % SITES) as usize];
                let pool = self.words.pool.clone();
                let pool = Need::Pool { pool, tag: None, prefer: None, id: None, count: 1 };
                job.needs = Some(vec![of(&self.words.api), of(site), pool]);
            }
            Jobs::Behind => job.priority = -1,
            Jobs::Needing(limit) => job.needs = Some(vec![of(limit)]),
            Jobs::NeedingInGroups(limit) => {
                job.needs = Some(vec![of(limit)]);
                let groups = &self.words.groups;
                job.group = groups.get(n as usize % groups.len()).cloned();
            }
            Jobs::Later(wait) => job.when = When::In(*wait),
        }
        Ok(job)
    }

    pub async fn push(&mut self, jobs: &Jobs, count: usize) -> Result<(), Failure> {
        let jobs = (0..count).map(|_| self.job(jobs)).collect::<Result<Vec<_>, _>>()?;
        let push = Push { jobs, answer: PushAnswer::Ids };
        let call = self.engine.run(&self.namespace, push);
        timed(&mut self.calls_us, call).await?;
        Ok(())
    }

    /// Leases up to `max`; their ids.
    pub async fn lease(&mut self, max: usize, wait: Span) -> Result<Vec<String>, Failure> {
        self.calls_made += 1;
        let mut lease = Lease::jobs(vec![self.words.queue.clone()], max);
        lease.ttl = TTL;
        lease.wait = wait;
        lease.worker = self.worker.clone();
        lease.request_id = Some(RequestId::parse(&format!("{}-{}", self.name, self.calls_made))?);
        let call = self.engine.run(&self.namespace, lease);
        let leased = timed(&mut self.calls_us, call).await?;
        Ok(leased.leases.into_iter().filter_map(|lease| lease.lease).collect())
    }

    /// Settles these as succeeded.
    pub async fn settle(&mut self, leases: &[String]) -> Result<(), Failure> {
        let item =
            |lease: &String| SettleItem::new(lease.clone(), Ending::Succeeded { result: None });
        let settle = Settle::of(leases.iter().map(item).collect());
        let call = self.engine.run(&self.namespace, settle);
        let settled = timed(&mut self.calls_us, call).await?.settled;
        if settled.iter().all(|one| one.ok) {
            Ok(())
        } else {
            Err(Failure::bug("a lease was lost while it was measured"))
        }
    }

    /// Holds a limit for as long as the measurements take.
    pub async fn hold(&mut self, limit: &LimitName) -> Result<(), Failure> {
        let mut lease =
            Lease::needs(vec![Need::Limit { limit: limit.clone(), weight: 1, cost: 1 }]);
        lease.ttl = TTL;
        lease.worker = self.worker.clone();
        let leased = self.engine.run(&self.namespace, lease).await?;
        if leased.leases.is_empty() {
            Err(Failure::bug("a fresh limit was not granted"))
        } else {
            Ok(())
        }
    }
}

/// A histogram of microseconds, up to an hour, with three digits.
pub fn histogram() -> Result<Histogram<u64>, Failure> {
    const HOUR_US: u64 = 3_600_000_000;
    Histogram::new_with_bounds(1, HOUR_US, 3).map_err(Failure::bug)
}

async fn timed<T>(
    calls_us: &mut Histogram<u64>,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, Failure> {
    let begun = Instant::now();
    let answer = call.await?;
    calls_us.saturating_record(us(begun.elapsed()));
    Ok(answer)
}

/// The whole microseconds of a duration; the largest number if they do not fit.
pub fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The work of callers in a measured time.
pub struct Done {
    /// Jobs that ran through all measured calls.
    pub jobs: u64,
    /// From the first call to the last answer.
    pub took: Duration,
    /// The duration of each call, in microseconds.
    pub calls_us: Histogram<u64>,
}

impl Done {
    /// Jobs in a second.
    pub fn per_second(&self) -> f64 {
        self.jobs as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Lets `callers` do `work` at once; each returns how many jobs it did, and itself.
pub async fn at_once<F>(
    engine: &Arc<dyn Engine>,
    callers: usize,
    work: impl Fn(LoadCaller, usize) -> F,
) -> Result<Done, Failure>
where
    F: Future<Output = Result<(LoadCaller, u64), Failure>> + Send + 'static,
{
    let made =
        (0..callers).map(|_| LoadCaller::new(engine.clone())).collect::<Result<Vec<_>, _>>()?;
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for (n, caller) in made.into_iter().enumerate() {
        running.spawn(work(caller, n));
    }
    let mut done = Done { jobs: 0, took: Duration::ZERO, calls_us: histogram()? };
    while let Some(ended) = running.join_next().await {
        let (caller, jobs) = ended.map_err(Failure::bug)??;
        done.jobs += jobs;
        done.calls_us.add(&caller.calls_us).map_err(Failure::bug)?;
    }
    done.took = begun.elapsed();
    Ok(done)
}

/// Whole lives for `time`: push a batch, lease as many, settle them.
pub async fn lifecycle(
    engine: &Arc<dyn Engine>,
    jobs: &Jobs,
    batch: usize,
    callers: usize,
    time: Duration,
) -> Result<Done, Failure> {
    let until = Instant::now() + time;
    at_once(engine, callers, |mut caller, _| {
        let jobs = jobs.clone();
        async move {
            let (mut done, mut owed) = (0, 0);
            while Instant::now() < until {
                caller.push(&jobs, batch).await?;
                owed += batch;
                while owed >= batch {
                    let leases = caller.lease(batch, WAIT).await?;
                    if leases.is_empty() {
                        // Another caller took the rest, and has settled it by now.
                        owed = 0;
                        break;
                    }
                    owed -= leases.len().min(owed);
                    caller.settle(&leases).await?;
                    done += leases.len() as u64;
                }
            }
            Ok((caller, done))
        }
    })
    .await
}

/// Pushes `count` jobs as fast as possible.
pub async fn fill(engine: &Arc<dyn Engine>, jobs: &Jobs, count: u32) -> Result<Done, Failure> {
    fill_in(engine, jobs, count, 4, 1_000).await
}

/// The same, by `callers` at once, `batch` jobs in a call.
pub async fn fill_in(
    engine: &Arc<dyn Engine>,
    jobs: &Jobs,
    count: u32,
    callers: usize,
    batch: usize,
) -> Result<Done, Failure> {
    at_once(engine, callers, |mut caller, n| {
        let jobs = jobs.clone();
        let mine = (n..count as usize).step_by(callers).count();
        async move {
            let mut left = mine;
            while left > 0 {
                let some = left.min(batch);
                caller.push(&jobs, some).await?;
                left -= some;
            }
            Ok((caller, mine as u64))
        }
    })
    .await
}

/// Takes all jobs that are ready and settles them as succeeded, `batch` in a call, until nothing is granted.
pub async fn drain(
    engine: &Arc<dyn Engine>,
    callers: usize,
    batch: usize,
) -> Result<Done, Failure> {
    at_once(engine, callers, |mut caller, _| async move {
        let mut done = 0;
        loop {
            let leases = caller.lease(batch, Span::ZERO).await?;
            if leases.is_empty() {
                return Ok((caller, done));
            }
            caller.settle(&leases).await?;
            done += leases.len() as u64;
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_not_cut() {
        let mut times_us = histogram().unwrap();
        for ms in [1, 50, 2_000] {
            times_us.saturating_record(ms * 1_000);
        }
        let near = |quantile, ms: u64| {
            let us = times_us.value_at_quantile(quantile);
            assert!(us.abs_diff(ms * 1_000) <= ms, "{us} us, not {ms} ms");
        };
        near(0.5, 50);
        near(1.0, 2_000);
    }
}
