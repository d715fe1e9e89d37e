//! The commands that start processes of this same binary, and those processes themselves, which are
//! not shown in any help: `demo`, `bench`.

use std::ffi::OsString;

use clap::Subcommand;

use crate::bench::{self, BenchArgs};
use crate::child_processes;
use crate::crash::client::{self, ClientArgs};
use crate::demo::worker::{self, WorkerArgs};
use crate::demo::{self, DemoArgs};
use crate::exit::Failure;
use crate::output::Output;

/// Commands that need no store of their caller's.
#[derive(Subcommand, Debug)]
pub enum StorelessCommand {
    /// Watch real work being handed out under caps, with crashes in the middle; needs nothing.
    Demo(DemoArgs),
    /// Measure this machine, or kill a server under load and look what is left.
    Bench(Box<BenchArgs>),
    /// A worker of the demo.
    #[command(hide = true)]
    DemoWorker(WorkerArgs),
    /// A client of the crash check.
    #[command(hide = true)]
    CrashClient(ClientArgs),
    /// A process that ends with the one that started it.
    #[command(hide = true)]
    ChildProcess {
        /// The process that started it.
        parent: u32,
        /// The program that it becomes, if not this one.
        #[arg(long)]
        program: Option<std::path::PathBuf>,
        /// What it is then.
        #[arg(last = true, required = true)]
        args: Vec<OsString>,
    },
}

/// Does what was said.
pub async fn run(out: Output, command: StorelessCommand) -> Result<(), Failure> {
    match command {
        StorelessCommand::Demo(args) => demo::run(out, args).await,
        StorelessCommand::Bench(args) => bench::run(out, *args).await,
        StorelessCommand::DemoWorker(args) => worker::run(args).await,
        StorelessCommand::CrashClient(args) => client::run(args).await,
        StorelessCommand::ChildProcess { parent, program, args } => {
            Err(child_processes::become_of(parent, program, &args))
        }
    }
}
