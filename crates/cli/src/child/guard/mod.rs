//! The guard of a CMD: a small process between `tenure` and CMD, which ends all that CMD started when
//! `tenure` dies without a word (SIGKILL, or the system was out of memory), and removes its files.
//!
//! Nothing can run in a process that is killed. So CMD is a child of this one, which takes orders over a socket and
//! notices the end of `tenure`. On Linux it adopts the orphans below it: a process that left its group and its session
//! cannot leave the guard, and "no child is left" is the whole truth.
//!
//! `tenure` decides when CMD is stopped and what its end means, with one exception: a `tenure` that is stopped itself
//! (SIGSTOP, a debugger) decides nothing. So every answered heartbeat sends the guard the time until which CMD may run,
//! and the guard ends CMD then if no later time has come. It reads no store and writes nowhere. The reasons for this
//! design: `docs/decisions/027-*`.

mod brood;
mod clock;
pub mod descendants;
pub mod feed;
pub mod listen;
pub mod process;
pub mod wire;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use self::brood::{Brood, say};
use self::wire::{GuardTold, Order, Said};
use crate::child::environment::close_to_cmd;
use crate::child::run_folder;
use crate::child::signals::Signals;

/// The name by which it is started and seen in lists of processes. It is not `tenure`, so that a kill of all processes
/// of that name leaves the guards to do their work.
pub const NAME: &str = "cmd-guard";
/// After the death of `tenure` the processes that CMD started have this long to end by themselves after SIGTERM; all of
/// them are to be gone within a second.
const TERM_GRACE: Duration = Duration::from_millis(300);

/// Whether this process was started to be a guard.
pub fn is_wanted() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Runs the guard, until `tenure` dismisses it, or `tenure` is gone and all processes below it too. Its stdin is the
/// socket.
pub fn run() {
    // It has the environment of its `tenure`.
    close_to_cmd();
    hear_no_signals();
    #[cfg(target_os = "linux")]
    {
        let _ = nix::sys::prctl::set_child_subreaper(true);
        let _ = nix::sys::prctl::set_name(c"cmd-guard");
    }
    let socket = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    if let Ok(socket) = socket {
        Guard { socket, folder: None, held: None, detach: false, brood: Arc::default() }.serve();
    }
}

/// A signal to all processes of a terminal or a service is not meant for the guard: it goes last. It gets handlers that
/// do nothing: CMD would inherit a mask, or ignored signals, but inherits no handler.
fn hear_no_signals() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    if let Ok(runtime) = runtime {
        let _inside = runtime.enter();
        // The handlers stay for as long as the process lives.
        let _ = Signals::listen();
    }
}

struct Guard {
    socket: UnixStream,
    folder: Option<PathBuf>,
    /// Keeps others from sweeping the folder while this lives.
    held: Option<File>,
    detach: bool,
    brood: Arc<Brood>,
}

impl Guard {
    fn serve(mut self) {
        loop {
            let signal = |number| Signal::try_from(number).ok();
            match wire::told(&self.socket) {
                Ok(Some(GuardTold::Folder(folder))) => {
                    // A folder that is gone needs no holder.
                    self.held = run_folder::hold(&folder).ok();
                    self.folder = Some(folder);
                }
                Ok(Some(GuardTold::Start(order, streams))) => self.start(order, streams),
                Ok(Some(GuardTold::Group(number))) => {
                    signal(number).into_iter().for_each(|signal| self.brood.signal_group(signal));
                }
                Ok(Some(GuardTold::All(number))) => {
                    signal(number).into_iter().for_each(|signal| self.brood.signal_all(signal));
                }
                Ok(Some(GuardTold::Kill)) => self.brood.kill(),
                Ok(Some(GuardTold::Lease(times))) => {
                    if self.brood.lease(times) {
                        self.thread(Brood::keep_time);
                    }
                }
                Ok(Some(GuardTold::Ping(number))) => {
                    say(&mut self.socket, &mut vec![Said::Heard(number)]);
                }
                Ok(Some(GuardTold::Bye)) => return,
                Ok(None) | Err(_) => return self.left_alone(),
            }
        }
    }

    fn start(&mut self, order: Order, [stdin, stdout, stderr]: [OwnedFd; 3]) {
        self.detach = order.detach;
        if self.brood.is_overdue() {
            // That was reported.
            return;
        }
        let report = match self.started(order, [stdin, stdout, stderr]) {
            Ok(leader) => Said::Started(leader),
            Err(error) => Said::NotStarted(error.raw_os_error().unwrap_or(0)),
        };
        say(&mut self.socket, &mut vec![report]);
        let Said::Started(leader) = report else { return };
        self.thread(move |brood, socket| brood.reap(Pid::from_raw(leader), socket));
        if self.brood.is_overdue() {
            // This process was stopped while it started CMD, and the thread that keeps the time knew nothing of CMD.
            self.brood.kill();
        }
    }

    /// Runs `act` on a thread, beside the orders.
    fn thread(&self, act: impl FnOnce(&Brood, UnixStream) + Send + 'static) {
        let brood = self.brood.clone();
        let socket = self.socket.try_clone();
        let spawned = socket
            .and_then(|socket| std::thread::Builder::new().spawn(move || act(&brood, socket)));
        if spawned.is_err() {
            // Without it nobody would see CMD's end, or keep its time: `tenure` sees the guard go, and ends CMD.
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
        self.brood.begins(Pid::from_raw(leader));
        Ok(leader)
    }

    /// `tenure` is gone, without a goodbye.
    fn left_alone(self) {
        if self.detach {
            self.brood.no_lease();
            while !self.brood.gone_within(Duration::from_secs(3_600)) {}
        } else {
            self.brood.signal_group(Signal::SIGTERM);
            // A suspended process cannot end.
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
