//! The processes of the chaos, seen from the test: started, killed with SIGKILL, started again, stopped for a while.
//! Workers and pushers have another name each time, a server its old port.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::chaos::part::{self, FILE, NAME, PORTS, ROLE};
use crate::chaos::records;

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
    child: Child,
}

impl Part {
    pub fn start(role: Role, place: usize, told: &Told) -> Self {
        let (name, child) = started(&role, place, 0, told);
        Part { role, place, starts: 0, told: told.clone(), name, child }
    }

    /// Kills it; the moment at which it was dead, in µs since 1970.
    pub fn kill(&mut self) -> u64 {
        let _ = self.child.kill();
        let _ = self.child.wait();
        part::unix_us()
    }

    /// Lets it stand still, or go on.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("the id of a process");
        kill(Pid::from_raw(pid), signal).expect("a child of ours can be signalled");
    }

    /// The name under which it holds leases.
    pub fn holder(&self) -> Option<String> {
        records::holder(&self.told.folder.join(&self.name))
    }

    /// Starts another in its place.
    pub fn restart(&mut self) {
        self.starts += 1;
        let started = started(&self.role, self.place, self.starts, &self.told);
        (self.name, self.child) = started;
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.kill();
    }
}

fn started(role: &Role, place: usize, start: u32, told: &Told) -> (String, Child) {
    let (word, command) = match role {
        Role::Worker => ("worker", again()),
        Role::Pusher => ("pusher", again()),
        Role::FlowPusher => ("flows", again()),
        Role::Server(port) => ("server", serve(*port, told)),
    };
    let (name, mut command) = (format!("{word}-{place}-{start}"), command);
    command.env(ROLE, word).env(NAME, &name).env(PORTS, &told.ports);
    command.env(FILE, told.folder.join(&name));
    (name, command.spawn().expect("a process can be started"))
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for name in ["TENURE_URL", "TENURE_NAMESPACE", "TENURE_TOKEN"] {
        command.env_remove(name);
    }
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
    command.env("TENURE_STORE", &told.store).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(words(&told.words, port));
    command
}

fn words(folder: &Path, port: u16) -> Stdio {
    let file = folder.join(format!("server-{port}.log"));
    let file = std::fs::File::options().create(true).append(true).open(file);
    file.expect("a file of its own").into()
}
