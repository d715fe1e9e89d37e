//! `tenure-lab soak`: mixed use of a server of our own for an hour, with names that never come back, and a sample of
//! its memory and disk use once a minute.
//!
//! It ends with a check: nothing was lost, the audit is clean, and memory and store have levelled off.

mod levels;
mod user;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tenure_console::child_processes::{
    ChildServer, ServerStore, temporary_folder, unless_interrupted,
};
use tenure_console::exit::{Failure, NO};
use tenure_console::output::Output;
use tenure_console::output::table::Table;
use tenure_console::scratch::{Scratch, left};
use tenure_core::count::counted;
use tenure_core::job::JobState;
use tenure_core::names::{LimitName, Namespace};
use tenure_core::requests::{Audit, GetStats, PutLimit};
use tenure_core::settings::LimitSettings;
use tenure_core::time::Span;
use tenure_engine_api::{Engine, EngineExt};
use tokio::sync::mpsc;
use tokio::time::sleep;

use self::levels::{GROWTH_PERCENT_MAX, Level, level};
use self::user::{FAMILY, NAMESPACES, Tally, User, namespace};
use crate::chance::Chance;
use crate::{say, under_test};

/// The time between two samples: a minute, or less if that would be fewer than `SAMPLES_MIN`.
const SAMPLE_EVERY: Duration = Duration::from_secs(60);
const SAMPLES_MIN: u32 = 20;
/// Faults that are shown; there may be more.
const SHOWN: usize = 10;
/// How long the remaining jobs may take, once the time is over.
const REST_MAX: Duration = Duration::from_secs(150);
/// The pause between two looks at the remaining jobs.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Use a server for long, with names that come and go, and check that memory and disk level off.
#[derive(Args, Debug, Clone)]
pub struct SoakArgs {
    /// How long it is used.
    #[arg(long, value_name = "D", default_value = "1h", value_parser = clap::value_parser!(Span))]
    duration: Span,
    /// Soak on this Redis (redis://HOST:6379 or similar), not over a folder. Keys of its own are used,
    /// and removed at the end.
    #[arg(long, value_name = "STORE", conflicts_with_all = ["durability", "dir"])]
    store: Option<String>,
    /// Makes what is drawn that of an earlier run; printed at the start.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Users at once.
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    users: u32,
    /// Durability of an answer.
    #[arg(long, value_name = "WORD", default_value = "everysec")]
    #[arg(value_parser = ["always", "everysec"])]
    durability: String,
    /// Where the temporary folder is made.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// A sample of the server at one time.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    /// Seconds since the start.
    at_s: u64,
    /// Bytes of memory of the server; zero if the system does not report it.
    memory: u64,
    /// Bytes of the folder; in Redis, of the log and the snapshots.
    store: u64,
    /// Jobs that have ended by then.
    jobs: u64,
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct SoakAnswer {
    ok: bool,
    seed: u64,
    pushed: u64,
    ended: u64,
    left_to_run_out: u64,
    episodes: u64,
    memory: Option<Level>,
    store: Option<Level>,
    samples: Vec<Sample>,
    faults: usize,
    shown: Vec<String>,
}

/// Runs it; exit 1 if something is lost, the audit is not clean, or something grows on.
pub async fn run(out: Output, args: SoakArgs) -> Result<(), Failure> {
    let scratch = args.store.as_deref().map(|store| Scratch::of(store, "soak")).transpose()?;
    let ended = unless_interrupted(soak(out, args, scratch.as_ref())).await;
    match scratch {
        Some(scratch) => left(ended, scratch.clear().await),
        None => ended,
    }
}

async fn soak(out: Output, args: SoakArgs, scratch: Option<&Scratch>) -> Result<(), Failure> {
    if let Some(scratch) = scratch {
        scratch.reach().await?;
    }
    let seed = args.seed.unwrap_or_else(Chance::any_seed);
    say(&format!("seed {seed}"));
    let folder = temporary_folder(args.dir.as_deref())?;
    let store = match scratch {
        Some(scratch) => ServerStore::Redis(scratch.url().clone()),
        None => ServerStore::folder(&args.durability),
    };
    let server = under_test::server(folder.path(), store).await?;
    let engine = server.engine()?;
    prepare(&*engine).await?;

    let tally = Arc::new(Tally::default());
    let (tell, mut told) = mpsc::unbounded_channel();
    let begun = Instant::now();
    let duration = args.duration.std();
    let mut chance = Chance::of(seed);
    let users: Vec<_> = (0..u64::from(args.users))
        .map(|number| {
            let user = User {
                engine: engine.clone(),
                number,
                chance: Chance::of(chance.within(0, u64::MAX)),
                tally: tally.clone(),
                faults: tell.clone(),
            };
            tokio::spawn(user.run(begun + duration))
        })
        .collect();
    drop(tell);

    let every = SAMPLE_EVERY.min(duration / SAMPLES_MIN);
    let mut samples = Vec::new();
    let look = SoakLook {
        server: &server,
        engine: &*engine,
        folder: scratch.is_none().then(|| folder.path()),
    };
    let count = duration.as_millis() / every.as_millis().max(1);
    for n in 1..=u32::try_from(count).unwrap_or(u32::MAX) {
        sleep((every * n).saturating_sub(begun.elapsed())).await;
        let sample = look.sample(begun, &tally).await?;
        say(&line(&sample));
        samples.push(sample);
    }
    for user in users {
        user.await.map_err(|why| Failure::bug(format!("a user panicked: {why}")))?;
    }
    let mut faults = Vec::new();
    while let Ok(fault) = told.try_recv() {
        faults.push(fault);
    }
    faults.extend(look.rest().await?);
    let figures = |of: fn(&Sample) -> u64| samples.iter().map(|s| of(s) as f64).collect::<Vec<_>>();
    let (memory, store) = (level(&figures(|s| s.memory)), level(&figures(|s| s.store)));
    for (what, level) in [("memory", &memory), ("store", &store)] {
        match level {
            Some(level) if !level.ok => {
                faults.push(format!("{what} grows on: {}", compared(level)));
            }
            Some(_) => {}
            None => faults.push(format!("{what} was sampled too seldom to be judged")),
        }
    }
    let count = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
    let answer = SoakAnswer {
        ok: faults.is_empty(),
        seed,
        pushed: count(&tally.pushed),
        ended: count(&tally.ended),
        left_to_run_out: count(&tally.left),
        episodes: count(&tally.episodes),
        memory,
        store,
        samples,
        faults: faults.len(),
        shown: faults.into_iter().take(SHOWN).collect(),
    };
    out.answer(&answer, text)?;
    if answer.ok {
        Ok(())
    } else {
        Err(Failure::new(NO, format!("{} faults were found", answer.faults))
            .hint(format!("please report it, with --seed {seed}")))
    }
}

/// One template in each namespace, as a real user would have.
async fn prepare(engine: &dyn Engine) -> Result<(), Failure> {
    for n in 0..NAMESPACES {
        let limit = LimitName::parse(&format!("{FAMILY}:*"))?;
        let settings = LimitSettings { concurrency: Some(2), ..LimitSettings::default() };
        engine.run(&namespace(n)?, PutLimit { limit, settings, gauge: None }).await?;
    }
    Ok(())
}

/// The ways to look at the server.
struct SoakLook<'a> {
    server: &'a ChildServer,
    engine: &'a dyn Engine,
    /// The folder of its store, if it has one.
    folder: Option<&'a Path>,
}

