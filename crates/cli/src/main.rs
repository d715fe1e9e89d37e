//! The `tenure` command: every face of the contract's section 7, on any engine.
//!
//! stdout is data, stderr is the rest, and how a command ended is its exit code. Nothing here knows
//! HTTP, and no rule of Tenure is decided here.

mod args;
mod bench;
mod child;
mod child_processes;
mod cmd;
mod crash;
mod demo;
mod exchange;
mod exit;
mod fuzz;
mod input;
mod internal;
mod json_args;
mod local_time;
mod logging;
mod machine_zone;
mod output;
mod scrapyd;
mod scratch;
mod service;
mod settings;
mod soak;
mod store;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use crate::exit::{BUG, Failure};
use crate::internal::InternalCommand;
use crate::output::Output;
use crate::settings::Unread;

/// What one thread of the engine makes another frees, all day long. glibc takes a lock for that;
/// this one does not. Measured in `docs/decisions`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything is set up: it is started for each CMD.
    if child::guard::is_wanted() {
        child::guard::run();
        return ExitCode::SUCCESS;
    }
    let (out, ended) = match InternalCommand::wanted() {
        Some(command) => (Output { json: false }, caught(|| command.run())),
        None => match settings::command_line() {
            Ok(cli) => {
                if !cli.global.utc {
                    output::clock::show_local_time();
                }
                local_time::tell();
                (Output { json: cli.global.json }, caught(|| cmd::run(cli)))
            }
            Err(Unread::Settings(failure)) => return ExitCode::from(failure.tell()),
            Err(Unread::Line) => return args::refused::tell(),
        },
    };
    let code = match ended {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => out.failure(&failure),
        Err(_) => {
            Failure::bug("the command panicked").tell();
            BUG
        }
    };
    ExitCode::from(code)
}

/// A panic has told what it is on stderr; what is left to say is that it is a bug.
fn caught<F: Future<Output = Result<(), Failure>>>(
    command: impl FnOnce() -> F,
) -> std::thread::Result<Result<(), Failure>> {
    std::panic::catch_unwind(AssertUnwindSafe(|| run(command())))
}

fn run(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(exit::NOT_STARTED, format!("cannot start: {error}")))?;
    let ended = runtime.block_on(command);
    // A thread that waits for stdin must not keep the command from ending.
    runtime.shutdown_background();
    ended
}
