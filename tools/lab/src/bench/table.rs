//! The table: push, lease, settle and the whole life, by batch and callers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tenure_console::exit::Failure;
use tenure_console::output::table::Table;
use tenure_console::scratch::Scratch;
use tenure_core::time::Span;
use tenure_engine_api::Engine;

use super::args::{BenchArgs, Promise};
use super::load::{Done, Jobs, at_once, lifecycle};
use super::target::{Place, Target, Under};

/// Most jobs that one cell pushes before it leases them.
const JOBS_MAX: u64 = 300_000;

/// The measurement of one operation, at one batch and number of callers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// `in_process`, `http` or `http_passed_on`.
    pub place: &'static str,
    /// `always`, `everysec`, or `redis`, which decides itself.
    pub durability: &'static str,
    /// `push`, `lease`, `settle`, `lifecycle`.
    pub operation: &'static str,
    /// Jobs of one call.
    pub batch: u32,
    pub callers: u32,
    pub jobs_per_s: f64,
    /// Half of the calls took no longer.
    pub call_p50_ms: f64,
    /// 99 of 100 calls took no longer.
    pub call_p99_ms: f64,
}

/// Measures all of it; `told` receives each row.
pub async fn measure(
    args: &BenchArgs,
    scratch: Option<&Scratch>,
    told: impl Fn(&Row),
) -> Result<Vec<Row>, Failure> {
    let place = match (args.http, args.passed_on) {
        (false, _) => Place::InProcess,
        (true, false) => Place::Http,
        (true, true) if scratch.is_some() => Place::PassedOn,
        (true, true) => {
            return Err(Failure::usage("--passed-on is for a store that servers share"));
        }
    };
    let dir = args.dir.as_deref();
    let folders = || args.durability.unwrap_or(Promise::Both).each().into_iter();
    let under: Vec<Under<'_>> = match scratch {
        Some(scratch) => vec![Under::Redis(scratch)],
        None => folders().map(|durability| Under::Folder { durability, dir }).collect(),
    };
    let mut rows = Vec::new();
    for under in under {
        for batch in &args.batch {
            for callers in &args.callers {
                let cell = Cell { place, under, batch: *batch, callers: *callers };
                let measured = cell.measure(args.time()).await?;
                measured.iter().for_each(&told);
                rows.extend(measured);
            }
        }
    }
    Ok(rows)
}

struct Cell<'a> {
    place: Place,
    under: Under<'a>,
    batch: u32,
    callers: u32,
}

type Leases = Arc<Mutex<VecDeque<Vec<String>>>>;

impl Cell<'_> {
    async fn measure(&self, time: Duration) -> Result<Vec<Row>, Failure> {
        let (batch, callers) = (self.batch as usize, self.callers as usize);
        let target = Target::open(self.place, self.under).await?;
        let leases = Leases::default();
        let mut rows = vec![
            self.row("push", &push(target.engine(), batch, callers, time).await?),
            self.row("lease", &lease(target.engine(), batch, callers, &leases).await?),
            self.row("settle", &settle(target.engine(), callers, &leases).await?),
        ];
        drop(target);
        let target = Target::open(self.place, self.under).await?;
        let done = lifecycle(target.engine(), &Jobs::Free, batch, callers, time).await?;
        rows.push(self.row("lifecycle", &done));
        Ok(rows)
    }

    fn row(&self, operation: &'static str, done: &Done) -> Row {
        let ms = |quantile| done.calls_us.value_at_quantile(quantile) as f64 / 1_000.0;
        Row {
            place: self.place.word(),
            durability: self.under.word(),
            operation,
            batch: self.batch,
            callers: self.callers,
            jobs_per_s: done.per_second(),
            call_p50_ms: ms(0.5),
            call_p99_ms: ms(0.99),
        }
    }
}

async fn push(
    engine: &Arc<dyn Engine>,
    batch: usize,
    callers: usize,
    time: Duration,
) -> Result<Done, Failure> {
    let until = Instant::now() + time;
    let most = JOBS_MAX / callers as u64;
    at_once(engine, callers, |mut caller, _| async move {
        let mut done = 0;
        while Instant::now() < until && done < most {
            caller.push(&Jobs::Free, batch).await?;
            done += batch as u64;
        }
        Ok((caller, done))
    })
    .await
}

/// Leases all ready jobs.
async fn lease(
    engine: &Arc<dyn Engine>,
    batch: usize,
    callers: usize,
    leases: &Leases,
) -> Result<Done, Failure> {
    at_once(engine, callers, |mut caller, _| {
        let leases = leases.clone();
        async move {
            let (mut done, mut mine) = (0, Vec::new());
            loop {
                let leased = caller.lease(batch, Span::ZERO).await?;
                if leased.is_empty() {
                    break;
                }
                done += leased.len() as u64;
                mine.push(leased);
            }
            leases.lock().unwrap_or_else(PoisonError::into_inner).extend(mine);
            Ok((caller, done))
        }
    })
    .await
}

async fn settle(
    engine: &Arc<dyn Engine>,
    callers: usize,
    leases: &Leases,
) -> Result<Done, Failure> {
    at_once(engine, callers, |mut caller, _| {
        let leases = leases.clone();
        async move {
            let mut done = 0;
            loop {
                let next = leases.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some(next) = next else { return Ok((caller, done)) };
                caller.settle(&next).await?;
                done += next.len() as u64;
            }
        }
    })
    .await
}

/// The table for people.
pub fn text(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "where",
        "durability",
        "operation",
        "batch",
        "callers",
        "jobs/s",
        "p50 ms",
        "p99 ms",
    ]);
    for row in rows {
        table.row([
            row.place.to_owned(),
            row.durability.to_owned(),
            row.operation.to_owned(),
            row.batch.to_string(),
            row.callers.to_string(),
            format!("{:.0}", row.jobs_per_s),
            format!("{:.2}", row.call_p50_ms),
            format!("{:.2}", row.call_p99_ms),
        ]);
    }
    table.render("nothing was measured")
}
