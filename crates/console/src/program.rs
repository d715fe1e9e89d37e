//! A process from its start to its exit code: the runtime, panics, and its role if another process started it.

use std::ffi::OsString;
use std::num::NonZero;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::child_processes;
use crate::exit::{BUG, Failure, NOT_STARTED};
use crate::output::Output;
use crate::stderr;

/// Runs a command in a runtime of its own, reports how it ended, and returns the exit code. A panic ends as a bug.
pub fn exit_code<F>(out: Output, command: impl FnOnce() -> F) -> u8
where
    F: Future<Output = Result<(), Failure>>,
{
    let code = match std::panic::catch_unwind(AssertUnwindSafe(|| run(command()))) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => out.failure(&failure),
        // The panic itself is on stderr already.
        Err(_) => {
            Failure::bug("the command panicked").tell();
            BUG
        }
    };
    stderr::finish();
    code
}

fn run(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // The store has threads of its own: docs/decisions/169.
        .worker_threads(if processors > 2 { 2 } else { 1 })
        .enable_all()
        .build()
        .map_err(|error| Failure::new(NOT_STARTED, format!("cannot start: {error}")))?;
    let ended = runtime.block_on(command);
    // A thread that waits for stdin must not keep the command from ending.
    runtime.shutdown_background();
    ended
}

/// The role of this process, if another one of the same program started it; `None` if a person did. Roles are no
/// commands of the command line, so that no help, no error and no completion can list them.
pub fn wanted<C: Parser + Subcommand>() -> Option<C> {
    let name = std::env::args_os().nth(1)?;
    C::has_subcommand(name.to_str()?).then(C::parse)
}

/// A process that ends with the process that started it: the arguments of `child-process`.
#[derive(Args, Debug)]
pub struct ChildProcessArgs {
    /// The process that started it.
    parent: u32,
    /// The program that it becomes, if not this one.
    #[arg(long)]
    program: Option<PathBuf>,
    /// The arguments of that program.
    #[arg(last = true, required = true)]
    args: Vec<OsString>,
}

impl ChildProcessArgs {
    /// Becomes it; returns only if that cannot be.
    pub fn become_it(self) -> Failure {
        child_processes::become_of(self.parent, self.program, &self.args)
    }
}
