//! The arguments of `tenure-lab bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tenure_core::bounds::ITEMS_MAX;
use tenure_engine::Durability;

const AFTER: &str = "\
Examples:
  tenure-lab bench                                   the table, in process
  tenure-lab bench --http --batch 1 --callers 64     one cell of it, over HTTP
  tenure-lab bench --scenario lifecycle              one figure
  tenure-lab bench --check tools/bench/goals.json          all goals
  tenure-lab bench --store redis://127.0.0.1:6379    the table, on a Redis";

/// Measure this machine: calls in process and over HTTP, and the figures that Tenure promises.
#[derive(Args, Debug, Clone)]
#[command(after_help = AFTER)]
pub struct BenchArgs {
    /// Over HTTP, against a server of the `tenure` beside this program; for the table.
    #[arg(long)]
    pub http: bool,
    /// Start a second server, and send all calls to it: it forwards them to the first one, the leader of the store. For
    /// the table.
    #[arg(long, requires = "http")]
    pub passed_on: bool,
    /// Measure on this Redis (redis://HOST:6379 and the like) and not over a folder. Keys of its own are
    /// used, and removed at the end.
    #[arg(long, value_name = "STORE", conflicts_with_all = ["durability", "dir"])]
    pub store: Option<String>,
    /// The measurement of a part for another process, which removes the data: the Redis is the one in TENURE_STORE.
    #[arg(long, hide = true, conflicts_with_all = ["store", "durability", "dir"])]
    pub part: bool,
    /// Durability of answers; `both` for the table. A Redis decides this itself.
    #[arg(long, value_name = "WORD", value_enum)]
    pub durability: Option<Promise>,
    /// Jobs of one call; for the table.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,10,100")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=ITEMS_MAX as i64))]
    pub batch: Vec<u32>,
    /// Callers at once; for the table.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,16,64")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub callers: Vec<u32>,
    /// Measure these instead of the table, each in a process of its own.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_enum)]
    pub scenario: Vec<Scenario>,
    /// Measure what the goals in this file need, and exit 1 if one is missed.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "http"])]
    pub check: Option<PathBuf>,
    /// How long each figure is measured.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,
    /// Jobs that wait, where a scenario has a million of them.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    pub waiting: u32,
    /// Where the temporary folder is made; it should be on the disk that you care about.
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}

impl BenchArgs {
    /// How long each figure is measured.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }
}

/// The durability that an answer promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Promise {
    /// It survives a power loss.
    Always,
    /// A power loss takes at most the last second.
    Everysec,
    /// One after the other.
    Both,
}

impl Promise {
    /// Each durability that is meant: both for `Both`.
    pub fn each(self) -> Vec<Durability> {
        match self {
            Promise::Always => vec![Durability::Always],
            Promise::Everysec => vec![Durability::Everysec],
            Promise::Both => vec![Durability::Always, Durability::Everysec],
        }
    }
}

/// The name of a durability as an argument of `serve`.
pub const fn word(durability: Durability) -> &'static str {
    match durability {
        Durability::Always => "always",
        Durability::Everysec => "everysec",
    }
}

/// A figure that can be measured alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub enum Scenario {
    /// Push, lease, settle of jobs without needs: in process, batch 100, 16 callers.
    Lifecycle,
    /// The same with three needs per job: a limit, a templated limit, a pool.
    Needs,
    /// The lifecycle over HTTP: batch 100, 16 callers.
    HttpBatch,
    /// The lifecycle over HTTP: batch 1, 64 connections.
    HttpSingle,
    /// Resident bytes of a waiting job, with one need and a group.
    Memory,
    /// The lifecycle with a million ready jobs behind, relative to none.
    WaitingReady,
    /// The lifecycle with a million jobs on a full limit, relative to none.
    WaitingBlocked,
    /// The lifecycle with a million scheduled jobs, relative to none.
    WaitingScheduled,
    /// The lifecycle beside ten thousand namespaces in which nothing happens, relative to none.
    IdleNamespaces,
    /// Opening a store of a million jobs.
    Start,
    /// From a push to the answer of a long poll that was idle.
    LongPoll,
    /// Lateness of 2,000 delayed jobs over 10 s, one polling worker over HTTP.
    Delayed,
    /// 1,000 free jobs behind 1,000 on a saturated limit, relative to none.
    Saturated,
    /// Bytes in memory of a schedule that is not due, with a payload of a hundred bytes.
    SchedulesMemory,
    /// Opening a store of a million schedules, beyond opening an empty one.
    SchedulesStart,
    /// The lifecycle with a million schedules that are not due, relative to none.
    SchedulesWaiting,
    /// Lateness of the jobs of 1,000 schedules of one moment, one polling worker over HTTP.
    SchedulesDue,
    /// The lifecycle while a tenth of a million schedules are all due, relative to before.
    SchedulesBacklog,
    /// A set of a million schedules, 1,000 of them changed.
    SchedulesSync,
    /// A job after 5,000 others, and 10,000 jobs after one.
    Flows,
    /// Push and drain at batch 100 with events kept, relative to none.
    Events,
    /// The rate of a `tenure::Worker` relative to a loop by hand: 100 slots, handlers that do nothing, in process.
    Worker,
    /// The same over HTTP.
    WorkerHttp,
}

impl Scenario {
    /// Whether it measures this process or a disk, and so not a Redis.
    pub fn is_of_a_folder(self) -> bool {
        matches!(self, Scenario::Memory | Scenario::Start | Scenario::SchedulesStart)
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
