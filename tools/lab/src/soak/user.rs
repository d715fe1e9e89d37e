//! One user of the soak: episode after episode, each with names of its own that never come back.
//!
//! An episode pushes jobs, runs each until it has succeeded, takes a lock, and removes its settings. Its answers are
//! checked at once: a job that comes after its end, or never, is a fault.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenure::Client;
use tenure_core::job::{Need, NewJob, OnConflict, Unique, Until, When};
use tenure_core::lease::{Ending, Later, LeaseView, SettleItem, Worker};
use tenure_core::names::{
    Group, JobId, JobRef, LimitName, Namespace, PoolName, QueueName, ResourceId, UniqueKey,
    WorkerId,
};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    AddResources, CancelJob, DeleteLimit, DeletePool, DeleteQueue, Lease, PutLimit, PutPool,
};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, NewResource, PoolSettings};
use tenure_core::time::Span;
use tenure_engine_api::{CallError, Engine};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::chance::Chance;

/// Namespaces, which come back: they only go away after a day without use.
pub const NAMESPACES: u64 = 16;
/// Limits of this family are created by their use.
pub const FAMILY: &str = "site";
/// Jobs of an episode.
const JOBS: (u64, u64) = (5, 60);
/// Bytes of a payload.
const PAYLOAD: (u64, u64) = (10, 4_000);
/// How long a finished job is kept.
const RETAIN_MS: (u64, u64) = (500, 5_000);
/// Jobs of one lease call.
const TAKE: usize = 16;
/// The ttl of a lease that is kept, and of one that is left to expire.
const TTL: Span = Span::from_s(20);
const SHORT_TTL: Span = Span::from_s(1);
/// How long an episode may take: a lost job waits for its ttl, and for 2 s as a suspect.
const EPISODE_MAX: Duration = Duration::from_secs(120);
/// The pause between two episodes, in milliseconds.
const REST_MS: (u64, u64) = (0, 40);

/// The counts of all users.
#[derive(Debug, Default)]
pub struct Tally {
    /// Jobs whose push was answered.
    pub pushed: AtomicU64,
    /// Jobs that succeeded or were cancelled.
    pub ended: AtomicU64,
    /// Leases that were left to expire.
    pub left: AtomicU64,
    /// Episodes that have ended.
    pub episodes: AtomicU64,
}

/// One of the users that run at once.
pub struct User {
    pub engine: Arc<dyn Engine>,
    pub number: u64,
    pub chance: Chance,
    pub tally: Arc<Tally>,
    /// Receives the faults, one sentence each.
    pub faults: mpsc::UnboundedSender<String>,
}

/// The namespace with this number.
pub fn namespace(n: u64) -> Result<Namespace, Refusal> {
    Namespace::parse(&format!("soak-{n}"))
}

