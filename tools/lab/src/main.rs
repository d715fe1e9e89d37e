//! `tenure-lab`: measures Tenure on this machine, and tries to break it.
//!
//! It is for developers of Tenure, and for the choice of a machine; users of `tenure` do not need it. The servers that
//! it kills, soaks and fuzzes run the command line as it is shipped ([`under_test`]).
//!
//! It must never become part of the shipped programs: no other crate may depend on it.

mod bench;
mod chance;
mod crash;
mod fuzz;
mod soak;
mod under_test;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tenure_console::exit::Failure;
use tenure_console::output::Output;
use tenure_console::program::{self, ChildProcessArgs};

/// The allocator of the command line, so that measurements in process show what its users get.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Tenure on this machine, and kills, soaks and fuzzes a server of it.
#[derive(Parser, Debug)]
#[command(name = "tenure-lab", version, about, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
struct LabLine {
    /// Write the answer as one JSON document.
    #[arg(long, global = true)]
    json: bool,
    /// The command.
    #[command(subcommand)]
    command: LabCommand,
}

/// The commands of `tenure-lab`.
#[derive(Subcommand, Debug)]
enum LabCommand {
    /// Measure calls in process and over HTTP, and the figures that Tenure promises.
    Bench(Box<bench::BenchArgs>),
    /// Kill the server with SIGKILL under load, and check that nothing answered is lost.
    Crash(crash::CrashArgs),
    /// Use a server for long, with names that come and go, and check that memory and disk level off.
    Soak(soak::SoakArgs),
    /// Send random requests, right and broken, and check every answer.
    Fuzz(fuzz::FuzzArgs),
}

/// The role of a child process of the lab.
#[derive(Parser, Debug)]
enum LabProcess {
    /// A client of the crash check.
    CrashClient(crash::client::ClientArgs),
    /// A process that ends with the one that started it.
    ChildProcess(ChildProcessArgs),
}

fn main() -> ExitCode {
    let code = match program::wanted::<LabProcess>() {
        Some(process) => program::exit_code(Output { json: false }, || be(process)),
        None => {
            let line = LabLine::parse();
            let out = Output { json: line.json };
            program::exit_code(out, || run(out, line.command))
        }
    };
    ExitCode::from(code)
}

async fn be(process: LabProcess) -> Result<(), Failure> {
    match process {
        LabProcess::CrashClient(args) => crash::client::run(args).await,
        LabProcess::ChildProcess(args) => Err(args.become_it()),
    }
}

async fn run(out: Output, command: LabCommand) -> Result<(), Failure> {
    match command {
        LabCommand::Bench(args) => bench::run(out, *args).await,
        LabCommand::Crash(args) => crash::run(out, args).await,
        LabCommand::Soak(args) => soak::run(out, args).await,
        LabCommand::Fuzz(args) => fuzz::run(out, args).await,
    }
}

/// Prints progress to stderr; stdout is for the answer.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
