//! Commands with which `demo`, the completions of a shell and the scripts that build packages start this same binary.
//! Nobody types these.

use clap::Parser;
use tenure_console::program::ChildProcessArgs;

use crate::cmd::complete_names;
use crate::cmd::man_pages::ManPagesArgs;
use crate::demo::worker::{self, WorkerArgs};
use crate::exit::Failure;

/// The role of a child process.
#[derive(Parser, Debug)]
pub enum InternalCommand {
    /// A worker of the demo.
    DemoWorker(WorkerArgs),
    /// A process that ends with the one that started it.
    ChildProcess(ChildProcessArgs),
    /// Writes the manual pages, for a package.
    ManPages(ManPagesArgs),
    /// Prints the names that fit where the cursor of a shell is.
    CompleteNames,
}

impl InternalCommand {
    /// Runs it until its end.
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            InternalCommand::DemoWorker(args) => worker::run(args).await,
            InternalCommand::ChildProcess(args) => Err(args.become_it()),
            InternalCommand::ManPages(args) => args.write(),
            InternalCommand::CompleteNames => complete_names::run().await,
        }
    }
}