impl User {
    /// Runs episode after episode until that time.
    pub async fn run(mut self, until: Instant) {
        for n in 0u64.. {
            if Instant::now() >= until {
                return;
            }
            let name = format!("{}-{n}", self.number);
            if let Err(why) = self.episode(&name).await {
                let _ = self.faults.send(format!("episode {name}: {why}"));
            }
            self.tally.episodes.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(self.chance.within(REST_MS.0, REST_MS.1))).await;
        }
    }

    async fn episode(&mut self, name: &str) -> Result<(), CallError> {
        let client =
            Client::new(self.engine.clone(), namespace(self.chance.within(0, NAMESPACES))?);
        let things = Things::make(&client, name, &mut self.chance).await?;
        let mut open = self.push(&client, &things, name).await?;
        self.cancel_some(&client, &mut open).await?;
        self.work(&client, &things, name, open).await?;
        self.lock(&client, name).await?;
        things.remove(&client).await
    }

    /// Stores jobs; returns the stored ones with their payloads.
    async fn push(
        &mut self,
        client: &Client,
        things: &Things,
        name: &str,
    ) -> Result<BTreeMap<JobId, Json>, CallError> {
        let count = self.chance.within(JOBS.0, JOBS.1);
        let jobs: Vec<NewJob> =
            (0..count).map(|n| self.job(things, name, n)).collect::<Result<_, _>>()?;
        let open = jobs.iter().filter_map(|job| Some((job.id.clone()?, job.payload.clone())));
        let open = open.collect();
        for some in jobs.chunks(20) {
            client.push_all(some.to_vec()).await?;
        }
        self.tally.pushed.fetch_add(count, Ordering::Relaxed);
        Ok(open)
    }

    fn job(&mut self, things: &Things, name: &str, n: u64) -> Result<NewJob, Refusal> {
        let chance = &mut self.chance;
        let mut job = NewJob::new(things.queue.clone());
        job.id = Some(JobId::parse(&format!("j-{name}-{n}"))?);
        job.payload = text(chance.within(PAYLOAD.0, PAYLOAD.1));
        job.priority = chance.within(0, 3) as i8;
        job.retain = Some(Span::from_ms(chance.within(RETAIN_MS.0, RETAIN_MS.1)));
        if chance.percent(40) {
            job.group = Some(Group::parse(&format!("g-{name}-{}", n % 7))?);
        }
        if chance.percent(15) {
            job.when = When::In(Span::from_ms(chance.within(10, 300)));
        }
        if chance.percent(20) {
            job.unique = Some(Unique {
                key: UniqueKey::parse(&format!("u-{name}-{n}"))?,
                until: if chance.percent(50) { Until::End } else { Until::Start },
                hold: None,
                on_conflict: OnConflict::Keep,
                within: None,
            });
        }
        let mut needs = Vec::new();
        if chance.percent(30) {
            needs.push(limit(&format!("{FAMILY}:{name}-{}", n % 3))?);
        }
        if let Some(cap) = things.cap.clone().filter(|_| chance.percent(30)) {
            needs.push(Need::Limit { limit: cap, weight: 1, cost: 1 });
        }
        if let Some(pool) = things.pool.clone().filter(|_| chance.percent(30)) {
            needs.push(Need::Pool { pool, tag: None, prefer: None, id: None, count: 1 });
        }
        job.needs = Some(needs).filter(|needs| !needs.is_empty());
        Ok(job)
    }

    async fn cancel_some(
        &mut self,
        client: &Client,
        open: &mut BTreeMap<JobId, Json>,
    ) -> Result<(), CallError> {
        let ids: Vec<JobId> = open.keys().cloned().collect();
        for id in ids {
            if self.chance.percent(5) {
                client.run(CancelJob { job: JobRef::parse(id.as_str())? }).await?;
                open.remove(&id);
                self.tally.ended.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Runs all open jobs until they have succeeded.
    async fn work(
        &mut self,
        client: &Client,
        things: &Things,
        name: &str,
        mut open: BTreeMap<JobId, Json>,
    ) -> Result<(), CallError> {
        let until = Instant::now() + EPISODE_MAX;
        let worker =
            Worker { id: Some(WorkerId::parse(&format!("w-{name}"))?), ..Worker::default() };
        // Each is left at most once: three times in a row would make it a poison job.
        let mut may_leave = true;
        while !open.is_empty() {
            if Instant::now() > until {
                let ids: Vec<&str> = open.keys().map(JobId::as_str).take(5).collect();
                let lost = format!("{} jobs did not come in time, such as {ids:?}", open.len());
                let _ = self.faults.send(format!("episode {name}: {lost}"));
                return Ok(());
            }
            let leave = std::mem::take(&mut may_leave) && self.chance.percent(15);
            let ask = Lease {
                wait: Span::from_ms(500),
                ttl: if leave { SHORT_TTL } else { TTL },
                worker: worker.clone(),
                ..Lease::jobs(vec![things.queue.clone()], TAKE)
            };
            let leases = client.lease(ask).await?.leases;
            if leave {
                self.tally.left.fetch_add(leases.len() as u64, Ordering::Relaxed);
                continue;
            }
            let mut ends = Vec::new();
            for lease in leases {
                ends.extend(self.end(name, lease, &mut open));
            }
            if ends.is_empty() {
                continue;
            }
            for settled in client.settle(ends).await?.into_iter().filter(|one| !one.ok) {
                let _ = self.faults.send(format!("lease {} was lost while held", settled.lease));
            }
        }
        Ok(())
    }

    /// How a run ends; by chance it is not the last of its job.
    fn end(
        &mut self,
        name: &str,
        lease: LeaseView,
        open: &mut BTreeMap<JobId, Json>,
    ) -> Option<SettleItem> {
        let job = lease.job?;
        match open.get(&job.id) {
            None => {
                let id = job.id.as_str();
                let _ = self.faults.send(format!("job {id} was granted after its end"));
            }
            Some(payload) if job.payload.as_ref() != Some(payload) => {
                let _ = self.faults.send(format!("job {} has another payload", job.id.as_str()));
            }
            Some(_) => {}
        }
        let ending = match self.chance.within(0, 100) {
            0..=4 => Ending::Failed {
                error: format!("as episode {name} says"),
                retry_in: Some(Span::from_ms(10)),
                last: false,
            },
            5..=7 => Ending::Snoozed { later: Later::For(Span::from_ms(100)), reset: false },
            8..=10 => Ending::Released,
            _ => {
                open.remove(&job.id);
                self.tally.ended.fetch_add(1, Ordering::Relaxed);
                Ending::Succeeded { result: Some(text(self.chance.within(1, 200))) }
            }
        };
        Some(item(lease.lease?, ending))
    }

    /// A lock that was never held before: needs alone.
    async fn lock(&mut self, client: &Client, name: &str) -> Result<(), CallError> {
        let mut ask = Lease::needs(vec![limit(&format!("lock:{name}"))?]);
        let leave = self.chance.percent(5);
        if leave {
            ask.ttl = SHORT_TTL;
        }
        let leases = client.lease(ask).await?.leases;
        if leases.is_empty() {
            let _ = self.faults.send(format!("lock {name} was not free"));
        }
        let ends = leases.into_iter().filter(|_| !leave).filter_map(|lease| lease.lease);
        let ends: Vec<_> = ends.map(|lease| item(lease, Ending::Released)).collect();
        if !ends.is_empty() {
            client.settle(ends).await?;
        }
        Ok(())
    }
}

/// The names of one episode.
struct Things {
    queue: QueueName,
    cap: Option<LimitName>,
    pool: Option<PoolName>,
}

impl Things {
    async fn make(client: &Client, name: &str, chance: &mut Chance) -> Result<Self, CallError> {
        let mut things =
            Things { queue: QueueName::parse(&format!("q-{name}"))?, cap: None, pool: None };
        if chance.percent(30) {
            let limit = LimitName::parse(&format!("cap:{name}"))?;
            let concurrency = Some(chance.within(1, 5) as u32);
            let settings = LimitSettings { concurrency, ..LimitSettings::default() };
            client.run(PutLimit { limit: limit.clone(), settings, gauge: None }).await?;
            things.cap = Some(limit);
        }
        if chance.percent(30) {
            let pool = PoolName::parse(&format!("p-{name}"))?;
            let settings = PoolSettings::default();
            client.run(PutPool { pool: pool.clone(), settings }).await?;
            let resource = |n: u64| {
                let id = ResourceId::parse(&format!("r-{n}"))?;
                Ok(NewResource { id, data: text(100), tags: Vec::new(), slots: 1 })
            };
            let resources: Result<_, Refusal> = (0..chance.within(1, 5)).map(resource).collect();
            client.run(AddResources { pool: pool.clone(), resources: resources? }).await?;
            things.pool = Some(pool);
        }
        Ok(things)
    }

    async fn remove(self, client: &Client) -> Result<(), CallError> {
        client.run(DeleteQueue { queue: self.queue }).await?;
        if let Some(limit) = self.cap {
            client.run(DeleteLimit { limit }).await?;
        }
        if let Some(pool) = self.pool {
            client.run(DeletePool { pool }).await?;
        }
        Ok(())
    }
}

fn item(lease: String, ending: Ending) -> SettleItem {
    SettleItem::new(lease, ending)
}

fn limit(name: &str) -> Result<Need, Refusal> {
    Ok(Need::Limit { limit: LimitName::parse(name)?, weight: 1, cost: 1 })
}

/// A JSON string of this many letters.
fn text(letters: u64) -> Json {
    Json::parse(&format!("\"{}\"", "x".repeat(letters as usize))).unwrap_or_default()
}
