//! A server, and commands of `tenure` that run a CMD and are watched from outside.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tenure_testkit::tenure::Server;

use crate::client;

/// The promise is a second; a machine that is busy with other tests may need more.
pub const SOON: Duration = Duration::from_secs(30);

/// CMD: with a child, a grandchild that is deaf to SIGTERM, one in a session of its own, and one whose
/// parents are gone as well. Each writes its number into a file.
pub const CMD: &str = r#"
sh -c 'trap "" TERM; echo $$ > deaf; while :; do sleep 1; done' &
setsid sh -c 'echo $$ > session; exec sleep 300' &
sh -c 'sh -c "echo \$\$ > orphan; exec setsid sleep 300" &'
sleep 300 & echo $! > child
echo "$TENURE_LEASE_FILE" > lease
echo $$ > cmd
wait
"#;
pub const NUMBERS: [&str; 5] = ["deaf", "session", "orphan", "child", "cmd"];

pub fn tenure(url: &str, within: &Path, arguments: &[&str]) -> Command {
    let mut command = client(url, arguments);
    command.current_dir(within).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

pub fn until(what: &str, so: impl FnMut() -> bool) {
    tenure_testkit::tenure::until(6 * SOON, what, so);
}

pub fn serve() -> Server {
    Server::start(&mut crate::serving("memory:"), 6 * SOON)
}

pub fn run(server: &Server, arguments: &[&str]) -> String {
    let output = client(&server.url(), arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// A `tenure` that runs CMD in a folder of its own.
pub struct Round {
    pub tenure: Child,
    pub folder: tempfile::TempDir,
}

impl Round {
    pub fn start(url: &str, arguments: &[&str], script: &str) -> Self {
        Round::start_with(url, arguments, script, |_| {})
    }

    pub fn start_with(
        url: &str,
        arguments: &[&str],
        script: &str,
        prepare: impl FnOnce(&mut Command),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments = [arguments, &["--", "sh", "-c", script]].concat();
        let mut command = tenure(url, folder.path(), &arguments);
        prepare(&mut command);
        Round { tenure: command.spawn().unwrap(), folder }
    }

    /// The content of this file of CMD, once it is there.
    pub fn wrote(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        let read = || std::fs::read_to_string(&path).unwrap_or_default();
        until(name, || read().ends_with('\n'));
        read().trim().to_owned()
    }

    pub fn number(&self, name: &str) -> i32 {
        self.wrote(name).parse().unwrap()
    }

    pub fn lease_folder(&self) -> PathBuf {
        Path::new(&self.wrote("lease")).parent().unwrap().to_owned()
    }
}

/// Whether a process runs; one that has ended and was not waited for does not.
pub fn runs(pid: i32) -> bool {
    field(pid, 0).is_some_and(|state| state != "Z" && state != "X")
}

/// A field of `/proc/PID/stat` after the name: 0 is the state, 1 the parent.
pub fn field(pid: i32, at: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(at).map(str::to_owned)
}

pub fn end(pid: i32) {
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}
