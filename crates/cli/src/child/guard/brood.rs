//! Processes below a guard: signals, ends and waits for them, and knows until when they may live.
//!
//! It follows the guard's orders, and does one thing by itself: when the last lease time that it knows is over and no
//! later one has come, it ends all processes.

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
use crate::child::grace::GRACE;

/// Processes that do not end by SIGKILL (another user's, or stuck in the kernel) are left after this.
const KILL_MAX: Duration = Duration::from_secs(10);
/// The first and the longest pause between two SIGKILLs to what is left.
const AGAIN: Duration = Duration::from_millis(10);
const AGAIN_MAX: Duration = Duration::from_millis(200);
/// How often the clock is read while CMD ends.
const LOOK: Duration = Duration::from_millis(50);

/// The processes below the guard.
#[derive(Default)]
pub struct Brood {
    state: Mutex<GuardState>,
    changed: Condvar,
}

#[derive(Default)]
struct GuardState {
    /// CMD and its process group; until somebody has waited for it, no other process can have its number.
    leader: Option<Pid>,
    /// Whether any process may be left: true from the start of CMD until no child is left.
    alive: bool,
    /// Until when CMD may run. `None` if it runs under no lease, or regardless of it.
    lease: Option<LeaseTimes>,
    /// The time of the lease is over. Never becomes false again.
    overdue: bool,
}

impl GuardState {
    /// Reads the clock once more: a lease time that arrives after the end comes too late.
    fn is_overdue(&mut self) -> bool {
        self.overdue |= self.lease.is_some_and(|lease| lease.stop_by <= clock::now());
        self.overdue
    }
}

impl Brood {
    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the start of CMD.
    pub fn begins(&self, leader: Pid) {
        let mut state = self.state();
        (state.leader, state.alive) = (Some(leader), true);
    }

    /// Sets the time until which the lease is held. It changes nothing if the previous one is over. Returns true for
    /// the first one.
    pub fn lease(&self, times: LeaseTimes) -> bool {
        let mut state = self.state();
        let first = state.lease.is_none();
        if !state.is_overdue() {
            state.lease = Some(times);
        }
        first
    }

    /// Lets CMD run regardless of the lease.
    pub fn no_lease(&self) {
        self.state().lease = None;
    }

    /// Whether the time of the lease is over.
    pub fn is_overdue(&self) -> bool {
        self.state().is_overdue()
    }

    /// Waits for the end of the lease's time, which moves with each heartbeat, and then ends all processes. Reports
    /// that first, so that `tenure` does not take it for CMD's own end.
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
        // A suspended process cannot end.
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

    /// Waits at most this long until no process is left. Returns false if one is.
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

    /// Sends a signal to every process.
    pub fn signal_all(&self, signal: Signal) {
        if !self.state().alive {
            return;
        }
        // The group first, in one step: a process that is just being forked is in no list yet.
        let leader = self.state().leader;
        self.signal_group(signal);
        for pid in descendants::of(getpid()) {
            // The group has received it already.
            if leader.is_none() || getpgid(Some(pid)).ok() != leader {
                let _ = kill(pid, signal);
            }
        }
    }

    /// Sends SIGKILL to every process until all are gone.
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

    /// Waits for every child, CMD's and adopted ones, and reports to `tenure`.
    pub fn reap(&self, leader: Pid, mut socket: UnixStream) {
        let mut reports = Vec::new();
        loop {
            // Facts that are known are reported together: that CMD ended, and that nothing is left.
            let mut options = WaitOptions::UNTRACED;
            options.set(WaitOptions::NOHANG, !reports.is_empty());
            match wait(options) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == leader.as_raw() => {
                    if let Some(signal) = status.stopping_signal() {
                        reports.push(Said::Suspended(signal));
                        continue;
                    }
                    reports.extend(status.exit_status().map(Said::Ended));
                    reports.extend(status.terminating_signal().map(Said::Killed));
                    // From now on its number may be another's, once its whole group is gone.
                    if cfg!(target_os = "linux") {
                        self.state().leader = None;
                    }
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => say(&mut socket, &mut reports),
                // No child is left.
                Err(_) => break,
            }
        }
        if !cfg!(target_os = "linux") {
            // Orphans are not adopted there: some of CMD's group may be left.
            say(&mut socket, &mut reports);
            while killpg(leader, None) != Err(Errno::ESRCH) {
                std::thread::sleep(AGAIN);
            }
        }
        self.state().alive = false;
        self.changed.notify_all();
        reports.push(Said::Gone);
        say(&mut socket, &mut reports);
    }
}

/// The guard cannot know if `tenure` still reads, so a failure is ignored. All is written in one piece, since several
/// threads report.
pub fn say(socket: &mut UnixStream, said: &mut Vec<Said>) {
    let bytes: Vec<u8> = said.drain(..).flat_map(Said::bytes).collect();
    let _ = socket.write_all(&bytes);
}
