//! The guard of a CMD: a small process between `tenure` and CMD, which ends all that CMD started when
//! `tenure` dies without a word (SIGKILL, or the system was out of memory), and removes its files.
//!
//! Nothing can run in a process that is killed. So CMD is a child of this one, which does as it is told
//! over a socket and notices its end. On Linux it adopts what becomes an orphan below it: a process that
//! left its group and its session cannot leave the guard, and "no child is left" is the whole truth.
//!
//! It decides nothing: when CMD is to be stopped, and what its end means, is decided by `tenure`. It
//! reads no store and writes nowhere. Why it is built so: `docs/decisions/027-*`.

pub mod descendants;
pub mod listen;
pub mod wire;

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid, getpid};
use rustix::process::{WaitOptions, wait};

use self::wire::{GuardTold, Order, Said};
use crate::child::signals::Signals;

/// By this name it is started and seen in lists of processes. It is not `tenure`, so that who kills all
/// of that name leaves the guards to do their work.
pub const NAME: &str = "cmd-guard";
/// When `tenure` died, what CMD started has this long to end by itself after SIGTERM; all of it is to
/// be over within a second.
const TERM_GRACE: Duration = Duration::from_millis(300);
/// What does not end by SIGKILL (another user's, or stuck in the kernel) is left after this.
const KILL_MAX: Duration = Duration::from_secs(10);
/// The first and the longest pause between two SIGKILLs to what is left.
const AGAIN: Duration = Duration::from_millis(10);
const AGAIN_MAX: Duration = Duration::from_millis(200);

/// Whether this process was started to be a guard.
pub fn is_wanted() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Is the guard, until it is told that it is needed no longer, or its `tenure` is gone and all else
/// with it. Its stdin is the socket.
pub fn run() {
    hear_no_signals();
    #[cfg(target_os = "linux")]
    {
        let _ = nix::sys::prctl::set_child_subreaper(true);
        let _ = nix::sys::prctl::set_name(c"cmd-guard");
    }
    let socket = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    if let Ok(socket) = socket {
        Guard { socket, folder: None, detach: false, brood: Arc::default() }.serve();
    }
}

/// A signal to all processes of a terminal or a service is not meant for the guard: it goes last.
/// It gets handlers that do nothing. CMD would inherit a mask, or signals that are ignored; a handler
/// it does not.
fn hear_no_signals() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    if let Ok(runtime) = runtime {
        let _inside = runtime.enter();
        // The handlers stay for as long as the process lives.
        let _ = Signals::listen();
    }
}

/// What lives below the guard.
#[derive(Default)]
struct Brood {
    state: Mutex<GuardState>,
    changed: Condvar,
}

#[derive(Default)]
struct GuardState {
    /// CMD, and its process group; as long as nobody has waited for it, nobody else can have its number.
    leader: Option<Pid>,
    /// Whether there may be anything: from the start of CMD until no child is left.
    alive: bool,
}

impl Brood {
    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is left; at most this long. Answers whether nothing is.
    fn gone_within(&self, most: Duration) -> bool {
        let state = self.state();
        let waited = self.changed.wait_timeout_while(state, most, |state| state.alive);
        !waited.unwrap_or_else(PoisonError::into_inner).0.alive
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(leader) = self.state().leader {
            let _ = killpg(leader, signal);
        }
    }

    fn signal_all(&self, signal: Signal) {
        if !self.state().alive {
            return;
        }
        // The group first, in one step: a process that is just being forked is in no list yet.
        let leader = self.state().leader;
        self.signal_group(signal);
        for pid in descendants::of(getpid()) {
            // The group has it already.
            if leader.is_none() || getpgid(Some(pid)).ok() != leader {
                let _ = kill(pid, signal);
            }
        }
    }

    /// Until nothing is left.
    fn kill(&self) {
        let begun = Instant::now();
        let mut pause = AGAIN;
        loop {
            self.signal_all(Signal::SIGKILL);
            if self.gone_within(pause) || begun.elapsed() >= KILL_MAX {
                return;
            }
            pause = (pause * 2).min(AGAIN_MAX);
        }
    }

