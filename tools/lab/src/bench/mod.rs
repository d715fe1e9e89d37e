//! `tenure-lab bench`: measures Tenure on this machine, as a table, as figures, and against goals.
//!
//! It measures through the same calls that any user makes, and retries none of them.

mod args;
mod goals;
mod load;
mod scenario;
mod shared;
mod slow_log;
mod table;
mod target;

use std::time::Duration;

use tenure_console::child_processes::{ChildProcess, ProcessWords, unless_interrupted};
use tenure_console::exit::{Failure, NO};
use tenure_console::output::Output;
use tenure_console::output::table::Table;
use tenure_console::scratch::{Scratch, left};
use tokio::sync::mpsc;

pub use self::args::BenchArgs;
use self::args::{Scenario, word};
use self::goals::Goals;
use self::scenario::Figure;
use crate::say;

/// How long one scenario may take.
const SCENARIO_MAX: Duration = Duration::from_secs(1_800);

/// Runs the measurements that the arguments request.
pub async fn run(out: Output, args: BenchArgs) -> Result<(), Failure> {
    let scratch = scratch(&args)?;
    let ours = scratch.clone().filter(|_| !args.part);
    let ended = unless_interrupted(bench(out, args, scratch.as_ref())).await;
    match ours {
        Some(ours) => left(ended, ours.clear().await),
        None => ended,
    }
}

/// The part of a Redis to measure on, if it is a Redis.
fn scratch(args: &BenchArgs) -> Result<Option<Scratch>, Failure> {
    let store = if args.part { std::env::var("TENURE_STORE").ok() } else { args.store.clone() };
    store.map(|store| Scratch::of(&store, "bench")).transpose()
}

async fn bench(out: Output, args: BenchArgs, scratch: Option<&Scratch>) -> Result<(), Failure> {
    if let Some(scratch) = scratch {
        scratch.reach().await?;
    }
    if let Some(path) = &args.check {
        let goals = Goals::read(path)?;
        let figures = apart(&args, scratch, &goals.scenarios()?).await?;
        let held = goals.hold(&figures);
        out.answer(&held, |held| goals::text(held))?;
        let missed = held.iter().filter(|one| !one.ok).count();
        return match missed {
            0 => Ok(()),
            missed => Err(Failure::new(NO, format!("{missed} of {} goals are missed", held.len()))),
        };
    }
    match args.scenario.as_slice() {
        [] => {
            let tell = |row: &table::Row| {
                say(&format!(
                    "{} {} batch {} callers {}: {:.0} jobs/s",
                    row.durability, row.operation, row.batch, row.callers, row.jobs_per_s
                ))
            };
            let rows = table::measure(&args, scratch, tell).await?;
            out.answer(&rows, |rows| table::text(rows))
        }
        [one] => {
            out.answer(&scenario::measure(&args, scratch, *one).await?, |figures| text(figures))
        }
        many => out.answer(&apart(&args, scratch, many).await?, |figures| text(figures)),
    }
}

/// Measures each in a process of its own, so that no scenario finds another's memory.
async fn apart(
    args: &BenchArgs,
    scratch: Option<&Scratch>,
    scenarios: &[Scenario],
) -> Result<Vec<Figure>, Failure> {
    let (seconds, waiting) = (args.seconds.to_string(), args.waiting.to_string());
    let mut figures = Vec::new();
    for scenario in scenarios {
        let name = scenario.name();
        say(&format!("{name} …"));
        let mut own = vec!["--json", "bench", "--scenario", &name];
        own.extend(["--seconds", &seconds, "--waiting", &waiting]);
        let dir = args.dir.as_ref().map(|dir| dir.display().to_string());
        own.extend(dir.iter().flat_map(|dir| ["--dir", dir.as_str()]));
        let promised = args.durability.and_then(|promise| promise.each().first().copied());
        own.extend(promised.iter().flat_map(|durability| ["--durability", word(*durability)]));
        let (send, mut lines) = mpsc::unbounded_channel();
        own.extend(scratch.iter().map(|_| "--part"));
        let store = scratch.map(Scratch::url);
        let mut process = ChildProcess::start(store, &own, ProcessWords::Answer(send))?;
        let status = process.wait(SCENARIO_MAX).await;
        let mut text = String::new();
        while let Some(line) = lines.recv().await {
            text.push_str(&line);
        }
        if !status.is_some_and(|status| status.success()) {
            return Err(Failure::new(NO, format!("the scenario '{name}' could not be measured")));
        }
        figures.extend(serde_json::from_str::<Vec<Figure>>(&text).map_err(Failure::bug)?);
    }
    Ok(figures)
}

fn text(figures: &[Figure]) -> String {
    let mut table = Table::new(&["scenario", "figure", "measured"]);
    for one in figures {
        table.row([one.scenario.clone(), one.figure.clone(), goals::number(one.value)]);
    }
    table.render("nothing was measured")
}