impl SoakLook<'_> {
    async fn sample(&self, begun: Instant, tally: &Tally) -> Result<Sample, Failure> {
        let store = match self.folder {
            Some(folder) => bytes_of(&folder.join("store")),
            None => self.engine.run(&Namespace::main(), GetStats).await?.store.bytes,
        };
        Ok(Sample {
            at_s: begun.elapsed().as_secs(),
            memory: resident(self.server.pid()),
            store,
            jobs: tally.ended.load(Ordering::Relaxed),
        })
    }

    /// The faults at the end: remaining jobs, and the findings of the audit.
    async fn rest(&self) -> Result<Vec<String>, Failure> {
        let mut faults = Vec::new();
        let until = Instant::now() + REST_MAX;
        for n in 0..NAMESPACES {
            let namespace = namespace(n)?;
            loop {
                let stats = self.engine.run(&namespace, GetStats).await?;
                let open = |(state, _): &(&JobState, &u64)| !state.is_finished();
                let open: u64 = stats.jobs.iter().filter(open).map(|(_, count)| count).sum();
                if open == 0 && stats.leases == 0 {
                    break;
                }
                if Instant::now() > until {
                    let jobs = counted(open, "job", "jobs");
                    let leases = counted(stats.leases, "lease", "leases");
                    faults.push(format!("{jobs} and {leases} are left in {}", namespace.as_str()));
                    break;
                }
                sleep(LOOK_EVERY).await;
            }
            let audit = self.engine.run(&namespace, Audit::default()).await?;
            faults.extend(audit.faults.into_iter().map(|fault| format!("audit: {fault}")));
        }
        Ok(faults)
    }
}

/// The bytes of all files of a folder. A file that goes away meanwhile counts as nothing.
fn bytes_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}

/// Resident bytes of a process, as Linux reports them; zero on other systems.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib =
        line.and_then(|line| line.trim().split(' ').next()).and_then(|n| n.parse::<u64>().ok());
    kib.unwrap_or(0) * 1_024
}

fn mib(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1u32 << 20))
}

fn line(sample: &Sample) -> String {
    let (memory, store) = (mib(sample.memory as f64), mib(sample.store as f64));
    format!("{} s: memory {memory}, store {store}, {} jobs", sample.at_s, sample.jobs)
}

fn compared(level: &Level) -> String {
    format!(
        "{} in the second quarter, {} in the last ({:.0} %, at most {GROWTH_PERCENT_MAX:.0} %)",
        mib(level.second_quarter),
        mib(level.last_quarter),
        level.percent
    )
}

fn text(answer: &SoakAnswer) -> String {
    let mut table = Table::new(&["seconds", "memory", "store", "jobs"]);
    for sample in &answer.samples {
        let (memory, store) = (mib(sample.memory as f64), mib(sample.store as f64));
        table.row([sample.at_s.to_string(), memory, store, sample.jobs.to_string()]);
    }
    let mut text = table.render("nothing was sampled");
    text += &format!(
        "{} answered pushes, {} jobs ended, {} leases left to run out, in {}\n",
        answer.pushed,
        answer.ended,
        answer.left_to_run_out,
        counted(answer.episodes, "episode", "episodes")
    );
    for (what, level) in [("memory", &answer.memory), ("store", &answer.store)] {
        if let Some(level) = level {
            text += &format!("{what}: {}\n", compared(level));
        }
    }
    for fault in &answer.shown {
        text += &format!("FAULT {fault}\n");
    }
    if answer.ok {
        text += "nothing is lost, the audit is clean, memory and store level off\n";
    }
    text
}
