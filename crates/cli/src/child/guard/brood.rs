//! What lives below a guard: signalled, ended and waited for; and until when it may live.
//!
//! It does what the guard is told, and by itself one thing: when the time of the lease is over that it was told of, and
//! no more was told in time, it ends all that lives.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid, getpid};
use rustix::process::{WaitOptions, wait};

use super::wire::{LeaseTimes, Said};
use super::{clock, descendants};
use crate::child::run::GRACE;

/// What does not end by SIGKILL (another user's, or stuck in the kernel) is left after this.
const KILL_MAX: Duration = Duration::from_secs(10);
/// The first and the longest pause between two SIGKILLs to what is left.
const AGAIN: Duration = Duration::from_millis(10);
const AGAIN_MAX: Duration = Duration::from_millis(200);
/// How often the clock is looked at while CMD ends.
const LOOK: Duration = Duration::from_millis(50);

/// What lives below the guard.
#[derive(Default)]
pub struct Brood {
    state: Mutex<GuardState>,
    changed: Condvar,
}

#[derive(Default)]
struct GuardState {
    /// CMD, and its process group; as long as nobody has waited for it, nobody else can have its number.
    leader: Option<Pid>,
    /// Whether there may be anything: from the start of CMD until no child is left.
    alive: bool,
    /// Until when CMD may run. `None` if it runs under no lease, or whatever becomes of that.
    lease: Option<LeaseTimes>,
    /// The time of the lease is over. Never becomes false again.
    overdue: bool,
}

impl GuardState {
    /// Looks at the clock once more: what was not told in time is told too late.
    fn is_overdue(&mut self) -> bool {
        self.overdue |= self.lease.is_some_and(|lease| lease.stop_by <= clock::now());
        self.overdue
    }
}

impl Brood {
    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// CMD was started.
    pub fn begins(&self, leader: Pid) {
        let mut state = self.state();
        (state.leader, state.alive) = (Some(leader), true);
    }

    /// The lease is held until then. What comes after the time that was told before changes nothing. Answers whether it
    /// is the first that is told.
    pub fn lease(&self, times: LeaseTimes) -> bool {
        let mut state = self.state();
        let first = state.lease.is_none();
        if !state.is_overdue() {
            state.lease = Some(times);
        }
        first
    }

    /// CMD may run whatever becomes of the lease.
    pub fn no_lease(&self) {
        self.state().lease = None;
    }

    /// Whether the time of the lease is over.
    pub fn is_overdue(&self) -> bool {
        self.state().is_overdue()
    }

    /// Waits for the end of the lease's time, which moves with each heartbeat, and ends all that lives then. Says so
    /// first, so that `tenure` does not take that for CMD's own end.
    pub fn keep_time(&self, mut socket: UnixStream) {
        let kill_by = loop {
            let mut state = self.state();
            let Some(lease) = state.lease else { return };
            if state.is_overdue() {
                break lease.kill_by;
            }
            drop(state);
            clock::sleep_towards(lease.stop_by);
        };
        say(&mut socket, &mut vec![Said::Overdue]);
        let kill_at = kill_by.min(clock::now().saturating_add(GRACE));
        self.signal_all(Signal::SIGTERM);
        // One that is suspended cannot end.
        self.signal_all(Signal::SIGCONT);
        loop {
            let left = kill_at.saturating_sub(clock::now());
            if left.is_zero() {
                break;
            }
            if self.gone_within(left.min(LOOK)) {
                return;
            }
        }
        self.kill();
    }

    /// Waits until nothing is left; at most this long. Answers whether nothing is.
    pub fn gone_within(&self, most: Duration) -> bool {
        let state = self.state();
        let waited = self.changed.wait_timeout_while(state, most, |state| state.alive);
        !waited.unwrap_or_else(PoisonError::into_inner).0.alive
    }

    /// Sends a signal to CMD's process group.
    pub fn signal_group(&self, signal: Signal) {
        if let Some(leader) = self.state().leader {
            let _ = killpg(leader, signal);
        }
    }

    /// Sends a signal to all that lives.
    pub fn signal_all(&self, signal: Signal) {
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

    /// SIGKILL to all, until nothing is left.
    pub fn kill(&self) {
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
    pub fn reap(&self, leader: Pid, mut socket: UnixStream) {
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

/// Whether `tenure` still hears it is not for the guard to know. All is written in one piece, since several threads say
/// something.
pub fn say(socket: &mut UnixStream, said: &mut Vec<Said>) {
    let bytes: Vec<u8> = said.drain(..).flat_map(Said::bytes).collect();
    let _ = socket.write_all(&bytes);
}
