//! The terminal that `lock` and `lease` leave to CMD.
//!
//! CMD has a process group of its own, so that all of it can be stopped; a group that is not the
//! terminal's foreground cannot read from it. So the terminal is handed over, and taken back at the
//! end and whenever CMD is suspended (Ctrl-Z), when this process is suspended with it, so that the
//! shell above sees one job.

use std::io::{self, IsTerminal};

use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;

/// The terminal, while CMD has it.
pub struct Terminal {
    ours: Pid,
    group: Pid,
    /// By which signals CMD was suspended: its guard says so.
    suspended: UnboundedReceiver<Signal>,
    continued: Stream,
}

impl Terminal {
    /// Hands the terminal to CMD's group, whose suspensions arrive on `suspended`. `None` if stdin is no terminal with
    /// this process in its foreground: then there is nothing to hand over.
    pub fn hand_over(group: Pid, suspended: UnboundedReceiver<Signal>) -> Option<Self> {
        let stdin = io::stdin();
        let ours = getpgrp();
        if !stdin.is_terminal() || tcgetpgrp(&stdin) != Ok(ours) {
            return None;
        }
        let continued = signal(SignalKind::from_raw(Signal::SIGCONT as i32)).ok()?;
        let terminal = Terminal { ours, group, suspended, continued };
        terminal.give();
        Some(terminal)
    }

    fn give(&self) {
        let _ = tcsetpgrp(io::stdin(), self.group);
        // It may have tried to read before the terminal was its own.
        let _ = killpg(self.group, Signal::SIGCONT);
    }

    /// Takes the terminal back.
    fn take_back(&self) {
        // A process in the background that takes the terminal is stopped, unless it blocks that signal.
        let mut stop = SigSet::empty();
        stop.add(Signal::SIGTTOU);
        if stop.thread_block().is_ok() {
            let _ = tcsetpgrp(io::stdin(), self.ours);
            let _ = stop.thread_unblock();
        }
    }

    /// Follows CMD: when it is suspended, so is this process, and goes on with it. Never returns. Not
    /// cancel-safe: if its future is dropped while CMD is suspended, a second call does not continue CMD.
    pub async fn follow(&mut self) {
        loop {
            let Some(signal) = self.suspended.recv().await else {
                return std::future::pending().await;
            };
            if matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU)
                && tcgetpgrp(io::stdin()) == Ok(self.group)
            {
                // It stopped before the terminal was its own.
                let _ = killpg(self.group, Signal::SIGCONT);
                continue;
            }
            self.take_back();
            // The terminal would have stopped the whole job, had CMD been of our group. The signal may stop this
            // process a moment after the call returns, so the code below waits until the shell continues it, in the
            // foreground or not.
            if kill(Pid::from_raw(0), Signal::SIGTSTP).is_ok() {
                self.continued.recv().await;
            }
            if tcgetpgrp(io::stdin()) == Ok(self.ours) {
                self.give();
            } else {
                let _ = killpg(self.group, Signal::SIGCONT);
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}
