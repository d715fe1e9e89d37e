//! Rates: jobs per second.

use std::time::Duration;

use tenure_console::exit::Failure;
use tenure_core::job::{NewJob, When};
use tenure_core::names::{JobId, LimitName, Namespace, PoolName, ResourceId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Meant, Push, PushAnswer, PutLimit, SyncResources};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, NewResource};
use tenure_core::time::Span;
use tenure_engine_api::EngineExt;

use super::super::load::{API, Done, Jobs, LoadCaller, POOL, SITE, drain, fill, lifecycle, queue};
use super::super::target::{Place, Target};
use super::{Figures, Setup, median};

/// Jobs of one call, unless a goal needs another number.
pub const BATCH: usize = 100;
/// Callers at once, unless a goal needs another number.
pub const CALLERS: usize = 16;
/// The time before a measurement starts, so that files and maps have grown.
pub const WARM: Duration = Duration::from_secs(1);
/// Pairs of a comparison, one after the other.
const PAIRS: usize = 5;

/// The lifecycle, once it is warm.
async fn measured(
    setup: &Setup<'_>,
    target: &Target,
    jobs: &Jobs,
    batch: usize,
    callers: usize,
) -> Result<Figures, Failure> {
    lifecycle(target.engine(), jobs, batch, callers, WARM).await?;
    let done = lifecycle(target.engine(), jobs, batch, callers, setup.time).await?;
    let ms = |quantile| done.calls_us.value_at_quantile(quantile) as f64 / 1_000.0;
    Ok(vec![("jobs_per_s", done.per_second()), ("call_p50_ms", ms(0.5)), ("call_p99_ms", ms(0.99))])
}

/// Jobs without needs, in process.
pub async fn free(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let target = setup.open(Place::InProcess).await?;
    measured(setup, &target, &Jobs::Free, BATCH, CALLERS).await
}

/// Jobs with three needs, in process.
pub async fn needs(setup: &Setup<'_>) -> Result<Figures, Failure> {
    /// More than all callers hold at once.
    const ROOM: u32 = 4_000;
    let target = setup.open(Place::InProcess).await?;
    for limit in [API.to_owned(), format!("{SITE}:*")] {
        put(&target, &LimitName::parse(&limit)?, ROOM).await?;
    }
    let thing = |n: u32| {
        let id = ResourceId::parse(&format!("account-{n}"))?;
        Ok(NewResource { id, data: Json::null(), tags: Vec::new(), slots: 1 })
    };
    let resources = (0..ROOM).map(thing).collect::<Result<_, Refusal>>()?;
    let pool = PoolName::parse(POOL)?;
    target.run(SyncResources { pool, resources, meant: Meant::Ask, version: None }).await?;
    measured(setup, &target, &Jobs::ThreeNeeds, BATCH, CALLERS).await
}

/// Jobs without needs, over HTTP.
pub async fn http(setup: &Setup<'_>, batch: usize, callers: usize) -> Result<Figures, Failure> {
    let target = setup.open(Place::Http).await?;
    measured(setup, &target, &Jobs::Free, batch, callers).await
}

/// Why a million jobs wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// Their turn, behind all others.
    Ready,
    /// A limit that is full.
    Blocked,
    /// A moment in the future.
    Scheduled,
}

/// The lifecycle beside a million waiting jobs, in pairs with an empty store.
pub async fn waiting(setup: &Setup<'_>, waiting: Waiting) -> Result<Figures, Failure> {
    let (none, many) = (setup.open(Place::InProcess).await?, setup.open(Place::InProcess).await?);
    let jobs = match waiting {
        Waiting::Ready => Jobs::Behind,
        Waiting::Blocked => Jobs::Needing(full(&many).await?),
        Waiting::Scheduled => Jobs::Later(Span::from_s(3_600)),
    };
    fill(many.engine(), &jobs, setup.waiting).await?;
    in_pairs(setup, &none, &many).await
}

/// The lifecycle in a store with ten thousand idle namespaces, in pairs with a store without them.
pub async fn idle_namespaces(setup: &Setup<'_>) -> Result<Figures, Failure> {
    const NAMESPACES: u32 = 10_000;
    let (none, many) = (setup.open(Place::InProcess).await?, setup.open(Place::InProcess).await?);
    for n in 0..NAMESPACES {
        let mut job = NewJob::new(queue()?);
        job.id = Some(JobId::parse("later")?);
        job.when = When::In(Span::from_s(3_600));
        let push = Push { jobs: vec![job], answer: PushAnswer::Ids };
        many.engine().run(&Namespace::parse(&format!("idle-{n}"))?, push).await?;
    }
    in_pairs(setup, &none, &many).await
}

/// The lifecycle on two targets in turn: the second relative to the first.
pub async fn in_pairs(setup: &Setup<'_>, none: &Target, many: &Target) -> Result<Figures, Failure> {
    for target in [none, many] {
        lifecycle(target.engine(), &Jobs::Free, BATCH, CALLERS, WARM).await?;
    }
    let (mut without, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let mut pair = [0.0; 2];
        for (rate, target) in pair.iter_mut().zip([none, many]) {
            let time = setup.time;
            let done = lifecycle(target.engine(), &Jobs::Free, BATCH, CALLERS, time).await?;
            *rate = done.per_second();
        }
        without.push(pair[0]);
        with.push(pair[1]);
        ratios.push(pair[1] / pair[0]);
    }
    Ok(vec![
        ("ratio", median(ratios)),
        ("jobs_per_s_without", median(without)),
        ("jobs_per_s_with", median(with)),
    ])
}

/// 1,000 free jobs, with and without 1,000 before them that wait for a full limit: how long the free ones take.
pub async fn saturated(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let (mut without, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let alone = free_ones(setup, 0).await?;
        let behind = free_ones(setup, 1_000).await?;
        let (alone, behind) = (alone.took.as_secs_f64(), behind.took.as_secs_f64());
        without.push(alone * 1_000.0);
        with.push(behind * 1_000.0);
        ratios.push(behind / alone);
    }
    Ok(vec![
        ("time_ratio", median(ratios)),
        ("free_ms_without", median(without)),
        ("free_ms_with", median(with)),
    ])
}

async fn free_ones(setup: &Setup<'_>, before: u32) -> Result<Done, Failure> {
    const FREE: u32 = 1_000;
    const FEW: usize = 5;
    const HANDS: usize = 4;
    let target = setup.open(Place::InProcess).await?;
    let limit = full(&target).await?;
    fill(target.engine(), &Jobs::Needing(limit), before).await?;
    fill(target.engine(), &Jobs::Free, FREE).await?;
    let done = drain(target.engine(), HANDS, FEW).await?;
    if done.jobs == u64::from(FREE) {
        Ok(done)
    } else {
        Err(Failure::bug(format!("{} of {FREE} free jobs were granted", done.jobs)))
    }
}

/// A limit of 1 that is held.
async fn full(target: &Target) -> Result<LimitName, Failure> {
    let limit = LimitName::parse("full")?;
    put(target, &limit, 1).await?;
    LoadCaller::new(target.engine().clone())?.hold(&limit).await?;
    Ok(limit)
}

async fn put(target: &Target, limit: &LimitName, concurrency: u32) -> Result<(), Failure> {
    let settings = LimitSettings { concurrency: Some(concurrency), ..LimitSettings::default() };
    target.run(PutLimit { limit: limit.clone(), settings, gauge: None }).await?;
    Ok(())
}
