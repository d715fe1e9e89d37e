//! The processes of this same binary that `demo` and `bench` start.
//!
//! They are no commands of the command line, so that no help, no error and no completion can list them.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::child_processes;
use crate::crash::client::{self, ClientArgs};
use crate::demo::worker::{self, WorkerArgs};
use crate::exit::Failure;

/// What a process of ours was started to be.
#[derive(Parser, Debug)]
pub enum InternalCommand {
    /// A worker of the demo.
    DemoWorker(WorkerArgs),
    /// A client of the crash check.
    CrashClient(ClientArgs),
    /// A process that ends with the one that started it.
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

impl InternalCommand {
    /// What this process was started to be; `None` if a person started it.
    pub fn wanted() -> Option<Self> {
        let name = std::env::args_os().nth(1)?;
        InternalCommand::has_subcommand(name.to_str()?).then(InternalCommand::parse)
    }

    /// Is that until its end.
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            InternalCommand::DemoWorker(args) => worker::run(args).await,
            InternalCommand::CrashClient(args) => client::run(args).await,
            InternalCommand::ChildProcess { parent, program, args } => {
                Err(child_processes::become_of(parent, program, &args))
            }
        }
    }
}
