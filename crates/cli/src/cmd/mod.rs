//! One file per command: its calls to the store, and the output of their answers.
//!
//! No command knows which engine answers, and none writes an exit code of its own making.

pub mod audit;
pub mod backup;
pub mod cancel;
pub mod complete_names;
pub mod completions;
pub mod contact;
pub mod copy;
pub mod doctor;
pub mod error;
pub mod events;
pub mod explain;
pub mod failures;
pub mod flow;
pub mod holders;
pub mod job;
pub mod jobs;
pub mod kin;
pub mod leases;
pub mod limit;
mod limit_gauge;
pub mod lock;
pub mod man_pages;
mod next_page;
mod no_worker;
pub mod pool;
pub mod pool_sync;
pub mod push;
pub mod push_lines;
pub mod queue;
pub mod reschedule;
pub mod restore;
pub mod result;
pub mod schedule;
pub mod schedule_preview;
pub mod schedule_sync;
pub mod serve;
pub mod set_file;
pub mod stats;
pub mod status;
pub mod store;
pub mod token;
pub mod top;
pub mod trail;
pub mod version;
pub mod work;
mod work_counted;
pub mod work_job;
pub mod work_lines;
mod work_over_http;
pub mod work_parents;
pub mod workers;

use tenure::Client;

use crate::args::schedules::{ScheduleAction, ScheduleArgs};
use crate::args::{Cli, ClientCommand, Command, Global, Opens, help};
use crate::demo;
use crate::exit::Failure;
use crate::output::Output;
use crate::store::OpenedStore;

/// Runs the command of the command line.
pub async fn run(cli: Cli) -> Result<(), Failure> {
    let out = Output { json: cli.global.json };
    let opens_a_folder = matches!(cli.command.opens(), Opens::ItsStore | Opens::Store);
    if cli.global.accept_loss && !opens_a_folder {
        return Err(Failure::usage("--accept-loss is for a folder, and this command opens none")
            .hint("leave it out, or see `tenure serve --help`"));
    }
    match cli.command {
        Command::Version => version::version(out),
        Command::Completions { shell } => completions::run(out, shell),
        Command::Serve(args) => serve::run(*args, cli.global.accept_loss).await,
        Command::Doctor(args) => doctor::run(out, &cli.global, args).await,
        Command::Copy(args) => copy::run(out, args).await,
        Command::Backup(args) => backup::run(out, args, &cli.global.url).await,
        Command::Restore(args) => restore::run(out, args).await,
        Command::Store(action) => store::run(out, action, &cli.global.url).await,
        Command::Token(action) => token::run(out, &cli.global, action).await,
        Command::Trail(args) => trail::run(out, args, &cli.global.url).await,
        Command::Demo(args) => demo::run(out, args).await,
        Command::Help(args) => help::print(&args),
        Command::Error(args) => error::run(out, args.code.as_deref()),
        Command::Client(ClientCommand::Schedule(ScheduleArgs {
            action: Some(ScheduleAction::Preview(args)),
            ..
        })) => schedule_preview::run(out, &args),
        Command::Client(command) => {
            let Global { url, namespace, accept_loss, .. } = cli.global;
            let opened = OpenedStore::open(&url, namespace, accept_loss)?;
            let ended = with_client(command, &opened.client, &url, out).await;
            // If the store itself stopped, that is why the command failed, whatever the command
            // noticed of it.
            opened.close().await.map_or(ended, Err)
        }
    }
}

async fn with_client(
    command: ClientCommand,
    client: &Client,
    url: &str,
    out: Output,
) -> Result<(), Failure> {
    match command {
        ClientCommand::Push(args) => push::run(client, out, *args, url).await,
        ClientCommand::Work(args) => work::run(client, out, *args, url).await,
        ClientCommand::Jobs(args) => jobs::run(client, out, args).await,
        ClientCommand::Job(args) => job::run(client, out, args).await,
        ClientCommand::Result(args) => result::run(client, out, args, url).await,
        ClientCommand::Parents(args) => kin::parents(client, out, args).await,
        ClientCommand::Children(args) => kin::children(client, out, args).await,
        ClientCommand::Flow(args) => flow::run(client, out, args, url).await,
        ClientCommand::Explain(args) => explain::run(client, out, args).await,
        ClientCommand::Cancel(args) => cancel::cancel(client, out, args).await,
        ClientCommand::Retry(args) => cancel::retry(client, out, args).await,
        ClientCommand::Delete(args) => cancel::delete(client, out, args).await,
        ClientCommand::Events(args) => events::run(client, out, args).await,
        ClientCommand::Failures(args) => failures::run(client, out, args).await,
        ClientCommand::RunNow(args) => cancel::run_now(client, out, args).await,
        ClientCommand::Reschedule(args) => reschedule::run(client, out, args).await,
        ClientCommand::Queue(args) => queue::run(client, out, args).await,
        ClientCommand::Limit(args) => limit::run(client, out, args).await,
        ClientCommand::Pool(args) => pool::run(client, out, args).await,
        ClientCommand::Schedule(args) => schedule::run(client, out, args).await,
        ClientCommand::Lock(args) => lock::lock(client, args, url).await,
        ClientCommand::Lease(args) => lock::lease(client, args, url).await,
        ClientCommand::Leases(args) => leases::run(client, out, args).await,
        ClientCommand::Workers(args) => workers::run(client, out, args).await,
        ClientCommand::Stats => stats::run(client, out).await,
        ClientCommand::Status => status::run(client, out, url).await,
        ClientCommand::Top(args) => top::run(client, args, url).await,
        ClientCommand::Audit(args) => audit::run(client, out, args).await,
    }
}
