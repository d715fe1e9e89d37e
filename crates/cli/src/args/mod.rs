//! The command line as types: the arguments of every command, and their help.
//!
//! Nothing here runs a command, reads a file or calls a store. Tokens are never arguments, since every user of a
//! machine can see arguments.

pub mod backup;
pub mod config;
pub mod copy;
pub mod doctor;
pub mod events;
pub mod flows;
pub mod gauges;
pub mod help;
pub mod jobs;
pub mod leases;
pub mod page;
pub mod refused;
pub mod schedules;
pub mod serve;
pub mod settings;
pub mod store;
mod tips;
pub mod token;
pub mod trail;
pub mod value;

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};
use tenure_core::names::Namespace;

use crate::args::value::parse_name;

/// Hands out scarce work: jobs, locks, caps, rates, accounts, schedules.
#[derive(Parser, Debug)]
#[command(name = "tenure", version, about, max_term_width = 100)]
// `help` is a command of ours, which also has `--all`; and no help is of the long kind.
#[command(disable_help_subcommand = true, disable_help_flag = true)]
pub struct Cli {
    /// The options of every command.
    #[command(flatten)]
    pub global: Global,
    /// The command to run, with its arguments.
    #[command(subcommand)]
    pub command: Command,
}

/// The options of every command.
#[derive(Args, Debug, Clone)]
pub struct Global {
    /// The server (HOST:PORT, http://, https://, tenure://; several are separated by commas), or the store
    /// (file:PATH, memory:, or redis:// and the like, which names its servers).
    // The value is not shown in the help: an address may carry a password.
    #[arg(long, global = true, env = "TENURE_URL", hide_env_values = true, value_name = "URL")]
    #[arg(default_value = "http://127.0.0.1:7171")]
    pub url: String,
    /// The namespace; each namespace has names of its own.
    #[arg(long, global = true, env = "TENURE_NAMESPACE", hide_env_values = true)]
    #[arg(default_value = "default", value_parser = parse_name(Namespace::parse), value_name = "NAME")]
    pub namespace: Namespace,
    /// A profile in ~/.config/tenure/config.toml with address, token and namespace; options and variables override
    /// it.
    #[arg(
        long,
        global = true,
        env = "TENURE_PROFILE",
        hide_env_values = true,
        value_name = "NAME"
    )]
    pub profile: Option<String>,
    /// Trust the authority in this PEM file to sign the certificate of an https:// server, instead of the system's.
    #[arg(long, global = true, env = "TENURE_CA", hide_env_values = true, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Send this certificate, in PEM, to a server that asks for one.
    #[arg(long, global = true, env = "TENURE_CLIENT_CERT", hide_env_values = true)]
    #[arg(value_name = "FILE")]
    pub client_cert: Option<PathBuf>,
    /// The key of that certificate.
    #[arg(long, global = true, env = "TENURE_CLIENT_KEY", hide_env_values = true)]
    #[arg(value_name = "FILE")]
    pub client_key: Option<PathBuf>,
    /// Write the answer as one JSON document.
    #[arg(long, global = true)]
    pub json: bool,
    /// Show times in UTC, as --json does, and not in the time zone of this machine.
    #[arg(long, global = true)]
    pub utc: bool,
    /// Open a folder (file:PATH) in spite of missing commits or unreadable rows; stderr lists the dropped data.
    /// Without this option such a folder is refused.
    #[arg(long, global = true, display_order = 1_000)]
    pub accept_loss: bool,
    /// Print this help.
    #[arg(short, long, global = true, action = ArgAction::HelpShort, display_order = 1_001)]
    pub help: Option<bool>,
}

const SERVE_AFTER: &str = "\
Examples:
  tenure serve
  tenure serve --listen 0.0.0.0:7171 --store file:/var/lib/tenure
  tenure serve --store redis://HOST:6379
  tenure serve --config tenure.toml --print-config     the effective settings

