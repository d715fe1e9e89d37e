//! The cost of a million jobs: memory while they wait, time when the store is opened.

use std::time::Instant;

use tenure_console::exit::{Failure, NO};
use tenure_core::names::{LimitName, Namespace};
use tenure_core::requests::{GetStats, PutLimit};
use tenure_core::settings::LimitSettings;
use tenure_engine_api::EngineExt;

use super::super::load::{API, Jobs, fill};
use super::super::target::{Place, embedded};
use super::{Figures, Setup};

/// Jobs that are pushed before memory is read, so that one-time allocations are done.
const WARM: u32 = 10_000;

/// Resident bytes of a waiting job with one need and a group.
pub async fn memory(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let target = setup.open(Place::InProcess).await?;
    let limit = LimitName::parse(API)?;
    let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
    target.run(PutLimit { limit: limit.clone(), settings, gauge: None }).await?;
    let jobs = Jobs::NeedingInGroups(limit);
    fill(target.engine(), &jobs, WARM).await?;
    let before = resident_bytes()?;
    let done = fill(target.engine(), &jobs, setup.waiting).await?;
    let after = resident_bytes()?;
    Ok(vec![
        ("bytes_per_job", (after - before) / f64::from(setup.waiting)),
        ("resident_mb_before", before / 1e6),
        ("resident_mb_after", after / 1e6),
        ("pushed_per_s", done.per_second()),
        ("longest_push_ms", done.calls_us.max() as f64 / 1e3),
    ])
}

/// Opening a store with a million waiting jobs: until it answers its first call.
pub async fn start(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let target = setup.open(Place::InProcess).await?;
    fill(target.engine(), &Jobs::Free, setup.waiting).await?;
    let folder = target.close();
    let begun = Instant::now();
    let engine = embedded(folder.path(), setup.under.durability())?;
    engine.run(&Namespace::main(), GetStats).await?;
    let took = begun.elapsed().as_secs_f64();
    engine.close();
    Ok(vec![("seconds", took)])
}

/// The resident memory of this process, as the system counts it.
pub fn resident_bytes() -> Result<f64, Failure> {
    let none = || Failure::new(NO, "this system does not say how much memory a process has");
    let status = std::fs::read_to_string("/proc/self/status").map_err(|_| none())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix("kB")).map(str::trim);
    let number: f64 = kilobytes.and_then(|text| text.parse().ok()).ok_or_else(none)?;
    Ok(number * 1_024.0)
}
