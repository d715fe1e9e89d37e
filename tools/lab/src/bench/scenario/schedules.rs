//! Schedules by the million: their size, their cost to other calls, and their lateness.

use std::time::{Duration, Instant};

use tenure_console::exit::Failure;
use tenure_core::names::{Namespace, Owner, QueueName, ScheduleId};
use tenure_core::requests::{GetStats, Meant, SyncSchedules};
use tenure_core::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduledJob, TimingSpec};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{Clock, EngineExt, SystemClock};
use tokio::time::sleep;

use super::super::load::{Jobs, PAYLOAD, lifecycle, queue};
use super::super::slow_log::SlowLog;
use super::super::target::{Place, Target, Under, embedded};
use super::late::{lateness, take_all};
use super::rate::{BATCH, CALLERS, WARM, in_pairs};
use super::size::resident_bytes;
use super::{Figures, Setup};

/// Schedules of one owner, if the sync of a set is not measured.
const OWNED: u32 = 10_000;
/// Schedules that are put before memory is read, so that one-time allocations are done: SQLite's cache of pages takes
/// the rows of some 80,000.
const WARMING: u32 = 100_000;
/// One in this many schedules changes.
const CHANGED_OF: u32 = 1_000;
/// Schedules that are due in one second.
const DUE: u32 = 1_000;

/// A schedule that does not fire for long, unless it starts before.
fn schedule(queue: &QueueName, starts_at: Option<Moment>) -> ScheduleSettings {
    let mut job = ScheduledJob::new(queue.clone());
    job.payload = Json::parse(PAYLOAD);
    ScheduleSettings {
        owner: None,
        timing: TimingSpec {
            every: Some(Span::from_s(300 * 86_400)),
            starts_at: starts_at.or_else(|| Some(SystemClock.now().plus(Span::from_s(86_400)))),
            ..TimingSpec::default()
        },
        overlap: Overlap::default(),
        catch_up: CatchUp::default(),
        catch_up_max: 100,
        job,
    }
}

fn set(owner: &str, count: u32, settings: &ScheduleSettings) -> Result<SyncSchedules, Failure> {
    let id = |n| ScheduleId::parse(&format!("{owner}-{n:07}"));
    let each = (0..count).map(|n| Ok::<_, Failure>((id(n)?, settings.clone())));
    let schedules = each.collect::<Result<_, _>>()?;
    Ok(SyncSchedules { owner: Owner::parse(owner)?, schedules, meant: Meant::Ask, version: None })
}

/// Makes `count` schedules, of several owners.
async fn fill(target: &Target, count: u32, settings: &ScheduleSettings) -> Result<(), Failure> {
    fill_for("owner", target, count, settings).await
}

async fn fill_for(
    owners: &str,
    target: &Target,
    count: u32,
    settings: &ScheduleSettings,
) -> Result<(), Failure> {
    for (n, from) in (0..count).step_by(OWNED as usize).enumerate() {
        target.run(set(&format!("{owners}-{n}"), OWNED.min(count - from), settings)?).await?;
    }
    Ok(())
}

fn elsewhere() -> Result<QueueName, Failure> {
    Ok(QueueName::parse("scheduled")?)
}

pub async fn memory(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let target = setup.open(Place::InProcess).await?;
    let settings = schedule(&elsewhere()?, None);
    fill_for("warm", &target, WARMING, &settings).await?;
    let before = resident_bytes()?;
    let begun = Instant::now();
    fill(&target, setup.waiting, &settings).await?;
    let took = begun.elapsed().as_secs_f64();
    let after = resident_bytes()?;
    let count = f64::from(setup.waiting);
    Ok(vec![
        ("bytes_per_schedule", (after - before) / count),
        ("mb_before", before / 1e6),
        ("mb_after", after / 1e6),
        ("made_per_s", count / took),
    ])
}

pub async fn start(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let mut seconds = Vec::new();
    for count in [0, setup.waiting] {
        let target = setup.open(Place::InProcess).await?;
        fill(&target, count, &schedule(&elsewhere()?, None)).await?;
        let folder = target.close();
        let begun = Instant::now();
        let engine = embedded(folder.path(), setup.under.durability())?;
        engine.run(&Namespace::main(), GetStats).await?;
        seconds.push(begun.elapsed().as_secs_f64());
        engine.close();
    }
    Ok(vec![("seconds_more", seconds[1] - seconds[0]), ("seconds_empty", seconds[0])])
}

