//! Child processes: servers, workers and clients that a command starts, watches and kills.
//!
//! Each has its own process group, so that Ctrl-C on the terminal reaches only us. Each is killed and waited for when
//! it is dropped, and by the kernel if we are killed ourselves. Nothing of the caller's environment that names a store
//! or a token reaches them, and an address that may hold a password is never among their arguments, where others could
//! see it.

mod redis;
mod server;

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tenure_core::secret::Secret;
use tokio::sync::mpsc;
use tokio::time::sleep;

pub use self::redis::ChildRedis;
pub use self::server::{ChildServer, ServerStore};
use crate::exit::{Failure, NOT_STARTED};

/// Variables by which a child process would find another store than the one it is given.
const STORES: [&str; 4] = ["TENURE_URL", "TENURE_STORE", "TENURE_NAMESPACE", "TENURE_TOKEN"];
/// How long a server may take to answer its first call.
const READY_MAX: Duration = Duration::from_secs(30);
/// How often a thing without a signal is polled.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A process that is killed when it is dropped.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    stdin: Option<ChildStdin>,
}

/// Where the output of a process goes.
#[derive(Debug)]
pub enum ProcessWords {
    /// Its stdout, line by line; its stderr is dropped.
    Lines(mpsc::UnboundedSender<String>),
    /// Its stdout, line by line; its stderr is ours.
    Answer(mpsc::UnboundedSender<String>),
    /// Both of its streams, appended to this file.
    File(PathBuf),
}

impl ChildProcess {
    /// Starts our own binary with these arguments, and with this as `TENURE_STORE`, if there is one.
    pub fn start(
        store: Option<&Secret>,
        args: &[&str],
        words: ProcessWords,
    ) -> Result<Self, Failure> {
        ChildProcess::launch(&[], args, store, words)
    }

    /// Starts another program in the same way.
    pub fn start_program(
        program: &Path,
        store: Option<&Secret>,
        args: &[&str],
        words: ProcessWords,
    ) -> Result<Self, Failure> {
        ChildProcess::launch(&["--program".as_ref(), program.as_os_str()], args, store, words)
    }

    fn launch(
        what: &[&OsStr],
        args: &[&str],
        store: Option<&Secret>,
        words: ProcessWords,
    ) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(NOT_STARTED, format!("cannot start a process of our own: {error}"))
        };
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        let parent = std::process::id().to_string();
        command.args(["child-process", &parent]).args(what).arg("--").args(args);
        for name in STORES {
            command.env_remove(name);
        }
        if let Some(store) = store {
            command.env("TENURE_STORE", store.reveal());
        }
        command.process_group(0).stdin(Stdio::piped());
        let mut lines = None;
        match words {
            ProcessWords::Lines(send) => {
                command.stdout(Stdio::piped()).stderr(Stdio::null());
                lines = Some(send);
            }
            ProcessWords::Answer(send) => {
                command.stdout(Stdio::piped());
                lines = Some(send);
            }
            ProcessWords::File(path) => {
                let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
                let file = file.map_err(failed)?;
                command.stdout(file.try_clone().map_err(failed)?).stderr(file);
                // A killed process leaves its private files: they are removed with that folder.
                if let Some(folder) = path.parent() {
                    command.env("TMPDIR", folder);
                }
            }
        }
        let mut child = command.spawn().map_err(failed)?;
        let stdin = child.stdin.take();
        let own = ChildProcess { child, stdin };
        own.forward(lines).map_err(failed)
    }

    fn forward(mut self, lines: Option<mpsc::UnboundedSender<String>>) -> std::io::Result<Self> {
        if let (Some(send), Some(out)) = (lines, self.child.stdout.take()) {
            // The thread ends with the process, after it has read the last output.
            std::thread::Builder::new().name("tenure-words".to_owned()).spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        break;
                    }
                }
            })?;
        }
        Ok(self)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, once it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends SIGKILL and waits until the process is gone.
    pub fn kill(&mut self) {
        if self.ended().is_none() {
            // Killing fails only for a group that is gone.
            let _ = killpg(self.group(), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }

    /// Closes its stdin, which asks our own processes to finish, and waits until it has ended; kills it if that takes
    /// longer than `most`.
    pub async fn finish(&mut self, most: Duration) -> Option<ExitStatus> {
        drop(self.stdin.take());
        self.wait(most).await
    }

    /// Waits until it has ended; kills it if that takes longer than `most`.
    pub async fn wait(&mut self, most: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + most;
        while Instant::now() < until {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            sleep(LOOK_EVERY).await;
        }
        self.kill();
        None
    }

    fn group(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX))
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Entry of a child process: ties its life to that of `parent`, then executes `program`, or our own binary. Returns
/// only if that fails.
pub(crate) fn become_of(parent: u32, program: Option<PathBuf>, args: &[OsString]) -> Failure {
    #[cfg(target_os = "linux")]
    {
        // Best effort: without it, we outlive the parent only if that is killed by SIGKILL.
        let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
        let born_of = u32::try_from(nix::unistd::getppid().as_raw()).unwrap_or(0);
        if born_of != parent {
            return Failure::new(NOT_STARTED, "the parent of this process has ended");
        }
    }
    let _ = parent;
    let error = match program.map_or_else(std::env::current_exe, Ok) {
        Ok(program) => Command::new(program).args(args).exec(),
        Err(error) => error,
    };
    Failure::new(NOT_STARTED, format!("cannot start a process of our own: {error}"))
}

/// Returns when stdin is closed: the parent wants us to finish, or is gone.
pub async fn told_to_finish() {
    let (send, closed) = tokio::sync::oneshot::channel::<()>();
    // A thread of its own: a blocking read on the runtime would keep the runtime from ending.
    let started = std::thread::Builder::new().name("tenure-stdin".to_owned()).spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = send.send(());
    });
    match started {
        Ok(_) => drop(closed.await),
        Err(_) => std::future::pending().await,
    }
}

/// A new folder of our own, removed when it is dropped.
pub fn temporary_folder(within: Option<&Path>) -> Result<tempfile::TempDir, Failure> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("tenure-");
    let made = match within {
        Some(within) => builder.tempdir_in(within),
        None => builder.tempdir(),
    };
    made.map_err(|error| Failure::file("cannot make a temporary folder", &error))
}

/// Waits for SIGINT, SIGTERM or SIGHUP, and returns the number of the signal.
pub async fn interrupted() -> i32 {
    use tokio::signal::unix::{SignalKind, signal};
    let streams = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    );
    let (Ok(mut int), Ok(mut term), Ok(mut hup)) = streams else {
        // Then they end us as they end any process, and the kernel ends our processes.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = int.recv() => SignalKind::interrupt().as_raw_value(),
        _ = term.recv() => SignalKind::terminate().as_raw_value(),
        _ = hup.recv() => SignalKind::hangup().as_raw_value(),
    }
}

/// Runs `work` until it is done or a signal comes. On a signal it is dropped, with every process and folder that it
/// holds, and the exit code names the signal.
pub async fn unless_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        // The signals first: work that begins before we listen for them leaves behind what it made.
        biased;
        signal = interrupted() => Err(Failure::silent(crate::exit::by_signal(signal))),
        done = work => done,
    }
}
