//! The processes of the chaos, seen from the test: started, killed with SIGKILL, started again under
//! another name.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::part::{self, FILE, NAME, ROLE, URL};

/// What a process does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Leases, works, settles.
    Worker,
    /// Pushes, and does what time does.
    Server,
}

/// One process at a time, in one place.
pub struct Part {
    role: Role,
    place: usize,
    starts: u32,
    url: String,
    folder: PathBuf,
    /// Of the process that runs now.
    pub name: String,
    child: Child,
}

impl Part {
    pub fn start(role: Role, place: usize, url: &str, folder: &Path) -> Self {
        let (name, child) = started(role, place, 0, url, folder);
        let (url, folder) = (url.to_owned(), folder.to_owned());
        Part { role, place, starts: 0, url, folder, name, child }
    }

    /// Kills it; the moment at which it was dead, in µs since 1970.
    pub fn kill(&mut self) -> u64 {
        let _ = self.child.kill();
        let _ = self.child.wait();
        part::unix_us()
    }

    /// Starts another in its place.
    pub fn restart(&mut self) {
        self.starts += 1;
        let started = started(self.role, self.place, self.starts, &self.url, &self.folder);
        (self.name, self.child) = started;
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.kill();
    }
}

fn started(role: Role, place: usize, start: u32, url: &str, folder: &Path) -> (String, Child) {
    let word = match role {
        Role::Worker => "worker",
        Role::Server => "server",
    };
    let name = format!("{word}-{place}-{start}");
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.args(["one_process_of_the_chaos", "--exact", "--ignored", "--nocapture"]);
    command.env(ROLE, word).env(NAME, &name).env(URL, url).env(FILE, folder.join(&name));
    // It ends when this pipe is closed: no process outlives the test.
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let child = command.spawn().expect("this program can be started again");
    (name, child)
}
