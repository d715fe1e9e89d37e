//! The processes of the chaos, seen from the test: started, killed with SIGKILL, started again, stopped for a while.
//! Workers and pushers have another name each time, a server its old port.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use tenure_testkit::tenure::Process;

use crate::chaos::part::{self, FILE, NAME, PORTS, ROLE};
use crate::chaos::records;
use crate::tenure;

/// A process that is told to end does so within this.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// The role of a process.
#[derive(Clone, PartialEq, Eq)]
pub enum Role {
    /// Leases, works and settles jobs.
    Worker,
    Pusher,
    /// Pushes jobs that wait for each other, see `flows.rs`.
    FlowPusher,
    /// `tenure serve` on this port.
    Server(u16),
}

/// The settings of all processes.
#[derive(Clone)]
pub struct Told {
    /// The store of the servers.
    pub store: String,
    /// The ports of all servers, with commas between.
    pub ports: String,
    /// The folder of the records.
    pub folder: PathBuf,
    /// The folder of the servers' logs.
    pub words: PathBuf,
}

/// One process at a time, in one place.
pub struct Part {
    role: Role,
    place: usize,
    starts: u32,
    told: Told,
    /// The name of the process that runs now.
    pub name: String,
    process: Process,
}

impl Part {
    pub fn start(role: Role, place: usize, told: &Told) -> Self {
        let (name, process) = started(&role, place, 0, told);
        Part { role, place, starts: 0, told: told.clone(), name, process }
    }

    /// Kills it; the moment at which it was dead, in µs since 1970.
    pub fn kill(&mut self) -> u64 {
        self.process.kill();
        part::unix_us()
    }

    /// Lets it stand still, or go on.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// The name under which it holds leases.
    pub fn holder(&self) -> Option<String> {
        records::holder(&self.told.folder.join(&self.name))
    }

    /// Starts another in its place.
    pub fn restart(&mut self) {
        self.starts += 1;
        let started = started(&self.role, self.place, self.starts, &self.told);
        (self.name, self.process) = started;
    }
}

fn started(role: &Role, place: usize, start: u32, told: &Told) -> (String, Process) {
    let (word, command) = match role {
        Role::Worker => ("worker", again()),
        Role::Pusher => ("pusher", again()),
        Role::FlowPusher => ("flows", again()),
        Role::Server(port) => ("server", serve(*port, told)),
    };
    let (name, mut command) = (format!("{word}-{place}-{start}"), command);
    command.env(ROLE, word).env(NAME, &name).env(PORTS, &told.ports);
    command.env(FILE, told.folder.join(&name));
    (name, Process::start(&mut command, ENDS_WITHIN))
}

/// This program, started again.
fn again() -> Command {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.args(["chaos::one_process_of_the_chaos", "--exact", "--ignored", "--nocapture"]);
    // It ends when this pipe is closed: no process outlives the test.
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command
}

fn serve(port: u16, told: &Told) -> Command {
    let mut command = tenure(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
    command.env("TENURE_STORE", &told.store).stdout(Stdio::null());
    command.stderr(words(&told.words, port));
    command
}

fn words(folder: &Path, port: u16) -> Stdio {
    let file = folder.join(format!("server-{port}.log"));
    let file = std::fs::File::options().create(true).append(true).open(file);
    file.expect("a file of its own").into()
}