Each option can also be set by a variable, TENURE_ and its name in capitals
(TENURE_DRAIN_TIMEOUT), or by a key under [serve] in the settings file
(drain_timeout). An option overrides its variable, and a variable overrides the
file.";

/// Every command. [`help`] decides in which group of the help each stands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a server on a store.
    #[command(after_help = SERVE_AFTER)]
    Serve(Box<serve::ServeArgs>),
    /// Watch a crawl under caps, with crashes in the middle.
    Demo(crate::demo::DemoArgs),
    /// One that calls a store.
    #[command(flatten)]
    Client(ClientCommand),
    /// Check a server, a folder or a Redis, and say what to change.
    Doctor(doctor::DoctorArgs),
    /// Show who changed what, and who was refused.
    Trail(trail::TrailArgs),
    /// Explain the code of an error.
    Error(ErrorArgs),
    /// Save a whole store in a file, while it is served.
    Backup(backup::BackupArgs),
    /// Restore a backup into an empty store.
    Restore(backup::RestoreArgs),
    /// Copy a whole store to another: a folder to a Redis, or back.
    Copy(copy::CopyArgs),
    /// Show and change the settings of a store on Redis.
    #[command(subcommand)]
    #[command(
        after_help = "The settings are kept in Redis, beside the store. The server that creates the store sets them;
`tenure store set` changes them.

Examples:
  tenure store show --store redis://HOST:6379
  tenure store set --retain-bytes 4GiB --patience 30s
  tenure store compact"
    )]
    Store(store::StoreAction),
    /// Make and check tokens with scopes, and show what a token permits.
    #[command(subcommand)]
    #[command(after_help = "Examples:
  tenure token new crawler --scope push,work --namespace web
  tenure token check tokens.toml
  tenure token who")]
    Token(token::TokenAction),
    /// Print the completions of a shell.
    #[command(after_help = "Examples:
  source <(tenure completions bash)       in ~/.bashrc
  source <(tenure completions zsh)        in ~/.zshrc, after compinit
  tenure completions fish | source        in ~/.config/fish/config.fish

In these three, names of queues, limits, pools, jobs, schedules and flows
complete too, if a server answers within 300 ms.")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the version.
    Version,
    /// Print the help of a command, or of all.
    Help(HelpArgs),
}

/// The commands that call the store of `--url` as any client does.
#[derive(Subcommand, Debug)]
pub enum ClientCommand {
    /// Run a command for each job of one or more queues.
    Work(Box<leases::WorkArgs>),
    /// Run a command while holding a lock.
    Lock(leases::LockArgs),
    /// Run a command while holding permits, tokens or resources of pools.
    Lease(leases::LeaseArgs),
    /// Push a job, or many.
    Push(Box<jobs::PushArgs>),
    /// List jobs, newest first.
    Jobs(jobs::JobsArgs),
    /// Show one job.
    Job(jobs::JobArg),
    /// Print the result of a job, or wait for it.
    Result(jobs::ResultArgs),
    /// Explain why a job waits.
    Explain(jobs::JobArg),
    /// Cancel jobs: by id, or all that match.
    Cancel(jobs::ManyArgs),
    /// Run failed or cancelled jobs again: by id, or all that match.
    Retry(jobs::ManyArgs),
    /// Remove jobs, and cancel those that wait: by id, or all that match.
    Delete(jobs::ManyArgs),
    /// Move a waiting job to another moment.
    Reschedule(jobs::RescheduleArgs),
    /// Make scheduled jobs ready at once.
    RunNow(jobs::RunNowArgs),
    /// Count failed jobs by their errors.
    Failures(jobs::FailuresArgs),
    /// List the jobs and flows that a job waits for.
    Parents(flows::ParentsArgs),
    /// List the jobs that wait for a job.
    Children(flows::ChildrenArgs),
    /// Show flows (jobs under one name), wait for them, cancel, retry.
    Flow(flows::FlowArgs),
    /// Show queues, change their settings, pause and delete them.
    Queue(settings::QueueArgs),
    /// Show limits (caps and rates), set, pause and delete them.
    Limit(settings::LimitArgs),
    /// Show pools of resources, fill and delete them.
    Pool(settings::PoolArgs),
    /// Show and set schedules, which push jobs by cron or at intervals.
    Schedule(schedules::ScheduleArgs),
    /// Count jobs by queue and state.
    #[command(after_help = "Examples:
  tenure stats
  tenure --json stats | jq .jobs.ready")]
    Stats,
    /// Show a summary in ten lines, and what needs attention.
    #[command(after_help = "Examples:
  tenure status
  tenure status && echo all is well
  tenure --json status | jq .attention

The exit code is 0 if all is well, 1 if something needs attention, and 69 if
the server or the store does not answer. Kinds of attention:
  stuck  work waits and cannot proceed: no worker, a closed limit, a pool
         without resources or with all of them banned
  look   work proceeds with problems: jobs that wait for minutes, more than a
         tenth failed in the last hour, limits that stand still, late
         schedules
A paused queue and a smaller share of failures are shown as notes and do not change the exit
code.")]
    Status,
    /// Watch queues, limits, pools and workers, and why jobs wait.
    Top(TopArgs),
    /// Show past events, and follow new ones.
    Events(events::EventsArgs),
    /// List leases with their holders, or take one back by force.
    Leases(leases::LeasesArgs),
    /// List the workers that asked for jobs within the last minute.
    Workers(page::PageArgs),
    /// Check that counts agree with the store's content (also: check).
    #[command(alias = "check")]
    Audit(AuditArgs),
}

