//! The commands that start processes of this same binary, and those processes themselves, which are
//! not shown in any help: `demo`, `bench`.

use std::ffi::OsString;

use clap::Subcommand;

use crate::bench::{self, BenchArgs};
use crate::crash::client::{self, ClientArgs};
use crate::demo::worker::{self, WorkerArgs};
use crate::demo::{self, DemoArgs};
use crate::exit::Failure;
use crate::output::Output;
use crate::own;

/// Commands that need no store of their caller's.
#[derive(Subcommand, Debug)]
pub enum OwnCommand {
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
    OwnProcess {
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
pub async fn run(out: Output, command: OwnCommand) -> Result<(), Failure> {
    match command {
        OwnCommand::Demo(args) => demo::run(out, args).await,
        OwnCommand::Bench(args) => bench::run(out, *args).await,
        OwnCommand::DemoWorker(args) => worker::run(args).await,
        OwnCommand::CrashClient(args) => client::run(args).await,
        OwnCommand::OwnProcess { parent, program, args } => {
            Err(own::become_of(parent, program, &args))
        }
    }
}
