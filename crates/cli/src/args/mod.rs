//! The command line as types: what may be said, and the help that teaches it.
//!
//! Nothing here does anything, reads a file or speaks to a store. Tokens are never arguments, since
//! arguments can be seen by every user of a machine.

pub mod copy;
pub mod events;
pub mod flows;
pub mod gauges;
pub mod jobs;
pub mod leases;
pub mod redis;
pub mod schedules;
pub mod serve;
pub mod settings;
pub mod value;

use clap::{Args, Parser, Subcommand};
use tenure_core::names::Namespace;

use crate::args::value::parse_name;

const AFTER: &str = "\
Exit codes:
  0    done
  1    the answer is no: nothing there, not got in time, refused, a check failed
  2    wrong usage
  69   no server or store          70  a bug            74  the disk
  75   the lease was lost          77  not permitted
  125  could not start CMD         126 CMD cannot be run        127 CMD was not found
  128+n  ended by signal n; `lock` and `lease` pass CMD's own code on

Environment:
  TENURE_URL        where the server or store is
  TENURE_STORE      where `serve` has its state; for an address with a password
  TENURE_NAMESPACE  the namespace
  TENURE_TOKEN      the server's token; never an argument, since others can see those
  TENURE_HTTP_SECRET  signs the requests of `work --http`
  NO_COLOR          no colours

A first look:
  tenure push mail '{\"to\":\"ann@example.com\"}'
  tenure work mail -- ./send-mail
  tenure lock deploy -- ./deploy.sh";

/// Hands out scarce work: jobs, slots under a cap, calls under a rate, accounts, locks.
#[derive(Parser, Debug)]
#[command(name = "tenure", version, about, after_help = AFTER, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// What holds for every command.
#[derive(Args, Debug, Clone)]
pub struct Global {
    /// The server (http://, https://, tenure://) or the store (file:PATH, memory:, redis:// and its
    /// kin) to speak to.
    // The value is not shown in the help: an address may carry a password.
    #[arg(long, global = true, env = "TENURE_URL", hide_env_values = true, value_name = "URL")]
    #[arg(default_value = "http://127.0.0.1:7171", help_heading = "Global options")]
    pub url: String,
    /// The namespace.
    #[arg(long, global = true, env = "TENURE_NAMESPACE", value_name = "NAME")]
    #[arg(default_value = "default", value_parser = parse_name(Namespace::parse))]
    #[arg(help_heading = "Global options")]
    pub namespace: Namespace,
    /// Write the answer as one JSON document.
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// Open a folder (file:PATH) that has lost commits, or rows that cannot be read, without them:
    /// otherwise it is refused. What is dropped is said on stderr.
    #[arg(long, global = true, help_heading = "Global options")]
    pub accept_loss: bool,
}

/// Every command.
#[derive(Subcommand, Debug)]
#[command(disable_help_subcommand = false)]
pub enum Command {
    /// Run a server on a store.
    Serve(serve::ServeArgs),
    /// Store jobs.
    Push(Box<jobs::PushArgs>),
    /// Run a command for each job of queues, or have a service or a scrapyd do it.
    Work(leases::WorkArgs),
    /// List jobs, newest first.
    Jobs(jobs::JobsArgs),
    /// Show a job.
    Job(jobs::JobArg),
    /// Print a job's result, or wait for it; exit 1 if it did not succeed.
    Result(jobs::ResultArgs),
    /// List the jobs and flows for which a job waits.
    Parents(flows::ParentsArgs),
    /// List the jobs that wait for a job.
    Children(flows::ChildrenArgs),
    /// Show flows, wait for them, cancel and retry them as a whole.
    Flow(flows::FlowArgs),
    /// Say exactly what a job waits for.
    Explain(jobs::JobArg),
    /// Call jobs off: by id, or all that match.
    Cancel(jobs::ManyArgs),
    /// Make failed or cancelled jobs ready again: by id, or all that match.
    Retry(jobs::ManyArgs),
    /// Forget jobs that do not run, and cancel those that wait: by id, or all that match.
    Delete(jobs::ManyArgs),
    /// Count failed jobs by their errors.
    Failures(jobs::FailuresArgs),
    /// Move a job that does not run yet to another moment.
    Reschedule(jobs::RescheduleArgs),
    /// Make a scheduled job ready at once.
    RunNow(jobs::RunNowArgs),
    /// Show what happened, and what happens.
    Events(events::EventsArgs),
    /// Show, set, pause and delete queues.
    Queue(settings::QueueArgs),
    /// Show, set, pause and delete limits.
    Limit(settings::LimitArgs),
    /// Show, set, fill and delete pools of resources.
    Pool(settings::PoolArgs),
    /// Show, set, sync, pause and delete schedules; look at the moments of a timing.
    Schedule(schedules::ScheduleArgs),
    /// Run a command while holding a lock.
    Lock(leases::LockArgs),
    /// Run a command while holding any needs: permits, tokens, resources.
    Lease(leases::LeaseArgs),
    /// List live leases, or take one back by force.
    Leases(leases::LeasesArgs),
    /// List who asked for work within the last minute.
    Workers(PageArgs),
    /// Show totals.
    Stats,
    /// Check that what the store has cached agrees with what is held; exit 1 if not.
    Audit(AuditArgs),
    /// Look whether a Redis is set up so that Tenure keeps its promises on it; exit 1 if not.
    Doctor(redis::DoctorArgs),
    /// Copy all of a store to another: a folder to a Redis, and back.
    Copy(copy::CopyArgs),
    /// What the operator of a Redis needs of Tenure.
    #[command(subcommand)]
    Redis(redis::RedisCommand),
    /// `demo`, `bench`, and the processes that they start.
    #[command(flatten)]
    Storeless(crate::cmd::storeless::StorelessCommand),
    /// Print the version.
    Version,
    /// Print the completions of a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// `tenure audit`.
#[derive(Args, Debug, Clone, Copy)]
pub struct AuditArgs {
    /// Read everything in the folder too, payloads and results included, and compare it with its
    /// checksums; jobs that are damaged are named.
    #[arg(long)]
    pub deep: bool,
}

/// A page of a list.
#[derive(Args, Debug, Clone)]
pub struct PageArgs {
    /// At most so many, 1 to 1,000.
    #[arg(long, value_name = "N", default_value_t = tenure_core::bounds::LIST_DEFAULT)]
    #[arg(value_parser = value::page_size)]
    pub max: usize,
    /// Go on where the page before ended (its `next`).
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

impl PageArgs {
    /// As the engine takes it.
    pub fn page(self) -> tenure_core::requests::Page {
        tenure_core::requests::Page { max: self.max, cursor: self.cursor }
    }
}
