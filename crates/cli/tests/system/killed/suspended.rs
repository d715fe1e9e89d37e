//! CMD is stopped by its terminal (Ctrl-Z, or a read in the background): its shell can still continue and end it.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};

use nix::fcntl::OFlag;
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, tcgetpgrp};
use tenure_testkit::tenure::{Server, alone};

use crate::killed::rounds::{SOON, end, field, runs, serve};

/// `tenure` takes the signal and SIGCONT, which come together, in any order: one shell would rarely see both.
const SHELLS: usize = 8;

/// Waits for a fact, no longer than `SOON`.
fn until(what: &str, so: impl FnMut() -> bool) {
    tenure_testkit::tenure::until(SOON, what, so);
}

/// A script of an interactive shell with job control, at a terminal of its own. `LOCK CMD` in it runs CMD under a lock.
struct Shell {
    shell: Child,
    /// Closes the terminal when it is dropped.
    keys: Option<PtyMaster>,
    folder: tempfile::TempDir,
}

impl Shell {
    fn start(server: &Server, name: &str, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A child that inherited it would keep the terminal open.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let keys = posix_openpt(flags).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let mut options = File::options();
        options.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits());
        let terminal = options.open(ptsname_r(&keys).unwrap()).unwrap();
        let script = script.replace("LOCK", r#""$TENURE" lock "$NAME" -- sh -c"#);
        // The leader of a session of its own, whose terminal is stdin.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "bash", "--norc", "-i", "-c", &script]);
        alone(&mut command).env("TENURE", env!("CARGO_BIN_EXE_tenure"));
        command.env("TENURE_URL", server.url()).env("NAME", name).current_dir(folder.path());
        command.stdin(Stdio::from(terminal)).stdout(Stdio::null()).stderr(Stdio::null());
        let shell = command.spawn().unwrap();
        Shell { shell, keys: Some(keys), folder }
    }

    /// Whether the script wrote this file, to its end.
    fn wrote(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).ok()?;
        Some(text.strip_suffix('\n')?.to_owned())
    }

    fn number(&self, name: &str) -> i32 {
        until(name, || self.wrote(name).is_some());
        self.wrote(name).unwrap().parse().unwrap()
    }

    /// Suspends CMD, once it has the terminal, and waits until the shell sees its job suspended.
    fn suspend(&mut self) {
        let cmd = self.number("cmd");
        until("CMD at the terminal", || self.has_terminal(cmd));
        // As Ctrl-Z does. Again, because CMD is continued once right after it has got the terminal.
        until("a suspended job", || {
            let _ = killpg(Pid::from_raw(cmd), Signal::SIGTSTP);
            self.wrote("suspended").is_some()
        });
    }

    fn has_terminal(&self, group: i32) -> bool {
        tcgetpgrp(self.keys.as_ref().unwrap()) == Ok(Pid::from_raw(group))
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys.as_mut().unwrap().write_all(keys).unwrap();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for name in ["tenure", "cmd"] {
            let pid = self.wrote(name).and_then(|text| text.parse().ok());
            pid.into_iter().filter(|pid| runs(*pid)).for_each(end);
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn start(server: &Server, script: &str) -> Vec<Shell> {
    (0..SHELLS).map(|number| Shell::start(server, &format!("l{number}"), script)).collect()
}

#[test]
fn kill_ends_the_cmd_of_a_suspended_job() {
    let server = serve();
    let script = "LOCK 'echo $$ > cmd; exec sleep 300'
        jobs -p > tenure; echo > suspended; read line; kill %1; read line";
    let mut shells = start(&server, script);
    shells.iter_mut().for_each(Shell::suspend);
    shells.iter_mut().for_each(|shell| shell.press(b"\n"));
    for shell in &shells {
        let (tenure, cmd) = (shell.number("tenure"), shell.number("cmd"));
        until("the end of both", || !runs(cmd) && !runs(tenure));
    }
}

#[test]
fn a_closed_terminal_ends_the_cmd_of_a_suspended_job() {
    let server = serve();
    let script = "LOCK 'echo $$ > cmd; exec sleep 300'
        jobs -p > tenure; echo > suspended; read line";
    let mut shells = start(&server, script);
    shells.iter_mut().for_each(Shell::suspend);
    for shell in &mut shells {
        let (tenure, cmd) = (shell.number("tenure"), shell.number("cmd"));
        shell.keys = None;
        until("the end of both", || !runs(cmd) && !runs(tenure));
    }
}

#[test]
fn sigterm_ends_a_cmd_that_is_stopped_in_the_background() {
    let server = serve();
    let script = "LOCK 'echo $$ > cmd; read line' & echo $! > tenure; wait";
    let shell = Shell::start(&server, "l", script);
    let (tenure, cmd) = (shell.number("tenure"), shell.number("cmd"));
    until("a CMD that may not read", || field(cmd, 0).as_deref() == Some("T"));
    kill(Pid::from_raw(tenure), Signal::SIGTERM).unwrap();
    until("the end of both", || !runs(cmd) && !runs(tenure));
}

#[test]
fn a_cmd_that_was_suspended_gets_the_terminal_back() {
    let server = serve();
    let script = "LOCK 'echo $$ > cmd; read line; echo \"$line\" > line'
        jobs -p > tenure; echo > suspended; read line; fg %1; echo $? > ended";
    let mut shell = Shell::start(&server, "l", script);
    shell.suspend();
    let (tenure, cmd) = (shell.number("tenure"), shell.number("cmd"));
    assert_eq!(field(tenure, 0).as_deref(), Some("T"));
    assert_eq!(field(cmd, 0).as_deref(), Some("T"));
    shell.press(b"\n");
    until("CMD at the terminal", || shell.has_terminal(cmd));
    shell.press(b"typed\n");
    assert_eq!(shell.number("ended"), 0);
    assert_eq!(shell.wrote("line").as_deref(), Some("typed"));
}