/// The target of a command. It decides which options of every command mean something to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opens {
    /// The store of its own options, as a server: a profile is one of clients.
    ItsStore,
    /// The store of `--url`, which may be a folder.
    Store,
    /// A server or a Redis, that of `--url` or another.
    Address,
    /// Nothing that these options name.
    Nothing,
}

impl Command {
    /// The target of this command.
    pub fn opens(&self) -> Opens {
        match self {
            Command::Serve(_) => Opens::ItsStore,
            Command::Client(_) => Opens::Store,
            Command::Doctor(_)
            | Command::Trail(_)
            | Command::Backup(_)
            | Command::Restore(_)
            | Command::Token(_) => Opens::Address,
            Command::Demo(_)
            | Command::Error(_)
            | Command::Copy(_)
            | Command::Store(_)
            | Command::Completions { .. }
            | Command::Version
            | Command::Help(_) => Opens::Nothing,
        }
    }
}

/// The arguments of `tenure help`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "Examples:
  tenure help --all            all commands, options of every command, exit codes
  tenure help limit set
  tenure help work --all       also the variables and files of CMD")]
pub struct HelpArgs {
    /// Show all commands, or the whole help of one.
    #[arg(long)]
    pub all: bool,
    /// The command, and its subcommand if it has some.
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// The arguments of `tenure error`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "Examples:
  tenure error queue_full
  tenure error                 all codes")]
pub struct ErrorArgs {
    /// The code of the error; without it, list all codes.
    #[arg(value_name = "CODE")]
    pub code: Option<String>,
}

/// The arguments of `tenure top`.
#[derive(Args, Debug, Clone, Copy)]
#[command(after_help = "Examples:
  tenure top
  tenure top --every 10s
  tenure --url redis://HOST:6379 top

Keys: arrows or j k, Enter opens the selected row, q back, / filter, p pause,
? help. It needs a terminal.")]
pub struct TopArgs {
    /// How often to refresh, 1s or more; each time takes at most seven calls.
    #[arg(long, value_name = "D", default_value = "2s", value_parser = value::refresh)]
    pub every: tenure_core::time::Span,
}

/// The arguments of `tenure audit`.
#[derive(Args, Debug, Clone, Copy)]
pub struct AuditArgs {
    /// Read the whole folder, with payloads and results, and verify its checksums; lists damaged jobs.
    #[arg(long)]
    pub deep: bool,
}
