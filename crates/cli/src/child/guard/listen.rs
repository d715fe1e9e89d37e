//! Reads the messages of a guard, and ends CMD when its guard is gone.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};

use crate::child::grace::KILLED_MAX;
use crate::child::guard::descendants;
use crate::child::guard::process::{GuardProcess, LOOK, end_adopted};
use crate::child::guard::wire::{SAID_BYTES, Said};
use crate::child::outcome::How;

/// The next message of the guard.
pub async fn next_said(socket: &mut UnixStream) -> io::Result<Said> {
    let mut bytes = [0; SAID_BYTES];
    socket.read_exact(&mut bytes).await?;
    Said::parse(bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The receivers of a guard's messages.
pub struct Listener {
    /// How CMD ended; `None` until then.
    pub ended: watch::Sender<Option<How>>,
    /// The signals by which CMD was suspended.
    pub suspended: mpsc::UnboundedSender<Signal>,
    /// Number of the last ping that was answered.
    pub heard: watch::Sender<i32>,
    /// Whether the guard ended CMD because the time of its lease was over.
    pub overdue: Arc<AtomicBool>,
}

/// Delivers messages until nothing is left below the guard, or the guard itself is gone.
pub async fn listen_to(socket: &mut UnixStream, listener: &Listener) -> io::Result<()> {
    let Listener { ended, suspended, heard, overdue } = listener;
    loop {
        match next_said(socket).await? {
            Said::Ended(code) => {
                ended.send_replace(Some(How::Code(code)));
            }
            Said::Killed(signal) => {
                ended.send_replace(Some(How::Signal(signal)));
            }
            Said::Suspended(signal) => {
                if let Ok(signal) = Signal::try_from(signal) {
                    // Only the code that handed over the terminal reads it.
                    let _ = suspended.send(signal);
                }
            }
            Said::Gone => return Ok(()),
            Said::Overdue => overdue.store(true, Ordering::Release),
            Said::Heard(ping) => {
                heard.send_replace(ping);
            }
            Said::Started(_) | Said::NotStarted(_) => {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}

/// Ends a guard that does not listen, after all processes below it. A guard that is stopped still has all of them
/// there.
pub async fn end_deaf(guard: &GuardProcess) {
    let until = Instant::now() + KILLED_MAX;
    while let Some(guard) = guard.pid() {
        let below = descendants::of(guard);
        for pid in &below {
            let _ = kill(*pid, Signal::SIGKILL);
        }
        if below.is_empty() || Instant::now() >= until {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    guard.end().await;
}

/// Ends a CMD whose guard is gone or does not listen: every process of it that can be found.
pub async fn end_unguarded(guard: &GuardProcess, group: Pid) {
    let until = Instant::now() + KILLED_MAX;
    end_deaf(guard).await;
    for pid in descendants::of(group) {
        let _ = kill(pid, Signal::SIGKILL);
    }
    end_adopted(KILLED_MAX).await;
    while killpg(group, Signal::SIGKILL) != Err(Errno::ESRCH) && Instant::now() < until {
        tokio::time::sleep(LOOK).await;
    }
}