pub async fn waiting(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let (none, many) = (setup.open(Place::InProcess).await?, setup.open(Place::InProcess).await?);
    fill(&many, setup.waiting, &schedule(&elsewhere()?, None)).await?;
    in_pairs(setup, &none, &many).await
}

/// From the time at which all of them are due to a worker that polls.
pub async fn due(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let target = setup.open(Place::Http).await?;
    let starts = SystemClock.now().plus(Span::from_s(10));
    target.run(set("due", DUE, &schedule(&queue()?, Some(starts)))?).await?;
    if SystemClock.now() >= starts {
        return Err(Failure::bug("a thousand schedules could not be made in 10 s"));
    }
    Ok(lateness(&take_all(target.engine(), u64::from(DUE)).await?))
}

/// As after an hour without a process: all occurrences are due at once.
pub async fn backlog(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let target = setup.open(Place::InProcess).await?;
    let count = setup.waiting / 10;
    let starts = SystemClock.now().plus(Span::from_s(20 + u64::from(count / 2_000)));
    fill(&target, count, &schedule(&elsewhere()?, Some(starts))).await?;
    let rate = async |time: Duration| {
        let done = lifecycle(target.engine(), &Jobs::Free, BATCH, CALLERS, time).await?;
        Ok::<_, Failure>(done.per_second())
    };
    rate(WARM).await?;
    let before = rate(setup.time).await?;
    if SystemClock.now() >= starts {
        return Err(Failure::bug(format!("{count} schedules could not be made in time")));
    }
    sleep(Duration::from_micros(starts.since(SystemClock.now()).us())).await;
    let due = async || Ok::<_, Failure>(target.run(GetStats).await?.schedules.due);
    while due().await? == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let begun = Instant::now();
    let meanwhile = rate(setup.time).await?;
    let left = due().await?;
    let took = begun.elapsed().as_secs_f64();
    if left == 0 {
        return Err(Failure::bug("the moments were made up before it was measured: take more"));
    }
    Ok(vec![
        ("ratio", meanwhile / before),
        ("jobs_per_s_before", before),
        ("jobs_per_s_meanwhile", meanwhile),
        ("fired_per_s", (u64::from(count) - left) as f64 / took),
    ])
}

/// Syncs a set again in which one in a thousand schedules has changed.
pub async fn sync(setup: &Setup<'_>) -> Result<Figures, Failure> {
    let target = setup.open(Place::InProcess).await?;
    let settings = schedule(&elsewhere()?, None);
    let mut again = set("sources", setup.waiting, &settings)?;
    let begun = Instant::now();
    target.run(again.clone()).await?;
    let made = begun.elapsed().as_secs_f64();
    for (_, changed) in again.schedules.iter_mut().step_by(CHANGED_OF as usize) {
        changed.job.priority = 1;
    }
    let log = SlowLog::of(setup.under).await?;
    let before = written(setup).await?;
    let begun = Instant::now();
    let done = target.run(again).await?;
    let synced = begun.elapsed().as_secs_f64();
    let wrote = written(setup).await? - before;
    let mut figures =
        vec![("changed", done.updated as f64), ("seconds_first", made), ("seconds_again", synced)];
    match log {
        None => figures.push(("written_bytes_per_changed", wrote / done.updated as f64)),
        Some(log) => {
            figures.push(("writes_per_changed", wrote / done.updated as f64));
            figures.push(("slowest_command_ms", log.slowest_ms().await?));
        }
    }
    Ok(figures)
}

/// All writes until now: bytes of this process, or changes of the Redis by its own count.
async fn written(setup: &Setup<'_>) -> Result<f64, Failure> {
    let none = || Failure::bug("the system does not say what was written");
    let (text, name) = match setup.under {
        Under::Redis(scratch) => {
            (scratch.info("persistence").await?, "rdb_changes_since_last_save:")
        }
        Under::Folder { .. } => {
            (std::fs::read_to_string("/proc/self/io").map_err(|_| none())?, "wchar: ")
        }
    };
    let number = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    number.ok_or_else(none)
}
