//! The `tenure` command: every face of the contract's section 7, on any engine.
//!
//! stdout is data, stderr is the rest, and the exit code says how a command ended. Nothing here
//! knows HTTP, and no rule of Tenure is decided here.

mod args;
mod child;
mod cmd;
mod demo;
mod exchange;
mod input;
mod internal;
mod json_args;
mod local_time;
mod logging;
mod otlp;
mod scrapyd;
mod service;
mod settings;
mod store;
mod top;

use std::process::ExitCode;

// Modules that `tenure-lab` has too go by the same names as those that are only here.
use tenure_console::{child_processes, exit, machine_zone, output, program, scratch};

use crate::internal::InternalCommand;
use crate::output::Output;
use crate::settings::Unread;

/// Threads of the engine free memory that other threads allocated, all day long. glibc takes a lock
/// for that; this allocator does not. Measured in `docs/decisions`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything is set up: it is started for each CMD.
    if child::guard::is_wanted() {
        child::guard::run();
        return ExitCode::SUCCESS;
    }
    let code = match program::wanted::<InternalCommand>() {
        Some(command) => program::exit_code(Output { json: false }, || command.run()),
        None => match settings::command_line() {
            Ok(cli) => {
                if !cli.global.utc {
                    output::clock::show_local_time();
                }
                local_time::tell();
                program::exit_code(Output { json: cli.global.json }, || cmd::run(cli))
            }
            Err(Unread::Settings(failure)) => failure.tell(),
            Err(Unread::Line) => return args::refused::tell(),
        },
    };
    ExitCode::from(code)
}
