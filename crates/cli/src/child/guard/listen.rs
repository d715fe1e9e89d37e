//! What `tenure` hears of a guard, and what it does when that is gone.

use std::io;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};

use crate::child::guard::descendants;
use crate::child::guard::wire::{SAID_BYTES, Said};
use crate::child::outcome::How;
use crate::child::run::KILLED_MAX;

/// How often a group is looked at that no guard watches any more.
const LOOK: Duration = Duration::from_millis(20);

/// The next thing that the guard says.
pub async fn next_said(socket: &mut UnixStream) -> io::Result<Said> {
    let mut bytes = [0; SAID_BYTES];
    socket.read_exact(&mut bytes).await?;
    Said::parse(bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Until nothing is left below the guard, or the guard itself is gone.
pub async fn listen_to(
    socket: &mut UnixStream,
    ended: &watch::Sender<Option<How>>,
    suspended: &mpsc::UnboundedSender<Signal>,
) -> io::Result<()> {
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
                    // Only the terminal's owner asks for it.
                    let _ = suspended.send(signal);
                }
            }
            Said::Gone => return Ok(()),
            Said::Started(_) | Said::NotStarted(_) => {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}

/// Ends CMD whose guard is gone: its group, and what can be found below it.
pub async fn end_unguarded(group: Pid) {
    for pid in descendants::of(group) {
        let _ = kill(pid, Signal::SIGKILL);
    }
    let until = Instant::now() + KILLED_MAX;
    while killpg(group, Signal::SIGKILL) != Err(Errno::ESRCH) && Instant::now() < until {
        tokio::time::sleep(LOOK).await;
    }
}