    /// Waits for every child, CMD's and adopted ones, and says what `tenure` must know.
    fn reap(&self, leader: Pid, mut socket: UnixStream) {
        let mut said = Vec::new();
        loop {
            // What is known is said together: that CMD ended, and that nothing is left.
            let mut options = WaitOptions::UNTRACED;
            options.set(WaitOptions::NOHANG, !said.is_empty());
            match wait(options) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == leader.as_raw() => {
                    if let Some(signal) = status.stopping_signal() {
                        said.push(Said::Suspended(signal));
                        continue;
                    }
                    said.extend(status.exit_status().map(Said::Ended));
                    said.extend(status.terminating_signal().map(Said::Killed));
                    // From now on its number may be another's, once all of its group are gone.
                    if cfg!(target_os = "linux") {
                        self.state().leader = None;
                    }
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => say(&mut socket, &mut said),
                // No child is left.
                Err(_) => break,
            }
        }
        if !cfg!(target_os = "linux") {
            // Orphans are not adopted there: of CMD's group some may be left.
            say(&mut socket, &mut said);
            while killpg(leader, None) != Err(Errno::ESRCH) {
                std::thread::sleep(AGAIN);
            }
        }
        self.state().alive = false;
        self.changed.notify_all();
        said.push(Said::Gone);
        say(&mut socket, &mut said);
    }
}

/// Whether `tenure` still hears it is not for the guard to know.
fn say(socket: &mut UnixStream, said: &mut Vec<Said>) {
    let bytes: Vec<u8> = said.drain(..).flat_map(Said::bytes).collect();
    let _ = socket.write_all(&bytes);
}

struct Guard {
    socket: UnixStream,
    folder: Option<PathBuf>,
    detach: bool,
    brood: Arc<Brood>,
}

impl Guard {
    fn serve(mut self) {
        loop {
            let signal = |number| Signal::try_from(number).ok();
            match wire::told(&self.socket) {
                Ok(Some(GuardTold::Folder(folder))) => self.folder = Some(folder),
                Ok(Some(GuardTold::Start(order, streams))) => self.start(order, streams),
                Ok(Some(GuardTold::Group(number))) => {
                    signal(number).into_iter().for_each(|signal| self.brood.signal_group(signal));
                }
                Ok(Some(GuardTold::All(number))) => {
                    signal(number).into_iter().for_each(|signal| self.brood.signal_all(signal));
                }
                Ok(Some(GuardTold::Kill)) => self.brood.kill(),
                Ok(Some(GuardTold::Bye)) => return,
                Ok(None) | Err(_) => return self.left_alone(),
            }
        }
    }

    fn start(&mut self, order: Order, [stdin, stdout, stderr]: [OwnedFd; 3]) {
        self.detach = order.detach;
        let said = match self.started(order, [stdin, stdout, stderr]) {
            Ok(leader) => Said::Started(leader),
            Err(error) => Said::NotStarted(error.raw_os_error().unwrap_or(0)),
        };
        let _ = self.socket.write_all(&said.bytes());
        let Said::Started(leader) = said else { return };
        let reaping = (self.brood.clone(), self.socket.try_clone());
        let (brood, Ok(socket)) = reaping else { return };
        let reap = move || brood.reap(Pid::from_raw(leader), socket);
        if std::thread::Builder::new().spawn(reap).is_err() {
            // Without it nobody would hear of CMD's end: `tenure` sees the guard go, and ends CMD.
            std::process::exit(1);
        }
    }

    fn started(&self, order: Order, [stdin, stdout, stderr]: [OwnedFd; 3]) -> io::Result<i32> {
        let Some((program, arguments)) = order.command.split_first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut call = Command::new(program);
        call.args(arguments).process_group(0);
        order.remove.iter().for_each(|name| {
            call.env_remove(name);
        });
        call.envs(order.set);
        call.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        // Waited for by its number.
        let leader = i32::try_from(call.spawn()?.id()).map_err(io::Error::other)?;
        *self.brood.state() = GuardState { leader: Some(Pid::from_raw(leader)), alive: true };
        Ok(leader)
    }

    /// `tenure` is gone, and did not say goodbye.
    fn left_alone(self) {
        if self.detach {
            while !self.brood.gone_within(Duration::from_secs(3_600)) {}
        } else {
            self.brood.signal_group(Signal::SIGTERM);
            // One that is suspended cannot end.
            self.brood.signal_group(Signal::SIGCONT);
            if !self.brood.gone_within(TERM_GRACE) {
                self.brood.kill();
            }
        }
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

#[cfg(test)]
pub mod tests {
    /// The tests' own binary is the guard of its tests: it is started to run this test alone.
    pub const AS_THE_GUARD: [&str; 4] =
        ["--exact", "child::guard::tests::as_the_guard", "--ignored", "--test-threads=1"];

    #[test]
    #[ignore = "it is the guard of other tests, and waits for what they say"]
    fn as_the_guard() {
        super::run();
        std::process::exit(0);
    }
}
